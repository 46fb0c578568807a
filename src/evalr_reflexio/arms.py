"""Which arm of an A/B test a session was in: by a tag, by where its requests came from, or by an experiment.

Three ways behind one interface, `Arms`. Nothing is coerced: who is in no arm is untagged, under the cause.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, NamedTuple, Protocol, get_args

from pydantic_core import to_json

from evalr.errors import InputError
from evalr.inputs import Assignment
from evalr.quoting import quoted
from evalr_reflexio.assigning import (
    CONTROL,
    HOLDOUT,
    TAG,
    TREATMENT,
    Unit,
)
from evalr_reflexio.cells import UNREADABLE
from evalr_reflexio.config import Config, Experiment
from evalr_reflexio.rows import NOT_KEPT, RequestRow, SessionRecord
from evalr_reflexio.store import Store

NO_REQUEST = "no request"
KEY_MISSING = "key missing"
ANOTHER_TYPE = "another type"
NO_MAP = "metadata is no map"
NOT_KEPT_HERE = "no metadata is kept"
IN_NO_SET = "request source in no set"
IN_NO_EXPERIMENT = "not in the experiment"
NO_ARM = "experiment without an arm"

SHOWN_VALUES = 20
"""How many different values of a wrong type are told apart."""


class ArmReading(NamedTuple):
    """Which arm a session is in, or why it is in none."""

    arm: str | None
    cause: str | None = None
    """Why it is untagged, such as "key missing"."""
    seen: str | None = None
    """The value that was there instead, as JSON, where there was one of another type; or the request source."""


class Arms(Protocol):
    """A way to tell the arm of a session: `TagArms`, `SourceArms` or `ExperimentArms`."""

    @property
    def name(self) -> str:
        """As a report prints it, such as "tag" or "experiment:exp-1"."""

    @property
    def labels(self) -> Sequence[str]:
        """The arms that there can be, the treatment first where that is known."""

    @property
    def unit(self) -> Unit:
        """What was assigned: users or sessions."""

    @property
    def randomised(self) -> bool:
        """Whether chance decided. A tag or request source does not say; until the caller does, it is an observation."""

    def read(self, record: SessionRecord) -> ArmReading:
        """The arm of one session, by its first request that counts."""


# ---------------------------------------------------------------------------------------------------------------------
# By tag
# ---------------------------------------------------------------------------------------------------------------------


def arm_of_tag(metadata: Any) -> ArmReading:
    """The arm that a request's metadata says: only a literal True or False under the reserved key does.

    Everything else is untagged, and says why: coercing "true" would hide that the application stamps it wrong.
    """
    if metadata is NOT_KEPT:
        return ArmReading(None, NOT_KEPT_HERE)
    if not isinstance(metadata, Mapping):
        return ArmReading(None, NO_MAP, _shown(metadata))
    if TAG not in metadata:
        return ArmReading(None, KEY_MISSING)
    value = metadata[TAG]
    if value is True:
        return ArmReading(TREATMENT)
    if value is False:
        return ArmReading(CONTROL)
    return ArmReading(None, ANOTHER_TYPE, _shown(value))


def _shown(value: Any) -> str:
    if value is UNREADABLE:
        return "not JSON"
    try:
        text = to_json(value, inf_nan_mode="constants").decode()
    except ValueError:
        text = repr(value)
    return quoted(text)[1:-1]


@dataclass(frozen=True, slots=True)
class TagArms:
    """Arms by the metadata key `reflexio_retrieval_enabled` of a session's first request.

    Args:
        randomised: whether the application assigned by chance.
        unit: what it assigned.
        metadata: of each request by its id, as the application's own log has it; by default that of Reflexio's log.
    """

    randomised: bool = False
    unit: Unit = "session"
    metadata: Mapping[str, Any] | None = field(default=None, repr=False)
    name: str = field(default="tag", init=False)
    labels: Sequence[str] = field(default=(TREATMENT, CONTROL), init=False)

    def read(self, record: SessionRecord) -> ArmReading:
        """The arm of one session."""
        first = record.first
        if first is None:
            return ArmReading(None, NO_REQUEST)
        return arm_of_tag(first.metadata if self.metadata is None else self.metadata.get(first.request_id, NOT_KEPT))


# ---------------------------------------------------------------------------------------------------------------------
# By request source
# ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SourceArms:
    """Arms by the request source of a session's first request: labelled sets of sources, told apart exactly.

    Args:
        sets: the sources of each arm, by its label; "" is a source, too.
        randomised: whether the application assigned by chance.
        unit: what it assigned.

    Raises:
        InputError: there are no sets, one is empty or unnamed, or a source is in two of them.
    """

    sets: Mapping[str, Sequence[str]]
    randomised: bool = False
    unit: Unit = "session"
    _arms: Mapping[str, str] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.sets:
            raise InputError("arms by request source need at least one labelled set, such as {'treatment': ['prod']}")
        arms: dict[str, str] = {}
        for label, sources in self.sets.items():
            if not label or isinstance(sources, str) or not sources:
                raise InputError(f"the set {label!r} needs a label and a list of request sources, not {sources!r}")
            for source in sources:
                if arms.setdefault(source, label) != label:
                    raise InputError(f"request source {source!r} is in the sets {arms[source]!r} and {label!r}")
        object.__setattr__(self, "_arms", arms)

    @property
    def name(self) -> str:
        """Such as "request-source:A=x,y;B=z"."""
        return "request-source:" + ";".join(f"{label}={','.join(sources)}" for label, sources in self.sets.items())

    @property
    def labels(self) -> Sequence[str]:
        """The labels of the sets."""
        return tuple(self.sets)

    def read(self, record: SessionRecord) -> ArmReading:
        """The arm of one session."""
        first = record.first
        if first is None:
            return ArmReading(None, NO_REQUEST)
        arm = self._arms.get(first.source)
        return ArmReading(None, IN_NO_SET, quoted(first.source)) if arm is None else ArmReading(arm)


# ---------------------------------------------------------------------------------------------------------------------
# By experiment
# ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ExperimentArms:
    """Arms of one retrieval experiment: of a session, that of its first request which carries the experiment's id.

    Arms are those that the log keeps, and never computed. The control is its holdout, and keeps that name.

    Args:
        experiment: the experiment; what is not known of it but its id leaves less to check.
        notes: what else to know of them.
    """

    in_log: ClassVar[bool] = True
    """Whether the log keeps these arms, so that they can be checked against the hash."""

    experiment: Experiment
    notes: tuple[str, ...] = field(default=(), compare=False)

    @property
    def name(self) -> str:
        """Such as "experiment:exp-1"."""
        return f"experiment:{self.experiment.id}"

    @property
    def labels(self) -> Sequence[str]:
        """Treatment and holdout."""
        return TREATMENT, HOLDOUT

    @property
    def unit(self) -> Unit:
        """Users are assigned."""
        return "user"

    @property
    def randomised(self) -> bool:
        """A hash decides, which is as good as chance."""
        return True

    def attributed(self, record: SessionRecord) -> RequestRow | None:
        """The request that says the arm: the first one that carries the experiment's id."""
        name = self.experiment.id
        for each in record.requests:
            if each.experiment == name:
                return each
        return None

    def read(self, record: SessionRecord) -> ArmReading:
        """The arm of one session."""
        request = self.attributed(record)
        if request is None:
            return ArmReading(None, IN_NO_EXPERIMENT if record.requests else NO_REQUEST)
        found = _OF_EXPERIMENT.get(request.experiment_arm)
        if found is not None:
            return found
        return ArmReading(None, NO_ARM, quoted(request.experiment_arm or ""))


_OF_EXPERIMENT: Mapping[str | None, ArmReading] = {arm: ArmReading(arm) for arm in (TREATMENT, HOLDOUT)}


# ---------------------------------------------------------------------------------------------------------------------
# Choosing, assigning, checking
# ---------------------------------------------------------------------------------------------------------------------

TAG_WORD, SOURCE_WORD, EXPERIMENT_WORD = "tag", "request-source", "experiment"


def arms_of(
    arms: str | Arms,
    *,
    config: Config | None = None,
    store: Store | None = None,
    randomised: bool = False,
    unit: Unit = "session",
    registry: str | os.PathLike[str] | None = None,
) -> Arms:
    """The arms that a text names: `tag`, `request-source:A=x,y;B=z` or `experiment:ID`; or those that are given.

    Args:
        arms: as after `--arms`, or an object that tells the arm of a session, for which nothing below is asked.
        config: what is known of experiments.
        store: the log, where it should be checked that it has what is asked for.
        randomised: whether chance decided on tags or request sources.
        unit: what tags or request sources were assigned to: "session", or "user" where all of a user's have one.
        registry: of evalr's own experiments; by default the one beside the log, where the configuration has none such.

    Raises:
        InputError: it names none, or none that this log can have; the message says what there is.
    """
    if unit not in get_args(Unit):
        raise InputError(f"unit={unit!r} must be 'session' or 'user'")
    if not isinstance(arms, str):
        if all(hasattr(arms, name) for name in ("name", "labels", "unit", "randomised", "read")):
            return arms
        raise InputError(
            f"arms={arms!r} tells no arms: give a text, such as 'tag', or SourceArms({{'control': [...]}})"
        )
    kind, _, rest = arms.partition(":")
    if kind == TAG_WORD and not rest:
        if store is not None and not store.keeps_metadata:
            raise InputError(
                f"{store.path} keeps no metadata of requests, so it has no tags: only Reflexio 0.2.24 and 0.2.25 do, "
                "and a later release that opens their database takes it out for good. Read a copy from before, "
                "requests as JSON that have a metadata each, give that of your own log as TagArms(metadata=...), or "
                "split by request-source or experiment"
            )
        return TagArms(randomised=randomised, unit=unit)
    if kind == SOURCE_WORD and rest:
        return SourceArms(_sets(rest), randomised=randomised, unit=unit)
    if kind == EXPERIMENT_WORD and rest:
        from evalr_reflexio.experimenting import experiment_arms

        return experiment_arms(rest, config=config, store=store, registry=registry)
    raise InputError(
        f"arms={arms!r} must be 'tag', 'request-source:A=x,y;B=z' (labels, each with its request sources) or "
        "'experiment:ID'"
    )


def _sets(text: str) -> dict[str, list[str]]:
    sets: dict[str, list[str]] = {}
    for part in text.split(";"):
        label, equals, sources = part.partition("=")
        label = label.strip()
        if not equals or not label:
            raise InputError(f"request-source:{text}: {part!r} is no LABEL=SOURCE,SOURCE")
        if label in sets:
            raise InputError(f"request-source:{text}: the label {label!r} comes twice")
        sets[label] = [source.strip() for source in sources.split(",")]
    return sets


def assignments(records: Iterable[SessionRecord], arms: Arms) -> Iterator[Assignment]:
    """Who was assigned to which arm: what the sample-ratio check counts, and not only those with a verdict.

    One for each session where sessions are assigned; one for each user and arm where users are, so that a user who is
    in two arms shows. Sessions that are untagged are left out, those without a request among them.
    """
    seen: set[tuple[str, str]] = set()
    for record in records:
        arm = arms.read(record).arm
        first = record.first
        if arm is None or first is None:
            continue
        if arms.unit == "session":
            yield Assignment(user=record.user or None, session=record.session, arm=arm, at=first.at)
        elif (record.user, arm) not in seen:
            seen.add((record.user, arm))
            yield Assignment(user=record.user or None, arm=arm, at=first.at)


@dataclass(slots=True)
class ArmCounts:
    """What a reading found of arms, whole sessions each: add them with `see`.

    Attributes:
        sessions: by arm.
        untagged: by cause, such as {"key missing": 4}.
        seen: for each cause, the values that were there instead and how often; twenty of them at most.
        checked: where arms can be computed anew: how many agree.
        disagreeing: and those that do not, by (user, session): how many, and the first two hundred.
    """

    sessions: Counter[str] = field(default_factory=Counter)
    untagged: Counter[str] = field(default_factory=Counter)
    seen: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    checked: int = 0
    disagreeing: int = 0
    disagreeing_sessions: list[tuple[str, str]] = field(default_factory=list)

    def see(self, reading: ArmReading) -> None:
        """Count one session."""
        if reading.arm is not None:
            self.sessions[reading.arm] += 1
            return
        cause = reading.cause or "unknown"
        self.untagged[cause] += 1
        if reading.seen is not None:
            values = self.seen[cause]
            values[reading.seen if reading.seen in values or len(values) < SHOWN_VALUES else "others"] += 1

    def merge(self, other: ArmCounts) -> None:
        """Count what another reading has found, of other sessions."""
        self.sessions.update(other.sessions)
        self.untagged.update(other.untagged)
        for cause, values in other.seen.items():
            mine = self.seen[cause]
            for value, count in values.items():
                mine[value if value in mine or len(mine) < SHOWN_VALUES else "others"] += count
        self.checked += other.checked
        self.disagreeing += other.disagreeing
        self.disagreeing_sessions += other.disagreeing_sessions[: MOST_LISTED - len(self.disagreeing_sessions)]

    def check(self, record: SessionRecord, logged: str, computed: str) -> None:
        """Set the arm that the log keeps beside the one that is computed anew."""
        self.checked += 1
        if logged != computed:
            self.disagreeing += 1
            if len(self.disagreeing_sessions) < MOST_LISTED:
                self.disagreeing_sessions.append(record.key)


MOST_LISTED: Final = 200
"""How many sessions of one kind are listed by name."""


def pairs_of(arms: Arms) -> list[tuple[str, str]]:
    """(treatment, control) of each comparison: the control is the arm so called, or else the last one named."""
    labels = list(arms.labels)
    control = next((label for label in labels if label.casefold() in (CONTROL, HOLDOUT)), labels[-1])
    return [(label, control) for label in labels if label != control]

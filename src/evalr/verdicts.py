"""Results: what an evaluator said of one input.

One input gives one result: a `Verdict`, or the reason why there is none (`Failure`, `Skip`, `HandOff`). The four are
never conflated: summaries count each under its own name.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum
from math import inf, isfinite
from typing import Any, ClassVar, Generic, Literal, TypeAlias, TypeVar

from pydantic import BaseModel

from evalr.errors import DuplicateError, InputError
from evalr.fields import verdict_fields
from evalr.input_fields import EARLIEST, without_lone_surrogates
from evalr.inputs import About
from evalr.quoting import quoted, safe_text

V = TypeVar("V", bound=BaseModel)
V_co = TypeVar("V_co", bound=BaseModel, covariant=True)


# Without slots, which would break `Verdict[T](...)` of a frozen dataclass in Python 3.11.
@dataclass(frozen=True)
class Verdict(Generic[V_co]):
    """A value of a verdict type, and how it came to be.

    Attributes:
        value: the verdict itself, an instance of the verdict type.
        evaluator: who gave it.
        version: of the evaluator. Verdicts of several versions are not pooled unless asked to.
        about: what it is about (`Input.about()`), None for a value given by hand.
        confidence: from 0 to 1, by field, where the evaluator says.
        latency: seconds of work, without waiting; None where unknown.
        cost: US dollars; None where unknown, which is not 0.
        as_of: the reading time that it depends on, None where it depends on none.
        flags: what to know of it; summaries repeat them. "truncated": the evaluator did not see all of the input.
            "trained_on": the evaluator was trained, tuned or fitted with this input, so that agreement with people
            leaves it out.
        given_by: of an evaluator that asks others, such as a `Fallback`: the one that gave it, as `name@version`. None
            where `evaluator` itself did.
    """

    status: ClassVar[str] = "verdict"

    value: V_co
    evaluator: str
    version: str = "1"
    about: About | None = None
    confidence: Mapping[str, float] | None = None
    latency: float | None = None
    cost: float | None = None
    as_of: datetime | None = None
    flags: tuple[str, ...] = ()
    given_by: str | None = None

    def __post_init__(self) -> None:
        _check(self)
        for name, value in (self.confidence or {}).items():
            if not 0 <= value <= 1:
                raise InputError(f"confidence of {name!r} is {value}: it must be from 0 to 1")


@dataclass(frozen=True, slots=True)
class Failure:
    """An evaluator could not answer. `error` says why.

    `exception` is the error itself where it happened in this process; it is not pickled.
    """

    status: ClassVar[str] = "failed"

    error: str
    evaluator: str | None = None
    version: str | None = None
    about: About | None = None
    latency: float | None = None
    cost: float | None = None
    as_of: datetime | None = None
    exception: BaseException | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check(self)

    def __reduce__(self) -> tuple[Any, ...]:
        # Many an error can be pickled but not read back, and would take the results beside it along.
        return type(self), (
            self.error,
            self.evaluator,
            self.version,
            self.about,
            self.latency,
            self.cost,
            self.as_of,
        )


@dataclass(frozen=True, slots=True)
class Skip:
    """An evaluator found that its question does not apply, or chose not to ask it. `reason` says why."""

    status: ClassVar[str] = "skipped"

    reason: str
    evaluator: str | None = None
    version: str | None = None
    about: About | None = None
    latency: float | None = None
    cost: float | None = None
    as_of: datetime | None = None

    def __post_init__(self) -> None:
        _check(self)


@dataclass(frozen=True, slots=True)
class HandOff:
    """An evaluator passes the question on: to the next one of a `Fallback`, or to people. `reason` says why."""

    status: ClassVar[str] = "handed_off"

    reason: str
    evaluator: str | None = None
    version: str | None = None
    about: About | None = None
    latency: float | None = None
    cost: float | None = None
    as_of: datetime | None = None
    verdict: Verdict[Any] | None = None

    def __post_init__(self) -> None:
        _check(self)


def _check(result: Verdict[Any] | Failure | Skip | HandOff) -> None:
    latency, cost, as_of = result.latency, result.cost, result.as_of
    if latency is not None and not 0 <= latency < inf:
        raise InputError(f"latency={latency} must be finite, not below 0, and left out (None) where it is unknown")
    if cost is not None and not 0 <= cost < inf:
        raise InputError(f"cost={cost} must be finite, not below 0, and left out (None) where it is unknown")
    if as_of is not None and as_of.tzinfo is None:
        raise InputError(f"as_of={as_of.isoformat()} has no time zone: pass an aware datetime, such as one in UTC")
    about = result.about
    if about is None:
        return
    if about.at is not None and about.at.tzinfo is None:
        raise InputError(f"at={about.at.isoformat()} has no time zone: pass an aware datetime, such as one in UTC")
    if about.weight is not None and not 0 < about.weight < inf:
        raise InputError(f"weight={about.weight} must be positive and finite, as it counts the inputs it stands for")
    if about.repeat is not None and about.repeat < 1:
        raise InputError(f"repeat={about.repeat} must be from 1, as it counts the times that one input was judged")


Result: TypeAlias = Verdict[V_co] | Failure | Skip | HandOff
NO_VERDICT = (Failure, Skip, HandOff)
NO_VERDICT_WORDS = {Failure.status: "failed", Skip.status: "skipped", HandOff.status: "handed off"}

PEOPLE = "people"
"""Who gave a label, as its verdict says it."""

LABELLED_BY = "labelled_by"
"""The attribute of a label that names its author: several people may say something of one input."""

TRAINED_ON = "trained_on"
"""The flag of a verdict on an input that its evaluator was trained, tuned or fitted with, or shows as an example."""

Duplicates = Literal["error", "first", "latest"]
"""What becomes of a second result of one subject: an error, or one of the two is kept."""


def about_of(result: object) -> About | None:
    """What a result is about; None for a plain value."""
    return result.about if isinstance(result, Verdict | Failure | Skip | HandOff) else None


def is_trained_on(result: object) -> bool:
    """Whether a result is of an input that its evaluator was made with, as the evaluator says of its verdict on it."""
    verdict = result.verdict if isinstance(result, HandOff) else result
    return isinstance(verdict, Verdict) and TRAINED_ON in verdict.flags


# ---------------------------------------------------------------------------------------------------------------------
# Scores
# ---------------------------------------------------------------------------------------------------------------------

ScoreValue = bool | int | float | str | list[Any] | None


@dataclass(frozen=True, slots=True)
class Score:
    """One field of a verdict as a named value, for stores of scores. A number that is not finite is None.

    `id` is the same for a later reading of the same subject by the same evaluator version, and never that of another
    subject; it is None where the verdict is about nothing in particular.
    """

    name: str
    value: ScoreValue
    id: str | None
    about: About | None
    evaluator: str
    version: str
    as_of: datetime | None


def scores(verdict: Verdict[Any]) -> list[Score]:
    """Every field of a verdict as a score named `evaluator.field`, such as `drop_off.outcome`."""
    import json

    subject: tuple[str | int | None, ...] | None = verdict.about.subject if verdict.about is not None else None
    if subject is not None and verdict.about is not None and verdict.about.repeat is not None:
        subject = (*subject, verdict.about.repeat)
    found = []
    verdict_type: type[BaseModel] = type(verdict.value)
    for verdict_field in verdict_fields(verdict_type):
        name = f"{verdict.evaluator}.{verdict_field.name}"
        # A JSON list keeps the parts apart whatever characters they hold.
        key = None if subject is None else json.dumps([*subject, name, verdict.version], ensure_ascii=True)
        value = _plain(getattr(verdict.value, verdict_field.name))
        found.append(Score(name, value, key, verdict.about, verdict.evaluator, verdict.version, verdict.as_of))
    return found


def _plain(value: Any) -> ScoreValue:
    if isinstance(value, Enum):
        return _plain(value.value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, str):
        return without_lone_surrogates(value)
    if isinstance(value, float) and not isfinite(value):
        return None
    plain: ScoreValue = value
    return plain


# ---------------------------------------------------------------------------------------------------------------------
# Choosing and tagging results
# ---------------------------------------------------------------------------------------------------------------------

R = TypeVar("R")


def one_per_subject(results: Iterable[R], *, duplicates: Duplicates = "error") -> Iterator[R]:
    """The results with at most one for each subject; plain values and subjects without an id pass as they are.

    "error" raises at the second result of a subject, "first" keeps the first, "latest" the one with the latest `as_of`,
    or, among equals, the last given; one without `as_of` is older than any with one.

    Raises:
        DuplicateError: names the subject and both positions, counted from 0.
    """
    if duplicates == "latest":
        return _latest(results)
    if duplicates in ("error", "first"):
        return _first(results, strict=duplicates == "error")
    raise InputError(f"duplicates={duplicates!r} must be 'error', 'first' or 'latest'")


def _subject(result: object) -> Hashable:
    about = about_of(result)
    if about is None or about.repeat is None:
        return None if about is None else about.subject
    return None if about.subject is None else (*about.subject, about.repeat)


def _first(results: Iterable[R], *, strict: bool) -> Iterator[R]:
    seen: dict[Hashable, int] = {}
    for position, result in enumerate(results):
        subject = _subject(result)
        if subject is not None:
            earlier = seen.setdefault(subject, position)
            if earlier != position:
                if not strict:
                    continue
                raise DuplicateError(
                    f"results {earlier} and {position} are both about {describe(result)}: keep one for each subject, "
                    "or pass duplicates='first' or duplicates='latest'"
                )
        yield result


def _latest(results: Iterable[R]) -> Iterator[R]:
    kept: list[R] = []
    places: dict[Hashable, int] = {}
    for result in results:
        subject = _subject(result)
        place = places.setdefault(subject, len(kept)) if subject is not None else len(kept)
        if place == len(kept):
            kept.append(result)
        elif _as_of(result) >= _as_of(kept[place]):
            kept[place] = result
    return iter(kept)


def _as_of(result: object) -> datetime:
    time: datetime | None = getattr(result, "as_of", None)
    return EARLIEST if time is None else time


def describe(result: object) -> str:
    """The subject of a result as people would name it: quoted and cut, since it is text from a log."""
    about = about_of(result)
    if about is None or about.id is None:
        return "a value without an id"
    parts = [f"{safe_text(about.kind)} {quoted(about.id, longest=80)}"]
    if about.session is not None:
        parts.append(f"of {quoted(about.session, longest=80)}")
    if about.user is not None:
        parts.append(f"of user {quoted(about.user, longest=80)}")
    if about.repeat is not None:
        parts.append(f"the {about.repeat}. time")
    return " ".join(parts)


def tag(
    results: Iterable[Result[V]], other: Iterable[Result[Any]], name: str, read: Callable[[Any], str | None]
) -> list[Result[V]]:
    """The results, with another measure's reading of the same session (or artifact) as an attribute to group by.

    Args:
        results: those to tag. Each keeps its order and, where nothing is known of it, its attributes.
        other: the other measure's results, matched by user and session (an input's `session`, or else its own id).
        name: the attribute's name.
        read: the text to put there, from a verdict's value; None puts nothing.

    Raises:
        InputError: `read` gave something else than a text or None.

    Example:
        `tag(completions, drop_offs, "drop_off", lambda v: v.outcome)` lets completion be grouped by how sessions ended.
    """
    readings: dict[tuple[str | None, str], list[str]] = {}
    for result in other:
        key = _session_of(result)
        if key is None or not isinstance(result, Verdict):
            continue
        text = read(result.value)
        if not isinstance(text, str | None):
            raise InputError(
                f"tag {name!r}: read gave {safe_text(repr(text))}, which is no text to group by; wrap it in str()"
            )
        if text is not None and text not in readings.setdefault(key, []):
            readings[key].append(text)
    tagged: list[Result[V]] = []
    for result in results:
        found = readings.get(key) if (key := _session_of(result)) is not None else None
        if found and result.about is not None:
            texts: str | list[str] = found[0] if len(found) == 1 else list(found)
            attributes = {**(result.about.attributes or {}), name: texts}
            result = replace(result, about=result.about._replace(attributes=attributes))
        tagged.append(result)
    return tagged


def _session_of(result: object) -> tuple[str | None, str] | None:
    about = about_of(result)
    session = None if about is None else about.session or about.id
    return None if about is None or session is None else (about.user, session)

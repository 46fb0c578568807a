"""What happened, in terms that any application's log can be put in.

Three inputs are read from logs (`Transcript`, `Session`, `History`), and two are cut from them: a `Wait` is one time
that an agent waited on a person (`Session.waits`), a `Draft` is one text that an agent wrote (`History.drafts`). Two
are about one answer of an agent: an `Exchange` has another answer beside it, a `LearningUse` what it was given to know.
All are frozen. Events are kept in the order of their times; events at the same time keep the order given.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    SerializeAsAny,
    model_serializer,
    model_validator,
)

from evalr.errors import InputError
from evalr.input_fields import EARLIEST, LATEST, Attributes, Name, Open, OpenMap, Text, Time, TurnText

Role = Literal["person", "agent", "tool", "system"]
"""Who did it."""


class _Event(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    at: Time
    role: Role


_E = TypeVar("_E", bound=_Event)
_time_of = attrgetter("at")


def _in_time_order(events: list[_E]) -> list[_E]:
    events.sort(key=_time_of)  # in place: the validator has made the list anew
    return events


# ---------------------------------------------------------------------------------------------------------------------
# Who and what a result is about
# ---------------------------------------------------------------------------------------------------------------------

Subject = tuple[str, str | None, str | None, str | None]


class About(NamedTuple):
    """What a result is about: carried from the input to every result made of it.

    The subject (kind, user, session, id) is unique: session ids alone are not, since users share them in real logs.
    Where one input was judged several times on purpose, `repeat` says which time it was, from 1.
    """

    kind: str
    id: str | None = None
    user: str | None = None
    session: str | None = None
    at: datetime | None = None
    read_at: datetime | None = None
    arm: str | None = None
    weight: float | None = None
    attributes: dict[str, str | list[str]] | None = None
    repeat: int | None = None

    @property
    def subject(self) -> Subject | None:
        """(kind, user, session, id), or None where the input had no id."""
        return None if self.id is None else (self.kind, self.user, self.session, self.id)


class Input(BaseModel):
    """The fields that every input may carry.

    Attributes:
        id: its name, unique together with kind, user and session.
        user: the person it belongs to; intervals are computed over users where they are known.
        arm: the side of an A/B test it was on, such as "treatment" or "control"; None is untagged.
        at: when it happened; by default the time of its first event.
        read_at: when its log was read. It stands in for a later reading time.
        attributes: texts to group by, such as agent, version or directory; a list puts it into several groups.
        weight: how many such inputs it stands for in a sample; positive.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
    kind: ClassVar[str] = "input"
    parts_by_time: ClassVar[bool] = False
    """Whether a period selects the parts that it is split into, each by its time, rather than all with the whole."""
    is_part: ClassVar[bool] = False
    """Whether it is a part of a session or an artifact, rather than the whole of one."""

    id: Name | None = None
    user: Name | None = None
    arm: Name | None = None
    at: Time | None = None
    read_at: Time | None = None
    attributes: Attributes = Field(default_factory=dict)
    weight: float | None = Field(default=None, gt=0, allow_inf_nan=False)

    def first_event(self) -> datetime | None:
        """The time of the first event, or None where there is none or it has no time."""
        return None

    def about(self) -> About:
        """What a result made of this input is about."""
        at = self.at
        if at is None:
            at = self.first_event()
        return About(
            self.kind, self.id, self.user, self._parent(), at, self.read_at, self.arm, self.weight, self.attributes
        )

    def unjudgeable(self) -> str | None:
        """Why nobody can judge it, where something is gone without which there is nothing to judge."""
        return None

    def _parent(self) -> str | None:
        return None


class Assignment(BaseModel):
    """A user's arm as assigned, before any filter: what the sample-ratio check counts.

    Attributes:
        user: who was assigned.
        arm: such as "treatment" or "control"; None where it is not known.
        session: where sessions are assigned rather than users, which one.
        at: when.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    user: Name | None = None
    arm: Name | None = None
    session: Name | None = None
    at: Time | None = None

    @property
    def assigned(self) -> tuple[str | None, str | None]:
        """What was assigned: (user, None), or (user, session)."""
        return self.user, self.session


Clock = Callable[[], datetime]
Now = datetime | Clock


def utc_now() -> datetime:
    """The wall clock: the default reading time where a log says none."""
    return datetime.now(UTC)


def resolve_now(now: Now) -> datetime:
    """The reading time that `now` stands for, in UTC: itself, or what the clock says.

    Raises:
        InputError: it is no time, has no zone, or is absurd.
    """
    time: object = now() if callable(now) else now
    if not isinstance(time, datetime):
        raise InputError(f"now={time!r} is not a time: pass an aware datetime, such as datetime.now(UTC), or a clock")
    if time.tzinfo is None:
        raise InputError(f"now={time.isoformat()} has no time zone: pass an aware datetime, such as datetime.now(UTC)")
    if not EARLIEST <= time < LATEST:
        raise InputError(f"now={time.isoformat()} is no reading time: its year must be from 1900 to 2199")
    return time.astimezone(UTC)


def reading_time(given: Input, now: datetime) -> datetime:
    """When the input was read: `now`, or its own `read_at` where that is earlier."""
    return given.read_at if given.read_at is not None and given.read_at < now else now


def known_reading_time(given: Input, now: Now | None) -> datetime | None:
    """When the input was read, where that need not be known: None without a `now` and a `read_at`."""
    return given.read_at if now is None else reading_time(given, resolve_now(now))


# ---------------------------------------------------------------------------------------------------------------------
# Sessions
# ---------------------------------------------------------------------------------------------------------------------


class Activity(_Event):
    """One thing that someone did in a session.

    `kind` is open text. Three kinds have a meaning: an agent's `proposal` asks a person to decide and is open until a
    `resolution` with the same `ref` (or, where neither has one, the next); `closed` ends the session, whoever's it is.
    """

    kind: Name = "message"
    ref: Name | None = None


class Session(Input):
    """What people and agents did over one piece of work, as times and roles without any text."""

    kind: ClassVar[str] = "session"

    id: Name
    activities: Annotated[list[Activity], AfterValidator(_in_time_order)] = Field(default_factory=list)

    def first_event(self) -> datetime | None:
        """The time of the first activity."""
        return self.activities[0].at if self.activities else None

    def until(self, now: datetime) -> Sequence[Activity]:
        """The activities up to and including `now`: what happened later does not exist yet."""
        activities = self.activities
        if not activities or activities[-1].at <= now:
            return activities
        return [activity for activity in activities if activity.at <= now]

    def waits(self, *, now: Now) -> list[Wait]:
        """Each time the agent waited on a person, as seen at `now` (or at `read_at` where that is earlier).

        One wait for each run of agent activity, from its last activity to a person's next; one for each proposal, from
        the proposal to its resolution. A close ends every wait that is open. A resolution by anyone but a person
        closes its proposal, since nobody came back.
        """
        return _waits(self, reading_time(self, resolve_now(now)))


WaitFor = Literal["reply", "proposal"]
WaitEnd = Literal["returned", "closed"]


class Wait(Input):
    """One time that an agent waited on a person: a part of the session named by `session`.

    `of` says for what: a `reply` to what the agent did, or the resolution of a `proposal`. `until` is when it ended,
    `ended` how (the person returned, or the session was closed); both are None while it is open.
    """

    kind: ClassVar[str] = "wait"
    is_part: ClassVar[bool] = True

    session: Name
    of: WaitFor = "reply"
    since: Time
    until: Time | None = None
    ended: WaitEnd | None = None

    def first_event(self) -> datetime | None:
        """When the wait began."""
        return self.since

    def _parent(self) -> str | None:
        return self.session


class OpenProposals:
    """The proposals of a session that are still open, oldest first, as its activities go by.

    A resolution with a ref resolves the proposal of that ref; one without resolves the oldest proposal without one.
    """

    def __init__(self) -> None:
        # By ref, or by position where there is none: each look takes the same time, however many are open.
        self._open: dict[str | int, tuple[int, Activity]] = {}
        self._unnamed: deque[int] = deque()

    def see(self, position: int, activity: Activity) -> tuple[int, Activity] | None:
        """Take the next activity in. Returns the proposal that it resolves, with its position, if it resolves one."""
        ref = activity.ref
        if activity.kind == "proposal" and activity.role == "agent":
            if ref is None:
                self._unnamed.append(position)
            self._open.setdefault(position if ref is None else ref, (position, activity))
        elif activity.kind == "resolution":
            if ref is not None:
                return self._open.pop(ref, None)
            if self._unnamed:
                return self._open.pop(self._unnamed.popleft())
        return None

    def oldest(self) -> Activity | None:
        """The proposal that has been open for longest, if one is open."""
        return next((proposal for _, proposal in self._open.values()), None)

    def close(self) -> list[tuple[int, Activity]]:
        """Take out and return all that are still open."""
        left = list(self._open.values())
        self._open.clear()
        self._unnamed.clear()
        return left


def _waits(session: Session, now: datetime) -> list[Wait]:
    found: list[Wait] = []
    proposals = OpenProposals()
    last_word: tuple[int, Activity] | None = None

    def end(of: WaitFor, began: tuple[int, Activity], until: datetime | None, ended: WaitEnd | None) -> None:
        position, since = began
        found.append(
            Wait.model_construct(
                # Named by where it began, so that a later reading of the same log gives it the same id.
                id=f"{of}:{position + 1}",
                user=session.user,
                arm=session.arm,
                at=None,
                read_at=session.read_at,
                attributes={**session.attributes, "wait": of},
                weight=session.weight,
                session=session.id,
                of=of,
                since=since.at,
                until=until,
                ended=ended,
            )
        )

    for position, activity in enumerate(session.until(now)):
        if activity.kind == "closed":
            for proposal in proposals.close():
                end("proposal", proposal, activity.at, "closed")
            if last_word is not None:
                end("reply", last_word, activity.at, "closed")
                last_word = None
            continue
        resolved = proposals.see(position, activity)
        if resolved is not None:
            end("proposal", resolved, activity.at, "returned" if activity.role == "person" else "closed")
        if activity.role == "agent":
            last_word = (position, activity)
        elif activity.role == "person" and last_word is not None:
            end("reply", last_word, activity.at, "returned")
            last_word = None
    for proposal in proposals.close():
        end("proposal", proposal, None, None)
    if last_word is not None:
        end("reply", last_word, None, None)
    return found


# ---------------------------------------------------------------------------------------------------------------------
# Histories
# ---------------------------------------------------------------------------------------------------------------------


class Revision(_Event):
    """One version of an artifact's text, and who wrote it. `attributes` are for what differs between revisions."""

    text: Text
    id: Name | None = None
    attributes: Attributes = Field(default_factory=dict)


class StoredRevision(Revision):
    """A revision whose text stays where it is stored: each use of `text` reads it anew, and nothing holds it.

    Readers make them, so that the history of a large file does not sit in memory. Otherwise it is as any revision is:
    it is dumped, compared and pickled with its text.
    """

    _read: Callable[[], str] = PrivateAttr()

    @classmethod
    def of(
        cls,
        read: Callable[[], str],
        *,
        at: datetime,
        role: Role,
        id: str | None = None,  # noqa: A002  the field's name
        attributes: Attributes | None = None,
    ) -> StoredRevision:
        """A revision of the text that `read` returns. Nothing is validated."""
        fields: dict[str, Any] = {"at": at, "role": role, "id": id, "attributes": attributes or {}}
        made = cls.model_construct({*fields, "text"}, **fields)
        made._read = read
        return made

    # The text is missing among the fields' values, and only what is missing is looked up here.
    def __getattr__(self, name: str) -> Any:
        return self._read() if name == "text" else super().__getattr__(name)  # type: ignore[misc]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Revision) and self.model_dump() == other.model_dump()

    def __hash__(self) -> int:
        return hash((self.at, self.role, self.id))

    def __reduce__(self) -> tuple[Any, ...]:
        return Revision.model_validate, (self.model_dump(),)

    @model_serializer(mode="plain")
    def _with_text(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in Revision.model_fields}


class History(Input):
    """The versions of one artifact (a document, a file) that people and agents both wrote.

    It may go on for years: a period selects its drafts, each by when it was written.
    """

    kind: ClassVar[str] = "history"
    parts_by_time: ClassVar[bool] = True

    id: Name
    revisions: Annotated[list[SerializeAsAny[Revision]], AfterValidator(_in_time_order)] = Field(default_factory=list)

    def first_event(self) -> datetime | None:
        """The time of the first revision."""
        return self.revisions[0].at if self.revisions else None

    def drafts(self, *, now: Now | None = None) -> list[Draft]:
        """Each revision that an agent wrote, with the one before it and what people made of it, as seen at `now`."""
        return list(self.each_draft(now=now))

    def each_draft(self, *, now: Now | None = None) -> Iterator[Draft]:
        """What `drafts` lists, one by one: of a history that is not in memory, no more than one draft's texts are."""
        moment = known_reading_time(self, now)
        revisions = self.revisions if moment is None else [r for r in self.revisions if r.at <= moment]
        starts = [index for index, revision in enumerate(revisions) if revision.role == "agent"]
        taken: set[str] = set()
        for index, following in zip(starts, [*starts[1:], None], strict=False):
            revision = revisions[index]
            # Where an id is missing or came before, the place stands in, spelled as no log spells its own ids.
            name = f"draft:{index + 1}" if revision.id is None or revision.id in taken else revision.id
            taken.add(name)
            yield Draft.model_construct(
                id=name,
                user=self.user,
                arm=self.arm,
                at=None,
                read_at=self.read_at,
                attributes={**self.attributes, **revision.attributes},
                weight=self.weight,
                history=self.id,
                written=revision.at,
                before=revisions[index - 1].text if index else None,
                text=revision.text,
                people=[later for later in revisions[index + 1 : following] if later.role == "person"],
                superseded=None if following is None else revisions[following].at,
            )


class Draft(Input):
    """One text that an agent wrote: a part of the history named by `history`.

    `before` is the text it replaced (None where it began the artifact), `people` the revisions that people made of it
    before the agent wrote again, and `superseded` the time at which it did.
    """

    kind: ClassVar[str] = "draft"
    is_part: ClassVar[bool] = True

    history: Name
    written: Time
    before: Text | None = None
    text: Text
    people: Annotated[list[SerializeAsAny[Revision]], AfterValidator(_in_time_order)] = Field(default_factory=list)
    superseded: Time | None = None

    def first_event(self) -> datetime | None:
        """When the agent wrote it."""
        return self.written

    def _parent(self) -> str | None:
        return self.history


# ---------------------------------------------------------------------------------------------------------------------
# Transcripts
# ---------------------------------------------------------------------------------------------------------------------


class ToolCall(BaseModel):
    """One call of a tool within a turn; `status` is the log's own word, such as "ok" or "error"."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    name: Name
    id: Name | None = None
    arguments: Open = None
    status: Name | None = None
    error: Text | None = None
    result: Open = None


class Turn(BaseModel):
    """One turn of a conversation. `metadata` is open: model, tokens, latency, finish reason, spans."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    role: Role
    text: TurnText = ""
    id: Name | None = None
    at: Time | None = None
    kind: Name = "message"
    ref: Name | None = None
    tool_calls: list[ToolCall] = Field(default_factory=list)
    metadata: OpenMap = Field(default_factory=dict)


class Transcript(Input):
    """A conversation about one request: what was asked, each turn, and what came of it."""

    kind: ClassVar[str] = "transcript"

    request: Text
    turns: list[Turn] = Field(default_factory=list)
    result: Text | None = None

    def first_event(self) -> datetime | None:
        """The earliest time of its turns."""
        return min((turn.at for turn in self.turns if turn.at is not None), default=None)

    def session(self) -> Session | None:
        """The same conversation as a `Session`, or None where it has no id or a turn has no time."""
        if self.id is None or not self.turns or any(turn.at is None for turn in self.turns):
            return None
        activities = [
            Activity(at=turn.at, role=turn.role, kind=turn.kind, ref=turn.ref) for turn in self.turns if turn.at
        ]
        shared = self.model_dump(include=set(Input.model_fields))
        return Session(**shared, activities=activities)


# ---------------------------------------------------------------------------------------------------------------------
# Single answers
# ---------------------------------------------------------------------------------------------------------------------

Side = Literal["served", "shadow"]
"""Of two answers to one message, the one that the person saw, or the other one."""


class Exchange(Input):
    """One message and two answers to it: the one that was served to the person, and a shadow that nobody saw.

    `treatment` says which of them comes from what is being tried. `session` names the session that it was in.
    """

    kind: ClassVar[str] = "exchange"
    is_part: ClassVar[bool] = True

    session: Name | None = None
    message: Text
    served: Text
    shadow: Text
    treatment: Side = "served"

    def _parent(self) -> str | None:
        return self.session


class Pair(Input):
    """One message and two answers to it, for a judge that is not to know where they come from.

    The order in which they are shown is decided by whoever makes the pair.
    """

    kind: ClassVar[str] = "pair"
    is_part: ClassVar[bool] = True

    session: Name | None = None
    message: Text
    first: Text
    second: Text

    def _parent(self) -> str | None:
        return self.session


class LearningUse(Input):
    """One learning that an agent was given for one response: a profile, a playbook, a remembered fact.

    A learning that two responses were given makes two of them, and one that a response names twice makes one: without
    an `id`, it is known by its response and learning, so that the second is a duplicate. Results can be grouped by
    `response`, `learning` and `learning_kind`.

    Attributes:
        session: the session that the response was in.
        message: what the person had said.
        response: what the agent answered.
        learning: the text of the learning, None where it is gone.
        learning_kind: such as "profile" or "user_playbook"; also accepted as `kind`.
        learning_id: the learning's name.
        response_id: the response's name; in `turns`, that of its turn.
        cited: whether the agent said that it used the learning, None where nobody recorded it.
        turns: the conversation around the response, with the recorded tool calls, where the log has it.
    """

    model_config = ConfigDict(validate_by_name=True)
    kind: ClassVar[str] = "learning"
    is_part: ClassVar[bool] = True

    session: Name | None = None
    message: Text
    response: Text
    learning: Text | None
    # Its own name would hide what kind of input it is.
    learning_kind: Name | None = Field(default=None, alias="kind")
    learning_id: Name
    response_id: Name
    cited: bool | None = None
    turns: list[Turn] = Field(default_factory=list)

    def first_event(self) -> datetime | None:
        """When the response was given."""
        return next((turn.at for turn in self.turns if turn.id == self.response_id), None)

    def about(self) -> About:
        """What a result made of this input is about, with what it can be folded by among its attributes."""
        own = {"response": self.response_id, "learning": self.learning_id}
        if self.learning_kind is not None:
            own["learning_kind"] = self.learning_kind
        return super().about()._replace(attributes={**self.attributes, **own})

    def unjudgeable(self) -> str | None:
        """That the learning's text is gone, where it is; a blank one says no more than none."""
        return "the text of the learning is gone" if self.learning is None or not self.learning.strip() else None

    @model_validator(mode="after")
    def _named_by_what_it_is(self) -> LearningUse:
        if self.id is None:
            # A JSON list keeps the parts apart whatever characters they hold. Past the class's own being frozen.
            self.__dict__["id"] = json.dumps([self.response_id, self.learning_kind, self.learning_id])
        return self

    def _parent(self) -> str | None:
        return self.session


# ---------------------------------------------------------------------------------------------------------------------
# Windows
# ---------------------------------------------------------------------------------------------------------------------


def check_window(window: timedelta) -> timedelta:
    """The window itself, when it is a positive length of time."""
    if not isinstance(window, timedelta) or window <= timedelta(0):
        raise InputError(f"window={window!r} must be a positive timedelta, such as timedelta(hours=1)")
    return window

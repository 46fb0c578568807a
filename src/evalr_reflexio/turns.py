"""The turns of ordinary sessions: summed up as the log has them, and made objects only when somebody looks at them.

A session is ordinary where each of its turns is as Reflexio itself writes it, in order, and none is later than the
reading time. The turns of any other are read one by one, with all that is wrong with them counted. Tests hold both
ways equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, overload

from evalr.logs.reasons import Reason
from evalr_reflexio.cells import END_YEAR, FIRST_YEAR, ROLES, are_tools, citations_of, learnings_of, role_of
from evalr_reflexio.parsing import Parts, interaction_row, time_of_text
from evalr_reflexio.rows import InteractionRow, Reference, SessionRecord
from evalr_reflexio.speaking import Bearer, Spoken, spoken
from evalr_reflexio.tables import FIELDS, INTERACTIONS

_ID, _ROLE, _TOKENS = map(FIELDS[INTERACTIONS].index, ("interaction_id", "role", "token_count"))

RawTurns = Sequence[Sequence[Any]]
"""Rows of interactions as the database gives them, with the columns of FIELDS."""

JudgedTurns = Mapping[int, InteractionRow | Bearer]
"""Turns by their ids."""

_NONE: JudgedTurns = {}


class OrdinaryTurns(Sequence[InteractionRow]):
    """The turns of an ordinary session.

    Attributes:
        said: what they say, all together.
    """

    __slots__ = ("_parts", "_raw", "_rows", "said")

    def __init__(self, raw: RawTurns, said: Spoken, parts: Parts) -> None:
        self._raw, self.said, self._parts = raw, said, parts
        self._rows: list[InteractionRow] = []

    def __len__(self) -> int:
        return len(self._raw)

    def __iter__(self) -> Iterator[InteractionRow]:
        return iter(self._made())

    @overload
    def __getitem__(self, place: int) -> InteractionRow: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[InteractionRow]: ...
    def __getitem__(self, place: int | slice) -> InteractionRow | Sequence[InteractionRow]:
        return self._made()[place]

    def _made(self) -> list[InteractionRow]:
        if not self._rows:
            self._rows = [interaction_row(row, self._parts) for row in self._raw]
        return self._rows

    def column(self, place: int) -> list[Any]:
        """One column of them, as the log has it."""
        return [row[place] for row in self._raw]


def said_by(turns: Sequence[InteractionRow], now: datetime | None = None) -> Spoken:
    """What the turns of a session say until `now`; ordinary ones are those of a reading until then."""
    return turns.said if isinstance(turns, OrdinaryTurns) else spoken(turns, now)


def ids_of(turns: Sequence[InteractionRow]) -> list[int]:
    """The ids of turns."""
    return turns.column(_ID) if isinstance(turns, OrdinaryTurns) else [turn.interaction_id for turn in turns]


def raw_roles_of(turns: Sequence[InteractionRow]) -> list[str]:
    """Who speaks in turns, as the log names them."""
    return turns.column(_ROLE) if isinstance(turns, OrdinaryTurns) else [turn.raw_role for turn in turns]


def are_counted(turns: Sequence[InteractionRow]) -> bool:
    """Whether any turn says how many tokens it has, as those do that 0.2.30 or a later release wrote."""
    counts = turns.column(_TOKENS) if isinstance(turns, OrdinaryTurns) else [turn.tokens for turn in turns]
    return any(count is not None for count in counts)


def judged_turns(record: SessionRecord) -> JudgedTurns:
    """The turns that a session's verdicts on answers and on learnings are about, and maybe others, by their id."""
    if not record.shadow_verdicts and not record.learning_verdicts:
        return _NONE
    judged = {row.interaction for row in record.shadow_verdicts}
    judged.update(row.interaction for row in record.learning_verdicts)
    turns = record.interactions
    if isinstance(turns, OrdinaryTurns):
        bearers = {bearer.interaction_id: bearer for bearer in turns.said.given}
        bearers.update((bearer.interaction_id, bearer) for bearer, _ in turns.said.with_shadow)
        if bearers.keys() >= judged:
            return bearers
    return {turn.interaction_id: turn for turn in turns} if judged else {}


def spoken_in(raw: RawTurns, now: datetime) -> Spoken | None:  # noqa: PLR0912  one pass over a million turns
    """What the turns of a session say, as `spoken` has it; None where they are not ordinary."""
    tokens: int | None = 0
    last_word: datetime | None = None
    answered: datetime | None = None
    has_message = False
    last_at, last_id = _BEGINNING, 0
    waited: list[float] = []
    with_shadow: list[tuple[Bearer, bool]] = []
    given: list[Bearer] = []
    cited: list[Sequence[Reference]] = []
    for turn_id, _, time, raw_role, content, shadow, counted, _, _, tools, citations, learnings, _ in raw:
        try:
            at = time_of_text(time)
            role = ROLES.get(raw_role) or role_of(raw_role)
            if tools is not None and tools != "[]" and not are_tools(tools):
                return None
            if citations is not None:
                citations = () if citations == "[]" else citations_of(citations)
            if learnings is not None:
                learnings = () if learnings == "[]" else learnings_of(learnings)
        except (AttributeError, TypeError, ValueError, Reason):
            return None
        if role is None or at.tzinfo is not UTC or not last_at <= at <= now or type(turn_id) is not int:
            return None
        if at == last_at and turn_id < last_id:
            return None
        if content is not None and type(content) is not str:
            return None
        if shadow is not None and type(shadow) is not str:
            return None
        if counted is not None and (type(counted) is not int or counted < 0):
            return None
        last_at, last_id = at, turn_id
        if role == "agent":
            last_word, answered = at, None
            tokens = None if tokens is None or counted is None else tokens + counted
            if shadow:
                with_shadow.append((Bearer(turn_id, at, role, shadow, citations, learnings), has_message))
        elif role == "person":
            if answered is None:
                answered = at
                if last_word is not None:
                    waited.append((at - last_word).total_seconds())
            if content:
                has_message = True
        if citations:
            cited.append(citations)
        if learnings:
            given.append(Bearer(turn_id, at, role, shadow or "", citations, learnings))
    if last_at.year >= END_YEAR:
        return None
    return Spoken(tokens, last_word, answered, waited, with_shadow, given, cited, is_all=True)


_BEGINNING = datetime(FIRST_YEAR, 1, 1, tzinfo=UTC)

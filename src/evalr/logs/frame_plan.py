"""Which column of a table is what: evalr's fields by their columns, and what their words and times mean."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Literal, NamedTuple, get_args

from pydantic import BaseModel

from evalr.errors import InputError
from evalr.estimates.words import choice_words
from evalr.inputs import Activity, History, Input, Revision, Role, Session, Transcript, Turn
from evalr.logs.cells import NAIVE, NUMBER, Times, is_missing
from evalr.logs.reasons import Reason
from evalr.logs.tables import Table
from evalr.quoting import quoted

FrameKind = Literal["session", "transcript", "history"]
"""What a frame's rows make: activities make sessions, turns transcripts, revisions histories."""

PROBED = 1_000
"""Rows that are looked at for what the times of a frame are."""

COLUMNS_NAMED = 30

ROLES: dict[str, Role] = {
    "person": "person",
    "user": "person",
    "human": "person",
    "agent": "agent",
    "assistant": "agent",
    "ai": "agent",
    "bot": "agent",
    "tool": "tool",
    "function": "tool",
    "system": "system",
}
"""The words of common logs for who did it, in any case."""


class Form(NamedTuple):
    """One kind of input: its model, that of its events, and which of evalr's fields are in which."""

    model: type[Input]
    events: str
    event: type[BaseModel]
    of_event: dict[str, str]
    of_input: tuple[str, ...]
    needed: tuple[str, ...]

    @property
    def fields(self) -> list[str]:
        """Evalr's fields that a frame of this kind may have."""
        return [*self.of_input, *self.of_event]


_SHARED = ("id", "user", "arm", "read_at", "weight")
FORMS: dict[str, Form] = {
    "session": Form(
        Session,
        "activities",
        Activity,
        {name: name for name in ("at", "role", "kind", "ref")},
        _SHARED,
        ("id", "at", "role"),
    ),
    "transcript": Form(
        Transcript,
        "turns",
        Turn,
        {name: name for name in ("role", "text", "at", "kind", "ref", "tool_calls", "metadata")} | {"turn_id": "id"},
        (*_SHARED, "request", "result"),
        ("id", "role", "text"),
    ),
    "history": Form(
        History,
        "revisions",
        Revision,
        {name: name for name in ("at", "role", "text")} | {"revision_id": "id"},
        _SHARED,
        ("id", "at", "role", "text"),
    ),
}

TIMES = ("at", "read_at")
TEXTS = ("text", "request", "result")
NAMES = ("id", "user", "arm", "kind", "ref", "turn_id", "revision_id")

_GUESSES = {
    "id": "session_id session conversation_id conversation thread_id thread ticket_id ticket chat_id trace_id case_id "
    "document_id document doc_id path",
    "user": "user_id customer_id customer client_id client person username",
    "at": "timestamp time ts created_at created sent_at sent datetime date when",
    "role": "author sender speaker actor author_type sender_type from who by",
    "text": "content message body utterance",
}
"""What other logs call the fields that a frame cannot do without, or should not."""


class Plan(NamedTuple):
    """How a table is read: the places of its columns, by evalr's field and by attribute, and what its words mean."""

    table: Table
    form: Form
    kind: str
    places: dict[str, int]
    attributes: dict[str, int]
    roles: dict[Any, Role]
    times: Times


def listed(attributes: Iterable[Hashable]) -> list[Hashable]:
    """The columns that are attributes; a text is one name."""
    return [attributes] if isinstance(attributes, str) else list(attributes)


def places_of(table: Table, form: Form, columns: Mapping[str, Hashable]) -> dict[str, int]:
    """The places of the columns that hold evalr's fields.

    Raises:
        InputError: there is no such field, a column is not there or there twice, or a needed field has none.
    """
    for field in columns:
        if field not in form.fields:
            raise InputError(f"columns: evalr has no field {field!r} here; {choice_words(str(field), form.fields)}")
    places = {}
    for field in form.fields:
        name = columns.get(field, field)
        if (field in columns and name is not None) or (field not in columns and field in table.names):
            places[field] = place_of(table, name, f"columns: {field!r}")
    missing = [field for field in form.needed if field not in places]
    if missing:
        raise InputError(_missing_words(table, missing, columns))
    return places


def place_of(table: Table, name: Hashable, where: str) -> int:
    """The place of the one column of a name."""
    found = [place for place, each in enumerate(table.names) if each == name]
    if len(found) > 1:
        raise InputError(f"{where}: the {table.what} has {len(found)} columns named {_shown(name)}: rename all but one")
    if not found:
        known = choice_words(str(name), [quoted(str(each))[1:-1] for each in table.names[:COLUMNS_NAMED]])
        raise InputError(f"{where}: the {table.what} has no column {_shown(name)}; {known}{_index_words(table)}")
    return found[0]


def _missing_words(table: Table, missing: list[str], columns: Mapping[str, Hashable]) -> str:
    known = ", ".join(_shown(name) for name in table.names[:COLUMNS_NAMED]) or "none"
    hidden = len(table.names) - COLUMNS_NAMED
    more = f" and {hidden:,} more" if hidden > 0 else ""
    shown = ", ".join(f"{field!r}: {_shown(name)}" for field, name in _suggested(table, missing, columns).items())
    return (
        f"the {table.what} has no {'column' if len(missing) == 1 else 'columns'} {', '.join(map(repr, missing))}; its "
        f"columns: {known}{more}{_index_words(table)}. Say which is which: columns={{{shown}}}"
    )


def _suggested(table: Table, missing: list[str], columns: Mapping[str, Hashable]) -> dict[str, Hashable]:
    """What was said, and a guess for each field that is missing; for the user, who is no must, only a likely one."""
    free = {str(name).casefold(): name for name in table.names if name not in columns.values()}
    suggested = dict(columns)
    for field, names in _GUESSES.items():
        guess = next((free[name] for name in names.split() if name in free), "...")
        if field in missing or (field == "user" and "user" not in {*columns, *table.names} and guess != "..."):
            suggested[field] = guess
    return suggested


def _index_words(table: Table) -> str:
    if not table.keys:
        return ""
    return f"; {', '.join(map(_shown, table.keys))} in its index: frame.reset_index() makes columns of it"


def _shown(name: Hashable) -> str:
    return quoted(name) if isinstance(name, str) else quoted(repr(name))[1:-1]


def checked_roles(roles: Mapping[Any, Role]) -> dict[Any, Role]:
    """What the frame's words for who did it mean."""
    for word, role in roles.items():
        if role not in get_args(Role):
            raise InputError(f"roles: {word!r} is {role!r}, which must be 'person', 'agent', 'tool' or 'system'")
    return dict(roles)


def probe_times(plan: Plan) -> None:
    """Refuse times that nothing says how to read, before a whole frame of them is left out row by row."""
    import numpy as np

    rows = np.arange(min(plan.table.rows, PROBED))
    for field in TIMES:
        if field not in plan.places:
            continue
        place = plan.places[field]
        first = next((cell for cell in plan.table.take(place, rows) if not is_missing(cell)), None)
        if first is None:
            continue
        name = _shown(plan.table.names[place])
        try:
            Times(plan.times.zone, plan.times.epoch).read(first)
        except Reason as reason:
            if str(reason) == NAIVE:
                raise InputError(
                    f"the times in column {name} have no zone: say by which clock they were written, such as tz='UTC' "
                    "or tz='Europe/Berlin', or localise them in the frame"
                ) from None
            if str(reason) == NUMBER:
                raise InputError(
                    f"the times in column {name} are numbers: say what they count since 1970, such as epoch='s' "
                    "(seconds) or epoch='ms'"
                ) from None

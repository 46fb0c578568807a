"""From the rows of a table to inputs: those of one user and session together, whichever order they are in."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import BaseModel, ValidationError

from evalr.estimates.words import count_words
from evalr.inputs import Input, Revision, Role, Transcript, Turn
from evalr.logs.cells import is_missing, plain, to_groups, to_name
from evalr.logs.frame_plan import NAMES, ROLES, TEXTS, TIMES, Plan
from evalr.logs.log import Item, Log
from evalr.logs.reasons import Reason, fault
from evalr.quoting import quoted

if TYPE_CHECKING:
    from numpy import int64
    from numpy.typing import NDArray

BLOCK = 32_768
"""Rows whose cells are objects of Python at the same time."""

# ---------------------------------------------------------------------------------------------------------------------
# Which rows belong together
# ---------------------------------------------------------------------------------------------------------------------


def _groups(plan: Plan) -> NDArray[int64]:
    """For each row the number of its input, in the order of first appearance; -1 where it names none."""
    import numpy as np

    table = plan.table
    groups = np.full(table.rows, -1, dtype=np.int64)
    numbers: dict[tuple[str | None, str], int] = {}
    for start in range(0, table.rows, BLOCK):
        rows = np.arange(start, min(start + BLOCK, table.rows))
        ids = table.take(plan.places["id"], rows)
        users = table.take(plan.places["user"], rows) if "user" in plan.places else [None] * len(rows)
        for row, id_cell, user_cell in zip(rows.tolist(), ids, users, strict=True):
            name = None if is_missing(id_cell) else to_name(id_cell)
            user = None if is_missing(user_cell) else to_name(user_cell)
            if isinstance(name, str) and (user is None or isinstance(user, str)):
                groups[row] = numbers.setdefault((user, name), len(numbers))
    target = _with_their_user(numbers)
    return groups if target is None else np.where(groups < 0, groups, target[groups])


def _with_their_user(numbers: Mapping[tuple[str | None, str], int]) -> NDArray[int64] | None:
    """For each input its number, where one without a user goes with the only one of its id that has one."""
    import numpy as np

    alone = {name: number for (user, name), number in numbers.items() if user is None}
    if not alone or len(alone) == len(numbers):
        return None
    of_users: dict[str, int | None] = {}
    for (user, name), number in numbers.items():
        if user is not None and name in alone:
            of_users[name] = None if name in of_users else number
    target = np.arange(len(numbers))
    for name, only in of_users.items():
        if only is not None:
            target[[only, alone[name]]] = min(only, alone[name])
    return target


# ---------------------------------------------------------------------------------------------------------------------
# From rows to inputs
# ---------------------------------------------------------------------------------------------------------------------


class _Row(NamedTuple):
    """What one row says: of its event, of its input, and as attributes."""

    place: str
    event: BaseModel
    of_input: dict[str, Any]
    attributes: dict[str, list[Any]]


def items(plan: Plan, log: Log) -> Iterator[Item]:
    """The inputs that a table holds, in the order in which they first appear, with the log's account of its rows."""
    import numpy as np

    read = {*plan.places.values(), *plan.attributes.values()}
    for column, name in enumerate(plan.table.names):
        if column not in read:
            log.ignore_field(quoted(str(name))[1:-1], plan.table.rows)
    groups = _groups(plan)
    order = np.argsort(groups, kind="stable")
    readers = _readers(plan)
    several = dict.fromkeys(plan.attributes, 0)
    current, kept = -1, list[_Row]()
    for group, row, cells in _in_order(plan, groups, order):
        if group != current:
            yield from _inputs(plan, log, kept, several)
            current, kept = group, []
        log.records += 1
        place = f"row {row + 1}"
        try:
            kept.append(_row(plan, readers, place, group, cells))
        except Reason as reason:
            log.skip(str(reason), place)
        except ValidationError as error:
            log.skip(fault(error), place)
    yield from _inputs(plan, log, kept, several)
    log.notes += _notes(plan, several)


def _in_order(plan: Plan, groups: NDArray[int64], order: NDArray[int64]) -> Iterator[tuple[int, int, tuple[Any, ...]]]:
    """The number of each row's input, the row, and its cells: of fields, then of attributes. Input by input."""
    places = [*plan.places.values(), *plan.attributes.values()]
    for start in range(0, len(order), BLOCK):
        rows = order[start : start + BLOCK]
        taken = {place: plan.table.take(place, rows) for place in set(places)}
        cells = zip(*(taken[place] for place in places), strict=True)
        yield from zip(groups[rows].tolist(), rows.tolist(), cells, strict=True)


class _Reader(NamedTuple):
    field: str
    of_event: str | None
    is_text: bool
    read: Callable[[Any], Any]


def _readers(plan: Plan) -> list[_Reader]:
    special: dict[str, Callable[[Any], Any]] = {
        "role": partial(_role, plan.roles),
        **dict.fromkeys(TIMES, plan.times.read),
        **dict.fromkeys(NAMES, to_name),
    }
    return [
        _Reader(field, plan.form.of_event.get(field), field in TEXTS, special.get(field, plain))
        for field in plan.places
    ]


def _role(roles: Mapping[Any, Role], word: Any) -> Role:
    word = plain(word)
    if roles and isinstance(word, Hashable) and word in roles:
        return roles[word]
    if isinstance(word, str) and (known := ROLES.get(word.strip().casefold())):
        return known
    raise Reason(f"unknown role {quoted(word if isinstance(word, str) else repr(word))}")


def _row(plan: Plan, readers: list[_Reader], place: str, group: int, cells: tuple[Any, ...]) -> _Row:
    of_event: dict[str, Any] = {}
    of_input: dict[str, Any] = {}
    for (field, target, is_text, read), cell in zip(readers, cells, strict=False):
        if is_missing(cell) and not (is_text and isinstance(cell, str)):
            continue
        if target is None:
            of_input[field] = read(cell)
        else:
            of_event[target] = read(cell)
    if group < 0:
        wrong = "user" if isinstance(of_input.get("id"), str) else "id"
        raise Reason(f"wrong type in {wrong!r}" if wrong in of_input else f"missing field {wrong!r}")
    attributes = {
        name: texts
        for name, cell in zip(plan.attributes, cells[len(readers) :], strict=True)
        if not is_missing(cell) and (texts := to_groups(cell))
    }
    return _Row(place, plan.form.event.model_validate(of_event), of_input, attributes)


def _inputs(plan: Plan, log: Log, rows: list[_Row], several: dict[str, int]) -> Iterator[Item]:
    """The input that rows make, and the session that it is too where it is a transcript with times."""
    if not rows:
        return
    try:
        given = _input(plan, rows, several)
    except Reason as reason:
        problem = str(reason)
    except ValidationError as error:
        problem = fault(error)
    else:
        yield given
        session = given.session() if isinstance(given, Transcript) else None
        if session is not None:
            log.derived += 1
            yield session
        return
    for row in rows:
        log.skip(problem, row.place)


def _input(plan: Plan, rows: list[_Row], several: dict[str, int]) -> Input:
    fields: dict[str, Any] = {}
    for row in rows:
        for name, value in row.of_input.items():
            if fields.setdefault(name, value) != value:
                raise Reason(f"several values of {name!r} in one {plan.kind}")
    events = [row.event for row in rows]
    attributes: dict[str, list[Any]] = {}
    for name in plan.attributes:
        said = [row.attributes[name] for row in rows if name in row.attributes]
        differs = any(texts != said[0] for texts in said)
        if differs and plan.form.event is Revision:
            events = [_with_attribute(event, name, row) for event, row in zip(events, rows, strict=True)]
        elif said:
            several[name] += differs
            attributes[name] = _distinct(said)
    if plan.form.event is Turn:
        events = _turns_in_order(events)
        fields.setdefault("request", _first_request(events))
    return plan.form.model.model_validate({**fields, "attributes": _texts(attributes), plan.form.events: events})


def _with_attribute(event: BaseModel, name: str, row: _Row) -> BaseModel:
    if name not in row.attributes or not isinstance(event, Revision):
        return event
    known = {**event.attributes, **_texts({name: row.attributes[name]})}
    return Revision.model_validate({**dict(event), "attributes": known})


def _distinct(lists: Iterable[list[Any]]) -> list[Any]:
    found: list[Any] = []
    for texts in lists:
        found += [text for text in texts if text not in found]
    return found


def _texts(attributes: Mapping[str, list[Any]]) -> dict[str, Any]:
    return {name: texts[0] if len(texts) == 1 else texts for name, texts in attributes.items()}


def _turns_in_order(events: list[BaseModel]) -> list[BaseModel]:
    times = [event.at for event in events if isinstance(event, Turn) and event.at is not None]
    if len(times) < len(events):
        return events
    return [event for _, event in sorted(zip(times, events, strict=True), key=lambda pair: pair[0])]


def _first_request(events: Iterable[BaseModel]) -> str:
    for event in events:
        if isinstance(event, Turn) and event.role == "person":
            return event.text
    raise Reason("no request, and no turn by a person")


def _notes(plan: Plan, several: Mapping[str, int]) -> Iterator[str]:
    for name, count in several.items():
        if count:
            has = "has" if count == 1 else "have"
            whose = f"{count_words(count, plan.kind)} {has} several texts for {quoted(name)}"
            yield f"{whose}, and {'counts' if count == 1 else 'count'} in each of those groups"
    for clock, count in plan.times.twice.items():
        yield f"{count_words(count, 'time')} that the clock of {clock} showed twice, taken as the first"

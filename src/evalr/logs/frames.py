"""Frames: tables in long form, one row for each activity, turn or revision, read into inputs."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from datetime import tzinfo
from functools import partial
from typing import Any, get_args

from evalr.errors import InputError
from evalr.estimates.buckets import zone
from evalr.inputs import Role
from evalr.logs.cells import Epoch, Times
from evalr.logs.frame_inputs import items
from evalr.logs.frame_plan import FORMS, FrameKind, Plan, checked_roles, listed, place_of, places_of, probe_times
from evalr.logs.log import Log
from evalr.logs.tables import table_of


def read_frame(
    frame: Any,
    *,
    kind: FrameKind = "session",
    columns: Mapping[str, Hashable] | None = None,
    roles: Mapping[Any, Role] | None = None,
    attributes: Iterable[Hashable] = (),
    tz: str | tzinfo | None = None,
    epoch: Epoch | None = None,
    strict: bool = False,
) -> Log:
    """The inputs of a frame in long form: one row for each activity, turn or revision.

    Rows of one user and session become one input, in the order in which these first appear; their events are put in
    the order of their times, and stay in that of the frame where these are equal (or, for turns, not all known). A row
    without a user belongs to its session's only user, if there is only one.

    The frame is a frame of pandas or polars, a table of pyarrow, a relation of DuckDB, or any iterable of mappings, one
    a row. It is not copied: what is held beside it is about 30 bytes a row, the names of the inputs, and the cells of
    some ten thousand rows at a time; only rows that come one by one (mappings, a relation) are held as they come.

    A row that cannot be used is left out, counted, and named by its place in the frame, counted from 1; the rest of its
    input is kept. What cannot be agreed on is left out as a whole: an input whose rows have several arms, weights,
    read_at, requests or results. None, NaN, NaT, pandas' NA and the empty text are missing cells.

    Args:
        frame: as above.
        kind: what the rows make: "session" (of activities), "transcript" (of turns), "history" (of revisions).
        columns: from evalr's name of a field to the frame's name of the column, such as `{"id": "ticket"}`. A column
            that has evalr's own name needs no entry; None says that a field is not in the frame. There are, for every
            kind, id, user, arm, read_at, weight, at and role; kind and ref (sessions, transcripts); text (transcripts,
            histories); request, result, turn_id, tool_calls and metadata (transcripts); revision_id (histories).
            A transcript without a request has that of its first turn by a person.
        roles: from the frame's words for who did it to "person", "agent", "tool" or "system". Understood without it,
            in any case: evalr's own, user, human, assistant, ai, bot, function. A row with another word is left out.
        attributes: columns to carry as texts to group by. An input with several is in several groups, and the log's
            notes say so; those of a history that differ between its revisions are the revisions' own.
        tz: the zone by whose clock naive times were written, such as "Europe/Berlin"; times with a zone keep theirs. A
            time that this clock skipped leaves its row out, one that it showed twice is the first, and counted.
        epoch: what times that are numbers count since 1970: "s", "ms", "us" or "ns". Otherwise no number is a time.
        strict: raise RecordError at the first row that cannot be used, rather than count it.

    Raises:
        InputError: a column is not there, or there twice; the times are naive or numbers, and nothing says of what
            clock; what is passed is no frame.
        LogError: there are no rows.

    Example:
        `evalr.report(read_frame(tickets, columns={"id": "ticket", "at": "sent"}, attributes=["channel"], tz="UTC"))`
    """
    if kind not in get_args(FrameKind):
        raise InputError(f"kind={kind!r} must be 'session', 'transcript' or 'history'")
    if epoch is not None and epoch not in get_args(Epoch):
        raise InputError(f"epoch={epoch!r} must be 's', 'ms', 'us' or 'ns'")
    form = FORMS[kind]
    table = table_of(frame)
    plan = Plan(
        table,
        form,
        kind,
        places_of(table, form, columns or {}),
        {str(name): place_of(table, name, "attributes") for name in listed(attributes)},
        checked_roles(roles or {}),
        Times(None if tz is None else zone(tz), epoch),
    )
    probe_times(plan)
    return Log(table.what, "frame", partial(items, plan), strict=strict, noun="row")

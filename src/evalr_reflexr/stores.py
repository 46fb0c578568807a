"""Where reflexr keeps its log: a SQLite store, a PostgreSQL store, or envelopes as JSON Lines. All are only read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Protocol

from pydantic_core import from_json

from evalr.errors import InputError, LogError
from evalr.logs.finding import scheme_of, unreadable
from evalr.logs.log import Log
from evalr.logs.reasons import Reason, text_fault, without_lone_escapes
from evalr.logs.sqlite import MAGIC, is_sqlite
from evalr.quoting import quoted
from evalr_reflexr.envelopes import Envelope, Workspace, read_envelope

KNOWN_SCHEMA = "0008"
"""The newest version of reflexr's schema that these readers were written for."""

TypeFilter = Callable[[str], bool]

FIELDS: Mapping[str, tuple[str, ...]] = {
    "id": ("id",),
    "at": ("ts",),
    "chain": ("correlation_id",),
    "actor": ("actor", "kind"),
    "rule": ("event", "rule"),
    "run": ("event", "run_id"),
    "firing": ("event", "firing_id"),
}
"""What a store can give of its envelopes by itself, and where it stands in them."""

Row = tuple[Workspace, int, str, Sequence[Any]]
"""A workspace, a seq, a type, and the fields that were asked for."""


class MissingWorkspaceError(LogError):
    """A store has no workspace of this tenant and name."""


class OpenStore(Protocol):
    """A store that is being read."""

    @property
    def ends(self) -> Mapping[Workspace, datetime]:
        """When each workspace's last event was, of an export, which ends with it: known once it was read.

        What a store does not hold has not happened to this day, and it has no end.
        """

    def envelopes(
        self, log: Log, *, tenant: str | None, workspace: str | None, types: TypeFilter
    ) -> Iterator[Envelope]:
        """Every envelope of a type that is wanted, workspace by workspace where they are stored so.

        Args:
            log: gets the account of what cannot be read.
            tenant: only this tenant's. Envelopes on the wire do not say theirs, and get this one.
            workspace: only this one.
            types: which types are wanted.

        Raises:
            LogError: there is no such tenant or workspace, or the store cannot be read.
        """

    def rows(
        self, log: Log, *, tenant: str | None, workspace: str | None, types: TypeFilter, fields: Sequence[str]
    ) -> Iterator[Row]:
        """A few fields of every envelope of a type that is wanted, as texts or None, as the store itself reads them.

        Args:
            log: as for `envelopes`.
            tenant: as for `envelopes`.
            workspace: as for `envelopes`.
            types: as for `envelopes`.
            fields: which, of `FIELDS`.

        Raises:
            LogError: as for `envelopes`.
        """


class Store(Protocol):
    """A store as it is named; opening it takes what it needs and lets go of it at the end."""

    @property
    def path(self) -> str:
        """As messages name it."""

    def opened(self) -> AbstractContextManager[OpenStore]:
        """The store, open for reading."""


def find_store(path: str | PathLike[str]) -> Store:
    """The store at a path or at an address of PostgreSQL, by its first bytes.

    Raises:
        LogError: there is none.
        InputError: it is an address of something else.
    """
    from evalr_reflexr.sqlite import SqliteStore
    from evalr_reflexr.wire import WireLog

    scheme = scheme_of(path)
    if scheme is not None:
        from evalr_reflexr.postgres import PostgresStore

        if scheme not in ("postgresql", "postgres"):
            raise InputError(f"{scheme}:// is no address of PostgreSQL: write postgresql://user@host/database")
        return PostgresStore(fspath(path))
    found = Path(path)
    try:
        with found.open("rb") as file:
            head = file.read(len(MAGIC))
    except (OSError, ValueError) as error:
        raise unreadable(found, error) from error
    return SqliteStore(found) if is_sqlite(head) else WireLog(found)


def row_of(envelope: Envelope, fields: Sequence[str]) -> Row:
    """The row of an envelope that was parsed."""
    values = {
        "id": envelope.id,
        "at": envelope.at.isoformat(),
        "chain": envelope.chain,
        "actor": envelope.actor["kind"],
        "rule": envelope.text_field("rule"),
        "run": envelope.text_field("run_id"),
        "firing": envelope.text_field("firing_id"),
    }
    return envelope.workspace, envelope.seq, envelope.type, tuple(values[field] for field in fields)


def parsed(text: str | bytes, *, tenant: str | None, log: Log) -> Envelope:
    """The envelope that a text of JSON holds.

    Raises:
        Reason: it holds none.
    """
    try:
        record: Any = from_json(text)
    except ValueError as error:
        line, repaired = without_lone_escapes(text.encode(errors="replace") if isinstance(text, str) else text)
        try:
            record = from_json(line)
        except ValueError:
            raise Reason(text_fault(line, str(error))) from None
        if repaired:
            log.repaired["lone surrogates"] += repaired
    return read_envelope(record, tenant=tenant)


def chosen(path: str, workspaces: Iterable[Workspace], *, tenant: str | None, workspace: str | None) -> list[Workspace]:
    """The workspaces of this tenant and name.

    Raises:
        LogError: there are none; the message names those that there are.
    """
    known = list(workspaces)
    found = [each for each in known if tenant in (None, each.tenant) and workspace in (None, each.name)]
    if not found:
        raise missing(path, known, tenant=tenant, workspace=workspace)
    return found


def missing(path: str, known: list[Workspace], *, tenant: str | None, workspace: str | None) -> MissingWorkspaceError:
    """That there is no such workspace."""
    if not known:
        return MissingWorkspaceError(f"{path}: there are no events in this reflexr log")
    of_tenant = [each for each in known if workspace is None or tenant in (None, each.tenant)]
    names = [str(each) for each in of_tenant or known]
    shown = ", ".join(names[:8]) + (f" and {len(names) - 8:,} more" if names[8:] else "")
    if workspace is None:
        return MissingWorkspaceError(f"{path}: there is no tenant {quoted(tenant or '')} in this log; it has {shown}")
    of = "" if tenant is None else f" of tenant {quoted(tenant)}"
    return MissingWorkspaceError(f"{path}: there is no workspace {quoted(workspace)}{of} in this log; it has {shown}")


def schema_note(version: str | None) -> str | None:
    """What to know of a store of this schema version; None where it is known."""
    if version is None:
        return "the store does not say the version of its schema"
    if version.isdigit() and int(version) <= int(KNOWN_SCHEMA):
        return None
    return (
        f"the store's schema is of version {quoted(version)}, and this reader knows up to {KNOWN_SCHEMA}: it has the "
        "tables and columns of that one, and is read so"
    )


def no_store(path: str, lacks: str, version: str | None) -> LogError:
    """That the tables are not those of a store that can be read."""
    of = "" if version is None else f" (its schema is of version {quoted(version)})"
    return LogError(
        f"{path}: this is no reflexr store that can be read{of}: it has no {lacks}; a store of an older version is "
        "read once reflexr has upgraded it, or from an export of its envelopes as JSON Lines"
    )

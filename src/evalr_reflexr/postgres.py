"""reflexr's PostgreSQL store, through SQLAlchemy: a read-only transaction, and rows as the server has them ready."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from evalr.errors import InputError, LogError, MissingExtraError
from evalr.logs.log import Log
from evalr.logs.reasons import Reason
from evalr.quoting import safe_text
from evalr_reflexr.envelopes import Envelope, Workspace
from evalr_reflexr.sqlite import COLUMNS, stored_envelope
from evalr_reflexr.stores import Row, TypeFilter, chosen, no_store, row_of, schema_note

if TYPE_CHECKING:
    from sqlalchemy import URL, Connection, Engine

BATCH = 500
TENANT_SETTING = "lattice.tenant_id"
"""The session setting by which row-level security tells tenants apart."""

MESSAGE = 500

_REFLEXIO = (
    "has the tables of Reflexio, which are read from its SQLite file and the answers of its HTTP API alone: fetch the "
    "answers with evalr.reflexio.fetch_sync(url, folder, since=...) and read the folder"
)


class PostgresStore:
    """A store on a server.

    Args:
        address: of the database, such as `postgresql://reader@host/database`; where it names no driver, psycopg.
    """

    def __init__(self, address: str) -> None:
        sqlalchemy = _sqlalchemy()
        try:
            url = sqlalchemy.make_url(address)
        except (sqlalchemy.exc.ArgumentError, ValueError) as error:
            raise InputError("this is no address of a database: write postgresql://user@host/database") from error
        if url.drivername in ("postgresql", "postgres"):
            url = url.set(drivername="postgresql+psycopg")
        self._url: URL = url

    @property
    def path(self) -> str:
        """The address without its password."""
        return self._url.render_as_string(hide_password=True)

    @contextmanager
    def opened(self) -> Iterator[OpenPostgres]:
        """The store in one read-only transaction, which sees the log as it is when it begins."""
        sqlalchemy = _sqlalchemy()
        options = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        try:
            engine: Engine = sqlalchemy.create_engine(
                self._url, poolclass=sqlalchemy.pool.NullPool, execution_options=options
            )
        except ModuleNotFoundError as error:
            raise _missing_extra(error) from error
        try:
            with engine.connect() as connection:
                yield OpenPostgres(self.path, connection)
        except sqlalchemy.exc.DBAPIError as error:
            raise LogError(f"{self.path}: the store cannot be read: {_words(error.orig)}") from error
        finally:
            engine.dispose()


def _words(error: BaseException | None) -> str:
    return safe_text(" ".join(str(error).split()), longest=MESSAGE)


def _sqlalchemy() -> Any:
    try:
        import sqlalchemy
        import sqlalchemy.pool
    except ModuleNotFoundError as error:
        raise _missing_extra(error) from error
    return sqlalchemy


def _missing_extra(error: ModuleNotFoundError) -> Exception:
    if error.name not in ("sqlalchemy", "psycopg", "psycopg2"):
        return error
    return MissingExtraError(f"PostgreSQL needs {error.name}, which is not installed: pip install 'evalr[reflexr]'")


class OpenPostgres:
    """A store on a server, in a transaction."""

    ends: Mapping[Workspace, datetime] = MappingProxyType({})

    def __init__(self, path: str, connection: Connection) -> None:
        self._path, self._connection = path, connection

    def _rows(self, sql: str, **values: Any) -> list[Any]:
        return list(self._connection.execute(_sqlalchemy().text(sql), values))

    def check(self, log: Log) -> None:
        """Raise LogError where its tables are not reflexr's; tell what is to be known of its version."""
        version = None
        if self._rows("SELECT to_regclass('reflexr_alembic_version')")[0][0] is not None:
            found = self._rows("SELECT version_num FROM reflexr_alembic_version")
            version = str(found[0][0]) if found else None
        if self._rows("SELECT to_regclass('reflexr_events')")[0][0] is None:
            if self._rows("SELECT to_regclass('agent_success_evaluation_result')")[0][0] is not None:
                raise LogError(f"{self._path} {_REFLEXIO}")
            raise no_store(self._path, "table reflexr_events", version)
        columns = {
            row[0]
            for row in self._rows(
                "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass('reflexr_events') AND attnum > 0"
            )
        }
        lacks = [column for column in COLUMNS if column not in columns]
        if lacks:
            raise no_store(self._path, f"column {lacks[0]} in reflexr_events", version)
        note = schema_note(version)
        if note is not None:
            log.notes.append(note)

    def _take_tenant(self, tenant: str | None) -> None:
        """Say whose rows are to be read, for the length of the transaction."""
        if tenant is not None:
            self._rows(f"SELECT set_config('{TENANT_SETTING}', :tenant, true)", tenant=tenant)

    def _is_guarded(self) -> bool:
        """Whether row-level security holds for who reads."""
        return bool(self._rows("SELECT row_security_active('reflexr_events')")[0][0])

    def workspaces(self) -> list[Workspace]:
        """Those that have events, as far as they may be seen."""
        rows = self._rows(
            "SELECT DISTINCT tenant_id, workspace_id FROM reflexr_events ORDER BY tenant_id, workspace_id"
        )
        return [Workspace(*row) for row in rows]

    def envelopes(
        self, log: Log, *, tenant: str | None, workspace: str | None, types: TypeFilter
    ) -> Iterator[Envelope]:
        """See `OpenStore`."""
        for each, (seq, text) in self._each(log, tenant, workspace, types):
            try:
                yield stored_envelope(each, seq, text, log)
            except Reason as reason:
                log.records += 1
                log.skip(str(reason), each.place(seq))

    def rows(
        self, log: Log, *, tenant: str | None, workspace: str | None, types: TypeFilter, fields: Sequence[str]
    ) -> Iterator[Row]:
        """See `OpenStore`. The server refuses to look into JSON with a NUL in it, so that it is parsed here."""
        for envelope in self.envelopes(log, tenant=tenant, workspace=workspace, types=types):
            yield row_of(envelope, fields)

    def _each(
        self, log: Log, tenant: str | None, workspace: str | None, types: TypeFilter
    ) -> Iterator[tuple[Workspace, Any]]:
        self._take_tenant(tenant)
        self.check(log)
        if tenant is None and self._is_guarded():
            raise LogError(
                f"{self._path}: row-level security keeps tenants apart in this store: say whose rows to read, with "
                "tenant= in Python or --tenant"
            )
        for each in chosen(self._path, self.workspaces(), tenant=tenant, workspace=workspace):
            of = {"tenant": each.tenant, "name": each.name}
            names = [row[0] for row in self._rows(f"SELECT DISTINCT event_type {_OF_WORKSPACE}", **of)]
            wanted = [name for name in names if types(name)]
            if wanted:
                only, values = ("", {}) if len(wanted) == len(names) else (_ONLY, {"types": wanted})
                statement = _sqlalchemy().text(f"SELECT {_SEQ_AND_TEXT} {_OF_WORKSPACE} {only} ORDER BY seq")
                streamed = self._connection.execution_options(yield_per=BATCH)
                for row in streamed.execute(statement, {**of, **values}):
                    yield each, row


# As text, since a driver would parse it into Python's own, and refuse the whole row where it cannot.
_SEQ_AND_TEXT = "seq, CAST(envelope AS text)"
_ONLY = "AND event_type = ANY(:types)"
_OF_WORKSPACE = "FROM reflexr_events WHERE tenant_id = :tenant AND workspace_id = :name"

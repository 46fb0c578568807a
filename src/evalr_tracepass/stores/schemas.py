"""The tables of a store as statements, for whoever makes them by hand or wants to know what is kept."""

from __future__ import annotations

from typing import Literal

from evalr.errors import InputError, MissingExtraError
from evalr.estimates.words import choice_words
from evalr_tracepass.stores.clickhouse_ddl import clickhouse_ddl

Engine = Literal["sqlite", "postgresql", "clickhouse"]

ENGINES: tuple[Engine, ...] = ("sqlite", "postgresql", "clickhouse")

_HEAD = """\
-- Tables of trace passes in {engine}.
-- No raw text of a trace is stored in any of them: ids, labels, scores and times only. Texts stay where the traces are.
-- What services and classifiers say of an error is masked, but for the words that errors are made of.
-- Every row belongs to an account; results are kept for 365 days{expiry}.
"""


def schema(engine: Engine = "sqlite", *, database: str = "evalr") -> str:
    """The statements that make a store's tables. A store makes them itself where they are missing.

    Args:
        engine: of the store.
        database: of ClickHouse.

    Raises:
        InputError: there is no such engine.
        MissingExtraError: SQLAlchemy is not installed.
    """
    if engine not in ENGINES:
        raise InputError(f"there is no store in {engine!r}; {choice_words(engine, ENGINES)}")
    if engine == "clickhouse":
        statements = [
            f"CREATE DATABASE IF NOT EXISTS {database};",
            *(f"{ddl.rstrip()};" for ddl in clickhouse_ddl(database)),
        ]
        return "\n\n".join([_HEAD.format(engine="ClickHouse", expiry=" (TTL)"), *statements]) + "\n"
    name, expiry = ("SQLite" if engine == "sqlite" else "PostgreSQL"), " by `evalr tracepass prune`"
    return "\n".join([_HEAD.format(engine=name, expiry=expiry), *_statements(engine)])


def _statements(engine: Engine) -> list[str]:
    try:
        import sqlalchemy  # noqa: F401  its parts are looked for when it is there
    except ModuleNotFoundError as error:
        if error.name != "sqlalchemy":
            raise
        raise MissingExtraError(
            "a store of passes needs SQLAlchemy: pip install 'evalr[tracepass]'", name="sqlalchemy"
        ) from error
    from sqlalchemy.dialects import postgresql, sqlite
    from sqlalchemy.schema import CreateIndex, CreateTable

    from evalr_tracepass.stores.tables import metadata

    dialect = sqlite.dialect() if engine == "sqlite" else postgresql.dialect()  # type: ignore[no-untyped-call]
    parts = []
    for table in metadata.sorted_tables:
        notes = [f"-- {table.name}: {table.comment}"] if table.comment else []
        notes += [f"--   {column.name}: {column.comment}" for column in table.columns if column.comment]
        made = str(CreateTable(table).compile(dialect=dialect)).strip()
        indexes = [
            str(CreateIndex(index).compile(dialect=dialect)).strip() + ";"
            for index in sorted(table.indexes, key=lambda index: str(index.name))
        ]
        parts.append("\n".join([*notes, "\n".join(line.rstrip() for line in made.splitlines()) + ";", *indexes]) + "\n")
    return parts

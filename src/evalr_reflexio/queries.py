"""Asking an SQLite database of any release: what a release does not have is NULL, and what has no index gets one."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from operator import itemgetter
from typing import Any

from evalr.logs.sqlite import database_error
from evalr_reflexio.cells import text_of
from evalr_reflexio.ids import Ids
from evalr_reflexio.rows import Columns
from evalr_reflexio.tables import FIELDS, IDENTITY, LEARNING_TABLES, NEEDED, SCORES, STATES

MENDED = "\ufffd"
"""What stands in a text for bytes that are no UTF-8."""

KEYS = 256
"""How many keys are asked for at a time."""

_ROOMS = (1, 16, 64, 128, KEYS)

_BETWEEN = "SELECT {} FROM {} t WHERE t.rowid BETWEEN ? AND ?"

_CLOSE = 1.5
"""Among how many rows for each that is wanted it is faster to read them all than to look up each."""

_PATIENCE = 31
"""How often rows of a table are looked up after they stood apart, before it is asked again whether they do."""


class Queries:
    """A database that is asked.

    Attributes:
        columns: those of each table that it has; a table that is not Reflexio's is not among them.
        mended_texts: those that were no UTF-8, each once, however often it is read.
    """

    def __init__(self, connection: sqlite3.Connection, path: str) -> None:
        self._connection, self._path = connection, path
        self._indexed: dict[tuple[str, str], str] = {}
        self._apart: Counter[str] = Counter()
        self._placed: dict[str, bool] = {}
        self._asks_by_user: bool | None = None
        self._has_blank_users = False
        self.mended_texts = Ids(b"")
        self.columns = self._detect()

    def has(self, table: str, column: str | None = None) -> bool:
        """Whether there is a table, or a column of it."""
        return table in self.columns and (column is None or column in self.columns[table])

    def count(self, table: str) -> int:
        """How many rows a table has; 0 where there is none."""
        return int(next(self.rows(f"SELECT count(*) FROM {table}"))[0]) if table in self.columns else 0

    def _detect(self) -> Columns:
        names = {text_of(row[0]) for row in self.rows("SELECT name FROM sqlite_master WHERE type = 'table'")}
        tables = {*FIELDS, STATES, IDENTITY, SCORES, *(table for table, _ in LEARNING_TABLES.values())}
        found = {
            table: frozenset(text_of(row[1]) for row in self.rows(f"PRAGMA table_info({table})"))
            for table in sorted(tables & names)
        }
        return {table: columns for table, columns in found.items() if columns.issuperset(NEEDED.get(table, ()))}

    def fields(self, table: str, name: str, without: Collection[str] = ()) -> str:
        """What to select of a table that is called `name` in the query, in the order of FIELDS; `without` is NULL."""
        known = self.columns[table].difference(without)
        always = {"rowid": f"{name}.rowid", "outcome_id": f"CAST({name}.rowid AS TEXT)"}
        return ", ".join(f"{name}.{field}" if field in known else always.get(field, "NULL") for field in FIELDS[table])

    def keyed(
        self, table: str, column: str, keys: list[str], *, without: Collection[str] = ()
    ) -> Iterator[list[Sequence[Any]]]:
        """The rows whose column is one of these keys, in no order, some at a time; columns `without` are not read."""
        source = self._indexed.get((table, column)) or self._index(table, column)
        for chunk in chunks(keys):
            clause = f"{source} IN ({marks(chunk)})"
            yield self._rows_of(table, "SELECT", clause, padded(chunk), _key_of(table, column), chunk, without)

    def _rows_of(
        self,
        table: str,
        select: str,
        clause: str,
        given: Sequence[Any],
        key: Callable[[Sequence[Any]], Any],
        keys: Collection[Any],
        without: Collection[str] = (),
    ) -> list[Sequence[Any]]:
        """The rows of some keys: looked up one by one, or read with what is between them where they stand together.

        What is written as time goes by does, and is read in half the time: to look at an index alone takes little.
        """
        if self._apart[table]:
            self._apart[table] -= 1
        elif self._connection.text_factory is str and self._has_places(table):  # or texts between would be mended, too
            place = "x.place" if clause.startswith("FROM temp.") else "t.rowid"
            ((count, first, last),) = self._all(f"{select} count(*), min({place}), max({place}) {clause}", given)
            if not count:
                return []
            if last - first < _CLOSE * count:
                fields = self.fields(table, "t", without)
                with suppress(sqlite3.Error):  # which may be of a row between
                    rows = self._connection.execute(_BETWEEN.format(fields, table), (first, last)).fetchall()
                    if len(rows) > count:
                        wanted = set(keys)
                        rows = [row for row in rows if key(row) in wanted]
                    if len(rows) == count:  # or else the database does not tell keys apart as Python does
                        return rows
            self._apart[table] = _PATIENCE
        return self._all(f"{select} {self.fields(table, 't', without)} {clause}", given)

    def between(self, table: str, first: int, last: int) -> list[Sequence[Any]]:
        """The rows from one place of a table to another, as `rowid` counts them."""
        return self._all(_BETWEEN.format(self.fields(table, "t"), table), (first, last))

    def _has_places(self, table: str) -> bool:
        """Whether a table's rows stand in places, which those of a table WITHOUT ROWID do not."""
        if table not in self._placed:
            try:
                self._connection.execute(f"SELECT rowid FROM {table} LIMIT 0")
                self._placed[table] = True
            except sqlite3.OperationalError:
                self._placed[table] = False
        return self._placed[table]

    def alike(self, table: str, place: int, columns: Sequence[str]) -> list[Sequence[Any]]:
        """The rows that have in some columns what the row at a place has there, which may be no text."""
        source = self._indexed.get((table, columns[0])) or self._index(table, columns[0])
        same = [f"(SELECT {column} FROM {table} WHERE rowid = ?)" for column in columns]
        more = "".join(
            f" AND coalesce(t.{column}, '') = coalesce({value}, '')"
            for column, value in zip(columns[1:], same[1:], strict=True)
        )
        return self._all(f"SELECT {self.fields(table, 't')} {source} = {same[0]}{more}", [place] * len(columns))

    def _all(self, query: str, given: Sequence[Any]) -> list[Sequence[Any]]:
        """All rows of a query at once."""
        try:
            return self._connection.execute(query, given).fetchall()
        except sqlite3.Error:
            return list(self.rows(query, given))  # which says what is wrong, or mends it

    def of_keys(self, table: str, keys: list[tuple[str, str]], sessions: list[str]) -> Iterator[list[Sequence[Any]]]:
        """As `keyed` by session id, for a table whose own index begins with the user, as that of outcomes does."""
        if self._asks_by_user is None:
            indexes = self._indexes(table)
            by_user = any(columns[:2] == ["user_id", "session_id"] for columns in indexes)
            self._asks_by_user = by_user and not any(columns[:1] == ["session_id"] for columns in indexes)
            blank = self._asks_by_user and next(self.rows(f"SELECT 1 FROM {table} WHERE user_id = '' LIMIT 1"), None)
            self._has_blank_users = blank is not None
        if not self._asks_by_user:
            yield from self.keyed(table, "session_id", sessions)
            return
        asked = [*keys, *(("", session) for session in sessions)] if self._has_blank_users else keys
        asked = list(dict.fromkeys(asked))
        for start in range(0, len(asked), KEYS):
            chunk = asked[start : start + KEYS]
            select = f"WITH k(u, s) AS (VALUES {','.join(['(?, ?)'] * len(chunk))}) SELECT"
            clause = f"FROM k CROSS JOIN {table} t ON t.user_id = k.u AND t.session_id = k.s"
            given = list(chain.from_iterable(chunk))
            yield self._rows_of(table, select, clause, given, _key_of(table, "user_id", "session_id"), chunk)

    def _indexes(self, table: str) -> list[list[str]]:
        """The columns of each of a table's indexes; of those that hold only some rows, none."""
        names = [text_of(row[1]) for row in self.rows(f"PRAGMA index_list({table})") if not row[4]]
        return [[text_of(info[2]) for info in self.rows(f"PRAGMA index_info({_named(name)})")] for name in names]

    def _index(self, table: str, column: str) -> str:
        """How a table is asked by a column: by its own index, or else by one in SQLite's temporary database."""
        if any(columns[:1] == [column] for columns in self._indexes(table)):
            source = f"FROM {table} t WHERE t.{column}"
        else:
            index = f"evalr_{table}_{column}"
            try:
                self._connection.execute(
                    f"CREATE TEMP TABLE {index} AS SELECT {column} AS key, rowid AS place FROM {table}"
                )
                self._connection.execute(f"CREATE INDEX temp.{index}_keys ON {index} (key)")
            except sqlite3.Error as error:
                raise database_error(self._path, error) from error
            source = f"FROM temp.{index} x CROSS JOIN {table} t ON t.rowid = x.place WHERE x.key"
        self._indexed[table, column] = source
        return source

    def by(self, table: str, column: str, value: str, name: str) -> str:
        """A table called `name` in a FROM, of whose rows those are wanted that have `value` in a column.

        Its own index serves, or else one in SQLite's temporary database. A CROSS JOIN keeps it in its place.
        """
        source = self._indexed.get((table, column)) or self._index(table, column)
        if source.startswith("FROM temp."):
            index = f"evalr_{table}_{column}"
            on = f"{name}x.key = {value} AND {name}.rowid = {name}x.place"
            return f"temp.{index} {name}x CROSS JOIN {table} {name} ON {on}"
        return f"{table} {name} ON {name}.{column} = {value}"

    def temporary(self, name: str, columns: str, *, key: str | None = None, anew: bool = False) -> bool:
        """Have a table in SQLite's temporary database, `anew` without what was in it. Returns whether it was made."""
        if anew:
            self.change(f"DROP TABLE IF EXISTS temp.{name}")
        elif next(self.rows("SELECT 1 FROM temp.sqlite_master WHERE name = ?", [name]), None) is not None:
            return False
        keyed = "" if key is None else f", PRIMARY KEY ({key})"
        self.change(f"CREATE TEMP TABLE {name} ({columns}{keyed}){'' if key is None else ' WITHOUT ROWID'}")
        return True

    def change(self, statement: str, given: Sequence[Any] = ()) -> None:
        """Change SQLite's temporary database; the log itself is open for reading alone."""
        try:
            self._connection.execute(statement, given)
        except sqlite3.Error as error:
            raise database_error(self._path, error) from error

    def change_many(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """The same, once for each row."""
        try:
            self._connection.executemany(statement, rows)
        except sqlite3.Error as error:
            raise database_error(self._path, error) from error

    def rows(self, query: str, given: Sequence[Any] = ()) -> Iterator[Sequence[Any]]:
        """The rows of a query. From the first text on that is no UTF-8, texts are mended, and those counted."""
        count = 0
        try:
            for row in self._connection.execute(query, given):
                count += 1
                yield row
        except sqlite3.Error as error:
            if "decode" not in str(error) or self._connection.text_factory is not str:
                raise database_error(self._path, error) from error
        else:
            return
        self._connection.text_factory = self._mended
        try:
            for number, row in enumerate(self._connection.execute(query, given)):
                if number >= count:
                    yield row
        except sqlite3.Error as error:
            raise database_error(self._path, error) from error

    def _mended(self, stored: bytes) -> str:
        try:
            return stored.decode()
        except UnicodeDecodeError:
            self.mended_texts.add(stored)
            return stored.decode("utf-8", "replace")


def _key_of(table: str, *columns: str) -> Callable[[Sequence[Any]], Any]:
    return itemgetter(*map(FIELDS[table].index, columns))


def _named(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def chunks(keys: list[str]) -> Iterator[list[str]]:
    """Keys, as many as are asked for at a time."""
    for start in range(0, len(keys), KEYS):
        yield keys[start : start + KEYS]


def marks(chunk: list[str]) -> str:
    """Few different texts of queries, which SQLite then need not read anew: places that are left over hold NULL."""
    return ",".join("?" * _room(len(chunk)))


def padded(chunk: list[str]) -> list[str | None]:
    """The values for `marks`."""
    return [*chunk, *[None] * (_room(len(chunk)) - len(chunk))]


def _room(count: int) -> int:
    return next(room for room in _ROOMS if count <= room)

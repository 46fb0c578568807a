"""Inputs that wait to be judged, each subject once: in memory, or in a file that outlives the process.

Either way they are rows of SQLite. In memory the inputs themselves stay the objects that they are.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import threading
from collections import deque
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Literal, NamedTuple
from uuid import uuid4

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from evalr.errors import InputError, JournalError, SpoolError
from evalr.inputs import Input
from evalr.quoting import safe_text
from evalr.runs.forking import quiet_at_forks
from evalr.runs.locks import LivenessLock, is_held, remove_dead
from evalr.runs.opening import is_busy, once_free

SCHEMA = 1
APPLICATION = 0x65766C73  # "evls"
PATIENCE = 10.0
"""Seconds to wait for another process that is writing. Each writes for less than a millisecond."""

QUICK = 0.05
"""Seconds that `put` waits for it, whose caller must not stand still."""

AT_A_TIME = 0.02
"""Seconds of one try, during which nothing else in this process can be done with the file; and between two tries."""

REMEMBERED = 100_000
"""How many of the subjects that were judged last are known, for when one of them is read again."""

Put = Literal["added", "replaced", "unchanged", "outdated", "full", "held"]
"""What became of a reading of an input. It is outdated where a reading that is there goes on for longer.

It is held where the file could not be written just now: it is in memory, until `put_held` puts it into the file.
"""

_TABLES = """
CREATE TABLE waiting (
    number INTEGER PRIMARY KEY AUTOINCREMENT, key BLOB, kind TEXT NOT NULL, input TEXT, content BLOB NOT NULL,
    last INTEGER, ready INTEGER NOT NULL, names TEXT, looks INTEGER NOT NULL DEFAULT 0, owner TEXT
);
CREATE UNIQUE INDEX waiting_once ON waiting (key) WHERE owner IS NULL;
CREATE INDEX waiting_ready ON waiting (ready, number) WHERE owner IS NULL;
CREATE INDEX waiting_owned ON waiting (key) WHERE owner IS NOT NULL;
CREATE TABLE judged (key BLOB PRIMARY KEY, content BLOB NOT NULL, last INTEGER, number INTEGER NOT NULL);
CREATE INDEX judged_number ON judged (number);
"""

_FREE = "owner IS NULL AND NOT EXISTS (SELECT 1 FROM waiting w WHERE w.key = waiting.key AND w.owner IS NOT NULL)"


class _BusyError(SpoolError):
    """Another process, or thread, kept on writing."""


class Reading(NamedTuple):
    """An input as it was read at one time.

    Attributes:
        given: the input.
        key: stands for its subject; None where it has no id, and could not be told from another one like it.
        content: its hash.
        last: when the last thing in it happened.
        ready: when it is to be judged.
    """

    given: Input
    key: bytes | None
    content: bytes
    last: datetime | None
    ready: datetime


class Entry(NamedTuple):
    """A reading that was taken to be judged.

    Attributes:
        number: tells it from every other one.
        given: the input.
        key: as in the reading.
        supersedes: whether an earlier reading of the subject, or this one, has been judged before.
        names: the evaluators that are to be asked, as `name@version`; None for all.
        looks: how often it has been judged, and it was too soon to tell.
    """

    number: int
    given: Input
    key: bytes | None
    supersedes: bool
    names: frozenset[str] | None
    looks: int


class Waiting:
    """Where inputs wait. Its methods may be called in any thread.

    Several processes may share a file: each input is in the work of one of them, and what a process had in work when it
    died is there for the others.

    Args:
        path: of the file, which is made where there is none; None to wait in memory.

    Raises:
        SpoolError: the file cannot be used.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self.path = None if path is None else Path(os.path.abspath(path))  # noqa: PTH100  a link stays a link
        self.unreadable = 0
        """Inputs in the file that cannot be read back, and stay there."""
        self._lock = threading.RLock()
        self._objects: dict[int, Input] = {}
        self._held: deque[tuple[Reading, str]] = deque()
        self._putting = threading.Lock()
        self._owner = uuid4().hex
        self._alive: LivenessLock | None = None
        quiet_at_forks(self._lock)
        with self._told("opened"), self._lock:
            self._connection = sqlite3.connect(
                ":memory:" if self.path is None else self.path,
                timeout=PATIENCE,
                isolation_level=None,
                check_same_thread=False,
            )
            try:
                once_free(self._prepare, PATIENCE)
            except BaseException:
                self._connection.close()
                raise
        if self.path is not None:
            try:
                self._alive = LivenessLock(self._lock_path(self._owner))
            except JournalError as error:
                self._connection.close()
                raise SpoolError(str(error)) from error
            self.take_over()
            remove_dead(self._alive.path.parent)
            with self._told("opened"), self._lock:
                self._connection.execute(f"PRAGMA busy_timeout = {1000 * AT_A_TIME:.0f}")

    def put(self, reading: Reading, *, most: int | None = None) -> Put:
        """Let a reading wait. It takes the place of one of its subject that waits already, unless that one is later.

        It is back at once: where a file cannot be written just now, the reading is held, and so is what comes after it.

        Args:
            reading: what is to be judged.
            most: how many there may be in memory, those in work included.

        Raises:
            InputError: it cannot be written to the file.
            SpoolError: the file cannot be written.
        """
        if self.path is None:
            return self._put(reading, None, most, PATIENCE)
        text = _text_of(reading.given)
        if not self._held:  # else an earlier reading would come after it
            with contextlib.suppress(_BusyError):
                return self._put(reading, text, None, QUICK)
        if most is not None and len(self._held) >= most:
            return "full"
        self._held.append((reading, text))
        return "held"

    def put_held(self, patience: float = PATIENCE) -> Put | None:
        """Put the first of those that are held into the file, and say what became of it; None where none is held.

        Raises:
            SpoolError: the file cannot be written. It is still held.
        """
        if not self._putting.acquire(timeout=patience):
            raise self._busy(patience)
        try:
            if not self._held:
                return None
            reading, text = self._held[0]
            put = self._put(reading, text, None, patience)
            self._held.popleft()
            return put
        finally:
            self._putting.release()

    @property
    def held(self) -> int:
        """How many are held."""
        return len(self._held)

    def _put(self, reading: Reading, text: str | None, most: int | None, patience: float) -> Put:
        with self._writing(patience) as write:
            waits, known = self._known(write, reading)
            if known is not None:
                content, last = known
                if content == reading.content:
                    if waits is not None:  # it may have come to its end in the meantime
                        sooner = "UPDATE waiting SET ready = min(ready, ?) WHERE number = ? AND looks = 0"
                        write(sooner, (_us(reading.ready), waits))
                    return "unchanged"
                if last is not None and reading.last is not None and _us(reading.last) < last:
                    return "outdated"
            if waits is None and most is not None and len(self._objects) >= most:
                return "full"
            if waits is not None:
                write("DELETE FROM waiting WHERE number = ?", (waits,))
                self._objects.pop(waits, None)
            number = write(
                "INSERT INTO waiting (key, kind, input, content, last, ready) VALUES (?, ?, ?, ?, ?, ?)",
                (
                    reading.key,
                    _name_of(type(reading.given)),
                    text,
                    reading.content,
                    None if reading.last is None else _us(reading.last),
                    _us(reading.ready),
                ),
            ).lastrowid
            if text is None:
                self._objects[number] = reading.given
            return "added" if waits is None else "replaced"

    def take(self, now: datetime | None, most: int) -> list[Entry]:
        """Those that are ready, longest first, and no two of one subject; they are in work until `done`.

        Args:
            now: what is ready by then; None for all, but those that were too soon to tell.
            most: how many at most.
        """
        until = "looks = 0" if now is None else f"ready <= {_us(now)}"
        with self._told("read"), self._lock:
            # Looked at first, since a look must not keep other processes from writing.
            if not self._connection.execute(f"SELECT 1 FROM waiting WHERE {until} AND {_FREE} LIMIT 1").fetchone():
                return []
        found = []
        with self._writing() as write:
            rows = write(
                "SELECT number, key, kind, input, names, looks, "
                "key IS NOT NULL AND EXISTS (SELECT 1 FROM judged j WHERE j.key = waiting.key) "
                f"FROM waiting WHERE {until} AND {_FREE} ORDER BY ready, number LIMIT ?",
                (most,),
            ).fetchall()
            for number, key, kind, text, names, looks, supersedes in rows:
                write("UPDATE waiting SET owner = ? WHERE number = ?", (self._owner, number))
                given = self._objects[number] if text is None else _read_back(kind, text)
                if given is None:
                    self.unreadable += 1
                    continue
                asked = None if names is None else frozenset(json.loads(names))
                found.append(Entry(number, given, key, bool(supersedes), asked, looks))
        return found

    def give_back(
        self, entry: Entry, ready: datetime, names: Collection[str] | None = None, *, judged: bool = False
    ) -> bool:
        """Let one wait again, unless a later reading of its subject does already.

        Args:
            entry: what was taken.
            ready: when it is to be judged.
            names: the evaluators that are to be asked then; None for those that were to be asked now.
            judged: whether it has been judged, and it was too soon to tell.

        Returns:
            Whether it does.
        """
        asked = entry.names if names is None else names
        with self._writing() as write:
            if judged:
                self._remember(write, entry.number)
            spelled = None if asked is None else json.dumps(sorted(asked))
            return self._release(write, entry.number, _us(ready), spelled, looked=judged)

    def done(self, entries: Collection[Entry]) -> None:
        """They have been judged, and all who are to know of it do."""
        with self._writing() as write:
            for entry in entries:
                self._remember(write, entry.number)
                write("DELETE FROM waiting WHERE number = ?", (entry.number,))
                self._objects.pop(entry.number, None)

    def next_ready(self, *, fresh: bool = False) -> datetime | None:
        """When the next one is ready; None where none waits that can be taken.

        With `fresh`, those that were too soon to tell do not count.
        """
        which = f"looks = 0 AND {_FREE}" if fresh else _FREE
        with self._told("read"), self._lock:
            row = self._connection.execute(
                f"SELECT ready FROM waiting WHERE {which} ORDER BY ready, number LIMIT 1"
            ).fetchone()
        return None if row is None else _EPOCH + timedelta(microseconds=row[0])

    def count(self) -> int:
        """How many wait, without those in work."""
        with self._told("read"), self._lock:
            return self._count(self._connection.execute, "owner IS NULL")

    def take_over(self) -> None:
        """Let what dead processes had in work wait again."""
        if self.path is None:
            return
        with self._told("read"), self._lock:
            query = "SELECT DISTINCT owner FROM waiting WHERE owner IS NOT NULL AND owner <> ?"
            owners = [owner for (owner,) in self._connection.execute(query, (self._owner,))]
        for owner in owners:
            try:
                alive = is_held(self._lock_path(owner))
            except JournalError as error:
                raise SpoolError(str(error)) from error
            if not alive:
                self._let_go(owner)
                self._lock_path(owner).unlink(missing_ok=True)

    def close(self) -> None:
        """End. What a file holds waits for whoever opens it next."""
        if self._alive is not None:
            with contextlib.suppress(SpoolError):  # it is taken over from the dead
                self._let_go(self._owner, QUICK)
            self._alive.release()
            self._alive = None
        with self._lock:
            self._connection.close()

    # -- rows ---------------------------------------------------------------------------------------------------------

    def _known(self, write: Any, reading: Reading) -> tuple[int | None, tuple[bytes, int | None] | None]:
        """The number of the subject's reading that waits, and content and last event of the latest one there is."""
        if reading.key is None:
            return None, None
        row = write("SELECT number, content, last FROM waiting WHERE key = ? AND owner IS NULL", (reading.key,))
        if (waits := row.fetchone()) is not None:
            return waits[0], waits[1:]
        row = write("SELECT content, last FROM waiting WHERE key = ? AND owner IS NOT NULL", (reading.key,))
        if (in_work := row.fetchone()) is not None:
            return None, in_work
        return None, write("SELECT content, last FROM judged WHERE key = ?", (reading.key,)).fetchone()

    def _count(self, write: Any, where: str) -> int:
        count: int = write(f"SELECT count(*) FROM waiting WHERE {where}").fetchone()[0]
        return count

    def _remember(self, write: Any, number: int) -> None:
        last = write("SELECT coalesce(max(number), 0) FROM judged").fetchone()[0] + 1
        write(
            "INSERT OR REPLACE INTO judged (key, content, last, number) "
            "SELECT key, content, last, ? FROM waiting WHERE number = ? AND key IS NOT NULL",
            (last, number),
        )
        write("DELETE FROM judged WHERE number <= ?", (last - REMEMBERED,))

    def _release(self, write: Any, number: int, ready: int | None, names: str | None, *, looked: bool) -> bool:
        newer = "SELECT 1 FROM waiting o, waiting n WHERE o.number = ? AND n.key = o.key AND n.owner IS NULL"
        if write(newer, (number,)).fetchone():
            write("DELETE FROM waiting WHERE number = ?", (number,))
            self._objects.pop(number, None)
            return False
        write(
            "UPDATE waiting SET owner = NULL, ready = coalesce(?, ready), names = ?, looks = looks + ? "
            "WHERE number = ?",
            (ready, names, looked, number),
        )
        return True

    def _let_go(self, owner: str, patience: float = PATIENCE) -> None:
        with self._writing(patience) as write:
            for number, names in write("SELECT number, names FROM waiting WHERE owner = ?", (owner,)).fetchall():
                # Whether a sink has its results, nobody knows: what comes now takes their place if it has.
                self._remember(write, number)
                self._release(write, number, None, names, looked=False)

    # -- the file -----------------------------------------------------------------------------------------------------

    def _lock_path(self, owner: str) -> Path:
        assert self.path is not None
        return self.path.with_name(self.path.name + "-locks") / owner

    def _prepare(self) -> None:
        execute = self._connection.execute
        if self.path is not None:
            if execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                self._check_kind()
            if execute("PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
                raise SpoolError(f"{self.path}: SQLite cannot share files between processes there; use a local disk")
            execute("PRAGMA synchronous = NORMAL")
        with self._writing() as write:
            # Another process may have made them in the meantime.
            if not write("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                for statement in _TABLES.split(";"):
                    write(statement)
                write(f"PRAGMA application_id = {APPLICATION}")
                write(f"PRAGMA user_version = {SCHEMA}")
        self._check_kind()

    def _check_kind(self) -> None:
        if self._connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
            raise SpoolError(f"{self.path}: another program's database; name a file of its own for the spool")
        version = self._connection.execute("PRAGMA user_version").fetchone()[0]
        if version != SCHEMA:
            raise SpoolError(
                f"{self.path}: a spool of schema version {version}, and this evalr reads version {SCHEMA}; use the "
                "evalr that wrote it, or name another file"
            )

    @contextmanager
    def _writing(self, patience: float = PATIENCE) -> Iterator[Any]:
        with self._told("written"):
            self._begin(patience)
            connection = self._connection
            try:
                yield connection.execute
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            finally:
                self._lock.release()

    def _begin(self, patience: float) -> None:
        """Begin to write, holding the lock; other threads have their turn while another process writes."""
        until = monotonic() + patience
        while self._lock.acquire(timeout=max(0.0, until - monotonic())):
            try:
                self._connection.execute("BEGIN IMMEDIATE")
            except sqlite3.Error as error:
                self._lock.release()
                if not is_busy(error):
                    raise
            except BaseException:
                self._lock.release()
                raise
            else:
                return
            sleep(min(AT_A_TIME, max(0.0, until - monotonic())))
            if monotonic() >= until:
                break
        raise self._busy(patience)

    def _busy(self, patience: float) -> SpoolError:
        what = f"the spool cannot be written: another process kept it locked for over {patience:g} s"
        return _BusyError(f"{self.path}: {what}")

    @contextmanager
    def _told(self, what: str) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            named = "inputs that wait in memory" if self.path is None else f"{self.path}: the spool"
            raise SpoolError(f"{named} cannot be {what}: {error}") from error


# ---------------------------------------------------------------------------------------------------------------------
# Inputs as text
# ---------------------------------------------------------------------------------------------------------------------

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _us(time: datetime) -> int:
    return (time - _EPOCH) // timedelta(microseconds=1)


def _name_of(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _text_of(given: Input) -> str:
    try:
        return given.model_dump_json()
    except (PydanticSerializationError, ValueError) as error:
        named = safe_text(type(given).__name__)
        raise InputError(f"a {named} cannot be written to a spool: {safe_text(str(error))}") from error


def _read_back(name: str, text: str) -> Input | None:
    """The input that a text stands for; None where its class is not defined here, or does not take it."""
    found: list[type[Input]] = [Input]
    for kind in found:
        found += kind.__subclasses__()
    for kind in reversed(found):  # the newest, where one was replaced
        if _name_of(kind) == name:
            try:
                return kind.model_validate_json(text)
            except ValidationError:
                return None
    return None

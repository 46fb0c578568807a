"""The journal of runs: what was asked, what came of it, and who is at work, in one SQLite file.

Calls and outcomes are only ever added. A call is written before it is made, its outcome when it is back; so a call
without an outcome, of a run that is no longer alive, is one in doubt. What is done is read off the outcomes, over all
the runs there were. Claims are the one thing that is taken away again: they say who is at work on an item right now.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple, Self

from evalr.errors import InputError, JournalError
from evalr.estimates.shown import Printed
from evalr.estimates.words import count_words
from evalr.evaluators import Evaluator
from evalr.inputs import Clock, utc_now
from evalr.runs.account import cost_words
from evalr.runs.forking import quiet_at_forks
from evalr.runs.keys import Key
from evalr.runs.lines import from_text
from evalr.runs.locks import LivenessLock, is_held, remove_dead
from evalr.runs.opening import once_free
from evalr.verdicts import Result

SCHEMA = 1
APPLICATION = 0x6576616C  # "eval"
PATIENCE = 30.0
"""Seconds to wait for another process that is writing. Each writes for milliseconds."""

Settled = Literal[0, 1, 2]
"""Of an outcome: 2, the item is done; 1, it has an answer for now (failed, pending); 0, it has none."""

_TABLES = """
CREATE TABLE runs (
    run INTEGER PRIMARY KEY AUTOINCREMENT, begun TEXT NOT NULL, process INTEGER NOT NULL
);
CREATE TABLE items (
    item INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE,
    kind TEXT NOT NULL, user TEXT, session TEXT, id TEXT,
    evaluator TEXT NOT NULL, version TEXT NOT NULL, input BLOB NOT NULL, repeat INTEGER NOT NULL, as_of TEXT
);
CREATE TABLE calls (
    call INTEGER PRIMARY KEY AUTOINCREMENT, item INTEGER NOT NULL REFERENCES items,
    run INTEGER NOT NULL REFERENCES runs, at TEXT NOT NULL
);
CREATE INDEX calls_of_item ON calls (item);
CREATE TABLE outcomes (
    call INTEGER PRIMARY KEY REFERENCES calls, item INTEGER NOT NULL REFERENCES items,
    status TEXT NOT NULL, settled INTEGER NOT NULL, cost REAL, line TEXT
);
CREATE INDEX outcomes_of_item ON outcomes (item, call, settled);
CREATE TABLE claims (item INTEGER PRIMARY KEY REFERENCES items, run INTEGER NOT NULL REFERENCES runs);
"""

# Made by the first run that has something to say, so that an evalr which knows no notes reads the same schema.
_NOTES = (
    "CREATE TABLE IF NOT EXISTS notes (run INTEGER PRIMARY KEY REFERENCES runs, name TEXT NOT NULL, text TEXT NOT NULL)"
)

_APPEND_ONLY = "".join(
    f"CREATE TRIGGER {table}_{what} BEFORE {what} ON {table} "
    f"BEGIN SELECT RAISE(ABORT, '{table} are only ever added to'); END;"
    for table in ("runs", "items", "calls", "outcomes")
    for what in ("UPDATE", "DELETE")
)

_LATEST = """
    SELECT {columns} FROM items i JOIN outcomes o ON o.call = (
        SELECT call FROM outcomes WHERE item = i.item AND settled > 0 ORDER BY call DESC LIMIT 1
    ) WHERE {where}
"""


class Found(NamedTuple):
    """The latest answer to a question. `call` is its number among all calls; later ones have higher numbers."""

    call: int
    status: str
    settled: Settled
    line: str
    at: str

    @property
    def asked_at(self) -> datetime:
        """When the call was made."""
        return datetime.fromisoformat(self.at)


class Begun(NamedTuple):
    """A call that may be made now. `doubted` calls of this item were in flight when the run that made them died."""

    call: int
    item: int
    doubted: int


class Elsewhere(NamedTuple):
    """Another run that is alive is at work on the item: `call` is the number of its latest call."""

    call: int


class Note(NamedTuple):
    """What a run says of itself: `text` is the last that it said, `is_alive` whether it may say more."""

    run: int
    name: str
    text: str
    is_alive: bool


class Spent(NamedTuple):
    """What some runs have spent: `cost` in US dollars is that of the calls whose cost is known."""

    calls: int
    cost: float
    unknown_costs: int


class Outcome(NamedTuple):
    """What came of one call. `status` is a result's, or retried, cancelled, unbegun (never made) or in_doubt."""

    call: int
    item: int
    status: str
    settled: Settled
    cost: float | None = None
    line: str | None = None


@dataclass(frozen=True, slots=True)
class Totals(Printed):
    """What a journal holds, over all runs.

    Attributes:
        items: the latest answer of each item, counted by status: verdict, pending, skipped, handed_off, failed.
        calls: how often evaluators were asked, also again; one that makes several calls for an input was asked once.
        in_doubt: those that were in flight when their run died.
        cost: US dollars of all calls whose cost is known.
        unknown_costs: calls whose cost is not.
    """

    items: dict[str, int]
    calls: int
    in_doubt: int
    cost: float
    unknown_costs: int

    def __str__(self) -> str:
        words = {"verdict": "with a verdict", "handed_off": "handed off"}
        named = ", ".join(f"{count:,} {words.get(status, status)}" for status, count in self.items.items())
        items = count_words(sum(self.items.values()), "item") + (f": {named}" if named else "")
        doubts = f", {self.in_doubt:,} in doubt" if self.in_doubt else ""
        cost = cost_words(self.cost, self.unknown_costs, self.calls)
        return f"{items} · {count_words(self.calls, 'call')}{doubts} · {cost}"


class Journal:
    """A file that runs write what they do into, so that the next run does only what remains.

    It holds results and hashes, never inputs. Any number of runs may share it, in one process or in several on one
    machine. Beside it there are SQLite's own files (`-wal`, `-shm`) while it is open, and a folder of locks (`-locks`)
    while runs are alive.

    Args:
        path: of the file, which is made where there is none.
        synchronous: "full" waits until the disk has each result, so that even a power cut loses none that was
            acknowledged; with "normal" a power cut may lose the last seconds, and a killed process still nothing.

    Raises:
        JournalError: it cannot be opened: another program's file, a damaged one, one of another schema version, one
            that cannot be written, or one on a file system without what several processes need.
    """

    def __init__(self, path: str | os.PathLike[str], *, synchronous: Literal["full", "normal"] = "full") -> None:
        if synchronous not in ("full", "normal"):
            raise InputError(f"synchronous={synchronous!r} must be 'full' or 'normal'")
        # Whole, since the process may change its folder while runs are alive.
        self.path = Path(os.path.abspath(path))  # noqa: PTH100  a link stays a link
        self._lock = threading.RLock()
        self._reader_lock = threading.Lock()
        quiet_at_forks(self._lock, self._reader_lock)
        self._process = os.getpid()
        self._alive: dict[int, LivenessLock] = {}
        self._full = synchronous == "full"
        self._waits_for_disk: bool | None = None
        with self._told("opened"):
            self._connection = self._connected()
            try:
                once_free(self._prepare, PATIENCE)
                # What reads has a connection of its own, which never waits for what is written at the same time.
                self._reader = self._connected()
            except BaseException:
                self._connection.close()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Journal({str(self.path)!r})"

    def close(self) -> None:
        """Close the file. What runs have written is in it, whether or not it is closed."""
        with self._lock:
            if os.getpid() == self._process:
                self._reader.close()
                self._connection.close()

    def totals(self) -> Totals:
        """What it holds, over all the runs there were."""
        with self._reading() as read:
            latest = _LATEST.format(columns="o.status AS status, o.settled AS settled", where="1")
            named = "CASE WHEN status = 'verdict' AND settled = 1 THEN 'pending' ELSE status END"
            items = dict(read(f"SELECT {named}, count(*) FROM ({latest}) GROUP BY 1 ORDER BY 1"))
            made = read("SELECT count(*), coalesce(sum(cost), 0), count(*) - count(cost) FROM outcomes "
                        "WHERE status <> 'unbegun'").fetchone()  # fmt: skip
            known_doubts = read("SELECT count(*) FROM outcomes WHERE status = 'in_doubt'").fetchone()[0]
            open_calls = read(
                "SELECT c.run, count(*) FROM claims k JOIN calls c ON c.item = k.item "
                "LEFT JOIN outcomes o ON o.call = c.call WHERE o.call IS NULL GROUP BY c.run"
            ).fetchall()
        doubts = sum(count for run, count in open_calls if not self._is_alive(run))
        calls, cost, unknown = made
        in_flight = sum(count for _, count in open_calls)
        return Totals(items, calls + in_flight, known_doubts + doubts, cost, unknown + in_flight)

    def results(self, evaluator: Evaluator[Any, Any]) -> Iterator[Result[Any]]:
        """The latest result of each item that the evaluator has one for, in the order in which they were first asked.

        Those of other versions of it are not among them. Where a reading time matters, every reading is.
        """
        own = (evaluator.name, evaluator.version)
        with self._reading() as read:
            most = read("SELECT max(repeat) FROM items WHERE evaluator = ? AND version = ?", own).fetchone()[0]
        where = "i.item > ? AND i.evaluator = ? AND i.version = ?"
        query = _LATEST.format(columns="i.item, o.line, i.repeat", where=where) + " ORDER BY i.item LIMIT 1000"
        last = 0
        while True:
            with self._reading() as read:
                rows = read(query, (last, *own)).fetchall()
            if not rows:
                return
            last = rows[-1][0]
            for _, line, repeat in rows:
                yield from_text(line, evaluator.verdict_type, repeat if most > 1 else None)

    # -- what runs call -----------------------------------------------------------------------------------------------

    def begin_run(self) -> tuple[int, int]:
        """A new run's number, and that of the last call before it.

        The run is alive until `end_run`, or until its process dies.
        """
        with self._writing() as write:
            begun = datetime.now(UTC).isoformat()
            run = write("INSERT INTO runs (begun, process) VALUES (?, ?)", (begun, os.getpid())).lastrowid
            last = write("SELECT coalesce(max(call), 0) FROM calls").fetchone()[0]
        assert run is not None
        # Before the run claims anything: a claim of a run without a lock is one of a dead run.
        lock = self._alive[run] = LivenessLock(self._lock_path(run))
        remove_dead(lock.path.parent)
        return run, last

    def end_run(self, run: int, made: Iterable[int] = ()) -> None:
        """Give back what the run has claimed; it is no longer alive."""
        lock = self._alive.pop(run, None)
        try:
            self.give_back(run, made)
        finally:
            if lock is not None:
                lock.release()

    def give_back(self, run: int, made: Iterable[int] = ()) -> None:
        """Give back what the run has claimed.

        Of its calls without an outcome, those in `made` were cancelled, and the others never begun.
        """
        with self._writing() as write:
            rows = write(
                "SELECT c.call, c.item FROM claims k JOIN calls c ON c.item = k.item AND c.run = k.run "
                "LEFT JOIN outcomes o ON o.call = c.call WHERE k.run = ? AND o.call IS NULL",
                (run,),
            ).fetchall()
            cancelled = set(made)
            for call, item in rows:
                _add(write, Outcome(call, item, "cancelled" if call in cancelled else "unbegun", 0))
            write("DELETE FROM claims WHERE run = ?", (run,))

    def note(self, run: int, name: str, text: str, *, durable: bool = False) -> None:
        """Write what the run says of itself, for other processes to read, in place of what it said before."""
        with self._writing(durable=durable) as write:
            write(_NOTES)
            write("INSERT OR REPLACE INTO notes (run, name, text) VALUES (?, ?, ?)", (run, name, text))

    def notes(self, name: str | None = None) -> list[Note]:
        """What runs said of themselves under a name, or under any; the latest run comes last."""
        where, named = ("", ()) if name is None else ("WHERE name = ?", (name,))
        with self._reading() as read:
            if not read("SELECT count(*) FROM sqlite_master WHERE name = 'notes'").fetchone()[0]:
                return []
            runs = read(f"SELECT run FROM notes {where} ORDER BY run", named).fetchall()
        alive = {run: self._is_alive(run) for (run,) in runs}
        # Only now, so that the last word of a run that is not alive is read: it comes before its end.
        with self._reading() as read:
            rows = read(f"SELECT run, name, text FROM notes {where} ORDER BY run", named).fetchall()
        return [Note(run, own, text, alive.get(run, True)) for run, own, text in rows]

    def spent(self, runs: Iterable[int], *, since: int = 0) -> Spent:
        """What runs have spent, of which `since` is the number of the last call before them all."""
        own = list(runs)
        with self._reading() as read:
            calls, cost, unknown = read(
                "SELECT count(*), coalesce(sum(o.cost), 0), count(*) - count(o.cost) "
                "FROM calls c LEFT JOIN outcomes o ON o.call = c.call "
                f"WHERE c.call > ? AND c.run IN ({','.join('?' * len(own))}) AND coalesce(o.status, '') <> 'unbegun'",
                (since, *own),
            ).fetchone()
        return Spent(calls, cost, unknown)

    def look_up(self, keys: Sequence[bytes]) -> dict[bytes, Found]:
        """The latest answers to those questions that have one."""
        if not keys:
            return {}
        where = f"i.key IN ({','.join('?' * len(keys))})"
        asked = "(SELECT at FROM calls WHERE call = o.call)"
        query = _LATEST.format(columns=f"i.key, o.call, o.status, o.settled, o.line, {asked}", where=where)
        with self._reading() as read:
            rows = read(query, tuple(keys)).fetchall()
        return {key: Found(call, status, settled, line, at) for key, call, status, settled, line, at in rows}

    @contextmanager
    def writing(self, *, durable: bool = True, now: Clock = utc_now) -> Iterator[Batch]:
        """One transaction, in which calls begin and outcomes are added: all of it is written, or none.

        With `durable`, the disk has it in the end. A killed process loses nothing either way, and what is written later
        with `durable` takes what came before along. `now` says when its calls are made.
        """
        with self._writing(durable=durable) as write:
            yield Batch(self, write, now())

    # -- the file -----------------------------------------------------------------------------------------------------

    def _lock_path(self, run: int) -> Path:
        return self.path.with_name(self.path.name + "-locks") / str(run)

    def _is_alive(self, run: int) -> bool:
        return run in self._alive or is_held(self._lock_path(run))

    def _connected(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)

    def _prepare(self) -> None:
        execute = self._connection.execute
        tables = execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if tables:
            self._check_kind()
        mode = execute("PRAGMA journal_mode = WAL").fetchone()[0]
        if mode != "wal":
            raise JournalError(
                f"{self.path}: SQLite cannot share files between processes there (its journal mode is {mode}, not "
                "wal); keep the journal on a local disk"
            )
        execute("PRAGMA foreign_keys = OFF")  # every reference is written by the one place that knows it
        if not tables:
            with self._writing() as write:
                # Another process may have made them in the meantime.
                if not write("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                    for statement in _statements(_TABLES + _APPEND_ONLY):
                        write(statement)
                    write(f"PRAGMA application_id = {APPLICATION}")
                    write(f"PRAGMA user_version = {SCHEMA}")
            self._check_kind()

    def _check_kind(self) -> None:
        application = self._connection.execute("PRAGMA application_id").fetchone()[0]
        if application != APPLICATION:
            raise JournalError(f"{self.path}: another program's database; name a file of its own for the journal")
        version = self._connection.execute("PRAGMA user_version").fetchone()[0]
        if version != SCHEMA:
            raise JournalError(
                f"{self.path}: a journal of schema version {version}, and this evalr reads version {SCHEMA}; use the "
                "evalr that wrote it, or name another file"
            )

    @contextmanager
    def _reading(self) -> Iterator[Any]:
        with self._reader_lock, self._told("read"):
            yield self._reader.execute

    @contextmanager
    def _writing(self, *, durable: bool = True) -> Iterator[Any]:
        with self._lock, self._told("written"):
            connection = self._connection
            if self._waits_for_disk != (waits := durable and self._full):
                connection.execute(f"PRAGMA synchronous = {'full' if waits else 'normal'}")
                self._waits_for_disk = waits
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection.execute
                connection.execute("COMMIT")
            except BaseException:
                # After a full disk SQLite may have rolled back already.
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _told(self, what: str) -> Iterator[None]:
        """SQLite's errors as what they mean to whoever runs evaluators."""
        if os.getpid() != self._process:
            raise JournalError(f"{self.path}: opened in another process, before a fork; open it again in this one")
        try:
            yield
        except sqlite3.Error as error:
            raise JournalError(f"{self.path}: the journal cannot be {what}: {error}{_advice(error)}") from error


_ADVICE = {
    sqlite3.SQLITE_FULL: "; nothing that was acknowledged is lost: make room, and run again",
    sqlite3.SQLITE_IOERR: "; nothing that was acknowledged is lost: see to the disk, and run again",
    sqlite3.SQLITE_CANTOPEN: "; its folder must exist, and allow files to be made",
    sqlite3.SQLITE_READONLY: "; the file and its folder must be writable",
    sqlite3.SQLITE_NOTADB: "; name a file of its own for the journal",
    sqlite3.SQLITE_CORRUPT: "; it is damaged: keep a copy, and go on with what `sqlite3 FILE .recover` saves of it",
    sqlite3.SQLITE_BUSY: "; another process has kept it locked: a run that hangs, or a file system without locks",
}


def _advice(error: sqlite3.Error) -> str:
    code = getattr(error, "sqlite_errorcode", None)
    return "" if code is None else _ADVICE.get(code & 0xFF, "")


def _statements(script: str) -> list[str]:
    """The statements of a script, one by one: `executescript` would commit what it is in."""
    found, part = [], ""
    for piece in script.split(";"):
        part += piece + ";"
        if sqlite3.complete_statement(part):
            found.append(part)
            part = ""
    return found


def _add(write: Any, outcome: Outcome) -> None:
    write("INSERT INTO outcomes (call, item, status, settled, cost, line) VALUES (?, ?, ?, ?, ?, ?)", outcome)


class Batch:
    """What runs do within one transaction."""

    def __init__(self, journal: Journal, write: Any, now: datetime) -> None:
        self._journal = journal
        self._write = write
        self._now = now.astimezone(UTC).isoformat()
        self._alive: dict[int, bool] = {}

    def begin(
        self, key: Key, digest: bytes, run: int, since: int, *, again: bool, asked_after: datetime | None = None
    ) -> Begun | Found | Elsewhere:
        """Claim an item and write its call, unless it has an answer, or another run that is alive is at work on it.

        Args:
            key: the question.
            digest: the key's.
            run: whose call it is.
            since: answers for now (failed, pending) stand where they come from later calls than this.
            again: whether such answers of earlier calls are asked for again; otherwise failures stand, too.
            asked_after: answers of earlier calls stand where these were made after that time; None is any.
        """
        item = self._item(key, digest)
        found = self._write(
            "SELECT o.call, o.status, o.settled, o.line, c.at FROM outcomes o JOIN calls c ON c.call = o.call "
            "WHERE o.item = ? AND o.settled > 0 ORDER BY o.call DESC LIMIT 1",
            (item,),
        ).fetchone()
        if found is not None and stands(Found(*found), since, again=again, asked_after=asked_after):
            return Found(*found)
        doubted = 0
        claim = self._write("SELECT run FROM claims WHERE item = ?", (item,)).fetchone()
        if claim is not None:
            if self._is_alive(claim[0]):
                return Elsewhere(self._write("SELECT max(call) FROM calls WHERE item = ?", (item,)).fetchone()[0])
            doubted = self._take_over(item, claim[0])
        self._write("INSERT INTO claims (item, run) VALUES (?, ?)", (item, run))
        return Begun(self.call(item, run), item, doubted)

    def call(self, item: int, run: int) -> int:
        """Write that a call of a claimed item is about to be made. Returns its number."""
        made: int = self._write("INSERT INTO calls (item, run, at) VALUES (?, ?, ?)", (item, run, self._now)).lastrowid
        return made

    def add(self, outcome: Outcome, *, release: bool) -> None:
        """Write what came of a call; with `release`, the item is claimed no more."""
        _add(self._write, outcome)
        if release:
            self._write("DELETE FROM claims WHERE item = ?", (outcome.item,))

    def _item(self, key: Key, digest: bytes) -> int:
        row = self._write("SELECT item FROM items WHERE key = ?", (digest,)).fetchone()
        if row is None:
            as_of = None if key.as_of is None else key.as_of.astimezone(UTC).isoformat()
            names = [None if text is None else _storable(text) for text in key.subject]
            added = self._write(
                "INSERT INTO items (key, kind, user, session, id, evaluator, version, input, repeat, as_of) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (digest, *names, _storable(key.evaluator), _storable(key.version), key.input, key.repeat, as_of),
            )
            row = (added.lastrowid,)
        item: int = row[0]
        return item

    def _is_alive(self, run: int) -> bool:
        if run not in self._alive:
            self._alive[run] = self._journal._is_alive(run)
        return self._alive[run]

    def _take_over(self, item: int, run: int) -> int:
        """Account for the calls that a dead run had in flight. Returns how many."""
        calls = self._write(
            "SELECT c.call FROM calls c LEFT JOIN outcomes o ON o.call = c.call WHERE c.item = ? AND o.call IS NULL",
            (item,),
        ).fetchall()
        for (call,) in calls:
            _add(self._write, Outcome(call, item, "in_doubt", 0))
        self._write("DELETE FROM claims WHERE item = ?", (item,))
        self._journal._lock_path(run).unlink(missing_ok=True)  # numbers of runs are never used again
        return len(calls)


def stands(found: Found, since: int, *, again: bool, asked_after: datetime | None = None) -> bool:
    """Whether an answer is not asked for once more.

    What a run beside this one has just asked stands, and what was asked no later than `asked_after` does not. Of the
    rest, what is done stands; what has an answer for now is asked again, unless it is a failure and those are to be
    kept.
    """
    if found.call > since:
        return True
    if asked_after is not None and found.asked_at <= asked_after:
        return False
    return found.settled == 2 or (found.status == "failed" and not again)


def _storable(text: str) -> str:
    """What SQLite can store of a text: the columns are there to be looked at, and the key's hash has all of it."""
    from evalr.input_fields import without_lone_surrogates

    return without_lone_surrogates(text)

"""Opening an SQLite log, of an application that may be running, so that not a byte of it, or beside it, is written.

SQLite itself would: to read a database in WAL mode it makes or brings up to date the index of the log (`-shm`), also
when it may only read. So a database without a log is opened as one that does not change, one whose index is there with
an index that may only be read, and one whose log has no index from a copy.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from evalr.errors import LogError
from evalr.estimates.words import count_words
from evalr.logs.finding import unreadable
from evalr.quoting import safe_text

MAGIC = b"SQLite format 3\x00"
WAIT = 5.0
"""Seconds to wait for a lock."""

_WAL_HEADER = 32
_FRAME_HEADER = 24
_WAL_MAGIC = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")

COPY_IT = "copy it with  sqlite3 FILE 'VACUUM INTO \"copy.db\"'  or SQLite's backup, never as one file"


@dataclass
class Database:
    """A connection that reads a database, and what is to know of how it was opened.

    Attributes:
        connection: which may only read.
        path: as messages name it.
        size: bytes of the file.
        notes: what else to know.
    """

    connection: sqlite3.Connection
    path: Path
    size: int
    notes: list[str] = field(default_factory=list)
    _is_newest: Callable[[], bool] = field(default=lambda: False, repr=False)
    _unchanged: Callable[[], bool] = field(default=lambda: True, repr=False)
    _folder: tempfile.TemporaryDirectory[str] | None = field(default=None, repr=False)
    _watch: sqlite3.Connection | None = field(default=None, repr=False)

    def check_unchanged(self) -> None:
        """Raise LogError where somebody wrote to a database that was opened as one that does not change."""
        if not self._unchanged():
            raise _changed(self.path)

    def is_newest(self) -> bool:
        """Whether nobody has written since it was opened `watched`, so that who opened it meanwhile reads the same.

        False where that cannot be told. Another thread than the one that reads may ask.
        """
        try:
            return self._is_newest()
        except (sqlite3.Error, OSError):
            return False

    def close(self) -> None:
        """End the reading, and take away the copy if there is one."""
        self.connection.close()
        if self._watch is not None:
            self._watch.close()
        if self._folder is not None:
            self._folder.cleanup()


def is_sqlite(head: bytes) -> bool:
    """Whether a file that begins so is an SQLite database."""
    return head.startswith(MAGIC)


def open_database(path: Path, *, wait: float = WAIT, snapshot: bool = True, watched: bool = False) -> Database:
    """The database, opened for reading alone.

    Args:
        path: of the file.
        wait: seconds to wait where another program has locked it.
        snapshot: read one state of it to the end. Otherwise each statement reads the newest one, and a writer never
            waits for longer than a statement takes; enough for a log that is only appended to.
        watched: look with another connection whether somebody writes: see `Database.is_newest`.

    Raises:
        LogError: it is missing, empty, no database, cut off, damaged or locked.
    """
    header, size = _header(path)
    real = path.resolve()
    wal, index = (real.with_name(real.name + end) for end in ("-wal", "-shm"))
    try:
        has_wal = header[18] == 2 and wal.is_file()
        in_wal = has_wal and _holds_changes(wal)
        has_index = has_wal and index.is_file()
        state = _state(path)
    except OSError as error:
        raise unreadable(path, error) from error
    if not in_wal:
        _check_whole(path, real, header, size)
    notes = _wal_notes(wal) if in_wal else []
    if in_wal and not has_index:
        return _copied(path, real, size, notes, wait, snapshot)
    # Without a log or its index nobody has a database in WAL mode open, and SQLite would make what is missing.
    option = "readonly_shm=1" if header[18] != 2 or has_index else "immutable=1"
    options = f"mode=ro&{option}"
    watch: sqlite3.Connection | None = None
    try:
        if watched and option != "immutable=1":
            watch = _connect(real, options, wait, False)
            version = _version(watch)
        connection = _connect(real, options, wait, snapshot)
    except sqlite3.Error as error:
        if watch is not None:
            watch.close()
        if _may_be_copied(error):
            return _copied(path, real, size, notes, wait, snapshot)
        raise database_error(path, error) from error
    found = Database(connection, path, size, notes, _watch=watch)
    if option == "immutable=1":
        found._unchanged = lambda: _state(real) == state and not (wal.exists() and _holds_changes(wal))
        found._is_newest = lambda: found._unchanged() and _state(path) == state
    elif watch is not None:
        # SQLite itself is asked: to open the index of its log, and to close it again, would take its locks away.
        found._is_newest = lambda: _version(watch) == version and _state(path)[:2] == state[:2]
    return found


def _version(connection: sqlite3.Connection) -> int:
    """Another number than before where another connection has written."""
    found: tuple[int] = connection.execute("PRAGMA data_version").fetchone()
    return found[0]


def _header(path: Path) -> tuple[bytes, int]:
    try:
        if path.is_dir():
            raise IsADirectoryError
        with path.open("rb") as file:
            header = file.read(100)
        size = path.stat().st_size
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error
    if not header:
        raise LogError(f"{path} is empty: there are no records to read")
    if not is_sqlite(header):
        raise LogError(f"{path} is no SQLite database")
    if len(header) < 100:
        raise LogError(f"{path} is cut off inside of its header: {COPY_IT}")
    return header, size


def _check_whole(path: Path, real: Path, header: bytes, size: int) -> None:
    """Raise LogError for a database that lacks its end.

    One that is just being written may: the page with their number can be there before the last of them. Then there is
    a journal, by which SQLite itself knows what to wait for or to take back.
    """
    journal = real.with_name(f"{real.name}-journal")
    for _ in range(3):
        if size >= _whole_size(header) or journal.exists():
            return
        header, size = _header(path)  # the journal goes when all is written
    raise LogError(f"{path} is cut off: {size:,} of {_whole_size(header):,} bytes are there; {COPY_IT}")


def _whole_size(header: bytes) -> int:
    """How many bytes a database should have; 0 where it does not say."""
    page = int.from_bytes(header[16:18], "big")
    page = 65536 if page == 1 else page
    is_known = header[24:28] == header[92:96]  # otherwise a program wrote it that does not keep the number of pages
    return int.from_bytes(header[28:32], "big") * page if is_known else 0


def _holds_changes(wal: Path) -> bool:
    """Whether a log has more than its header, of which it may have a part alone."""
    return wal.stat().st_size > _WAL_HEADER


def _changed(path: Path) -> LogError:
    return LogError(f"{path} was written while it was read: read it again, or {COPY_IT}")


def _state(path: Path) -> tuple[int, ...]:
    """Of a file, which file it is, and then other numbers than before where it was written."""
    found = path.stat()
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size


def _connect(path: Path, options: str, wait: float, snapshot: bool) -> sqlite3.Connection:
    uri = f"file:{quote(os.fsencode(path))}?{options}"
    connection = sqlite3.connect(uri, uri=True, timeout=wait, isolation_level=None, check_same_thread=False)
    try:
        if snapshot:
            connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except UnicodeDecodeError as error:  # SQLite quotes what is damaged, which then is no text
        connection.close()
        raise LogError(f"{path} is damaged: {COPY_IT}") from error
    except BaseException:
        connection.close()
        raise
    return connection


def _may_be_copied(error: sqlite3.Error) -> bool:
    """Whether SQLite would have to write: the log's index, or what a program that was killed left half done."""
    name = getattr(error, "sqlite_errorname", "")
    return name.startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY"))


def _copied(path: Path, real: Path, size: int, notes: list[str], wait: float, snapshot: bool) -> Database:
    folder = tempfile.TemporaryDirectory(prefix="evalr-", ignore_cleanup_errors=True)
    try:
        copy = Path(folder.name) / "copy.db"
        before = _state(real)
        for end in ("", "-wal", "-journal"):
            with suppress(FileNotFoundError):
                shutil.copyfile(real.with_name(real.name + end), copy.with_name(copy.name + end))
        if _state(real) != before:
            raise _changed(path)
        # Only the copy is written: what was left half done is rolled back in it, or read from its log.
        connection = _connect(copy, "mode=rw", wait, snapshot)
    except BaseException as error:
        folder.cleanup()
        if isinstance(error, OSError):
            raise unreadable(path, error) from error
        if isinstance(error, sqlite3.Error):
            raise database_error(path, error) from error
        raise
    note = "read from a copy, since SQLite would have had to write beside it"
    return Database(connection, path, size, [*notes, note], _folder=folder)


def _wal_notes(wal: Path) -> list[str]:
    """What of a log SQLite will not read: a commit that was never finished, or all of it."""
    try:
        with wal.open("rb") as file:
            header = file.read(_WAL_HEADER)
            size = file.seek(0, 2)
            if header[:4] not in _WAL_MAGIC:
                return ["its -wal is no log of SQLite, and what is in it is not read"]
            page, salt = int.from_bytes(header[8:12], "big"), header[16:24]
            step = page + _FRAME_HEADER
            committed = frames = 0
            while _WAL_HEADER + frames * step + _FRAME_HEADER <= size:
                file.seek(_WAL_HEADER + frames * step)
                frame = file.read(_FRAME_HEADER)
                if frame[8:16] != salt:
                    break  # of an earlier round of the log
                if _WAL_HEADER + (frames + 1) * step > size:
                    frames += 1
                    break
                frames += 1
                if any(frame[4:8]):
                    committed = frames
    except (OSError, ZeroDivisionError):
        return []
    if frames == committed:
        return []
    return [f"its -wal ends in a change that was never finished: {count_words(frames - committed, 'page')} not read"]


def database_error(path: Path | str, error: sqlite3.Error) -> LogError:
    """The error for a database that cannot be read, with its path, why, and what to do."""
    name = getattr(error, "sqlite_errorname", "")
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_PROTOCOL")):
        return LogError(f"{path} is locked by another program: try again when it writes less, or {COPY_IT}")
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_IOERR_SHORT_READ", "SQLITE_SCHEMA")):
        return LogError(f"{path} is damaged or cut off ({safe_text(str(error), longest=300)}): {COPY_IT}")
    if name.startswith("SQLITE_PERM") or name == "SQLITE_AUTH":
        return LogError(f"{path}: no permission to read it")
    if name.startswith("SQLITE_FULL"):
        return LogError(f"{path}: no room for SQLite's temporary files; set SQLITE_TMPDIR to a folder that has some")
    if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN")):
        return LogError(f"{path} was left half written by a program that ended meanwhile: read it again, or {COPY_IT}")
    return LogError(f"{path} cannot be read: {safe_text(str(error), longest=300)}")

"""Whichever reader looks at an SQLite database first, not a byte of it, or beside it, is written."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path

import pytest

import evalr.logs.sqlite
from evalr.errors import EvalrError, LogError
from evalr.logs import find_reader, installed_readers
from evalr.logs.finding import log_head
from evalr.logs.sqlite import open_database

READERS = installed_readers().loaded
TABLES = {
    "reflexr": "reflexr_events (tenant_id, workspace_id, seq, event_id, event_type, envelope)",
    "reflexio": "requests (request_id, user_id, session_id, created_at)",
    "nobody": "notes (text)",
}
IN_WAL = "PRAGMA journal_mode = WAL"


def run(path: Path, *statements: str, killed: bool = False) -> None:
    """What a program of its own does to the database, which may end without closing it."""
    program = "import os, sqlite3, sys\ndb = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
    program += "".join(f"db.execute({statement!r})\n" for statement in statements)
    program += "os._exit(9)" if killed else "db.close()"
    subprocess.run([sys.executable, "-c", program, str(path)], check=not killed)


def many(table: str) -> str:
    name = table.partition(" ")[0]
    column = table.partition("(")[2].partition(",")[0].rstrip(")")
    return (
        f"INSERT INTO {name} ({column}) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900) "
        "SELECT printf('%0200d', i) FROM n"
    )


def at_rest(path: Path, table: str) -> None:
    run(path, f"CREATE TABLE {table}", many(table))


def in_wal_at_rest(path: Path, table: str) -> None:
    run(path, IN_WAL, f"CREATE TABLE {table}", many(table))


def with_an_empty_wal(path: Path, table: str) -> None:
    in_wal_at_rest(path, table)
    path.with_name(path.name + "-wal").touch()


def with_part_of_a_wal_header(path: Path, table: str) -> None:
    in_wal_at_rest(path, table)
    path.with_name(path.name + "-wal").write_bytes(b"\x37\x7f\x06\x82")


def with_an_index_alone(path: Path, table: str) -> None:
    left_in_wal(path, table)
    run(path, "PRAGMA wal_checkpoint(TRUNCATE)", killed=True)
    path.with_name(path.name + "-wal").unlink()


def left_in_wal(path: Path, table: str) -> None:
    """A program that was killed: the log and its index are there, and nobody has them open."""
    run(path, IN_WAL, "PRAGMA wal_autocheckpoint = 0", f"CREATE TABLE {table}", many(table), killed=True)


def without_index(path: Path, table: str) -> None:
    """As where somebody copied the database and its -wal."""
    left_in_wal(path, table)
    path.with_name(path.name + "-shm").unlink()


def with_a_hot_journal(path: Path, table: str) -> None:
    at_rest(path, table)
    run(path, "PRAGMA cache_size = 1", "BEGIN", *[many(table)] * 3, killed=True)
    assert path.with_name(path.name + "-journal").stat().st_size > 0


STATES = [
    at_rest,
    in_wal_at_rest,
    with_an_empty_wal,
    with_part_of_a_wal_header,
    with_an_index_alone,
    left_in_wal,
    without_index,
    with_a_hot_journal,
]


def picture(folder: Path) -> dict[str, tuple[str, int, int]]:
    """Every file with what it holds, its rights and the time of its last change; and the folder's own time."""
    found = {".": ("", 0, folder.stat().st_mtime_ns)}
    for path in folder.iterdir():
        seen = path.stat()
        found[path.name] = (hashlib.sha256(path.read_bytes()).hexdigest(), seen.st_mode, seen.st_mtime_ns)
    return found


@pytest.fixture(params=[False, True], ids=["", "read-only folder"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Path]]:
    """Makes the folder ready: in it, a database can be made before, and in half of the tests no file after."""
    made = tmp_path / "log"
    made.mkdir()

    def ready() -> Path:
        if request.param:
            for path in made.iterdir():
                path.chmod(stat.S_IRUSR)
            made.chmod(stat.S_IRUSR | stat.S_IXUSR)
        return made

    yield ready
    made.chmod(stat.S_IRWXU)


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("whose", TABLES)
def test_no_claim_and_no_reading_writes(
    state: Callable[[Path, str], None], whose: str, folder: Callable[[], Path], tmp_path: Path
) -> None:
    path = tmp_path / "log" / "log.db"
    state(path, TABLES[whose])
    before = picture(folder())
    head = log_head(path)
    for name, reader in READERS.items():
        claim = reader.claim(path, head)
        assert (claim > 0) == (name == whose), f"{name} claims {claim}"
        assert picture(path.parent) == before, f"{name} wrote when it claimed"
    if whose in READERS:
        assert find_reader(path).name == whose
    for name, reader in READERS.items():
        with suppress(EvalrError):
            list(islice(reader.open(path), 5))
        assert picture(path.parent) == before, f"{name} wrote when it read"


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("snapshot", [True, False])
def test_what_was_finished_is_read_all_of_it(
    state: Callable[[Path, str], None], snapshot: bool, folder: Callable[[], Path], tmp_path: Path
) -> None:
    path = tmp_path / "log" / "log.db"
    state(path, "notes (text)")
    before = picture(folder())
    with closing(open_database(path, snapshot=snapshot)) as database:
        count, text = database.connection.execute("SELECT count(*), max(text) FROM notes").fetchone()
        assert (count, text) == (900, f"{900:0200}")
        with suppress(sqlite3.OperationalError):  # only a copy may be written
            database.connection.execute("DELETE FROM notes")
        database.check_unchanged()
    assert picture(path.parent) == before


def test_a_statement_sees_what_was_written_before_it_and_a_snapshot_does_not(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute(IN_WAL)
        writer.execute("CREATE TABLE notes (text)")
        with (
            closing(open_database(path)) as still,
            closing(open_database(path, snapshot=False)) as moving,
        ):
            writer.execute("INSERT INTO notes VALUES ('later')")
            counts = [each.connection.execute("SELECT count(*) FROM notes").fetchone()[0] for each in (still, moving)]
            assert counts == [0, 1]


def test_a_writer_ends_while_its_database_is_read(tmp_path: Path) -> None:
    """The last to close a log takes it away; a reader that may not write is never the one to do so."""
    path = tmp_path / "log.db"
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute(IN_WAL)
    writer.execute("CREATE TABLE notes (text)")
    with closing(open_database(path, snapshot=False)) as database:
        writer.close()
        before = picture(tmp_path)
        assert database.connection.execute("SELECT count(*) FROM notes").fetchone() == (0,)
    assert picture(tmp_path) == before
    with closing(open_database(path)) as database:
        assert database.connection.execute("SELECT count(*) FROM notes").fetchone() == (0,)
    assert picture(tmp_path) == before


def test_a_database_that_changes_while_it_is_copied_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.db"
    without_index(path, "notes (text)")
    copy = shutil.copyfile

    def slow(source: Path, target: Path) -> None:
        copy(source, target)
        os.utime(path, (1, 1))

    monkeypatch.setattr(shutil, "copyfile", slow)
    with pytest.raises(EvalrError, match="was written while it was read"):
        open_database(path)


def test_a_database_that_is_growing_is_not_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer puts the number of pages down before the last of them is there: for a moment some are missing."""
    path = tmp_path / "log.db"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE t (x)")
    whole = evalr.logs.sqlite._header(path)
    seen: list[Path] = []

    def growing(path: Path) -> tuple[bytes, int]:
        seen.append(path)
        return (whole[0], whole[1] - 4096) if len(seen) == 1 else whole

    monkeypatch.setattr(evalr.logs.sqlite, "_header", growing)
    open_database(path).close()
    assert len(seen) == 2, "the writer was done when it was looked for: the file is looked at again"


def test_one_that_was_killed_as_it_grew_is_read_as_it_was(tmp_path: Path) -> None:
    path, killed = tmp_path / "log.db", tmp_path / "killed.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("CREATE TABLE t (x)")
        db.execute("INSERT INTO t VALUES ('kept')")
        db.execute("PRAGMA cache_size = 1")
        db.execute("BEGIN")
        db.executemany("INSERT INTO t VALUES (?)", (["x" * 4000] for _ in range(400)))
        for end in ("", "-journal"):
            shutil.copyfile(f"{path}{end}", f"{killed}{end}")
        db.execute("ROLLBACK")
    stored = bytearray(killed.read_bytes())
    stored[28:32] = (len(stored) // 4096 + 9).to_bytes(4, "big")
    killed.write_bytes(stored)
    with closing(open_database(killed)) as database:
        assert database.connection.execute("SELECT * FROM t").fetchall() == [("kept",)]


def test_one_that_lacks_its_end_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE t (x)")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(LogError, match="is cut off: 8,191 of 8,192 bytes"):
        open_database(path)


@pytest.mark.parametrize("way_to_be", [at_rest, in_wal_at_rest])
def test_another_file_under_the_same_name_is_not_what_was_opened(
    way_to_be: Callable[[Path, str], None], tmp_path: Path
) -> None:
    path, other = tmp_path / "one.db", tmp_path / "other.db"
    way_to_be(path, TABLES["nobody"])
    shutil.copy2(path, other)
    link = tmp_path / "link.db"
    link.symlink_to(path)
    with closing(open_database(link, watched=True)) as database:
        assert database.is_newest()
        link.unlink()
        assert not database.is_newest()
        link.symlink_to(other)
        assert not database.is_newest()
    with closing(open_database(path, watched=True)) as database:
        assert database.is_newest()
        other.replace(path)
        assert not database.is_newest()


@pytest.mark.skipif(sys.platform in ("darwin", "win32"), reason="names of files are texts there")
def test_a_name_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"odd \xff?#%41.db")
    at_rest(path, TABLES["nobody"])
    with closing(open_database(path)) as database:
        assert database.connection.execute("SELECT count(*) FROM notes").fetchone() == (900,)

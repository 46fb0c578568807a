"""Databases as they are found: in use, locked, cut off, half written, upgraded, empty; and none is ever written to."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from reflexio_writing import BEGIN, RELEASES, Writer, stored_log

from evalr.errors import InputError, LogError, UnknownLogError
from evalr.inputs import Transcript
from evalr.logs import Stored, find_reader, read
from evalr.reflexio import impact, open_store
from evalr.reports.report import report


def picture(folder: Path) -> dict[str, tuple[str, int, int]]:
    """Every file with what it holds, its size and the time of its last change."""
    found = {}
    for path in sorted(folder.iterdir()):
        held = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
        found[path.name] = (held, path.stat().st_size, path.stat().st_mtime_ns)
    return found


def transcripts(path: Path) -> int:
    return sum(isinstance(item, Transcript) for item in read(path, kind="reflexio"))


@pytest.fixture
def live_writer(tmp_path: Path) -> Iterator[tuple[Path, subprocess.Popen[str]]]:
    """A database in WAL mode that another process has open, its newest session in the log alone."""
    path = Writer(tmp_path / "reflexio_org.db", wal=True).done()
    program = f"""
        import sqlite3, sys
        connection = sqlite3.connect({str(path)!r}, isolation_level=None)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute("INSERT INTO requests (request_id, user_id, session_id, created_at) "
                           "VALUES ('r1', 'u1', 's1', '2026-09-01T00:00:00+00:00')")
        connection.execute("INSERT INTO interactions (request_id, created_at, role, content) "
                           "VALUES ('r1', '2026-09-01T00:00:00+00:00', 'User', 'hello')")
        print("ready", flush=True)
        for line in sys.stdin:
            connection.execute(line)
            print("done", flush=True)
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield path, process
        process.kill()


def tell(process: subprocess.Popen[str], statement: str) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(statement + "\n")
    process.stdin.flush()
    assert process.stdout.readline() == "done\n"


# Nothing is written


def test_nothing_is_written_to_a_database_at_rest(tmp_path: Path) -> None:
    path = stored_log(tmp_path, "release_0_2_32")
    before = picture(tmp_path)
    list(read(path))
    assert picture(tmp_path) == before


def test_nothing_is_written_beside_one_in_wal_mode(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "reflexio_org.db", wal=True)
    writer.session("s1")
    path = writer.done()
    assert path.read_bytes()[18] == 2
    before = picture(tmp_path)
    assert transcripts(path) == 1
    assert picture(tmp_path) == before


def test_a_read_only_file_in_a_read_only_folder(tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    folder.mkdir()
    writer = Writer(folder / "reflexio_org.db", wal=True)
    writer.session("s1")
    path = writer.done()
    before = picture(folder)
    path.chmod(stat.S_IRUSR)
    folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        assert transcripts(path) == 1
        assert picture(folder) == before
    finally:
        folder.chmod(stat.S_IRWXU)


def test_a_database_in_use_is_read_with_what_is_in_its_log_alone(
    live_writer: tuple[Path, subprocess.Popen[str]],
) -> None:
    path, process = live_writer
    before = picture(path.parent)
    assert {*before} == {"reflexio_org.db", "reflexio_org.db-wal", "reflexio_org.db-shm"}
    assert transcripts(path) == 1
    assert picture(path.parent) == before
    assert process.poll() is None


def test_what_is_written_meanwhile_is_not_half_read(live_writer: tuple[Path, subprocess.Popen[str]]) -> None:
    """One state of the database is read, the one at the beginning."""
    path, process = live_writer
    with open_store(path) as store:
        account = store.account()
        records = store.sessions(account)
        first = next(records)
        tell(process, "INSERT INTO interactions (request_id, created_at) VALUES ('r1', '2026-09-01T00:01:00+00:00')")
        tell(process, "INSERT INTO requests (request_id, user_id, session_id, created_at) VALUES ('r2','u','s','2026')")
        assert [len(record.interactions) for record in [first, *records]] == [1]
        assert account.left_out.total == 0
    with open_store(path) as store:
        assert store.count("requests") == 2


def test_a_log_whose_index_is_gone_is_read_from_a_copy(
    live_writer: tuple[Path, subprocess.Popen[str]], tmp_path: Path
) -> None:
    """As where somebody copied the database and its -wal."""
    path, _ = live_writer
    folder = tmp_path / "copied"
    folder.mkdir()
    for end in ("", "-wal"):
        shutil.copy(path.with_name(path.name + end), folder)
    before = picture(folder)
    log = read(folder / path.name)
    assert sum(isinstance(item, Transcript) for item in log) == 1
    assert "read from a copy" in "\n".join(log.notes)
    assert picture(folder) == before


def test_a_journal_that_a_killed_program_left_is_rolled_back_in_a_copy_alone(tmp_path: Path) -> None:
    path = Writer(tmp_path / "reflexio_org.db").done()
    program = f"""
        import os, sqlite3
        connection = sqlite3.connect({str(path)!r}, isolation_level=None)
        connection.execute("PRAGMA cache_size = 1")
        insert = "INSERT INTO requests (request_id, user_id, session_id, created_at) VALUES (?, 'u', 's', '2026')"
        connection.execute(insert, ("a",))
        connection.execute("BEGIN")
        for number in range(2000):
            connection.execute(insert, (f"{{number}}" * 50,))
        os._exit(9)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=False)
    assert path.with_name(path.name + "-journal").stat().st_size > 0
    before = picture(tmp_path)
    with open_store(path) as store:
        assert store.count("requests") == 1
        assert "read from a copy" in "\n".join(store.notes)
    assert picture(tmp_path) == before


def test_a_copy_is_taken_away_in_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, temporary = tmp_path / "log", tmp_path / "temporary"
    folder.mkdir()
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    writer = Writer(folder / "one.db", wal=True)
    writer.session("s1")
    writer.connection.commit()
    for end in ("", "-wal"):
        shutil.copy(writer.path.with_name(writer.path.name + end), folder / f"two.db{end}")
    writer.done()
    with open_store(folder / "two.db") as store:
        assert len(list(temporary.iterdir())) == 1
        assert store.count("requests") == 1
    assert list(temporary.iterdir()) == []


def test_a_database_that_is_written_while_it_is_taken_to_rest_is_an_error(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "reflexio_org.db", wal=True)
    writer.session("s1")
    path = writer.done()
    with open_store(path) as store:
        records = store.sessions(store.account())
        with sqlite3.connect(path) as other:
            other.execute("UPDATE interactions SET content = 'changed'")
        other.close()
        with pytest.raises(LogError, match="was written while it was read"):
            list(records)


# Clear answers


def test_a_locked_database(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "reflexio_org.db")
    writer.session("s1")
    path = writer.done()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    try:
        with pytest.raises(LogError, match=r"reflexio_org\.db is locked by another program: try again"):
            open_store(path, wait=0.1)
        assert find_reader(path).name == "reflexio"  # so that its error is the one that is shown
    finally:
        other.close()
    assert transcripts(path) == 1


@pytest.mark.parametrize("share", [0.001, 0.2, 0.6, 0.999])
def test_a_truncated_database(share: float, tmp_path: Path) -> None:
    path = stored_log(tmp_path, "release_0_2_32")
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(LogError, match=r"is cut off.*VACUUM INTO"):
        transcripts(path)


def test_a_damaged_database(tmp_path: Path) -> None:
    path = stored_log(tmp_path, "release_0_2_32")
    whole = bytearray(path.read_bytes())
    for page in range(1, len(whole) // 4096):
        whole[page * 4096 : page * 4096 + 64] = b"\xff" * 64
    path.write_bytes(whole)
    with pytest.raises(LogError, match="damaged or cut off"):
        transcripts(path)


@pytest.mark.parametrize("table", ["interactions", "requests"])
def test_a_damaged_page_is_told_of_when_it_is_reached(table: str, tmp_path: Path) -> None:
    """What came before it was read; the whole is an error all the same."""
    writer = Writer(tmp_path / "reflexio_org.db")
    for number in range(2000):
        writer.session(f"s{number}", at=BEGIN)
    path = writer.done()
    with sqlite3.connect(path) as connection:
        root = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()[0]
    connection.close()
    whole = bytearray(path.read_bytes())
    whole[(root - 1) * 4096 : (root - 1) * 4096 + 32] = b"\xff" * 32
    path.write_bytes(whole)
    with pytest.raises(LogError, match=r"reflexio_org\.db is damaged or cut off"):
        transcripts(path)


def test_a_half_written_log(live_writer: tuple[Path, subprocess.Popen[str]], tmp_path: Path) -> None:
    """Cut inside its last change: what was finished before is read, and the rest told of."""
    path, process = live_writer
    tell(
        process,
        "INSERT INTO requests (request_id, user_id, session_id, created_at) VALUES ('r2', 'u', 's2', '2026-09-02')",
    )
    folder = tmp_path / "copied"
    folder.mkdir()
    for end in ("", "-wal"):
        shutil.copy(path.with_name(path.name + end), folder)
    wal = folder / f"{path.name}-wal"
    wal.write_bytes(wal.read_bytes()[:-100])
    with open_store(folder / path.name) as store:
        assert store.count("requests") == 1
        assert "its -wal ends in a change that was never finished" in "\n".join(store.notes)
    wal.write_bytes(b"\0" * 32 + wal.read_bytes()[32:])
    with open_store(folder / path.name) as store:
        assert store.count("requests") == 0
        assert "its -wal is no log of SQLite" in "\n".join(store.notes)
    with pytest.raises(LogError, match=r"there are no records in it; its -wal is no log of SQLite"):
        impact(folder / path.name)


def test_damage_that_is_no_text_says_so(tmp_path: Path) -> None:
    path = Writer(tmp_path / "reflexio_org.db").done()
    content = bytearray(path.read_bytes())
    at = content.index(b"CREATE TABLE requests")
    content[at + 7 : at + 12] = b"\xbf\xb1\xd3\x92\xff"
    path.write_bytes(bytes(content))
    with pytest.raises(LogError, match="is damaged"):
        open_store(path)


def test_an_upgraded_database_has_lost_its_tags(newest_log: Path) -> None:
    with pytest.raises(
        InputError, match=r"keeps no metadata.*only Reflexio 0\.2\.24 and 0\.2\.25 do.*takes it out for good"
    ):
        list(read(newest_log, arms="tag"))


def test_after_an_upgrade_verdicts_without_a_user_find_their_session(tmp_path: Path) -> None:
    """Reflexio itself then matches none of them."""
    writer = Writer(tmp_path / "reflexio_org.db")
    writer.session("alone", "u1", source="a")
    writer.session("shared", "u1", source="a")
    writer.session("shared", "u2", BEGIN.replace(hour=5), source="b")
    writer.outcome("alone", "")
    writer.outcome("shared", "", BEGIN.replace(hour=5))
    writer.outcome("shared", "", BEGIN.replace(hour=9))
    path = writer.done()
    with open_store(path) as store:
        account = store.account()
        found = [(record.key, len(record.outcomes)) for record in store.sessions(account)]
    assert found == [(("u1", "alone"), 1), (("u1", "shared"), 0), (("u2", "shared"), 1), (("", "shared"), 1)]
    assert account.repaired == {"verdicts without a user, given to the one whose session began then": 1}


def test_empty_databases(tmp_path: Path) -> None:
    nothing = tmp_path / "nothing.db"
    nothing.touch()
    with pytest.raises(LogError, match="is empty"):
        read(nothing)
    with pytest.raises(LogError, match="is empty"):
        open_store(nothing)
    with pytest.raises(LogError, match="there are no records in it"):
        list(read(Writer(tmp_path / "reflexio_org.db").done()))


def test_a_database_of_somebody_else(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE requests (id INTEGER, path TEXT)")
    connection.close()
    with pytest.raises(UnknownLogError):
        read(path)
    with pytest.raises(LogError, match="none of Reflexio's"):
        open_store(path)


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("postgresql://db/reflexio", "From Postgres: fetch"),
        ("postgres:/db", "From Postgres: fetch"),
        ("postgresql+psycopg://db/reflexio", "From Postgres: fetch"),
        ("https://abc.supabase.co/rest", "From Supabase: fetch"),
        ("supabase://x", "From Supabase: fetch"),
        ("https://www.reflexio.ai", "is fetched first"),
    ],
)
def test_other_stores_get_the_way_in(address: str, words: str) -> None:
    with pytest.raises(LogError, match=words):
        open_store(address)
    with pytest.raises(LogError, match=words):
        list(read(Path(address), kind="reflexio"))


def test_the_disk_layout_gets_the_way_in(tmp_path: Path) -> None:
    for name in ("requests", "interactions"):
        (tmp_path / "disk_org" / name).mkdir(parents=True)
    for path in (tmp_path, tmp_path / "disk_org"):
        with pytest.raises(LogError, match="From the disk layout: fetch"):
            list(read(path))


def test_a_folder_of_databases_asks_for_one_of_them(tmp_path: Path) -> None:
    Writer(tmp_path / "reflexio_a.db").done()
    with pytest.raises(LogError, match=r"give the database in it \(reflexio_a\.db\)"):
        list(read(tmp_path))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read anything")
def test_a_database_without_permission(tmp_path: Path) -> None:
    path = Writer(tmp_path / "reflexio_org.db").done()
    path.chmod(0)
    with pytest.raises(LogError, match="no permission"):
        open_store(path)


# Every release


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("indexes", [True, False], ids=["indexed", "bare"])
def test_every_release_is_read(release: str, indexes: bool, tmp_path: Path) -> None:
    writer = Writer(tmp_path / "reflexio_org.db", release, indexes=indexes)
    turns = writer.session(
        "s1", source="prod", metadata='{"reflexio_retrieval_enabled": true}', retrieval_experiment_id="e"
    )
    writer.outcome("s1", number_of_correction_per_session=2)
    writer.shadow(turns[1], "s1")
    path = writer.done()
    log = read(path, strict=True)
    kinds = [type(item).__name__ for item in log]
    assert kinds == ["Transcript", "Session", "Stored", "Stored"]
    with open_store(path) as store:
        assert store.keeps_metadata == (release in ("0.2.24", "0.2.25"))
        (record,) = store.sessions(store.account(strict=True))
        assert [len(rows) for rows in (record.requests, record.interactions, record.outcomes)] == [1, 2, 1]
        assert record.first is not None
        assert record.first.evaluation_only is (None if release < "0.2.26" else False)
        assert record.interactions[0].learnings is None


@pytest.mark.parametrize("release", ["0.2.25", "0.2.29", "0.2.30"])
def test_corrections_are_read_where_they_mean_corrections(release: str, tmp_path: Path) -> None:
    writer = Writer(tmp_path / "reflexio_org.db", release)
    writer.session("s1")
    writer.outcome("s1", number_of_correction_per_session=2)
    log = read(writer.done())
    (verdict,) = [item.result.value for item in log if hasattr(item, "measure")]
    assert verdict.corrections == (None if release < "0.2.30" else 2)
    assert ("corrections are not read of 1 verdict" in "\n".join(log.notes)) == (release < "0.2.30")


@pytest.mark.parametrize("processes", [1, 2])
def test_a_release_that_counts_corrections_may_keep_older_numbers(processes: int, tmp_path: Path) -> None:
    """As where 0.2.32 has brought the database of 0.2.29 up to date: its turns have no count of tokens."""
    writer = Writer(tmp_path / "reflexio_org.db", "0.2.32")
    for number, (counted, told) in enumerate([(1, {}), (None, {}), (None, {"tags": "[]"})]):
        request = writer.request(f"r{number}", "u1", f"s{number}", BEGIN + timedelta(days=number))
        writer.turn(request, BEGIN + timedelta(days=number), "User", token_count=counted)
        at = BEGIN + timedelta(days=number)
        writer.outcome(f"s{number}", at=at, number_of_correction_per_session=2, **told)
    path = writer.done()
    found = impact(path, now=BEGIN + timedelta(days=9))
    assert [each.corrections for each in found.recent] == [2, None, 2]
    assert found.everyone.measures["corrections"].n == 2
    log = read(path, processes=processes)
    assert [item.result.value.corrections for item in log if isinstance(item, Stored)] == [2, None, 2]
    assert "corrections are not read of 1 verdict" in "\n".join(log.notes)
    assert "corrections are not read of 1 verdict" in str(report(path, now=BEGIN + timedelta(days=9)))


def test_customer_outcomes_of_a_release_without_ids(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "reflexio_org.db")
    writer.connection.execute("ALTER TABLE session_outcomes RENAME TO old")
    writer.connection.execute(
        "CREATE TABLE session_outcomes (user_id TEXT, session_id TEXT, outcome TEXT, occurred_at INTEGER)"
    )
    writer.connection.execute(
        "INSERT INTO session_outcomes VALUES ('u1', 's1', 'success', 1788220800), ('u9', 's9', 'failure', 1)"
    )
    writer.session("s1")
    with open_store(writer.done()) as store:
        account = store.account()
        found = {record.key: record.customer_outcome for record in store.sessions(account)}
    assert {key: row and row.outcome for key, row in found.items()} == {
        ("u1", "s1"): "success",
        ("u9", "s9"): "failure",
    }
    assert account.left_out.total == 0


def test_what_nobody_looks_at_is_not_read(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "reflexio_org.db")
    request = writer.request("r1", "u1", "s1")
    writer.turn(request, BEGIN, "User", tools_used="{", token_count=3)
    path = writer.done()
    with open_store(path) as store:
        account = store.account(strict=True)
        (record,) = store.sessions(account, without=["content", "tools_used"])
        assert [(turn.content, turn.tools, turn.tokens) for turn in record.interactions] == [("", (), 3)]
        with pytest.raises(InputError, match=r"without='contents'.*did you mean 'content'"):
            next(store.sessions(account, without=["contents"]))


def test_who_looks_at_less_takes_nothing_from_who_reads_all(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "reflexio.db")
    for number in range(70):  # more than are read at a time
        writer.session(f"s{number:02}", at=BEGIN + timedelta(hours=number))
    with open_store(writer.done()) as store:
        records = store.sessions(store.account())
        first = next(records)
        assert sum(1 for _ in store.sessions(store.account(), without=["content"])) == 70
        whole = [first, *records]
    assert len(whole) == 70
    assert all(turn.content for record in whole for turn in record.interactions)


def test_a_user_without_a_name_is_another_one_of_the_same_session_id(tmp_path: Path) -> None:
    """So a verdict that names neither user nor answer is nobody's, rather than of whoever comes first."""
    writer = Writer(tmp_path / "reflexio.db")
    writer.connection.execute("DROP TABLE requests")
    writer.connection.execute("CREATE TABLE requests (request_id, user_id, session_id, created_at)")
    for number, user in enumerate((None, "u1")):
        at = (BEGIN + timedelta(hours=number)).isoformat()
        writer.connection.execute("INSERT INTO requests VALUES (?, ?, 's', ?)", (f"r{number}", user, at))
    writer.shadow("gone", "s")
    with open_store(writer.done()) as store:
        found = [
            (record.user, len(record.requests), len(record.shadow_verdicts))
            for record in store.sessions(store.account())
        ]
    assert found == [("", 1, 0), ("u1", 1, 0), ("", 0, 1)]


def test_single_tables_are_read_row_by_row(newest_log: Path) -> None:
    with open_store(newest_log) as store:
        account = store.account(strict=True)
        assert len(list(store.requests(account))) == 60
        assert len(list(store.interactions(account))) == 123
        outcomes = list(store.outcomes(account))
        assert [(row.at, row.result_id) for row in outcomes] == sorted((row.at, row.result_id) for row in outcomes)
        assert (len(outcomes), sum(row.success for row in outcomes)) == (44, 31)
        assert len(list(store.shadow_verdicts(account))) == 44
        assert len(list(store.learning_verdicts(account))) == 56
        assert len(list(store.customer_outcomes(account))) == 4
        assert account.left_out.total == 0

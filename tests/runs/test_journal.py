"""The journal as a file: what it refuses, what it never holds, and what becomes of it when things break."""

from __future__ import annotations

import asyncio
import errno
import os
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from evalr import Failure, FunctionEvaluator, InputError, JournalError, Result, Verdict
from evalr.inputs import Transcript, Turn
from evalr.runs import Journal, Retry, evaluate_all, evaluate_all_sync
from evalr.runs import locks as locks_module
from evalr.runs.journal import APPLICATION, Begun, Elsewhere, Found, Note, Outcome, Spent
from evalr.runs.keys import Key

NINE = datetime(2026, 9, 28, 9, tzinfo=UTC)


class Said(BaseModel):
    done: bool


judge = FunctionEvaluator("judge", "1", lambda given: Said(done=True), Transcript, Said, inline=True)


def asks(n: int) -> list[Transcript]:
    return [Transcript(id=f"t{number}", request="do it") for number in range(n)]


def key(name: str = "t", version: str = "1") -> Key:
    return Key(("transcript", None, None, name), "judge", version, b"hash")


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal(tmp_path / "j.db") as opened:
        yield opened


def raw(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


# ---------------------------------------------------------------------------------------------------------------------
# Files that are no journal of ours
# ---------------------------------------------------------------------------------------------------------------------


def test_a_journal_of_another_schema_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    Journal(path).close()
    raw(path, "PRAGMA user_version = 2")
    before = path.read_bytes()
    with pytest.raises(JournalError, match="a journal of schema version 2, and this evalr reads version 1"):
        Journal(path)
    assert path.read_bytes() == before


def test_another_programs_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    raw(path, "CREATE TABLE precious (x)", "INSERT INTO precious VALUES (1)")
    before = path.read_bytes()
    with pytest.raises(JournalError, match="another program's database"):
        Journal(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "content", [b"a text, and no database, of some length" * 99, b"SQLite format 3\0" + b"\xff" * 4096]
)
def test_what_is_no_database_is_refused_and_left_alone(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    path.write_bytes(content)
    with pytest.raises(JournalError, match=r"the journal cannot be opened: .*(name a file of its own|damaged)"):
        Journal(path)
    assert path.read_bytes() == content


def test_a_damaged_journal_is_told_of_and_never_read_as_less(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    list(evaluate_all_sync(judge, asks(500), journal=path))
    content = bytearray(path.read_bytes())
    for page in range(4096, len(content), 4096):
        content[page : page + 200] = b"\xa5" * 200
    path.write_bytes(content)
    with pytest.raises(JournalError, match="it is damaged: keep a copy"):
        list(evaluate_all_sync(judge, asks(500), journal=path))


def test_a_damaged_line_is_told_of(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    list(evaluate_all_sync(judge, asks(1), journal=path))
    raw(path, "DROP TRIGGER outcomes_UPDATE", "UPDATE outcomes SET line = substr(line, 1, 20)")
    with pytest.raises(JournalError, match="a stored result cannot be read, and may be damaged"):
        list(evaluate_all_sync(judge, asks(1), journal=path))


@pytest.mark.parametrize("path", ["missing/folder/j.db", "file/j.db", ".", "/proc/j.db"])
def test_a_place_that_cannot_be_written_is_told_of(path: str, tmp_path: Path) -> None:
    if path == "/proc/j.db" and not Path("/proc/self").exists():
        pytest.skip("there is no /proc")
    (tmp_path / "file").write_text("x")
    with pytest.raises(JournalError, match=r"its folder must exist, and allow files to be made"):
        Journal(tmp_path / path)


def test_a_folder_that_lets_nothing_be_made_is_told_of(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write anywhere")
    folder = tmp_path / "read-only"
    folder.mkdir()
    Journal(folder / "j.db").close()
    folder.chmod(0o500)
    try:
        with pytest.raises(JournalError, match=r"writable|allow files to be made"):
            list(evaluate_all_sync(judge, asks(1), journal=folder / "j.db"))
    finally:
        folder.chmod(0o700)


def test_a_file_system_without_locks_is_told_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def without(file: int) -> bool:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(locks_module, "try_lock", without)
    calls: list[str] = []
    asked = FunctionEvaluator("judge", "1", lambda given: calls.append("x"), Transcript, Said, inline=True)
    with pytest.raises(JournalError, match=r"the file system has no locks .*keep the journal on a local disk"):
        list(evaluate_all_sync(asked, asks(3), journal=tmp_path / "j.db"))
    assert calls == []


def test_a_journal_that_another_process_keeps_locked_is_told_of(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    Journal(tmp_path / "j.db").close()
    holder = sqlite3.connect(tmp_path / "j.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    monkeypatch.setattr("evalr.runs.journal.PATIENCE", 0.1)
    try:
        with pytest.raises(JournalError, match="another process has kept it locked"):
            list(evaluate_all_sync(judge, asks(1), journal=tmp_path / "j.db"))
    finally:
        holder.execute("ROLLBACK")
        holder.close()


def test_a_closed_journal_is_told_of(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.db")
    journal.close()
    with pytest.raises(JournalError, match="closed"):
        list(evaluate_all_sync(judge, asks(1), journal=journal))


def test_an_empty_file_becomes_a_journal_and_two_may_make_it_at_once(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    path.touch()
    with Journal(path), Journal(path) as other:
        assert other.totals().calls == 0
        assert other._connection.execute("PRAGMA application_id").fetchone() == (APPLICATION,)


def test_how_safe_it_is_has_two_names(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="synchronous='off' must be 'full' or 'normal'"):
        Journal(tmp_path / "j.db", synchronous="off")  # type: ignore[arg-type]
    for synchronous, durable, level in (("full", True, 2), ("full", False, 1), ("normal", True, 1)):
        with Journal(tmp_path / "j.db", synchronous=synchronous) as journal:  # type: ignore[arg-type]
            with journal.writing(durable=durable):
                pass
            assert journal._connection.execute("PRAGMA synchronous").fetchone() == (level,)


# ---------------------------------------------------------------------------------------------------------------------
# What is in it
# ---------------------------------------------------------------------------------------------------------------------


def test_it_holds_results_and_hashes_and_never_the_texts_of_inputs(tmp_path: Path) -> None:
    secrets = [f"secret{n}phrase" for n in range(6)]
    inputs = [
        Transcript(
            id=f"t{n}",
            request=f"{secrets[0]} {n}",
            turns=[Turn(role="agent", text=secrets[1], metadata={"m": secrets[2]}, ref=secrets[3], kind=secrets[4])],
            result=secrets[5],
        )
        for n in range(50)
    ]

    def mixed(given: Transcript) -> Said:
        if given.id == "t1":
            raise ConnectionResetError("cut")
        if given.id == "t2":
            raise ValueError("broken")
        return Said(done=True)

    asked = FunctionEvaluator("judge", "1", mixed, Transcript, Said, inline=True)
    with Journal(tmp_path / "j.db") as journal:
        results = list(evaluate_all_sync(asked, inputs, journal=journal, retry=Retry(tries=2, first=0)))
        stored = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert len(results) == 50
    assert b"t49" in stored
    assert not [secret for secret in secrets if secret.encode() in stored]


def test_calls_and_outcomes_are_only_ever_added(journal: Journal) -> None:
    list(evaluate_all_sync(judge, asks(2), journal=journal))
    for table, column in (("outcomes", "status"), ("calls", "item"), ("items", "kind"), ("runs", "begun")):
        for statement in (f"UPDATE {table} SET {column} = 1", f"DELETE FROM {table}"):
            with pytest.raises(sqlite3.IntegrityError, match="only ever added to"):
                journal._connection.execute(statement)


def test_results_are_those_of_one_evaluator_and_version_the_latest_of_each(journal: Journal) -> None:
    broken = FunctionEvaluator("judge", "1", lambda given: 1 / 0, Transcript, Said, inline=True)
    list(evaluate_all_sync(broken, asks(2), journal=journal))
    assert [type(result) for result in journal.results(judge)] == [Failure, Failure]
    list(evaluate_all_sync(judge, asks(2), journal=journal))
    other = FunctionEvaluator("judge", "2", lambda given: Said(done=False), Transcript, Said, inline=True)
    list(evaluate_all_sync(other, asks(1), journal=journal))
    found = list(journal.results(judge))
    assert [(type(result), result.about and result.about.id) for result in found] == [(Verdict, "t0"), (Verdict, "t1")]
    assert [result.version for result in journal.results(other)] == ["2"]
    totals = journal.totals()
    assert (totals.items, totals.calls, totals.in_doubt) == ({"verdict": 3}, 5, 0)


def test_the_journal_gives_its_results_without_the_inputs(tmp_path: Path) -> None:
    inputs = [Transcript(id=f"t{n}", request="r") for n in range(1500)]
    results = list(evaluate_all_sync(judge, inputs, journal=tmp_path / "j.db", repeats=2))
    with Journal(tmp_path / "j.db") as journal:
        assert sorted(journal.results(judge), key=repr) == sorted(results, key=repr)


def test_totals_tell_pending_from_done(journal: Journal) -> None:
    unsure = FunctionEvaluator(
        "judge",
        "1",
        lambda given: Said(done=given.id == "t0"),
        Transcript,
        Said,
        inline=True,
        pending=lambda v: not v.done,
    )
    list(evaluate_all_sync(unsure, asks(3), journal=journal))
    assert journal.totals().items == {"pending": 2, "verdict": 1}


def test_subjects_with_lone_surrogates_are_kept_apart(tmp_path: Path) -> None:
    names = [chr(0xD83D), chr(0xD83E)]
    inputs = [Transcript.model_construct(id=name, request="r", turns=[], attributes={}) for name in names]
    for calls in (2, 0):
        run = evaluate_all_sync(judge, inputs, journal=tmp_path / "j.db")
        assert sorted(str(result.about.id) for result in run if result.about) == names
        assert run.summary.calls == calls


# ---------------------------------------------------------------------------------------------------------------------
# Claims
# ---------------------------------------------------------------------------------------------------------------------


def begin(journal: Journal, name: str, run: int, since: int = 10**9, *, again: bool = True) -> Any:
    with journal.writing() as batch:
        return batch.begin(key(name), key(name).digest(), run, since, again=again)


def add(journal: Journal, outcome: Outcome, *, release: bool = True) -> None:
    with journal.writing() as batch:
        batch.add(outcome, release=release)


def test_an_item_is_claimed_once_as_long_as_its_claimer_lives(journal: Journal) -> None:
    one, _ = journal.begin_run()
    other, _ = journal.begin_run()
    begun = begin(journal, "t", one)
    assert isinstance(begun, Begun)
    assert begin(journal, "t", other) == Elsewhere(begun.call)
    assert isinstance(begin(journal, "u", other), Begun)
    add(journal, Outcome(begun.call, begun.item, "verdict", 2, None, "{}"))
    found = begin(journal, "t", other)
    assert isinstance(found, Found)
    assert (found.status, found.settled, found.line) == ("verdict", 2, "{}")
    journal.end_run(one)
    journal.end_run(other)


def test_a_dead_runs_claims_are_taken_over_and_its_calls_counted_as_in_doubt(journal: Journal) -> None:
    dead, _ = journal.begin_run()
    first = begin(journal, "t", dead)
    add(journal, Outcome(first.call, first.item, "retried", 0, 0.5, "{}"), release=False)
    with journal.writing() as batch:
        batch.call(first.item, dead)
    journal._alive.pop(dead).release()  # as the operating system does
    assert journal.totals().in_doubt == 1
    alive, _ = journal.begin_run()
    begun = begin(journal, "t", alive)
    assert (begun.item, begun.doubted) == (first.item, 1)
    totals = journal.totals()
    assert (totals.in_doubt, totals.calls, totals.cost, totals.unknown_costs) == (1, 3, 0.5, 2)
    journal.end_run(alive, [begun.call])
    assert journal.totals().in_doubt == 1


def test_a_run_that_ends_gives_back_what_it_had_claimed(journal: Journal) -> None:
    run, _ = journal.begin_run()
    made, unmade = begin(journal, "t", run), begin(journal, "u", run)
    journal.end_run(run, [made.call])
    query = "SELECT call, status FROM outcomes ORDER BY call"
    assert journal._connection.execute(query).fetchall() == [(made.call, "cancelled"), (unmade.call, "unbegun")]
    totals = journal.totals()
    assert (totals.calls, totals.unknown_costs, totals.in_doubt, totals.items) == (1, 1, 0, {})
    later, _ = journal.begin_run()
    assert begin(journal, "t", later).doubted == 0
    journal.end_run(later)


@pytest.mark.parametrize(
    ("status", "settled", "earlier", "again", "stands"),
    [
        ("verdict", 2, True, True, True),
        ("failed", 1, True, True, False),
        ("failed", 1, True, False, True),
        ("failed", 1, False, True, True),  # a run beside this one has just asked
        ("verdict", 1, True, True, False),  # pending
        ("verdict", 1, True, False, False),
        ("verdict", 1, False, True, True),
        ("cancelled", 0, False, False, False),
    ],
)
def test_what_stands_and_what_is_asked_again(
    status: str, settled: Any, earlier: bool, again: bool, stands: bool, journal: Journal
) -> None:
    run, _ = journal.begin_run()
    begun = begin(journal, "t", run)
    add(journal, Outcome(begun.call, begun.item, status, settled, None, "{}"))
    found = begin(journal, "t", run, since=begun.call if earlier else begun.call - 1, again=again)
    assert isinstance(found, Found if stands else Begun)
    journal.end_run(run)


def test_a_transaction_is_written_whole_or_not_at_all(journal: Journal) -> None:
    run, _ = journal.begin_run()

    def broken() -> None:
        with journal.writing() as batch:
            batch.begin(key(), key().digest(), run, 0, again=True)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        broken()
    assert journal._connection.execute("SELECT count(*) FROM items").fetchone() == (0,)
    journal.end_run(run)


def test_a_run_beside_others_asks_again_what_failed_before_it_began(tmp_path: Path) -> None:
    calls = 0

    async def fails(given: Transcript) -> Said:
        nonlocal calls
        calls += 1
        await asyncio.sleep(0.01)
        raise ValueError("broken")

    failing = FunctionEvaluator("judge", "1", fails, Transcript, Said)

    async def both() -> list[list[Result[Any]]]:
        async def one() -> list[Result[Any]]:
            return [result async for result in evaluate_all(failing, asks(20), journal=tmp_path / "j.db")]

        return await asyncio.gather(one(), one())

    assert [len(results) for results in asyncio.run(both())] == [20, 20]
    assert calls == 20
    assert [len(results) for results in asyncio.run(both())] == [20, 20]
    assert calls == 40


# ---------------------------------------------------------------------------------------------------------------------
# Times
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "settled", "again", "stands"),
    [("verdict", 2, True, True), ("failed", 1, True, False), ("failed", 1, False, True), ("verdict", 1, True, False)],
)
def test_what_was_asked_no_later_than_a_time_is_asked_again(
    status: str, settled: Any, again: bool, stands: bool, journal: Journal
) -> None:
    run, _ = journal.begin_run()
    with journal.writing(now=lambda: NINE) as batch:
        begun = batch.begin(key(), key().digest(), run, 0, again=True)
    assert isinstance(begun, Begun)
    add(journal, Outcome(begun.call, begun.item, status, settled, None, "{}"))
    assert journal.look_up([key().digest()])[key().digest()].asked_at == NINE
    for asked_after, fresh in ((NINE - timedelta(microseconds=1), True), (NINE, False)):
        with journal.writing() as batch:
            found = batch.begin(key(), key().digest(), run, begun.call, again=again, asked_after=asked_after)
            assert isinstance(found, Found if fresh and stands else Begun)
            if isinstance(found, Begun):
                batch.add(Outcome(found.call, found.item, "cancelled", 0), release=True)
    with journal.writing() as batch:  # what a run beside this one has just asked stands, whatever its time
        assert isinstance(batch.begin(key(), key().digest(), run, 0, again=True, asked_after=NINE), Found)
    journal.end_run(run)


# ---------------------------------------------------------------------------------------------------------------------
# Notes
# ---------------------------------------------------------------------------------------------------------------------


def test_a_run_notes_what_it_says_of_itself_and_the_last_word_counts(journal: Journal) -> None:
    assert journal.notes() == []
    one, _ = journal.begin_run()
    other, _ = journal.begin_run()
    journal.note(other, "b", "two")
    for text in ("1", "2"):
        journal.note(one, "a", text)
    assert journal.notes() == [Note(one, "a", "2", True), Note(other, "b", "two", True)]
    journal.end_run(one)
    with Journal(journal.path) as opened:
        assert opened.notes("a") == [Note(one, "a", "2", False)]
        assert opened.notes("c") == []
    journal.end_run(other)


def test_the_last_word_of_a_run_that_ends_meanwhile_is_read(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    run, _ = journal.begin_run()
    journal.note(run, "a", "running")
    is_alive = journal._is_alive

    def ends_meanwhile(number: int) -> bool:
        if number in journal._alive:
            journal.note(number, "a", "finished")
            journal.end_run(number)
        return is_alive(number)

    with Journal(journal.path) as reader:
        monkeypatch.setattr(reader, "_is_alive", ends_meanwhile)
        assert reader.notes() == [Note(run, "a", "finished", False)]


def test_a_journal_of_before_there_were_notes_is_read_and_written(tmp_path: Path) -> None:
    list(evaluate_all_sync(judge, asks(2), journal=tmp_path / "j.db"))
    connection = sqlite3.connect(tmp_path / "j.db")
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    connection.close()
    # Runs that say nothing leave the file as an evalr that knows no notes would.
    assert "notes" not in tables
    with Journal(tmp_path / "j.db") as journal:
        run, _ = journal.begin_run()
        journal.note(run, "a", "1")
        journal.end_run(run)
        assert journal.totals().items == {"verdict": 2}


def test_what_some_runs_have_spent_is_told_from_what_others_have(journal: Journal) -> None:
    assert journal.spent([]) == Spent(0, 0, 0)
    one, before = journal.begin_run()
    other, _ = journal.begin_run()
    for run, name, cost in ((one, "t", 0.5), (one, "u", None), (other, "v", 2.0)):
        begun = begin(journal, name, run)
        add(journal, Outcome(begun.call, begun.item, "verdict", 2, cost, "{}"))
    begin(journal, "w", one)  # in flight: it may cost something
    assert journal.spent([one], since=before) == Spent(3, 0.5, 2)
    assert journal.spent([one, other]) == Spent(4, 2.5, 2)
    journal.end_run(one)  # it was never made
    journal.end_run(other)
    assert journal.spent([one]) == Spent(2, 0.5, 1)

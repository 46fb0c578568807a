"""Regeneration of a period: what is judged, what is asked again, and what other processes can read of it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from evalr import DuplicateError, FunctionEvaluator, InputError, JournalError, Rate, Skip, Verdict
from evalr.inputs import Activity, Session, Transcript, Wait
from evalr.logs import read
from evalr.runs import (
    Budget,
    Family,
    Journal,
    Limiter,
    Progress,
    Regeneration,
    RegenerationStatus,
    Strata,
    Stratum,
    grade_sync,
    regenerate,
    regenerate_sync,
    regeneration_status,
)

SOURCE = str(Path(__file__).resolve().parents[2] / "src")
FIRST = datetime(2026, 11, 1, tzinfo=UTC)
LAST = datetime(2026, 12, 1, tzinfo=UTC)
DAY = timedelta(days=1)
PERIOD: dict[str, Any] = {"since": FIRST, "until": LAST}


class Said(BaseModel):
    good: bool


@dataclass
class Judge:
    name: str = "outcome"
    version: str = "1"
    broken: set[str] = field(default_factory=set)
    asked: Counter[str] = field(default_factory=Counter)
    stop_at: int | None = None

    def evaluator(self) -> FunctionEvaluator[Transcript, Said]:
        def ask(given: Transcript) -> Said | Skip:
            if self.calls == self.stop_at:
                raise KeyboardInterrupt
            self.asked[str(given.id)] += 1
            if given.id in self.broken:
                raise ValueError("broken")
            return Skip("empty") if given.request == "" else Said(good=given.request == "good")

        return FunctionEvaluator(self.name, self.version, ask, Transcript, Said, inline=True)

    @property
    def calls(self) -> int:
        return self.asked.total()


def transcripts(count: int, *, at: datetime = FIRST, arm: str | None = None, name: str = "t") -> list[Transcript]:
    requests = ["good", "bad"]
    return [
        Transcript(id=f"{name}{n}", user=f"u{n}", at=at, arm=arm, request=requests[n % 4 == 0]) for n in range(count)
    ]


def done(run: Any) -> list[Any]:
    return list(run)


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "judged.db"


# ---------------------------------------------------------------------------------------------------------------------
# What is judged
# ---------------------------------------------------------------------------------------------------------------------


def test_a_sample_of_each_stratum_is_judged_and_stands_for_the_whole(journal: Path) -> None:
    judge = Judge()
    inputs = [
        *transcripts(40, arm="treatment", name="a"),
        *transcripts(8, at=FIRST + DAY, arm="control", name="b"),
        *transcripts(3, at=FIRST + DAY, name="c"),
    ]
    run = regenerate_sync(inputs, {"outcome": judge.evaluator()}, **PERIOD, journal=journal, n=10)
    results = done(run)
    status = run.status
    assert (judge.calls, len(results), status.inputs, status.total, status.done) == (21, 21, 21, 21, 21)
    assert status.strata == (
        Stratum(("2026-11-01", "treatment"), 40, 10),
        Stratum(("2026-11-02", "control"), 8, 8),
        Stratum(("2026-11-02", None), 3, 3),
    )
    weights = Counter(result.about.weight for result in results)
    assert weights == {4.0: 10, None: 11}
    assert status.families == {"outcome": {"graded": 21}}
    assert (status.state, status.calls, status.seen, status.left_out) == ("finished", 21, 51, {})
    good = Rate("good", of=Said, hits=lambda v: v.good)
    assert sum(result.about.weight or 1 for result in results) == 51
    assert "sampled" in good.estimate(results).flags


def test_a_period_is_half_open_and_what_is_not_judged_is_counted(journal: Path) -> None:
    moments = [FIRST - DAY, FIRST, LAST - timedelta(microseconds=1), LAST, None]
    inputs: list[Any] = [Transcript(id=f"t{n}", at=at, request="good") for n, at in enumerate(moments)]
    inputs.append(Session(id="s", activities=[Activity(at=FIRST, role="agent")]))
    judge = Judge()
    run = regenerate_sync(inputs, {"outcome": judge.evaluator()}, **PERIOD, journal=journal)
    done(run)
    assert set(judge.asked) == {"t1", "t2"}
    assert run.status.left_out == {"outside the period": 2, "without a time": 1, "session that no judge reads": 1}
    everything = regenerate_sync(inputs, {"outcome": judge.evaluator()}, since=None, until=None, journal=journal)
    done(everything)
    assert set(judge.asked) == {"t0", "t1", "t2", "t3", "t4"}


def test_a_log_is_read_and_its_stored_results_left_out(journal: Path, tmp_path: Path) -> None:
    lines = [given.model_dump_json() for given in transcripts(3)]
    value = {"completed": True, "quality": 4, "reason": "done"}
    about = {"kind": "transcript", "id": "t0"}
    lines.append(json.dumps({"type": "result", "evaluator": "completion", "value": value, "about": about}))
    (tmp_path / "log.jsonl").write_text("\n".join(lines))
    run = regenerate_sync(read(tmp_path / "log.jsonl"), {"o": Judge().evaluator()}, **PERIOD, journal=journal)
    assert len(done(run)) == 3
    assert run.status.left_out == {"stored result": 1}


@pytest.mark.parametrize("n", [None, 5])
def test_everything_may_be_judged(n: int | None, journal: Path) -> None:
    judge = Judge()
    run = regenerate_sync(iter(transcripts(12)), {"outcome": judge.evaluator()}, **PERIOD, journal=journal, n=n)
    results = done(run)
    assert (len(results), run.status.total, run.status.inputs) == ((12, 12, 12) if n is None else (5, 5, 5))
    assert (run.sample is None) is (n is None)
    assert len(run.status.strata) == (0 if n is None else 1)


def test_families_have_parts_and_reasons_of_their_own(journal: Path) -> None:
    def ask(given: Wait) -> Said:
        return Said(good=True)

    waits = FunctionEvaluator("waits", "1", ask, Wait, Said, inline=True)
    whole = FunctionEvaluator("whole", "1", lambda given: Said(good=True), Session, Said, inline=True)
    sessions = [
        Session(
            id=f"s{n}",
            user="u",
            activities=[
                Activity(at=FIRST + timedelta(minutes=step), role="agent" if step % 2 == 0 else "person")
                for step in range(2 * n)
            ]
            or [Activity(at=FIRST, role="person")],
        )
        for n in range(4)
    ]
    judges = {
        "whole": whole,
        "waits": Family(waits, lambda given: given.waits(now=LAST), none="the agent never acted"),
    }
    run = regenerate_sync(sessions, judges, **PERIOD, journal=journal, n=2)
    results = done(run)
    status = run.status
    assert status.families["whole"] == {"graded": 2}
    assert status.total == status.done == len(results)
    assert {result.about.weight for result in results} == {2.0}
    every = regenerate_sync(sessions, judges, **PERIOD, journal=journal, n=None)
    done(every)
    assert every.status.families == {"whole": {"graded": 4}, "waits": {"graded": 6}}
    assert every.status.nothing_to_ask == {"waits": {"the agent never acted": 1}}
    assert every.status.total == 10


def test_equal_inputs_and_parts_count_once(journal: Path) -> None:
    inputs = transcripts(3)
    part = Wait(id="w", session="s", since=FIRST)
    waits = FunctionEvaluator("waits", "1", lambda given: Said(good=True), Wait, Said, inline=True)
    judges = {"outcome": Judge().evaluator(), "waits": Family(waits, lambda given: [part, part])}
    run = regenerate_sync([*inputs, inputs[0]], judges, **PERIOD, journal=journal, n=None)
    assert len(done(run)) == 4
    assert (run.status.total, run.status.done, run.summary.duplicates) == (4, 4, 1)
    with pytest.raises(DuplicateError):
        done(regenerate_sync([*inputs, inputs[0]], judges, **PERIOD, journal=journal))


# ---------------------------------------------------------------------------------------------------------------------
# What is asked again
# ---------------------------------------------------------------------------------------------------------------------


def test_a_finished_one_asks_nothing_and_gives_everything(journal: Path) -> None:
    judge = Judge()
    inputs = transcripts(30)
    first = done(regenerate_sync(inputs, {"outcome": judge.evaluator()}, **PERIOD, journal=journal, n=10))
    run = regenerate_sync(reversed(inputs), {"outcome": judge.evaluator()}, **PERIOD, journal=journal, n=10)
    second = done(run)
    assert sorted(first, key=repr) == sorted(second, key=repr)
    assert (judge.calls, run.status.from_journal, run.status.calls, run.status.attempts) == (10, 10, 0, 1)
    unseen = regenerate_sync(inputs, {"outcome": judge.evaluator()}, **PERIOD, journal=journal, n=10, replay=False)
    assert done(unseen) == []
    assert (unseen.status.done, unseen.status.families) == (10, {"outcome": {"graded": 10}})


def test_a_stratum_that_grows_changes_weights_and_not_what_was_asked(journal: Path) -> None:
    judge = Judge()
    options = {**PERIOD, "journal": journal, "n": 10}
    done(regenerate_sync(transcripts(20), {"outcome": judge.evaluator()}, **options))
    before = set(judge.asked)
    results = done(regenerate_sync(transcripts(50), {"outcome": judge.evaluator()}, **options))
    assert {result.about.weight for result in results} == {5.0}
    assert all(count == 1 for count in judge.asked.values())
    assert len(set(judge.asked) - before) == judge.calls - 10 < 10


def test_failures_and_new_versions_are_asked_and_what_was_graded_on_demand_is_not(journal: Path) -> None:
    judge = Judge(broken={"t1"})
    inputs = transcripts(5)
    grade_sync(inputs[3], {"outcome": judge.evaluator()}, cache=journal)
    run = regenerate_sync(inputs, {"outcome": judge.evaluator()}, **PERIOD, journal=journal)
    done(run)
    assert (run.status.state, run.status.failed, run.status.from_journal) == ("finished", 1, 1)
    judge.broken.clear()
    done(regenerate_sync(inputs, {"outcome": judge.evaluator()}, **PERIOD, journal=journal))
    assert judge.asked == {"t0": 1, "t1": 2, "t2": 1, "t3": 1, "t4": 1}
    newer = Judge(version="2")
    done(regenerate_sync(inputs, {"outcome": newer.evaluator()}, **PERIOD, journal=journal))
    assert newer.calls == 5
    assert grade_sync(inputs[0], {"outcome": newer.evaluator()}, cache=journal)["outcome"].cached


def test_again_asks_everything_once_more_and_goes_on_where_it_was_left(journal: Path) -> None:
    judge = Judge()
    inputs = transcripts(10)
    options: dict[str, Any] = {**PERIOD, "journal": journal, "again": True, "limit": 1}
    judges = {"outcome": judge.evaluator()}
    done(regenerate_sync(inputs, judges, **PERIOD, journal=journal))
    part = regenerate_sync(inputs, judges, **options, budget=Budget(calls=4))
    done(part)
    assert (part.status.state, part.status.not_done) == ("incomplete", {"budget of 4 calls used up": 6})
    assert judge.calls == 14
    rest = regenerate_sync(inputs, judges, **options)
    done(rest)
    assert set(judge.asked.values()) == {2}
    assert (rest.status.state, rest.status.attempts, rest.status.calls) == ("finished", 2, 10)
    done(regenerate_sync(inputs, judges, **options))
    assert set(judge.asked.values()) == {3}


def test_costs_add_up_over_attempts_and_one_that_is_unknown_is_not_0(journal: Path) -> None:
    costs: Iterator[float | None] = iter([0.25, None, 0.5, 0.25, 1.0])

    class Paid:
        name, version, verdict_type, input_type = "paid", "1", Said, Transcript

        async def evaluate(self, given: Transcript, /) -> Verdict[Said]:
            return Verdict(Said(good=True), "paid", "1", given.about(), cost=next(costs))

    options: dict[str, Any] = {**PERIOD, "journal": journal, "limit": 1}
    first = regenerate_sync(transcripts(5), {"outcome": Paid()}, **options, budget=Budget(calls=3))
    done(first)
    assert (first.status.cost, first.status.unknown_costs, first.status.calls) == (0.75, 1, 3)
    second = regenerate_sync(transcripts(5), {"outcome": Paid()}, **options)
    done(second)
    for status in (second.status, regeneration_status(journal)):
        assert (status.cost, status.unknown_costs, status.calls, status.attempts) == (2.0, 1, 5, 2)
    assert "≥ $2.00" in str(second.status)


# ---------------------------------------------------------------------------------------------------------------------
# What is said of it
# ---------------------------------------------------------------------------------------------------------------------


def test_its_status_is_read_from_the_journal(journal: Path) -> None:
    judge = Judge(broken={"t1"})
    run = regenerate_sync(transcripts(30), {"outcome": judge.evaluator()}, **PERIOD, journal=journal, n=20)
    assert (run.name, run.status.state, run.status.total) == ("2026-11-01 to 2026-12-01: outcome", "running", None)
    done(run)
    found = regeneration_status(journal)
    assert found == run.status
    assert regeneration_status(journal, run.name) == found
    assert (found.state, found.done, found.total, found.process) == ("finished", 20, 20, os.getpid())
    assert found.started_at <= found.updated_at
    assert found.ended_at is not None
    assert found.judges == {"outcome": ["outcome@1"]}
    assert found.to_dict()["strata"] == [{"name": ["2026-11-01", None], "seen": 30, "taken": 20}]
    assert json.loads(json.dumps(found.to_dict()))["state"] == "finished"
    with Journal(journal) as opened:
        assert regeneration_status(opened) == found


def test_several_are_told_apart_by_name(journal: Path) -> None:
    judges = {"outcome": Judge().evaluator()}
    done(regenerate_sync(transcripts(3), judges, **PERIOD, journal=journal, name="november"))
    done(regenerate_sync(transcripts(2), judges, since=None, until=LAST, journal=journal))
    assert regeneration_status(journal, "november").done == 3
    assert regeneration_status(journal).name == "any time to 2026-12-01: outcome"
    with pytest.raises(
        InputError, match=r"no regeneration named 'december' in this journal; it has 'any time to .*', 'n"
    ):
        regeneration_status(journal, "december")


def test_what_is_not_there_has_no_status_and_is_not_made(journal: Path) -> None:
    with pytest.raises(InputError, match="there is no such journal"):
        regeneration_status(journal)
    assert not journal.exists()
    Journal(journal).close()
    with pytest.raises(InputError, match="there is no regeneration in this journal; it has none"):
        regeneration_status(journal)


def test_an_error_is_told(journal: Path) -> None:
    def inputs() -> Iterator[Transcript]:
        yield from transcripts(3)
        raise OSError("the disk is gone \ud83d")

    with pytest.raises(OSError, match="the disk is gone"):
        done(regenerate_sync(inputs(), {"outcome": Judge().evaluator()}, **PERIOD, journal=journal))
    found = regeneration_status(journal)
    assert (found.state, found.done) == ("failed", 0)
    assert found.error is not None
    assert found.error.startswith("OSError: the disk is gone")
    again = regenerate_sync(transcripts(3), {"outcome": Judge().evaluator()}, **PERIOD, journal=journal)
    done(again)
    assert (again.status.attempts, again.status.error, again.status.state) == (2, None, "finished")


def test_one_that_is_left_early_is_interrupted_and_can_be_gone_on_with(journal: Path) -> None:
    judge = Judge()
    inputs = transcripts(200)
    with regenerate_sync(inputs, {"outcome": judge.evaluator()}, **PERIOD, journal=journal, limit=2) as run:
        next(run)
    found = regeneration_status(journal)
    assert found.state == "interrupted"
    assert found.ended_at is not None
    assert judge.calls < 200
    rest = regenerate_sync(inputs, {"outcome": judge.evaluator()}, **PERIOD, journal=journal)
    assert len(done(rest)) == 200
    assert (rest.status.attempts, rest.status.started_at) == (2, found.started_at)
    assert judge.calls <= 200 + 4


def test_one_that_nobody_looks_at_any_more_ends_by_itself(journal: Path) -> None:
    async def ask(given: Transcript) -> Said:
        await asyncio.sleep(0.01)
        return Said(good=True)

    async def leave() -> RegenerationStatus:
        judge = FunctionEvaluator("outcome", "1", ask, Transcript, Said)
        async for _ in regenerate(transcripts(200), {"outcome": judge}, **PERIOD, journal=journal, limit=2):
            break
        for _ in range(100):
            await asyncio.sleep(0.02)
            found = regeneration_status(journal)
            if found.state != "running":
                break
        return found

    assert asyncio.run(leave()).state == "interrupted"


def test_progress_has_the_total_and_is_written_while_it_runs(journal: Path) -> None:
    seen: list[Progress] = []
    written: list[RegenerationStatus] = []

    async def ask(given: Transcript) -> Said:
        await asyncio.sleep(0.15)
        return Said(good=True)

    async def watch() -> Regeneration:
        judge = FunctionEvaluator("outcome", "1", ask, Transcript, Said)
        run = regenerate(transcripts(40), {"o": judge}, **PERIOD, journal=journal, limit=4, progress=seen.append)
        written.extend([regeneration_status(journal) async for _ in run])
        return run

    run = asyncio.run(watch())
    assert {progress.total for progress in seen} <= {None, 40}
    assert (seen[-1].done, seen[-1].total, seen[-1].over) == (40, 40, True)
    moments = [each.updated_at for each in written if each.state == "running"]
    steps = [later - earlier for earlier, later in zip(sorted(set(moments)), sorted(set(moments))[1:], strict=False)]
    assert len(steps) >= 2
    assert min(steps) > timedelta(seconds=0.4)
    assert [each.done for each in written] == sorted(each.done for each in written)
    assert any(0 < each.done < 40 and each.rate and each.left for each in written)
    assert run.status.rate is None


def test_a_status_prints_in_one_line(journal: Path) -> None:
    judge = Judge(broken={"t1"})
    inputs = [*transcripts(30), Transcript(id="e", at=FIRST, request="")]
    run = regenerate_sync(inputs, {"outcome": judge.evaluator()}, **PERIOD, journal=journal, name="no\x1b[v")
    done(run)
    assert str(run.status) == ("no\\x1b[v: finished · 31 of 31 · 1 failed · 1 skipped · 31 of 31 inputs · cost unknown")


def test_names_with_lone_surrogates_can_be_stored(journal: Path) -> None:
    by: Strata = lambda given: chr(0xD83D)  # noqa: E731
    judges = {"outcome": Judge().evaluator()}
    run = regenerate_sync(transcripts(2), judges, **PERIOD, journal=journal, name="x\ud83d", stratum=by)
    done(run)
    assert regeneration_status(journal, "x\ud83d") == run.status


def test_what_another_version_wrote_is_said_to_be_that(journal: Path) -> None:
    with Journal(journal) as opened:
        run, _ = opened.begin_run()
        opened.note(run, "november", "{}")
        opened.end_run(run)
        with pytest.raises(JournalError, match="of the latest regeneration cannot be read"):
            regeneration_status(opened)
        again = regenerate_sync(transcripts(2), {"outcome": ok}, **PERIOD, journal=opened, name="november")
        done(again)
        assert regeneration_status(opened) == again.status


ok = Judge().evaluator()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"since": datetime(2026, 11, 1)}, "since=.* must be a datetime with its time zone"),  # noqa: DTZ001
        ({"until": "2026-12-01"}, "until='2026-12-01' must be a datetime"),
        ({"since": LAST, "until": LAST}, "the period is empty"),
        ({"n": 0}, "n=0 must be a whole number from 1, or None"),
        ({"timeout": -1}, "timeout=-1 must be seconds"),
        ({"limit": Limiter(4, tokens_per_minute=100)}, "'outcome' has no expected_tokens"),
        ({"name": ""}, "name='' must be a text"),
        ({"stratum": ()}, "at least one key"),
        ({"tz": "Nowhere/At-all"}, "Nowhere"),
        ({"judges": {}}, "at least one family"),
        ({"inputs": 3}, "an iterable of inputs, not int"),
    ],
)
def test_what_cannot_be_used_is_said_before_anything_is_opened(
    options: dict[str, Any], words: str, journal: Path
) -> None:
    given = {"inputs": [], "judges": {"outcome": ok}, **PERIOD, "journal": journal, **options}
    with pytest.raises(InputError, match=words):
        regenerate(given.pop("inputs"), given.pop("judges"), **given)
    assert not journal.exists()


@pytest.mark.parametrize("item", ["text", None])
def test_what_is_no_input_ends_it(item: Any, journal: Path) -> None:
    with pytest.raises(InputError, match=r"item 1 is a .*, and evaluators read inputs"):
        done(regenerate_sync([*transcripts(1), item], {"outcome": ok}, **PERIOD, journal=journal))
    assert regeneration_status(journal).state == "failed"


def test_an_input_that_only_some_families_read_is_an_error(journal: Path) -> None:
    sessions = FunctionEvaluator("sessions", "1", lambda given: Said(good=True), Session, Said, inline=True)
    with pytest.raises(InputError, match="family 'sessions' reads Session, and transcript 't0'"):
        done(regenerate_sync(transcripts(1), {"outcome": ok, "sessions": sessions}, **PERIOD, journal=journal))


# ---------------------------------------------------------------------------------------------------------------------
# Processes
# ---------------------------------------------------------------------------------------------------------------------

CHILD = """
import asyncio, os, sys
from datetime import UTC, datetime
from pydantic import BaseModel
from evalr import FunctionEvaluator
from evalr.inputs import Transcript
from evalr.runs import regenerate

journal, bill, wait, again = sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4] == "again"

class Said(BaseModel):
    good: bool

async def ask(given):
    with open(bill, "a") as file:
        file.write(given.id + "\\n")
    while os.path.exists(bill + ".hold"):
        await asyncio.sleep(0.01)
    await asyncio.sleep(wait)
    return Said(good=True)

judge = FunctionEvaluator("outcome", "1", ask, Transcript, Said)
first, last = datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC)
inputs = [Transcript(id=f"t{n}", at=first, request="r") for n in range(60)]

async def main():
    run = regenerate(inputs, {"outcome": judge}, since=first, until=last, journal=journal, n=40, limit=4, again=again)
    print("begun", flush=True)
    async for result in run:
        pass
    print(run.status.state, run.status.done, run.status.attempts, flush=True)

asyncio.run(main())
"""


class Child:
    def __init__(self, journal: Path, bill: Path, wait: float, *, again: bool = False) -> None:
        command = [sys.executable, "-c", CHILD, str(journal), str(bill), str(wait), "again" if again else ""]
        env = {**os.environ, "PYTHONPATH": SOURCE}
        self.process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)

    def finish(self) -> str:
        said, _ = self.process.communicate(timeout=60)
        assert self.process.returncode == 0
        return said.split("\n")[1]

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate(timeout=60)


def until(journal: Path, least: int) -> RegenerationStatus:
    """The status as soon as so much is done."""
    for _ in range(1500):
        if journal.exists():
            try:
                found = regeneration_status(journal)
            except InputError:  # it has not begun yet
                pass
            else:
                if found.done >= least:
                    return found
        time.sleep(0.01)
    raise AssertionError("nothing was done")


def started_together(journal: Path, bill: Path, wait: float, *, again: bool = False) -> tuple[Child, Child]:
    """Two of which the second begins while the first is at work."""
    one = Child(journal, bill, wait, again=again)
    until(journal, 0)
    other = Child(journal, bill, wait, again=again)
    for _ in range(1500):
        if regeneration_status(journal).attempts == 2:
            return one, other
        time.sleep(0.01)
    raise AssertionError("the second did not begin")


@pytest.mark.parametrize("again", [False, True])
def test_a_killed_one_is_seen_at_once_and_goes_on_where_it_was(again: bool, journal: Path, tmp_path: Path) -> None:
    bill = tmp_path / "bill"
    child = Child(journal, bill, 0.1, again=again)
    running = until(journal, 4)
    assert (running.state, running.total, running.process) == ("running", 40, child.process.pid)
    assert (running.attempts, running.ended_at, running.read) == (1, None, 60)
    child.kill()
    killed = regeneration_status(journal)
    asked = len(bill.read_text().split())
    assert (killed.state, killed.ended_at, killed.rate) == ("interrupted", None, None)
    assert 4 <= killed.done <= killed.calls < 40
    assert killed.done <= asked < 40
    assert killed.calls <= asked + 4  # a call is written down before it is made
    assert Child(journal, bill, 0.0, again=again).finish() == "finished 40 2"
    finished = regeneration_status(journal)
    assert (finished.state, finished.done, finished.attempts) == ("finished", 40, 2)
    counts = Counter(bill.read_text().split())
    assert len(counts) == 40
    # Two times four: those in flight, or on their way to the disk, at the kill.
    assert counts.total() <= finished.calls <= 40 + 2 * 4


@pytest.mark.parametrize("again", [False, True])
def test_two_at_once_ask_each_question_once(again: bool, journal: Path, tmp_path: Path) -> None:
    bill, hold = tmp_path / "bill", tmp_path / "bill.hold"
    hold.touch()
    one, other = started_together(journal, bill, 0.02, again=again)
    hold.unlink()
    assert [one.finish().split()[:2], other.finish().split()[:2]] == [["finished", "40"]] * 2
    assert set(Counter(bill.read_text().split()).values()) == {1}
    found = regeneration_status(journal)
    assert (found.state, found.done, found.calls, found.attempts) == ("finished", 40, 40, 2)


def test_one_that_is_killed_beside_another_does_not_hide_it(journal: Path, tmp_path: Path) -> None:
    bill, hold = tmp_path / "bill", tmp_path / "bill.hold"
    hold.touch()
    one, other = started_together(journal, bill, 0.02)
    other.kill()
    found = regeneration_status(journal)
    assert (found.state, found.process) == ("running", one.process.pid)
    hold.unlink()
    assert one.finish() == "finished 40 1"
    assert regeneration_status(journal).state == "finished"


def test_many_may_look_at_a_killed_one_at_the_same_time(journal: Path, tmp_path: Path) -> None:
    child = Child(journal, tmp_path / "bill", 0.5)
    until(journal, 0)
    child.kill()
    states: list[str] = []

    def look() -> None:
        with Journal(journal) as opened:
            states.extend(regeneration_status(opened).state for _ in range(100))

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Counter(states) == {"interrupted": 400}


# ---------------------------------------------------------------------------------------------------------------------
# A journal that fails
# ---------------------------------------------------------------------------------------------------------------------


def test_a_journal_that_cannot_be_written_ends_it_and_nobody_waits(
    journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: Any, **options: Any) -> None:
        raise JournalError("the disk is full")

    for method in ("begin_run", "note"):
        with monkeypatch.context() as broken:
            broken.setattr(Journal, method, full)
            with pytest.raises(JournalError, match="the disk is full"):
                done(regenerate_sync(transcripts(3), {"outcome": ok}, **PERIOD, journal=journal))
    assert not (journal.parent / "judged.db-locks").exists()
    run = regenerate_sync(transcripts(3), {"outcome": ok}, **PERIOD, journal=journal)
    done(run)
    assert (run.status.state, run.status.attempts) == ("finished", 1)


def test_notes_that_fail_later_end_it(journal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    note = Journal.note
    said: list[int] = []

    def fails_later(self: Journal, *args: Any, **options: Any) -> None:
        said.append(1)
        if len(said) == 2:
            raise JournalError("the disk is full")
        note(self, *args, **options)

    async def ask(given: Transcript) -> Said:
        await asyncio.sleep(0.3)
        return Said(good=True)

    monkeypatch.setattr(Journal, "note", fails_later)
    judge = FunctionEvaluator("outcome", "1", ask, Transcript, Said)
    with pytest.raises(JournalError, match="the disk is full"):
        done(regenerate_sync(transcripts(3), {"outcome": judge}, **PERIOD, journal=journal, limit=1))
    assert regeneration_status(journal).state == "failed"

"""How fast and how lean a log is read and measured, beside Python's `json.loads` on the same lines.

    python benchmarks/bench_jsonl.py [--sessions 200000] [--million]

Each row runs in a process of its own on one generated log, so that its peak of memory is its own. The log is the same
for the same number of sessions: sessions of 10 activities, a quarter as many users as sessions. Times are of the
processor, without imports; where several processes read, they are of the wall, from before they are started. "Every
measure" is everything that applies to sessions: drop-off and its decided share, the share of waits that ended within
the window and the typical wait, clustered by user, with duplicates looked for. "Into tallies" is that without the
estimates.

The peak of memory is that of the process, as the system has it. Of several it is the largest sum seen at one time, of
what each of them has and its part of what they share (PSS, every 20 ms); left out where the system does not tell.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any, NamedTuple

SEED = 20261130
ACTIVITIES = 10
BEGIN = datetime(2026, 9, 1, tzinfo=UTC)
NOW = datetime(2026, 11, 30, 9, tzinfo=UTC)


def write_log(path: Path, sessions: int) -> None:
    """Sessions that a person begins and in which the agent acts more often; some close, some wait for a decision."""
    random.seed(SEED)
    with path.open("w", encoding="utf-8") as file:
        for number in range(sessions):
            moment = BEGIN + timedelta(seconds=random.randrange(85 * 86_400))
            activities = []
            for position in range(ACTIVITIES):
                moment += timedelta(milliseconds=round(1000 * random.expovariate(1 / 200)))
                role = "agent" if position and random.random() < 0.6 else "person"
                kind = "proposal" if role == "agent" and random.random() < 0.1 else "message"
                kind = "resolution" if role == "person" and random.random() < 0.1 else kind
                kind = "closed" if position == ACTIVITIES - 1 and random.random() < 0.3 else kind
                activities.append(
                    {"at": f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z", "role": role, "kind": kind}
                )
            user = random.randrange(max(1, sessions // 4))
            file.write(json.dumps({"id": f"s{number:07d}", "user": f"u{user:06d}", "activities": activities}) + "\n")


# The jobs. Each returns something that shows it did its work.


def load_json(path: Path) -> str:
    count = 0
    with path.open("rb") as file:
        for line in file:
            count += len(json.loads(line)["activities"])
    return f"{count:,} activities"


def read_only(path: Path) -> str:
    from evalr.logs.jsonl import reader

    log = reader.open(path)
    count = sum(1 for _ in log)
    return f"{count:,} sessions"


def drop_off(path: Path) -> str:
    from evalr.logs.jsonl import reader
    from evalr.measures import drop_off_evaluator, drop_off_rate

    evaluator = drop_off_evaluator(now=NOW)
    tally, add = drop_off_rate.collector()
    for session in reader.open(path):
        add(evaluator.evaluate_inline(session))
    return str(drop_off_rate.estimate(tally))


def all_measures(path: Path) -> str:
    from evalr.inputs import Session
    from evalr.logs.jsonl import reader
    from evalr.measures.drop_off import measure as drops
    from evalr.measures.waits import measure as waits

    lanes: list[tuple[Any, Any, list[tuple[list[Any], Any, Callable[[Any], None]]]]] = []
    for measure in (drops, waits):
        settings = measure.settled({})
        shared: dict[Any, tuple[list[Any], Any, Callable[[Any], None]]] = {}
        for summary in measure.summaries(**settings):
            if summary.reads() not in shared:
                shared[summary.reads()] = ([], *summary.collector())
            shared[summary.reads()][0].append(summary)
        assert measure.evaluator is not None
        lanes.append((measure, measure.evaluator(now=NOW, **settings), list(shared.values())))

    for given in reader.open(path):
        assert isinstance(given, Session)
        for measure, evaluator, tallies in lanes:
            parts: Iterable[Any] = (given,) if measure.split is None else measure.split(given, NOW)
            for part in parts:
                result = evaluator.evaluate_inline(part)
                for _, _, add in tallies:
                    add(result)
    estimates = [
        summary.estimate(tally) for *_, tallies in lanes for summaries, tally, _ in tallies for summary in summaries
    ]
    return "; ".join(str(estimate) for estimate in estimates)


def into_tallies(path: Path, processes: int = 1) -> str:
    from evalr import bulk

    found = bulk.tallies(path, now=NOW, processes=processes)
    return ", ".join(f"{name} {tally.entries[None].results:,}" for name, tally in found.items())


def bulk_report(path: Path, processes: int = 1) -> str:
    from evalr import bulk

    return "; ".join(str(row.estimate) for row in bulk.report(path, now=NOW, processes=processes).rows)


def text(path: Path) -> str:
    from evalr import bulk

    return f"{len(bulk.report(path, now=NOW).text()):,} characters"


def page(path: Path) -> str:
    from evalr import bulk

    found = bulk.report(path, now=NOW, details=True)
    return f"{len(found.text()):,} characters, and a page of {len(found.to_html().encode()) / 1e6:.2f} MB"


class Job(NamedTuple):
    title: str
    run: Callable[[Path], str]
    processes: int = 1


JOBS = {
    "json": Job("json.loads alone", load_json),
    "read": Job("read", read_only),
    "drop_off": Job("read, drop-off, rate clustered by user", drop_off),
    "all": Job("read, every measure that applies", all_measures),
    "tallies": Job("evalr.bulk, every measure, into tallies", into_tallies),
    "bulk": Job("evalr.bulk, every measure", bulk_report),
    "text": Job("evalr.bulk, a report as text", text),
    "page": Job("evalr.bulk, the same and a page", page),
    "two_tallies": Job("evalr.bulk with two processes, into tallies", partial(into_tallies, processes=2), 2),
    "two": Job("evalr.bulk with two processes", partial(bulk_report, processes=2), 2),
}


# ---------------------------------------------------------------------------------------------------------------------
# Measuring
# ---------------------------------------------------------------------------------------------------------------------


class TreePeak(Thread):
    """The most memory that this process and its children have at one time, in bytes, where the system says so."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most: int | None = None
        self._stop_it = Event()

    def run(self) -> None:
        while not self._stop_it.wait(0.02):
            try:
                found = sum(map(shared_out, [os.getpid(), *children()]))
            except OSError:  # one has just ended, or this system has no such files
                continue
            self.most = max(found, self.most or 0)

    def stop(self) -> int | None:
        self._stop_it.set()
        self.join()
        return self.most


def children() -> list[int]:
    files = Path("/proc/self/task").glob("*/children")
    return [int(child) for file in files for child in file.read_text().split()]


def shared_out(process: int) -> int:
    """What a process has, and its part of what it shares."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def run(job: Job, path: Path, *, watched: bool) -> None:
    """One job, in this process: prints its seconds, its peak of memory, and what it found."""
    import evalr.bulk
    import evalr.estimates.duration
    import evalr.logs  # noqa: F401  the imports are no part of the job, though their memory is

    tree = TreePeak()
    if watched:
        tree.start()
    wall, processor = time.perf_counter(), time.process_time()
    found = job.run(path)
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    peak = tree.stop() if watched else own
    print(json.dumps({"wall": wall, "processor": processor, "peak": peak, "found": found}))


def measured(name: str, path: Path) -> Any:
    """What `run` prints of a job; one of several processes runs again to be watched, which takes a processor's time."""
    command = [sys.executable, __file__, "--job", name, "--log", str(path)]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    if JOBS[name].processes > 1:
        again = subprocess.run([*command, "--watched"], check=True, capture_output=True, text=True).stdout
        found["peak"] = json.loads(again)["peak"]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=200_000)
    parser.add_argument("--million", action="store_true", help="the same as --sessions 1000000")
    parser.add_argument("--log", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--job", choices=JOBS, help=argparse.SUPPRESS)
    parser.add_argument("--watched", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        run(JOBS[options.job], options.log, watched=options.watched)
        return
    sessions = 1_000_000 if options.million else options.sessions

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sessions.jsonl"
        write_log(path, sessions)
        print(f"{sessions:,} sessions of {ACTIVITIES} activities, {path.stat().st_size / 1e6:,.0f} MB\n")
        print("| job | s | µs a session | share of json.loads | peak MB |")
        print("|---|---|---|---|---|")
        notes, alone = [], None
        for name, job in JOBS.items():
            ran = measured(name, path)
            alone = alone or ran
            clock = "processor" if job.processes == 1 else "wall"
            seconds = ran[clock]
            peak = "" if ran["peak"] is None else f"{ran['peak'] / 1e6:.0f}"
            each, share = 1e6 * seconds / sessions, alone[clock] / seconds
            print(f"| {job.title} | {seconds:.2f} | {each:.1f} | {share:.2f} | {peak} |", flush=True)
            notes.append(f"- {job.title}: {ran['found']}")
        print("\n" + "\n".join(notes))


if __name__ == "__main__":
    main()

"""How fast and how lean a log is read and measured, beside Python's `json.loads` on the same lines.

    python benchmarks/bench_jsonl.py [--sessions 200000] [--million]

Each row runs in a process of its own on one generated log, so that its peak of memory is its own. The log is the same
for the same number of sessions: sessions of 10 activities, a quarter as many users as sessions. Times are of the
processor, without imports. "All measures" is everything that applies to sessions: drop-off and its decided share, the
share of waits that ended within the window and the typical wait, each with its interval clustered by user.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

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


JOBS: dict[str, tuple[str, Callable[[Path], str]]] = {
    "json": ("json.loads alone", load_json),
    "read": ("read", read_only),
    "drop_off": ("read, drop-off, rate clustered by user", drop_off),
    "all": ("read, every measure that applies", all_measures),
}


def run(job: str, path: Path) -> None:
    """One job, in this process: prints its seconds, its peak of memory in MB, and what it found."""
    import evalr.estimates.duration
    import evalr.logs  # noqa: F401  the imports are no part of the job, though their memory is

    start = time.process_time()
    found = JOBS[job][1](path)
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6
    print(json.dumps({"seconds": seconds, "peak": peak, "found": found}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=200_000)
    parser.add_argument("--million", action="store_true", help="the same as --sessions 1000000")
    parser.add_argument("--log", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--job", choices=JOBS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        run(options.job, options.log)
        return
    sessions = 1_000_000 if options.million else options.sessions

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sessions.jsonl"
        write_log(path, sessions)
        print(f"{sessions:,} sessions of {ACTIVITIES} activities, {path.stat().st_size / 1e6:,.0f} MB\n")
        print("| job | s | µs a session | share of json.loads | peak MB |")
        print("|---|---|---|---|---|")
        notes, alone = [], None
        for job, (title, _) in JOBS.items():
            command = [sys.executable, __file__, "--job", job, "--log", str(path)]
            ran = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            alone = alone or ran["seconds"]
            each = 1e6 * ran["seconds"] / sessions
            print(
                f"| {title} | {ran['seconds']:.2f} | {each:.1f} | {alone / ran['seconds']:.2f} | {ran['peak']:.0f} |",
                flush=True,
            )
            notes.append(f"- {title}: {ran['found']}")
        print("\n" + "\n".join(notes))


if __name__ == "__main__":
    main()

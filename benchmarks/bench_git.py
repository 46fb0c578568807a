"""How long reading and measuring a git repository takes, and how much memory, beside `git log -p` on the same commits.

    python benchmarks/bench_git.py [--commits 13000] [--repository DIRECTORY]

Without a repository of your own, one is made up from a seed: Python-like files of 20 to 600 lines, one in three commits
by an agent after the first third, every twentieth commit on a branch that is merged soon after. Each job runs in a
process of its own; times are of the processors, git's own processes included, whose largest has a peak of its own.
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
from collections.abc import Iterator
from pathlib import Path

SEED = 20261130
PERSON, AGENT = "A Person <p@example.org>", "A Person (aider) <p@example.org>"
BEGIN = 1_600_000_000


def commit_stream(commits: int) -> Iterator[bytes]:
    """A fast-import stream."""
    draw = random.Random(SEED)
    words = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz_", k=draw.randint(2, 10))) for _ in range(3000)]
    files: dict[str, list[str]] = {}
    now = BEGIN

    def line() -> str:
        return "    " * draw.randint(0, 3) + " ".join(draw.choices(words, k=draw.randint(1, 9)))

    def edit() -> str:
        if not files or draw.random() < 0.05:
            path = f"src/{draw.choice(words[:40])}/{draw.choice(words)}.py"
            files[path] = [line() for _ in range(draw.randint(20, 600))]
            return path
        path = draw.choice(list(files)[-200:] if draw.random() < 0.7 else list(files))
        lines = files[path]
        for _ in range(draw.randint(1, 6)):
            place, size = draw.randrange(len(lines) + 1), draw.randint(0, 8)
            lines[place : place + draw.randint(0, size)] = [line() for _ in range(draw.randint(0, size))]
        if not lines:
            lines.append(line())
        return path

    def commit(number: int, branch: str, parents: list[int], paths: set[str]) -> bytes:
        author = AGENT if number > commits / 3 and draw.random() < 0.35 and len(parents) < 2 else PERSON
        head = f"commit refs/heads/{branch}\nmark :{number}\nauthor {author} {now} +0000\n"
        head += f"committer {PERSON} {now} +0000\ndata 5\nwork\n"
        head += "".join(f"{how} :{parent}\n" for how, parent in zip(("from", "merge"), parents, strict=False))
        pieces = [head.encode()]
        for path in sorted(paths):
            text = ("\n".join(files[path]) + "\n").encode()
            pieces.append(f"M 100644 inline {path}\ndata {len(text)}\n".encode() + text + b"\n")
        return b"".join(pieces)

    tip, number = 0, 0
    while number < commits:
        now += draw.randint(30, 7_000)
        number += 1
        changed = {edit() for _ in range(draw.choice([1, 1, 1, 2, 2, 3, 5]))}
        if number % 20 or number + 2 > commits or not tip:
            yield commit(number, "main", [tip] if tip else [], changed)
        else:
            yield commit(number, "side", [tip], changed)
            side, number = number, number + 2
            other = {edit()} - changed
            yield commit(number - 1, "main", [tip], other)
            yield commit(number, "main", [number - 1, side], changed)
        tip = number


def make_repository(folder: Path, commits: int) -> None:
    run = ["git", "-C", str(folder)]
    subprocess.run([*run, "init", "--quiet"], check=True)
    subprocess.run([*run, "symbolic-ref", "HEAD", "refs/heads/main"], check=True)
    with subprocess.Popen([*run, "fast-import", "--quiet"], stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        for piece in commit_stream(commits):
            process.stdin.write(piece)
    subprocess.run([*run, "gc", "--quiet"], check=True)


def log_patches(path: Path) -> str:
    command = ["git", "-C", str(path), "log", "-p", "--no-merges"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        size = sum(len(piece) for piece in iter(lambda: process.stdout.read(1 << 20), b""))  # type: ignore[union-attr]
    return f"{size / 1e6:,.0f} MB of patches"


def read_all(path: Path) -> str:
    from evalr.logs import read

    log = read(path)
    drafts = sum(revision.role == "agent" for history in log for revision in history.revisions)  # type: ignore[union-attr]
    return f"{drafts:,} drafts of {log.records:,} revisions"


def report_all(path: Path) -> str:
    from evalr import report

    return "; ".join(str(row.estimate) for row in report(path).rows)


JOBS = {
    "patches": ("git log -p --no-merges", log_patches),
    "read": ("read the histories, no text", read_all),
    "report": ("read and measure: retention, rewrites, followed, time to rewrite", report_all),
}


def run_job(job: str, path: Path) -> None:
    found = JOBS[job][1](path)
    own, others = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    seconds = own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime
    unit = 1 if sys.platform == "darwin" else 1024
    print(
        json.dumps(
            {"s": seconds, "own": own.ru_maxrss * unit / 1e6, "git": others.ru_maxrss * unit / 1e6, "found": found}
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commits", type=int, default=13_000)
    parser.add_argument("--repository", type=Path)
    parser.add_argument("--job", choices=JOBS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        run_job(options.job, options.repository)
        return
    os.environ |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    with tempfile.TemporaryDirectory() as folder:
        path = options.repository or Path(folder)
        if options.repository is None:
            make_repository(path, options.commits)
        print("| job | s | beside git log -p | peak MB | git's peak MB |")
        print("|---|---|---|---|---|")
        notes, alone = [], None
        for job, (title, _) in JOBS.items():
            command = [sys.executable, __file__, "--job", job, "--repository", str(path)]
            ran = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            alone = alone or ran["s"]
            print(
                f"| {title} | {ran['s']:.2f} | {ran['s'] / alone:.2f} | {ran['own']:.0f} | {ran['git']:.0f} |",
                flush=True,
            )
            notes.append(f"- {title}: {ran['found']}")
        print("\n" + "\n".join(notes))


if __name__ == "__main__":
    main()

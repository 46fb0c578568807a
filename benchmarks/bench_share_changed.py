"""How much faster is `share_changed` than its definition with difflib, and does any text stall it? Prints markdown.

    python benchmarks/bench_share_changed.py [HISTORIES.jsonl]

A line of the file is a history with the texts of its revisions; without one, edits of made-up documents are timed.
Times are processor seconds, the best of five where jobs are compared, in turns so that a busy machine slows all alike.
Memory is what the texts' comparison adds to the peak of a fresh process.
"""

from __future__ import annotations

import json
import multiprocessing
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from difflib import SequenceMatcher
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

from evalr.measures.share_changed import align, changed_at_least, measure_change, share_changed

THRESHOLD = 0.2
RUNS = 5
LETTERS = "abcdefghijklmnopqrstuvwxyz"

Pair = tuple[str, str]
T = TypeVar("T")


def by_definition(before: str, after: str) -> float:
    if not before and not after:
        return 0.0
    a, b = before.splitlines(keepends=True), after.splitlines(keepends=True)
    same = 0
    for tag, a_low, a_high, b_low, b_high in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        old, new = "".join(a[a_low:a_high]), "".join(b[b_low:b_high])
        if tag == "equal":
            same += len(old)
        elif tag == "replace":
            same += sum(match.size for match in SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks())
    return 1 - 2 * same / (len(before) + len(after))


# --- texts ---------------------------------------------------------------------------------------------------------


def read_pairs(path: Path) -> list[Pair]:
    with path.open(encoding="utf-8") as file:
        histories = [json.loads(line)["revisions"] for line in file]
    return [pair for revisions in histories for pair in pairwise(revision["text"] for revision in revisions)]


def made_up_pairs(count: int = 300) -> list[Pair]:
    """Documents of 20 to 200 lines, each line replaced, dropped or edited with the same small chance."""
    chance = random.Random(20)
    words = ["".join(chance.choices(LETTERS, k=chance.randint(2, 9))) for _ in range(2_000)]

    def line() -> str:
        return " ".join(chance.choices(words, k=chance.randint(0, 12))) + "\n"

    def edited(lines: list[str], rate: float) -> Iterator[str]:
        for old in lines:
            kind = chance.choice(["replaced", "dropped", "edited"]) if chance.random() < rate else "kept"
            if kind == "replaced":
                yield line()
            elif kind == "edited":
                yield old.replace(chance.choice(LETTERS), chance.choice(words))
            elif kind == "kept":
                yield old

    documents = [[line() for _ in range(chance.randint(20, 200))] for _ in range(count)]
    return [("".join(lines), "".join(edited(lines, chance.choice([0.02, 0.1, 0.5])))) for lines in documents]


def large_pairs(lines: int, count: int) -> list[Pair]:
    """Files of that many lines, a fifth of them blank or a bracket, after five small edits."""
    chance = random.Random(lines)
    words = ["".join(chance.choices(LETTERS, k=chance.randint(2, 9))) for _ in range(2_000)]

    def line() -> str:
        return chance.choice(["\n", "    }\n", *[" ".join(chance.choices(words, k=6)) + "\n" for _ in range(8)]])

    def edited(old: list[str]) -> list[str]:
        new = list(old)
        for _ in range(5):
            place = chance.randrange(len(new))
            new[place : place + chance.randint(0, 3)] = [line() for _ in range(chance.randint(0, 3))]
        return new

    files = [[line() for _ in range(lines)] for _ in range(count)]
    return [("".join(file), "".join(edited(file))) for file in files]


def prose(size: int, seed: int) -> str:
    chance = random.Random(seed)
    words = ["".join(chance.choices(LETTERS, k=chance.randint(2, 9))) for _ in range(1_000)]
    return " ".join(chance.choices(words, k=size // 3))[:size]


def random_pair(letters: int, size: int) -> Pair:
    alphabet = LETTERS[:letters] if letters <= len(LETTERS) else "".join(map(chr, range(0x4E00, 0x4E00 + letters)))
    chance = random.Random(letters)
    return "".join(chance.choices(alphabet, k=size)), "".join(chance.choices(alphabet, k=size))


# --- timing --------------------------------------------------------------------------------------------------------


def timed(job: Callable[[], T]) -> tuple[float, T]:
    started = time.process_time()
    result = job()
    return time.process_time() - started, result


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    print(f"\n## {title}\n")
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(row) + " |")


def compare(title: str, pairs: Sequence[Pair], runs: int = RUNS) -> None:
    """Give it three pairs or more: the lines of the last two stay aligned."""
    turns = [
        (
            timed(lambda: [by_definition(*pair) for pair in pairs]),
            timed(lambda: [share_changed(*pair) for pair in pairs]),
            timed(lambda: [changed_at_least(*pair, THRESHOLD).changed for pair in pairs]),
            timed(lambda: [align(*pair).matches for pair in pairs]),
        )
        for _ in range(runs)
    ]
    defined, shared, decided, aligned = (min(seconds for seconds, _ in job) for job in zip(*turns, strict=True))
    truth, shares, decisions = (result for _, result in turns[0][:3])
    same = [sum(size for _, _, size in matches) for matches in turns[0][3][1]]
    verdicts = [share >= THRESHOLD for share in truth]
    same_shares = sum(share == true for share, true in zip(shares, truth, strict=True))
    same_sums = sum(
        size == round((1 - true) * (len(a) + len(b)) / 2) for size, true, (a, b) in zip(same, truth, pairs, strict=True)
    )
    same_verdicts = sum(changed == verdict for changed, verdict in zip(decisions, verdicts, strict=True))
    table(
        f"{title}: {len(pairs)} pairs, {sum(verdicts)} changed by {THRESHOLD} or more",
        ("", "total", "times as fast as difflib", "as the share", "equal to difflib"),
        [
            ("definition with difflib", f"{defined:.3f} s", "1", "", ""),
            ("share_changed", f"{shared:.3f} s", f"{defined / shared:.1f}", "1", f"{same_shares} of {len(pairs)}"),
            (
                f"changed_at_least {THRESHOLD}",
                f"{decided:.4f} s",
                f"{defined / decided:.1f}",
                f"{shared / decided:.1f}",
                f"{same_verdicts} of {len(pairs)}",
            ),
            (
                "align",
                f"{aligned:.3f} s",
                f"{defined / aligned:.1f}",
                f"{shared / aligned:.1f}",
                f"{same_sums} of {len(pairs)}",
            ),
        ],
    )


def peak() -> float:
    """The most memory that this process has held, in MB; 0 where the system does not tell."""
    # What getrusage says includes, on Linux, what the process that started this one held.
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024


def alone(pair: Pair) -> tuple[str, ...]:
    """What one pair takes in a process of its own."""
    changed_at_least("some text\n", "another text\n", THRESHOLD)
    before = peak()
    seconds, change = timed(lambda: measure_change(*pair))
    deciding, decision = timed(lambda: changed_at_least(*pair, THRESHOLD))
    same = "yes" if decision.changed == (change.share >= THRESHOLD) else "NO"
    method = change.method or "exact"
    return f"{seconds:.2f} s", f"{deciding:.3f} s", f"{change.share:.3f}", method, same, f"{peak() - before:.0f} MB"


def stalls(title: str, pairs: dict[str, Pair]) -> None:
    rows = []
    for name, pair in pairs.items():
        # A fresh process for each, so that one's peak is not another's.
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
            rows.append((name, *process.submit(alone, pair).result()))
    table(title, ("text", "share", "decision", "value", "method", "same verdict", "memory added"), rows)


def main(path: Path | None) -> None:
    print(f"# share_changed, on Python {sys.version.split()[0]}")
    if path:
        compare("Consecutive revisions", read_pairs(path))
    else:
        compare("Made-up edits", made_up_pairs())
    compare("Files of 3,000 lines, edited in five places", large_pairs(3_000, 10), 3)
    compare("Files of 20,000 lines, edited in five places", large_pairs(20_000, 3), 1)
    compare("One line of 8,000 characters, rewritten", [(prose(8_000, n), prose(8_000, -1 - n)) for n in range(3)], 1)
    stalls(
        "One line of 16,000 random characters",
        {f"of {letters} letters": random_pair(letters, 16_000) for letters in (2, 4, 28, 200, 5_000)},
    )
    words = prose(1_000_000, 1)
    stalls(
        "One line of 1 MB",
        {
            "prose, rewritten": (words, prose(1_000_000, 2)),
            "prose, one word added": (words, words[:500_000] + " added " + words[500_000:]),
            "half a MB of prose, rewritten": (words[:500_000], prose(500_000, 2)),
            "of 2 letters": random_pair(2, 1_000_000),
            "of 26 letters": random_pair(26, 1_000_000),
            "of 5,000 letters": random_pair(5_000, 1_000_000),
        },
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)

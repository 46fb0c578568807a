"""How often do the 95% intervals of a net win hold the truth? Simulated where it is known; prints a page.

    python benchmarks/coverage_net.py > benchmarks/coverage_net.md

Every cell has its own fixed seed, so the page changes only when a method does.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
from coverage import SIZES, Random, Seen, seeded, seen, summed_up, table

from evalr.estimates import contest
from evalr.estimates.contest import net_win, paired_difference
from evalr.estimates.mean import mean_interval
from evalr.tallies.contests import ContestMoments

RUNS = 2_000

# A p that is found by trying levels takes longest, no table shows it, and no interval depends on it.
contest.inverted_p = lambda *_: 1.0  # type: ignore[attr-defined]

GROUPS = (10, 20, 50, 200)
CHANGED = ((0.05, 0.05), (0.05, 0.0), (0.02, 0.01), (0.3, 0.1), (0.5, 0.5))
"""Shares gained and lost."""
HEAD = "{} `net_win` (default) | two clusters added | CR1 with t |"


def group_sizes(random: Random, groups: int, law: str) -> np.ndarray:
    if law == "1 to 8":
        return random.integers(1, 9, groups)
    return SIZES[law](random, groups) if law in SIZES else np.full(groups, int(law))


def own_shares(random: Random, groups: int, shares: Sequence[float], icc: float) -> np.ndarray:
    """How each group is gained, lost and the same: Dirichlet, so that two pairs of it correlate by `icc`."""
    if icc == 0:
        return np.tile(shares, (groups, 1))
    spread = np.array(
        [random.gamma(share * (1 / icc - 1), size=groups) if share else np.zeros(groups) for share in shares]
    )
    spread[int(np.argmax(shares))] += 1e-300
    return (spread / spread.sum(axis=0)).T


def all_three(columns: Sequence[list[Seen]], outcomes: ContestMoments, truth: float) -> None:
    net = outcomes.net()
    columns[0].append(seen(net_win(outcomes).interval, truth))
    columns[1].append(seen(mean_interval(net, bounds=(-1, 1)), truth))
    columns[2].append(seen(paired_difference(net).interval, truth))


def row(groups: int, law: str, icc: float, changed: tuple[float, float]) -> list[str]:
    gained, lost = changed
    shares = (gained, 1 - gained - lost, lost)
    random = seeded("net", groups, law, icc, changed)
    columns: list[list[Seen]] = [[], [], []]
    for _ in range(RUNS):
        sizes = group_sizes(random, groups, law)
        counts = random.multinomial(sizes, own_shares(random, groups, shares, icc)).tolist()
        all_three(columns, ContestMoments.of_columns(*zip(*counts, strict=True)), gained - lost)
    return [f"{groups}", f"{icc}", f"{gained} / {lost}", *(summed_up(column) for column in columns)]


def by_groups(law: str, iccs: Sequence[float]) -> Iterator[str]:
    rows = (row(groups, law, icc, changed) for groups, icc, changed in itertools.product(GROUPS, iccs, CHANGED))
    yield from table(HEAD.format("| groups | ICC | gained / lost |"), rows)


def singly() -> Iterator[str]:
    rows = (row(groups, "1", 0, changed) for groups, changed in itertools.product(GROUPS, CHANGED))
    head = (
        HEAD.format("| pairs | gained / lost |")
        .replace("two clusters", "two pairs as clusters")
        .replace("CR1", "paired")
    )
    yield from table(head, ([each[0], *each[2:]] for each in rows))


def repeated() -> Iterator[str]:
    """Examples done by 90% run three times before and after; some become likelier by a half, some less likely."""

    def moved(random: Random, chance: np.ndarray, gained: float, lost: float) -> np.ndarray:
        drawn = random.random(chance.shape)
        up, down = np.minimum(1, chance + 0.5), np.maximum(0, chance - 0.5)
        return np.where(drawn < gained, up, np.where(drawn > 1 - lost, down, chance))

    def rows() -> Iterator[list[str]]:
        settings = itertools.product((20, 50, 200), (0.3, 0.7), ((0.0, 0.0), (0.1, 0.02), (0.3, 0.1)))
        for examples, icc, (gained, lost) in settings:
            random = seeded("repeats", examples, icc, gained, lost)
            law = 0.9 * (1 / icc - 1), 0.1 * (1 / icc - 1)
            many = random.beta(*law, 1_000_000)
            up, down = np.minimum(1, many + 0.5), np.maximum(0, many - 0.5)
            truth = float(np.mean(gained * (up - many) + lost * (down - many)))
            columns: list[list[Seen]] = [[], [], []]
            for _ in range(RUNS):
                chance = random.beta(*law, examples)
                change = random.binomial(3, moved(random, chance, gained, lost)) - random.binomial(3, chance)
                won, lost_here = np.maximum(change, 0), np.maximum(-change, 0)
                counts = (each.tolist() for each in (won, 3 - won - lost_here, lost_here))
                all_three(columns, ContestMoments.of_columns(*counts), truth)
            yield [f"{examples}", f"{icc}", f"{gained} / {lost}", *(summed_up(column) for column in columns)]

    yield from table(HEAD.format("| examples | ICC | likelier / less likely |"), rows())


INTRODUCTION = """# Does the interval of a net win hold the truth?

How often the 95% interval of wins less losses over all (`evalr.estimates.contest.net_win`), which is also the paired
difference of two shares, gained less lost, held the truth; in parentheses its mean width. **Bold**: under 0.93.
Written by `python benchmarks/coverage_net.py` in a few minutes; 2,000 simulated runs a cell, so that a coverage of 0.95
is known to ±0.005 (one standard error). A run without an interval is no miss and no hit: where there were any, their
number is given.

Beside the default stand its two neighbours: a mean with bounds of -1 and 1, to which two whole clusters are added
(`mean_interval`), and the paired t over clusters (CR1, `paired_difference`).

What the tables say:

- **The default holds in every cell over clusters**, with a correlation of 0.6 and with 10 groups as well: 0.935 at the
  least. It is Bonett and Price's interval at the effective number of pairs, n over a design effect that is measured
  after one more changed pair took its cluster along, with Student's t on Kish's number of clusters less one.
- **The t alone is too narrow where few change, all in one direction**: 0.84 to 0.90 with 5% gained and none lost in 20
  or 50 groups whose members are alike, and it has no interval where nothing changed.
- **Two whole clusters are more than it takes** in groups of like sizes: up to 1.9 times as wide as the default. Where a
  few users have most of the sessions both are much alike, and with 10 or 20 users the default can be the wider one.
- **It costs little where many change**: with 40% and more in groups of up to eight, the default is at most 14% wider
  than the t with 20 groups, 7% with 50 and 3% with 200. With 10% changed it is a third wider in 20 groups of four, and
  it is twice as wide where the t rests on one or two that changed.
- **One pair a group is Bonett and Price's interval**, of which 10 pairs that all change, half either way, are its
  known weak spot.
- **Repeats of an example are a cluster**, and do not widen the interval as much as a whole pair would.
"""

SECTIONS: dict[Callable[[], Iterator[str]], str] = {
    partial(
        by_groups, "4", (0, 0.3, 0.6)
    ): "## Groups of four\n\nGained, same and lost vary between groups (Dirichlet).\n",
    partial(by_groups, "1 to 8", (0, 0.3, 0.6)): "## Groups of one to eight\n",
    partial(
        by_groups, "log-normal", (0.3,)
    ): "## Users with several sessions\n\nLog-normal, as in [coverage.md](coverage.md).\n",
    singly: "## One pair a group\n\nThe default is Bonett and Price's interval itself.\n",
    repeated: """## Repeats

Examples done by 90%, three times each in both runs, each a group of its own; shares of them become likelier or less
likely by a half. ICC is that of one example's repeats.
""",
}


def lines_of(section: Callable[[], Iterator[str]]) -> list[str]:
    return list(section())


def main() -> None:
    print(INTRODUCTION)
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for text, lines in zip(SECTIONS.values(), pool.map(lines_of, SECTIONS), strict=True):
            print(text, *lines, sep="\n", flush=True)


if __name__ == "__main__":
    main()

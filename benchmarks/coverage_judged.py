"""How often do the 95% intervals of judges hold the truth? Simulated where it is known; prints a page of tables.

    python benchmarks/coverage_judged.py > benchmarks/coverage_judged.md

Every cell has its own fixed seed, so the page changes only when a method does.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from coverage import RATINGS, REQUIRED, Random, Seen, log_normal, seeded, seen, summed_up, table

from evalr.estimates.agreement import verdict_agreement
from evalr.estimates.chance_corrected import kappa
from evalr.estimates.interval import normal_quantile
from evalr.estimates.judged import DoubleSample, double_sampling, ppi_plus_plus, rogan_gladen
from evalr.tallies.moments import Moments

RUNS = 1_000
FEWER_RUNS = 500
JUDGED = 500
JUDGES = ((0.9, 0.7), (0.95, 0.9))
"""Sensitivity and specificity."""

Row = tuple[int | None, bool, bool | None]
Rows = list[Row]


# --- what is judged ------------------------------------------------------------------------------------------------


def spread(random: Random, mean: float, icc: float, users: np.ndarray) -> np.ndarray:
    """A chance of each user's own, for each of their rows."""
    if icc == 0:
        return np.full(len(users), mean)
    concentration = 1 / icc - 1
    own = random.beta(mean * concentration, (1 - mean) * concentration, users.max() + 1)
    return own[users]


def verdicts(
    random: Random, users: np.ndarray, truth: float, judge: tuple[float, float], icc: float
) -> tuple[np.ndarray, np.ndarray]:
    """People's and the judge's of each row; what is true, and where the judge errs, is alike within users."""
    people = random.random(len(users)) < spread(random, truth, icc, users)
    se, sp = (spread(random, mean, icc, users) for mean in judge)
    return people, np.where(people, random.random(len(users)) < se, random.random(len(users)) >= sp)


def as_rows(users: np.ndarray | None, people: np.ndarray, judge: np.ndarray, labelled: np.ndarray) -> Rows:
    clusters = [None] * len(people) if users is None else users.tolist()
    labels = (label if known else None for label, known in zip(people.tolist(), labelled.tolist(), strict=True))
    return list(zip(clusters, judge.tolist(), labels, strict=True))


def moments(rows: list[tuple[int | None, bool]]) -> Moments:
    sums: dict[object, list[int]] = {}
    for number, (cluster, hit) in enumerate(rows):
        own = sums.setdefault((number,) if cluster is None else cluster, [0, 0])
        own[0] += hit
        own[1] += 1
    return Moments.of_clusters((y, m, m) for y, m in sums.values())


def from_errors(rows: Rows, truth: float) -> Seen:
    """Rogan and Gladen's, of the same labels."""
    found = rogan_gladen(
        moments([(cluster, judge) for cluster, judge, _ in rows]),
        moments([(cluster, judge) for cluster, judge, label in rows if label is True]),
        moments([(cluster, not judge) for cluster, judge, label in rows if label is False]),
    )
    return seen(found.interval, truth)


def powered(rows: Rows, truth: float, bounds: tuple[float, float] | None) -> Seen:
    found = ppi_plus_plus(rows, bounds=bounds)
    return Seen(found.interval.low, found.interval.high, truth)


def in_columns(runs: list[list[Seen]]) -> list[str]:
    return [summed_up(list(column)) for column in zip(*runs, strict=True)]


# --- verdicts by themselves ----------------------------------------------------------------------------------------

HEAD = (
    "| truth | se / sp | labels | labels only | the judge only | `rogan_gladen` | PPI++ with t | PPI++ within bounds "
    "| `double_sampling` |"
)


def verdict_columns(rows: Rows, truth: float) -> list[Seen]:
    corrected = double_sampling(DoubleSample.of_rows(rows))
    return [
        seen(corrected.labels_only.interval, truth),
        seen(corrected.judge_only.interval, truth),
        from_errors(rows, truth),
        powered(rows, truth, None),
        powered(rows, truth, (0, 1)),
        seen(corrected.interval, truth),
    ]


def by_themselves() -> Iterator[str]:
    def rows() -> Iterator[list[str]]:
        for truth, judge, labels in itertools.product((0.95, 0.7), JUDGES, (20, 50, 100, 200)):
            random = seeded("verdicts", truth, judge, labels)
            users = np.arange(JUDGED)
            runs = []
            for _ in range(RUNS):
                drawn = as_rows(None, *verdicts(random, users, truth, judge, 0), users < labels)
                runs.append(verdict_columns(drawn, truth))
            yield [f"{truth}", f"{judge[0]} / {judge[1]}", f"{labels}", *in_columns(runs)]

    yield from table(HEAD, rows())


def by_verdict() -> Iterator[str]:
    def rows() -> Iterator[list[str]]:
        for truth, judge, labels in itertools.product((0.95, 0.7), JUDGES, (20, 100)):
            random = seeded("by verdict", truth, judge, labels)
            runs = []
            for _ in range(RUNS):
                people, said = verdicts(random, np.arange(JUDGED), truth, judge, 0)
                labelled = np.zeros(JUDGED, dtype=bool)
                for verdict in (True, False):
                    labelled[np.flatnonzero(said == verdict)[: labels // 2]] = True
                sample = DoubleSample.of_rows(as_rows(None, people, said, labelled))
                found = double_sampling(sample, by_verdict=True)
                wrong = double_sampling(sample).labels_only
                runs.append([seen(wrong.interval, truth), seen(found.interval, truth)])
            yield [f"{truth}", f"{judge[0]} / {judge[1]}", f"{labels}", *in_columns(runs)]

    yield from table(
        "| truth | se / sp | labels | labels taken for a random part | `double_sampling(by_verdict=True)` |", rows()
    )


# --- verdicts of users ---------------------------------------------------------------------------------------------


def of_users() -> Iterator[str]:
    def rows() -> Iterator[list[str]]:
        settings = (
            (30, 0.4, 0.7, 0.3, "rows", JUDGES[0]),
            (30, 0.4, 0.95, 0.3, "rows", JUDGES[0]),
            (100, 0.2, 0.7, 0.3, "rows", JUDGES[0]),
            (100, 0.2, 0.7, 0.3, "rows", JUDGES[1]),
            (100, 0.2, 0.95, 0.3, "rows", JUDGES[0]),
            (100, 0.2, 0.95, 0.3, "rows", JUDGES[1]),
            (100, 0.3, 0.7, 0.3, "users", JUDGES[0]),
            (100, 0.3, 0.95, 0.3, "users", JUDGES[1]),
            (300, 0.2, 0.7, 0.3, "rows", JUDGES[0]),
            (300, 0.2, 0.95, 0.3, "rows", JUDGES[0]),
            (300, 0.2, 0.7, 0.6, "rows", JUDGES[1]),
            (300, 0.2, 0.95, 0.6, "rows", JUDGES[1]),
        )
        for count, share, truth, icc, drawn, judge in settings:
            random = seeded("users", count, share, truth, icc, drawn, judge)
            runs = []
            for _ in range(FEWER_RUNS):
                users = np.repeat(np.arange(count), log_normal(random, count))
                people, said = verdicts(random, users, truth, judge, icc)
                labelled = (
                    random.random(len(users)) < share
                    if drawn == "rows"
                    else np.repeat(random.random(count) < share, np.bincount(users))
                )
                ignored = double_sampling(DoubleSample.of_rows(as_rows(None, people, said, labelled)))
                columns = verdict_columns(as_rows(users, people, said, labelled), truth)
                runs.append([columns[0], columns[2], columns[4], columns[5], seen(ignored.interval, truth)])
            yield [
                f"{count}",
                f"{share:.0%} of {drawn}",
                f"{truth}",
                f"{icc}",
                f"{judge[0]} / {judge[1]}",
                *in_columns(runs),
            ]

    yield from table(
        "| users | labelled | truth | ICC | se / sp | labels only | `rogan_gladen` | PPI++ within bounds "
        "| `double_sampling` | the same, users ignored |",
        rows(),
    )


# --- scores --------------------------------------------------------------------------------------------------------


def scores() -> Iterator[str]:
    def rows() -> Iterator[list[str]]:
        for several, name, off, labels in itertools.product(
            (False, True), ("mostly 4 and 5", "95% are 5"), (0.3, 0.8), (20, 100)
        ):
            random = seeded("scores", several, name, off, labels)
            shares = np.array(RATINGS[name])
            truth = float(shares @ np.arange(1, 6))
            runs = []
            for _ in range(FEWER_RUNS):
                count = JUDGED // 4 if several else JUDGED
                sizes = log_normal(random, count) if several else np.ones(count, dtype=int)
                users = np.repeat(np.arange(count), sizes)
                own = random.gamma(shares * (1 / 0.3 - 1), size=(count, 5)) if several else np.tile(shares, (count, 1))
                steps = np.cumsum(own, axis=1)[users]
                people = 1 + (random.random(len(users))[:, None] * steps[:, -1:] > steps).sum(axis=1)
                errors = random.choice([-2, -1, 1, 2], len(users)) * (random.random(len(users)) < off)
                said = np.clip(people + errors, 1, 5)
                labelled = random.permutation(len(users)) < labels
                drawn = as_rows(users if several else None, people, said, labelled)
                within = ppi_plus_plus(drawn, bounds=(1, 5))
                runs.append(
                    [
                        seen(within.labels_only.interval, truth),
                        seen(within.interval, truth),
                        powered(drawn, truth, None),
                    ]
                )
            yield [
                "several" if several else "one",
                name,
                f"{off}",
                f"{labels}",
                *in_columns(runs),
            ]

    yield from table(
        "| rows a user | ratings | judge off in | labels | labels only | PPI++ within bounds | PPI++ with t |", rows()
    )


# --- agreement -----------------------------------------------------------------------------------------------------


def true_agreement(truth: float, judge: tuple[float, float]) -> dict[str, float]:
    se, sp = judge
    both, neither = truth * se, (1 - truth) * sp
    passed = both + (1 - truth) * (1 - sp)
    agreed, middle = both + neither, (truth + passed) / 2
    chance, unsure = truth * passed + (1 - truth) * (1 - passed), 2 * middle * (1 - middle)
    spread_of_both = math.sqrt(truth * (1 - truth) * passed * (1 - passed))
    return {
        "kappa": (agreed - chance) / (1 - chance),
        "ac1": (agreed - unsure) / (1 - unsure),
        "mcc": (both - truth * passed) / spread_of_both,
    }


def straight(rows: Rows, truth: float) -> Seen:
    """Kappa and 1.96 of Fleiss, Cohen and Everitt's standard errors, users ignored."""
    found = kappa([(int(judge), int(bool(label))) for _, judge, label in rows], ((1.0, 0.0), (0.0, 1.0)))
    if found is None:
        return Seen(None, None, truth)
    half = normal_quantile(0.95) * math.sqrt(math.fsum(each * each for each in found.influence))
    return Seen(found.value - half, found.value + half, truth)


def agreeing() -> Iterator[str]:
    def rows() -> Iterator[list[str]]:
        settings = (
            *((False, n, truth, judge) for n, truth in ((20, 0.7), (50, 0.9), (200, 0.9)) for judge in JUDGES),
            *((True, n, truth, judge) for n, truth in ((10, 0.7), (30, 0.7), (100, 0.9)) for judge in JUDGES),
        )
        for several, count, truth, judge in settings:
            random = seeded("agreement", several, count, truth, judge)
            expected = true_agreement(truth, judge)
            runs = []
            for _ in range(FEWER_RUNS):
                sizes = log_normal(random, count) if several else np.ones(count, dtype=int)
                users = np.repeat(np.arange(count), sizes)
                people, said = verdicts(random, users, truth, judge, 0.3 if several else 0)
                drawn = as_rows(users if several else None, people, said, np.ones(len(users), dtype=bool))
                found = verdict_agreement(drawn)
                runs.append(
                    [
                        seen(found.accuracy.interval, truth * judge[0] + (1 - truth) * judge[1]),
                        seen(found.kappa.interval, expected["kappa"]),
                        seen(found.ac1.interval, expected["ac1"]),
                        seen(found.mcc.interval, expected["mcc"]),
                        straight(drawn, expected["kappa"]),
                    ]
                )
            yield [
                f"{count} users" if several else f"{count} rows",
                f"{truth}",
                f"{judge[0]} / {judge[1]}",
                *in_columns(runs),
            ]

    yield from table("| | truth | se / sp | accuracy | kappa | AC1 | MCC | kappa ± 1.96 standard errors |", rows())


# --- the page ------------------------------------------------------------------------------------------------------

INTRODUCTION = f"""# Do the intervals of judges hold the truth?

How often the 95% intervals of judged rates and means (`evalr.estimates.judged`) and of agreement with people
(`evalr.estimates.agreement`) held the truth, where it is known; in parentheses their mean width. **Bold**: under
{REQUIRED}. Written by `python benchmarks/coverage_judged.py` in a few minutes; {RUNS:,} simulated runs a cell for
verdicts by themselves and {FEWER_RUNS:,} elsewhere, so that a coverage of 0.95 is known to ±0.007 and ±0.010 (one
standard error). A run without an interval is no miss and no hit: where there were any, their number is given. Where a
method falls back on the labels alone, theirs is its interval.

What the tables say:

- **A judge's own rate is no measurement.** With a sensitivity of 0.9 and a specificity of 0.7 its interval holds a
  truth of 0.95 in none of 4,000 runs; one that holds does so because the judge's two errors happen to cancel.
- **`double_sampling` holds its level** with 20 labels as with 200, and is narrower than the labels alone wherever there
  are 50 or more: by a twentieth with the worse judge at a truth of 0.95, by a quarter with the better one at 0.7.
- **`rogan_gladen` wastes labels of the same cases.** It is wider than the labels alone in most cells, and has no value
  in up to six runs of ten. It is for labels of other cases.
- **PPI++ with t is too narrow where values pile up at one end**: 0.82 to 0.91 in half of the cells with up to 100
  labels, and with few of them it often has no interval. Within bounds it holds 0.94 or more in all cells but one. With
  20 labels it may be wider than the labels alone; with 100 of ratings it is narrower by a sixteenth to a sixth where
  rows are by themselves, and hardly where users have several.
- **Users with several rows must be told of.** Ignored, the level falls to 0.71 to 0.93. Told of, `double_sampling`
  holds 0.95 to 1.00 and errs on the wide side: with 30 users, and where nearly all is passed, the labels alone are
  narrower. PPI++ within bounds serves verdicts too, and is there the narrower of the two corrections.
- **Labels drawn by the judge's verdict are of no rate by themselves**: as few as none of the runs hold the truth.
  Weighted as verdicts are, they serve about as well as a random part.
- **Kappa ± 1.96 standard errors does not hold in small samples** (0.74 to 0.89 with 20 or 50 rows), nor of users (0.68
  to 0.78). Wilson's limits of the agreement, carried over, hold 0.90 to 0.96 for kappa and 0.93 to 0.98 for AC1.
- **Where judge and people never agree on a single failure**, kappa and MCC leave no trace of how far they do: in 60
  rows of two who each fail one in twenty by themselves, those limits held in 0.54 of the runs. With half a pair more
  of each combination, which they then hold too, it is all of them; where they agree by half on one in thirty, 0.91
  after 0.84.
- **What remains**: kappa and MCC where one of ten is failed and there are 50 rows (0.90), or 100 users (0.92 to 0.93).
  How often failures occur, which chance agreement rests on, is then known too roughly for any of these limits.
"""

SECTIONS: dict[Callable[[], Iterator[str]], str] = {
    by_themselves: f"""## Verdicts by themselves

{JUDGED} rows are judged, and so many of them labelled at random. The truth is how many people would pass, se and sp the
judge's sensitivity and specificity. Rogan and Gladen's errors are from the same labels.
""",
    of_users: """## Verdicts of users with several rows

A mean of 4 rows a user, their number log-normal (σ = 1). What people pass, and where the judge errs, is alike within
users (ICC). Labelled are so many of the rows, or all rows of so many of the users.
""",
    scores: f"""## Ratings of 1 to 5

{JUDGED} rows or about as many of {JUDGED // 4} users, whose ratings are alike (Dirichlet, correlation 0.3). The judge
is off by one or two in so many of the rows, within the scale.
""",
    by_verdict: """## Labels drawn by the judge's verdict

As many of what the judge failed as of what it passed.
""",
    agreeing: """## Agreement

All rows are judged and labelled; those of users are alike by 0.3, in what people pass and in where the judge errs. The
last column takes no account of users.
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

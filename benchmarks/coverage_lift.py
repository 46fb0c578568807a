"""How often do the 95% intervals of a lift hold the truth? Simulated or counted out where it is known; prints a page.

    python benchmarks/coverage_lift.py > benchmarks/coverage_lift.md

Every cell has its own fixed seed, so the page changes only when a method does.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from coverage import (
    RATINGS,
    REQUIRED,
    SIZES,
    Random,
    Seen,
    alike,
    beta_binomial,
    log_normal,
    rating_moments,
    reply_times,
    seeded,
    seen,
    summed_up,
    table,
    until_the_log_ends,
)

from evalr.estimates import compare, contest
from evalr.estimates.compare import (
    DIFFERENCE_METHODS,
    incidence_difference,
    mean_difference,
    rate_difference,
    relative_lift,
)
from evalr.estimates.contest import net_win, paired_difference
from evalr.estimates.cuped import cuped_difference, lin_difference
from evalr.estimates.duration import incidence
from evalr.estimates.interval import spread_of
from evalr.estimates.reflexio_rules import session_rule, user_rule
from evalr.estimates.sequential import always_valid, planned_tau2
from evalr.tallies.contests import ContestMoments
from evalr.tallies.moments import Moments, exact
from evalr.tallies.shared import SharedMoments

RUNS = 4_000
FEWER_RUNS = 2_000
PEEKING_RUNS = 1_000

# A p that is found by trying levels takes longest, no table shows it, and no interval depends on it.
compare.inverted_p = contest.inverted_p = lambda *_: 1.0  # type: ignore[attr-defined]


# --- independent sessions, counted out -----------------------------------------------------------------------------


def trials(hits: int, n: int) -> Moments:
    return Moments(n, n, hits, n, hits, hits, n)


def chances(n: int, rate: float) -> Iterator[tuple[int, float]]:
    """The counts that are not too rare to matter, each with its chance."""
    for k in range(n + 1):
        log_ways = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
        chance = math.exp(log_ways + k * math.log(rate) + (n - k) * math.log(1 - rate))
        if chance > 1e-7:
            yield k, chance


Limits = tuple[float | None, float | None]


def wald_of_sessions(treatment: Moments, control: Moments) -> Limits:
    rule = session_rule(treatment, control)
    return (
        (None, None)
        if rule.lift is None or rule.half_width is None
        else (
            rule.lift - rule.half_width,
            rule.lift + rule.half_width,
        )
    )


def counted_out(methods: list[Callable[[Moments, Moments], Limits]], cell: tuple[int, int, float, float]) -> list[str]:
    n1, n2, p1, p2 = cell
    covered, width = [0.0] * len(methods), [0.0] * len(methods)
    total = 0.0
    for (k1, chance1), (k2, chance2) in itertools.product(chances(n1, p1), chances(n2, p2)):
        chance = chance1 * chance2
        if chance < 1e-7:
            continue
        total += chance
        for i, method in enumerate(methods):
            low, high = method(trials(k1, n1), trials(k2, n2))
            assert low is not None
            assert high is not None
            covered[i] += chance * (low - 1e-12 <= p1 - p2 <= high + 1e-12)
            width[i] += chance * (high - low)
    return [shown(held / total, wide / total) for held, wide in zip(covered, width, strict=True)]


def shown(covered: float, width: float) -> str:
    text = f"{covered:.3f} ({width:.3g})"
    return f"**{text}**" if round(covered, 3) < REQUIRED else text


def independent() -> Iterator[str]:
    names = [each for each in DIFFERENCE_METHODS if each != "mover_cr1"]

    def of(name: str) -> Callable[[Moments, Moments], Limits]:
        return lambda treatment, control: rate_difference(treatment, control, method=name).interval[:2]  # type: ignore[arg-type]

    def rows() -> Iterator[list[str]]:
        for cell in (
            (20, 20, 0.9, 0.9),
            (90, 10, 0.9, 0.9),
            (90, 10, 0.95, 0.85),
            (90, 10, 0.7, 0.6),
            (180, 20, 0.9, 0.9),
            (270, 30, 0.9, 0.9),
            (450, 50, 0.95, 0.95),
        ):
            found = counted_out([*(of(name) for name in names), wald_of_sessions], cell)
            yield [f"{cell[0]} / {cell[1]}", f"{cell[2]} / {cell[3]}", *found]

    yield from table(
        "| sessions | rates | `mover` (default): Newcombe | `agresti_caffo` | `miettinen_nurminen` "
        "| Reflexio's session rule |",
        rows(),
    )


# --- users with several sessions -----------------------------------------------------------------------------------


def user_sums(random: Random, users: int, rate: float, icc: float, law: str = "log-normal") -> Moments:
    sizes = SIZES[law](random, users)
    hits = beta_binomial(random, sizes, rate, icc)
    return Moments.of_clusters(zip(hits.tolist(), sizes.tolist(), sizes.tolist(), strict=True))


SETTINGS = (
    (5, 5, 0.7, 0.6, 0.3, "log-normal"),
    (10, 10, 0.7, 0.6, 0.3, "log-normal"),
    (45, 5, 0.9, 0.9, 0.3, "log-normal"),
    (45, 5, 0.7, 0.6, 0.3, "log-normal"),
    (90, 10, 0.7, 0.6, 0.3, "log-normal"),
    (90, 10, 0.9, 0.9, 0.3, "log-normal"),
    (90, 10, 0.97, 0.95, 0.3, "log-normal"),
    (30, 30, 0.95, 0.9, 0.3, "log-normal"),
    (100, 100, 0.99, 0.95, 0.3, "heavy"),
    (270, 30, 0.9, 0.9, 0.3, "log-normal"),
    (900, 100, 0.9, 0.9, 0.3, "log-normal"),
    (270, 30, 0.9, 0.9, 0.6, "log-normal"),
    (300, 300, 0.9, 0.9, 0.6, "log-normal"),
    (300, 300, 0.95, 0.95, 0.6, "log-normal"),
    (100, 100, 0.97, 0.9, 0.6, "heavy"),
    (900, 100, 0.95, 0.95, 0.6, "heavy"),
)


def users() -> Iterator[str]:
    def rows() -> Iterator[list[str]]:
        for treated, held, p1, p2, icc, law in SETTINGS:
            random = seeded("lift", treated, held, p1, p2, icc, law)
            truth = p1 - p2
            columns: list[list[Seen]] = [[] for _ in range(5)]
            for _ in range(RUNS):
                treatment, control = user_sums(random, treated, p1, icc, law), user_sums(random, held, p2, icc, law)
                rule = user_rule(treatment, control)
                columns[0].append(seen(rate_difference(treatment, control).interval, truth))
                columns[1].append(seen(rate_difference(treatment, control, method="mover_cr1").interval, truth))
                columns[2].append(seen(mean_difference(treatment, control).interval, truth))
                columns[3].append(Seen(rule.low, rule.high, truth))
                columns[4].append(Seen(*wald_of_sessions(treatment, control), truth))
            yield [
                f"{treated} / {held}",
                f"{p1} / {p2}",
                f"{icc}",
                law,
                *(summed_up(column) for column in columns),
            ]

    yield from table(
        "| users | rates | ICC | sizes | `mover` (default) | `mover_cr1` | CR1 with Welch's t | Reflexio's user rule "
        "| Reflexio's session rule |",
        rows(),
    )


# --- users in both arms --------------------------------------------------------------------------------------------


class Arms:
    """Users of two arms, some of them in both with one chance of success each."""

    def __init__(
        self, random: Random, only: tuple[int, int], both: int, rate: float, icc: float, *, single: bool
    ) -> None:
        spread = 1 / icc - 1
        users = only[0] + only[1] + both
        own = random.beta(rate * spread, (1 - rate) * spread, users)
        sums = []
        for arm in (0, 1):
            sizes = np.ones(users, dtype=int) if single else log_normal(random, users)
            hits = random.binomial(sizes, own)
            sums.append(list(zip(hits.tolist(), sizes.tolist(), sizes.tolist(), strict=True)))
            other = slice(both, both + only[0]) if arm else slice(both + only[0], users)
            del sums[-1][other]
        self.treatment, self.control = (Moments.of_clusters(each) for each in sums)
        self.shared = SharedMoments.of_clusters(
            ((y1, m1), (y2, m2)) for (y1, m1, _), (y2, m2, _) in zip(sums[0][:both], sums[1][:both], strict=True)
        )


def sharing() -> Iterator[str]:
    def rows() -> Iterator[list[str]]:
        for only, both, rate, icc, single in (
            ((0, 0), 10, 0.7, 0.3, False),
            ((0, 0), 30, 0.7, 0.3, False),
            ((0, 0), 30, 0.9, 0.3, False),
            ((0, 0), 100, 0.9, 0.3, False),
            ((0, 0), 30, 0.9, 0.6, False),
            ((50, 50), 50, 0.7, 0.3, False),
            ((40, 0), 5, 0.9, 0.3, False),
            ((80, 0), 10, 0.7, 0.3, False),
            ((80, 0), 10, 0.9, 0.3, False),
            ((0, 0), 20, 0.7, 0.3, True),
            ((0, 0), 20, 0.7, 0.9, True),
            ((0, 0), 20, 0.9, 0.6, True),
            ((0, 0), 100, 0.9, 0.6, True),
        ):
            random = seeded("shared", only, both, rate, icc, single)
            columns: list[list[Seen]] = [[] for _ in range(3)]
            for _ in range(RUNS):
                arms = Arms(random, only, both, rate, icc, single=single)
                columns[0].append(seen(rate_difference(arms.treatment, arms.control, shared=arms.shared).interval, 0.0))
                columns[1].append(seen(rate_difference(arms.treatment, arms.control).interval, 0.0))
                columns[2].append(seen(mean_difference(arms.treatment, arms.control, shared=arms.shared).interval, 0.0))
            yield [
                f"{only[0] + both} / {only[1] + both}",
                f"{both}",
                f"{rate}",
                f"{icc}",
                "one" if single else "several",
                *(summed_up(column) for column in columns),
            ]

    yield from table(
        "| users | in both | rate | ICC | sessions an arm | `mover` (default) | sharing ignored | CR1 with t |", rows()
    )


# --- relative lift -------------------------------------------------------------------------------------------------


def relative() -> Iterator[str]:
    def rows() -> Iterator[list[str]]:
        settings = (
            *((each, False) for each in ((90, 10, 0.9, 0.9), (90, 10, 0.3, 0.2), (50, 50, 0.1, 0.1))),
            *(
                (each, True)
                for each in ((45, 5, 0.9, 0.9), (90, 10, 0.7, 0.6), (90, 10, 0.9, 0.9), (270, 30, 0.3, 0.2))
            ),
        )
        for (treated, held, p1, p2), several in settings:
            random = seeded("relative", treated, held, p1, p2, several)
            truth = p1 / p2 - 1
            ours: list[Seen] = []
            logs: list[Seen] = []
            for _ in range(RUNS):
                if several:
                    treatment, control = user_sums(random, treated, p1, 0.3), user_sums(random, held, p2, 0.3)
                else:
                    treatment = trials(int(random.binomial(treated, p1)), treated)
                    control = trials(int(random.binomial(held, p2)), held)
                ours.append(seen(relative_lift(treatment, control).interval, truth))
                logs.append(seen(relative_lift(treatment, control, method="log").interval, truth))
            yield [
                f"{treated} / {held} {'users' if several else 'sessions'}",
                f"{p1} / {p2}",
                *(covered_and_median(column) for column in (ours, logs)),
            ]

    yield from table("| | rates | `mover` (default) | `log`: Katz, or CR1 with t |", rows())


def covered_and_median(runs: list[Seen]) -> str:
    """As `summed_up`, but with the median width: that of a ratio has no mean."""
    widths = [run.high - run.low for run in runs if run.low is not None and run.high is not None]
    text = summed_up([Seen(run.low, math.inf if run.high is None else run.high, run.truth) for run in runs])
    head, _, rest = text.partition(" (")
    return f"{head} ({np.median(widths):.3g}){rest.partition(')')[2]}"


# --- other kinds ---------------------------------------------------------------------------------------------------


def ratings() -> Iterator[str]:
    def rows() -> Iterator[list[str]]:
        for (treated, held), name in itertools.product(((45, 5), (90, 10), (30, 30)), ("mostly 4 and 5", "95% are 5")):
            random = seeded("ratings", treated, held, name)
            bounded: list[Seen] = []
            unbounded: list[Seen] = []
            for _ in range(FEWER_RUNS):
                treatment, control = (
                    rating_moments(random, users, RATINGS[name], log_normal(random, users)) for users in (treated, held)
                )
                bounded.append(seen(mean_difference(treatment, control, bounds=(1, 5)).interval, 0.0))
                unbounded.append(seen(mean_difference(treatment, control).interval, 0.0))
            yield [f"{treated} / {held}", name, summed_up(bounded), summed_up(unbounded)]

    yield from table("| users | ratings 1 to 5 | bounded: `mover` (default) | unbounded: CR1 with Welch's t |", rows())


def shares_ended() -> Iterator[str]:
    """Back within 24 hours, in a log of a week; drop-off as in coverage.md."""

    def rows() -> Iterator[list[str]]:
        for (treated, held), dropped, several in itertools.product(((90, 10), (50, 50)), (0.3, 0.06), (False, True)):
            random = seeded("ended", treated, held, dropped, several)
            runs: list[Seen] = []
            for _ in range(FEWER_RUNS):
                arms = []
                for users in (treated, held):
                    sizes = random.geometric(1 / 4, users) if several else np.ones(users, dtype=int)
                    uniform = alike(random, users, sizes, 0.4 if several else 0.0)
                    cluster = np.repeat(np.arange(users), sizes) if several else None
                    data = until_the_log_ends(random, reply_times(uniform, 24, 2, dropped), 168, cluster)
                    arms.append(incidence(*data, at=24))
                found = incidence_difference(*arms)
                if found.value is not None:
                    runs.append(seen(found.interval, 0.0))
            who = "users, several sessions" if several else "sessions"
            yield [f"{treated} / {held} {who}", f"{dropped}", summed_up(runs)]

    yield from table("| | drop-off of both | `incidence_difference` |", rows())


def contests() -> Iterator[str]:
    """Wins, ties and losses vary between users (Dirichlet, ICC 0.3)."""

    def rows() -> Iterator[list[str]]:
        for users, shares, several in itertools.product(
            (10, 30, 100), ((0.4, 0.4, 0.2), (0.1, 0.85, 0.05), (0.02, 0.97, 0.01)), (False, True)
        ):
            random = seeded("contest", users, shares, several)
            truth = shares[0] - shares[2]
            ours: list[Seen] = []
            other: list[Seen] = []
            for _ in range(FEWER_RUNS):
                sizes = log_normal(random, users) if several else np.ones(users, dtype=int)
                own = random.gamma(np.array(shares) * (1 / 0.3 - 1), size=(users, 3)) + 1e-300
                counts = random.multinomial(sizes, own / own.sum(axis=1, keepdims=True)).tolist()
                outcomes = ContestMoments.of_clusters(tuple(each) for each in counts)
                ours.append(seen(net_win(outcomes).interval, truth))
                if several:
                    other.append(seen(paired_difference(outcomes.net()).interval, truth))
                else:
                    other.append(seen(net_win(outcomes, method="tango").interval, truth))
            yield [
                f"{users}",
                "several" if several else "one",
                " / ".join(map(str, shares)),
                summed_up(ours),
                *(("", summed_up(other)) if several else (summed_up(other), "")),
            ]

    yield from table("| users | comparisons | win / tie / loss | `net_win` (default) | `tango` | CR1 with t |", rows())


def adjusted() -> Iterator[str]:
    """A user's past and present are alike by 0.7; the present is skewed (log-normal)."""

    def rows() -> Iterator[list[str]]:
        for treated, held in ((90, 10), (50, 50), (900, 100)):
            random = seeded("cuped", treated, held)
            columns: list[list[Seen]] = [[] for _ in range(3)]
            for _ in range(FEWER_RUNS):
                both = random.multivariate_normal([0, 0], [[1, 0.7], [0.7, 1]], treated + held)
                sums = [tuple(map(float, row)) for row in np.exp(both / 2)]
                arms = sums[:treated], sums[treated:]
                plain = (Moments.of_clusters((exact(y), 1, 1) for _, y in arm) for arm in arms)
                columns[0].append(seen(cuped_difference(*arms).difference.interval, 0.0))  # type: ignore[arg-type]
                columns[1].append(seen(lin_difference(*arms).difference.interval, 0.0))  # type: ignore[arg-type]
                columns[2].append(seen(mean_difference(*plain).interval, 0.0))
            yield [f"{treated} / {held}", *(summed_up(column) for column in columns)]

    yield from table("| users | `cuped_difference` | `lin_difference` | not adjusted: Welch's t |", rows())


# --- looking every day ---------------------------------------------------------------------------------------------


def peeking() -> Iterator[str]:
    def rows() -> Iterator[list[str]]:
        cells = itertools.product(((50, 50), (45, 5)), ((14, 0.7), (14, 0.9), (14, 0.95), (30, 0.7)), (False, True))
        for (a_day, held_a_day), (looks, rate), several in cells:
            random = seeded("peeking", a_day, held_a_day, looks, several, rate)
            ever, widths = [0, 0], [0.0, 0.0]
            icc = 0.3
            planned = None
            for _ in range(PEEKING_RUNS):
                arms = [Moments(), Moments()]
                wrong = [False, False]
                for look in range(1, looks + 1):
                    for i, users in enumerate((a_day, held_a_day)):
                        day = (
                            user_sums(random, users, rate, icc)
                            if several
                            else trials(int(random.binomial(users, rate)), users)
                        )
                        arms[i] = arms[i].merge(day)
                    found = rate_difference(*arms)
                    value = found.value or 0.0
                    variance = spread_of(found.interval, value, 0.95) or 0.0
                    # planned before the experiment, from a variance that is known about
                    planned = planned or variance * look / looks
                    always = always_valid(
                        value,
                        variance,
                        tau2=planned_tau2(planned),
                        clusters=min(arm.clusters for arm in arms),
                        bounds=(-1, 1),
                    ).interval
                    for i, interval in enumerate((found.interval, always)):
                        if interval.low is not None and interval.high is not None:
                            wrong[i] = wrong[i] or not interval.low <= 0 <= interval.high
                            if look == looks:
                                widths[i] += interval.high - interval.low
                ever = [count + missed for count, missed in zip(ever, wrong, strict=True)]
            runs = PEEKING_RUNS
            yield [
                f"{a_day} / {held_a_day} {'users' if several else 'sessions'} a day",
                f"{rate}",
                f"{looks}",
                *(f"{missed / runs:.3f} ({width / runs:.3g})" for missed, width in zip(ever, widths, strict=True)),
                f"{widths[1] / widths[0]:.2f}",
            ]

    yield from table(
        "| | rate | looks | fixed interval: ever without 0 | always-valid: ever without 0 | width beside the fixed |",
        rows(),
    )


# --- the page ------------------------------------------------------------------------------------------------------

INTRODUCTION = f"""# Do the intervals of a lift hold the truth?

How often the 95% intervals of two arms compared (`evalr.estimates.compare` and its neighbours) held the truth, where it
is known; in parentheses their mean width. **Bold**: under {REQUIRED}. Written by `python benchmarks/coverage_lift.py`
in a few minutes; {RUNS:,} simulated runs a cell for rates and {FEWER_RUNS:,} elsewhere, so that a coverage of 0.95 is
known to ±0.003 and ±0.005 (one standard error). A run without an interval is no miss and no hit: where there were any,
their number is given.

What the tables say:

- **The default holds wherever the correlation within users is 0.3**, with a holdout of 5 users as with one of 100. It
  is MOVER over the arms' default intervals: padded effective n with Student's t, Newcombe's where sessions are
  independent.
- **It has the limit that its arms have.** With a correlation of 0.6 and rates near 0.95 it falls to 0.92. With small
  holdouts nothing else does better; with hundreds of users in both arms Welch's t on CR1 variances does.
- **MOVER over the plain effective n (`mover_cr1`) does not quite**: 0.90 to 0.92 in half of the cells. The default is
  wider by a tenth, by a quarter where few users fail, and by nothing to speak of with hundreds of users in both arms.
- **No t repairs a variance that is guessed too small.** Welch's t on CR1 variances holds 0.87 to 0.92 in most cells
  with a small holdout, after the runs in which it has no interval at all are taken out. A p-value from it would be
  under .05 as often as that misses; so where users have several sessions, p comes from the default interval.
- **Reflexio's rules do not hold at the sizes a holdout has.** By session 0.56 to 0.75 where users return, and 0.65 with
  90 sessions against 10 where they do not; by user 0.65 to 0.87 with a holdout of 5 to 30.
- **Users who are in both arms must be told of.** Otherwise the interval is up to two thirds too wide. Their correlation
  is guessed low on purpose: with few users little is gained, and nothing lost.
- **A relative lift needs the same care.** Logarithms with a normal or t quantile hold 0.66 to 0.92 in half of the
  cells.
- **Looking every day** shows a difference that is not there in 13% to 31% of experiments. The always-valid interval
  does so in 3% or less, and is 1.55 times as wide at the end, twice where the smaller arm has few misses.
- **What the default costs.** With 5 users in an arm it is wide, and with ratings of 1 to 5 most of all: 2.6 stars say
  that five users are too few. Where nearly all comparisons are ties, the net win is held more often than it claims.
- **Without bounds nothing helps.** Means of skewed numbers are held by Welch's t in 0.92 of the runs with 10 users in
  an arm. `cuped_difference` does no worse; `lin_difference` does, whose slope in an arm of 10 is hardly known.
"""

SECTIONS: dict[Callable[[], Iterator[str]], str] = {
    users: """## Users with several sessions

Beta-binomial sessions, a mean of 4 a user, their number log-normal (σ = 1) or heavy, as in [coverage.md](coverage.md).
Reflexio's rules have an interval, some of width 0, where CR1 with t has none.
""",
    independent: """## Independent sessions

Counted out over all outcomes that are likelier than one in ten million, not simulated.
""",
    sharing: """## Users who are in both arms

No difference; a user's chance is the same in both arms.
""",
    relative: """## Relative lift

Treatment over control, minus 1. Widths are medians, since the mean of a ratio's width does not exist.
""",
    peeking: """## Looking every day

No difference; users have several sessions as above and are new each day. How often any look so far left 0 out of the
interval, and in parentheses the mean width at the last look. The always-valid interval goes by the variance that the
fixed one stands for on its longer side, is planned for that at the last look, and starts with 30 in the smaller arm.
""",
    shares_ended: """## Back within a day

Shares ended within 24 hours in a log of a week, pending ones kept, as in [coverage.md](coverage.md).
""",
    ratings: """## Ratings of 1 to 5

Several a user, as in [coverage.md](coverage.md); no difference.
""",
    contests: """## Net win

Wins, ties and losses vary between users (Dirichlet, correlation 0.3).
""",
    adjusted: """## Taking off the past

Past and present of a user are log-normal, with a correlation of 0.7 between their logarithms; no difference.
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

"""How likely is what was seen, or more, if nothing is there? Two-sided, of the usual distributions."""

from __future__ import annotations

import math
from collections.abc import Callable

LEAST_P = 1e-12
"""A p that is found by trying levels is no smaller than this."""


def normal_p(z: float) -> float:
    """Two-sided p of a standard normal."""
    return math.erfc(abs(z) / math.sqrt(2))


def t_p(t: float, df: float) -> float:
    """Two-sided p of Student's t with `df` degrees of freedom."""
    from scipy.special import stdtr

    return min(1.0, 2 * float(stdtr(df, -abs(t))))


def chi_square_p(statistic: float, df: int) -> float:
    """The upper tail of a chi-square with `df` degrees of freedom."""
    from scipy.special import chdtrc

    return float(chdtrc(df, statistic))


def binomial_p(k: int, n: int, share: float) -> float:
    """The exact two-sided p of `k` of `n` at a chance of `share`: all counts that are no likelier than `k`.

    The other tail begins where the likelihoods have fallen to that of `k`; a relative 1e-7 is a tie, as in R.
    """
    if n == 0:
        return 1.0
    if share in {0.0, 1.0}:
        return float(k == n * share)
    return _lower_binomial_p(k, n, share) if k <= share * n else _lower_binomial_p(n - k, n, 1 - share)


def _lower_binomial_p(k: int, n: int, share: float) -> float:
    bar = log_binomial(k, n, share) + 1e-7
    # from the mode on, counts become less likely one by one
    start = max(k + 1, math.floor((n + 1) * share))
    other = _first(lambda j: log_binomial(j, n, share) <= bar, start, n + 1)
    return min(1.0, binomial_tail(k, n, share) + binomial_tail(n - other, n, 1 - share))


def hypergeometric_p(k: int, drawn: int, marked: int, everybody: int) -> float:
    """Fisher's exact two-sided p: `k` of the `marked` among the `drawn` of `everybody`."""
    lowest, highest = max(0, drawn + marked - everybody), min(drawn, marked)

    def log_ways(j: int) -> float:
        return _log_choose(marked, j) + _log_choose(everybody - marked, drawn - j) - _log_choose(everybody, drawn)

    bar = log_ways(k) + 1e-7
    return min(1.0, math.fsum(math.exp(ways) for j in range(lowest, highest + 1) if (ways := log_ways(j)) <= bar))


def inverted_p(leaves_out: Callable[[float], bool], value: float) -> float:
    """One minus the highest level at which an interval around `value` leaves 0 out, and at least `LEAST_P`.

    `leaves_out(p)` says whether the interval at the level 1 - p does.
    """
    if value == 0:
        return 1.0
    if leaves_out(LEAST_P):
        return LEAST_P
    held, out = math.log(LEAST_P), 0.0
    for _ in range(24):
        middle = (held + out) / 2
        held, out = (held, middle) if leaves_out(math.exp(middle)) else (middle, out)
    return math.exp(out)


def _first(true: Callable[[int], bool], start: int, stop: int) -> int:
    """The first number from `start` for which it is true, `stop` where it is for none; from there on it stays so."""
    while start < stop:
        middle = (start + stop) // 2
        start, stop = (start, middle) if true(middle) else (middle + 1, stop)
    return stop


def binomial_tail(k: int, n: int, share: float) -> float:
    """The chance of at most `k` of `n`."""
    from scipy.special import betainc

    if k < 0:
        return 0.0
    return 1.0 if k >= n else float(betainc(n - k, k + 1, 1 - share))


def log_binomial(k: int, n: int, share: float) -> float:
    """The logarithm of the chance of exactly `k` of `n`, at a share between 0 and 1, both excluded."""
    return _log_choose(n, k) + k * math.log(share) + (n - k) * math.log1p(-share)


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)

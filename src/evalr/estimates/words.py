"""Numbers as people read them: shares, durations, counts. Every printed estimate, table and report uses these."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from math import floor, inf, isfinite, log10
from typing import Literal

Unit = Literal["share", "signed share", "points", "change", "seconds"] | str
"""What an estimate's value is in: a share of 0..1, one of -1..1, a difference of shares, a relative change, seconds, or
any other word, such as "turns"."""

_SIZES = ((86_400, "d"), (3_600, "h"), (60, "m"))
_PAIRS = ((1, 60, 60, "m", "s"), (60, 60, 24, "h", "m"), (3_600, 24, inf, "d", "h"))
"""Seconds in the small unit, small ones in a large one, large ones in the next, and their letters."""


def duration_words(seconds: float) -> str:
    """A duration in its two largest units: `2m 10s`, `1h`, `3d 4h`, `0.40s`."""
    if seconds < 0:
        return "-" + duration_words(-seconds)
    if seconds < 10:
        return f"{_significant(seconds, 2)}s"
    if round(seconds) < 60:
        return f"{round(seconds)}s"
    for size, ratio, most, large, small in _PAIRS:
        count, rest = divmod(round(seconds / size), ratio)
        if count < most:
            return f"{count}{large} {rest}{small}" if rest else f"{count}{large}"
    raise ValueError(f"{seconds} is not a duration to print")


def window_words(window: timedelta) -> str:
    """A window in full, as the command line takes it: `1h`, `14d`, `1h30m`, `0.5s`."""
    words = ""
    for size, letter in _SIZES:
        count, window = divmod(window, timedelta(seconds=size))
        if count:
            words += f"{count}{letter}"
    return f"{words}{seconds_text(window)}" if window or not words else words


def seconds_text(window: timedelta) -> str:
    """A window in seconds, without losing a digit: `3600s`, `0.000001s`."""
    seconds, rest = divmod(window, timedelta(seconds=1))
    return f"{seconds}.{rest.microseconds:06}".rstrip("0") + "s" if rest else f"{seconds}s"


def number_words(value: float) -> str:
    """A plain number with three significant digits, or all of a whole number's."""
    if not isfinite(value):
        raise ValueError(f"{value} is not a number to print")
    if value == round(value) and abs(value) < 1e15:
        return f"{round(value):,}"
    return _significant(value, 3)


def value_words(value: float | None, unit: Unit) -> str:
    """A value in its unit: `94.2%`, `+3.1%`, `2m 10s`, `3.41`; an em dash where there is none."""
    if value is None:
        return "—"
    if unit in _PERCENT:
        return f"{_percent_digits(value, unit)}{_PERCENT[unit]}"
    if unit == "seconds":
        return duration_words(value)
    return number_words(value)


def rounded_words(value: float, unit: Unit) -> str:
    """A value as a headline has it: a share in whole percents, `67%` or `+60%`, and any other as `value_words`."""
    return f"{_percent_digits(value, unit, 0)}{_PERCENT[unit]}" if unit in _PERCENT else value_words(value, unit)


def interval_words(low: float | None, high: float | None, unit: Unit) -> str:
    """An interval in brackets; `…` stands for a limit that the log does not reach, and no interval is empty."""
    if low is None and high is None:
        return ""
    if unit in _PERCENT:
        limits = ["…" if limit is None else _percent_digits(limit, unit) for limit in (low, high)]
    else:
        limits = ["…" if limit is None else value_words(limit, unit) for limit in (low, high)]
    return f"[{limits[0]}, {limits[1]}]"


_PERCENT = {"share": "%", "signed share": "%", "points": "pp", "change": "%"}


def _percent_digits(value: float, unit: Unit, decimals: int = 1) -> str:
    return share_digits(value, decimals) if unit == "share" else signed_digits(value, decimals)


def p_words(p: float) -> str:
    """`p = 0.034`, `p < 0.001`."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def share_digits(value: float, decimals: int = 1) -> str:
    """A share in percent with one decimal, and never a 0 or 100 that is not one."""
    percent = 100 * value
    digits = f"{percent:z.{decimals}f}"
    if float(digits) == 0 and percent:
        least = f"{10**-decimals:.{decimals}f}"
        return f"<{least}" if percent > 0 else f">-{least}"
    if float(digits) == 100 and percent < 100:
        return f">{100 - 10**-decimals:.{decimals}f}"
    return digits


def signed_digits(value: float, decimals: int = 1) -> str:
    """A share of -1..1 or a difference of shares in percent, with its sign: `+60.0`, `-3.1`; 0 and 100 as above."""
    if value == 0:
        return share_digits(0, decimals)
    sign, digits = "+" if value > 0 else "-", share_digits(abs(value), decimals)
    if digits[0] not in "<>":
        return sign + digits
    beyond = digits[0] if value > 0 else {"<": ">", ">": "<"}[digits[0]]
    return f"{beyond}{sign}{digits[1:]}"


def count_words(count: int, noun: str) -> str:
    """`1 wait`, `8,310 waits`, `2 histories`; a plural that no rule gives stands behind a slash: `child/children`."""
    one, _, many = noun.partition("/")
    return f"{count:,} {one if count == 1 else many or plural(one)}"


def ended_words(count: float, noun: str) -> str:
    """`134 wins`, and `121.4 wins` as `121 wins` where weights make them no whole number."""
    return count_words(int(count), noun) if count == int(count) else f"{number_words(count)} {plural(noun)}"


def plural(noun: str) -> str:
    """`waits`, `histories`, `days`, `passes`."""
    if noun[-1:] == "y" and noun[-2:-1] not in tuple("aeiou"):
        return noun[:-1] + "ies"
    return noun + ("es" if noun.endswith(("s", "x", "ch", "sh")) else "s")


_MOST_CHOICES = 50


def choice_words(name: str, known: Iterable[str]) -> str:
    """`there are: completion, waits; did you mean 'waits'?`: what to choose from, for a name that is none of it."""
    from difflib import get_close_matches

    names = list(known)
    close = get_close_matches(name, names, n=1) or [each for each in names if len(name) > 2 and name in each]
    meant = f"; did you mean {close[0]!r}?" if close else ""
    more = f" and {len(names) - _MOST_CHOICES:,} more" if len(names) > _MOST_CHOICES else ""
    return f"there are: {', '.join(names[:_MOST_CHOICES]) or 'none'}{more}{meant}"


def method_words(method: str) -> str:
    """How an interval was computed, as a reader of statistics calls it; the name itself where it has no other."""
    name, _, _ = method.partition("/")
    for prefix, words in _METHODS:
        if name.startswith(prefix):
            return words
    return name


_METHODS = (
    ("double-sampling-mover", "double sampling with MOVER"),
    ("ppi++-mover", "PPI++ with MOVER"),
    ("ppi++-cr1-t", "PPI++ with CR1 and t"),
    ("lang-reiczigel", "Rogan-Gladen with Lang-Reiczigel"),
    ("kappa-quadratic-", "weighted kappa by its influence"),
    ("kappa-", "Cohen's kappa by its influence"),
    ("ac1-", "Gwet's AC1 by its influence"),
    ("ac2-", "Gwet's AC2 by its influence"),
    ("ac-", "Gwet's AC by its influence"),
    ("alpha-", "Krippendorff's alpha by its influence"),
    ("mcc-", "Matthews' correlation by its influence"),
    ("wilson-followed", "Wilson on those followed"),
    ("wilson-kish", "Wilson at Kish's n"),
    ("wilson-effective-n", "Wilson at the effective n"),
    ("wilson-padded-effective-n", "Wilson at the effective n"),
    ("wilson", "Wilson"),
    ("jeffreys", "Jeffreys"),
    ("korn-graubard", "Korn-Graubard"),
    ("clopper-pearson", "Clopper-Pearson"),
    ("cr1-t", "CR1 with t"),
    ("brookmeyer-crowley", "Brookmeyer-Crowley for typical times"),
    ("bonett-price-kish", "Bonett-Price at Kish's n"),
    ("bonett-price-effective-n", "Bonett-Price at the effective n"),
    ("bonett-price", "Bonett-Price"),
    ("tango", "Tango's score"),
    ("mover", "MOVER"),
    ("restricted-mean", "t for restricted means"),
    ("log-log", "cumulative incidence on log(-log)"),
)


def _significant(value: float, digits: int) -> str:
    if value == 0:
        return "0"
    scientific = f"{value:.{digits - 1}e}"
    rounded = float(scientific)  # 9.996 has two digits before the point
    if not 1e-6 <= abs(rounded) < 1e15:
        return scientific
    decimals = max(0, digits - 1 - floor(log10(abs(rounded))))
    return f"{value:,.{decimals}f}"

"""Does a judge know when it is right? Its confidence beside how often it was.

Brier score and log loss are proper: no judge gains by saying another confidence than it has. The calibration error
(ECE) is not, and it depends on the bins: other edges give another number for the same rows, and few rows give one far
above 0 however well calibrated a judge is. So it comes with its bins, and with what it would be if every confidence
were right.

Rows are (cluster, confidence, right): the confidence in the answer that was given, 0 to 1, and whether it was right.
Rows of one cluster (a user) are alike, and intervals are over clusters; a cluster of None is the row itself.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable, Sequence
from fractions import Fraction
from typing import Literal, NamedTuple

from evalr.errors import InputError
from evalr.estimates.interval import Interval, no_interval, tail
from evalr.estimates.judged import Part
from evalr.estimates.mean import mean_interval
from evalr.estimates.rate import rate_interval
from evalr.tallies.moments import Exact, Moments, exact

CERTAIN_AND_WRONG = "of {wrong} rows the judge was wholly certain, and wrong: no finite loss makes up for that"

Row = tuple[Hashable | None, float, bool]
BinRule = Literal["equal_width", "equal_mass"]
BIN_RULES: tuple[BinRule, ...] = ("equal_width", "equal_mass")
Closed = Literal["right", "left"]


class Bin(NamedTuple):
    """Rows with about the same confidence."""

    low: float
    high: float
    """Edges: of equal width those of the rule, of equal mass the least and greatest confidence in it."""
    n: int
    confidence: float
    """Its mean."""
    right: float
    """Share that was right."""
    interval: Interval
    """Of that share."""


class Reliability(NamedTuple):
    """Confidence and correctness by bin, and what they add up to. Of empty bins there is none."""

    bins: tuple[Bin, ...]
    rule: str
    """How the bins were made, without which no number here can be compared with another."""
    ece: float | None
    """Mean distance of confidence and share right, of bins weighted by their rows; of these bins only."""
    ece_if_calibrated: float | None
    """What it would be on average, were every confidence right and rows independent: not 0."""
    largest: float | None
    """The largest distance of a bin (MCE)."""
    reliability: float | None
    """Mean squared distance; with the next two of Murphy's parts of the Brier score."""
    resolution: float | None
    """How far bins differ in the share right, squared; the more the better."""
    uncertainty: float | None
    """What nobody can take away: share right times share wrong."""


def brier_score(rows: Iterable[Row], *, level: float = 0.95) -> Part:
    """The mean of (confidence - right)², from 0, the best, to 1 (Brier 1950); 0.25 is what always saying 0.5 gets.

    With the interval of a mean between 0 and 1 (`mean_interval`). Raises InputError for a confidence outside 0..1 or a
    level outside 0..1.
    """
    known = _checked(rows)
    moments = _moments((cluster, (exact(confidence) - right) ** 2) for cluster, confidence, right in known)
    value = None if moments.ratio is None else float(moments.ratio)
    return Part(value, mean_interval(moments, level=level, bounds=(0, 1)))


def log_loss(rows: Iterable[Row], *, level: float = 0.95) -> Part:
    """The mean of -log(confidence given to what was so), from 0, the best; log 2 is what always saying 0.5 gets.

    None where a judge was wholly certain and wrong, which costs an infinite amount: no small number is put in its
    place, as the mean would then be of that number. With the interval of an unbounded mean. Raises InputError as
    `brier_score`.
    """
    known = _checked(rows)
    tail(level)
    given = [(cluster, confidence if right else 1 - confidence) for cluster, confidence, right in known]
    wrong = sum(chance == 0 for _, chance in given)
    if wrong:
        return Part(None, no_interval(CERTAIN_AND_WRONG.format(wrong=wrong)))
    # 1 - confidence loses digits that log1p keeps
    losses = [
        (cluster, exact(-math.log(confidence) if right else -math.log1p(-confidence)))
        for cluster, confidence, right in known
    ]
    moments = _moments(losses)
    return Part(None if moments.ratio is None else float(moments.ratio), mean_interval(moments, level=level))


def reliability(
    rows: Iterable[Row],
    *,
    bins: int = 10,
    rule: BinRule = "equal_width",
    closed: Closed = "right",
    level: float = 0.95,
) -> Reliability:
    """Bins of confidence with the share right in each, and the calibration error over them.

    - `equal_width`: the edges are 0, 1 / bins, 2 / bins and so on. A confidence on an edge belongs to the bin below it,
      or with `closed="left"` to the one above; 0 and 1 are never left out.
    - `equal_mass`: rows in the order of their confidence, as many in each as in any other, save that rows of one
      confidence are never parted: whom to part them by would be up to their order.

    `ece_if_calibrated` sums, over the bins, the mean distance of a normal with the variance of their confidences. All
    None without rows. Murphy's parts (1973) add up to the Brier score as far as rows of a bin have one confidence.

    Raises InputError for fewer bins than 1, an unknown rule or `closed`, or as `brier_score`.
    """
    tail(level)
    if rule not in BIN_RULES:
        raise InputError(f"rule must be one of {', '.join(BIN_RULES)}, not {rule!r}")
    if closed not in {"right", "left"}:
        raise InputError(f"closed must be right or left, not {closed!r}")
    if not isinstance(bins, int) or bins < 1:
        raise InputError(f"bins are counted from 1, not {bins!r}")
    known = _checked(rows)
    parts = _of_equal_width(known, bins, closed) if rule == "equal_width" else _of_equal_mass(known, bins)
    found = tuple(_bin(low, high, part, level) for low, high, part in parts)
    words = f"{bins} of equal width, {closed}-closed" if rule == "equal_width" else f"{bins} of equal mass"
    if not known:
        return Reliability((), words, None, None, None, None, None, None)
    n = len(known)
    base = Fraction(sum(right for _, _, right in known), n)
    apart = [abs(each.confidence - each.right) for each in found]
    shares = [each.n / n for each in found]
    chance = [
        math.sqrt(2 / math.pi * math.fsum(confidence * (1 - confidence) for _, confidence, _ in part)) / n
        for _, _, part in parts
    ]
    return Reliability(
        found,
        words,
        math.fsum(share * distance for share, distance in zip(shares, apart, strict=True)),
        math.fsum(chance),
        max(apart),
        math.fsum(share * distance**2 for share, distance in zip(shares, apart, strict=True)),
        math.fsum(share * (each.right - float(base)) ** 2 for share, each in zip(shares, found, strict=True)),
        float(base * (1 - base)),
    )


_Known = tuple[Hashable, float, bool]
_Part = tuple[float, float, list[_Known]]


def _checked(rows: Iterable[Row]) -> list[_Known]:
    known: list[_Known] = []
    for number, (cluster, confidence, right) in enumerate(rows):
        if not 0 <= confidence <= 1:
            raise InputError(f"row {number}: a confidence lies between 0 and 1, not {confidence}")
        if right not in {False, True}:
            raise InputError(f"row {number}: an answer was right or not, True or False")
        known.append(((number, None) if cluster is None else (cluster,), confidence, bool(right)))
    return known


def _of_equal_width(rows: Sequence[_Known], bins: int, closed: Closed) -> list[_Part]:
    # an edge is the float nearest to it, as a confidence that was written so is
    edges = [edge / bins for edge in range(1, bins)]
    place = bisect_left if closed == "right" else bisect_right
    parts: list[list[_Known]] = [[] for _ in range(bins)]
    for row in rows:
        parts[place(edges, row[1])].append(row)
    limits = [0.0, *edges, 1.0]
    return [(limits[i], limits[i + 1], part) for i, part in enumerate(parts) if part]


def _of_equal_mass(rows: Sequence[_Known], bins: int) -> list[_Part]:
    ordered = sorted(rows, key=lambda row: row[1])
    size, more = divmod(len(ordered), bins)
    parts: list[list[_Known]] = []
    end = 0
    for number in range(bins):
        start, end = end, max(end, size * (number + 1) + min(number + 1, more))
        while 0 < end < len(ordered) and ordered[end][1] == ordered[end - 1][1]:
            end += 1
        parts.append(ordered[start:end])
    return [(part[0][1], part[-1][1], part) for part in parts if part]


def _bin(low: float, high: float, rows: Sequence[_Known], level: float) -> Bin:
    moments = _moments((cluster, int(right)) for cluster, _, right in rows)
    confidence = math.fsum(confidence for _, confidence, _ in rows) / len(rows)
    return Bin(low, high, len(rows), confidence, float(moments.ratio or 0), rate_interval(moments, level=level))


def _moments(rows: Iterable[tuple[Hashable, Exact]]) -> Moments:
    sums: dict[Hashable, tuple[Exact, int]] = {}
    for cluster, y in rows:
        before = sums.get(cluster, (0, 0))
        sums[cluster] = (before[0] + y, before[1] + 1)
    return Moments.of_clusters((y, m, m) for y, m in sums.values())

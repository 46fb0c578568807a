"""Variances along a curve, all at once: what each cluster does to the share at one time after another.

The influence of a row on the share at the table's time k is linear in that share, with terms that do not change once
the row has ended. So rows are looked at once for the whole curve, and clusters alone at each of its times.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from evalr.tallies.durations import COMPETING, EVENT

if TYPE_CHECKING:
    from numpy import float64, int8, int32, int64
    from numpy.typing import NDArray


class Steps(NamedTuple):
    """The times at which rows ended: how many were at risk, had the event and ended at each, and the share after it."""

    at_risk: NDArray[int64]
    events: NDArray[int64]
    ends: NDArray[int64]
    weight: NDArray[float64]
    """What one event adds to the share."""
    share: NDArray[float64]


def influences_along(
    steps: Steps,
    places: NDArray[int32],
    end: NDArray[int8],
    cluster: NDArray[Any],
    sizes: NDArray[int64],
    chosen: Sequence[int],
) -> Iterator[NDArray[float64]]:
    """What each cluster does to the share just after each of the chosen steps, in order; by the cluster's number.

    An event adds its weight; any end takes away its part of what the share still gains; and what was expected of a row
    while it was at risk counts against it. Any order of the rows gives the same to the last digit, since those of a
    cluster are added in the order of their ends.

    Args:
        steps: the table.
        places: of each row, how many steps are at most its duration.
        end: of each row.
        cluster: of each row, numbered from 0.
        sizes: rows of each cluster.
        chosen: steps, in order.
    """
    import numpy as np

    left = steps.at_risk - steps.ends
    part = np.divide(1.0, left, out=np.zeros(len(left)), where=left > 0)
    gained = steps.share * part
    # By place: what is expected of a row until then is `fixed - share * moving`, and so is what its end does.
    fixed = _summed((steps.events * steps.weight + steps.ends * gained) / steps.at_risk)
    moving = _summed(steps.ends * part / steps.at_risk)
    of_event, of_other, of_any = (np.pad(each, (1, 0)) for each in (steps.weight + gained, gained, part))

    order = np.argsort(places.astype(np.int64) * 4 + end, kind="stable").astype(np.int32)
    in_order = places[order]
    done, done_moving = np.zeros(len(sizes)), np.zeros(len(sizes))
    open_rows = sizes.astype(np.float64)
    begin = 0
    for step in chosen:
        until = int(np.searchsorted(in_order, step + 1, side="right"))
        rows = order[begin:until]
        place, kind, owner = places[rows], end[rows], cluster[rows]
        event, other = kind == EVENT, kind == COMPETING
        value = of_event[place] * event + of_other[place] * other - fixed[place]
        slope = of_any[place] * (event | other) - moving[place]
        done += np.bincount(owner, weights=value, minlength=len(sizes))
        done_moving += np.bincount(owner, weights=slope, minlength=len(sizes))
        open_rows -= np.bincount(owner, minlength=len(sizes))
        share = steps.share[step]
        yield done - share * done_moving - open_rows * (fixed[step + 1] - share * moving[step + 1])
        begin = until


def _summed(values: NDArray[float64]) -> NDArray[float64]:
    """What comes before each place."""
    import numpy as np

    return np.concatenate(([0.0], np.cumsum(values)))


def total(values: NDArray[float64]) -> float:
    """The sum of numbers, the same to the last digit in any order: that of whole numbers, and that of what is left."""
    import numpy as np

    largest = float(np.abs(values).max(initial=0.0))
    if largest < 1e-200:
        return math.fsum(values.tolist())
    size = math.ceil(math.log2(len(values))) + 1
    scale, finer = 2.0 ** (51 - size - math.ceil(math.log2(largest))), 2.0 ** (51 - size)
    scaled = values * scale
    whole = np.rint(scaled)
    rest = np.rint((scaled - whole) * finer)
    return (float(whole.sum()) + float(rest.sum()) / finer) / scale

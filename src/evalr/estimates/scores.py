"""Score intervals of a difference, which have no closed form: the differences that the score test does not reject.

Independent rows only: `miettinen_nurminen` for two arms, `tango` for pairs.
"""

from __future__ import annotations

import math
from collections.abc import Callable


def miettinen_nurminen(k1: float, n1: float, k2: float, n2: float, q: float) -> tuple[float, float]:
    """Limits of k1/n1 - k2/n2 at the normal quantile `q` (Miettinen & Nurminen 1985).

    The variance is that of the two rates that are likeliest among those that differ by the limit, times N / (N - 1).
    """

    def excess(delta: float) -> float:
        p1, p2 = _likeliest(k1, n1, k2, n2, delta)
        total = n1 + n2
        variance = (p1 * (1 - p1) / n1 + p2 * (1 - p2) / n2) * total / (total - 1)
        return (k1 / n1 - k2 / n2 - delta) ** 2 - q * q * max(variance, 0.0)

    return _held(excess, k1 / n1 - k2 / n2)


def _likeliest(k1: float, n1: float, k2: float, n2: float, delta: float) -> tuple[float, float]:
    """The rates that differ by `delta` and make the counts likeliest: a root of a cubic, in closed form."""
    total = n1 + n2
    square = (delta * (n1 + 2 * n2) - total - k1 - k2) / (3 * total)
    linear = (delta * (delta * n2 - total - 2 * k2) + k1 + k2) / (3 * total)
    constant = k2 * delta * (1 - delta) / total
    v = square**3 - 1.5 * square * linear + constant / 2
    u = math.copysign(math.sqrt(max(square * square - linear, 0.0)), v)
    w = (math.pi + math.acos(min(1.0, max(-1.0, v / u**3)))) / 3 if u else 0.0
    p2 = min(1.0, 1 - delta, max(0.0, -delta, 2 * u * math.cos(w) - square))
    return min(1.0, max(0.0, p2 + delta)), p2


def tango(wins: float, losses: float, n: float, q: float) -> tuple[float, float]:
    """Limits of (wins - losses) / n over pairs, at the normal quantile `q` (Tango 1998)."""

    def excess(delta: float) -> float:
        b = -wins - losses + (2 * n - wins + losses) * delta
        c = -losses * delta * (1 - delta)
        lost = (math.sqrt(max(b * b - 8 * n * c, 0.0)) - b) / (4 * n)
        variance = n * (2 * lost + delta * (1 - delta))
        return (wins - losses - n * delta) ** 2 - q * q * max(variance, 0.0)

    return _held(excess, (wins - losses) / n)


def _held(excess: Callable[[float], float], value: float) -> tuple[float, float]:
    """From where to where in -1..1 the excess is not positive, which it is not at the value."""
    return _edge(excess, -1.0, value), _edge(excess, 1.0, value)


def _edge(excess: Callable[[float], float], outside: float, inside: float) -> float:
    if excess(outside) <= 0:
        return outside
    for _ in range(60):
        middle = (outside + inside) / 2
        outside, inside = (outside, middle) if excess(middle) <= 0 else (middle, inside)
    return outside

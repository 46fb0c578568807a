"""Exact sums over the clusters that two arms share: what the arms have in common, beside the moments of each."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import NamedTuple

from evalr.tallies.moments import Exact, Moments


class SharedMoments(NamedTuple):
    """Sums of products over clusters with rows in both arms (a user who was in each of them for a while).

    `y` and `m` are what they are in `Moments`; the first letter of a product is of the first arm, the second of the
    second. A cluster without a weight in one of the arms says nothing of both, and is not counted.
    """

    clusters: int = 0
    yy: Exact = 0
    ym: Exact = 0
    my: Exact = 0
    mm: Exact = 0

    @classmethod
    def of_clusters(cls, sums: Iterable[tuple[tuple[Exact, Exact], tuple[Exact, Exact]]]) -> SharedMoments:
        """The sums over clusters, each given as ((y, m) in the first arm, (y, m) in the second)."""
        clusters = 0
        yy: Exact = 0
        ym: Exact = 0
        my: Exact = 0
        mm: Exact = 0
        for (y1, m1), (y2, m2) in sums:
            if m1 == 0 or m2 == 0:
                continue
            clusters += 1
            yy += y1 * y2
            ym += y1 * m2
            my += m1 * y2
            mm += m1 * m2
        return cls(clusters, yy, ym, my, mm)

    def merge(self, other: SharedMoments) -> SharedMoments:
        """The sums of both, which must not share a cluster."""
        return SharedMoments(
            self.clusters + other.clusters,
            self.yy + other.yy,
            self.ym + other.ym,
            self.my + other.my,
            self.mm + other.mm,
        )

    def swapped(self) -> SharedMoments:
        """The same with the second arm first."""
        return self._replace(ym=self.my, my=self.ym)

    def mirrored(self) -> SharedMoments:
        """The same with every y of the second arm negated."""
        return self._replace(yy=-self.yy, my=-self.my)

    def rescaled(self, low: Exact, high: Exact) -> SharedMoments:
        """The same with every value x = y / m moved from low..high to 0..1, as `Moments.rescaled` does."""
        width = Fraction(high - low)
        return self._replace(
            yy=(self.yy - low * (self.ym + self.my) + low * low * self.mm) / width**2,
            ym=(self.ym - low * self.mm) / width,
            my=(self.my - low * self.mm) / width,
        )

    def products_around(self, first: Moments, second: Moments) -> Fraction:
        """`sum(e1 e2) / (M1 M2)` with the residuals e = y - R m of each arm around its ratio R = y / m of all its rows.

        The covariance of the two ratios, as `Moments.squares_around` is the variance of one. Raises ZeroDivisionError
        where an arm counted nothing.
        """
        r1, r2 = Fraction(first.y) / first.m, Fraction(second.y) / second.m
        products = self.yy - r2 * self.ym - r1 * self.my + r1 * r2 * self.mm
        return products / (Fraction(first.m) * second.m)

    def robust_covariance(self, first: Moments, second: Moments) -> float:
        """The cluster-robust covariance of the two ratios, by the factor of CR1 in each arm; 0 where none is known.

        `sqrt(G1 / (G1 - 1) * G2 / (G2 - 1)) * sum(e1 e2) / (M1 M2)`. Where every cluster is in both arms, the variance
        of the difference is then exactly that of the mean of the paired differences.
        """
        if self.clusters == 0 or first.clusters < 2 or second.clusters < 2:
            return 0.0
        factor = Fraction(first.clusters * second.clusters, (first.clusters - 1) * (second.clusters - 1))
        return math.sqrt(factor) * float(self.products_around(first, second))

"""Exact sums over clusters of wins, ties and losses, and the ratios that can be read from them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from operator import mul
from typing import NamedTuple

from evalr.errors import InputError
from evalr.tallies.moments import Exact, Moments


class ContestMoments(NamedTuple):
    """Sums over clusters (users) of their wins, ties and losses, and of the products of these.

    Every view of a contest is a ratio of two of the counts, so its moments come from these: `net`, `won`, `decided`.
    """

    clusters: int = 0
    deciding: int = 0
    """Clusters with a win or a loss."""
    wins: Exact = 0
    ties: Exact = 0
    losses: Exact = 0
    ww: Exact = 0
    tt: Exact = 0
    ll: Exact = 0
    wt: Exact = 0
    wl: Exact = 0
    tl: Exact = 0

    @classmethod
    def of_clusters(cls, counts: Iterable[tuple[Exact, Exact, Exact]]) -> ContestMoments:
        """The sums over clusters, each given as (wins, ties, losses). Raises InputError for a negative count."""
        columns = [*zip(*counts, strict=True)]
        return cls.of_columns(*columns) if columns else cls()

    @classmethod
    def of_columns(cls, won: Sequence[Exact], tied: Sequence[Exact], lost: Sequence[Exact]) -> ContestMoments:
        """The sums over clusters, given as their wins, their ties and their losses. Raises as `of_clusters` does."""
        fewest = [min(column, default=0) for column in (won, tied, lost)]
        if min(fewest) < 0:
            raise InputError(f"a contest counts wins, ties and losses from 0, not {', '.join(map(str, fewest))}")
        return cls(
            sum(map(any, zip(won, tied, lost, strict=True))),
            sum(map(any, zip(won, lost, strict=True))),
            *(sum(column) for column in (won, tied, lost)),
            *(sum(map(mul, column, column)) for column in (won, tied, lost)),
            *(sum(map(mul, *pair)) for pair in ((won, tied), (won, lost), (tied, lost))),
        )

    @classmethod
    def of_cluster(cls, wins: Exact, ties: Exact, losses: Exact) -> ContestMoments:
        """The sums of one cluster. Raises InputError for a negative count."""
        if min(wins, ties, losses) < 0:
            raise InputError(f"a contest counts wins, ties and losses from 0, not {wins}, {ties}, {losses}")
        return cls(
            int(wins + ties + losses > 0),
            int(wins + losses > 0),
            wins,
            ties,
            losses,
            wins * wins,
            ties * ties,
            losses * losses,
            wins * ties,
            wins * losses,
            ties * losses,
        )

    @classmethod
    def of_counts(cls, wins: int, ties: int, losses: int) -> ContestMoments:
        """The sums of comparisons that are each a cluster of their own. Raises InputError for a negative count."""
        if min(wins, ties, losses) < 0:
            raise InputError(f"a contest counts wins, ties and losses from 0, not {wins}, {ties}, {losses}")
        return cls(wins + ties + losses, wins + losses, wins, ties, losses, wins, ties, losses)

    def merge(self, other: ContestMoments) -> ContestMoments:
        """The sums of both, which must not share a cluster."""
        return ContestMoments(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))  # type: ignore[arg-type]

    @property
    def n(self) -> Exact:
        """All comparisons."""
        return self.wins + self.ties + self.losses

    @property
    def ended(self) -> tuple[Exact, Exact, Exact]:
        """(wins, ties, losses)."""
        return self.wins, self.ties, self.losses

    @property
    def half_tie(self) -> float | None:
        """Wins and half of the ties over all comparisons, or None where there are none."""
        return float((Fraction(self.wins) + Fraction(self.ties) / 2) / self.n) if self.n else None

    @property
    def _nn(self) -> Exact:
        return self.ww + self.tt + self.ll + 2 * (self.wt + self.wl + self.tl)

    def singles(self) -> bool:
        """Whether every cluster is one comparison, and not a share of a win and a share of a loss."""
        return self.clusters == self.n == self._nn and not (self.wt or self.wl or self.tl)

    def scaled(self, scale: Exact) -> ContestMoments:
        """The same with every weight times `scale`."""
        sums = (each * scale for each in self.ended)
        products = (each * scale * scale for each in self[5:])
        return ContestMoments(self.clusters, self.deciding, *sums, *products)

    def swapped(self) -> ContestMoments:
        """The same with wins for losses."""
        return self._replace(wins=self.losses, losses=self.wins, ww=self.ll, ll=self.ww, wt=self.tl, tl=self.wt)

    def net(self) -> Moments:
        """(wins - losses) over all comparisons, -1 to 1."""
        return Moments(
            self.clusters,
            int(self.n),
            self.wins - self.losses,
            self.n,
            self.ww - 2 * self.wl + self.ll,
            self.ww + self.wt - self.tl - self.ll,
            self._nn,
        )

    def won(self) -> Moments:
        """Wins over all comparisons, ties included."""
        return Moments(self.clusters, int(self.n), self.wins, self.n, self.ww, self.ww + self.wt + self.wl, self._nn)

    def decided(self) -> Moments:
        """Wins over those that were decided: wins and losses."""
        m = self.wins + self.losses
        return Moments(self.deciding, int(m), self.wins, m, self.ww, self.ww + self.wl, self.ww + 2 * self.wl + self.ll)

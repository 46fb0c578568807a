"""Folds: what the several results of one unit (a task's trials, a response's learnings) say together, as one value."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import comb
from typing import Literal

from evalr.errors import InputError
from evalr.tallies.moments import Exact

FoldName = Literal["any", "all", "share", "flip"]


class PassK:
    """The fold pass^k; make one with `pass_k(k)`."""

    __slots__ = ("k",)

    def __init__(self, k: int) -> None:
        if not isinstance(k, int) or isinstance(k, bool) or k < 1:
            raise InputError(f"pass_k({k!r}): k must be a whole number from 1")
        self.k = k

    def __repr__(self) -> str:
        return f"pass_k({self.k})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PassK) and other.k == self.k

    def __hash__(self) -> int:
        return hash(("pass_k", self.k))

    def __call__(self, hits: Exact, total: Exact) -> Exact | str:
        """C(hits, k) / C(total, k), or why this unit has no value."""
        if total < self.k:
            return f"fewer than {self.k} trials"
        return Fraction(comb(int(hits), self.k), comb(int(total), self.k))


Fold = FoldName | PassK
"""How the several results of one unit become one value: a name, or what `pass_k(k)` gives."""


def pass_k(k: int) -> PassK:
    """The fold pass^k: the chance that k trials of one unit, drawn from its trials without replacement, all hit.

    Unbiased where a unit has more than k trials, unlike (hits / trials)**k. A unit with fewer than k trials is left out
    and counted. Source: Yao et al. 2024, tau-bench.
    """
    return PassK(k)


def _any(hits: Exact, total: Exact) -> Exact | str:
    return int(hits > 0) if total else "no trials"


def _all(hits: Exact, total: Exact) -> Exact | str:
    return int(hits == total) if total else "no trials"


def _share(hits: Exact, total: Exact) -> Exact | str:
    return Fraction(hits) / total if total else "no trials"


def _flip(hits: Exact, total: Exact) -> Exact | str:
    return int(0 < hits < total) if total >= 2 else "fewer than 2 trials"


_NAMED: dict[str, Callable[[Exact, Exact], Exact | str]] = {"any": _any, "all": _all, "share": _share, "flip": _flip}


def fold_function(fold: Fold) -> Callable[[Exact, Exact], Exact | str]:
    """The function (hits, total) -> value from 0 to 1, or the reason why such a unit is left out.

    "any" is 1 where at least one hit, "all" where every one did, "share" is hits over total, and "flip" is 1 where the
    unit's results disagree with one another.
    """
    if isinstance(fold, PassK):
        return fold
    if fold not in _NAMED:
        raise InputError(f"fold={fold!r} must be one of {', '.join(map(repr, _NAMED))} or pass_k(k)")
    return _NAMED[fold]

"""A heuristic: a rule written by hand, which says that it is one wherever its results go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar

from evalr_tracepass.records import LabelScore, Prediction

SELECTED = 0.5
"""The score from which on a heuristic selects one of its labels over the plain one."""


@dataclass(frozen=True)
class Heuristic:
    """A rule as a classifier. The score of a label is how much there is of what the rule counts, and no probability.

    Attributes:
        name: its alias. It begins with `heuristic-`, so that nobody takes it for a model.
        version: changes whenever its answers may.
        labels: the plain one first.
        score: of a text, the score of each label but the plain one.
    """

    kind: ClassVar[str] = "heuristic"
    cost_per_text: ClassVar[float] = 0.0

    name: str
    version: str
    labels: tuple[str, ...]
    score: Callable[[str], tuple[float, ...]] = field(repr=False)

    def predict(self, texts: Sequence[str], /) -> list[Prediction]:
        """One prediction for each text: of the labels that reach their score the highest, or else the plain one."""
        return [_prediction(self.name, self.version, self.labels, self.score(text)) for text in texts]


@lru_cache(maxsize=4_096)
def _prediction(name: str, version: str, labels: tuple[str, ...], scores: tuple[float, ...]) -> Prediction:
    """What scores say. There are few: a rule counts, and most texts have nothing of what it counts."""
    best = max(scores)
    found = scores.index(best) + 1 if best >= SELECTED else 0
    classes = tuple(
        LabelScore(label, score, place == found)
        for place, (label, score) in enumerate(zip(labels, (1 - best, *scores), strict=True))
    )
    return Prediction(name, "single_label", classes, version=version)


def saturating(count: float, half: float) -> float:
    """A count as a score from 0 to 1, 0.5 at `half`."""
    return count / (count + half)

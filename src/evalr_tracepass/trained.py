"""Classifiers that are trained, or anything that scores labels, as reflexes."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from evalr.errors import InputError
from evalr.labels import Classifier, LocalClassifier
from evalr.labels.classifiers import answers, text_mark
from evalr_tracepass.records import LabelScore, Prediction


@dataclass(frozen=True)
class ClassifierReflex:
    """A classifier of `evalr.labels`, or any other, under an alias. It selects the label with the highest score.

    Attributes:
        name: its alias.
        classifier: what scores its labels.
    """

    kind: ClassVar[str] = "trained"

    name: str
    classifier: Classifier = field(repr=False)

    @property
    def version(self) -> str:
        """The classifier's own."""
        return self.classifier.version

    @property
    def labels(self) -> Sequence[str]:
        """What the classifier tells apart."""
        return self.classifier.labels

    @property
    def cost_per_text(self) -> float | None:
        """US dollars; None where the classifier does not say."""
        return getattr(self.classifier, "cost_per_text", None)

    @property
    def seen(self) -> frozenset[str]:
        """Hashes of the texts that trained it, where it says so: they cannot measure it."""
        return getattr(self.classifier, "seen", frozenset())

    def predict(self, texts: Sequence[str], /) -> list[Prediction] | Awaitable[list[Prediction]]:
        """One prediction for each text; to be awaited where the classifier is."""
        found: Any = self.classifier.classify(texts)
        return self._awaited(texts, found) if inspect.isawaitable(found) else self._read(texts, found)

    async def _awaited(self, texts: Sequence[str], found: Awaitable[Any]) -> list[Prediction]:
        return self._read(texts, await found)

    def _read(self, texts: Sequence[str], found: Sequence[Mapping[str, float]]) -> list[Prediction]:
        chosen = answers(self.classifier, texts, found)
        version = self.version
        return [
            Prediction(
                self.name,
                "single_label",
                tuple(LabelScore(label, float(scores[label]), label == answer.label) for label in self.labels),
                version=version,
            )
            for answer, scores in zip(chosen, found, strict=True)
        ]


def train_reflex(name: str, texts: Sequence[str], labels: Sequence[str], **options: Any) -> ClassifierReflex:
    """A classifier trained here: tf-idf with logistic regression, in well under a second, the same each time.

    Train it on texts of the transform that it will read, with others from random traffic: where half of the texts have
    the rare label, and one in a hundred does in traffic, three of four that it finds are wrong. Then let `calibrate`
    set its threshold on labels of random traffic.

    Args:
        name: its alias.
        texts: what to learn from.
        labels: of each text; two different ones or more.
        options: those of `evalr.labels.LocalClassifier.train`.

    Raises:
        InputError: the name is empty, or as `LocalClassifier.train` says.
        MissingExtraError: scikit-learn is not installed: `pip install 'evalr[local]'`.
    """
    if not name:
        raise InputError("a reflex needs a name: what a signal's `model` says")
    texts = list(texts)
    return ClassifierReflex(name, LocalClassifier.train(texts, labels, seen=map(text_mark, texts), **options))

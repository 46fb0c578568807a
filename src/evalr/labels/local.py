"""A classifier that is trained and runs on this machine: tf-idf of n-grams, and logistic regression. Extra: `local`."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, get_args

from evalr.errors import DatasetError, InputError, MissingExtraError
from evalr.estimates.words import choice_words, count_words
from evalr.inputs import Input
from evalr.labels.classifiers import ReadText, decidable, label_of, mark, text_mark, transcript_text
from evalr.labels.datasets import Dataset, checked_dataset
from evalr.labels.decision_fit import json_file
from evalr.labels.decisions import DecisionEvaluator
from evalr.labels.files import Place, locked, real_path, replace_lines
from evalr.labels.lines import digest
from evalr.plain import canonical_text
from evalr.quoting import quoted, safe_text
from evalr.verdicts import V

if TYPE_CHECKING:
    from sklearn.feature_extraction.text import TfidfVectorizer

FORMAT = 1
KIND = "local-classifier"

_DIGITS = 9
"""Significant digits of a weight that are kept, in memory as in a file, so that what is read back scores the same."""

_STEPS = 1000

Grams = Literal["words", "characters"]
"""What n-grams are made of: words, or the characters within a word."""


@dataclass(frozen=True, eq=False)
class LocalClassifier:
    """Tells labels apart by the words, or characters, of a text. Made by `train`, `train_decision` or `load`.

    Training is the same each time: nothing in it is drawn at random. Scores are the model's own probabilities, which
    `class_weight` and few labels distort: `fit_thresholds` says what they are worth.

    Attributes:
        labels: what it tells apart.
        grams: what its n-grams are made of.
        n: the shortest and the longest n-gram.
        terms: the n-grams that it knows, in the order of their weights.
        idf: the inverse document frequency of each.
        weights: of each term: one row for two labels (towards the second), else one for each label.
        intercepts: one for each row.
        data: a hash of the texts and labels that it was trained on.
        trained_on: how many there were of each label.
        seen: hashes of the inputs that it was trained on, and of their texts.
    """

    labels: tuple[str, ...]
    grams: Grams
    n: tuple[int, int]
    terms: tuple[str, ...] = field(repr=False)
    idf: tuple[float, ...] = field(repr=False)
    weights: tuple[tuple[float, ...], ...] = field(repr=False)
    intercepts: tuple[float, ...] = field(repr=False)
    data: str
    trained_on: dict[str, int]
    seen: frozenset[str] = field(default=frozenset(), repr=False)

    cost_per_text = 0.0
    """It runs here."""

    @classmethod
    def train(
        cls,
        texts: Sequence[str],
        labels: Sequence[str],
        *,
        grams: Grams = "words",
        n: tuple[int, int] | None = None,
        strength: float = 1.0,
        class_weight: Literal["balanced"] | Mapping[str, float] | None = "balanced",
        most_terms: int = 50_000,
        seen: Iterable[str] = (),
    ) -> LocalClassifier:
        """A classifier trained on texts and the label of each.

        Args:
            texts: what to learn from.
            labels: of each text, as a text; two different ones or more.
            grams: "words", which is fast, or "characters", which copes with misspelling and any script.
            n: the shortest and the longest n-gram; by default 1 to 2 words, or 2 to 5 characters.
            strength: how closely it follows the labels (scikit-learn's C).
            class_weight: "balanced" counts a rare label as much as a common one; or a weight of each; or None.
            most_terms: only the commonest so many n-grams are kept.
            seen: hashes of the inputs, as `train_decision` has them.

        Raises:
            InputError: there are not two labels, or no terms, or an option cannot be used.
            MissingExtraError: scikit-learn is not installed.
        """
        texts, labels = list(texts), list(labels)
        if grams not in get_args(Grams):
            raise InputError(f"grams={grams!r} must be 'words' or 'characters'")
        if len(texts) != len(labels):
            raise InputError(f"{count_words(len(texts), 'text')} and {count_words(len(labels), 'label')}: one for each")
        wrong = [each for each in (*texts, *labels) if not isinstance(each, str)]
        if wrong:
            raise InputError(f"texts and labels are texts, not {safe_text(repr(wrong[0]))}")
        if len(set(labels)) < 2:
            raise InputError(
                f"all {count_words(len(labels), 'label')} say the same"
                f"{f' ({quoted(labels[0])})' if labels else ''}: to tell labels apart takes examples of two or more"
            )
        if isinstance(class_weight, str) and class_weight != "balanced":
            raise InputError(f"class_weight={class_weight!r} must be 'balanced', a weight of each label, or None")
        if isinstance(strength, bool) or not 0 < strength < math.inf:
            raise InputError(f"strength={strength!r} must be a number above 0")
        span = n or ((1, 2) if grams == "words" else (2, 5))
        vectorizer = _vectorizer(grams, span, max_features=most_terms)
        try:
            features = vectorizer.fit_transform(map(_storable, texts))
        except ValueError as error:  # scikit-learn's, of texts without a word or of bounds the wrong way round
            raise InputError(f"the texts have no terms to learn from: {safe_text(str(error), longest=200)}") from error
        model = _regression(features, labels, strength, class_weight)
        terms = sorted(vectorizer.vocabulary_, key=vectorizer.vocabulary_.__getitem__)
        names = tuple(str(label) for label in model.classes_)
        return cls(
            labels=names,
            grams=grams,
            n=span,
            terms=tuple(map(str, terms)),
            idf=_rounded(vectorizer.idf_),
            weights=tuple(_rounded(row) for row in model.coef_),
            intercepts=_rounded(model.intercept_),
            data=digest(canonical_text(sorted(zip(texts, labels, strict=True)))).hex(),
            trained_on={name: labels.count(name) for name in names},
            seen=frozenset(seen),
        )

    @cached_property
    def version(self) -> str:
        """`local:1:` and a digest of all that it knows: n-grams, weights, labels and the hash of what trained it."""
        return f"local:1:{digest(canonical_text(self._fields())).hex()[:12]}"

    def classify(self, texts: Sequence[str], /) -> list[dict[str, float]]:
        """The scores of each text by label; they add up to 1.

        Raises:
            MissingExtraError: scikit-learn is not installed.
        """
        import numpy as np

        if not texts:
            return []
        vectorizer, weights, intercepts = self._model
        z = vectorizer.transform(map(_storable, texts)) @ weights.T + intercepts
        if z.shape[1] == 1:
            z = np.hstack([np.zeros_like(z), z])
        powers = np.exp(z - z.max(axis=1, keepdims=True))
        shares = powers / powers.sum(axis=1, keepdims=True)
        return [dict(zip(self.labels, row, strict=True)) for row in shares.tolist()]

    @cached_property
    def _model(self) -> tuple[Any, Any, Any]:
        import numpy as np

        vectorizer = _vectorizer(self.grams, self.n, vocabulary={term: i for i, term in enumerate(self.terms)})
        vectorizer.idf_ = np.array(self.idf)
        return vectorizer, np.array(self.weights), np.array(self.intercepts)

    # -- files --------------------------------------------------------------------------------------------------------

    def _fields(self) -> dict[str, Any]:
        return {
            "labels": self.labels,
            "grams": self.grams,
            "n": self.n,
            "terms": self.terms,
            "idf": self.idf,
            "weights": self.weights,
            "intercepts": self.intercepts,
            "data": self.data,
            "trained_on": self.trained_on,
        }

    def save(self, path: Place) -> None:
        """Write it as JSON, whole or not at all: its n-grams are words of the texts that trained it.

        Raises:
            DatasetError: the file cannot be written.
        """
        real = real_path(path)
        shared = {"type": KIND, "format": FORMAT, "version": self.version, "seen": sorted(self.seen)}
        with locked(real):
            replace_lines(real, [canonical_text(shared | self._fields())])

    @classmethod
    def load(cls, path: Place) -> LocalClassifier:
        """Read what `save` wrote: numbers and texts. A pickle, which may run code when it is read, is refused.

        Raises:
            DatasetError: the file is missing, damaged, changed or something else.
        """
        real = real_path(path)
        found = json_file(real, KIND, FORMAT)
        try:
            made = _read(cls, found)
        except (KeyError, TypeError, ValueError) as error:
            raise DatasetError(f"{real}: it is no whole classifier: {safe_text(str(error))}") from None
        if made.version != found.get("version"):
            raise DatasetError(f"{real}: it was changed or damaged: its version is that of another content")
        return made


def _read(cls: type[LocalClassifier], found: Mapping[str, Any]) -> LocalClassifier:
    """Raises KeyError, TypeError or ValueError where a part is missing or does not fit the others."""
    labels, terms = tuple(_texts(found["labels"])), tuple(_texts(found["terms"]))
    weights = tuple(_numbers(row, len(terms)) for row in found["weights"])
    low, high = (int(each) for each in found["n"])
    rows = 1 if len(labels) == 2 else len(labels)
    if len(labels) < 2 or len(weights) != rows or found["grams"] not in get_args(Grams) or not 1 <= low <= high:
        raise ValueError("its labels, weights and n-grams do not fit together")
    return cls(
        labels=labels,
        grams=found["grams"],
        n=(low, high),
        terms=terms,
        idf=_numbers(found["idf"], len(terms)),
        weights=weights,
        intercepts=_numbers(found["intercepts"], rows),
        data=str(found["data"]),
        trained_on={str(name): int(count) for name, count in found["trained_on"].items()},
        seen=frozenset(_texts(found["seen"])),
    )


def _texts(given: Iterable[Any]) -> list[str]:
    found = list(given)
    if not all(isinstance(each, str) for each in found) or len(set(found)) < len(found):
        raise ValueError("a text is missing, or there twice")
    return found


def _numbers(given: Iterable[Any], count: int) -> tuple[float, ...]:
    found = tuple(float(each) for each in given)
    if len(found) != count or not all(map(math.isfinite, found)):
        raise ValueError("a weight is missing, or no number")
    return found


def _rounded(numbers: Iterable[Any]) -> tuple[float, ...]:
    return tuple(float(f"{float(each):.{_DIGITS}g}") for each in numbers)


def _storable(text: str) -> str:
    """A text without lone surrogates, of which no n-gram could be written to a file."""
    return text.encode("utf-8", "replace").decode()


def _vectorizer(grams: Grams, n: tuple[int, int], **more: Any) -> TfidfVectorizer:
    try:
        from sklearn.feature_extraction.text import TfidfVectorizer
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "sklearn":
            raise
        raise MissingExtraError(
            "a LocalClassifier needs scikit-learn, which is not installed: pip install 'evalr[local]'"
        ) from error
    # By default scikit-learn drops words of one letter, "I" among them.
    words = {"token_pattern": r"(?u)\b\w+\b"} if grams == "words" else {}
    analyzer = "word" if grams == "words" else "char_wb"
    return TfidfVectorizer(analyzer=analyzer, ngram_range=n, sublinear_tf=True, **words, **more)


def _regression(features: Any, labels: Sequence[str], strength: float, class_weight: Any) -> Any:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=strength, class_weight=class_weight, max_iter=_STEPS)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        try:
            return model.fit(features, labels)
        except ConvergenceWarning as error:
            raise InputError(
                f"training has not settled after {_STEPS:,} steps: pass a lower strength than {strength:g}"
            ) from error
        except ValueError as error:  # scikit-learn's, of a weight for a label that there is not, and the like
            raise InputError(f"training cannot use these options: {safe_text(str(error), longest=200)}") from error


# ---------------------------------------------------------------------------------------------------------------------
# Decision evaluators
# ---------------------------------------------------------------------------------------------------------------------


def train_decision(
    dataset: Dataset[V],
    *,
    fields: Sequence[str] | None = None,
    text: ReadText = transcript_text,
    text_version: str = "1",
    name: str = "",
    grams: Grams = "words",
    n: tuple[int, int] | None = None,
    strength: float = 1.0,
    class_weight: Literal["balanced"] | Mapping[str, float] | None = "balanced",
    most_terms: int = 50_000,
) -> DecisionEvaluator[Any, V]:
    """A decision evaluator with a `LocalClassifier` of each field, trained on people's labels.

    It hands everything off until `fit_thresholds` has seen labels of other examples.

    Args:
        dataset: labelled examples; those without a label, or without that field, teach nothing.
        fields: what to decide; by default the fields that the verdict type requires, or all where it requires none.
        text: what classifiers read of an input; by default what was said in a transcript.
        text_version: change it whenever `text` is changed.
        name: of the evaluator; by default that of the installed measure with the verdict type.
        grams: as in `LocalClassifier.train`, like the options below.
        n: see there.
        strength: see there.
        class_weight: see there.
        most_terms: see there.

    Raises:
        FieldTypeError: the verdict type requires a field that no classifier can decide, such as a text.
        InputError: the dataset has no labels, those of a field are all the same, or an option cannot be used.
        MissingExtraError: scikit-learn is not installed.
    """
    verdict_type = checked_dataset(dataset).verdict_type
    if verdict_type is None:
        raise InputError(f"dataset {quoted(dataset.name)} has no labels to learn from")
    can = decidable(verdict_type)
    required = [each for each in can if verdict_type.model_fields[each].is_required()]
    wanted = list(fields) if fields is not None else required or list(can)
    unknown = next((each for each in wanted if each not in can), None)
    if unknown is not None:
        raise InputError(f"fields names {quoted(unknown)}; {choice_words(unknown, can)}")
    read = [
        (example.expected, given, text(given))
        for example in dataset
        if example.expected is not None
        for given in (example.given(),)
    ]
    settings: dict[str, Any] = {
        "grams": grams,
        "n": n,
        "strength": strength,
        "class_weight": class_weight,
        "most_terms": most_terms,
    }
    return DecisionEvaluator(
        verdict_type,
        {each: _trained(each, read, settings) for each in wanted},
        text=text,
        text_version=text_version,
        input_type=dataset.input_type,
        name=name,
    )


def _trained(name: str, read: Sequence[tuple[Any, Input, str]], settings: Mapping[str, Any]) -> LocalClassifier:
    known = [(label_of(value), given, text) for said, given, text in read if (value := getattr(said, name)) is not None]
    seen = {found for _, given, text in known for found in (mark(given), text_mark(text))}
    try:
        return LocalClassifier.train(
            [text for _, _, text in known], [label for label, _, _ in known], seen=seen, **settings
        )
    except InputError as error:
        raise InputError(f"field {name}: {error}") from error

"""Classifiers: what gives each label a score from texts, and how labels stand for a verdict's values."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple, Protocol, cast, runtime_checkable

from pydantic import BaseModel

from evalr.errors import FieldTypeError, InputError
from evalr.estimates.words import choice_words
from evalr.fields import Field, verdict_fields
from evalr.inputs import Input, Transcript
from evalr.labels.lines import digest
from evalr.quoting import quoted, safe_text

Scores = Sequence[Mapping[str, float]]
"""For each text, a score from 0 to 1 of each label; the highest is the answer."""

MOST_CHOICES = 100
"""A whole number between bounds is decided as one of so many choices, and no more."""


@runtime_checkable
class Classifier(Protocol):
    """Anything that gives each of its labels a score, from texts: a model on this machine, or behind an API.

    It may also have `cost_per_text` (US dollars; unknown where it has none), and `seen`, as `LocalClassifier` has it:
    hashes of what it was trained on, which is then kept out of what measures it.
    """

    @property
    def labels(self) -> Sequence[str]:
        """What it tells apart."""

    @property
    def version(self) -> str:
        """Changes whenever its scores may."""

    def classify(self, texts: Sequence[str], /) -> Scores | Awaitable[Scores]:
        """The scores of each text, in order, by label. It may be an async function."""


def is_async(classifier: Classifier) -> bool:
    """Whether its scores must be awaited, as far as can be told before it is asked."""
    return inspect.iscoroutinefunction(classifier.classify)


def transcript_text(transcript: Transcript) -> str:
    """A transcript as one text: the request, what people and agents said in turn, and the result."""
    said = (f"{turn.role}: {turn.text}" for turn in transcript.turns if turn.role in ("person", "agent") and turn.text)
    result = [] if transcript.result is None else [f"result: {transcript.result}"]
    return "\n".join([f"request: {transcript.request}", *said, *result])


class Answer(NamedTuple):
    """The label with the highest score, and its score. Of several, the first in the classifier's order."""

    label: str
    score: float


def answers(classifier: Classifier, texts: Sequence[str], found: object) -> list[Answer]:
    """What a classifier's scores say of each text.

    Raises:
        InputError: they are not scores of those texts.
    """
    if not isinstance(found, Sequence) or len(found) != len(texts):
        counted = f"{len(found)} scores" if isinstance(found, Sequence) else f"a {type(found).__name__}"
        raise InputError(f"the classifier was given {len(texts)} texts and gave {counted}: it must score each text")
    labels = list(classifier.labels)
    return [_answer(labels, scores) for scores in found]


def _answer(labels: list[str], scores: object) -> Answer:
    if not isinstance(scores, Mapping):
        raise InputError(f"the classifier gave a {type(scores).__name__} where scores by label were promised")
    if set(scores) != set(labels):
        raise InputError(
            f"the classifier scored {_listed(scores)}, and its labels are {_listed(labels)}: it must score each"
        )
    kept = {label: float(scores[label]) for label in labels}
    wrong = next((label for label, score in kept.items() if not 0 <= score <= 1), None)
    if wrong is not None:
        raise InputError(f"the classifier gave {quoted(wrong)} a score of {kept[wrong]}: scores are from 0 to 1")
    best = max(labels, key=kept.__getitem__)
    return Answer(best, kept[best])


def _listed(labels: object) -> str:
    return ", ".join(quoted(str(label)) for label in cast("Sequence[object]", labels)) or "none"


# ---------------------------------------------------------------------------------------------------------------------
# Labels for values
# ---------------------------------------------------------------------------------------------------------------------


def label_of(value: Any) -> str:
    """The label that stands for a value of a field: `true`, `false`, or the choice or number as a text."""
    plain = value.value if isinstance(value, Enum) else value
    return str(plain).lower() if isinstance(plain, bool) else str(plain)


def values_by_label(field: Field) -> dict[str, Any] | None:
    """The values that a field may have by their labels; None where they cannot be listed."""
    if field.kind == "bool":
        return {"true": True, "false": False}
    if field.kind == "choice":
        return {label_of(choice): choice for choice in field.choices}
    if field.kind == "integer" and field.low is not None and field.high is not None:
        low, high = int(field.low), int(field.high)
        return {str(n): n for n in range(low, high + 1)} if high - low < MOST_CHOICES else None
    return None


def decidable(verdict_type: type[BaseModel]) -> dict[str, dict[str, Any]]:
    """The fields that a classifier can decide, each with its values by their labels.

    Raises:
        FieldTypeError: a field that none can decide is required, or there is none that one can.
    """
    found = {}
    for field in verdict_fields(verdict_type):
        if field.name in verdict_type.model_computed_fields:
            continue
        values = values_by_label(field)
        if values is not None:
            found[field.name] = values
        elif field.required:
            what = "a text" if field.kind == "text" else f"of kind {field.kind!r}, with values that cannot be listed,"
            raise FieldTypeError(
                f"{verdict_type.__name__}.{field.name} is {what} and required: a classifier chooses among labels, so "
                "give the field a default, such as None"
            )
    if not found:
        raise FieldTypeError(
            f"{verdict_type.__name__} has no field that a classifier can decide: a bool, a choice, or a whole number "
            f"between bounds that are less than {MOST_CHOICES} apart"
        )
    return found


def check_labels(owner: str, classifier: object, values: Mapping[str, Any]) -> None:
    """Raise InputError unless it is a classifier each of whose labels stands for a value."""
    if not isinstance(classifier, Classifier):
        raise InputError(f"{owner}: {safe_text(repr(classifier))} is no classifier: it needs labels, version, classify")
    labels = list(classifier.labels)
    if len(set(labels)) < len(labels) or len(labels) < 2:
        raise InputError(f"{owner}: a classifier needs two labels or more, all different, not {_listed(labels)}")
    unknown = next((label for label in labels if label not in values), None)
    if unknown is not None:
        raise InputError(
            f"{owner} has no value {quoted(unknown)}; {choice_words(unknown, values)}. Pass values= to say which value "
            "each label of the classifier stands for"
        )


# ---------------------------------------------------------------------------------------------------------------------
# What was seen before
# ---------------------------------------------------------------------------------------------------------------------


def mark(given: Input) -> str:
    """What tells an input again: a hash of its subject. A session that went on is still the same."""
    return _hashed(f"subject {given.about().subject!r}")


def text_mark(text: str) -> str:
    """What tells a text again. Others may say the same, so it alone does not tell an input."""
    return _hashed(f"text {text}")


def _hashed(spelled: str) -> str:
    return digest(spelled).hex()[:16]


ReadText = Callable[[Any], str]

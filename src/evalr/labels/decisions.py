"""Decision evaluators: a classifier answers where people's labels show that it may, and hands the rest on."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from time import perf_counter
from typing import Any, Generic, NamedTuple

from pydantic import ValidationError

from evalr.background import run_sync
from evalr.errors import InputError, error_words
from evalr.estimates.words import choice_words, count_words
from evalr.evaluators import I, known_total
from evalr.input_fields import without_lone_surrogates
from evalr.inputs import Transcript
from evalr.labels.classifiers import (
    Answer,
    Classifier,
    ReadText,
    answers,
    check_labels,
    decidable,
    is_async,
    mark,
    transcript_text,
)
from evalr.labels.decision_fit import DecisionFit
from evalr.labels.lines import digest, type_words
from evalr.measures.measure import default_name
from evalr.plain import canonical_text
from evalr.quoting import quoted, safe_text
from evalr.verdicts import TRAINED_ON, Failure, HandOff, Result, V, Verdict

BATCH = 256
"""Texts that a classifier is given at once."""


Answers = dict[str, Answer]
"""By field."""


class Opinion(NamedTuple):
    """What a classifier says of one field of one input, and whether that decides it."""

    answer: Answer
    confidence: float | None
    doubt: str | None
    """Why it does not; None where it does."""


@dataclass(frozen=True, eq=False)
class DecisionEvaluator(Generic[I, V]):
    """Verdicts by classifiers: one where each field's answer clears its threshold, a hand-off where one does not.

    The hand-off has the verdict that was not sure enough, so that `Fallback(decision, judge)` asks the judge of the
    unsure ones alone. Until thresholds are fitted (`fit_thresholds`) or given, every input is handed off.

    A verdict's confidence, by field, is the chance that people would say the same, as their labels show it; a score
    alone is no such chance, and gives none. Fields that have a default and no classifier keep the default.

    A verdict on an input that trained a classifier or fitted a threshold says so (the flag "trained_on"), and agreement
    with people leaves it out.

    Args:
        verdict_type: whose bool, choice and bounded whole-number fields are decided. No other may be required.
        classifiers: one for each field that it has to decide, by the field's name; one alone where there is one field.
        text: what a classifier reads of an input; by default what was said in a transcript.
        text_version: change it whenever `text` is changed.
        input_type: what it reads. Another type of input is an error.
        name: the prefix of its scores; by default the name of the installed measure with that verdict type.
        values: by field, the value that each label stands for, where a classifier has labels of its own, such as
            `{"completed": {"POSITIVE": True, "NEGATIVE": False}}`. By default `true` and `false`, or the choice itself.
        thresholds: by field, the least score that counts, where there are no labels to fit it to.
        fit: the fitted thresholds and calibration.

    Raises:
        FieldTypeError: a field that no classifier can decide is required, such as a text; the message names it.
        InputError: a required field has no classifier, a label stands for no value, or the fit is of others.
    """

    verdict_type: type[V]
    classifiers: Mapping[str, Classifier]
    text: ReadText = field(default=transcript_text, kw_only=True)
    text_version: str = field(default="1", kw_only=True)
    input_type: type[I] = field(default=Transcript, kw_only=True)  # type: ignore[assignment]  # as `text` by default
    name: str = field(default="", kw_only=True)
    values: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, kw_only=True)
    thresholds: Mapping[str, float] = field(default_factory=dict, kw_only=True)
    fit: DecisionFit | None = field(default=None, kw_only=True)
    _values: dict[str, dict[str, Any]] = field(init=False, repr=False, compare=False)
    _version: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        can = decidable(self.verdict_type)
        settled = {
            "classifiers": _by_field(self.verdict_type.__name__, can, self.classifiers),
            "name": self.name or default_name(self.verdict_type),
        }
        for name, value in settled.items():
            object.__setattr__(self, name, value)
        for option in ("values", "thresholds"):
            unknown = next((name for name in getattr(self, option) if name not in self.classifiers), None)
            if unknown is not None:
                raise InputError(f"{option} names {quoted(unknown)}; {choice_words(unknown, self.classifiers)}")
        self._check_required(can)
        values = {name: self._checked_values(name, can[name]) for name in self.classifiers}
        object.__setattr__(self, "_values", values)
        self._check_thresholds()
        object.__setattr__(self, "_version", self._made_version())

    def _check_required(self, can: Mapping[str, Any]) -> None:
        required = [name for name in can if self.verdict_type.model_fields[name].is_required()]
        missing = next((name for name in required if name not in self.classifiers), None)
        if missing is not None:
            raise InputError(
                f"{self.verdict_type.__name__}.{missing} is required and has no classifier: pass one as "
                f"classifiers={{{missing!r}: ...}}, or give the field a default"
            )

    def _checked_values(self, name: str, known: dict[str, Any]) -> dict[str, Any]:
        """The values of a field by the labels of its classifier."""
        classifier, own = self.classifiers[name], self.values.get(name)
        owner = f"{self.verdict_type.__name__}.{name}"
        if own is None:
            check_labels(owner, classifier, known)
            return {label: known[label] for label in classifier.labels}
        wrong = [value for value in own.values() if not any(_same(value, each) for each in known.values())]
        if wrong:
            raise InputError(f"values[{name!r}] has {safe_text(repr(wrong[0]))}, which is no value of {owner}")
        check_labels(owner, classifier, own)
        return {label: own[label] for label in classifier.labels}

    def _check_thresholds(self) -> None:
        if self.fit is None:
            wrong = next((name for name, at in self.thresholds.items() if not 0 <= at <= 1), None)
            if wrong is not None:
                raise InputError(f"thresholds[{wrong!r}] is {self.thresholds[wrong]}: scores are from 0 to 1")
            return
        if self.thresholds:
            raise InputError("thresholds= and fit= both say what counts: pass one of them")
        for name, classifier in self.classifiers.items():
            fitted = self.fit.classifiers.get(name)
            if fitted != classifier.version:
                raise InputError(
                    f"the fit is of {name} by version {fitted!r}, and the classifier is {classifier.version!r}: fit "
                    "the thresholds of this one"
                )

    def _made_version(self) -> str:
        parts = {
            "type": type_words(self.verdict_type),
            "input": self.input_type.__name__,
            "text": [getattr(self.text, "__qualname__", type(self.text).__qualname__), self.text_version],
            "classifiers": {name: classifier.version for name, classifier in self.classifiers.items()},
            "values": {
                name: {label: repr(value) for label, value in values.items()} for name, values in self._values.items()
            },
            "thresholds": {name: float(at) for name, at in self.thresholds.items()},
            "fit": None if self.fit is None else self.fit.model_dump(mode="json", exclude={"seen"}),
        }
        return f"1:{digest(canonical_text(parts)).hex()[:12]}"

    @property
    def version(self) -> str:
        """A digest of all that may change an answer: types, text, classifiers, thresholds and calibration."""
        return self._version

    @cached_property
    def seen(self) -> frozenset[str]:
        """Hashes of what trained its classifiers or fitted its thresholds, which must not measure it."""
        fitted: frozenset[str] = frozenset() if self.fit is None else self.fit.seen
        return fitted.union(*(getattr(classifier, "seen", ()) for classifier in self.classifiers.values()))

    @property
    def cost_per_text(self) -> float | None:
        """US dollars for one input by all its classifiers; None as soon as one does not say."""
        return known_total([getattr(classifier, "cost_per_text", None) for classifier in self.classifiers.values()])

    def expected_calls(self, given: I, /) -> int:
        """One of each classifier, but of those that cost nothing."""
        return sum(getattr(classifier, "cost_per_text", None) != 0 for classifier in self.classifiers.values())

    def value_of(self, name: str, label: str) -> Any:
        """The value of a field that a label of its classifier stands for."""
        return self._values[name][label]

    # -- evaluating ---------------------------------------------------------------------------------------------------

    async def evaluate(self, given: I, /) -> Result[V]:
        """The result for one input."""
        return (await self.evaluate_many([given]))[0]

    def evaluate_sync(self, given: I, /) -> Result[V]:
        """As `evaluate`, from code that cannot await, in a notebook too."""
        return self.evaluate_many_sync([given])[0]

    async def evaluate_many(self, inputs: Iterable[I], /, *, batch: int = BATCH) -> list[Result[V]]:
        """The results of many inputs in order, which classifiers are given so many at a time.

        A sync classifier runs in a worker thread. The latency of a result is its share of its batch's.
        """
        results: list[Result[V]] = []
        for part in self._batches(inputs, batch):
            start = perf_counter()
            asked = await self.asked(part)
            results += self.results_of(part, asked, perf_counter() - start)
        return results

    def evaluate_many_sync(self, inputs: Iterable[I], /, *, batch: int = BATCH) -> list[Result[V]]:
        """As `evaluate_many`, from code that cannot await; sync classifiers run in place."""
        if any(map(is_async, self.classifiers.values())):
            return run_sync(self.evaluate_many(inputs, batch=batch))
        results: list[Result[V]] = []
        for part in self._batches(inputs, batch):
            start = perf_counter()
            asked = self._asked_in_place(part)
            results += self.results_of(part, asked, perf_counter() - start)
        return results

    def _batches(self, inputs: Iterable[I], batch: int) -> Iterable[list[I]]:
        if not isinstance(batch, int) or batch < 1:
            raise InputError(f"batch is counted from 1, not {batch!r}")
        listed = list(inputs)
        for given in listed:
            if not isinstance(given, self.input_type):
                raise InputError(
                    f"evaluator {self.name!r} reads {self.input_type.__name__}, not {type(given).__name__}: pass it "
                    "only inputs of that type"
                )
        return (listed[start : start + batch] for start in range(0, len(listed), batch))

    async def asked(self, inputs: Sequence[I], /) -> list[Answers | Exception]:
        """What the classifiers say of each input, whatever its thresholds, or why they say nothing."""
        from anyio import to_thread

        if not any(map(is_async, self.classifiers.values())):
            return await to_thread.run_sync(self._asked_in_place, inputs)
        texts = [self.text_of(given) for given in inputs]
        read = _known(texts)
        found: dict[str, list[Answer] | Exception] = {}
        for name, classifier in self.classifiers.items():
            try:
                scores: Any = classifier.classify(read) if read else []
                found[name] = answers(classifier, read, await scores if inspect.isawaitable(scores) else scores)
            except Exception as error:  # noqa: BLE001  whatever a classifier raises is the inputs' failure
                found[name] = error
        return _of_each(texts, found)

    def _asked_in_place(self, inputs: Sequence[I]) -> list[Answers | Exception]:
        texts = [self.text_of(given) for given in inputs]
        read = _known(texts)
        found: dict[str, list[Answer] | Exception] = {}
        for name, classifier in self.classifiers.items():
            try:
                scores: Any = classifier.classify(read) if read else []
                if inspect.isawaitable(scores):
                    if inspect.iscoroutine(scores):
                        scores.close()  # nobody will await it
                    raise InputError("its classify gives something to await: write it as `async def`")
                found[name] = answers(classifier, read, scores)
            except Exception as error:  # noqa: BLE001  as in `asked`
                found[name] = error
        return _of_each(texts, found)

    def text_of(self, given: I, /) -> str | Exception:
        """What its classifiers read of an input, or why it cannot be read."""
        try:
            found: object = self.text(given)
        except Exception as error:  # noqa: BLE001  whatever a person's function raises is this input's failure
            return error
        return found if isinstance(found, str) else InputError(f"text gave a {type(found).__name__}, which is no text")

    def results_of(self, inputs: Sequence[I], asked: Sequence[Answers | Exception], latency: float) -> list[Result[V]]:
        """The results of inputs by what their classifiers said of them, which took so many seconds in all."""
        share = latency / len(inputs)
        return [
            self._failure(given, found, share)
            if isinstance(found, Exception)
            else self._result(given, {name: self._opinion(name, answer) for name, answer in found.items()}, share)
            for given, found in zip(inputs, asked, strict=True)
        ]

    def _opinion(self, name: str, answer: Answer) -> Opinion:
        fitted = None if self.fit is None else self.fit.threshold(name, answer.label)
        confidence = None if fitted is None else fitted.confidence(answer.score)
        at = self.thresholds.get(name) if fitted is None else fitted.at
        if at is not None:
            under = f"{name}: the score of {quoted(answer.label)} is under its threshold"
            return Opinion(answer, confidence, None if answer.score >= at else under)
        if self.fit is None:
            return Opinion(answer, None, f"{name}: it has no threshold, so fit one to people's labels (fit_thresholds)")
        return Opinion(
            answer, confidence, f"{name}: no score of {quoted(answer.label)} is known to be right often enough"
        )

    def _result(self, given: I, opinions: Mapping[str, Opinion], latency: float) -> Result[V]:
        cost, about = self.cost_per_text, given.about()
        values = {name: self._values[name][opinion.answer.label] for name, opinion in opinions.items()}
        try:
            value = self.verdict_type.model_validate(values, by_alias=False, by_name=True)
        except ValidationError:
            reason = f"{', '.join(values)}: the answers do not go together in one {self.verdict_type.__name__}"
            return HandOff(reason, self.name, self.version, about, latency, cost)
        confidence = {name: each.confidence for name, each in opinions.items() if each.confidence is not None}
        flags = (TRAINED_ON,) if mark(given) in self.seen else ()
        verdict = Verdict(value, self.name, self.version, about, confidence or None, latency, cost, flags=flags)
        doubts = [opinion.doubt for opinion in opinions.values() if opinion.doubt is not None]
        if not doubts:
            return verdict
        return HandOff("; ".join(doubts), self.name, self.version, about, latency, cost, None, verdict)

    def _failure(self, given: I, error: Exception, latency: float) -> Failure:
        words = without_lone_surrogates(error_words(error))
        return Failure(words, self.name, self.version, given.about(), latency, self.cost_per_text, None, error)


def _by_field(type_name: str, can: Mapping[str, Any], given: object) -> dict[str, Classifier]:
    """Classifiers by field; one alone decides the one field that there is."""
    if isinstance(given, Mapping):
        unknown = next((name for name in given if name not in can), None)
        if unknown is not None:
            raise InputError(
                f"{type_name} has no field {quoted(str(unknown))} that a classifier can decide; "
                f"{choice_words(str(unknown), can)}"
            )
        if not given:
            raise InputError(f"{type_name} needs a classifier of {', '.join(can)}")
        return dict(given)
    if len(can) > 1:
        raise InputError(
            f"{type_name} has {count_words(len(can), 'field')} to decide ({', '.join(can)}): pass classifiers by "
            f"field, such as {{{next(iter(can))!r}: classifier}}"
        )
    alone: Any = given  # what it is, `check_labels` says
    return dict.fromkeys(can, alone)


def _same(one: object, other: object) -> bool:
    return type(one) is type(other) and one == other


def _known(texts: Sequence[str | Exception]) -> list[str]:
    return [text for text in texts if isinstance(text, str)]


def _of_each(
    texts: Sequence[str | Exception], found: Mapping[str, list[Answer] | Exception]
) -> list[Answers | Exception]:
    """The answers of each text by field, or why there are none."""
    failed = next((error for error in found.values() if isinstance(error, Exception)), None)
    columns = {name: iter(each) for name, each in found.items() if isinstance(each, list)}
    return [
        text if isinstance(text, Exception) else failed or {name: next(column) for name, column in columns.items()}
        for text in texts
    ]

"""When may a classifier decide? Thresholds from people's labels, and how the decisions hold on others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from pydantic import BaseModel

from evalr.background import run_sync
from evalr.errors import InputError
from evalr.estimates import display
from evalr.estimates.calibration import Reliability, brier_score, reliability
from evalr.estimates.estimate import Estimate
from evalr.estimates.interval import tail
from evalr.estimates.judged import Part
from evalr.estimates.platt import platt
from evalr.estimates.plot import Plotted
from evalr.estimates.rate import clopper_pearson, rate_interval
from evalr.estimates.words import choice_words, count_words, share_digits
from evalr.inputs import About
from evalr.labels.classifiers import Answer, label_of, mark, text_mark
from evalr.labels.datasets import Dataset, checked_dataset
from evalr.labels.decision_fit import DecisionFit, Threshold
from evalr.labels.decisions import BATCH, Answers, DecisionEvaluator
from evalr.labels.examples import GROUP, Example
from evalr.quoting import quoted, safe_text
from evalr.summaries import Rate
from evalr.tallies.moments import Moments
from evalr.verdicts import HandOff, Result, V, Verdict

TRIES = 5
"""Thresholds that are tried for each answer. Each is held to a stricter level, so that all of them hold together."""

METHOD = f"clopper-pearson of {TRIES} tries, Bonferroni; platt/1 by answer"

TRAINED = "used to train or fit it"
EXCLUDED = "excluded"
UNLABELLED = "without a label"
UNREAD = "not classified"

Target = float | None | Mapping[str, float | None]
"""The share of decisions that must be right: for all fields, or by field; None where every score of a field counts."""


class _Asked(NamedTuple):
    """An example with a label, and what classifiers say of it."""

    example: Example[Any]
    answers: Answers

    @property
    def cluster(self) -> tuple[str, str]:
        """What it is alike with: its group, or itself."""
        group = self.example.group
        return ("id", self.example.id) if group is None else ("group", group)


# ---------------------------------------------------------------------------------------------------------------------
# Fitting
# ---------------------------------------------------------------------------------------------------------------------


async def fit_thresholds(
    decision: DecisionEvaluator[Any, V],
    dataset: Dataset[V],
    *,
    target_precision: Target = 0.9,
    level: float = 0.95,
    exclude: Iterable[Example[Any]] = (),
) -> DecisionEvaluator[Any, V]:
    """The evaluator with thresholds, and with confidence, from people's labels of inputs that trained no classifier.

    For each answer of each field (`true` and `false`, say) the lowest of at most five scores is taken from which on
    the share right clears the target: not the share that was seen, but the lower limit of its interval, exact
    (Clopper-Pearson), over groups, and at a level at which all five hold together (Bonferroni). The five are spread by
    how many labels lie above them, from as few as could show the target if all were right, so that the labels do not
    choose what is tried. Where none clears it, the answer is always handed on, and `str(evaluator.fit)` says why.

    Confidence is the chance of being right at a score, by Platt scaling of each answer's scores by itself.

    Where several fields have a target, each holds for all inputs that clear its own threshold. A verdict takes that all
    of them clear theirs, and how often a field is right among those `measure_decisions` says.

    Args:
        decision: what to fit.
        dataset: people's labels. Examples that trained a classifier which says so are left out and counted.
        target_precision: the share of decisions on which people must agree; 0.9, or by field. None takes any score.
        level: of the two-sided interval whose lower limit must clear the target.
        exclude: examples that trained a classifier which does not say so itself.

    Raises:
        InputError: the dataset has other types, no example is left, or an option cannot be used.
    """
    targets = _targets(decision, target_precision)
    tail(level)
    plain = replace(decision, thresholds={}, fit=None)  # labels that fitted it before may do so again
    kept, left_out = _kept(plain, dataset, exclude)
    asked = _labelled(kept, await _answers(plain, kept), left_out)
    return replace(plain, fit=_fit(plain, dataset, asked, targets, level, left_out))


def fit_thresholds_sync(
    decision: DecisionEvaluator[Any, V],
    dataset: Dataset[V],
    *,
    target_precision: Target = 0.9,
    level: float = 0.95,
    exclude: Iterable[Example[Any]] = (),
) -> DecisionEvaluator[Any, V]:
    """As `fit_thresholds`, from code that cannot await, in a notebook too."""
    return run_sync(fit_thresholds(decision, dataset, target_precision=target_precision, level=level, exclude=exclude))


def _targets(decision: DecisionEvaluator[Any, Any], given: Target) -> dict[str, float | None]:
    names = list(decision.classifiers)
    found: dict[str, float | None] = dict(given) if isinstance(given, Mapping) else dict.fromkeys(names, given)
    unknown = next((name for name in found if name not in names), None)
    if unknown is not None:
        raise InputError(f"target_precision names {quoted(unknown)}; {choice_words(unknown, names)}")
    missing = next((name for name in names if name not in found), None)
    if missing is not None:
        raise InputError(f"target_precision says nothing of {missing}: give it a share, or None to take any score")
    for name, target in found.items():
        if target is not None and not (isinstance(target, int | float) and 0 < target < 1):
            raise InputError(
                f"target_precision of {name} is {target!r}: it must lie between 0 and 1, both excluded, since no "
                "number of labels shows that a share is 1"
            )
    return found


def _fit(
    decision: DecisionEvaluator[Any, Any],
    dataset: Dataset[Any],
    asked: Sequence[_Asked],
    targets: Mapping[str, float | None],
    level: float,
    left_out: Counter[str],
) -> DecisionFit:
    thresholds = []
    for name, classifier in decision.classifiers.items():
        known = [each for each in asked if getattr(each.example.expected, name) is not None]
        if len(known) < len(asked):
            left_out[f"without a label of {name}"] += len(asked) - len(known)
        for label in classifier.labels:
            rows = [
                Row(each.cluster, each.answers[name].score, is_right(decision, name, each.answers[name], each.example))
                for each in known
                if each.answers[name].label == label
            ]
            thresholds.append(fitted_threshold(name, label, rows, targets[name], level))
    seen: frozenset[str] = frozenset().union(*(_marks(decision, each.example) for each in asked))
    return DecisionFit(
        thresholds=tuple(thresholds),
        level=level,
        tries=TRIES,
        method=METHOD,
        used=len(asked),
        repeats=_repeats(decision, asked),
        left_out=dict(left_out),
        dataset=dataset.hash,
        classifiers={name: classifier.version for name, classifier in decision.classifiers.items()},
        seen=seen,
    )


class Row(NamedTuple):
    """One label of an input of which a classifier gave a certain answer."""

    cluster: tuple[str, str]
    score: float
    right: bool


def fitted_threshold(field: str, label: str, rows: Sequence[Row], target: float | None, level: float) -> Threshold:
    """The least score from which on one answer of a field is right as often as it must be; see `fit_thresholds`."""
    ordered = sorted(rows, key=lambda row: -row.score)
    scaling = platt((row.score, row.right) for row in rows)
    strict = 1 - (1 - level) / TRIES
    facts: dict[str, Any] = {
        "field": field,
        "label": label,
        "target": target,
        "labels": len(rows),
        "slope": None if scaling is None else scaling.slope,
        "intercept": None if scaling is None else scaling.intercept,
    }
    if target is None:
        return Threshold(**facts, at=0.0, **_counted(ordered, strict))
    fewest = _fewest(target, strict)
    best: Sequence[Row] = ()
    for at in _tried([row.score for row in ordered], fewest):
        above = [row for row in ordered if row.score >= at]
        low = _counted(above, strict)["low"]
        if low is not None and low >= target:
            best = above
    if best:
        return Threshold(**facts, at=best[-1].score, **_counted(best, strict))
    nothing: dict[str, Any] = {"at": None, "decided": 0, "right": 0, "low": None, "high": None}
    return Threshold(**facts, **nothing, reason=_why_none(ordered, target, strict, fewest))


def _fewest(target: float, level: float) -> int:
    """The fewest labels whose lower limit clears the target if all of them are right."""
    few, many = 0, 1
    while clopper_pearson(many, many, level)[0] < target:
        few, many = many, 2 * many
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if clopper_pearson(middle, middle, level)[0] >= target else (middle, many)
    return many


def _tried(scores: Sequence[float], fewest: int) -> list[float]:
    """The scores to try, highest first: `TRIES` counts of labels in equal ratios, from the fewest to all of them."""
    most = len(scores)
    if most < fewest:
        return []
    counts = {round(fewest * (most / fewest) ** (step / (TRIES - 1))) for step in range(TRIES)}
    return sorted({scores[count - 1] for count in counts}, reverse=True)


def _counted(rows: Sequence[Row], level: float) -> dict[str, Any]:
    """How many rows, how many are right, and the limits of that share, over clusters."""
    sums: dict[tuple[str, str], list[int]] = {}
    for row in rows:
        counts = sums.setdefault(row.cluster, [0, 0])
        counts[0] += row.right
        counts[1] += 1
    moments = Moments.of_clusters((right, n, n) for right, n in sums.values())
    interval = rate_interval(moments, level=level, method="clopper_pearson")
    right = sum(row.right for row in rows)
    return {"decided": len(rows), "right": right, "low": interval.low, "high": interval.high}


def _why_none(rows: Sequence[Row], target: float, level: float, fewest: int) -> str:
    wanted = f"{share_digits(target)}%"
    if len(rows) < fewest:
        return (
            f"since {count_words(len(rows), 'label')} of it cannot show {wanted}: it takes {fewest:,} if all are right"
        )
    tried = [[row for row in rows if row.score >= at] for at in _tried([row.score for row in rows], fewest)]
    lows = [low for low in (_counted(each, level)["low"] for each in tried) if low is not None]
    if not lows:
        return f"since its {count_words(len(rows), 'label')} are of a single group, which cannot show {wanted}"
    return (
        f"since no score of {count_words(len(rows), 'label')} reaches {wanted}: the best lower limit is "
        f"{share_digits(max(lows))}%"
    )


# ---------------------------------------------------------------------------------------------------------------------
# Measuring
# ---------------------------------------------------------------------------------------------------------------------


class _Told(BaseModel):
    right: bool


_precision = Rate("precision", of=_Told, hits=lambda v: v.right, title="decided as people do", noun="decision")
_share = Rate("decided", of=_Told, hits=lambda v: v.right, title="decided", noun="example")


@dataclass(frozen=True)
class DecisionQuality(Plotted):
    """How a decision evaluator's verdicts compare with people's labels.

    Attributes:
        decided: the share of examples that it decided; the others it handed off.
        precision: by field, the share of its verdicts with which people agree.
        by_label: the same for each of a field's answers.
        brier: by field, the Brier score of its confidence, over hand-offs too, and over no answers without one.
        reliability: by field, confidence and the share right in bins.
        left_out: examples that were not used, by reason.
        repeats: examples that were used, and have the same text as one that trained or fitted the evaluator.
    """

    decided: Estimate
    precision: dict[str, Estimate]
    by_label: dict[str, dict[str, Estimate]]
    brier: dict[str, Part]
    reliability: dict[str, Reliability]
    left_out: dict[str, int]
    repeats: int

    def drawn(self) -> list[tuple[str, Estimate]]:
        """See `Plotted.drawn`."""
        fields = [(f"{name}: decided as people do", each) for name, each in self.precision.items()]
        return [("decided", self.decided), *fields]

    def _repr_html_(self) -> str:
        return display.printed(str(self))

    def __str__(self) -> str:
        lines = [str(self.decided)]
        for name, estimate in self.precision.items():
            lines.append(f"{name}: {estimate}")
            lines += [f"  {safe_text(label)}: {each}" for label, each in self.by_label[name].items()]
            brier = self.brier[name].value
            lines += [] if brier is None else [f"  Brier score of its confidence: {brier:.3f}"]
        if self.left_out:
            lines.append("left out: " + ", ".join(f"{n:,} {reason}" for reason, n in self.left_out.items()))
        if self.repeats:
            lines.append(f"{self.repeats:,} have a text that it has seen, of another example")
        return "\n".join(lines)


async def measure_decisions(
    decision: DecisionEvaluator[Any, V],
    dataset: Dataset[V],
    *,
    level: float = 0.95,
    exclude: Iterable[Example[Any]] = (),
) -> DecisionQuality:
    """How an evaluator's decisions compare with people's labels of inputs that neither trained nor fitted it.

    Intervals are over groups. Examples that it has seen are left out, and counted.

    Args:
        decision: what to measure.
        dataset: people's labels.
        level: of the intervals.
        exclude: more examples to leave out: those that trained a classifier which does not say so itself.

    Raises:
        InputError: the dataset has other types, or no example is left.
    """
    tail(level)
    kept, left_out = _kept(decision, dataset, exclude)
    asked = _labelled(kept, await _answers(decision, kept), left_out)
    return _quality(decision, asked, level, left_out)


def measure_decisions_sync(
    decision: DecisionEvaluator[Any, V],
    dataset: Dataset[V],
    *,
    level: float = 0.95,
    exclude: Iterable[Example[Any]] = (),
) -> DecisionQuality:
    """As `measure_decisions`, from code that cannot await, in a notebook too."""
    return run_sync(measure_decisions(decision, dataset, level=level, exclude=exclude))


def _quality(
    decision: DecisionEvaluator[Any, Any],
    asked: Sequence[_Asked],
    level: float,
    left_out: Counter[str],
) -> DecisionQuality:
    results = decision.results_of([each.example.given() for each in asked], [each.answers for each in asked], 0.0)
    pairs = list(zip(asked, results, strict=True))

    def told(right: bool, each: _Asked) -> Verdict[_Told]:
        return Verdict(_Told(right=right), decision.name, decision.version, each.example.about())

    def estimated(rate: Rate[_Told], verdicts: Iterable[Verdict[_Told]]) -> Estimate:
        return rate.estimate(verdicts, cluster=_group_of, level=level)

    decided = estimated(_share, (told(isinstance(result, Verdict), each) for each, result in pairs))
    precision, by_label, brier, bins = {}, {}, {}, {}
    for name, classifier in decision.classifiers.items():
        known = [pair for pair in pairs if getattr(pair[0].example.expected, name) is not None]
        if len(known) < len(pairs):
            left_out[f"without a label of {name}"] += len(pairs) - len(known)
        rows = [(each, result, is_right(decision, name, each.answers[name], each.example)) for each, result in known]
        verdicts = [(each, right) for each, result, right in rows if isinstance(result, Verdict)]
        precision[name] = estimated(_precision, (told(right, each) for each, right in verdicts))
        by_label[name] = {
            label: estimated(
                _precision, (told(right, each) for each, right in verdicts if each.answers[name].label == label)
            )
            for label in classifier.labels
        }
        sure = [
            (each.cluster, confidence, right)
            for each, result, right in rows
            if (confidence := _confidence(result, name)) is not None
        ]
        brier[name], bins[name] = brier_score(sure, level=level), reliability(sure, level=level)
    return DecisionQuality(decided, precision, by_label, brier, bins, dict(left_out), _repeats(decision, asked))


def _confidence(result: Result[Any], name: str) -> float | None:
    verdict = result.verdict if isinstance(result, HandOff) else result
    return (verdict.confidence or {}).get(name) if isinstance(verdict, Verdict) else None


def _group_of(about: About) -> str:
    group = (about.attributes or {}).get(GROUP)
    return f"group {group}" if isinstance(group, str) else f"id {about.id}"


# ---------------------------------------------------------------------------------------------------------------------
# The examples that count
# ---------------------------------------------------------------------------------------------------------------------


def is_right(decision: DecisionEvaluator[Any, Any], name: str, answer: Answer, example: Example[Any]) -> bool:
    """Whether a classifier's answer is what people say."""
    said = decision.value_of(name, answer.label)
    return label_of(said) == label_of(getattr(example.expected, name))


def _kept(
    decision: DecisionEvaluator[Any, Any], dataset: Dataset[Any], exclude: Iterable[Example[Any]]
) -> tuple[list[Example[Any]], Counter[str]]:
    """The labelled examples that nothing has been fitted to, and how many others there are, by reason."""
    checked_dataset(dataset)
    if dataset.verdict_type is None or not issubclass(dataset.verdict_type, decision.verdict_type):
        found = "none" if dataset.verdict_type is None else dataset.verdict_type.__name__
        raise InputError(
            f"dataset {quoted(dataset.name)} is labelled with {found}, and the evaluator decides "
            f"{decision.verdict_type.__name__}"
        )
    if not issubclass(dataset.input_type, decision.input_type):
        raise InputError(
            f"dataset {quoted(dataset.name)} holds {dataset.input_type.__name__}, and the evaluator reads "
            f"{decision.input_type.__name__}"
        )
    seen = decision.seen
    excluded = {mark(each.given()) for each in exclude}
    kept, left_out = [], Counter[str]()
    for example in dataset:
        if not example.labelled:
            left_out[UNLABELLED] += 1
            continue
        own = mark(example.given())
        if own in seen:
            left_out[TRAINED] += 1
        elif own in excluded:
            left_out[EXCLUDED] += 1
        else:
            kept.append(example)
    if not kept:
        words = ", ".join(f"{n:,} {reason}" for reason, n in left_out.items()) or "it is empty"
        raise InputError(
            f"dataset {quoted(dataset.name)} has no example to use: {words}; label others, and keep them apart with "
            "evalr.labels.split"
        )
    return kept, left_out


def _marks(decision: DecisionEvaluator[Any, Any], example: Example[Any]) -> frozenset[str]:
    """Of an example and of its text."""
    given = example.given()
    text = decision.text_of(given)
    return frozenset([mark(given)] + ([text_mark(text)] if isinstance(text, str) else []))


def _repeats(decision: DecisionEvaluator[Any, Any], asked: Sequence[_Asked]) -> int:
    """How many examples have a text that was seen before, as another example's."""
    seen = decision.seen
    return sum(bool(_marks(decision, each.example) & seen) for each in asked)


async def _answers(
    decision: DecisionEvaluator[Any, Any], examples: Sequence[Example[Any]]
) -> list[Answers | Exception]:
    found: list[Answers | Exception] = []
    for start in range(0, len(examples), BATCH):
        found += await decision.asked([example.given() for example in examples[start : start + BATCH]])
    return found


def _labelled(
    examples: Sequence[Example[Any]], found: Sequence[Answers | Exception], left_out: Counter[str]
) -> list[_Asked]:
    """The examples that classifiers could answer; the others are counted. Raises the first error where none is."""
    asked = [
        _Asked(example, answers)
        for example, answers in zip(examples, found, strict=True)
        if not isinstance(answers, Exception)
    ]
    if not asked:
        raise next(error for error in found if isinstance(error, Exception))
    if len(asked) < len(examples):
        left_out[UNREAD] += len(examples) - len(asked)
    return asked

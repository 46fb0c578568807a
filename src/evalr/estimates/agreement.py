"""How far does a judge agree with people, and people with each other?

Agreement by itself flatters where nearly everything passes, and kappa punishes it: with 90 of 100 cases passed by both
and 10 passed by one of the two, they agree on 90% and kappa is -0.05, for chance alone would have them agree on 90.5%.
That is the prevalence paradox (Feinstein & Cicchetti 1990). So kappa never stands alone here: AC1 (0.89 there) beside
it does not fall with the prevalence, and sensitivity (`tpr`) and specificity (`tnr`, 0 of 5 there) say what is missed.

Rows are (cluster, judge's, people's). Rows of one cluster (a user) are alike, and intervals are over clusters; a
cluster of None is the row itself. No order of rows changes an answer.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Literal, NamedTuple, TypeVar

from evalr.errors import InputError
from evalr.estimates.chance_corrected import (
    Coefficient,
    Item,
    WeightName,
    Weights,
    alpha,
    coefficient_interval,
    gwet,
    kappa,
    matthews,
    ordinal_weights,
    weight_matrix,
)
from evalr.estimates.compare import Difference
from evalr.estimates.contest import paired_difference
from evalr.estimates.interval import NOTHING_COUNTED, Interval, no_interval, tail
from evalr.estimates.judged import Part
from evalr.estimates.mean import mean_interval
from evalr.estimates.rate import rate_interval
from evalr.quoting import safe_text
from evalr.tallies.moments import Exact, Moments, exact

ONE_ANSWER = "one of the two always says the same, which agrees as often as chance has it"
ALL_RATINGS_ALIKE = "all ratings are alike, so nothing is known of disagreement"
NO_PAIRS = "no item has two ratings"
ONE_CATEGORY = "a scale of one category leaves nothing to disagree on: give the whole scale"

Value = TypeVar("Value")
Answer = TypeVar("Answer", bound=Hashable)
Metric = Literal["nominal", "ordinal", "interval"]
METRICS: tuple[Metric, ...] = ("nominal", "ordinal", "interval")


class Confusion(NamedTuple):
    """Rows with a verdict and a label, by which of the two passed them."""

    both: int = 0
    judge_only: int = 0
    people_only: int = 0
    neither: int = 0


class VerdictAgreement(NamedTuple):
    """A judge's verdicts beside people's, yes or no."""

    confusion: Confusion
    unlabelled: int
    """Rows with a verdict and no label; in none of the numbers."""
    unjudged: int
    """Rows with a label and no verdict; in none of the numbers."""
    accuracy: Part
    """Share on which they agree."""
    tpr: Part
    """Sensitivity: passed by the judge, of what people passed."""
    tnr: Part
    """Specificity: failed by the judge, of what people failed."""
    kappa: Part
    ac1: Part
    mcc: Part


class ChoiceAgreement(NamedTuple):
    """A judge's choices beside people's, of several that have no order."""

    confusion: Mapping[tuple[Hashable, Hashable], int]
    """Rows with both, by (judge's, people's)."""
    unlabelled: int
    unjudged: int
    accuracy: Part
    kappa: Part
    ac1: Part
    tpr: Mapping[Hashable, Part]
    """For each choice: chosen by the judge, of what people chose it for."""
    tnr: Mapping[Hashable, Part]
    """For each choice: not chosen by the judge, of what people chose another for."""


class RatingAgreement(NamedTuple):
    """A judge's ratings beside people's, on a scale."""

    n: int
    unlabelled: int
    unjudged: int
    exact: Part
    """Share rated alike."""
    kappa: Part
    """Weighted by squared distance (Cohen 1968)."""
    ac2: Part
    """Gwet's, with the same weights."""
    alpha: Part
    """Krippendorff's, ordinal."""
    leniency: Difference
    """Judge minus people, on average."""


class PeopleAgreement(NamedTuple):
    """Several people's ratings of the same items."""

    items: int
    """Rated by at least two."""
    single: int
    """Items with one rating, which say nothing of agreement."""
    pairwise: Part
    """Share of two people, drawn from an item's, who say the same; every item counts once."""
    alpha: Part
    ac: Part
    """Gwet's AC1, or AC2 with the metric's weights."""


class AmongPeople(NamedTuple):
    """Whether a judge agrees with a person as often as people do with one another."""

    items: int
    """Judged, and rated by at least two."""
    left_out: int
    people: Part
    judge: Part
    difference: Difference
    """Judge minus people, over the same items."""


class FieldAgreement(NamedTuple):
    """A field that may be left empty, by judge and people."""

    same: int
    different: int
    judge_only: int
    """Filled by the judge where people left it empty: against the judge."""
    people_only: int
    both_empty: int
    agreement: Part
    """Filled alike, or left empty by both, of all."""
    precision: Part
    """Filled alike, of what the judge filled."""
    recall: Part
    """Filled alike, of what people filled."""


def verdict_agreement(
    rows: Iterable[tuple[Hashable | None, bool | None, bool | None]], *, level: float = 0.95
) -> VerdictAgreement:
    """Each row is (cluster, judge's verdict, people's), either None where there is none.

    Shares have the intervals of rates (`rate_interval`); kappa (Cohen 1960), AC1 (Gwet 2008) and MCC (Matthews 1975)
    those of `coefficient_interval`. Kappa and MCC are None where one of the two always says the same; where both are
    never agreed that it is a yes, or a no, their limits also hold those with half a pair more of each combination (the
    composition is ours). Raises InputError for a level outside 0..1.
    """
    tail(level)
    known, unlabelled, unjudged = _paired(rows)
    clusters = [cluster for cluster, _, _ in known]
    pairs = [(_verdict(judge), _verdict(people)) for _, judge, people in known]
    counts = Counter(pairs)
    items = [[(i == 0) + (j == 0), i + j] for i, j in pairs]

    def share(hits: Callable[[int, int], bool], of: Callable[[int, int], bool] = lambda i, j: True) -> Part:
        return _share(((cluster, hits(i, j), of(i, j)) for cluster, (i, j) in zip(clusters, pairs, strict=True)), level)

    def part(found: Coefficient | None, method: str, reason: str) -> Part:
        return _coefficient(found, clusters, level, method, reason if pairs else NOTHING_COUNTED)

    def of_two(measured: Callable[[Sequence[tuple[int, int]]], Coefficient | None], method: str) -> Part:
        return _of_two_answers(measured, pairs, clusters, level, method)

    return VerdictAgreement(
        Confusion(counts[1, 1], counts[1, 0], counts[0, 1], counts[0, 0]),
        unlabelled,
        unjudged,
        share(lambda i, j: i == j),
        share(lambda i, j: i == 1, lambda i, j: j == 1),
        share(lambda i, j: i == 0, lambda i, j: j == 0),
        of_two(lambda each: kappa(each, _TWO), "kappa"),
        part(gwet(items, _TWO), "ac1", NO_PAIRS),
        of_two(matthews, "mcc"),
    )


def choice_agreement(
    rows: Iterable[tuple[Hashable | None, Hashable | None, Hashable | None]],
    *,
    choices: Sequence[Hashable] | None = None,
    level: float = 0.95,
) -> ChoiceAgreement:
    """Each row is (cluster, judge's choice, people's), either None where there is none.

    As `verdict_agreement`, of any number of choices; `tpr` and `tnr` take one choice against all others. `choices` has
    all that could be made; without it, those that were. AC1 depends on it. Raises InputError for a choice that is none
    of them, or a level outside 0..1.
    """
    tail(level)
    known, unlabelled, unjudged = _paired(rows)
    clusters = [cluster for cluster, _, _ in known]
    places = _places([choice for _, *both in known for choice in both], choices, "nominal")
    pairs = [(places[judge], places[people]) for _, judge, people in known]
    items = [_counted(pair, len(places)) for pair in pairs]
    identity = weight_matrix(list(places), "identity")

    def share(hits: Callable[[int, int], bool], of: Callable[[int, int], bool] = lambda i, j: True) -> Part:
        return _share(((cluster, hits(i, j), of(i, j)) for cluster, (i, j) in zip(clusters, pairs, strict=True)), level)

    def part(found: Coefficient | None, method: str, reason: str) -> Part:
        return _coefficient(found, clusters, level, method, reason if pairs else NOTHING_COUNTED)

    def of_place(place: int, *, chosen: bool) -> Part:
        return share(lambda i, j: (i == place) is chosen, lambda i, j: (j == place) is chosen)

    return ChoiceAgreement(
        Counter((judge, people) for _, judge, people in known),
        unlabelled,
        unjudged,
        share(lambda i, j: i == j),
        _of_two_answers(lambda each: kappa(each, identity), pairs, clusters, level, "kappa")
        if len(places) == len(_TWO)
        else part(kappa(pairs, identity), "kappa", ONE_ANSWER),
        part(gwet(items, identity), "ac1", ONE_CATEGORY),
        {choice: of_place(place, chosen=True) for choice, place in places.items()},
        {choice: of_place(place, chosen=False) for choice, place in places.items()},
    )


def rating_agreement(
    rows: Iterable[tuple[Hashable | None, float | None, float | None]],
    *,
    scale: Sequence[float] | None = None,
    level: float = 0.95,
) -> RatingAgreement:
    """Each row is (cluster, judge's rating, people's), either None where there is none.

    `scale` has all ratings that could be given (1 to 5); without it, those that were. AC2 depends on it; kappa and
    alpha do not. Raises InputError for a rating off the scale or not finite, or a level outside 0..1.
    """
    tail(level)
    known, unlabelled, unjudged = _paired(rows)
    clusters = [cluster for cluster, _, _ in known]
    values = _places([rating for _, *both in known for rating in both], scale, "interval")
    pairs = [(values[judge], values[people]) for _, judge, people in known]
    items = [_counted(pair, len(values)) for pair in pairs]
    numbers = [float(value) for value in values if isinstance(value, int | float)]
    quadratic = weight_matrix(numbers, "quadratic")

    def part(found: Coefficient | None, method: str, reason: str) -> Part:
        return _coefficient(found, clusters, level, method, reason if pairs else NOTHING_COUNTED)

    apart = _moments((cluster, exact(judge) - exact(people), 1) for cluster, judge, people in known)
    reach = max(numbers) - min(numbers) if numbers else 0.0
    return RatingAgreement(
        len(pairs),
        unlabelled,
        unjudged,
        _share(((cluster, i == j, True) for cluster, (i, j) in zip(clusters, pairs, strict=True)), level),
        part(kappa(pairs, quadratic), "kappa-quadratic", ONE_ANSWER),
        part(gwet(items, quadratic), "ac2-quadratic", ONE_CATEGORY),
        part(alpha(items, ordinal_weights(items, len(values))), "alpha-ordinal", ALL_RATINGS_ALIKE),
        paired_difference(apart, bounds=(-reach, reach) if reach else None, level=level),
    )


def people_agreement(
    items: Iterable[tuple[Hashable | None, Sequence[Hashable | None]]],
    *,
    metric: Metric = "nominal",
    scale: Sequence[Hashable] | None = None,
    level: float = 0.95,
) -> PeopleAgreement:
    """Each item is (cluster, its ratings), a rating of None missing; who gave which does not matter.

    Alpha is Krippendorff's (2011) by the metric, and AC is Gwet's: AC1 for `nominal` answers of any kind; AC2 with
    ordinal or quadratic weights for `ordinal` and `interval` ratings, which are numbers. `scale` has all answers that
    could be given; without it, those that were. AC depends on it.

    Raises InputError for an unknown metric, an answer off the scale, or a level outside 0..1.
    """
    tail(level)
    if metric not in METRICS:
        raise InputError(f"metric must be one of {', '.join(METRICS)}, not {metric!r}")
    rated = [(cluster, ratings) for cluster, ratings in _given(items) if ratings]
    places = _places([rating for _, ratings in rated for rating in ratings], scale, metric)
    counted = [(cluster, _counted([places[rating] for rating in ratings], len(places))) for cluster, ratings in rated]
    paired = [(cluster, item) for cluster, item in counted if sum(item) > 1]
    weights = weight_matrix(list(places), _GWET[metric])
    among = [item for _, item in paired]
    of_alpha = ordinal_weights(among, len(places)) if metric == "ordinal" else weights
    none = NO_PAIRS if rated else NOTHING_COUNTED

    def part(found: Coefficient | None, of: Sequence[tuple[Hashable, Item]], method: str, reason: str) -> Part:
        return _coefficient(found, [cluster for cluster, _ in of], level, method, reason if paired else none)

    found = gwet([item for _, item in counted], weights)
    return PeopleAgreement(
        len(paired),
        len(rated) - len(paired),
        _mean(((cluster, _alike(ratings), 1) for cluster, ratings in rated if len(ratings) > 1), level),
        part(alpha(among, of_alpha), paired, f"alpha-{metric}", ALL_RATINGS_ALIKE),
        part(found, counted, f"ac-{_GWET[metric]}", ONE_CATEGORY),
    )


def among_people(
    items: Iterable[tuple[Hashable | None, Hashable | None, Sequence[Hashable | None]]], *, level: float = 0.95
) -> AmongPeople:
    """Each item is (cluster, judge's answer, people's), None where one is missing.

    For an item, people's agreement is the share of two of its people who say the same, the judge's that of its people
    who say what it says; both are means over items with an answer of the judge and of two people. People who disagree
    with each other are the most that can be asked of a judge. Raises InputError for a level outside 0..1.
    """
    tail(level)
    rows = []
    left_out = 0
    for number, (cluster, judge, answers) in enumerate(items):
        people = [answer for answer in answers if answer is not None]
        if judge is None or len(people) < 2:
            left_out += 1
        else:
            with_judge = Fraction(sum(answer == judge for answer in people), len(people))
            rows.append((_name(cluster, number), _alike(people), with_judge))
    apart = _moments((cluster, with_judge - alike, 1) for cluster, alike, with_judge in rows)
    return AmongPeople(
        len(rows),
        left_out,
        _mean(((cluster, alike, 1) for cluster, alike, _ in rows), level),
        _mean(((cluster, with_judge, 1) for cluster, _, with_judge in rows), level),
        paired_difference(apart, bounds=(-1, 1), level=level),
    )


def majority(answers: Iterable[Answer | None]) -> Answer | None:
    """What most of several people say of one item; None for a tie, or where nobody said anything."""
    counts = Counter(answer for answer in answers if answer is not None).most_common(2)
    if not counts or (len(counts) == 2 and counts[0][1] == counts[1][1]):
        return None
    return counts[0][0]


def optional_agreement(
    rows: Iterable[tuple[Hashable | None, Value | None, Value | None]],
    *,
    same: Callable[[Value, Value], bool] = operator.eq,
    level: float = 0.95,
) -> FieldAgreement:
    """Each row is (cluster, judge's value, people's) of a field that may be left empty, None where it was.

    What a judge fills where people left it empty is an error like one that differs. `same` says whether two values are
    alike. Raises InputError for a level outside 0..1.
    """
    tail(level)
    named = [(_name(cluster, number), judge, people) for number, (cluster, judge, people) in enumerate(rows)]
    filled = [(judge is not None, people is not None) for _, judge, people in named]
    alike = [judge is not None and people is not None and same(judge, people) for _, judge, people in named]
    counts = Counter(zip(filled, alike, strict=True))

    def share(hits: Callable[[bool, bool, bool], bool], of: Callable[[bool, bool], bool]) -> Part:
        rows = zip(named, filled, alike, strict=True)
        return _share(((name[0], hits(*each, right), of(*each)) for name, each, right in rows), level)

    return FieldAgreement(
        counts[(True, True), True],
        counts[(True, True), False],
        counts[(True, False), False],
        counts[(False, True), False],
        counts[(False, False), False],
        share(lambda judge, people, right: right or not (judge or people), lambda judge, people: True),
        share(lambda judge, people, right: right, lambda judge, people: judge),
        share(lambda judge, people, right: right, lambda judge, people: people),
    )


# --- rows ----------------------------------------------------------------------------------------------------------

_TWO: Weights = ((1.0, 0.0), (0.0, 1.0))
_COMBINATIONS = ((0, 0), (0, 1), (1, 0), (1, 1))
_GWET: dict[Metric, WeightName] = {"nominal": "identity", "ordinal": "ordinal", "interval": "quadratic"}


def _name(cluster: Hashable | None, number: int) -> Hashable:
    return (number, None) if cluster is None else (cluster,)


def _paired(
    rows: Iterable[tuple[Hashable | None, Value | None, Value | None]],
) -> tuple[list[tuple[Hashable, Value, Value]], int, int]:
    """Rows with both, and how many have no label or no verdict."""
    known, unlabelled, unjudged = [], 0, 0
    for number, (cluster, judge, people) in enumerate(rows):
        if judge is not None and people is not None:
            known.append((_name(cluster, number), judge, people))
        elif judge is not None:
            unlabelled += 1
        elif people is not None:
            unjudged += 1
        else:
            raise InputError(f"row {number} has neither the judge's answer nor people's: leave it out, and count it")
    return known, unlabelled, unjudged


def _given(
    items: Iterable[tuple[Hashable | None, Sequence[Hashable | None]]],
) -> list[tuple[Hashable, list[Hashable]]]:
    return [
        (_name(cluster, number), [rating for rating in ratings if rating is not None])
        for number, (cluster, ratings) in enumerate(items)
    ]


def _verdict(value: bool) -> int:
    if value not in {False, True}:
        raise InputError(f"a verdict is True or False, not {safe_text(repr(value))}")
    return int(value)


def _places(given: Sequence[Hashable], scale: Sequence[Hashable] | None, metric: Metric) -> dict[Hashable, int]:
    """The place of every answer on the scale, which for ratings is in order."""
    known: Iterable[Hashable] = dict.fromkeys(given if scale is None else scale)
    if metric != "nominal":
        numbers = [value for value in known if isinstance(value, int | float) and math.isfinite(value)]
        if len(numbers) < len(list(known)):
            raise InputError(f"ratings on an {metric} scale are finite numbers; for other answers: metric='nominal'")
        known = sorted(numbers)
    places = {value: place for place, value in enumerate(known)}
    for value in given:
        if value not in places:
            raise InputError(f"{safe_text(repr(value))} is not on the scale, which has {len(places)} answers")
    return places


def _counted(places: Iterable[int], size: int) -> list[int]:
    counts = [0] * size
    for place in places:
        counts[place] += 1
    return counts


def _alike(answers: Sequence[Hashable]) -> Fraction:
    """The share of pairs among them that say the same."""
    pairs = sum(count * (count - 1) for count in Counter(answers).values())
    return Fraction(pairs, len(answers) * (len(answers) - 1))


def _moments(rows: Iterable[tuple[Hashable, Exact, int]]) -> Moments:
    sums: dict[Hashable, tuple[Exact, int]] = {}
    for cluster, y, m in rows:
        before = sums.get(cluster, (0, 0))
        sums[cluster] = (before[0] + y, before[1] + m)
    return Moments.of_clusters((y, m, m) for y, m in sums.values())


def _share(rows: Iterable[tuple[Hashable, bool, bool]], level: float) -> Part:
    """The share of hits among the rows that count, each row as (cluster, hit, counts)."""
    moments = _moments((cluster, int(hit and counts), int(counts)) for cluster, hit, counts in rows)
    return Part(None if moments.ratio is None else float(moments.ratio), rate_interval(moments, level=level))


def _mean(rows: Iterable[tuple[Hashable, Exact, int]], level: float) -> Part:
    moments = _moments(rows)
    interval = mean_interval(moments, level=level, bounds=(0, 1))
    return Part(None if moments.ratio is None else float(moments.ratio), interval)


def _hull(one: Interval, other: Interval) -> Interval:
    """An interval that holds two of them."""
    if one.low is None or one.high is None or other.low is None or other.high is None:
        return one
    return one._replace(low=min(one.low, other.low), high=max(one.high, other.high))


def _of_two_answers(
    measured: Callable[[Sequence[tuple[int, int]]], Coefficient | None],
    pairs: Sequence[tuple[int, int]],
    clusters: Sequence[Hashable],
    level: float,
    method: str,
) -> Part:
    """A coefficient of answers that are one of two, with wider limits where one of them is never agreed on."""
    reason = ONE_ANSWER if pairs else NOTHING_COUNTED
    found = _coefficient(measured(pairs), clusters, level, method, reason)
    if found.value is None or {(0, 0), (1, 1)} <= set(pairs):
        return found
    # An answer that the two never agree on leaves no trace of how far they do: half a pair of each combination is
    # what is not known of it. The name of a cluster of its own is one that no caller has.
    padded = measured([*pairs, *pairs, *_COMBINATIONS])
    parts = [*clusters, *clusters, *(object() for _ in _COMBINATIONS)]
    wider = _coefficient(padded, parts, level, method, reason).interval
    return Part(found.value, _hull(found.interval, wider))


def _coefficient(
    found: Coefficient | None, clusters: Sequence[Hashable], level: float, method: str, reason: str
) -> Part:
    if found is None:
        return Part(None, no_interval(reason))
    return Part(found.value, coefficient_interval(found, clusters, level=level, method=method))

"""Comparing a judge with people, field by field of their verdict type."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, NamedTuple

from evalr.errors import InputError
from evalr.estimates.agreement import (
    Metric,
    among_people,
    choice_agreement,
    majority,
    optional_agreement,
    people_agreement,
    rating_agreement,
    verdict_agreement,
)
from evalr.estimates.compare import Difference
from evalr.estimates.interval import tail
from evalr.estimates.judged import Part
from evalr.estimates.words import Unit, choice_words
from evalr.fields import Field, verdict_fields
from evalr.labels.field_agreement import Agreement, FieldAgreement, FieldReading, plain_value
from evalr.labels.numbers import (
    Account,
    Asked,
    Cluster,
    cluster_words,
    estimate_of,
    hit_counts,
    share_part,
    version_words,
)
from evalr.labels.pairs import Exclude, Pairs, pair
from evalr.labels.people import Labels
from evalr.quoting import safe_text
from evalr.summaries.keys import Key
from evalr.verdicts import NO_VERDICT_WORDS, Duplicates, Result, Verdict

MOST_STEPS = 101
"""Of a scale, as many as 0 to 100 has; coefficients take the cube of it."""

TEXT = "a text; name it in fields= to compare it as written"
NO_SCALE = "{} different values make no scale; say how far it lies from people's with a Mean"


class _Empty(Enum):
    """What stands for a field left empty, which is an answer."""

    EMPTY = "empty"


class _Tied(Enum):
    """What stands for several people without a majority."""

    TIED = "tied"


EMPTY: Final = _Empty.EMPTY
TIED: Final = _Tied.TIED


def agreement(
    results: Iterable[Result[Any]],
    labels: Labels,
    *,
    fields: Iterable[str] | None = None,
    exclude: Exclude = (),
    cluster: Key | None = None,
    level: float = 0.95,
    duplicates: Duplicates = "error",
    mix_versions: bool = False,
) -> Agreement:
    """How far a judge says what people say, for each field of the verdict type, with intervals over clusters.

    Results and labels are paired by subject (kind, user, session and id). A judge's failures, skips and hand-offs are
    no agreement: they are counted, and in `answered alike` they count against it. Where several people labelled an
    item, the judge is compared with what most of them say (ratings: with their median), and how far people agree with
    one another stands beside it, as the most that can be asked of a judge.

    Args:
        results: of one judge. Another person's labels will do, too: then it is two people who are compared.
        labels: a dataset, or what people said (`feedback`, `labels_of`), by any number of people.
        fields: which to compare; by default all but texts, which are compared as written where they are named.
        exclude: what the judge was made with (a training split, demonstrations): no number counts it, as a judge looks
            better there than it is. Verdicts that say so themselves (the flag "trained_on", which trained judges and
            fitted decision evaluators give) are left out without being named, and counted as "trained on".
        cluster: what intervals are computed over; by default the group of a dataset's example, the user, the session or
            artifact, or else the item itself.
        level: of all intervals.
        duplicates: what to do with a second result of one subject, or a second label by one person: "error", "first" or
            "latest".
        mix_versions: allow several versions of the judge, or of the question to people.

    Returns:
        The numbers by field; the formulas are those of `evalr.estimates.agreement` (Cohen 1960, 1968; Gwet 2008;
        Krippendorff 2011).

    Raises:
        InputError: results are by several judges, verdict types differ, or there is no such field.
        DuplicateError: see `duplicates`.
        MixedVersionsError: see `mix_versions`.
    """
    tail(level)
    pairs = pair(results, labels, cluster=cluster, duplicates=duplicates, mix_versions=mix_versions, exclude=exclude)
    asked = Asked(level, cluster)
    no_verdict = Counter(NO_VERDICT_WORDS[each.result.status] for each in pairs.labelled if each.value is None)
    versions = version_words(
        Counter(
            (each.result.evaluator or "", each.result.version or "")
            for each in pairs.judged
            if each.value is not None and each.labels
        )
    )
    account = Account(versions, {**no_verdict, **pairs.trained_on}, ("mixed_versions",) if pairs.mixed else ())
    chosen, not_compared = _chosen(pairs, None if fields is None else list(fields))
    found: dict[str, FieldAgreement] = {}
    for view in chosen:
        rows = _rows(pairs, view)
        too_many = _too_many_steps(view, rows)
        if too_many:
            not_compared[view.name] = too_many
        else:
            found[view.name] = _compared(view, rows, asked, account, pairs.trained_on)
    judged = [each.cluster for each in pairs.labelled if each.value is not None]
    return Agreement(
        evaluator=pairs.evaluator,
        versions=versions,
        fields=found,
        level=level,
        pairs=len(judged),
        pair_words=cluster_words(judged, asked, "pair"),
        no_verdict=no_verdict,
        unlabelled=len(pairs.judged) - len(pairs.labelled),
        unjudged=len(pairs.unjudged),
        unanswered=pairs.unanswered,
        excluded=pairs.excluded.results,
        trained_on=pairs.excluded.trained_on,
        labellers=pairs.labellers,
        not_compared=not_compared,
        unmatched=pairs.excluded.unmatched,
        near=pairs.near,
    )


# --- what is compared ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _View:
    """One thing that judge and people say: a field, or whether a list of choices has one of them."""

    name: str
    reading: FieldReading
    field: Field
    read: Callable[[Any], Any]
    scale: tuple[Any, ...] | None = None
    """All that it could be; None where that is not known."""

    @property
    def stepped(self) -> bool:
        """Whether two answers can be the same otherwise than by chance."""
        return self.field.kind != "number"


def _chosen(pairs: Pairs, wanted: list[str] | None) -> tuple[list[_View], dict[str, str]]:
    declared = () if pairs.verdict_type is None else verdict_fields(pairs.verdict_type)
    names = [field.name for field in declared]
    for name in wanted or []:
        if declared and name not in names:
            raise InputError(f"there is no field {safe_text(repr(name))}; {choice_words(str(name), names)}")
    views: list[_View] = []
    not_compared = {}
    for field in declared:
        if wanted is not None and field.name not in wanted:
            continue
        if field.kind == "text" and wanted is None:
            not_compared[field.name] = TEXT
        else:
            views += _views(field)
    return views, not_compared


def _views(field: Field) -> list[_View]:
    def read(value: Any) -> Any:
        found = getattr(value, field.name)
        return EMPTY if found is None else found

    if field.kind == "choices":
        # Whether an empty list was left empty or says that nothing applies is not to be told.
        return [
            _View(f"{field.name}: {plain_value(choice)}", "yes or no", field, _has(read, choice), (False, True))
            for choice in field.choices
        ]
    if field.kind == "bool":
        return [_View(field.name, "yes or no", field, read, (False, True))]
    if field.kind == "choice":
        return [_View(field.name, "choice", field, read, field.choices)]
    if field.kind == "text":
        return [_View(field.name, "text", field, lambda value: _written(read(value)))]
    scale: tuple[Any, ...] | None = None
    if field.kind == "integer" and field.low is not None and field.high is not None:
        low, high = int(field.low), int(field.high)
        scale = tuple(range(low, high + 1)) if high - low < MOST_STEPS else None
    return [_View(field.name, "rating", field, read, scale)]


def _has(read: Callable[[Any], Any], choice: Any) -> Callable[[Any], Any]:
    def has(value: Any) -> Any:
        found = read(value)
        return EMPTY if found is EMPTY else choice in found

    return has


def _written(text: Any) -> Any:
    """A text without what no reader would call a difference."""
    return " ".join(text.split()) if isinstance(text, str) else text


class _Row(NamedTuple):
    """One labelled subject, as a view reads it."""

    cluster: Cluster
    judge: Any
    """None where there is no result; a failure's is None, too, and `failed`."""
    people: tuple[Any, ...]
    label: Any
    """What people say together; TIED where they do not."""
    asked: bool
    """Whether the judge has a result of it."""


def _rows(pairs: Pairs, view: _View) -> list[_Row]:
    together = _median if view.reading == "rating" else _most
    rows = []
    for each in pairs.labelled:
        people = tuple(view.read(label.value) for label in each.labels)
        judge = view.read(each.value) if isinstance(each.result, Verdict) else None
        rows.append(_Row(each.cluster, judge, people, together(people), asked=True))
    for alone in pairs.unjudged:
        people = tuple(view.read(label.value) for label in alone.labels)
        rows.append(_Row(alone.cluster, None, people, together(people), asked=False))
    return rows


def _most(answers: Sequence[Hashable]) -> Any:
    found = majority(answers)
    return TIED if found is None else found


def _median(answers: Sequence[Any]) -> Any:
    """The middle one of ratings; none where two differ in the middle, or as many left it empty as did not."""
    filled = sorted(answer for answer in answers if answer is not EMPTY)
    empty = len(answers) - len(filled)
    if empty >= len(filled):
        return EMPTY if empty > len(filled) else TIED
    low, high = filled[(len(filled) - 1) // 2], filled[len(filled) // 2]
    return low if low == high else TIED


def together(pairs: Pairs, name: str, values: Sequence[Any]) -> Any:
    """What several people say of a field, None where most left it empty; TIED where they do not agree on anything."""
    declared = () if pairs.verdict_type is None else verdict_fields(pairs.verdict_type)
    kind = next(field.kind for field in declared if field.name == name)
    answers = [EMPTY if found is None else found for found in (getattr(value, name) for value in values)]
    if kind == "choices":
        by_text = {repr(answer): answer for answer in answers}
        most = _most([repr(answer) for answer in answers])
        return most if most is TIED else _or_none(by_text[most])
    return _or_none((_median if kind in {"integer", "number"} else _most)(answers))


def _too_many_steps(view: _View, rows: Iterable[_Row]) -> str | None:
    if view.reading != "rating" or view.scale is not None:
        return None
    values = {answer for row in rows for answer in (row.judge, *row.people) if answer is not None}
    return NO_SCALE.format(f"{len(values):,}") if len(values) > MOST_STEPS else None


# --- the numbers ---------------------------------------------------------------------------------------------------


class _Numbers:
    """Estimates by name, made of rows as (cluster, judge, people)."""

    def __init__(self, asked: Asked, account: Account, trained_on: Mapping[str, int]) -> None:
        self.asked, self.account, self.trained_on = asked, account, trained_on
        self.found: dict[str, Any] = {}

    def add(
        self, name: str, part: Part | Difference, clusters: Sequence[Cluster], unit: Unit = "share", **its: Any
    ) -> None:
        """Add one number, of which the judge's failures are left out."""
        self.found[name] = estimate_of(name, part, clusters, self.asked, self.account, unit=unit, **its)

    def add_whole(
        self, name: str, part: Part | Difference, clusters: Sequence[Cluster], unit: Unit = "share", **its: Any
    ) -> None:
        """Add one of which nothing is left out for what the judge did."""
        account = self.account._replace(left_out=self.trained_on)
        self.found[name] = estimate_of(name, part, clusters, self.asked, account, unit=unit, **its)


def _compared(
    view: _View, rows: Sequence[_Row], asked: Asked, account: Account, trained_on: Mapping[str, int]
) -> FieldAgreement:
    answered = [row for row in rows if row.judge is not None]
    compared = [row for row in answered if row.label is not TIED]
    filled = [(row.cluster, row.judge, row.label) for row in compared if EMPTY not in (row.judge, row.label)]
    numbers = _Numbers(asked, account, trained_on)
    of_kind = {"yes or no": _yes_no, "choice": _choice, "rating": _rating, "text": _text}
    of_kind[view.reading](numbers, view, filled)
    if view.stepped:
        asked_of = [row for row in rows if row.asked and row.label is not TIED]
        alike = [(row.cluster, row.judge is not None and row.judge == row.label) for row in asked_of]
        clusters = [row.cluster for row in asked_of]
        numbers.add_whole(
            "answered alike",
            share_part(alike, asked.level),
            clusters,
            counts=hit_counts(alike),
            noun="labelled item",
        )
    if view.field.optional:
        _filled(numbers, [(row.cluster, _or_none(row.judge), _or_none(row.label)) for row in compared])
    if any(len(row.people) > 1 for row in rows):
        _people(numbers, view, rows)
    confusion = Counter((_or_none(row.judge), _or_none(row.label)) for row in compared)
    return FieldAgreement(
        name=view.name,
        reading=view.reading,
        estimates=numbers.found,
        pairs=len(compared),
        tied=len(answered) - len(compared),
        confusion=dict(sorted(confusion.items(), key=lambda item: -item[1])),
    )


def _or_none(answer: Any) -> Any:
    return None if answer is EMPTY else answer


_Filled = Sequence[tuple[Cluster, Any, Any]]


def _accuracy(numbers: _Numbers, part: Part, rows: _Filled, name: str = "accuracy") -> None:
    """A share of what was answered; `bounds` say where it could lie, whatever those without a verdict were."""
    hits, missing = sum(judge == people for _, judge, people in rows), sum(numbers.account.left_out.values())
    whole = len(rows) + missing
    bounds = (hits / whole, (hits + missing) / whole) if whole else None
    numbers.add(name, part, [row[0] for row in rows], counts={"hits": hits, "total": len(rows)}, bounds=bounds)


def _yes_no(numbers: _Numbers, view: _View, rows: _Filled) -> None:
    found = verdict_agreement(rows, level=numbers.asked.level)
    clusters = [cluster for cluster, _, _ in rows]
    _accuracy(numbers, found.accuracy, rows)
    for name, part in (("kappa", found.kappa), ("ac1", found.ac1), ("mcc", found.mcc)):
        numbers.add(name, part, clusters, "coefficient")
    _of_those(numbers, "tpr", found.tpr, [row for row in rows if row[2]])
    _of_those(numbers, "tnr", found.tnr, [row for row in rows if not row[2]])


def _choice(numbers: _Numbers, view: _View, rows: _Filled) -> None:
    found = choice_agreement(rows, choices=view.scale, level=numbers.asked.level)
    clusters = [cluster for cluster, _, _ in rows]
    _accuracy(numbers, found.accuracy, rows)
    numbers.add("kappa", found.kappa, clusters, "coefficient")
    numbers.add("ac1", found.ac1, clusters, "coefficient")
    for choice in found.tpr:
        word = safe_text(str(plain_value(choice)))
        _of_those(numbers, f"tpr: {word}", found.tpr[choice], [row for row in rows if row[2] == choice])
        _of_those(numbers, f"tnr: {word}", found.tnr[choice], [row for row in rows if row[2] != choice])


def _of_those(numbers: _Numbers, name: str, part: Part, rows: _Filled) -> None:
    numbers.add(name, part, [cluster for cluster, _, _ in rows])


def _rating(numbers: _Numbers, view: _View, rows: _Filled) -> None:
    level = numbers.asked.level
    found = rating_agreement(rows, scale=view.scale, level=level)
    clusters = [cluster for cluster, _, _ in rows]
    if view.stepped:
        _accuracy(numbers, found.exact, rows, "exact")
        near = [(cluster, abs(judge - people) <= 1) for cluster, judge, people in rows]
        numbers.add("within one", share_part(near, level), clusters, counts=hit_counts(near))
    numbers.add("kappa", found.kappa, clusters, "coefficient")
    if view.scale is not None:
        numbers.add("ac2", found.ac2, clusters, "coefficient")
    numbers.add("alpha", found.alpha, clusters, "coefficient")
    numbers.add("leniency", found.leniency, clusters, "steps" if view.stepped else "difference")


def _text(numbers: _Numbers, view: _View, rows: _Filled) -> None:
    alike = [(cluster, judge == people) for cluster, judge, people in rows]
    _accuracy(numbers, share_part(alike, numbers.asked.level), rows)


def _filled(numbers: _Numbers, rows: _Filled) -> None:
    found = optional_agreement(rows, level=numbers.asked.level)
    counts = dict(zip(found._fields[:5], found[:5], strict=True))
    numbers.add("filled alike", found.agreement, [row[0] for row in rows], counts=counts)
    by_judge = [cluster for cluster, judge, _ in rows if judge is not None]
    by_people = [cluster for cluster, _, people in rows if people is not None]
    numbers.add("filled precision", found.precision, by_judge)
    numbers.add("filled recall", found.recall, by_people)


_METRICS: dict[FieldReading, Metric] = {"rating": "ordinal"}


def _people(numbers: _Numbers, view: _View, rows: Sequence[_Row]) -> None:
    level = numbers.asked.level
    if view.stepped:
        beside = among_people([(row.cluster, row.judge, row.people) for row in rows], level=level)
        clusters = [row.cluster for row in rows if row.judge is not None and len(row.people) > 1]
        numbers.add("people", beside.people, clusters, noun="item")
        numbers.add("judge", beside.judge, clusters, noun="item")
        numbers.add("judge - people", beside.difference, clusters, "points", noun="item")
    if view.reading == "text":
        return
    filled = [(row.cluster, [answer for answer in row.people if answer is not EMPTY]) for row in rows]
    several = [cluster for cluster, people in filled if len(people) > 1]
    found = people_agreement(filled, metric=_METRICS.get(view.reading, "nominal"), scale=view.scale, level=level)
    numbers.add_whole("people alpha", found.alpha, several, "coefficient", noun="item")
    if view.scale is not None:
        numbers.add_whole("people ac", found.ac, several, "coefficient", noun="item")

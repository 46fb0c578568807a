"""Correcting a judge's rate or mean for its errors, by people's labels of some of what it read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from evalr.errors import InputError, MixedVersionsError
from evalr.estimates import judged as statistics
from evalr.estimates.estimate import Estimate
from evalr.estimates.interval import tail
from evalr.estimates.judged import DoubleSample, Part, double_sampling, ppi_plus_plus, rogan_gladen
from evalr.estimates.sample_ratio import coverage_by_arm
from evalr.estimates.words import Unit, choice_words, count_words, value_words
from evalr.labels.correction import Corrected, CorrectionMethod, LabelsAre
from evalr.labels.numbers import Account, Asked, Cluster, clustered_by, estimate_of, version_words
from evalr.labels.pairs import Exclude, Judged, Pairs, pair
from evalr.labels.people import Labels
from evalr.quoting import safe_text
from evalr.summaries import Mean, Rate
from evalr.summaries.keys import Key
from evalr.summaries.summary import PENDING, UNKNOWN
from evalr.tallies.moments import Moments, exact
from evalr.verdicts import NO_VERDICT_WORDS, Duplicates, Result, Verdict, about_of

Share = tuple[int, int]
"""How many, and of how many."""

LABELS_UNEVEN = "labels_uneven"


def corrected(
    summary: Rate[Any] | Mean[Any],
    results: Iterable[Result[Any]],
    labels: Labels = (),
    *,
    labels_are: LabelsAre = "random",
    method: CorrectionMethod | None = None,
    judged_elsewhere: Iterable[Result[Any]] | None = None,
    sensitivity: Share | None = None,
    specificity: Share | None = None,
    exclude: Exclude = (),
    cluster: Key | None = None,
    level: float = 0.95,
    duplicates: Duplicates = "error",
    mix_versions: bool = False,
) -> Corrected:
    """A judge's rate or mean, corrected for its errors by people's labels of some of it.

    Which way is right depends on where the labels are from:

    - "random": a random part of the results is labelled. A rate is corrected by double sampling (Tenenbein 1970), a
      mean by prediction-powered inference with power tuning (PPI++; Angelopoulos, Duchi & Zrnic 2023).
    - "by_verdict": a random part of what the judge passed is labelled, and one of what it failed, in whatever
      proportion; rates only.
    - "elsewhere": other cases are labelled. A rate is corrected by the judge's sensitivity and specificity there (Rogan
      & Gladen 1978, interval by Lang & Reiczigel 2014), which are taken to be the same here.

    Where several people labelled an item, a rate takes what most of them say, a mean the mean of what they say.

    Args:
        summary: a `Rate` of yes or no, or a `Mean`, neither folded nor weighed.
        results: of one judge: all of it, labelled or not.
        labels: as in `agreement`.
        labels_are: where the labels are from.
        method: "double_sampling", "ppi_plus_plus" or "rogan_gladen"; by default as above. A rate with random labels may
            go by "ppi_plus_plus", too.
        judged_elsewhere: the same judge's results of the labelled cases, where those are elsewhere.
        sensitivity: instead of labels elsewhere: passed by the judge, and of how many that people passed, as (90, 100).
        specificity: failed by the judge, and of how many that people failed.
        exclude: as in `agreement`; neither its labels nor its results count.
        cluster: as in `agreement`.
        level: of all intervals.
        duplicates: as in `agreement`.
        mix_versions: as in `agreement`; with labels elsewhere, also another version of the judge there.

    Raises:
        InputError: as `agreement`; or the summary, the method and where the labels are from do not go together, or
            results stand for different numbers of inputs.
        DuplicateError: as `agreement`.
        MixedVersionsError: as `agreement`.
    """
    tail(level)
    asked = Asked(level, cluster)
    chosen = _method(summary, labels_are, method)
    options = _Options(cluster, duplicates, mix_versions, exclude)
    if labels_are != "elsewhere":
        given = {"judged_elsewhere": judged_elsewhere, "sensitivity": sensitivity, "specificity": specificity}
        for name, value in given.items():
            if value is not None:
                raise InputError(f"{name}= is for labels_are='elsewhere', and it is {labels_are!r}")
        pairs = options.pair(results, labels)
        rows = _read(summary, pairs)
        found = _by_labels(summary, rows, chosen, level, by_verdict=labels_are == "by_verdict")
        return _result(summary, pairs, rows, found, asked, labels_are, chosen)
    pairs = options.pair(results, ())
    rows = _read(summary, pairs)
    checked = _checked(summary, pairs, labels, judged_elsewhere, sensitivity, specificity, options)
    found = rogan_gladen(_moments(rows.counted), checked.sensitivity, checked.specificity, level=level)
    return _result(summary, pairs, rows, found, asked, labels_are, chosen, checked)


class _Options(NamedTuple):
    cluster: Key | None
    duplicates: Duplicates
    mix_versions: bool
    exclude: Exclude

    def pair(self, results: Iterable[Result[Any]], labels: Labels) -> Pairs:
        return pair(results, labels, **self._asdict())


def _method(summary: object, labels_are: str, method: str | None) -> CorrectionMethod:
    """The method that goes with the summary and with where labels are from."""
    if not isinstance(summary, Rate | Mean):
        raise InputError(
            f"a {safe_text(type(summary).__name__)} cannot be corrected: pass a Rate of yes or no, or a Mean"
        )
    if summary.fold is not None:
        raise InputError(f"summary {summary.name!r} is folded: correct the one without per= and fold=")
    if summary.pending is not None or (summary.total if isinstance(summary, Rate) else summary.weight) is not None:
        raise InputError(f"summary {summary.name!r} counts a verdict as several: a correction takes each as one")
    known: dict[str, tuple[CorrectionMethod, ...]] = (
        {
            "random": ("double_sampling", "ppi_plus_plus"),
            "by_verdict": ("double_sampling",),
            "elsewhere": ("rogan_gladen",),
        }
        if isinstance(summary, Rate)
        else {"random": ("ppi_plus_plus",)}
    )
    if labels_are not in known:
        raise InputError(
            f"labels_are={safe_text(repr(labels_are))} for a {type(summary).__name__}; "
            f"{choice_words(str(labels_are), known)}"
        )
    for each in known[labels_are]:
        if method is None or method == each:
            return each
    raise InputError(
        f"method={safe_text(repr(method))} for a {type(summary).__name__} and labels_are={labels_are!r}; "
        f"{choice_words(str(method), known[labels_are])}"
    )


# --- reading -------------------------------------------------------------------------------------------------------


class _Row(NamedTuple):
    """One verdict of the judge, and what people say of its subject."""

    cluster: Cluster
    judge: float
    label: float | None


class _Rows(NamedTuple):
    counted: list[_Row]
    left_out: Counter[str]
    unknown: int
    """How many of those left out could count either way."""
    labels_left_out: Counter[str]


def _read(summary: Rate[Any] | Mean[Any], pairs: Pairs) -> _Rows:
    """Raises InputError where results are of another type, or stand for different numbers of inputs."""
    if pairs.verdict_type is not None and not issubclass(pairs.verdict_type, summary.of):
        raise InputError(f"summary {summary.name!r} reads {summary.of.__name__}, not {pairs.verdict_type.__name__}")
    weights = {1 if about is None or about.weight is None else about.weight for about in _abouts(pairs.judged)}
    if len(weights) > 1:
        raise InputError(
            "results stand for different numbers of inputs (weight), which no correction takes into account: correct "
            "each stratum by itself"
        )
    rows = _Rows([], Counter(pairs.trained_on), 0, Counter())
    unknown = 0
    for each in pairs.judged:
        if not isinstance(each.result, Verdict):
            rows.left_out[NO_VERDICT_WORDS[each.result.status]] += 1
            unknown += 1
            continue
        judge = _value(summary, each.value)
        if isinstance(judge, str):
            rows.left_out[judge] += 1
            unknown += judge in {UNKNOWN, PENDING}
            continue
        label = _label(summary, each, rows.labels_left_out)
        rows.counted.append(_Row(each.cluster, judge, label))
    return rows._replace(unknown=unknown)


def _abouts(judged: Iterable[Judged]) -> Iterable[Any]:
    return (about_of(each.result) for each in judged)


def _value(summary: Rate[Any] | Mean[Any], value: Any) -> float | str:
    """What the summary reads in a verdict, or why it leaves it out."""
    reason = None if summary.leaves_out is None else summary.leaves_out(value)
    if reason is not None:
        return reason
    found = summary.hits(value) if isinstance(summary, Rate) else summary.value(value)
    if found is None:
        return UNKNOWN
    if isinstance(summary, Rate) and found not in {0, 1}:
        raise InputError(f"summary {summary.name!r} has {found!r} hits in a verdict: a correction takes yes or no")
    return float(found)


def _label(summary: Rate[Any] | Mean[Any], each: Judged, left_out: Counter[str]) -> float | None:
    """What people say together; None where they say nothing that counts."""
    said = [_value(summary, label.value) for label in each.labels]
    numbers = [value for value in said if not isinstance(value, str)]
    left_out.update(value for value in said if isinstance(value, str))
    if not numbers:
        return None
    mean = sum(map(Fraction, numbers)) / len(numbers)
    if isinstance(summary, Mean):
        return float(mean)
    if 2 * mean == 1:
        left_out["tied between people"] += len(said)
        return None
    return float(2 * mean > 1)


# --- correcting ----------------------------------------------------------------------------------------------------


def _by_labels(
    summary: Rate[Any] | Mean[Any], rows: _Rows, method: CorrectionMethod, level: float, *, by_verdict: bool
) -> statistics.Corrected:
    if method == "double_sampling":
        sample = DoubleSample.of_rows(
            (row.cluster, bool(row.judge), None if row.label is None else bool(row.label)) for row in rows.counted
        )
        return double_sampling(sample, level=level, by_verdict=by_verdict)
    bounds = (0.0, 1.0) if isinstance(summary, Rate) else summary.bounds
    return ppi_plus_plus(rows.counted, bounds=bounds, level=level)


class _Checked(NamedTuple):
    """A judge's errors on other cases."""

    sensitivity: Moments
    specificity: Moments
    n: int
    clusters: int
    pairs: Pairs | None


def _checked(
    summary: Rate[Any] | Mean[Any],
    here: Pairs,
    labels: Labels,
    elsewhere: Iterable[Result[Any]] | None,
    sensitivity: Share | None,
    specificity: Share | None,
    options: _Options,
) -> _Checked:
    if sensitivity is not None or specificity is not None:
        if sensitivity is None or specificity is None or elsewhere is not None:
            raise InputError("give sensitivity= and specificity= together, or labels and judged_elsewhere= instead")
        shares = _share("sensitivity", sensitivity), _share("specificity", specificity)
        n = sensitivity[1] + specificity[1]
        return _Checked(*shares, n, n, None)
    if elsewhere is None:
        raise InputError(
            "labels of other cases need the judge's results on them, judged_elsewhere=, or its sensitivity= and "
            "specificity="
        )
    there = options.pair(elsewhere, labels)
    if there.evaluator != here.evaluator and None not in (there.evaluator, here.evaluator):
        raise InputError(
            f"the judge here is {safe_text(str(here.evaluator))!r}, elsewhere {safe_text(str(there.evaluator))!r}"
        )
    if set(here.versions) - set(there.versions) and there.versions and not options.mix_versions:
        listed = " and ".join(", ".join(version_words(each.versions)) for each in (there, here))
        raise MixedVersionsError(
            f"the judge's errors are known of another version of it: {safe_text(listed, longest=200)}; check this one, "
            "or pass mix_versions=True"
        )
    rows = [row for row in _read(summary, there).counted if row.label is not None]
    passed, failed = ([row for row in rows if row.label == answer] for answer in (1.0, 0.0))
    of_passed, of_failed = _moments(passed), _moments(row._replace(judge=1 - row.judge) for row in failed)
    return _Checked(of_passed, of_failed, len(rows), _moments(rows).clusters, there)


def _share(name: str, share: Share) -> Moments:
    if not (
        isinstance(share, tuple)
        and len(share) == 2
        and all(isinstance(n, int) for n in share)
        and 0 <= share[0] <= share[1]
    ):
        raise InputError(
            f"{name}={safe_text(repr(share))} must be two counts, such as (90, 100) for 90 of 100: without how many it "
            "was measured on, nobody knows how sure it is"
        )
    hits, total = share
    return Moments(total, total, hits, total, hits, hits, total)


def _moments(rows: Iterable[_Row]) -> Moments:
    sums: dict[Any, tuple[Any, int]] = {}
    for number, row in enumerate(rows):
        key = (number, None) if row.cluster is None else (row.cluster,)
        y, m = sums.get(key, (0, 0))
        sums[key] = (y + exact(row.judge), m + 1)
    return Moments.of_clusters((y, m, m) for y, m in sums.values())


def _result(
    summary: Rate[Any] | Mean[Any],
    pairs: Pairs,
    rows: _Rows,
    found: statistics.Corrected,
    asked: Asked,
    labels_are: LabelsAre,
    method: CorrectionMethod,
    checked: _Checked | None = None,
) -> Corrected:
    labelled = [row.cluster for row in rows.counted if row.label is not None]
    judged = [row.cluster for row in rows.counted]
    there = None if checked is None else checked.pairs
    both = [pairs] if there is None else [pairs, there]
    mixed = (
        any(each.mixed for each in both)
        or len({*map(frozenset, (each.versions for each in both if each.versions))}) > 1
    )
    uneven = _uneven(rows.counted) if labels_are == "random" and method == "double_sampling" else None
    flags = [flag for flag, so in (("mixed_versions", mixed), (LABELS_UNEVEN, uneven is not None)) if so]
    account = Account(version_words(pairs.versions), rows.left_out, tuple(flags))
    label_account = Account(version_words(both[-1].label_versions), rows.labels_left_out)
    of_labels = clustered_by(labelled, asked, summary.noun)[1] if checked is None else checked.clusters

    def estimate(part: Part, clusters: Sequence[Cluster], account: Account, **its: Any) -> Estimate:
        unit: Unit = "share" if isinstance(summary, Rate) else summary.unit
        return estimate_of(summary.name, part, clusters, asked, account, unit=unit, noun=summary.noun, **its)

    return Corrected(
        name=summary.name,
        estimate=estimate(
            Part(found.value, found.interval),
            judged,
            account,
            counts={"judged": len(judged), "labelled": len(labelled) if checked is None else checked.n},
            bounds=_bounds(summary, found.value, rows),
            status=found.status,
            keep_reason=True,
            resting_on=of_labels,
        ),
        labels_only=estimate(found.labels_only, labelled, label_account),
        judge_only=estimate(found.judge_only, judged, account, counts={"total": len(judged)}),
        labels_are=labels_are,
        method=method,
        slope=found.slope,
        judged=len(judged),
        labelled=len(labelled) if checked is None else checked.n,
        excluded=sum(each.excluded.results for each in both),
        unjudged=sum(len(each.unjudged) for each in both),
        notes=tuple(filter(None, [uneven, *_trained_notes(there), *_label_notes(both[-1], rows)])),
    )


def _uneven(rows: Sequence[_Row]) -> str | None:
    """What to say where people labelled what the judge passed and what it failed by very different shares."""
    passed, failed = ([row for row in rows if row.judge == answer] for answer in (1.0, 0.0))
    labelled = [sum(row.label is not None for row in part) for part in (passed, failed)]
    found = coverage_by_arm(labelled, [len(passed), len(failed)])
    if not found.alarm:
        return None
    shares = [value_words(n / len(part), "share") for n, part in zip(labelled, (passed, failed), strict=True)]
    return (
        f"people labelled {shares[0]} of what the judge passed and {shares[1]} of what it failed, which a random "
        "part is not: if each is a random part of its kind, say labels_are='by_verdict'"
    )


def _bounds(summary: Rate[Any] | Mean[Any], value: float | None, rows: _Rows) -> tuple[float, float] | None:
    """Where the number could lie, whatever the verdicts that are missing were."""
    limits = (0.0, 1.0) if isinstance(summary, Rate) else summary.bounds
    if value is None or (limits is None and rows.unknown):
        return None
    low, high = limits or (0.0, 0.0)
    n, whole = len(rows.counted), len(rows.counted) + rows.unknown
    return (value * n + low * rows.unknown) / whole, (value * n + high * rows.unknown) / whole


def _trained_notes(elsewhere: Pairs | None) -> list[str]:
    """Of labelled cases elsewhere; of what is judged, the estimate itself says it."""
    trained_on = 0 if elsewhere is None else elsewhere.excluded.trained_on
    return (
        [f"{count_words(trained_on, 'labelled case')} left out, which the judge was trained on"] if trained_on else []
    )


def _label_notes(pairs: Pairs, rows: _Rows) -> list[str]:
    notes = [f"{count_words(n, 'label')} {reason}" for reason, n in rows.labels_left_out.items()]
    notes += [f"{n:,} {why} by people" for why, n in pairs.unanswered.items()]
    if pairs.excluded.unmatched:
        notes.append(f"{pairs.excluded.unmatched:,} named to be excluded are in neither results nor labels")
    if pairs.near:
        notes.append(f"{count_words(pairs.near, 'label')} with the id of a result of another kind, user or session")
    return notes

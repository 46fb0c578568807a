"""Precision and recall: how often is a signal right when it fires, and how much does it find, by people's labels?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from evalr.errors import InputError
from evalr.estimates.estimate import Estimate
from evalr.estimates.plot import Plotted
from evalr.estimates.shown import Printed
from evalr.labels import Corrected, corrected
from evalr.labels.people import Labels, labels_of
from evalr.quoting import safe_text
from evalr.summaries import Rate
from evalr.verdicts import Result as Outcome
from evalr.verdicts import Verdict
from evalr_tracepass.measures.fired import Fired, fired_turns

TIED = "people disagree"
UNLABELLED = "labelled, and not read by the signal"


@dataclass(frozen=True)
class LabelledRates(Printed, Plotted):
    """What people's labels say of a signal on the traffic of a pass.

    Attributes:
        signal: its id.
        precision: of the texts on which it fired, the share that people confirm.
        missed: of the texts on which it did not fire, the share in which people find the thing all the same.
        recall: of all the texts in which people would find it, the share on which it fired. Each label stands for as
            many texts as were read for one labelled in its stratum (inverse probability).
        prevalence: how common the thing is, by the signal's rate corrected by the labels; see `labels.corrected`.
        left_out: labels that do not count, by reason.
    """

    signal: str
    precision: Estimate
    missed: Estimate
    recall: Estimate
    prevalence: Corrected
    left_out: dict[str, int]

    def drawn(self) -> list[tuple[str, Estimate]]:
        """See `Plotted.drawn`."""
        shares = [("precision", self.precision), ("recall", self.recall), ("missed", self.missed)]
        return [*shares, ("prevalence, corrected", self.prevalence.estimate)]

    def __str__(self) -> str:
        return "\n".join(map(str, (self.precision, self.recall, self.missed, self.prevalence)))

    def to_dict(self) -> dict[str, Any]:
        """In plain types."""
        return {
            "signal": self.signal,
            "precision": self.precision.to_dict(),
            "missed": self.missed.to_dict(),
            "recall": self.recall.to_dict(),
            "prevalence": self.prevalence.to_dict(),
            "left_out": self.left_out,
        }


def labelled_rates(results: Iterable[Outcome[Fired]], labels: Labels, *, level: float = 0.95) -> LabelledRates:
    """Precision and recall of a signal from labels of a random part of what fired, and one of what did not.

    The two parts may be labelled in whatever proportion: what fires is rare, and is what people mostly look at. That a
    label's chance differs is undone by its weight, so that recall is that of the traffic, and not of the labels.

    Precision and the share missed are rates clustered by user, with exact limits. The limits of recall are those that
    both at once allow (each at half the error, Bonferroni): it is wide where few labels of what did not fire were
    given, and says so, rather than 100% because nobody looked.

    Args:
        results: of one signal, labelled or not; see `fired_results`.
        labels: people's `feedback(about_record(record), Fired(fired=...))`. Of several people the majority counts.
        level: of all intervals.

    Raises:
        InputError: the results are of several signals.
    """
    judged = [each for each in results if isinstance(each, Verdict) and each.value.fired is not None]
    names = sorted({each.evaluator for each in judged})
    if len(names) > 1:
        raise InputError(f"the results are of these signals: {safe_text(', '.join(names))}; pass those of one")
    given = labels_of(labels)
    said = _said(given)
    left_out: Counter[str] = Counter()
    strata: dict[bool, list[Verdict[Fired]]] = {True: [], False: []}
    sizes = Counter(bool(each.value.fired) for each in judged)
    for each in judged:
        subject = None if each.about is None else each.about.subject
        votes = said.pop(subject, None)
        if votes is None:
            continue
        if votes[True] == votes[False]:
            left_out[TIED] += 1
        else:
            strata[bool(each.value.fired)].append(
                replace(each, value=Fired(fired=votes[True] > votes[False]), evaluator="people", version="1")
            )
    if said:
        left_out[UNLABELLED] = len(said)
    strict = (1 + level) / 2
    precision, missed = (_share("precision", strata[True], level), _share("missed", strata[False], level))
    strictly = (_share("precision", strata[True], strict), _share("missed", strata[False], strict))
    return LabelledRates(
        signal=names[0] if names else "",
        precision=precision,
        missed=missed,
        recall=_recall((precision, missed), strictly, sizes, level),
        prevalence=corrected(fired_turns, judged, given, labels_are="by_verdict", level=level),
        left_out=dict(left_out),
    )


def _said(labels: Iterable[Outcome[Any]]) -> dict[Hashable, Counter[bool]]:
    votes: dict[Hashable, Counter[bool]] = {}
    for each in labels:
        if not isinstance(each, Verdict) or not isinstance(each.value, Fired) or each.about is None:
            continue
        subject, fired = each.about.subject, each.value.fired
        if subject is not None and fired is not None:
            votes.setdefault(subject, Counter())[fired] += 1
    return votes


def _share(name: str, labelled: list[Verdict[Fired]], level: float) -> Estimate:
    return Rate(
        name,
        of=Fired,
        hits=lambda value: int(bool(value.fired)),
        method="clopper_pearson",
        noun="labelled text",
        parent="conversation",
    ).estimate(labelled, level=level)


def _recall(
    shares: tuple[Estimate, Estimate], strictly: tuple[Estimate, Estimate], sizes: Counter[bool], level: float
) -> Estimate:
    """`N1 p / (N1 p + N0 q)` of the N1 texts that fired and the N0 that did not: it rises with p and falls with q."""
    precision, missed = shares
    found = _part(precision.value, missed.value, sizes)
    low = _part(strictly[0].low, strictly[1].high, sizes)
    high = _part(strictly[0].high, strictly[1].low, sizes)
    reason = None
    if found is None:
        empty = [each.name for each in shares if each.value is None]
        reason = f"no label to tell {' and '.join(empty)} by" if empty else "people found it nowhere"
    labelled = precision.n + missed.n
    return Estimate(
        name="recall",
        value=found,
        low=None if found is None else low,
        high=None if found is None else high,
        n=labelled,
        level=level,
        noun="labelled text",
        counts={"fired": sizes[True], "not_fired": sizes[False]},
        clusters=precision.clusters + missed.clusters,
        method="strata_bonferroni",
        status="undefined" if found is None else "ok",
        reason=reason,
        flags=tuple(dict.fromkeys((*precision.flags, *missed.flags))),
    )


def _part(precision: float | None, missed: float | None, sizes: Counter[bool]) -> float | None:
    if precision is None or missed is None:
        return None
    hits, misses = sizes[True] * precision, sizes[False] * missed
    return hits / (hits + misses) if hits + misses else None

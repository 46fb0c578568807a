"""Calibrating: the threshold of a signal from people's labels, and how often it is right with it."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from evalr.background import run_sync
from evalr.errors import InputError
from evalr.estimates.rate import rate_interval
from evalr.estimates.shown import Printed
from evalr.inputs import Now, resolve_now, utc_now
from evalr.labels import Threshold
from evalr.labels.classifiers import text_mark
from evalr.labels.fitting import TRIES, Row, fitted_threshold
from evalr.quoting import quoted, safe_text
from evalr.tallies.moments import Moments
from evalr_tracepass.records import Prediction, Reflex
from evalr_tracepass.signals import Precision, Signal, reading

BATCH = 256

TRAINED = "used to train the classifier"
FAILED = "the classifier failed"
TWICE = "the same text with the same label, by the same user"


class Labelled(NamedTuple):
    """A text that a signal's transform made, and the label that a person gave it.

    `user` is whose text it is: intervals are computed over users, since the texts of one are alike.
    """

    text: str
    label: str
    user: str = ""


@dataclass(frozen=True)
class Calibrated(Printed):
    """What labels say of a signal.

    Attributes:
        signal: with its thresholds and its precision, where one could be shown; otherwise as it was.
        thresholds: for each label that it fires on, what was found, or why there is none.
        used: labelled texts that counted.
        positives: those that people gave a label that the signal fires on.
        left_out: the others, by reason.
    """

    signal: Signal
    thresholds: tuple[Threshold, ...]
    used: int
    positives: int
    left_out: dict[str, int]

    @property
    def precision(self) -> Precision | None:
        """How often the signal is right when it fires; None where no threshold could be shown to be good enough."""
        return self.signal.precision

    def __str__(self) -> str:
        name = safe_text(self.signal.display_name)
        shown = self.precision
        if shown is None:
            reasons = "; ".join(f"{safe_text(each.label)}: {each.reason}" for each in self.thresholds if each.reason)
            return f"{name}: not calibrated: {reasons}"
        at = ", ".join(f"{safe_text(label)} from {score:.3g}" for label, score in self.signal.thresholds.items())
        recall = "" if shown.recall is None else f"; it finds {shown.recall:.0%} of {self.positives:,}"
        return f"{name}: {at}: {shown}{recall}"


async def calibrate(
    signal: Signal,
    reflex: Reflex,
    labels: Iterable[Labelled],
    *,
    target_precision: float = 0.9,
    level: float = 0.95,
    now: Now = utc_now,
) -> Calibrated:
    """A signal with thresholds from people's labels of random traffic, and the precision that it has with them.

    For each label that the signal fires on, the lowest of at most five scores is taken from which on the share of texts
    that people gave this label clears the target: not the share that was seen, but the lower limit of its interval,
    exact (Clopper-Pearson) over users, at a level at which all five hold together. See `evalr.labels.fit_thresholds`.

    The labels have to be of a random sample of the traffic on which rates will be told (`random_sample`), and not of
    texts that the signal fired on, or that were chosen because they are interesting: precision follows from how common
    the thing is. Texts that trained a classifier that says so are left out.

    Args:
        signal: whose thresholds.
        reflex: its classifier.
        labels: of texts of its transform.
        target_precision: the share of fired texts that have to be right.
        level: of the two-sided interval whose lower limit must clear the target.
        now: when the signal was changed.

    Raises:
        InputError: the signal fires on nothing, no label is left, one is unknown, or an option cannot be used.
    """
    if not signal.fires_on:
        raise InputError(f"signal {safe_text(signal.signal_id)!r} fires on no label, so that there is nothing to set")
    if not 0 < target_precision < 1:
        raise InputError(f"target_precision={target_precision!r} must lie between 0 and 1, both excluded")
    kept, left_out = _kept(signal, reflex, labels)
    asked: list[tuple[Labelled, Prediction]] = []
    for start in range(0, len(kept), BATCH):
        part = kept[start : start + BATCH]
        found: Any = reflex.predict([each.text for each in part])
        predictions: Sequence[Prediction] = await found if inspect.isawaitable(found) else found
        if len(predictions) != len(part):
            raise InputError(f"{signal.model!r} was given {len(part)} texts and made {len(predictions)} predictions")
        asked += zip(part, predictions, strict=True)
    answered = [(each, found) for each, found in asked if found.error is None]
    if len(answered) < len(asked):
        left_out[FAILED] += len(asked) - len(answered)
    thresholds = tuple(
        fitted_threshold(signal.signal_id, label, _rows(answered, label), target_precision, level)
        for label in signal.fires_on
    )
    positives = sum(each.label in signal.fires_on for each, _ in answered)
    calibrated = _calibrated(signal, reflex, thresholds, answered, level, resolve_now(now))
    return Calibrated(calibrated, thresholds, len(answered), positives, dict(left_out))


def calibrate_sync(
    signal: Signal,
    reflex: Reflex,
    labels: Iterable[Labelled],
    *,
    target_precision: float = 0.9,
    level: float = 0.95,
    now: Now = utc_now,
) -> Calibrated:
    """As `calibrate`, from code that cannot await, in a notebook too."""
    return run_sync(calibrate(signal, reflex, labels, target_precision=target_precision, level=level, now=now))


def _kept(signal: Signal, reflex: Reflex, labels: Iterable[Labelled]) -> tuple[list[Labelled], Counter[str]]:
    seen: frozenset[str] = getattr(reflex, "seen", frozenset())
    known = set(signal.labels) or set(reflex.labels)
    kept: dict[Labelled, None] = {}
    left_out: Counter[str] = Counter()
    for each in labels:
        if known and each.label not in known:
            raise InputError(f"the label {quoted(each.label)} is none of {safe_text(str(sorted(known)), longest=400)}")
        if text_mark(each.text) in seen:
            left_out[TRAINED] += 1
        elif each in kept:
            left_out[TWICE] += 1
        else:
            kept[each] = None
    if not kept:
        words = ", ".join(f"{n:,} {reason}" for reason, n in left_out.items()) or "none was given"
        raise InputError(f"there is no label to calibrate by: {words}")
    return list(kept), left_out


def _rows(answered: Sequence[tuple[Labelled, Prediction]], label: str) -> list[Row]:
    rows = []
    for place, (each, found) in enumerate(answered):
        score = next((one.score for one in found.classes if one.label == label), None)
        if score is not None:
            cluster = ("user", each.user) if each.user else ("text", str(place))
            rows.append(Row(cluster, score, each.label == label))
    return rows


def _calibrated(
    signal: Signal,
    reflex: Reflex,
    thresholds: Sequence[Threshold],
    answered: Sequence[tuple[Labelled, Prediction]],
    level: float,
    now: datetime,
) -> Signal:
    """The signal with what was found. A label for which nothing was is one that it no longer fires on."""
    found = {each.label: each for each in thresholds if each.at is not None}
    if not found:
        return signal
    changed = signal.model_copy(
        update={
            "fires_on": tuple(label for label in signal.fires_on if label in found),
            "thresholds": {**signal.thresholds, **{label: float(each.at or 0.0) for label, each in found.items()}},
            "updated": now,
        }
    )
    precision = _precision(changed, reflex, answered, level)
    return signal if precision is None else changed.model_copy(update={"precision": precision})


def _precision(
    signal: Signal, reflex: Reflex, answered: Sequence[tuple[Labelled, Prediction]], level: float
) -> Precision | None:
    """Over all the labels that it fires on, at a level at which every threshold that was tried is paid for."""
    strict = 1 - (1 - level) / (TRIES * len(signal.fires_on))
    sums: dict[tuple[str, str], list[int]] = {}
    fired = right = 0
    positives = sum(each.label in signal.fires_on for each, _ in answered)
    for place, (each, prediction) in enumerate(answered):
        if reading(signal, prediction).fired:
            counts = sums.setdefault(("user", each.user) if each.user else ("text", str(place)), [0, 0])
            is_right = each.label in signal.fires_on
            counts[0] += is_right
            counts[1] += 1
            fired += 1
            right += is_right
    interval = rate_interval(
        Moments.of_clusters((hits, n, n) for hits, n in sums.values()), level=strict, method="clopper_pearson"
    )
    if interval.low is None or interval.high is None:
        return None
    return Precision(
        value=right / fired,
        low=interval.low,
        high=interval.high,
        level=level,
        method=f"{interval.method}, Bonferroni",
        fired=fired,
        labelled=len(answered),
        recall=right / positives if positives else None,
        model_version=reflex.version,
        transform_version=signal.transform.version,
        thresholds={label: signal.thresholds[label] for label in signal.fires_on},
    )

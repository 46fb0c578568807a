"""Calibration: does a judge know when it is right? Its confidence in a field beside what people say of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evalr.errors import InputError
from evalr.estimates import display
from evalr.estimates.calibration import BinRule, Reliability, brier_score, log_loss, reliability
from evalr.estimates.estimate import Estimate, frame
from evalr.estimates.interval import tail
from evalr.estimates.plot import Plotted
from evalr.estimates.words import choice_words, count_words, interval_words, number_words, value_words
from evalr.fields import verdict_fields
from evalr.labels.agreeing import TIED, together
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
from evalr.labels.pairs import EXCLUDED_WORDS, Exclude, Pairs, pair
from evalr.labels.people import Labels
from evalr.quoting import safe_text
from evalr.summaries.keys import Key
from evalr.verdicts import NO_VERDICT_WORDS, Duplicates, Result, Verdict

if TYPE_CHECKING:
    from pandas import DataFrame

WITHOUT = "without a confidence"
TIES = "tied between people"


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration(Plotted):
    """A judge's confidence in one field, beside how often it was right.

    Attributes:
        field: whose confidence it is.
        brier: mean of (confidence - right)², from 0, the best, to 1; 0.25 is what always saying 0.5 gets.
        log_loss: mean of -log(confidence given to what was so); undefined where a judge was wholly certain, and wrong.
        reliability: bins of confidence with how many rows each has, the share right with its interval, and the
            calibration error (ECE), which depends on the bins, beside what it would be were every confidence right.
        right: the share of pairs in which the judge says what people say.
        pair_words: pairs with their clusters, in words.
    """

    field: str
    brier: Estimate
    log_loss: Estimate
    reliability: Reliability
    right: Estimate
    pair_words: str

    def __str__(self) -> str:
        lines = [" · ".join([f"confidence in {safe_text(self.field)}", self.pair_words, *self.notes()])]
        for name, estimate in self._estimates().items():
            interval = interval_words(estimate.low, estimate.high, estimate.unit)
            reason = [] if estimate.reason is None else [safe_text(estimate.reason, longest=200)]
            lines.append(
                "  " + "  ".join([name, value_words(estimate.value, estimate.unit), interval, *reason]).rstrip()
            )
        if self.reliability.ece is not None:
            lines.append(f"  {self._error_words()}")
        for title, value, interval, counted in self._bins():
            lines.append(f"    {title}  {value}  {interval}  {counted}")
        return "\n".join(lines)

    def _estimates(self) -> dict[str, Estimate]:
        return {"Brier score": self.brier, "log loss": self.log_loss, "right": self.right}

    def _error_words(self) -> str:
        found = self.reliability
        ece, chance = value_words(found.ece, "number"), value_words(found.ece_if_calibrated, "number")
        return f"calibration error {ece}, and {chance} if every confidence were right · bins: {found.rule}"

    def _bins(self) -> list[tuple[str, str, str, str]]:
        return [
            (
                f"said {number_words(each.low)} to {number_words(each.high)}",
                f"right {value_words(each.right, 'share')}",
                interval_words(each.interval.low, each.interval.high, "share"),
                f"{count_words(each.n, 'pair')}, mean confidence {value_words(each.confidence, 'share')}",
            )
            for each in self.reliability.bins
        ]

    def notes(self) -> list[str]:
        """What was left out, and flags."""
        left_out = [f"{n:,} {safe_text(reason)}" for reason, n in self.brier.left_out.items()]
        notes = [f"left out: {', '.join(left_out)}"] if left_out else []
        return notes + [safe_text(flag.replace("_", " ")) for flag in self.brier.flags]

    def to_dict(self) -> dict[str, Any]:
        """Every field, in plain types that JSON takes."""
        found = self.reliability._asdict()
        found["bins"] = [{**each._asdict(), "interval": each.interval._asdict()} for each in self.reliability.bins]
        return {
            "field": self.field,
            "brier": self.brier.to_dict(),
            "log_loss": self.log_loss.to_dict(),
            "right": self.right.to_dict(),
            "reliability": found,
        }

    def to_dicts(self) -> list[dict[str, Any]]:
        """One plain dict for each bin."""
        return [
            {
                "field": self.field,
                "low": each.low,
                "high": each.high,
                "n": each.n,
                "confidence": each.confidence,
                "right": each.right,
                "right_low": each.interval.low,
                "right_high": each.interval.high,
                "method": each.interval.method,
            }
            for each in self.reliability.bins
        ]

    def to_frame(self) -> DataFrame:
        """A pandas frame with one row for each bin. Needs pandas."""
        frame([])  # says what to install
        import pandas as pd

        return pd.DataFrame(self.to_dicts())

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    def _repr_html_(self) -> str:
        rows: list[display.Line | str] = [display.line(name, each) for name, each in self._estimates().items()]
        rows += [self._error_words()] if self.reliability.ece is not None else []
        rows += [display.Line(*each, within=True) for each in self._bins()]
        table = display.table("", self.brier.level, rows, caption=f"confidence in {self.field} · {self.pair_words}")
        return display.shown(table)


def calibration(
    results: Iterable[Result[Any]],
    labels: Labels,
    *,
    field: str | None = None,
    bins: int = 10,
    rule: BinRule = "equal_width",
    exclude: Exclude = (),
    cluster: Key | None = None,
    level: float = 0.95,
    duplicates: Duplicates = "error",
    mix_versions: bool = False,
) -> Calibration:
    """Whether a judge is right as often as its confidence says, by people's labels.

    Args:
        results: of one judge, whose verdicts have a `confidence` by field.
        labels: as in `agreement`; where several people labelled an item, what most of them say.
        field: whose confidence; not needed where the verdicts have that of one field alone.
        bins: how many.
        rule: "equal_width", or "equal_mass" for as many rows in each.
        exclude: as in `agreement`.
        cluster: as in `agreement`.
        level: of all intervals.
        duplicates: as in `agreement`.
        mix_versions: as in `agreement`.

    Returns:
        Proper scores (Brier 1950) and reliability bins; formulas in `evalr.estimates.calibration`.

    Raises:
        InputError: as `agreement`; or the field is not known, or there are no bins to make.
        DuplicateError: as `agreement`.
        MixedVersionsError: as `agreement`.
    """
    tail(level)
    pairs = pair(results, labels, cluster=cluster, duplicates=duplicates, mix_versions=mix_versions, exclude=exclude)
    asked, name = Asked(level, cluster), _field(pairs, field)
    rows: list[tuple[Cluster, float, bool]] = []
    left_out = dict(pairs.trained_on)
    if pairs.excluded.results:
        left_out[EXCLUDED_WORDS] = pairs.excluded.results

    def leave_out(reason: str) -> None:
        left_out[reason] = left_out.get(reason, 0) + 1

    for each in pairs.labelled:
        if not isinstance(each.result, Verdict):
            leave_out(NO_VERDICT_WORDS[each.result.status])
            continue
        confidence = (each.result.confidence or {}).get(name)
        label = together(pairs, name, [label.value for label in each.labels])
        if confidence is None:
            leave_out(WITHOUT)
        elif label is TIED:
            leave_out(TIES)
        else:
            rows.append((each.cluster, confidence, getattr(each.value, name) == label))
    clusters = [cluster for cluster, _, _ in rows]
    account = Account(version_words(pairs.versions), left_out, ("mixed_versions",) if pairs.mixed else ())
    found = reliability(rows, bins=bins, rule=rule, level=level)
    hits = [(cluster, right) for cluster, _, right in rows]

    return Calibration(
        field=name,
        brier=estimate_of("brier", brier_score(rows, level=level), clusters, asked, account, unit="score"),
        log_loss=estimate_of("log_loss", log_loss(rows, level=level), clusters, asked, account, unit="nats"),
        reliability=found,
        right=estimate_of("right", share_part(hits, level), clusters, asked, account, counts=hit_counts(hits)),
        pair_words=cluster_words(clusters, asked, "pair"),
    )


def _field(pairs: Pairs, field: str | None) -> str:
    known: Mapping[str, None] = dict.fromkeys(
        name for each in pairs.judged if isinstance(each.result, Verdict) for name in each.result.confidence or {}
    )
    declared = [] if pairs.verdict_type is None else [each.name for each in verdict_fields(pairs.verdict_type)]
    if field is None:
        left_out = pairs.excluded.results + pairs.excluded.trained_on
        if not pairs.judged and left_out:
            raise InputError(
                f"the judge was made with {count_words(left_out, 'result')}, which are all there are: pass results on "
                "other inputs"
            )
        if len(known) != 1:
            raise InputError(
                "no verdict says how confident it is: a judge does so by Verdict(..., confidence={'field': 0.9})"
                if not known
                else f"verdicts have the confidence of several fields: pass field=; {choice_words('', known)}"
            )
        field = next(iter(known))
    if declared and field not in declared:
        raise InputError(f"there is no field {safe_text(repr(field))}; {choice_words(str(field), declared)}")
    return field

"""Signals: a classifier, what it reads of a trace, when it counts as fired, and whether it runs unasked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, model_validator

from evalr.estimates.shown import Printed
from evalr.estimates.words import share_digits
from evalr.input_fields import Name, Time
from evalr_tracepass.records import LabelScore, Prediction
from evalr_tracepass.transforms import Transform, transform

Source = Literal["default", "custom"]
"""Whether a signal came with evalr or was made by its owner."""

Score = Annotated[float, Field(ge=0, le=1)]


class Precision(Printed, BaseModel):
    """What people's labels say of a signal: how often it is right when it fires, with the interval of that.

    Attributes:
        value: the share of fired labels that people confirmed.
        low: the lower limit of its interval.
        high: the upper limit.
        level: of the interval.
        method: of the interval, by name and version.
        fired: labelled texts on which it fired.
        labelled: labelled texts in all.
        recall: the share of what people found that it fired on; None where they found nothing.
        model_version: of the classifier.
        transform_version: of the transform.
        thresholds: that it had.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    value: Score
    low: Score
    high: Score
    level: Score
    method: str
    fired: int
    labelled: int
    recall: Score | None = None
    model_version: str
    transform_version: int
    thresholds: dict[Name, Score]

    def __str__(self) -> str:
        return (
            f"precision {share_digits(self.value)}% [{share_digits(self.low)}, {share_digits(self.high)}] on "
            f"{self.fired:,} fired of {self.labelled:,} labelled"
        )


class Signal(BaseModel):
    """A classifier, what it reads of a trace, and when it counts as fired.

    Attributes:
        signal_id: its name.
        model: the alias of the classifier.
        display_name: for people.
        source: whether it came with evalr.
        category: for people: what it is about.
        labels: what the classifier tells apart; empty where that is not known.
        fires_on: the labels at which it counts as fired; none is for labels that are no event, such as a topic.
        transform: what the classifier reads.
        thresholds: by label, the score from which on it is selected, in place of what the classifier selects.
        enabled_by_default: whether it runs where nobody chose signals.
        monitor: whether a monitor runs it.
        precision: what people's labels say of it, None where it was not calibrated: its rates are then of what it says.
        created: when it was made, None for one that came with evalr.
        updated: when it was last changed.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    signal_id: Name
    model: Name
    display_name: Name
    source: Source = "custom"
    category: str = ""
    labels: tuple[Name, ...] = ()
    fires_on: tuple[Name, ...] = ()
    transform: Transform = Field(default_factory=lambda: transform("user_message"))
    thresholds: dict[Name, Score] = Field(default_factory=dict)
    enabled_by_default: bool = False
    monitor: bool = False
    precision: Precision | None = None
    created: Time | None = None
    updated: Time | None = None

    @model_validator(mode="after")
    def _labels_are_its_own(self) -> Signal:
        if self.labels:
            unknown = sorted({*self.fires_on, *self.thresholds} - set(self.labels))
            if unknown:
                raise ValueError(f"fires_on and thresholds name {unknown}, which are not among its labels")
        return self

    def precision_with(self, model_version: str) -> Precision | None:
        """What labels say of it as it is now: None where its classifier, transform or thresholds have changed since."""
        known = self.precision
        if known is None or (known.model_version, known.transform_version) != (model_version, self.transform.version):
            return None
        return known if {label: self.thresholds.get(label) for label in self.fires_on} == known.thresholds else None

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return self.model_dump(mode="json")


class Reading(NamedTuple):
    """What a prediction means to a signal.

    Attributes:
        top_label: the label with the highest score, whichever it is; "" with score 0 where there is none.
        top_score: its score.
        selected_labels: the labels at or above the signal's thresholds, and of those without a threshold the ones that
            the classifier selected.
        fired: whether one of these is a label that the signal fires on.
        threshold: of the firing label with the highest score, the signal's threshold; None where the classifier chose.
        unknown: labels that the signal does not know, though it says which there are.
    """

    top_label: str
    top_score: float
    selected_labels: tuple[str, ...]
    fired: bool
    threshold: float | None
    unknown: tuple[str, ...]


def reading(signal: Signal, prediction: Prediction) -> Reading:
    """What a prediction means to a signal. One with an error means nothing: it has no label, and did not fire."""
    classes = () if prediction.error is not None else prediction.classes
    top = top_class(classes)
    selected = tuple(each.label for each in classes if is_selected(signal.thresholds, each))
    firing = [each for each in classes if each.label in signal.fires_on]
    # Of those that made it fire, if it did, the surest one's threshold decided.
    deciding = top_class([each for each in firing if each.label in selected] or firing)
    return Reading(
        "" if top is None else top.label,
        0.0 if top is None else top.score,
        selected,
        any(each.label in selected for each in firing),
        None if deciding is None else signal.thresholds.get(deciding.label),
        tuple(each.label for each in classes if signal.labels and each.label not in signal.labels),
    )


def top_class(classes: Sequence[LabelScore]) -> LabelScore | None:
    """The class with the highest score; of several, one that is selected before others, and then the first."""
    return max(classes, key=lambda each: (each.score, each.selected), default=None)


def is_selected(thresholds: Mapping[str, float], found: LabelScore) -> bool:
    """Whether a label counts as selected: by its threshold where it has one, else by what the classifier says."""
    threshold = thresholds.get(found.label)
    return found.selected if threshold is None else found.score >= threshold

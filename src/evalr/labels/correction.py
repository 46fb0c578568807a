"""Correction: what people would have said of all that a judge read, from its verdicts and their labels of some."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

from evalr.estimates import display
from evalr.estimates.estimate import Estimate, Groups, Status, frame, number_line
from evalr.estimates.plot import Plotted
from evalr.estimates.words import count_words, method_words, value_words
from evalr.quoting import safe_text

if TYPE_CHECKING:
    from pandas import DataFrame

CorrectionMethod = Literal["double_sampling", "ppi_plus_plus", "rogan_gladen"]
LabelsAre = Literal["random", "by_verdict", "elsewhere"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrected(Plotted):
    """A rate or mean by a judge, corrected for its errors; what labels and judge say without each other beside it.

    Attributes:
        name: the summary's.
        estimate: of what people would have said of all that the judge gave a verdict of. Its `status` is
            "inconsistent" where no rate makes such labels and verdicts likely; its `reason` says, too, where it is that
            of the labels alone. `bounds` say where it could lie, whatever those without a verdict were.
        labels_only: of the labels, whatever the judge says.
        judge_only: of what the judge says, whatever people would. Its interval does not cover its errors.
        labels_are: "random", "by_verdict" or "elsewhere".
        method: how it was corrected.
        slope: how much one more of the judge's is worth; None where the judge is not used.
        judged: verdicts of the judge, with or without a label.
        labelled: of those, with a label that counts; with labels of other cases, such cases.
        excluded: results and labelled cases left out because the judge was made with them.
        unjudged: labelled items that the judge has no result of, and that are in no number.
        notes: what else to know, in words.
    """

    name: str
    estimate: Estimate
    labels_only: Estimate
    judge_only: Estimate
    labels_are: LabelsAre
    method: CorrectionMethod
    slope: float | None
    judged: int
    labelled: int
    excluded: int
    unjudged: int
    notes: tuple[str, ...] = ()

    @property
    def value(self) -> float | None:
        """The corrected number."""
        return self.estimate.value

    @property
    def status(self) -> Status:
        """Of the corrected number."""
        return self.estimate.status

    @property
    def flags(self) -> tuple[str, ...]:
        """What to know before using the corrected number."""
        return self.estimate.flags

    def __str__(self) -> str:
        """One line to paste."""
        beside = [number_line("labels alone", self.labels_only), number_line("judge alone", self.judge_only)]
        return " · ".join([number_line(f"{safe_text(self.name)} corrected", self.estimate), *beside, *self.beside()])

    def beside(self) -> list[str]:
        """What stands beside the numbers: the reason, counts, what was left out, flags and the method."""
        judges = ", ".join(safe_text(name) for name in list(self.estimate.versions)[:3])
        found = [self.estimate.counted_words() + (f" by {judges}" if judges else "")]
        found[0] += f", {self.labelled:,} {'labels of other cases' if self.labels_are == 'elsewhere' else 'labelled'}"
        if self.estimate.reason is not None:
            found.append(safe_text(self.estimate.reason, longest=500))
        if self.estimate.left_out:
            left_out = ", ".join(f"{n:,} {safe_text(reason)}" for reason, n in self.estimate.left_out.items())
            bounds, unit = self.estimate.bounds, self.estimate.unit
            reach = ""
            if bounds is not None and bounds[0] < bounds[1]:
                reach = f" ({value_words(bounds[0], unit)} to {value_words(bounds[1], unit)} with them)"
            found.append(f"left out: {left_out}{reach}")
        if self.excluded:
            found.append(f"{self.excluded:,} excluded, which the judge was made with")
        if self.unjudged:
            found.append(f"{count_words(self.unjudged, 'labelled item')} without a result")
        found += [safe_text(note, longest=300) for note in self.notes]
        found += [safe_text(flag.replace("_", " ")) for flag in self.flags]
        return [*found, method_words(self.estimate.method)] if self.estimate.low is not None else found

    def to_dict(self) -> dict[str, Any]:
        """Every field, in plain types that JSON takes."""
        parts = ("estimate", "labels_only", "judge_only")
        own = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in parts}
        return {**own, "notes": list(self.notes), **{part: getattr(self, part).to_dict() for part in parts}}

    def to_dicts(self) -> list[dict[str, Any]]:
        """Three plain dicts: `name`, `group` (corrected, labels alone, judge alone), and every other field."""
        return Groups("source", self._rows()).to_dicts()

    def to_frame(self) -> DataFrame:
        """A pandas frame with one row for each of the three. Needs pandas."""
        return frame(self.to_dicts())

    def _rows(self) -> dict[str | None, Estimate]:
        return {"corrected": self.estimate, "labels alone": self.labels_only, "judge alone": self.judge_only}

    def drawn(self) -> list[tuple[str, Estimate]]:
        """See `Plotted.drawn`."""
        return [(str(name), each) for name, each in self._rows().items()]

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    def _repr_html_(self) -> str:
        rows: list[display.Line | str] = [
            display.line(str(title), each)._replace(asides=() if each.reason is None else (each.reason,))
            for title, each in self._rows().items()
        ]
        table = display.table("source", self.estimate.level, rows, caption=f"{self.name}, corrected")
        return display.shown(table, *map(display.paragraph, self.beside()))

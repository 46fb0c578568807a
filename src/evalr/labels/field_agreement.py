"""What an agreement says: how far a judge says what people say, field by field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal

from evalr.estimates import display
from evalr.estimates.estimate import USUAL_LEVEL, Estimate, frame, leveled_interval
from evalr.estimates.plot import Plotted
from evalr.estimates.words import choice_words, count_words, value_words
from evalr.quoting import safe_text

if TYPE_CHECKING:
    from pandas import DataFrame

FieldReading = Literal["yes or no", "choice", "rating", "text"]

_MOST_VERSIONS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldAgreement(Plotted, Mapping[str, Estimate]):
    """How far judge and people agree on one field: its numbers by name.

    - Yes or no: `accuracy`, `kappa`, `ac1`, `mcc`, `tpr` (of what people said yes to) and `tnr`.
    - A choice: `accuracy`, `kappa`, `ac1`, and `tpr: X` and `tnr: X` for each choice X against all others.
    - A rating: `exact`, `within one`, `kappa` (quadratic weights), `ac2`, `alpha` (Krippendorff's, ordinal) and
      `leniency` (judge minus people). A number without steps has neither `exact` nor `within one`; one without bounds
      has no `ac2`.
    - A text, compared as written: `accuracy`.
    - Any but a number without steps: `answered alike`, of all that people labelled: where the judge failed, skipped or
      handed off, it did not agree.
    - A field that may be left empty: `filled alike` (or left empty by both), `filled precision` and `filled recall`.
      What the judge fills where people left it empty counts against it. The numbers above are of what both filled.
    - Where an item has labels by several people: `people` (two of them agree), `judge` (it agrees with one of them),
      `judge - people`, and over all labelled items `people alpha` and `people ac`.

    Attributes:
        name: the field's; of a list of choices, `field: choice` for each.
        reading: how it was read.
        pairs: results with a label that were compared.
        tied: results whose labels are by several people without a majority (for ratings: a median that is one of the
            ratings); they are not compared with the judge.
        confusion: pairs by (judge's, people's); None is a field left empty.
    """

    name: str
    reading: FieldReading
    estimates: Mapping[str, Estimate]
    pairs: int
    tied: int
    confusion: Mapping[tuple[Any, Any], int]

    def __getitem__(self, name: str) -> Estimate:
        if name not in self.estimates:
            raise KeyError(f"no number is named {name!r}; {choice_words(str(name), self.estimates)}")
        return self.estimates[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.estimates)

    def __len__(self) -> int:
        return len(self.estimates)

    def drawn(self) -> list[tuple[str, Estimate]]:
        """See `Plotted.drawn`."""
        return list(self.items())

    def _repr_html_(self) -> str:
        lines = [display.line(name, each) for name, each in self.items()]
        level = next((each.level for each in self.values()), USUAL_LEVEL)
        return display.shown(display.table("", level, lines, caption=self.name), *map(display.paragraph, self.notes()))

    def notes(self) -> list[str]:
        """What holds for all its numbers."""
        return [f"{count_words(self.tied, 'tie')} between people, not compared"] if self.tied else []

    def to_dict(self) -> dict[str, Any]:
        """Every number, in plain types that JSON takes."""
        return {
            "name": self.name,
            "reading": self.reading,
            "pairs": self.pairs,
            "tied": self.tied,
            "confusion": [
                {"judge": plain_value(judge), "people": plain_value(people), "n": n}
                for (judge, people), n in self.confusion.items()
            ],
            "estimates": {name: estimate.to_dict() for name, estimate in self.items()},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement(Plotted, Mapping[str, FieldAgreement]):
    """How far a judge says what people say: `agreement["completed"]["kappa"]` is an estimate.

    Attributes:
        evaluator: the judge's name.
        versions: its verdicts, by evaluator@version.
        fields: what each field says, by its name.
        level: of all intervals.
        pairs: verdicts of the judge with a label.
        pair_words: the same with their clusters, in words.
        no_verdict: results with a label of which the judge gave no verdict, by why.
        unlabelled: results without a label.
        unjudged: labelled subjects without a result.
        unanswered: what people were asked and gave no answer to, by why.
        excluded: results left out because the judge was made with them, as the caller named them.
        trained_on: those left out because their verdicts say so themselves.
        labellers: labels by each person; of those whose name is not known, by `people`.
        not_compared: fields that are in no number, and why.
        unmatched: how many were named to be excluded, and are in neither results nor labels.
        near: labels without a result that have the id of one, and differ in kind, user or session.
    """

    evaluator: str | None
    versions: Mapping[str, int]
    fields: Mapping[str, FieldAgreement]
    level: float
    pairs: int
    pair_words: str
    no_verdict: Mapping[str, int]
    unlabelled: int
    unjudged: int
    unanswered: Mapping[str, int]
    excluded: int
    labellers: Mapping[str, int]
    not_compared: Mapping[str, str]
    unmatched: int = 0
    near: int = 0
    trained_on: int = 0

    def __getitem__(self, name: str) -> FieldAgreement:
        if name not in self.fields:
            raise KeyError(f"no field that was compared is named {name!r}; {choice_words(str(name), self.fields)}")
        return self.fields[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def drawn(self) -> list[tuple[str, Estimate]]:
        """See `Plotted.drawn`."""
        return [(f"{field.name}: {name}", each) for field in self.values() for name, each in field.items()]

    def __str__(self) -> str:
        rows = [(name, *_cells(estimate)) for field in self.values() for name, estimate in field.items()]
        widths = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
        lines = [self._title()]
        for field in self.values():
            lines.append(f"  {' · '.join([safe_text(field.name), *field.notes()])}")
            for name, estimate in field.items():
                value, interval, beside = _cells(estimate)
                words = f"{name:<{widths[0]}}  {value:>{widths[1]}}  {interval:<{widths[2]}}  {beside}"
                lines.append(f"    {words.rstrip()}")
        return "\n".join([*lines, *(f"  {note}" for note in self.notes())])

    def _title(self) -> str:
        versions = [safe_text(name) for name in self.versions][:_MOST_VERSIONS]
        more = len(self.versions) - len(versions)
        judge = ", ".join(versions) + (f" and {more:,} more" if more else "")
        people = count_words(len(self.labellers), "person/people") if len(self.labellers) > 1 else "people"
        return f"{judge or safe_text(self.evaluator or 'nobody')} beside {people} · {self.pair_words}"

    def notes(self) -> list[str]:
        """What is in no pair, and why; and which fields are not compared."""
        notes = [f"{n:,} labelled, and {why} by the judge" for why, n in self.no_verdict.items()]
        for n, words in (
            (self.unlabelled, "{} without a label"),
            (self.excluded, "{} excluded, which the judge was made with"),
            (self.trained_on, "{} left out, which the judge was trained on"),
        ):
            if n:
                notes.append(words.format(count_words(n, "result")))
        if self.unjudged:
            near = f"; {self.near:,} with the id of one, of another kind, user or session" if self.near else ""
            notes.append(f"{count_words(self.unjudged, 'labelled item')} without a result{near}")
        notes += [f"{n:,} {why} by people" for why, n in self.unanswered.items()]
        if self.unmatched:
            notes.append(f"{self.unmatched:,} named to be excluded are in neither results nor labels")
        notes += [f"not compared: {safe_text(name)} ({safe_text(why)})" for name, why in self.not_compared.items()]
        return notes

    def to_dict(self) -> dict[str, Any]:
        """Every field, in plain types that JSON takes."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        plain = {name: dict(value) if isinstance(value, Mapping) else value for name, value in found.items()}
        return {**plain, "fields": {name: field.to_dict() for name, field in self.items()}}

    def to_dicts(self) -> list[dict[str, Any]]:
        """One plain dict for each number: `name`, `group` (the field), and every other part of its estimate."""
        return [
            {"name": name, "group": field.name, **{key: value for key, value in plain.items() if key != "name"}}
            for field in self.values()
            for name, estimate in field.items()
            for plain in estimate.to_dicts()
        ]

    def to_frame(self) -> DataFrame:
        """A pandas frame with one row for each number. Needs pandas."""
        return frame(self.to_dicts())

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    def _repr_html_(self) -> str:
        rows: list[display.Line | str] = []
        for field in self.values():
            rows.append(display.Line(field.name, asides=tuple(field.notes())))
            rows += [display.line(name, replace(each, left_out={}), within=True) for name, each in field.items()]
        table = display.table("field", self.level, rows, caption=self._title())
        return display.shown(table, *(display.paragraph(note) for note in self.notes()))


def _cells(estimate: Estimate) -> tuple[str, str, str]:
    """Value, interval, and what stands beside them but for what is left out, which is said once for all numbers."""
    notes = " · ".join(replace(estimate, left_out={}).notes())
    return value_words(estimate.value, estimate.unit), leveled_interval(estimate), notes


def plain_value(value: Any) -> Any:
    """A field's value as JSON has it."""
    return value.value if isinstance(value, Enum) else value

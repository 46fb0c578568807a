"""Two runs compared pair by pair: by how much the same examples came out better or worse, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from evalr.errors import InputError
from evalr.estimates import display
from evalr.estimates.estimate import USUAL_LEVEL, Estimate, frame
from evalr.estimates.gates import PASSED, UNUSABLE, Ruling, read_condition, rule
from evalr.estimates.plot import Plotted
from evalr.estimates.words import choice_words, count_words, interval_words, p_words, value_words
from evalr.quoting import safe_text

if TYPE_CHECKING:
    from pandas import DataFrame

Correction = Literal["holm", "bh"]
_CORRECTIONS = {"holm": "Holm", "bh": "Benjamini-Hochberg"}
_NAMES_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedDifference(Plotted):
    """One measure in two runs, over the examples that have a value in both.

    Attributes:
        name: the summary's.
        before: the value in the first run, over the pairs alone.
        after: the value in the second.
        unit: of both.
        difference: after minus before, with its interval; of shares in points. Its `n` counts pairs, its `left_out`
            results without a value, by run, and examples that are in one run alone; its `bounds` say where it could lie
            whatever those without a value were.
        p: two-sided, of no difference, None where there is no interval.
        adjusted_p: adjusted for all the measures of the comparison; None where nothing was adjusted.
        test: name and version of what gave `p`.
        gained: of a share, pairs that were a miss before and a hit after; None for other numbers, and for repeats.
        lost: pairs that were a hit before and a miss after.
    """

    name: str
    before: float | None
    after: float | None
    unit: str
    difference: Estimate
    p: float | None
    adjusted_p: float | None
    test: str
    gained: int | None = None
    lost: int | None = None

    def drawn(self) -> list[tuple[str, Estimate]]:
        """See `Plotted.drawn`."""
        return [(f"{self.name}, after less before", self.difference)]

    def _repr_html_(self) -> str:
        return display.printed(str(self))

    def __str__(self) -> str:
        values = f"{value_words(self.before, self.unit)} → {value_words(self.after, self.unit)}"
        interval = interval_words(self.difference.low, self.difference.high, self.difference.unit)
        change = " ".join(text for text in (value_words(self.difference.value, self.difference.unit), interval) if text)
        return " · ".join([f"{safe_text(self.name)} {values}", change, *self.notes()])

    def notes(self) -> list[str]:
        """What stands beside the numbers: p, the pairs, how many of them changed, what was left out, flags."""
        return ([] if self.p is None else [f"p {self._p_words()}"]) + self._counted_notes()

    def _p_words(self) -> str:
        """`= 0.035 (adjusted 0.070)`; nothing where there is no p."""
        if self.p is None:
            return ""
        words = p_words(self.p).removeprefix("p ")
        if self.adjusted_p is None:
            return words
        return f"{words} (adjusted {p_words(self.adjusted_p).removeprefix('p ').removeprefix('= ')})"

    def _counted_notes(self) -> list[str]:
        """The notes but for p."""
        notes = self.difference.notes()
        if self.gained is not None and self.difference.n:
            notes.insert(1, f"{self.gained:,} gained, {self.lost:,} lost")
        return notes

    def to_dict(self) -> dict[str, Any]:
        """Every number, in plain types that JSON takes; those of the difference under their own names."""
        own = {name: value for name, value in asdict(self).items() if name != "difference"}
        difference = self.difference.to_dict()
        value = difference.pop("value")
        for name in ("name", "unit"):
            difference.pop(name)
        return {**own, "difference": value, **difference}


class Comparison(Plotted, Mapping[str, PairedDifference]):
    """Two runs compared, measure by measure.

    Attributes:
        before: what the first run is called.
        after: what the second is called.
        correction: how p-values were adjusted: "holm", "bh" or None.
        only_before: ids of examples in the first run alone.
        only_after: ids of examples in the second alone.
        changed: ids of examples in both whose content differs, and which are not compared.
    """

    def __init__(
        self,
        rows: list[PairedDifference],
        *,
        names: tuple[str, str],
        correction: Correction | None,
        only_before: tuple[str, ...] = (),
        only_after: tuple[str, ...] = (),
        changed: tuple[str, ...] = (),
    ) -> None:
        self._rows = {row.name: row for row in rows}
        self.before, self.after = names
        self.correction = correction
        self.only_before = only_before
        self.only_after = only_after
        self.changed = changed

    def __getitem__(self, name: str) -> PairedDifference:
        return self._rows[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"<Comparison {self._title()}, {count_words(len(self), 'measure')}>"

    def __str__(self) -> str:
        return "\n".join(
            [self._title(), *(f"  {row}" for row in self.values()), *(f"  {note}" for note in self.notes())]
        )

    def _title(self) -> str:
        return f"{safe_text(self.before)} → {safe_text(self.after)}"

    def notes(self) -> list[str]:
        """What holds for all of it: examples that were not paired, and how p was adjusted."""
        notes = []
        for words, ids in (
            ("in the first run alone", self.only_before),
            ("in the second run alone", self.only_after),
            ("changed in between, and not compared", self.changed),
        ):
            if ids:
                named = ", ".join(safe_text(name) for name in ids[:_NAMES_SHOWN])
                more = ", …" if len(ids) > _NAMES_SHOWN else ""
                notes.append(f"{count_words(len(ids), 'example')} {words}: {named}{more}")
        if self.correction is not None and any(row.adjusted_p is not None for row in self.values()):
            tests = sum(row.p is not None for row in self.values())
            notes.append(
                f"p adjusted for {count_words(tests, 'test')} by {_CORRECTIONS[self.correction]}; intervals are not"
            )
        return notes

    def gate(self, *conditions: str) -> Gate:
        """Pass or fail the difference of each named measure, such as `"completion > -2pp"`.

        A condition passes where the limit of the printed interval clears the bar: the lower limit for > and >=, the
        upper for < and <=. Nothing passes on an undefined difference, such as one over no pairs. The bar of a share is
        written in points, as -2pp or -0.02 (-2% could also be 2% of the share, and is refused), any other in the
        measure's unit.

        Raises:
            InputError: there is no condition, one cannot be read, or it names no measure of the comparison.
        """
        if not conditions:
            raise InputError("a gate needs at least one condition, such as 'completion > -2pp'")
        asked = [read_condition(text) for text in conditions]
        for condition in asked:
            if condition.name not in self:
                raise InputError(f"no measure is named {condition.name!r}; {choice_words(condition.name, self)}")
        return Gate(tuple(rule(condition, self[condition.name].difference, _read_bar) for condition in asked))

    def to_dicts(self) -> list[dict[str, Any]]:
        """One plain dict a measure, with every number."""
        return [row.to_dict() for row in self.values()]

    def to_frame(self) -> DataFrame:
        """A pandas frame with one row a measure. Needs pandas."""
        return frame(self.to_dicts())

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    def _repr_html_(self) -> str:
        level = next((row.difference.level for row in self.values()), USUAL_LEVEL)
        head = _html_cells(
            "th", ("measure", "before", "after", "difference", f"{100 * level:g}% interval", "p", "counted")
        )
        body = "".join(f"<tr>{_html_cells('td', _cells(row))}</tr>" for row in self.values())
        table = (
            f"<table><caption>{display.escaped(self._title())}</caption><thead><tr>{head}</tr></thead>"
            f"<tbody>{body}</tbody></table>"
        )
        return display.shown(table, *(display.paragraph(note) for note in self.notes()))


def _html_cells(tag: str, texts: Iterable[str]) -> str:
    """Cells of one row. Between what it is about and what was counted stand numbers, aligned as such."""
    first, *numbers, last = texts
    right = ' style="text-align: right; white-space: nowrap"'
    looks = ("", *(right for _ in numbers), "")
    cells = zip(looks, (first, *numbers, last), strict=True)
    return "".join(f"<{tag}{look}>{display.escaped(text)}</{tag}>" for look, text in cells)


def _cells(row: PairedDifference) -> tuple[str, ...]:
    difference = row.difference
    return (
        row.name,
        value_words(row.before, row.unit),
        value_words(row.after, row.unit),
        value_words(difference.value, difference.unit),
        interval_words(difference.low, difference.high, difference.unit),
        row._p_words().removeprefix("= "),
        " · ".join(row._counted_notes()),
    )


@dataclass(frozen=True, slots=True)
class Gate:
    """What a gate found: true where every condition passed. Printed, it says why."""

    rulings: tuple[Ruling, ...]

    @property
    def passed(self) -> bool:
        """Whether every condition passed."""
        return self.code == PASSED

    @property
    def code(self) -> int:
        """An exit code: 0 where all passed, 1 where one was not cleared, 2 where one is undefined."""
        return max((ruling.code for ruling in self.rulings), default=UNUSABLE)

    def __bool__(self) -> bool:
        return self.passed

    def _repr_html_(self) -> str:
        return display.printed(str(self))

    def __str__(self) -> str:
        width = max((len(ruling.asked) for ruling in self.rulings), default=0)
        return "\n".join(
            f"{ruling.verdict:<11}  {ruling.asked:<{width}}  {safe_text(ruling.found, longest=300)}"
            for ruling in self.rulings
        )


def _read_bar(text: str, difference: Estimate) -> float:
    """The bar of a difference: points as -2pp or -0.02, any other number as it is."""
    sized = text.removesuffix("pp") if text.endswith("pp") else text.removesuffix("%")
    unit = text[len(sized) :]
    try:
        number = float(sized)
    except ValueError:
        number = float("nan")
    if not abs(number) < float("inf"):
        raise InputError(f"{difference.name}: the bar {text!r} is not a number: write it as in 'completion > -2pp'")
    if difference.unit != "points":
        if unit:
            raise InputError(f"{difference.name} is in {difference.unit}, not a share: write the bar without {unit}")
        return number
    if unit == "%":
        raise InputError(
            f"{difference.name} is a difference of shares, of which {text} could be points or a part of the share: "
            f"write {sized}pp for points"
        )
    share = number / 100 if unit else number
    if not -1 <= share <= 1:
        raise InputError(
            f"{difference.name} is a difference of shares: write the bar from -1 to 1, or -100pp to 100pp, not {text}"
        )
    return share

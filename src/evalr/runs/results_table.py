"""What evaluators said of each example, as a table: one row an example, one column a field of a verdict."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from evalr.errors import MissingExtraError
from evalr.estimates import display
from evalr.estimates.words import count_words, number_words
from evalr.fields import verdict_fields
from evalr.labels.examples import GROUP
from evalr.quoting import safe_text
from evalr.runs.reasons import reason_of
from evalr.verdicts import Result, Verdict

if TYPE_CHECKING:
    from pandas import DataFrame

ROWS_SHOWN = 20
_ALL = "to_frame() has them all"
_LONGEST = 24
_NONE = "—"


class ResultsTable:
    """What each evaluator said of each example. Printed, it shows the first examples, and no texts; frames have all."""

    def __init__(
        self,
        examples: Sequence[str],
        columns: Mapping[str, tuple[tuple[str, str], type[BaseModel]]],
        results: Sequence[Result[Any]],
        repeats: int,
    ) -> None:
        self._examples = examples
        self._columns = columns
        self._repeats = repeats
        self._results: defaultdict[tuple[str, str, str], list[Result[Any]]] = defaultdict(list)
        for result in results:
            if result.about is not None and result.about.id is not None:
                self._results[result.about.id, str(result.evaluator), str(result.version)].append(result)

    def __len__(self) -> int:
        return len(self._examples)

    # -- as people read it --------------------------------------------------------------------------------------------

    def cells(self, example: str) -> list[str]:
        """The row of an example in words: its id, then each field that is no text."""
        row = [safe_text(example, longest=_LONGEST)]
        for judge, verdict_type in self._columns.values():
            found = self._results.get((example, *judge), [])
            row += [_cell(found, name) for name in _shown_fields(verdict_type)]
        return row

    def heads(self) -> list[str]:
        """What stands above the columns."""
        scores = [
            f"{label}.{name}"
            for label, (_, verdict_type) in self._columns.items()
            for name in _shown_fields(verdict_type)
        ]
        return ["example", *map(safe_text, scores)]

    def _shown(self) -> tuple[list[list[str]], str | None]:
        rows = [self.cells(example) for example in self._examples[:ROWS_SHOWN]]
        hidden = len(self) - len(rows)
        return rows, f"and {count_words(hidden, 'more example')}; {_ALL}" if hidden else None

    def __str__(self) -> str:
        rows, note = self._shown()
        lines = [self.heads(), *rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        padded = ["  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)) for line in lines]
        return "\n".join([line.rstrip() for line in padded] + ([note] if note else []))

    def html(self) -> str:
        """The table alone, as it stands among others."""
        rows, note = self._shown()
        head = "".join(f"<th>{display.escaped(text)}</th>" for text in self.heads())
        body = "".join(f"<tr>{''.join(f'<td>{display.escaped(cell)}</td>' for cell in row)}</tr>" for row in rows)
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        return table + (display.paragraph(note) if note else "")

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    def _repr_html_(self) -> str:
        return display.shown(self.html())

    # -- as programs read it ------------------------------------------------------------------------------------------

    def to_dicts(self) -> list[dict[str, Any]]:
        """One plain dict for each example and repeat.

        `example`, `group`, `repeat` (None where there is only one), and for each evaluator `name:status`, `name:why`
        (of a failure, a skip or a hand-off) and `name.field` for each field of its verdict.
        """
        repeats: list[int | None] = [None] if self._repeats == 1 else list(range(1, self._repeats + 1))
        return [self._row(example, repeat) for example in self._examples for repeat in repeats]

    def _row(self, example: str, repeat: int | None) -> dict[str, Any]:
        row: dict[str, Any] = {"example": example, "group": None, "repeat": repeat}
        for label, (judge, verdict_type) in self._columns.items():
            here = [r for r in self._results.get((example, *judge), []) if r.about and r.about.repeat == repeat]
            result = here[0] if here else None
            if result is not None and result.about is not None:
                row["group"] = (result.about.attributes or {}).get(GROUP)
            row[f"{label}:status"] = None if result is None else result.status
            row[f"{label}:why"] = None if result is None else reason_of(result)
            for each in verdict_fields(verdict_type):
                row[f"{label}.{each.name}"] = _value(result, each.name)
        return row

    def to_frame(self) -> DataFrame:
        """A pandas frame with one row for each example and repeat. Needs pandas."""
        try:
            import pandas as pd
        except ModuleNotFoundError as error:
            if error.name != "pandas":
                raise
            raise MissingExtraError("frames need pandas, which is not installed: pip install pandas") from error
        return pd.DataFrame(self.to_dicts())


def _shown_fields(verdict_type: type[BaseModel]) -> list[str]:
    """Those that fit into a column; where there are only texts, these."""
    fields = verdict_fields(verdict_type)
    return [each.name for each in fields if each.kind != "text"] or [each.name for each in fields]


def _value(result: Result[Any] | None, name: str) -> Any:
    if not isinstance(result, Verdict):
        return None
    value = getattr(result.value, name)
    if isinstance(value, list):
        return [each.value if isinstance(each, Enum) else each for each in value]
    return value.value if isinstance(value, Enum) else value


def _cell(results: Sequence[Result[Any]], name: str) -> str:
    """`True`, `3`, `failed`; of repeats `3.67` for numbers and `True ×2, False` for anything else."""
    values = [_value(result, name) for result in results if isinstance(result, Verdict)]
    others = Counter(result.status.replace("_", " ") for result in results if not isinstance(result, Verdict))
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if len(numbers) == len(values) > 0:
        words = [number_words(sum(numbers) / len(numbers))]
    else:
        words = _counted(
            Counter(_NONE if value is None else safe_text(str(value), longest=_LONGEST) for value in values)
        )
    return ", ".join(words + _counted(others)) or _NONE


def _counted(counts: Counter[str]) -> list[str]:
    return [text if n == 1 else f"{text} ×{n}" for text, n in counts.most_common()]

"""A measure's own groups as one table: a line for each group, a column for each number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalr.estimates.estimate import Estimate
from evalr.estimates.words import plural, rounded_words, value_words
from evalr.quoting import safe_text
from evalr.reports.fitting import cells, padded, shortened
from evalr.reports.wording import row_title

if TYPE_CHECKING:
    from evalr.reports.report import Section

NARROWEST = 12
"""How much of a group's name must fit."""


def matrix(section: Section, width: int) -> list[str] | None:
    """The groups of several numbers side by side; None where there are no such, or they do not fit.

    Limits of shares are in whole percents. The last column says how many each rests on, and of how many where some were
    left out of the first number.
    """
    rows = [(row_title(row, section), row.groups) for row in section.rows if row.groups is not None]
    if len(rows) < max(2, len(section.rows)) or any(set(groups) != set(rows[0][1]) for _, groups in rows):
        return None
    first = rows[0][1]
    chosen, notes = first.shown("--json for all")
    named = {first.group_words(group): group for group in first}
    head = [*(title for title, _ in rows), plural(safe_text(next(iter(first.values())).noun))]
    body = [[*(_cell(groups[named[name]]) for _, groups in rows), _counted(first[named[name]])] for name, _ in chosen]
    widths = [max(cells(line[column]) for line in (head, *body)) for column in range(len(head))]
    room = width - 4 - sum(widths) - 2 * len(widths)
    names = [f"by {safe_text(first.by)}", *(name for name, _ in chosen)]
    if room < NARROWEST or not body:
        return None
    name_width = min(room, max(map(cells, names)))
    # The head begins two columns further left than what stands below it.
    lines = [f"  {padded(shortened(names[0], name_width + 2), name_width + 2)}  {_joined(head, widths)}"]
    for name, line in zip(names[1:], body, strict=True):
        lines.append(f"    {padded(shortened(name, name_width), name_width)}  {_joined(line, widths)}")
    return [line.rstrip() for line in lines] + [f"    {note}" for note in notes]


def _joined(line: list[str], widths: list[int]) -> str:
    return "  ".join(padded(text, size) for text, size in zip(line, widths, strict=True))


def _cell(estimate: Estimate) -> str:
    value = value_words(estimate.value, estimate.unit)
    if estimate.low is None and estimate.high is None:
        return value
    limits = ["…" if each is None else _limit(each, estimate) for each in (estimate.low, estimate.high)]
    return f"{value} [{limits[0]}, {limits[1]}]"


def _limit(value: float, estimate: Estimate) -> str:
    return rounded_words(value, estimate.unit).removesuffix("%")


def _counted(estimate: Estimate) -> str:
    left_out = sum(estimate.left_out.values())
    return f"{estimate.n:,} of {estimate.n + left_out:,}" if left_out else f"{estimate.n:,}"

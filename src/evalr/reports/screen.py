"""A report as lines of text: aligned, wrapped, and plain unless it is for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalr.estimates.estimate import Estimate
from evalr.estimates.lift import Lift
from evalr.estimates.words import interval_words, value_words
from evalr.logs.further import Further
from evalr.quoting import safe_text
from evalr.reports.fitting import cells, packed, padded, shortened, wrapped
from evalr.reports.matrix import matrix
from evalr.reports.ranking import Ranked
from evalr.reports.wording import (
    account_words,
    empty_words,
    footer_words,
    header_words,
    lift_words,
    ranking_words,
    row_title,
)

if TYPE_CHECKING:
    from evalr.reports.report import Report, Section

NARROWEST_NOTES = 30
LONGEST_GROUP = 40
BOLD, DIM, PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[0m"

Style = Callable[[str, str], str]


@dataclass(frozen=True, slots=True)
class Line:
    """One row of the table: its four columns, the last of which may wrap."""

    title: str
    value: str = ""
    interval: str = ""
    notes: str = ""
    headline: bool = False


@dataclass(frozen=True, slots=True)
class Note:
    """What stands under a measure's rows."""

    text: str


@dataclass(frozen=True, slots=True)
class Block:
    """Lines that are laid out already."""

    lines: list[str]


GAP = Line("")
"""Between summaries that are shown with their groups."""


def screen(report: Report, *, width: int, color: bool) -> str:
    """The whole report: what was read, one row for each summary, what was left out, and how to read the intervals."""
    style = _styled if color else _unstyled
    account = [
        line
        for name, text in account_words(report)
        for line in wrapped(text, width, first=padded(name, 13), rest=" " * 13)
    ]
    footer = [style(DIM, line) for line in wrapped(footer_words(report), width, rest="")]
    rankings = [_ranking(ranked, width, style) for section in report.sections for ranked in section.rankings]
    leading, further = (
        [_further(each, width, style) for each in report.further if each.leads is leads and each.lines]
        for leads in (True, False)
    )
    table = _table(report, width, style)
    blocks = [packed(header_words(report), width), *leading, table, *rankings, *further, [*account, *footer]]
    return "\n\n".join(text for block in blocks if (text := "\n".join(block)))


def _table(report: Report, width: int, style: Style) -> Iterator[str]:
    parts = [part for section in report.sections for part in _parts(section, None if report.by else width)]
    parts += [Line(title, notes=reason) for title, reason in empty_words(report.sections, shell=True)]
    yield from _aligned(_without_gap_at_end(parts), width, style)


def sections_text(sections: Sequence[Further], *, width: int, color: bool) -> str:
    """Sections alone, without the report that they are added to."""
    style = _styled if color else _unstyled
    return "\n\n".join("\n".join(_further(each, width, style)) for each in sections)


def _further(section: Further, width: int, style: Style) -> Iterator[str]:
    """A section of the log's reader, under its title."""
    yield from (style(BOLD, line) for line in wrapped(safe_text(section.title), width, rest=""))
    parts: list[Line | Note | Block] = []
    for each in section.lines:
        if isinstance(each, str):
            parts.append(Note(safe_text(each, longest=500)))
        else:
            title = shortened(safe_text(each.title), LONGEST_GROUP)
            notes = " · ".join(safe_text(note, longest=300) for note in each.notes)
            value, interval = (shortened(safe_text(text), LONGEST_GROUP) for text in (each.value, each.interval))
            parts.append(Line(f"  {title}" if each.within else title, value, interval, notes))
    yield from _aligned(parts, width, style)


def _aligned(parts: list[Line | Note | Block], width: int, style: Style) -> Iterator[str]:
    lines = [part for part in parts if isinstance(part, Line)]
    columns = (
        max((cells(line.title) for line in lines), default=0),
        max((cells(line.value) for line in lines), default=0),
        max((cells(line.interval) for line in lines), default=0),
    )
    for part in parts:
        if isinstance(part, Block):
            yield from part.lines
        elif isinstance(part, Note):
            yield from (style(DIM, text) for text in wrapped(part.text, width, first="    - ", rest="      "))
        else:
            yield from _laid_out(part, columns, width, style)


def _parts(section: Section, width: int | None) -> Iterator[Line | Note | Block]:
    """What stands in the table of one measure; its own groups, which nobody asked for, side by side in the width."""
    beside = None if width is None else matrix(section, width)
    # Where each evaluator has one group of its own, as each signal of a pass has, that says the same once more.
    several = width is not None and len({row.evaluator for row in section.rows}) > 1
    groups_of = [None if several and len(row.groups or ()) == 1 else row.groups for row in section.rows]
    grouped = any(groups is not None for groups in groups_of)
    for place, (row, groups) in enumerate(zip(section.rows, groups_of, strict=True)):
        if grouped and place and beside is None:
            yield GAP
        yield _line(row_title(row, section), row.estimate, headline=True)
        if groups is not None and beside is None:
            shown, notes = groups.shown("--json for all")
            yield from (_line(f"  {shortened(title, LONGEST_GROUP)}", estimate) for title, estimate in shown)
            yield from map(Note, notes)
        if row.lift is not None:
            yield _lift_line(row.lift)
        if row.no_lift is not None:
            yield Note(safe_text(row.no_lift, longest=500))
    yield from (Note(safe_text(note, longest=500)) for note in section.notes)
    if beside is not None:
        yield GAP
        yield Block(beside)
    if grouped:
        yield GAP


def _ranking(ranked: Ranked, width: int, style: Style) -> Iterator[str]:
    """The groups come last on their lines: a path may take all the room there is."""
    yield from wrapped(f"{ranked.ranking.title}: {ranked.ranking.what}", width, first="  ", rest="    ")
    rows = list(ranking_words(ranked))
    widths = [max(cells(row[column]) for row in rows) for column in (0, 1)]
    for share, counts, group in rows:
        head = f"    {style(BOLD, share)}{' ' * (widths[0] - cells(share))}  {padded(counts, widths[1])}  "
        yield head + shortened(group, max(NARROWEST_NOTES, width - sum(widths) - 8))
    hidden = ranked.total - len(rows)
    if hidden:
        yield style(DIM, f"    and {hidden:,} more; --json for all")


def _without_gap_at_end(parts: list[Line | Note | Block]) -> list[Line | Note | Block]:
    return parts[:-1] if parts and parts[-1] is GAP else parts


def _line(title: str, estimate: Estimate, *, headline: bool = False) -> Line:
    value = value_words(estimate.value, estimate.unit)
    interval = interval_words(estimate.low, estimate.high, estimate.unit)
    notes = " · ".join(safe_text(note, longest=300) for note in estimate.notes())
    return Line(title, value, interval, notes, headline)


def _lift_line(lift: Lift) -> Line:
    difference = lift.difference
    value = value_words(difference.value, difference.unit)
    interval = interval_words(difference.low, difference.high, difference.unit)
    notes = " · ".join(safe_text(note, longest=300) for note in lift.beside())
    return Line(f"  {shortened(lift_words(lift), LONGEST_GROUP)}", value, interval, notes)


def _laid_out(line: Line, columns: tuple[int, int, int], width: int, style: Style) -> Iterator[str]:
    if line is GAP:
        yield ""
    elif not line.value:
        first = f"  {padded(line.title, columns[0])}  "
        yield from wrapped(line.notes, width, first=first, rest=" " * (columns[0] + 4))
    else:
        yield from _row(line, columns, width, style)


def _row(line: Line, columns: tuple[int, int, int], width: int, style: Style) -> Iterator[str]:
    value = style(BOLD if line.headline else "", line.value) + " " * (columns[1] - cells(line.value))
    head = f"  {padded(line.title, columns[0])}  {value} {padded(line.interval, columns[2])}  "
    room = sum(columns) + 7
    if width - room < NARROWEST_NOTES:
        yield head.rstrip()
        yield from wrapped(line.notes, width, first="      ", rest="      ")
        return
    first, *others = wrapped(line.notes, width - room, rest="")
    yield (head + first).rstrip()
    yield from (" " * room + text for text in others)


def _styled(code: str, text: str) -> str:
    return f"{code}{text}{PLAIN}" if code and text else text


def _unstyled(code: str, text: str) -> str:
    return text

"""A report as a piece of HTML, for notebooks. Every text is escaped: it may come from a log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from evalr.estimates.display import Line, line, paragraph, shown, table
from evalr.logs.further import Further
from evalr.reports.wording import (
    account_words,
    closing_sentences,
    empty_words,
    header_words,
    lift_words,
    ranking_words,
    row_title,
)

if TYPE_CHECKING:
    from evalr.reports.report import Report, Section


def page(report: Report) -> str:
    """The report's table, with what stands above and below it on a screen."""
    rows: list[Line | str] = [row for section in report.sections for row in _rows(section)]
    rows += [Line(title, asides=(reason,)) for title, reason in empty_words(report.sections)]
    below = [f"{name}: {text}" for name, text in account_words(report)] + [" ".join(closing_sentences(report))]
    return shown(
        paragraph(" · ".join(header_words(report))),
        *_further([each for each in report.further if each.leads], report.level),
        table("", report.level, rows),
        *_further([each for each in report.further if not each.leads], report.level),
        *(paragraph(text) for text in below if text),
    )


def sections_page(sections: Sequence[Further], *, level: float) -> str:
    """Sections alone, without the report that they are added to."""
    return shown(*_further(sections, level))


def _further(sections: Sequence[Further], level: float) -> Iterator[str]:
    return (table("", level, _further_rows(each), caption=each.title) for each in sections if each.lines)


def _further_rows(section: Further) -> Iterator[Line | str]:
    for each in section.lines:
        if isinstance(each, str):
            yield each
        else:
            yield Line(each.title, each.value, each.interval, asides=tuple(each.notes), within=each.within)


def _rows(section: Section) -> Iterator[Line | str]:
    for row in section.rows:
        yield line(row_title(row, section), row.estimate)
        if row.groups is not None:
            groups, notes = row.groups.shown("to_frame() has them all")
            yield from (line(title, estimate, within=True) for title, estimate in groups)
            yield from notes
        if row.lift is not None:
            of_both = line(lift_words(row.lift), row.lift.difference, within=True)
            yield of_both._replace(counted="", asides=tuple(row.lift.beside()))
        if row.no_lift is not None:
            yield row.no_lift
    yield from section.notes
    for ranked in section.rankings:
        yield Line(ranked.ranking.title, asides=(ranked.ranking.what,))
        yield from (Line(group, share, counted=counts, within=True) for share, counts, group in ranking_words(ranked))

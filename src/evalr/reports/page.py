"""A report as a piece of HTML, for notebooks. Every text is escaped: it may come from a log."""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import TYPE_CHECKING

from evalr.estimates.estimate import html_head, html_row, html_table
from evalr.reports.wording import (
    account_words,
    closing_sentences,
    empty_words,
    header_words,
    ranking_words,
    row_title,
    shown_groups,
)

if TYPE_CHECKING:
    from evalr.reports.report import Report, Section


def page(report: Report) -> str:
    """The report's table, with what stands above and below it on a screen."""
    rows = [row for section in report.sections for row in _rows(section)]
    rows += [[title, "", "", reason] for title, reason in empty_words(report.sections)]
    below = [f"{name}: {text}" for name, text in account_words(report)] + [" ".join(closing_sentences(report))]
    return (
        _paragraph(" · ".join(header_words(report)))
        + html_table(html_head("", report.level), rows)
        + "".join(_paragraph(text) for text in below if text)
    )


def _rows(section: Section) -> Iterator[list[str]]:
    for row in section.rows:
        yield html_row(row_title(row, section), row.estimate)
        if row.groups is not None:
            shown, notes = shown_groups(row.groups)
            yield from (html_row(f"· {title}", estimate) for title, estimate in shown)
            yield from (["", "", "", note] for note in notes)
    yield from (["", "", "", note] for note in section.notes)
    for ranked in section.rankings:
        yield [ranked.ranking.title, "", "", ranked.ranking.what]
        yield from ([f"· {group}", share, "", counts] for share, counts, group in ranking_words(ranked))


def _paragraph(text: str) -> str:
    return f"<p>{html.escape(text)}</p>"

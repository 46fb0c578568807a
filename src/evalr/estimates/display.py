"""Tables of estimates for notebooks: compact, alike everywhere, readable in light and in dark.

Every text is escaped, since it may come from a log. Nothing is fetched and nothing runs: colors and fonts are those of
the page that a table stands on.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from evalr.estimates.words import interval_words, value_words
from evalr.quoting import safe_text

if TYPE_CHECKING:
    from evalr.estimates.estimate import Estimate

_LONGEST = 500
_MOST_LINES = 40

# Twice the class, to come before the rules that notebooks have for any table.
_RULES = (
    ":is(table, p) {font-size: .93em; margin: .35em 0}",
    "table {border-collapse: collapse; font-variant-numeric: tabular-nums; table-layout: auto}",
    "caption {caption-side: top; text-align: left; font-weight: 600; padding: 0 .5em .3em; color: inherit}",
    ":is(th, td) {padding: .25em .8em .25em .5em; text-align: left; vertical-align: top; border: 0; max-width: 56em}",
    "th {border-bottom: 1px solid rgba(128, 128, 128, .6); font-weight: 600; vertical-align: bottom}",
    ":is(th, td):is(:nth-child(2), :nth-child(3)) {text-align: right; white-space: nowrap}",
    "td {overflow-wrap: anywhere}",
    "td:first-child {min-width: 8em}",
    "td.within {padding-left: 1.8em}",
    "table.texts :is(th, td):nth-child(n) {text-align: left; white-space: normal; max-width: 28em}",
    ".aside {opacity: .7}",
    "p {padding: 0 .5em; max-width: 70em}",
    ".notice {font-weight: 600}",
    "pre {padding: 0 .5em; margin: .35em 0; font-size: .9em; white-space: pre-wrap; background: none; border: 0}",
)
_STYLE = "".join(f".evalr.evalr {rule}" for rule in _RULES)


class Line(NamedTuple):
    """One row of a table: what it is about, its number, what stands beside that, and whether it is within one above."""

    title: str
    value: str = ""
    interval: str = ""
    counted: str = ""
    asides: tuple[str, ...] = ()
    within: bool = False


def line(title: str, estimate: Estimate, *, within: bool = False) -> Line:
    """The row of an estimate."""
    notes, unit = estimate.notes(), estimate.unit
    counted = notes.pop(0) if estimate.n or not estimate.reason else ""
    return Line(
        title,
        value_words(estimate.value, unit),
        interval_words(estimate.low, estimate.high, unit),
        counted,
        tuple(notes),
        within,
    )


def table(title: str, level: float, rows: Iterable[Line | str], *, caption: str | None = None) -> str:
    """A table of estimates with intervals at `level`; a text among the rows is a note on those above it."""
    above = "" if caption is None else f"<caption>{escaped(caption)}</caption>"
    heads = (title, "value", f"{100 * level:g}% interval", "counted")
    head = "".join(f"<th>{escaped(text)}</th>" for text in heads)
    body = "".join(f"<tr>{_cells(row)}</tr>" for row in rows)
    return f"<table>{above}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def texts(heads: Sequence[str], rows: Iterable[Sequence[str]], *, longest: int) -> str:
    """A table of texts that people read, such as messages, with their line ends, each cut at `longest` characters."""
    head = "".join(f"<th>{escaped(text)}</th>" for text in heads)
    body = "".join(f"<tr>{''.join(f'<td>{_lines(text, longest)}</td>' for text in row)}</tr>" for row in rows)
    return f'<table class="texts"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def _lines(text: str, longest: int) -> str:
    cut = text if len(text) <= longest else text[: longest - 1] + "…"
    return "<br>".join(html.escape(safe_text(each, longest=longest)) for each in cut.splitlines())


def _cells(row: Line | str) -> str:
    if isinstance(row, str):
        return f'<td colspan="4" class="aside within">{escaped(row)}</td>'
    beside = " · ".join(escaped(text) for text in row.asides)
    between = " · " if row.counted else ""
    aside = f'<span class="aside">{between}{beside}</span>' if beside else ""
    place = ' class="within"' if row.within else ""
    return (
        f"<td{place}>{escaped(row.title)}</td><td>{escaped(row.value)}</td>"
        f"<td>{escaped(row.interval)}</td><td>{escaped(row.counted)}{aside}</td>"
    )


def paragraph(text: str) -> str:
    """A text above or below a table."""
    return f'<p class="aside">{html.escape(text)}</p>'


def printed(text: str) -> str:
    """What a result prints, as a notebook shows it: a line as a line, several as they are aligned."""
    all_lines = text.splitlines() or [""]
    lines = [html.escape(safe_text(line, longest=_LONGEST)) for line in all_lines[:_MOST_LINES]]
    hidden = len(all_lines) - len(lines)
    lines += [f"and {hidden:,} more lines; print() has them all"] if hidden else []
    return shown(f"<p>{lines[0]}</p>" if len(lines) == 1 else f"<pre>{chr(10).join(lines)}</pre>")


def notice(text: str) -> str:
    """A text that is to be read before what stands below it."""
    return f'<p class="notice">{escaped(text)}</p>'


def shown(*parts: str) -> str:
    """Tables and paragraphs as a notebook shows them."""
    return '<div class="evalr"><style>' + _STYLE + "</style>" + "".join(parts) + "</div>"


def escaped(text: str) -> str:
    """A text from a log as HTML shows it and nothing more."""
    return html.escape(safe_text(text, longest=_LONGEST))

"""What stands on a report's page, as plain data: summary first, then a section for each measure, arm and group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from typing import TYPE_CHECKING, Any, NamedTuple

from evalr.errors import EvalrError
from evalr.estimates.estimate import Estimate, Groups, Trend
from evalr.estimates.lift import Lift
from evalr.estimates.plot import Plot
from evalr.estimates.survival import SurvivalCurve
from evalr.estimates.trends import Trends
from evalr.estimates.words import plural
from evalr.logs.blocks import Block, Card, Cards, Cell, Figure, Numbers, Table, Tile, Tiles
from evalr.logs.further import Further, estimate_cell
from evalr.reports.lane import Row
from evalr.reports.pages.numbers import Footnotes, Number, lift_number, number, plain_rows
from evalr.reports.pages.pictures import picture, spark
from evalr.reports.pages.rendering import LONGEST_OPENED, check_installed, policy, rendered, style
from evalr.reports.plots import plotter
from evalr.reports.plots.contest import is_contest
from evalr.reports.plots.lift import forest_figure
from evalr.reports.plots.looks import finished
from evalr.reports.wording import (
    account_words,
    empty_words,
    header_words,
    lift_words,
    moment_words,
    ranking_words,
    row_title,
)

if TYPE_CHECKING:
    from evalr.reports.report import Report, Section

MOST_DRAWN = 1_250_000
"""Characters of plots, of tables below them, and of what readers add: more is left out, so that it opens at once."""
ROW = 400
"""About as many has a row of a table."""
NO_ROOM = "left out, so that the page stays small: a report on fewer measures (--measure) has it"
MOST_BEFORE_WHAT_LEADS = 10
"""Numbers of the summary that are not headlines; more of them are folded where a section leads."""
MOST_GROUPS = 60
"""Of a table of a measure's groups, the largest."""
MOST_ROWS = 600
"""Of the tables by group, and of those by arm: where there are many numbers, fewer groups are shown."""


class Drawn(NamedTuple):
    """A plot on a page, with the same as a table below it."""

    title: str
    svg: Any
    why_not: str | None
    rows: list[Number]
    notes: list[str]


class Pictures:
    """Draws until there is no more room."""

    def __init__(self, footnotes: Footnotes) -> None:
        self.footnotes = footnotes
        self.size = 0
        self._courses: set[int] = set()

    def drawn(
        self, title: str, result: Any, rows: Sequence[tuple[str, Estimate]] = (), notes: Sequence[str] = ()
    ) -> Drawn:
        """A result's plot, or why it is not drawn."""
        if self.size > MOST_DRAWN:
            return Drawn(title, None, NO_ROOM, [], list(notes))
        beside: list[str] = []
        svg, why_not = self.tried(result, beside)
        self.size += ROW * len(rows)
        return Drawn(
            title, svg, why_not, plain_rows(list(rows), self.footnotes), list(dict.fromkeys([*notes, *beside]))
        )

    def is_new(self, curve: SurvivalCurve) -> bool:
        """Whether no other number of the page has the same course."""
        course = hash((curve.times, curve.shares, curve.counted_words()))
        if course in self._courses:
            return False
        self._courses.add(course)
        return True

    def tried(self, result: Any, beside: list[str] | None = None) -> tuple[Any, str | None]:
        """The picture of a result or of a plot, and else why there is none; `beside` takes what stands in its title."""
        if self.size > MOST_DRAWN:
            return None, NO_ROOM
        try:
            plot = result if isinstance(result, Plot) else plotter.plot(result, title="")
            if beside is not None:
                spec = dict(plot.spec)
                beside += spec.pop("title", {}).get("subtitle", [])
                plot = Plot(spec=spec, says=plot.says)
            svg = picture(plot)
        except EvalrError as error:
            return None, str(error)
        self.size += len(svg)
        return svg, None


def html_page(report: Report) -> str:
    """The page of a report. Needs `evalr[report]`.

    Raises:
        MissingExtraError: it is not installed.
    """
    check_installed()
    footnotes = Footnotes()
    pictures = Pictures(footnotes)
    css = style()
    # In the order in which room for plots is given: first what somebody asked for, and what a reader knows best.
    leading = [_further(each, pictures) for each in report.further if each.leads]
    further = [_further(each, pictures) for each in report.further if not each.leads]
    rows = [(row, section) for section in report.sections for row in section.rows]
    arms = _arms(rows, pictures)
    drawn = _rows(report.sections, pictures)
    sections = [
        _section(section, number, drawn, pictures, own_groups=report.by is None)
        for number, section in enumerate(report.sections)
        if section.rows
    ]
    header = header_words(report)
    summary, more = _folded(list(_summary(report, footnotes)), leads=bool(leading))
    return rendered(
        "report.html",
        css=css,
        policy=policy(css),
        title=header[0] if report.path is not None else "report",
        header=header[1:] if report.path is not None else header,
        level=f"{100 * report.level:g}%",
        summary=summary,
        more=more,
        leading=leading,
        further=further,
        sections=sections,
        arms=arms,
        groups=_groups(report, footnotes),
        smaller_groups=max((len(row.groups or ()) for row, _ in rows if _by_name(row)), default=0),
        by=report.by,
        groupable=[*(["user"] if report.users else []), *report.attributes][:20],
        empty=empty_words(report.sections, shell=True),
        missing=_missing(rows),
        account=account_words(report),
        funnel=pictures.drawn("", report) if report.left_out.counts or report.not_counted or report.unread else None,
        footnotes=footnotes.texts,
        version=metadata.version("evalr"),
        read=moment_words(report.now),
    )


def _summary(report: Report, footnotes: Footnotes) -> Iterator[dict[str, Any]]:
    """A line for each number: first those that leading sections have tiles for."""
    for place, leading in enumerate((each for each in report.further if each.leads), 1):
        for block in leading.blocks:
            for tile in block.tiles if isinstance(block, Tiles) else ():
                yield {
                    "anchor": f"first{place}",
                    "headline": True,
                    "number": _tile_number(tile),
                    "spark": spark(list(tile.spark)),
                }
    for place, section in enumerate(report.sections):
        for index, row in enumerate(section.rows):
            yield {
                "anchor": f"m{place}-{index}",
                "headline": index == 0,
                "number": number(row_title(row, section), row.estimate, footnotes),
                "spark": _spark(row),
            }


def _folded(rows: list[dict[str, Any]], *, leads: bool) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Where a section leads, what it shows must not wait below a long table: the headlines, and what can be opened."""
    others = [row for row in rows if not row["headline"]]
    if not leads or len(others) < MOST_BEFORE_WHAT_LEADS:
        return rows, []
    return [row for row in rows if row["headline"]], others


def _spark(row: Row) -> Any:
    trend = None if row.details is None else row.details.trend
    if trend is None:
        return None
    estimates = [each for bucket, each in trend.items() if bucket is not None][-60:]
    return spark([e.value for e in estimates], [e.low for e in estimates], [e.high for e in estimates])


def _rows(sections: Sequence[Section], pictures: Pictures) -> dict[str, dict[str, Any]]:
    """Every number by its anchor, with its plots. Headlines are drawn first, as there may be no room for all."""
    all_rows = [
        (index, f"m{place}-{index}", row, section)
        for place, section in enumerate(sections)
        for index, row in enumerate(section.rows)
    ]
    all_rows.sort(key=lambda each: each[0] > 0)
    return {anchor: _row(row, section, anchor, pictures) for _, anchor, row, section in all_rows}


def _section(
    section: Section, place: int, drawn: Mapping[str, dict[str, Any]], pictures: Pictures, *, own_groups: bool
) -> dict[str, Any]:
    """A measure's; groups that were asked for have a section of their own, in which all measures are."""
    table = _group_table(section) if own_groups else None
    return {
        "anchor": f"m{place}",
        "title": section.headline,
        "measure": section.measure,
        "question": section.question,
        "rows": [drawn[f"m{place}-{index}"] for index in range(len(section.rows))],
        "notes": section.notes,
        "table": None if table is None else _block(table, pictures),
        "rankings": [
            {
                "title": ranked.ranking.title,
                "what": ranked.ranking.what,
                "rows": (shown := list(ranking_words(ranked))),
                "others": ranked.total - len(shown),
            }
            for ranked in section.rankings
        ],
    }


def _group_table(section: Section) -> Table | None:
    """Every number of each group side by side; None where fewer than two numbers have the same groups."""
    rows = [(row_title(row, section), row.groups) for row in section.rows if row.groups is not None and _by_name(row)]
    if len(rows) < 2 or any(set(groups) != set(rows[0][1]) for _, groups in rows):
        return None
    first = rows[0][1]
    alike = all(groups[group].n == first[group].n for _, groups in rows for group in first)
    shown = sorted(first, key=lambda group: -first[group].n)[:MOST_GROUPS]
    noun = plural(next(iter(first.values())).noun)
    columns = (first.by, *(title for title, _ in rows), *([f"{noun} counted"] if alike else []))
    return Table(
        title=f"by {first.by}",
        columns=columns,
        rows=tuple(
            (
                first.group_words(group),
                *(estimate_cell(groups[group], counted=not alike) for _, groups in rows),
                *([_counted(first[group])] if alike else []),
            )
            for group in first
            if group in shown
        ),
        numbers=columns[1:],
        total=len(first),
        footnote=f"Each number is of the {noun} of its group that were counted." if alike else None,
    )


def _counted(estimate: Estimate) -> str:
    left_out = sum(estimate.left_out.values())
    return f"{estimate.n:,} of {estimate.n + left_out:,}" if left_out else f"{estimate.n:,}"


def _row(row: Row, section: Section, anchor: str, pictures: Pictures) -> dict[str, Any]:
    return {
        "anchor": anchor,
        "title": row_title(row, section),
        "evaluator": row.evaluator,
        "number": number("", row.estimate, pictures.footnotes),
        "figures": list(_figures(row, pictures, headline=anchor.endswith("-0"))),
        "no_lift": row.no_lift,
    }


def _figures(row: Row, pictures: Pictures, *, headline: bool) -> Iterator[Drawn]:
    """Everything that was read of one number; what says the same of several is with a measure's headline alone."""
    footnotes, details = pictures.footnotes, row.details
    if headline and is_contest(row.estimate):
        yield pictures.drawn("wins, ties and losses", row.estimate)
    if details is not None and details.trend is not None and (details.trends is None or len(details.trends) < 2):
        yield _trend(details.trend, pictures)
    if details is not None and details.trends is not None and len(details.trends) > 1:
        yield _arm_trends(details.trends, details.lift, pictures)
    lift = row.lift or (None if details is None else details.lift)
    if lift is not None and (headline or _has_arms_alone(lift)):
        drawn = pictures.drawn(lift_words(lift), lift, notes=lift.beside())
        yield drawn._replace(rows=[lift_number("difference", lift, footnotes)])
    if details is not None and details.curve is not None and details.curve.times and pictures.is_new(details.curve):
        yield pictures.drawn(f"how long: share {details.curve.says}", details.curve)
    if isinstance(row.groups, Trend):
        if details is None or details.trend is None:
            yield _trend(row.groups, pictures)
    elif row.groups is not None and not _is_whole(row.groups, row.estimate):
        yield _by_group(row.groups, pictures)


def _trend(trend: Trend, pictures: Pictures) -> Drawn:
    shown, notes = trend.shown("--json for all")
    return pictures.drawn(f"by {trend.by}", trend, shown, notes)


def _arm_trends(trends: Trends, lift: Any, pictures: Pictures) -> Drawn:
    rows = [
        (f"{trends.group_words(arm)}, {bucket}", estimate)
        for arm, trend in trends.items()
        for bucket, estimate in trend.shown("")[0]
    ]
    notes = [] if lift is None else [each for each in lift.warnings() if each.startswith("observational")]
    return pictures.drawn(f"each {trends.by}, by {trends.bucket}", trends, rows, notes)


def _by_group(groups: Groups, pictures: Pictures) -> Drawn:
    shown, notes = groups.shown("--json for all")
    return pictures.drawn(f"by {groups.by}", groups, shown, notes)


def _arms(rows: Sequence[tuple[Row, Section]], pictures: Pictures) -> dict[str, Any] | None:
    """Every number by arm, and all differences below each other; None where nothing has an arm."""
    by_arm = [(row_title(row, section), row.details.arms) for row, section in rows if row.details and row.details.arms]
    if not by_arm:
        return None
    names = list(dict.fromkeys(arm for _, groups in by_arm for arm in groups))
    names = [*(name for name in names if name is not None), *([None] if None in names else [])][: _fitting(12, by_arm)]
    tables = [
        {
            "title": next(groups.group_words(arm) for _, groups in by_arm if arm in groups),
            "untagged": arm is None,
            "rows": [number(title, groups[arm], pictures.footnotes) for title, groups in by_arm if arm in groups],
        }
        for arm in names
    ]
    lifts = [
        (row_title(row, section), lift)
        for row, section in rows
        if (lift := row.lift or (row.details.lift if row.details else None)) is not None
    ]
    forest = None
    if lifts:
        drawable = [
            (title, lift.difference, f"n {lift.treatment.n:,} v {lift.control.n:,}")
            for title, lift in lifts
            if lift.difference.value is not None
        ]
        words = lift_words(lifts[0][1])
        plot = Plot(
            spec=finished(forest_figure(drawable), "", []) if drawable else {},
            says=f"{words}: " + "; ".join(f"{title} {lift.difference}" for title, lift in lifts)[:600],
        )
        svg, why_not = pictures.tried(plot) if drawable else (None, "no difference has a number")
        warnings = [each for each in lifts[0][1].warnings() if all(each in lift.warnings() for _, lift in lifts)]
        numbers = [lift_number(title, lift, pictures.footnotes) for title, lift in lifts]
        alone = ", ".join(title for title, lift in lifts if _has_arms_alone(lift))
        notes = [f"without a difference, and with their arms in their own sections: {alone}"] if alone else []
        forest = {"title": words, "drawn": Drawn("", svg, why_not, numbers, notes), "warnings": warnings}
    others = len({arm for _, groups in by_arm for arm in groups}) - len(names)
    return {"tables": tables, "forest": forest, "others": others}


def _groups(report: Report, footnotes: Footnotes) -> list[dict[str, Any]]:
    """For each group all numbers together, where groups were asked for; the largest twenty."""
    if report.by is None:
        return []
    grouped = [
        (row_title(row, section), row.groups)
        for section in report.sections
        for row in section.rows
        if row.groups is not None and _by_name(row)
    ]
    sizes: dict[str | None, int] = {}
    for _, groups in grouped:
        for group, estimate in groups.items():
            sizes[group] = max(sizes.get(group, 0), estimate.n)
    chosen = set(sorted(sizes, key=lambda group: -sizes[group])[: _fitting(20, grouped)])
    return [
        {
            "title": next(groups.group_words(group) for _, groups in grouped if group in groups),
            "rows": [number(title, groups[group], footnotes) for title, groups in grouped if group in groups],
        }
        for group in sizes
        if group in chosen
    ]


def _has_arms_alone(lift: Lift) -> bool:
    """Whether there is a number of each arm, and none of what lies between them, as of typical times."""
    return lift.difference.value is None and None not in (lift.treatment.value, lift.control.value)


def _is_whole(groups: Groups, whole: Estimate) -> bool:
    """Whether there is one group, which everything is in: it says nothing new."""
    return len(groups) == 1 and next(iter(groups.values())).n == whole.n


def _by_name(row: Row) -> bool:
    """Whether it has groups that are no spans of time."""
    return row.groups is not None and not isinstance(row.groups, Trend)


def _fitting(most: int, numbers: Sequence[Any]) -> int:
    """How many groups are shown with all their numbers."""
    return min(most, max(2, MOST_ROWS // max(1, len(numbers))))


def _missing(rows: Sequence[tuple[Row, Section]]) -> list[tuple[str, str]]:
    """What of each number is not shown, and why: once for all that lack the same."""
    if rows and all(row.details is None for row, _ in rows):
        return [
            (
                "over time, by arm, curves",
                "not read: evalr report LOG --html FILE reads them, and so does report(..., details=True)",
            )
        ]
    together: dict[tuple[str, str], list[str]] = {}
    for row, section in rows:
        for what, reason in () if row.details is None else row.details.missing:
            together.setdefault((what, reason), []).append(row_title(row, section))
    everyone = len(rows)
    return [
        (
            what if len(titles) == everyone else f"{what} of {', '.join(titles[:6])}{', …' if len(titles) > 6 else ''}",
            why,
        )
        for (what, why), titles in together.items()
    ]


def _further(section: Further, pictures: Pictures) -> dict[str, Any]:
    return {
        "name": section.name,
        "title": section.title,
        "lines": section.lines,
        "blocks": [_block(block, pictures) for block in section.blocks],
    }


def _block(block: Block, pictures: Pictures) -> Mapping[str, Any]:
    """A block with its kind, and with the pictures that are in it; its texts take room, too."""
    pictures.size += _size(block)
    found: dict[str, Any] = {"kind": type(block).__name__.lower(), "block": block}
    if isinstance(block, Figure):
        svg, why_not = pictures.tried(Plot(spec=block.spec, says=block.says))
        found |= {"svg": svg, "why_not": why_not}
    if isinstance(block, Numbers):
        found["numbers"] = [_number(title, each, pictures.footnotes) for title, each in block.rows]
        found["level"] = next((f"{100 * _level(each):g}%" for _, each in block.rows), "")
    if isinstance(block, Tiles):
        found["sparks"] = [spark(list(tile.spark)) for tile in block.tiles]
    if isinstance(block, Table):
        found["rows"] = [[_cell(each, pictures.footnotes) for each in row] for row in block.rows]
        if block.filtered_by is not None:
            found |= _filtered(block)
    return found


def _tile_number(tile: Tile) -> Number:
    warned = [] if tile.warning is None else [tile.warning]
    return Number(tile.title, tile.value, tile.interval, " · ".join(tile.lines), warned, tile.footnote or "", None)


def _number(title: str, found: Estimate | Lift, footnotes: Footnotes) -> Number:
    return lift_number(title, found, footnotes) if isinstance(found, Lift) else number(title, found, footnotes)


MARKUP = 55
"""About as many characters stand around each text."""


def _size(block: Block) -> int:
    """About how many characters a block has, without its pictures."""
    if isinstance(block, Table):
        return sum(MARKUP + sum(map(len, filter(None, _cell_texts(cell)))) for row in block.rows for cell in row)
    if isinstance(block, Numbers):
        return ROW * len(block.rows)
    return sum(map(_card_size, block.cards)) if isinstance(block, Cards) else 0


def _cell_texts(cell: str | Cell) -> tuple[str | None, ...]:
    return (cell,) if isinstance(cell, str) else cell[:2]


def _card_size(card: Card) -> int:
    texts = sum(MARKUP + min(len(text), LONGEST_OPENED) for _, text in card.texts)
    return MARKUP * (2 + len(card.chips)) + texts + sum(map(_card_size, card.inside))


class TableCell(NamedTuple):
    """A cell as a page shows it."""

    text: str
    tip: str | None = None
    footnote: int | None = None


def _cell(cell: str | Cell, footnotes: Footnotes) -> TableCell:
    if isinstance(cell, str):
        return TableCell(cell)
    return TableCell(cell.text, cell.tip, None if cell.method is None else footnotes.number(cell.method))


def _level(found: Estimate | Lift) -> float:
    return found.difference.level if isinstance(found, Lift) else found.level


MOST_CHOICES = 10
"""By which rows are chosen; the style knows as many."""


def _filtered(table: Table) -> dict[str, Any]:
    """The texts by which rows are chosen, the most frequent ones, and which of them each row has."""
    column = table.columns.index(table.filtered_by or "")
    texts = [cell if isinstance(cell, str) else cell.text for cell in (row[column] for row in table.rows)]
    counts = Counter(texts)
    choices = sorted(counts, key=lambda text: (-counts[text], text))
    hidden = choices[MOST_CHOICES - 1 :] if len(choices) > MOST_CHOICES else []
    place = {text: index for index, text in enumerate(choices[: MOST_CHOICES - 1] if hidden else choices)}
    found = [(text, counts[text]) for text in place]
    if hidden:
        found.append((f"{len(hidden):,} others", sum(counts[text] for text in hidden)))
    return {"choices": found, "chosen": [place.get(text, MOST_CHOICES - 1) for text in texts]}

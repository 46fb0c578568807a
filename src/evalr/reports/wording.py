"""What a report says in words, wherever it is shown: its header, its account, its last line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from evalr.estimates.estimate import Estimate
from evalr.estimates.lift import Lift
from evalr.estimates.words import choice_words, count_words, method_words, value_words
from evalr.quoting import safe_text
from evalr.reports.lane import Row
from evalr.reports.ranking import Ranked

if TYPE_CHECKING:
    from evalr.reports.report import Report, Section

NAMES_SHOWN = 6


def header_words(report: Report) -> list[str]:
    """`sessions.jsonl`, `1,204 sessions, 311 users`, `3 Sep to 29 Nov 2026 (UTC)`, `read 30 Nov 2026 09:00 UTC`."""
    parts = [] if report.path is None else [safe_text(_path_words(report.path))]
    counts = [count_words(count, safe_text(kind)) for kind, count in report.inputs.items()]
    if report.results:
        counts.append(count_words(report.results, "stored result"))
    if report.users:
        counts.append(count_words(report.users, "user"))
    parts.append(", ".join(counts) or "nothing was counted")
    if report.first is not None and report.last is not None:
        parts.append(f"{period_words(report.first, report.last)} (UTC)")
    if report.since is not None or report.until is not None:
        parts.append(f"only{_asked_period_words(report)}")
    parts.append(_reading_time_words(report))
    return parts


def _path_words(path: str) -> str:
    """The path, or the name of the directory where it only says that it is this one."""
    return path if Path(path).name else Path(path).resolve().name or path


def _reading_time_words(report: Report) -> str:
    if report.read_earlier and report.read_earlier == sum(report.inputs.values()):
        return "each read at its own read_at"
    read = f"read {moment_words(report.now)} ({report.now_from})"
    return f"{read}, {report.read_earlier:,} at their own read_at" if report.read_earlier else read


def period_words(first: datetime, last: datetime) -> str:
    """`3 Sep to 29 Nov 2026`, by the calendar of UTC."""
    begin, end = day_words(first), day_words(last)
    if begin == end:
        return end
    return f"{begin.removesuffix(end[-5:])} to {end}"


def day_words(at: datetime) -> str:
    """`3 Sep 2026`, in UTC."""
    at = at.astimezone(UTC)
    return f"{at.day} {_MONTHS[at.month - 1]} {at.year}"


def moment_words(at: datetime) -> str:
    """`3 Sep 2026 09:00 UTC`."""
    return f"{day_words(at)} {at.astimezone(UTC):%H:%M} UTC"


# Not strftime's, which follow the machine's language.
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def row_title(row: Row, section: Section) -> str:
    """What a row is called: its summary, and whose verdicts it counts where the measure has those of several."""
    # Of thousands of sources, the second is soon found; to list them all for each row would be quadratic.
    several = any(each.evaluator != section.rows[0].evaluator for each in section.rows)
    return safe_text(f"{row.title} · {row.called or row.evaluator}" if several else row.title)


def lift_words(lift: Lift) -> str:
    """What a lift is called among the groups of a row: `treatment v control`."""
    return safe_text(f"{lift.treatment_arm} v {lift.control_arm}")


RANKED_SHOWN = 5


def ranking_words(ranked: Ranked) -> Iterator[tuple[str, str, str]]:
    """The groups that are shown of a ranking: each with its share, what that is of, and its name."""
    unit, noun = ranked.ranking.unit, ranked.ranking.noun
    for each in ranked.groups[:RANKED_SHOWN]:
        share = value_words(each.part / each.whole, "share")
        yield (
            share,
            f"{each.part:,} of {count_words(each.whole, unit)}, {count_words(each.n, noun)}",
            safe_text(each.group),
        )


def empty_words(sections: Iterable[Section], *, shell: bool = False) -> list[tuple[str, str]]:
    """Measures without rows and why, those with one reason together; in a `shell`, with what to do about it."""
    together: dict[str, list[str]] = {}
    for section in sections:
        if not section.rows and section.reason is not None:
            words = f"{section.reason}; {section.advice}" if shell and section.advice else section.reason
            together.setdefault(words, []).append(safe_text(section.headline))
    return [(", ".join(titles), reason) for reason, titles in together.items()]


def account_words(report: Report) -> list[tuple[str, str]]:
    """What was not counted, or not as it stood: nothing that was read goes unsaid."""
    entries: list[tuple[str, str]] = []
    if report.left_out.counts:
        whole = f"{report.left_out.total:,} of {count_words(report.records, report.noun)}"
        entries.append(("left out", f"{whole}: {report.left_out.words()}"))
    if report.not_counted:
        counts = ", ".join(f"{count:,} {reason}" for reason, count in report.not_counted.items())
        entries.append(("not counted", counts))
    if report.unread:
        entries.append(("not counted", f"results of no measure that is installed: {_names(report.unread)}"))
    if report.unknown_fields:
        count = count_words(len(report.unknown_fields), "unknown field")
        entries.append(("ignored", f"{count}: {_names(report.unknown_fields)}"))
    if report.repaired:
        entries.append(("repaired", _names(report.repaired)))
    ungrouped = ungrouped_words(report)
    entries += [("note", note) for note in (*report.notes, *([ungrouped] if ungrouped else []))]
    entries += [("broken", f"the measure {name}: {why}") for name, why in report.broken.items()]
    return [(name, safe_text(text, longest=2_000)) for name, text in entries]


def _asked_period_words(report: Report) -> str:
    since = "" if report.since is None else f" since {moment_words(report.since)}"
    until = "" if report.until is None else f" until {moment_words(report.until)}"
    return since + until


def _names(counts: Mapping[str, int]) -> str:
    """`tool (1,200), accepted (34) and 3 more`, the most frequent first."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    words = ", ".join(f"{name} ({count:,})" for name, count in ordered[:NAMES_SHOWN])
    hidden = len(ordered) - NAMES_SHOWN
    return f"{words} and {hidden:,} more" if hidden > 0 else words


def footer_words(report: Report) -> str:
    """What is to be known of all rows, and what else the command can be asked for."""
    ask = "--json for everything"
    if report.by is None:
        keys = [*(["user"] if report.users else []), *map(safe_text, report.attributes)][:NAMES_SHOWN]
        ask += f", --by {'|'.join(keys)} for groups" if keys else ""
    return " ".join([*closing_sentences(report), ask])


def closing_sentences(report: Report) -> list[str]:
    """Which intervals these are."""
    sentences = []
    estimates = [row.estimate for row in report.rows if row.estimate.low is not None or row.estimate.high is not None]
    if estimates:
        methods = "; ".join(dict.fromkeys(method_words(estimate.method) for estimate in estimates))
        sentences.append(f"{100 * report.level:g}% intervals{_clustered_words(estimates)} ({methods}).")
    return sentences


def ungrouped_words(report: Report) -> str | None:
    """Why there are no groups although some were asked for; None where there are, or none were."""
    by = report.by
    if by is None or not report.rows or any(row.groups is not None for row in report.rows):
        return None
    key = repr(safe_text(by))
    if by in report.attributes or (by == "user" and report.users):
        return f"nothing that was counted has {key} to group by, but inputs do: results have to name it in their about"
    words = f"nothing here has {key} to group by; {choice_words(safe_text(by), map(safe_text, report.attributes))}"
    if by in report.unknown_fields:
        words += f"; {key} is a field that was ignored: to group by it, put it under attributes"
    return words


def uncompared_words(report: Report) -> str | None:
    """Why nothing is compared although it was asked for; None where something is, or nothing was asked for."""
    if report.lift is None or not report.rows or any(row.lift is not None for row in report.rows):
        return None
    reasons = dict.fromkeys(row.no_lift for row in report.rows if row.no_lift)
    return safe_text("; ".join(reasons), longest=1_000) or "nothing is compared: no measure could be read"


def _clustered_words(estimates: Iterable[Estimate]) -> str:
    """`, clustered by user or session`: what the rows of one kind may share."""
    kinds = dict.fromkeys(kind.partition("/")[0] for estimate in estimates for kind in estimate.clustered_by)
    return f", clustered by {' or '.join(map(safe_text, kinds))}" if kinds else ""

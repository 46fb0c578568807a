"""Sections that a log's reader adds to a report: on the screen, on a page and in JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from evalr.estimates.estimate import Estimate
from evalr.logs import Further, FurtherLine, Log, ReportTerms, Stored, estimate_line
from evalr.measures import TaskCompletion
from evalr.reports.report import report
from evalr.verdicts import Verdict

NOW = datetime(2026, 11, 30, 9, tzinfo=UTC)
SHARE = Estimate(name="covered", value=0.75, low=0.6, high=0.9, n=4, noun="session")


@dataclass
class Telling(Log):
    """A log that counts what it yields, and says so."""

    terms: ReportTerms | None = field(default=None, init=False)

    def prepare(self, terms: ReportTerms) -> None:
        self.terms = terms

    def further(self) -> Sequence[Further]:
        lines: list[FurtherLine | str] = [
            estimate_line("covered", SHARE, notes=["by hand"]),
            FurtherLine("of them <b>\x1b[31m", "3\x1b[0m", "\x9b1m", within=True),
            "a note on both",
        ]
        data = {"records": self.records, "covered": SHARE.to_dict()}
        return [Further(name="coverage", title="What was covered", lines=lines, data=data)]


def items(log: Log) -> Iterator[Stored]:
    for _ in range(3):
        log.records += 1
        yield Stored("completion", Verdict(TaskCompletion(completed=True, quality=4, reason="done"), "completion", "1"))


def test_sections_of_a_reader_follow_the_measures_on_the_screen() -> None:
    lines = report(Telling("log", "telling", items), now=NOW).text(width=90).splitlines()
    at = lines.index("What was covered")
    assert lines[at + 1 : at + 4] == [
        "  covered                75.0%    [60.0, 90.0]  4 sessions · by hand",
        "    of them <b>\\x1b[31m  3\\x1b[0m \\x9b1m",
        "    - a note on both",
    ]
    assert any("task completion" in line for line in lines[:at])


def test_they_are_on_the_page_escaped_and_whole_in_json() -> None:
    found = report(Telling("log", "telling", items), now=NOW)
    page = found._repr_html_()
    assert "<caption>What was covered</caption>" in page
    assert "<b>" not in page
    assert json.loads(json.dumps(found.to_dict()))["further"]["coverage"]["records"] == 3


def test_a_log_is_told_the_terms_before_it_is_read() -> None:
    log = Telling("log", "telling", items)
    report(log, now=NOW, level=0.9, randomised=True)
    assert log.terms == ReportTerms(NOW, None, None, 0.9, True)


def test_who_asks_for_single_measures_gets_them_alone() -> None:
    log = Telling("log", "telling", items)
    assert report(log, now=NOW, measures=["completion"]).further == ()
    assert log.terms is None
    assert report(Log("log", "plain", items), now=NOW).further == ()

"""The screen: pinned whole for the sample log, and safe and aligned whatever a log holds."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalr import Estimate, report
from evalr.cli.sample import NOW, sample_lines
from evalr.measures import Activity, Session
from evalr.reports.fitting import cells, packed, padded, wrapped
from evalr.reports.lane import Row
from evalr.reports.report import Section
from evalr.reports.wording import period_words, row_title

SCREEN = Path(__file__).parent / "sample_screen.txt"


@pytest.fixture(scope="module")
def sample_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("logs") / "sample.jsonl"
    path.write_text("".join(f"{line}\n" for line in sample_lines(7)), encoding="utf-8")
    return path


def test_the_screen_of_the_sample_is_as_pinned(sample_log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(sample_log.parent)
    plain, grouped = report("sample.jsonl", now=NOW), report("sample.jsonl", now=NOW, by="agent", measures=["rewrites"])
    shown = f"{plain}\n\n{'=' * 100}\n\n{grouped}\n"
    assert shown == SCREEN.read_text(encoding="utf-8")


class SeenName(str):
    """A name that counts how often it is looked at beside another."""

    seen = 0

    def __hash__(self) -> int:
        SeenName.seen += 1
        return str.__hash__(self)

    def __eq__(self, other: object) -> bool:
        SeenName.seen += 1
        return str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        SeenName.seen += 1
        return str.__ne__(self, other)


def test_the_titles_of_thousands_of_sources_are_found_without_comparing_them_all() -> None:
    names = [SeenName(f"judge@{number}") for number in range(1000)]
    rows = tuple(
        Row(measure="m", evaluator=name, title="m", estimate=Estimate(name="m", value=None, status="undefined"))
        for name in names
    )
    section = Section(measure="m", question="?", headline="m", rows=rows)
    SeenName.seen = 0
    titles = [row_title(row, section) for row in rows]
    assert titles[:2] == ["m · judge@0", "m · judge@1"]
    assert SeenName.seen < 10 * len(rows)


@pytest.mark.parametrize("width", [60, 80, 100, 120])
def test_the_screen_fits(sample_log: Path, width: int) -> None:
    shown = report(sample_log, now=NOW, by="agent").text(width=width).replace(str(sample_log), "sample.jsonl")
    assert [line for line in shown.splitlines() if cells(line) > width] == []


def test_color_adds_nothing_but_color(sample_log: Path) -> None:
    found = report(sample_log, now=NOW)
    colored = found.text(color=True)
    assert "\x1b[1m" in colored
    for code in ("\x1b[1m", "\x1b[2m", "\x1b[0m"):
        colored = colored.replace(code, "")
    assert colored == found.text() == str(found)


HOSTILE = "\x1b[2J\x07\u202egnp.exe\u200b\r\n<script>alert(1)</script>{0}%s[bold]"


def hostile_session(text: str) -> Session:
    began = datetime(2026, 9, 28, tzinfo=UTC)
    activities = [Activity(at=began, role="agent"), Activity(at=began + timedelta(minutes=1), role="person")]
    return Session(id=text, user=text, attributes={"agent": text, text: "x"}, activities=activities)


def test_text_from_a_log_moves_no_cursor_and_runs_nowhere() -> None:
    for by in (None, "agent"):
        found = report([hostile_session(HOSTILE)], now=NOW, by=by)
        shown, html = found.text(), found._repr_html_()
        assert not any(bad in shown + html for bad in ("\x1b", "\x07", "\u202e", "\u200b", "\r"))
        assert "<script" not in html
        assert "\\x1b[2J" in shown


@settings(max_examples=50)
@given(text=st.text(min_size=1, max_size=200))
def test_no_text_breaks_the_screen(text: str) -> None:
    found = report([hostile_session(text)], now=NOW, by="agent")
    shown = found.text()
    assert not any(
        unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp") for character in shown if character != "\n"
    )
    assert len(shown.splitlines()) == len(shown.split("\n"))
    assert f"{found['waits'].n:,} wait" in shown


def test_a_notebook_shows_what_the_screen_shows(sample_log: Path) -> None:
    found = report(sample_log, now=NOW)
    html = found._repr_html_()
    for text in ("458 sessions", "task completion", "4 of 882 records", "95% intervals", "success"):
        assert text in html
    assert html.count("<tr>") == 1 + len(found.rows) + sum(len(section.notes) for section in found.sections) + 1


def test_a_notebook_gives_no_advice_for_a_shell(sample_log: Path) -> None:
    found = report(sample_log, now=NOW, by="user", measures=["waits"])
    assert "--json" in found.text()
    assert "smaller groups" in found._repr_html_()
    for shown in (found, report(sample_log, now=NOW)):
        assert "--" not in shown._repr_html_()


# Text that fits


@given(st.lists(st.text(alphabet="ab字é", min_size=1, max_size=12), min_size=1, max_size=30), st.integers(12, 60))
def test_wrapping_loses_nothing_and_fits_where_words_do(words: list[str], width: int) -> None:
    lines = list(wrapped(" ".join(words), width))
    assert " ".join(lines).split() == words
    assert all(cells(line) <= width or len(line.split()) == 1 for line in lines)


def test_wide_characters_take_two_columns_and_marks_none() -> None:
    assert (cells("ab"), cells("字"), cells("e\u0301")) == (2, 2, 1)
    assert cells(padded("字", 5)) == 5


def test_parts_stay_whole_where_they_fit() -> None:
    assert list(packed(["aa bb", "cc", "dd"], 12)) == ["aa bb  ·  cc", "dd"]


@pytest.mark.parametrize(
    ("first", "last", "words"),
    [
        ("2026-09-03", "2026-11-29", "3 Sep to 29 Nov 2026"),
        ("2025-12-31", "2026-01-01", "31 Dec 2025 to 1 Jan 2026"),
        ("2026-09-03", "2026-09-03", "3 Sep 2026"),
    ],
)
def test_a_period_in_words(first: str, last: str, words: str) -> None:
    begin, end = (datetime.fromisoformat(day).replace(tzinfo=UTC) for day in (first, last))
    assert period_words(begin, end) == words


def test_a_period_is_told_by_the_calendar_of_utc() -> None:
    late = datetime.fromisoformat("2026-09-03T23:30:00-05:00")
    assert period_words(late, late) == "4 Sep 2026"

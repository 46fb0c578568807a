"""A report in a notebook: one tidy table, each text escaped, and frames of it."""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd
import polars as pl
import pytest

from evalr import Report, Verdict, report
from evalr.inputs import Activity, Session, Transcript
from evalr.logs import read_frame
from evalr.measures import TaskCompletion

NOW = datetime(2026, 9, 30, tzinfo=UTC)
START = datetime(2026, 9, 28, 9, tzinfo=UTC)
HOSTILE = "</td></table><script>alert(1)</script>\x1b[2J{0}%s"


def session(number: int, **attributes: str) -> Session:
    began = START + timedelta(minutes=10 * number)
    activities = [Activity(at=began, role="agent"), Activity(at=began + timedelta(minutes=1), role="person")]
    return Session(id=f"s{number}", user=f"u{number}", attributes=attributes, activities=activities)


def rows(found: Report) -> list[list[str]]:
    """The texts of the cells of the report's table, row by row."""
    table = found._repr_html_().partition("<tbody>")[2].partition("</tbody>")[0]
    return [
        [html.unescape(re.sub("<.*?>", "", cell)) for cell in re.findall(r"<td.*?</td>", row)]
        for row in re.findall(r"<tr>(.*?)</tr>", table)
    ]


def paragraphs(found: Report) -> list[str]:
    return [html.unescape(text) for text in re.findall(r"<p.*?>(.*?)</p>", found._repr_html_())]


def test_a_report_is_one_table_with_its_account_around_it() -> None:
    found = report([session(n, agent="ab"[n % 2]) for n in range(4)], now=NOW, by="agent", measures=["waits"])
    table = rows(found)
    assert [row[0] for row in table] == ["came back within 1h", "a", "b", "typical wait (median)", "a", "b"]
    assert table[0][1:3] == ["100.0%", "[51.0, 100.0]"]
    assert table[1][3].startswith("2 waits of 2 users · ")
    assert {len(row) for row in table} == {4}
    above, *below = paragraphs(found)
    assert "4 sessions, 4 users" in above
    assert below[-1].startswith("95% intervals, clustered by user")


def test_a_note_goes_across_the_table() -> None:
    found = report([session(n, agent=f"{n:03}") for n in range(50)], now=NOW, by="agent", measures=["waits"])
    assert [row for row in rows(found) if len(row) == 1] == [["and 30 smaller groups; to_frame() has them all"]] * 2


def test_what_a_frame_left_out_stands_below() -> None:
    frame = pd.DataFrame({"id": ["s", "s"], "at": [START, START], "role": ["user", "note"], "mood": ["good", "bad"]})
    below = paragraphs(report(read_frame(frame), now=NOW))[1:]
    assert below[:2] == ["left out: 1 of 2 rows: 1 unknown role 'note' (row 2)", "ignored: 1 unknown field: mood (2)"]


def test_no_text_of_a_log_is_markup() -> None:
    given = [session(0, agent=HOSTILE, **{HOSTILE: "x"})]
    given += [Transcript(id=HOSTILE, request=HOSTILE)]  # type: ignore[list-item]
    verdict = Verdict(TaskCompletion(completed=True, quality=5), HOSTILE, about=given[1].about())
    for by in ("agent", HOSTILE, "nothing <b>"):
        page = report([*given, verdict], now=NOW, by=by)._repr_html_()
        tags = set(re.findall(r"</?(\w+)", page))
        assert tags <= {"div", "style", "p", "table", "thead", "tbody", "tr", "th", "td", "span"}
        assert page.count("<table") == page.count("</table") == 1
        assert "\x1b" not in page


FLAT = ["title", "name", "group", "value", "low", "high", "n", "by", "measure", "evaluator"]


@pytest.fixture
def found() -> Report:
    given: list[Any] = [session(n, agent=f"{n % 150:03}") for n in range(160)]
    given += [
        Verdict(TaskCompletion(completed=n % 3 > 0, quality=4), "people", about=session(n).about()) for n in range(9)
    ]
    return report(given, now=NOW, by="agent")


def test_a_frame_of_a_report_has_a_row_for_each_number_and_numbers_in_them(found: Report) -> None:
    frame = found.to_frame()
    assert list(frame.columns)[: len(FLAT)] == FLAT
    assert len(frame) == len(found.to_dicts())
    kinds = {name: str(kind) for name, kind in frame.dtypes.items()}
    assert {kinds[name] for name in ("value", "low", "high", "level", "variance")} == {"float64"}
    assert {kinds["n"], kinds["clusters"]} == {"int64"}
    whole = frame[frame["group"].isna() & frame["by"].isna()]
    assert list(whole["value"]) == [row.estimate.value for row in found.rows]


def test_polars_takes_the_rows_of_a_report(found: Report) -> None:
    listed = found.to_dicts()
    frame = pl.DataFrame(listed, infer_schema_length=None)
    assert frame.columns == list(listed[0])
    assert frame["value"].to_list() == [row["value"] for row in listed]
    assert frame["value"].dtype == pl.Float64
    counts = [{name: count for name, count in cell.items() if count is not None} for cell in frame["counts"]]
    assert counts == [row["counts"] for row in listed]

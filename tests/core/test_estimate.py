"""An estimate carries its whole account: as one line, as plain data, as a table that no log text can break."""

from __future__ import annotations

import html
import json
import math
import re
import sys
from dataclasses import FrozenInstanceError, fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest

from evalr import Estimate, Groups, MissingExtraError, Trend

RATE = Estimate(
    name="completion",
    value=0.942,
    low=0.931,
    high=0.951,
    noun="session",
    counts={"hits": 942, "total": 1000},
    n=1000,
    clusters=311,
    clustered_by={"user": 311},
    variance=0.00002,
    bounds=(0.9, 0.96),
    method="wilson-effective-n/1",
    flags=("sampled",),
    left_out={"failed": 12, "pending": 3},
    versions={"judge@2": 1000},
)
NOTHING = Estimate(name="completion", value=None, status="undefined", reason="nothing was counted", noun="session")
TIME = Estimate(
    name="waits", value=130, low=118, unit="seconds", noun="wait", counts={"censored": 41}, n=970, clusters=970
)
HOSTILE = "<script>alert(1)</script>\n\x1b[2J{value}%s"


def test_an_estimate_is_one_line_to_paste() -> None:
    assert str(RATE) == (
        "completion 94.2% [93.1, 95.1] · 1,000 sessions of 311 users · "
        "left out: 12 failed, 3 pending (90.0% to 96.0% with them) · sampled"
    )


def test_a_level_that_is_not_the_usual_one_is_said_wherever_the_interval_is_shown() -> None:
    other = replace(RATE, level=0.8)
    assert str(other).startswith("completion 94.2% [93.1, 95.1] at 80% · 1,000 sessions")
    for shown in (other, Groups("agent", {"ada": other})):
        assert "<th>80% interval</th>" in shown._repr_html_()
    assert "95%" not in str(RATE)
    assert "<th>95% interval</th>" in RATE._repr_html_()


def test_an_estimate_without_a_value_says_why() -> None:
    assert str(NOTHING) == "completion — · nothing was counted"


def test_a_limit_that_is_not_reached_is_dots_and_what_had_not_ended_is_told() -> None:
    assert str(TIME) == "waits 2m 10s [1m 58s, …] · 970 waits, 41 not ended"


def test_several_kinds_of_cluster_are_named() -> None:
    assert "of 1 user and 2 sessions" in str(replace(RATE, clustered_by={"user": 1, "session": 2}))


def test_bounds_inside_the_interval_say_nothing_new() -> None:
    assert "with them" not in str(replace(RATE, bounds=(0.94, 0.945)))


def test_log_text_stays_on_the_line() -> None:
    hostile = ({"left_out": {HOSTILE: 1}}, {"flags": (HOSTILE,)}, {"reason": HOSTILE}, {"clustered_by": {HOSTILE: 2}})
    for estimate in (replace(RATE, **said) for said in hostile):
        assert str(estimate).isprintable()
        assert "{value}%s" in str(estimate)


def test_a_line_stays_short_however_many_flags_and_reasons_there_are() -> None:
    names = [f"name {number}" for number in range(10_000)]
    line = str(replace(RATE, flags=tuple(names), left_out=dict.fromkeys(names, 2)))
    assert len(line) < 1000
    assert "2 name 19, 19,960 for 9,980 other reasons" in line
    assert line.endswith("name 19 · and 9,980 more flags")


def test_a_dict_has_every_field_in_types_that_json_takes() -> None:
    for estimate in (RATE, NOTHING, TIME):
        plain = estimate.to_dict()
        assert list(plain) == [field.name for field in fields(Estimate)]
        assert json.loads(json.dumps(plain, allow_nan=False)) == plain
        assert Estimate(**plain | {"bounds": estimate.bounds, "flags": estimate.flags}) == estimate


def test_a_dict_is_a_copy() -> None:
    RATE.to_dict()["counts"]["hits"] = 0
    assert RATE.counts["hits"] == 942


def test_an_estimate_does_not_change() -> None:
    with pytest.raises(FrozenInstanceError):
        RATE.value = 1.0  # type: ignore[misc]


def test_a_frame_has_one_row_and_a_column_for_every_field() -> None:
    frame = RATE.to_frame()
    assert frame.shape == (1, len(fields(Estimate)))
    assert frame.iloc[0]["value"] == 0.942
    assert frame.iloc[0]["left_out"] == {"failed": 12, "pending": 3}


def test_a_frame_of_groups_has_a_row_for_each() -> None:
    frame = Groups("agent", {"ada": RATE, None: NOTHING}).to_frame()
    assert list(frame["group"][:1]) == ["ada"]
    assert list(frame["n"]) == [1000, 0]
    assert math.isnan(frame["value"][1])  # how pandas writes a number that is not there


def test_without_pandas_a_frame_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"pip install pandas"):
        RATE.to_frame()


def test_an_error_inside_pandas_is_not_a_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def find_spec(self, name: str, *_: Any) -> None:
            if name == "pandas":
                raise ModuleNotFoundError("no numpy", name="numpy")

    monkeypatch.delitem(sys.modules, "pandas", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Broken(), *sys.meta_path])
    with pytest.raises(ModuleNotFoundError, match="no numpy"):
        RATE.to_frame()


@pytest.mark.parametrize(
    "shown",
    [
        replace(RATE, name=HOSTILE, left_out={HOSTILE: 1}, noun=HOSTILE),
        replace(NOTHING, reason=HOSTILE),
        Groups(HOSTILE, {HOSTILE: RATE, None: RATE}, overlap=True),
        Trend("day", {"2026-09-28": replace(RATE, flags=(HOSTILE,))}),
    ],
    ids=["names", "reason", "groups", "trend"],
)
def test_a_table_escapes_whatever_a_log_wrote(shown: Any) -> None:
    table = shown._repr_html_()
    assert table.startswith('<div class="evalr"><style>')
    assert "<script>" not in table
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in table
    assert "\x1b" not in table
    assert table.count("<td") == table.count("</td>")


def test_a_table_shows_what_the_line_shows() -> None:
    table = RATE._repr_html_()
    for text in ("completion", "94.2%", "[93.1, 95.1]", "1,000 sessions of 311 users", "12 failed"):
        assert f"{text}" in table


def test_groups_are_a_mapping_that_prints_one_line_a_group() -> None:
    groups = Groups("agent", {"ada": RATE, "bob": TIME, None: NOTHING}, overlap=True)
    assert (list(groups), len(groups), groups["bob"]) == (["ada", "bob", None], 3, TIME)
    assert "cyd" not in groups
    assert str(groups).splitlines() == [
        f"ada: {RATE}",
        f"bob: {TIME}",
        f"(no agent): {NOTHING}",
        "groups overlap: a result may be in several",
    ]
    assert repr(groups) == "Groups(by='agent', 3 groups)"
    assert "groups overlap" in groups._repr_html_()
    assert groups == {"ada": RATE, "bob": TIME, None: NOTHING}


def test_a_table_of_groups_names_the_summary() -> None:
    for shown in (Groups("agent", {"ada": RATE}), Trend("day", {"2026-09-28": RATE})):
        assert "<table><caption>completion</caption><thead>" in shown._repr_html_()
    assert "<caption>" not in Groups("agent", {})._repr_html_()


def body(table: str) -> list[list[str]]:
    """The texts of a table's cells, row by row."""
    rows = re.findall(r"<tr>(.*?)</tr>", table.partition("<tbody>")[2])
    return [[html.unescape(re.sub("<.*?>", "", cell)) for cell in re.findall(r"<td.*?</td>", row)] for row in rows]


def test_a_table_has_one_column_each_for_the_group_its_number_and_its_account() -> None:
    groups = Groups("agent", {"ada": RATE, "bob": TIME, None: NOTHING}, overlap=True)
    assert body(groups._repr_html_()) == [
        ["ada", "94.2%", "[93.1, 95.1]", str(RATE).partition(" · ")[2]],
        ["bob", "2m 10s", "[1m 58s, …]", "970 waits, 41 not ended"],
        ["(no agent)", "—", "", "nothing was counted"],
        ["groups overlap: a result may be in several"],
    ]


def test_thousands_of_groups_do_not_flood_a_notebook() -> None:
    estimates: dict[str | None, Estimate] = {f"{number:05}": replace(RATE, n=number) for number in range(10_000)}
    groups = Groups("agent", estimates)
    rows = body(groups._repr_html_())
    assert [row[0] for row in rows[:-1]] == [f"{number:05}" for number in range(9_980, 10_000)]
    assert rows[-1] == ["and 9,980 smaller groups; to_frame() has them all"]
    assert len(groups._repr_html_()) < 10_000
    assert len(groups.to_frame()) == 10_000


def test_a_long_trend_shows_its_end_without_a_gap() -> None:
    days = {
        f"{datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=day):%Y-%m-%d}": replace(RATE, n=day % 7)
        for day in range(300)
    }
    rows = body(Trend("day", days)._repr_html_())
    assert [row[0] for row in rows[:-1]] == list(days)[-60:]
    assert rows[-1] == ["and 240 earlier days; to_frame() has them all"]


def test_a_table_asks_nobody_for_anything_and_takes_the_colors_of_its_page() -> None:
    table = Groups("agent", {"ada": RATE})._repr_html_()
    assert not re.search(r"https?:|url\(|<script|<link|<img|@import", table)
    assert not re.search(r"[^-]color: (?!inherit)|background(?!: none)", table)


def test_a_terminal_shows_the_line() -> None:
    class Printer:
        shown = ""

        def text(self, text: str) -> None:
            self.shown += text

    def pretty(given: Any) -> str:
        printer = Printer()
        given._repr_pretty_(printer, cycle=False)
        return printer.shown

    groups = Groups("agent", {"ada": RATE, None: NOTHING}, overlap=True)
    assert pretty(RATE) == str(RATE)
    assert pretty(groups) == str(groups)
    assert pretty(Groups("agent", {})) == "Groups(by='agent', 0 groups)"
    many = pretty(Groups("agent", {str(number): RATE for number in range(10_000)}))
    assert many.splitlines()[-1] == "and 9,980 smaller groups; to_frame() has them all"


# Frames


MANY = {
    **{f"empty {number:03}": NOTHING for number in range(150)},
    "ada": RATE,
    "bob": replace(TIME, left_out={"other": 1}),
    None: NOTHING,
}
FLAT = [
    "name",
    "group",
    "value",
    "low",
    "high",
    "n",
    "level",
    "unit",
    "reading",
    "noun",
    "clusters",
    "variance",
    "method",
    "status",
    "reason",
]
NESTED = ["counts", "clustered_by", "bounds", "flags", "left_out", "versions"]


@pytest.mark.parametrize(
    "shown", [RATE, Groups("agent", MANY), Trend("day", {"2026-09-28": RATE})], ids=["estimate", "groups", "trend"]
)
def test_rows_have_what_is_flat_first(shown: Any) -> None:
    for row in shown.to_dicts():
        columns = FLAT if "group" in row else [name for name in FLAT if name != "group"]
        assert list(row) == columns + NESTED
    assert [name for name in shown.to_frame() if name != "start"] == list(shown.to_dicts()[0])


@pytest.mark.parametrize(
    "estimates", [MANY, {"ada": NOTHING}, {"ada": RATE}, {}], ids=["many", "nothing", "one", "none"]
)
def test_numbers_are_numbers_in_every_frame(estimates: dict[str | None, Estimate]) -> None:
    frame = Groups("agent", estimates).to_frame()
    kinds = {name: str(kind) for name, kind in frame.dtypes.items()}
    assert {kinds[name] for name in ("value", "low", "high", "level", "variance")} == {"float64"}
    assert {kinds["n"], kinds["clusters"]} == {"int64"}
    assert list(frame.columns) == FLAT + NESTED
    assert len(frame) == len(estimates)


@pytest.mark.parametrize(
    ("by", "names", "starts"),
    [
        ("day", ["2026-09-28", "2026-09-29", None], ["2026-09-28 00:00:00", "2026-09-29 00:00:00", "NaT"]),
        ("week", ["2026-09-28"], ["2026-09-28 00:00:00"]),
        ("month", ["2026-09", "2026-10"], ["2026-09-01 00:00:00", "2026-10-01 00:00:00"]),
        ("hour", ["2026-10-25T00:00Z", None], ["2026-10-25 00:00:00+00:00", "NaT"]),
        ("day", [], []),
    ],
)
def test_the_buckets_of_a_trend_are_times_in_a_frame(by: str, names: list[Any], starts: list[str]) -> None:
    frame = Trend(by, dict.fromkeys(names, RATE)).to_frame()
    assert list(frame.columns)[:3] == ["name", "group", "start"]
    assert str(frame["start"].dtype).startswith("datetime64[")
    assert ("UTC" in str(frame["start"].dtype)) == (by == "hour")
    assert [str(start) for start in frame["start"]] == starts


@pytest.mark.parametrize(
    "shown",
    [RATE, NOTHING, Groups("agent", MANY), Trend("day", {"2026-09-28": RATE, None: TIME})],
    ids=["estimate", "nothing", "groups", "trend"],
)
def test_polars_takes_the_rows(shown: Any) -> None:
    rows = shown.to_dicts()
    frame = pl.DataFrame(rows, infer_schema_length=None)
    assert frame.columns == list(rows[0])
    for name in FLAT:
        if name in frame.columns:
            assert frame[name].to_list() == [row[name] for row in rows]
    counted = [
        {reason: count for reason, count in (cell or {}).items() if count is not None} for cell in frame["left_out"]
    ]
    assert counted == [row["left_out"] for row in rows]


def test_what_people_look_for_comes_first() -> None:
    assert list(RATE.to_dict())[:5] == ["name", "value", "low", "high", "n"]
    (row,) = Groups("agent", {"ada": RATE}).to_dicts()
    assert list(row)[:6] == ["name", "group", "value", "low", "high", "n"]


def test_groups_named_by_a_log_stay_on_their_line() -> None:
    assert len(str(Groups("agent", {HOSTILE: RATE, "x" * 1000: RATE})).splitlines()) == 2


def test_groups_are_plain_data_too() -> None:
    rows = Groups("agent", {"ada": RATE, None: NOTHING}).to_dicts()
    assert [row["group"] for row in rows] == ["ada", None]
    assert rows[0] == {"group": "ada", **RATE.to_dict()}
    json.dumps(rows, allow_nan=False)


def test_a_trend_names_what_has_no_time() -> None:
    trend = Trend("day", {"2026-09-28": RATE, None: TIME})
    assert str(trend).splitlines() == [f"2026-09-28: {RATE}", f"(no time): {TIME}"]
    assert repr(trend) == "Trend(by='day', 2 groups)"

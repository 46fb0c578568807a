"""Plots: what they draw, that every n is in them, and that no text of a log is more than text."""

from __future__ import annotations

import json
import random
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from pydantic import BaseModel

import evalr
from evalr import Assignment, Contest, InputError, Mean, MissingExtraError, Plot, Rate, TimeTo, Verdict
from evalr.estimates.estimate import Estimate
from evalr.estimates.plot import VEGA_LITE
from evalr.inputs import About
from evalr.labels import calibration
from evalr.reports.plots import plotter
from evalr.reports.plots.funnel import Exclusion, Funnel, funnel_figure
from evalr.reports.plots.lift import forest_figure
from evalr.reports.plots.scales import scale_of
from evalr.reports.plots.trend import bucket_labels

pytest.importorskip("vl_convert", reason="plots are drawn by the extra evalr[report]")

START = datetime(2026, 9, 1, tzinfo=UTC)
HOSTILE = [
    "</text></svg><script>alert(1)</script>",
    "\"'); alert(1); ('",
    "{{7*7}} ${alert(1)} %s",
    "\u202eevil\u2066",
    "\x1b[2J\x00\x07",
    "x" * 5_000,
    "' + datum + '",
    "__proto__",
    "constructor",
]


class Out(BaseModel):
    ok: bool = True
    seconds: float = 1.0
    end: str | None = None
    winner: str = "tie"


success = Rate("success", of=Out, hits=lambda v: v.ok)
score = Mean("score", of=Out, value=lambda v: v.seconds, unit="point")
waits = TimeTo("waits", of=Out, after=lambda v: v.seconds, end=lambda v: v.end, event="returned", within=3600)
typical = TimeTo("typical", of=Out, after=lambda v: v.seconds, end=lambda v: v.end, event="returned")
shadow = Contest("shadow", of=Out, outcome=lambda v: v.winner, view="wins")


def made(n: int, *, days: int = 12, empty: int | None = 5, agents: list[str] | None = None) -> list[Verdict[Out]]:
    chosen, results = random.Random(7), []
    for number in range(n):
        day = chosen.randrange(days)
        arm = chosen.choice(["treatment", "treatment", "control", None])
        seconds = min(chosen.expovariate(1 / 1500), 5000)
        value = Out(
            ok=chosen.random() < (0.8 if arm == "treatment" else 0.6),
            seconds=seconds,
            end="returned" if seconds < 5000 and chosen.random() < 0.85 else None,
            winner=chosen.choice(["win", "win", "tie", "loss"]),
        )
        at = START + timedelta(days=day, minutes=chosen.randrange(1_000))
        attributes = {"agent": chosen.choice(agents or ["a", "b"])}
        about = About("session", f"s{number}", f"u{number % 60}", None, at, None, arm, None, attributes)
        if day != empty:
            results.append(Verdict(value, "judge", about=about))
    return results


RESULTS = made(600)


def drawn() -> dict[str, Any]:
    people = [
        Verdict(Out(ok=number % 3 > 0), "people", about=About("session", item))
        for number, item in enumerate("abcdefgh")
    ]
    said = [
        Verdict(Out(), "judge", about=About("session", item), confidence={"ok": 0.5 + number / 16})
        for number, item in enumerate("abcdef")
    ]
    assigned = [Assignment(user=f"u{number}", arm="treatment" if number % 2 else "control") for number in range(80)]
    return {
        "rate": success.estimate(RESULTS),
        "mean": score.estimate(RESULTS),
        "share of time": waits.estimate(RESULTS),
        "time": typical.estimate(RESULTS),
        "contest": shadow.estimate(RESULTS),
        "net": shadow.estimate(RESULTS, view="net"),
        "undefined": success.estimate([]),
        "groups": success.by(RESULTS, "agent"),
        "trend": success.trend(RESULTS),
        "trend of times": typical.trend(RESULTS),
        "long trend": success.trend(made(900, days=100)),
        "net trend": shadow.trend(RESULTS, "week", view="net"),
        "arms": success.trends(RESULTS),
        "arms of times": typical.trends(RESULTS, "week"),
        "lift": success.lift(RESULTS),
        "allocation": success.lift(RESULTS, assignments=assigned).allocation,
        "curve": waits.curve(RESULTS),
        "open curve": waits.curve(RESULTS, open=True),
        "calibration": calibration(said, people, field="ok"),
        "report": evalr.report(RESULTS, now=START + timedelta(days=30)),
    }


DRAWN = drawn()


def texts(svg: str) -> list[str]:
    root = ET.fromstring(svg)
    return ["".join(each.itertext()) for each in root.iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.parametrize("name", DRAWN)
def test_every_result_is_drawn_and_says_what_it_shows(name: str) -> None:
    plot = plotter.plot(DRAWN[name])
    assert plot.says
    assert json.loads(json.dumps(plot.to_dict(), allow_nan=False)) == plot.to_dict()
    shown = texts(plot.to_svg())
    assert not [text for text in shown if text in ("undefined", "null", "NaN", "[object Object]")]
    assert not re.search("NaN|undefined", " ".join(re.findall(r' (?:d|transform)="([^"]*)"', plot.to_svg())))


@pytest.mark.parametrize("name", ["rate", "contest", "groups", "trend", "arms", "lift", "curve"])
def test_altair_takes_a_plot_to_go_on_from(name: str) -> None:
    pytest.importorskip("altair", reason="charts to go on from need the extra evalr[report]")
    chart = plotter.plot(DRAWN[name]).to_altair()
    assert chart.to_dict()["config"]["background"] == "white"


def test_the_n_of_each_point_stands_in_the_picture() -> None:
    for name in ("trend", "long trend", "arms"):
        result = DRAWN[name]
        shown = texts(plotter.plot(result).to_svg())
        trends = result.values() if name == "arms" else [result]
        for trend in trends:
            for estimate in list(trend.values())[-60:]:
                assert f"{estimate.n:,}" in shown
    groups = texts(plotter.plot(DRAWN["groups"]).to_svg())
    for estimate in DRAWN["groups"].values():
        assert any(f"{estimate.n:,} results" in text for text in groups)
    lift = texts(plotter.plot(DRAWN["lift"]).to_svg())
    assert any("observational" in text for text in lift)
    for arm in ("treatment", "control", None):
        assert any(f"{DRAWN['lift'].arms[arm].n:,} results" in text for text in lift)


def rows_of(plot: Plot) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = plot.spec["data"]["values"]
    return rows


def test_no_line_is_drawn_over_a_bucket_in_which_nothing_is_known() -> None:
    rows = rows_of(plotter.plot(DRAWN["trend"]))
    assert [row["value"] for row in rows][5] is None
    before, after = {row["segment"] for row in rows[:5]}, {row["segment"] for row in rows[6:]}
    assert len(before) == len(after) == 1
    assert before != after
    assert [text for text in texts(plotter.plot(DRAWN["trend"]).to_svg()) if text.endswith(" Sep")] == [
        f"{day} Sep" for day in range(1, 13)
    ]


def test_only_the_latest_buckets_are_drawn_and_that_is_said() -> None:
    plot = plotter.plot(DRAWN["long trend"])
    assert len(rows_of(plot)) == 60
    assert plot.spec["title"]["subtitle"] == ["the latest 60 of 100"]


def test_an_interval_is_always_drawn_where_there_is_one() -> None:
    for name in ("rate", "mean", "share of time", "time"):
        (row,) = rows_of(plotter.plot(DRAWN[name]))
        assert row["low"] < row["value"] < row["high"]


def test_a_limit_that_the_log_does_not_reach_is_at_the_end_and_dashed() -> None:
    few = [Verdict(Out(seconds=n, end="returned" if n < 5 else None), "judge") for n in range(1, 9)]
    estimate = typical.estimate(few)
    assert (estimate.value, estimate.high) == (4, None)
    plot = plotter.plot(estimate)
    (row,) = rows_of(plot)
    assert row["open"]
    assert row["high"] == plot.spec["layer"][0]["encoding"]["x"]["scale"]["domain"][1]
    assert 'stroke-dasharray="3,3"' in plot.to_svg()


@pytest.mark.parametrize(
    ("unit", "values", "low", "high"),
    [
        ("share", [0.1, 0.9], 0, 100),
        ("share", [0.93, 0.95], 80, 100),
        ("share", [0.01, 0.02], 0, 20),
        ("share", [1.0], 80, 100),
        ("share", [0.0], 0, 20),
        ("seconds", [100.0, 110.0], 0, None),
        ("points", [0.1, 0.2], None, None),
        ("points", [0.0], None, None),
        ("turns", [1.0, 4.0], 0, None),
        ("score", [3.9, 4.1], None, None),
        ("score", [0.0], 0, None),
        ("score", [-2.0, 5.0], None, None),
    ],
)
def test_axes_hold_all_that_is_on_them_and_begin_where_it_is_honest(
    unit: str, values: list[float], low: float | None, high: float | None
) -> None:
    scale = scale_of(unit, values)
    for value in values:
        at = scale.at(value)
        assert at is not None
        assert scale.low <= at <= scale.high
    assert scale.low < scale.high
    if low is not None:
        assert scale.low == low
    if high is not None:
        assert scale.high == high
    if scale.difference:
        assert scale.low == -scale.high
    assert ("not from 0" in scale.words()) is (not scale.difference and scale.low > 0)


def test_buckets_have_short_names_where_all_are_of_one_year() -> None:
    assert bucket_labels(["2026-09", "2026-10"], "month") == (["Sep", "Oct"], " of 2026")
    assert bucket_labels(["2026-09-28", "2026-10-05"], "week")[0] == ["28 Sep", "5 Oct"]
    assert bucket_labels(["2026-09-28T09:00Z"], "hour")[0] == ["28 Sep 09:00"]
    assert bucket_labels(["2025-12-31", "2026-01-01"], "day") == (["2025-12-31", "2026-01-01"], "")


def test_many_reasons_share_the_last_bar_and_nothing_is_lost() -> None:
    figure = funnel_figure(Funnel(1_000, "read", [Exclusion(f"reason {n}", n) for n in range(1, 31)], "counted"))
    rows = figure["data"]["values"]
    assert len(rows) == 14
    assert rows[-1]["n"] == f"{1_000 - sum(range(1, 31)):,}"
    assert rows[12]["name"] == "less 19 other reasons"
    assert all(row["from"] >= 0 for row in rows)


# Texts of a log


def strings(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from strings(each, (*path, key))
    elif isinstance(value, list):
        for each in value:
            yield from strings(each, path)
    elif isinstance(value, str):
        yield path, value


EXPRESSIONS = {"expr", "signal", "test", "update", "events", "labelExpr", "format", "href", "url"}


def test_no_text_of_a_log_becomes_part_of_an_expression_or_of_markup() -> None:
    import vl_convert

    results = made(400, agents=[f"mark{number}{text}" for number, text in enumerate(HOSTILE)])
    arms = [
        Verdict(each.value, "judge", about=each.about._replace(arm=(each.about.attributes or {})["agent"]))
        for each in results
        if each.about is not None
    ]
    treatment, control = list(dict.fromkeys(str(each.about.arm) for each in arms if each.about is not None))[:2]
    hostile_named = Rate("mark" + HOSTILE[0], of=Out, hits=lambda v: v.ok, noun="mark" + HOSTILE[0])
    found = [
        success.by(results, "agent"),
        success.trends(arms, by="arm"),
        success.lift(arms, treatment=treatment, control=control),
        hostile_named.trend(results),
        hostile_named.estimate(results),
    ]
    for result in found:
        plot = plotter.plot(result)
        vega = vl_convert.vegalite_to_vega(plot.to_dict(), vl_version=VEGA_LITE)
        computed = [text for path, text in strings(vega) if path and path[-1] in EXPRESSIONS]
        assert computed
        assert not [text for text in computed if "mark" in text and re.search(r"mark\d", text)]
        svg = plot.to_svg()
        tags = {each.tag.partition("}")[2] for each in ET.fromstring(svg).iter()}
        assert tags <= {"svg", "g", "path", "rect", "line", "text", "tspan", "defs", "clipPath"}
        assert "x" * 100 not in svg
        assert not re.search("[\x00-\x08\x1b\u202e\u2066]", svg)


# In a notebook


def test_a_notebook_gets_the_specification_and_the_picture() -> None:
    bundle = plotter.plot(DRAWN["trend"])._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "application/vnd.vegalite.v5+json", "image/svg+xml"}
    assert "http" not in json.dumps(bundle["application/vnd.vegalite.v5+json"]).replace(
        "https://vega.github.io/schema/vega-lite/v5.json", ""
    )


def test_without_the_extra_a_plot_is_still_data_and_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    plot = plotter.plot(DRAWN["rate"])
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    monkeypatch.setitem(sys.modules, "altair", None)
    for draw in (plot.to_svg, plot.to_altair):
        with pytest.raises(MissingExtraError, match=r"pip install 'evalr\[report\]'"):
            draw()
    bundle = plot._repr_mimebundle_()
    assert "evalr[report]" in bundle["text/plain"]
    assert "image/svg+xml" not in bundle


def test_what_cannot_be_drawn_is_said() -> None:
    with pytest.raises(InputError, match="nothing to draw"):
        plotter.plot(success.by([], "agent"))
    with pytest.raises(InputError, match="no curve to draw"):
        plotter.plot(waits.curve([]))
    with pytest.raises(InputError, match="str is nothing that evalr draws"):
        plotter.plot("a text")


def test_a_picture_is_written_where_it_is_asked_for(tmp_path: Any) -> None:
    path = tmp_path / "trend.svg"
    assert path.parent.joinpath("trend.svg") == path
    svg = plotter.plot(DRAWN["trend"], title="By day", width=400).to_svg(path)
    assert path.read_text(encoding="utf-8") == svg
    assert "By day" in texts(svg)


@pytest.mark.parametrize("name", DRAWN)
def test_each_result_has_the_method(name: str) -> None:
    assert DRAWN[name].plot() == plotter.plot(DRAWN[name])


@pytest.mark.parametrize(("unit", "value"), [("number", 0.4), ("seconds", -400.0), ("seconds", 30.0), ("points", 0.1)])
def test_a_difference_has_its_zero_in_the_middle(unit: str, value: float) -> None:
    found = Estimate(name="d", value=value, low=value - 0.05, high=value + 0.05, n=9, unit=unit)
    figure = forest_figure([("d", found, "n 4 v 5")])
    low, high = figure["layer"][1]["encoding"]["x"]["scale"]["domain"]
    assert low == -high
    (row,) = figure["data"]["values"]
    assert low <= row["low"] <= row["value"] <= row["high"] <= high
    assert any(layer["encoding"].get("x", {}).get("datum") == 0 for layer in figure["layer"])
    assert row["beside"].endswith("n 4 v 5")


def test_a_lift_without_a_difference_shows_its_arms_and_says_why() -> None:
    lift = waits.lift(RESULTS, within=None)
    assert lift.difference.value is None
    plot = plotter.plot(lift)
    assert [row["name"] for row in rows_of(plot)][:2] == ["treatment", "control"]
    assert "typical times are not subtracted" in " ".join(plot.spec["title"]["subtitle"])
    assert plot.to_svg()

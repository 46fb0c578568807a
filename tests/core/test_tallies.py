"""Parts add up: partial tallies, in any order, give exactly what one pass over all results gives."""

from __future__ import annotations

import json
import math
import pickle
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from evalr import About, Contest, Failure, HandOff, InputError, Mean, Rate, Skip, Tally, TimeTo, Verdict, pass_k
from evalr.estimates.buckets import TimeBucket
from evalr.measures import DropOff, drop_off_rate, drop_off_share
from evalr.tallies.counts import Counts, Units
from evalr.tallies.durations import COMPETING, EVENT, OPEN, Durations, UnitDurations
from evalr.tallies.moments import Moments

START = datetime(2026, 9, 26, 21, 30, tzinfo=UTC)


class Note(BaseModel):
    """Something of everything that a summary can read."""

    hits: int | None
    misses: int
    pending: int
    number: float | None
    weight: float
    after: float | None
    end: str | None
    left_out: str | None


def total(note: Note) -> int:
    return (note.hits or 0) + note.misses


plain = Rate(
    "plain",
    of=Note,
    hits=lambda v: None if v.hits is None else min(v.hits, 1),
    leaves_out=lambda v: v.left_out,
)
pooled = Rate("pooled", of=Note, hits=lambda v: v.hits, total=total, pending=lambda v: v.pending)
mean = Mean("mean", of=Note, value=lambda v: v.number, leaves_out=lambda v: v.left_out)
time_to = TimeTo("time", of=Note, after=lambda v: v.after, end=lambda v: v.end, event="back")
contest = Contest(
    "contest",
    of=Note,
    outcome=lambda v: None if v.hits is None else ("loss", "tie", "win", "win")[v.hits],
    first=lambda v: (True, False, None, True)[v.misses],
    leaves_out=lambda v: v.left_out,
)

SUMMARIES = [
    plain,
    replace(plain, name="jeffreys", method="jeffreys"),
    pooled,
    *(
        replace(plain, name=f"plain {fold}", per="task", fold=fold)
        for fold in ("any", "all", "share", "flip", pass_k(2))
    ),
    replace(pooled, name="pooled all", per=["session", "task"], fold="all"),
    mean,
    replace(mean, name="whole", value=lambda v: v.misses),
    replace(mean, name="bounded", bounds=(-1e6, 1e6)),
    replace(mean, name="weighted", weight=lambda v: v.weight),
    replace(mean, name="folded", per="task", fold="mean", bounds=(-1e6, 1e6)),
    replace(time_to, name="within", within=2.0),
    replace(time_to, name="open", within=timedelta(seconds=2), open=True),
    time_to,
    replace(time_to, name="early", quantile=0.2),
    replace(time_to, name="first within", within=2.0, per="task", fold="any"),
    replace(time_to, name="last", per="task", fold="all"),
    contest,
    *(replace(contest, name=view, view=view) for view in ("wins", "decided", "half_tie", "adjusted")),
    *(replace(contest, name=f"contest {fold}", per="task", fold=fold) for fold in ("majority", "all")),
]

numbers = st.one_of(
    st.integers(-5, 5).map(float), st.sampled_from([0.1, 0.2, 0.3, 1e-7, 12345.678]), st.floats(-1e6, 1e6), st.none()
)
notes = st.builds(
    Note,
    hits=st.one_of(st.none(), st.integers(0, 3)),
    misses=st.integers(0, 3),
    pending=st.integers(0, 2),
    number=st.one_of(numbers, st.just(float("nan"))),
    weight=st.sampled_from([0.0, 0.1, 0.7, 1.0, 3.0]),
    after=st.one_of(st.none(), st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0]), st.floats(0, 5)),
    end=st.sampled_from([None, "back", "closed"]),
    left_out=st.sampled_from([None, None, None, "pending", "test run"]),
)
abouts = st.builds(
    About,
    kind=st.sampled_from(["session", "wait"]),
    id=st.none(),
    read_at=st.none(),
    arm=st.none(),
    user=st.sampled_from([None, "ada", "bob", "cyd", "dan"]),
    session=st.sampled_from(["s1", "s2"]),
    at=st.one_of(st.none(), st.integers(0, 100).map(lambda hours: START + timedelta(hours=hours))),
    weight=st.sampled_from([None, None, 1.0, 2.0, 0.1]),
    attributes=st.builds(
        lambda agent, task: {"task": task} | ({} if agent is None else {"agent": agent}),
        st.sampled_from([None, "red", "blue", ["red", "green"]]),
        st.sampled_from(["t1", "t2", "t3"]),
    ),
    repeat=st.none() | st.integers(1, 3),
)
results = st.one_of(
    st.builds(
        Verdict,
        value=notes,
        evaluator=st.just("people"),
        version=st.sampled_from(["1", "2"]),
        about=abouts,
        flags=st.sampled_from([(), (), ("truncated",)]),
    ),
    st.builds(Failure, st.just("broke"), about=abouts),
    st.builds(Skip, st.just("no need"), about=abouts),
    st.builds(HandOff, st.just("too hard"), about=abouts),
)


@st.composite
def in_parts(draw: st.DrawFn) -> tuple[list[Any], list[list[Any]]]:
    """Some results, and the same in parts of another order."""
    whole = draw(st.lists(results, max_size=14))
    shuffled = draw(st.permutations(whole))
    places = draw(st.lists(st.integers(0, 3), min_size=len(whole), max_size=len(whole)))
    parts = [[each for each, place in zip(shuffled, places, strict=True) if place == part] for part in range(4)]
    return whole, parts


def added(parts: list[Tally[Any]]) -> Tally[Any]:
    merged = parts[0]
    for part in parts[1:]:
        merged = merged + part
    return merged


@pytest.mark.parametrize("summary", SUMMARIES, ids=lambda summary: summary.name)
@settings(max_examples=50)
@given(split=in_parts())
def test_parts_add_up_to_the_single_pass(summary: Any, split: tuple[list[Any], list[list[Any]]]) -> None:
    whole, parts = split
    merged = added([summary.tally(part) for part in parts])
    estimate = summary.estimate(merged, mix_versions=True)
    expected = summary.estimate(whole, mix_versions=True)
    assert estimate == expected
    assert str(estimate) == str(expected)


@pytest.mark.parametrize("summary", SUMMARIES, ids=lambda summary: summary.name)
@settings(max_examples=30)
@given(split=in_parts())
def test_groups_and_trends_add_up_too(summary: Any, split: tuple[list[Any], list[list[Any]]]) -> None:
    whole, parts = split
    merged = added([summary.tally(part, by="agent") for part in parts])
    groups, expected = summary.by(merged, "agent", mix_versions=True), summary.by(whole, "agent", mix_versions=True)
    assert dict(groups) == dict(expected)
    assert (list(groups), groups.overlap, str(groups)) == (list(expected), expected.overlap, str(expected))

    days = TimeBucket("day", "Asia/Shanghai")
    merged = added([summary.tally(part, by=days) for part in parts])
    trend = summary.trend(merged, bucket="day", tz="Asia/Shanghai", mix_versions=True)
    expected_trend = summary.trend(whole, bucket="day", tz="Asia/Shanghai", mix_versions=True)
    assert list(trend.items()) == list(expected_trend.items())


@given(split=in_parts())
def test_a_cluster_named_by_the_caller_adds_up_too(split: tuple[list[Any], list[list[Any]]]) -> None:
    whole, parts = split
    merged = added([plain.tally(part, cluster="task") for part in parts])
    assert plain.estimate(merged, mix_versions=True) == plain.estimate(whole, cluster="task", mix_versions=True)


def test_adding_changes_neither_part() -> None:
    one, other = plain.tally([verdict(hits=1)]), plain.tally([verdict(hits=0)])
    before = plain.estimate(one), plain.estimate(other)
    assert plain.estimate(one + other).n == 2
    assert (plain.estimate(one), plain.estimate(other)) == before


# -- a tally is only read as what it is ------------------------------------------------------------------------------


def verdict(*, hits: int = 1, **about: Any) -> Verdict[Note]:
    note = Note(hits=hits, misses=1, pending=0, number=0, weight=1, after=1, end="back", left_out=None)
    return Verdict(note, "people", about=About("session", **about))


def test_tallies_of_different_things_do_not_add() -> None:
    with pytest.raises(InputError, match="count different things"):
        plain.tally([]) + mean.tally([])
    with pytest.raises(InputError, match="count different things"):
        plain.tally([]) + plain.tally([], by="agent")
    with pytest.raises(InputError, match="count different things"):
        plain.tally([]) + plain.tally([], cluster="task")


def test_summaries_that_read_alike_share_a_tally() -> None:
    tally = time_to.tally([verdict()])
    within = replace(time_to, name="within", within=3.0)
    assert within.estimate(tally) == within.estimate([verdict()])
    assert time_to.estimate(tally, quantile=0.2) == time_to.estimate([verdict()], quantile=0.2)


def test_a_tally_is_refused_where_it_counts_something_else() -> None:
    grouped = plain.tally([verdict(attributes={"agent": "red"})], by="agent")
    with pytest.raises(InputError, match="other than"):
        mean.estimate(plain.tally([]))
    with pytest.raises(InputError, match="grouped by 'agent'"):
        plain.estimate(grouped)
    with pytest.raises(InputError, match="grouped by 'agent', not by 'task'"):
        plain.by(grouped, "task")
    with pytest.raises(InputError, match="grouped by 'agent'"):
        plain.trend(grouped)
    with pytest.raises(InputError, match="not grouped"):
        plain.by(plain.tally([]), "agent")
    with pytest.raises(InputError, match="cluster"):
        plain.estimate(plain.tally([], cluster="task"), cluster="agent")
    with pytest.raises(InputError, match="grouped by"):
        plain.trend(plain.tally([], by=TimeBucket("day")), bucket="hour")


def test_a_tally_knows_its_cluster() -> None:
    tasks = [verdict(attributes={"task": task}) for task in ("t1", "t1", "t2")]
    tally = plain.tally(tasks, cluster="task")
    assert plain.estimate(tally) == plain.estimate(tally, cluster="task") == plain.estimate(tasks, cluster="task")
    assert plain.estimate(tally).clustered_by == {"task": 2}


@pytest.mark.parametrize("summary", SUMMARIES, ids=lambda summary: summary.name)
def test_a_tally_travels_between_processes(summary: Any) -> None:
    parts = [
        summary.tally([verdict(hits=hits, user="ada", session="s1", attributes={"task": "t1"})], by=TimeBucket("day"))
        for hits in (0, 1)
    ]
    sent = [pickle.loads(pickle.dumps(part)) for part in parts]
    assert summary.trend(sent[0] + parts[1]) == summary.trend(parts[0] + sent[1])


def test_a_tally_of_another_process_adds() -> None:
    code = (
        "import pickle, sys; from evalr.measures import DropOff, drop_off_rate, drop_off_share\n"
        "values = [DropOff(outcome='continued', waited=1)] * 3\n"
        "tallies = [drop_off_rate.tally(values), drop_off_share.tally(values)]\n"
        "sys.stdout.buffer.write(pickle.dumps(tallies))"
    )
    sent = pickle.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
    here = [DropOff(outcome="dropped", cause="no_reply", waited=3600)]
    for summary, there in zip((drop_off_rate, drop_off_share), sent, strict=True):
        assert summary.estimate(there + summary.tally(here)).value == 0.25


def test_summaries_made_alike_by_one_function_read_alike() -> None:
    def above(limit: int) -> Rate[Note]:
        return Rate("above", of=Note, hits=lambda v: (v.hits or 0) > limit)

    assert above(1).reads() == above(1).reads()
    assert above(1).reads() != above(2).reads()
    assert hash(above(1).reads()) == hash(above(1).reads())
    assert above(1).estimate(above(1).tally([verdict(hits=2)])).value == 1
    with pytest.raises(InputError, match="other than"):
        above(2).estimate(above(1).tally([]))


def more_than(limit: int) -> Callable[[int], bool]:
    return lambda hits: hits > limit


@pytest.mark.parametrize(
    "held_by",
    [
        more_than,
        lambda limit: Fraction(limit).__lt__,
        lambda limit: partial(max, limit),
        lambda limit: partial(max, key=limit),
    ],
    ids=["a function made by another", "a method", "a partial", "a partial's keyword"],
)
def test_what_a_held_function_holds_tells_summaries_apart(held_by: Callable[[int], Callable[[int], Any]]) -> None:
    def reads(limit: int) -> Hashable:
        held = held_by(limit)
        return Rate("above", of=Note, hits=lambda v: held(v.hits or 0)).reads()

    assert reads(1) == reads(1)
    assert reads(1) != reads(2)


def test_a_function_that_holds_itself_has_a_fingerprint() -> None:
    def countdown(hits: int) -> int:
        return countdown(hits - 1) if hits else 0

    assert Rate("down", of=Note, hits=lambda v: countdown(v.hits or 0)).estimate([verdict(hits=2)]).value == 0


def test_a_line_more_above_a_function_changes_no_fingerprint() -> None:
    made: list[dict[str, Any]] = [{}, {}]
    for names, text in zip(made, ("hits = lambda v: v.hits", "\n\nhits = lambda v: v.hits"), strict=True):
        exec(compile(text, "measure.py", "exec"), names)
    one, other = (Rate("hits", of=Note, hits=names["hits"]) for names in made)
    assert one.estimate(other.tally([verdict(hits=1)])).value == 1


def test_functions_on_one_line_are_told_apart() -> None:
    one, other = Rate("hits", of=Note, hits=lambda v: v.hits), Rate("hits", of=Note, hits=lambda v: v.misses)
    assert one.reads() != other.reads()


# -- cells -----------------------------------------------------------------------------------------------------------

rows = st.lists(
    st.tuples(
        st.integers(0, 5) | st.fractions(0, 5, max_denominator=7),
        st.integers(1, 4),
        st.sampled_from([None, None, "a", "b"]),
    ),
    max_size=12,
)


@given(rows, st.integers(0, 12))
def test_counts_are_sums_over_clusters(all_rows: list[Any], at: int) -> None:
    one, other = Counts(), Counts()
    for part, taken in ((one, all_rows[:at]), (other, all_rows[at:])):
        for y, m, cluster in taken:
            part.add(y, m, cluster)
    one.merge(other)
    clusters: dict[Any, list[Any]] = {}
    for index, (y, m, cluster) in enumerate(all_rows):
        row = clusters.setdefault(index if cluster is None else cluster, [0, 0, 0])
        clusters[index if cluster is None else cluster] = [row[0] + y, row[1] + m, row[2] + 1]
    assert one.moments() == Moments.of_clusters([tuple(row) for row in clusters.values()])  # type: ignore[misc]
    assert one.loose_clusters() == sum(cluster is None for _, _, cluster in all_rows)


def test_a_unit_in_several_clusters_is_a_cluster_of_its_own() -> None:
    units = Units()
    for cluster in ("ada", "bob", "ada"):
        units.add("t1", 1, 1, 0, cluster)
    units.add("t2", 0, 1, 0, "ada")
    units.add("t2", 0, 0, 1, "ada")
    assert units.rows == {"t1": (3, 3, 0, None), "t2": (0, 1, 1, "ada")}


def test_the_first_of_several_durations_is_open_only_where_nothing_ended_before() -> None:
    first, last = UnitDurations(first=True), UnitDurations(first=False)
    cases = {
        "ended first": [(1, EVENT), (2, OPEN)],
        "open first": [(1, OPEN), (2, EVENT)],
        "at once": [(1, OPEN), (1, EVENT)],
        "both ended": [(1, COMPETING), (2, EVENT)],
        "alone": [(3, OPEN)],
    }
    for unit, times in cases.items():
        for cells in (first, last):
            for after, end in times:
                cells.add(unit, after, end, None)
    assert {unit: row[:2] for unit, row in first.rows.items()} == {
        "ended first": (1, EVENT),
        "open first": (1, OPEN),
        "at once": (1, EVENT),
        "both ended": (1, COMPETING),
        "alone": (3, OPEN),
    }
    assert {unit: row[:2] for unit, row in last.rows.items()} == {
        "ended first": (2, OPEN),
        "open first": (math.nextafter(2, 0), OPEN),
        "at once": (1, OPEN),
        "both ended": (2, EVENT),
        "alone": (3, OPEN),
    }


@given(
    st.lists(st.tuples(st.sampled_from([1.0, 2.0, 3.0]), st.sampled_from([0, 1, 2])), min_size=1, max_size=6), st.data()
)
def test_durations_of_a_unit_combine_in_any_order(times: list[tuple[float, int]], data: st.DataObject) -> None:
    for first in (True, False):
        rows = set()
        for order in (times, data.draw(st.permutations(times))):
            cells = UnitDurations(first=first)
            for after, end in order:
                cells.add("unit", after, end, None)
            rows.add(cells.rows["unit"])
        assert len(rows) == 1


def test_durations_number_their_clusters_and_give_loose_rows_numbers_of_their_own() -> None:
    one, other = Durations(), Durations()
    one.add(1, EVENT, "ada")
    one.add(2, OPEN, None)
    other.add(3, EVENT, "bob")
    other.add(4, COMPETING, "ada")
    other.add(5, OPEN, None)
    one.merge(other)
    after, end, cluster = one.arrays()
    assert cluster is not None
    assert list(after) == [1, 2, 3, 4, 5]
    assert list(end) == [EVENT, OPEN, EVENT, COMPETING, OPEN]
    by_cluster = Counter(cluster.tolist())
    assert sorted(by_cluster.values()) == [1, 1, 1, 2]
    assert cluster[0] == cluster[3]
    assert one.loose_clusters() == 2
    assert len(one) == 5
    assert Durations().arrays()[2] is None


def test_ten_thousand_tenths_are_a_thousand() -> None:
    note = Note(hits=1, misses=0, pending=0, number=0.1, weight=1, after=1, end="back", left_out=None)
    estimate = mean.estimate([note] * 10_000)
    assert estimate.counts["sum"] == pytest.approx(1000)
    assert Fraction(estimate.value or 0) == Fraction(0.1)
    json.dumps(estimate.to_dict())

"""Chains: which are eligible, when one is resolved for good, and how open ones are counted."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reflexr_samples import ADA, BEGIN, BOT, Writer, write_sqlite, write_wire

from evalr import InputError, report
from evalr.reflexr import (
    Chain,
    Matches,
    Resolution,
    chain_summaries,
    chains,
    measure_chain,
    measure_chain_as_reflexr,
    read,
)
from evalr.testing import MeasureContract
from evalr_reflexr.matching import Matcher, same_type
from evalr_reflexr.resolution import measure

SECOND = timedelta(seconds=1)
LATER = BEGIN + timedelta(days=2)


def chain(*marks: str) -> Chain:
    """A chain that something happens to each minute."""
    return Chain.model_validate(
        {
            "id": "c",
            "began": BEGIN,
            "marks": [{"at": BEGIN + timedelta(minutes=n), "kind": kind} for n, kind in enumerate(marks, start=1)],
        }
    )


@pytest.mark.parametrize(
    ("marks", "after", "ended", "reopened", "first"),
    [
        ((), None, "still_open", 0, None),
        (("resolved",), 60, "resolved", 0, 60),
        (("resolved", "resolved"), 60, "resolved", 0, 60),
        (("resolved", "reopened"), None, "still_open", 1, 60),
        (("resolved", "reopened", "reopened"), None, "still_open", 1, 60),
        (("resolved", "reopened", "resolved"), 180, "resolved", 1, 60),
        (("reopened", "resolved"), 120, "resolved", 0, 120),
        (("resolved", "reopened", "resolved", "reopened", "resolved"), 300, "resolved", 2, 60),
    ],
)
def test_a_chain_is_resolved_where_nobody_opened_it_again(
    marks: tuple[str, ...], after: float | None, ended: str, reopened: int, first: float | None
) -> None:
    found = measure_chain(chain(*marks), LATER)
    open_for = (LATER - BEGIN).total_seconds()
    assert found == Resolution(after=open_for if after is None else after, ended=ended, reopened=reopened)
    compat = measure_chain_as_reflexr(chain(*marks), LATER)
    assert compat.after == (open_for if first is None else first)
    assert compat.ended == ("still_open" if first is None else "resolved")


@given(st.lists(st.sampled_from(["resolved", "reopened"]), max_size=8), st.integers(0, 600))
def test_what_happened_later_is_not_known_yet(marks: list[str], seconds: int) -> None:
    now = BEGIN + seconds * SECOND
    whole = chain(*marks)
    known = whole.model_copy(update={"marks": [mark for mark in whole.marks if mark.at <= now]})
    assert measure_chain(whole, now) == measure_chain(known, now)
    assert measure_chain_as_reflexr(whole, now) == measure_chain_as_reflexr(known, now)


def log_of(folder: Path) -> Path:
    writer = Writer()
    writer.event("reflexr:tick", schedule="minute")
    a = writer.event("desk:ticket.opened", id="a", severity=3)
    b = writer.event("desk:ticket.opened", id="b", severity=1)
    writer.event("shop:order.placed", id="c")
    writer.event("desk:ticket.updated", chain=a, actor=ADA, status="closed", by={"name": "ada"}, after=10)
    writer.event("desk:ticket.resolved", chain=b, actor=BOT, after=10)
    writer.event("desk:ticket.reopened", chain=b, actor=ADA, after=10)
    return write_wire(folder / "log.jsonl", writer.rows)


def names(log: Any) -> list[str]:
    return [each.id.rpartition("/")[2] for each in log]


def test_by_default_chains_of_applications_are_eligible(tmp_path: Path) -> None:
    log = chains(log_of(tmp_path))
    assert names(log) == ["a", "b", "c"]
    assert dict(log.left_out.counts) == {"not eligible, as it starts with 'reflexr:tick'": 1}
    assert log.left_out.faults == 0


@pytest.mark.parametrize(
    ("starts", "eligible"),
    [
        ("desk:ticket.opened", ["a", "b"]),
        ("ticket.opened", ["a", "b"]),
        (["ticket.opened", "order.placed"], ["a", "b", "c"]),
        ("*.placed", ["c"]),
        ("shop:*", ["c"]),
        ("*", ["evt_1", "a", "b", "c"]),
        ({"type": "ticket.opened", "severity": 3}, ["a"]),
        ({"severity": 1}, ["b"]),
        ({"severity": True}, []),
        (lambda envelope: envelope.field("severity") == 3, ["a"]),
        ("nothing.of.this", []),
    ],
)
def test_who_asks_says_which_chains_are_eligible(tmp_path: Path, starts: Matches, eligible: list[str]) -> None:
    log = chains(log_of(tmp_path), starts=starts)
    assert names(log) == eligible
    assert log.records == 4
    assert log.left_out.total == 4 - len(eligible)


@pytest.mark.parametrize(
    ("resolves", "resolved"),
    [
        ("ticket.resolved", {"b"}),
        ({"type": "desk:ticket.updated", "status": "closed"}, {"a"}),
        ({"by.name": "ada"}, {"a"}),
        (lambda envelope: envelope.actor["kind"] == "user" and envelope.type.endswith("updated"), {"a"}),
        (["ticket.resolved", {"status": "closed"}], {"a", "b"}),
        ((), set()),
    ],
)
def test_what_resolves_is_a_type_a_field_or_a_function(tmp_path: Path, resolves: Matches, resolved: set[str]) -> None:
    log = chains(log_of(tmp_path), resolves=resolves, reopens=())
    found = {each.id.rpartition("/")[2] for each in log if each.marks}  # type: ignore[union-attr]
    assert found == resolved


def test_a_chain_that_an_unknown_fact_begins_is_only_not_eligible(tmp_path: Path) -> None:
    writer = Writer()
    begun = writer.event("reflexr:workspace_opened")
    writer.event("desk:ticket.resolved", chain=begun)
    log = chains(write_wire(tmp_path / "log.jsonl", writer.rows))
    assert list(log) == []
    assert (log.left_out.total, log.left_out.faults) == (1, 0)


def test_open_chains_are_counted_as_open(tmp_path: Path) -> None:
    path = log_of(tmp_path)
    found = report(path, resolves=("*.resolved", "order.placed"), within=timedelta(seconds=5), measures=["chains"])
    assert found["chains"].counts == {"ended": 1, "ended_otherwise": 0, "open": 2, "censored": 0}
    assert found["chains_reopened"].value == 0.5
    compat = report(path, compat="reflexr", measures=["chains"], reopens=())
    assert compat["chains"].left_out == {"unresolved": 3}
    assert compat["chains_median"].value == 21


def test_of_independent_chains_the_median_is_kaplan_and_meiers() -> None:
    """Half of all were resolved at the second time, exactly: floating point must not put it later."""
    results = [Resolution(after=n, ended=ended) for n, ended in ((1, "resolved"), (2, "still_open"), (3, "resolved"))]
    results += [Resolution(after=4, ended="resolved"), Resolution(after=9, ended="still_open")]
    median = next(each for each in chain_summaries() if each.name == "chains_median")
    # S: 4/5 at 1, 4/5 * 2/3 at 3, 4/15 at 4
    assert median.estimate(results).value == 4
    even = [Resolution(after=n, ended="resolved") for n in (1, 2, 3, 4)]
    assert median.estimate(even).value == 2


@pytest.mark.parametrize("given_match", ["", {}, 7, ["a", None]])
def test_a_choice_that_names_no_events_is_refused(tmp_path: Path, given_match: Any) -> None:
    with pytest.raises(InputError, match="names no events"):
        chains(log_of(tmp_path), resolves=given_match)


def test_within_is_a_length_of_time() -> None:
    with pytest.raises(InputError, match="must be a positive timedelta"):
        chain_summaries(within=timedelta(0))


@pytest.mark.parametrize(
    ("pattern", "type_name", "same"),
    [
        ("a:b", "a:b", True),
        ("a:b", "c:b", False),
        ("b", "a:b", True),
        ("a:b", "b", True),
        ("*.b", "x:a.b", True),
        ("x:*.b", "y:a.b", False),
        ("*", "reflexr:tick", True),
        ("a[bc]", "ab", False),
        ("a[*", "a[b", True),
    ],
)
def test_types_with_and_without_namespaces(pattern: str, type_name: str, same: bool) -> None:
    assert same_type(pattern, type_name) is same


def test_a_field_of_this_very_name_goes_before_a_nested_one(tmp_path: Path) -> None:
    writer = Writer()
    writer.event("desk:ticket.opened", **{"a.b": 1, "a": {"b": 2}})
    path = write_wire(tmp_path / "log.jsonl", writer.rows)
    assert len(names(chains(path, starts={"a.b": 1}))) == 1
    assert Matcher({"type": 7}, name="x").could_be("anything")


class TestChains(MeasureContract):
    measure = measure
    inputs: ClassVar[Any] = [
        chain("resolved", "reopened").model_copy(update={"id": "a"}),
        chain("resolved", "reopened", "resolved").model_copy(update={"id": "b"}),
        chain("resolved").model_copy(update={"id": "d"}),
    ]
    now = LATER
    other_settings: ClassVar[Any] = {"within": timedelta(minutes=2), "compat": "reflexr"}


def test_types_that_are_named_and_not_there_are_told_with_those_that_are(tmp_path: Path) -> None:
    writer = Writer()
    writer.event("desk:ticket.opened")
    writer.event("desk:ticket.closed")
    path = write_sqlite(tmp_path / "store.db", writer.rows)
    there_are = "there are: desk:ticket.closed, desk:ticket.opened"
    for log in (chains(path, starts="ticket.openend"), read(path, starts="ticket.openend")):
        assert report(log, measures=["chains"])["chains"].n == 0
        assert log.notes == [
            f"no event here is of type 'ticket.openend' (starts); {there_are}; did you mean 'desk:ticket.opened'?",
            f"no event here is of type '*.resolved' (resolves); {there_are}",
        ]
    found = chains(path, starts="ticket.opened", resolves=["ticket.closed", {"never": "there"}], reopens="x\x1b")
    assert len(list(found)) == 1
    assert [note.partition(";")[0] for note in found.notes] == [r"no event here is of type 'x\x1b' (reopens)"]
    assert report(path, measures=["rules"]).notes == ()


def test_an_export_is_read_as_of_its_last_event_whatever_is_asked_of_it(tmp_path: Path) -> None:
    writer = Writer()
    chain = writer.event("desk:ticket.opened")
    writer.fact("rule_fired", "fir_1", chain=chain, after=60)
    writer.fact("run_succeeded", "fir_1", chain=chain, after=3_600)
    path = write_wire(tmp_path / "log.jsonl", writer.rows)
    for measures in (["chains"], None):
        found = report(path, measures=measures)
        (reason,) = {row.estimate.reason for row in found.rows if row.estimate.name == "chains_mean"}
        assert reason == "nothing was followed for 1d: the longest was 1h 1m"
    assert {item.read_at for item in read(path)} == {writer.at}  # type: ignore[union-attr]

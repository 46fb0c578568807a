"""The sample log: the same everywhere, true as computed, and measured with intervals that hold the truth."""

from __future__ import annotations

import hashlib
from collections import Counter
from itertools import pairwise

import pytest

from evalr import report
from evalr.cli.sample import NOW, sample, sample_lines, truth
from evalr.inputs import Activity, History, Session
from evalr.measures import share_changed

SEEDS = range(40)


def test_a_seed_draws_the_same_on_every_python() -> None:
    drawn = [
        [(str(event.at), event.role, getattr(event, "text", None) or getattr(event, "kind", None)) for event in events]
        for item in sample(7, people=20)
        if isinstance(item, Session | History)
        for events in ([*item.activities] if isinstance(item, Session) else [*item.revisions],)
    ]
    assert hashlib.sha256(repr(drawn).encode()).hexdigest() == DRAWN_BY_SEED_7


DRAWN_BY_SEED_7 = "96d84a9dcb3dcc9fd0c2b999baedf8ea6cdaf455d00e292546c45e9291dea907"


def test_the_bad_lines_are_among_the_good_ones() -> None:
    lines = list(sample_lines(7))
    assert lines[91] == lines[0]
    assert lines[40].startswith('{"type": "session", "id": "clockless"')


def test_rewrites_change_what_counts_as_rewritten_and_light_edits_do_not() -> None:
    shares = [
        share_changed(before.text, after.text)
        for seed in range(3)
        for item in sample(seed)
        if isinstance(item, History)
        for before, after in pairwise(item.revisions)
        if after.role == "person"
    ]
    assert len(shares) > 100
    assert {share >= 0.2 for share in shares} == {True, False}
    assert not [share for share in shares if 0.05 < share < 0.4]


def test_the_truth_is_what_a_large_sample_comes_to() -> None:
    sessions = [item for seed in range(12) for item in sample(10_000 + seed) if isinstance(item, Session)]
    old = [each for each in sessions if (NOW - each.activities[0].at).days > 2]
    dropped = sum(not any(activity.kind == "closed" for activity in each.activities) for each in old) / len(old)
    assert dropped == pytest.approx(truth()["drop_off"], abs=0.02)
    waits = [wait for each in old for wait in each.waits(now=NOW)]
    back = [(wait.until - wait.since).total_seconds() for wait in waits if wait.until and wait.ended == "returned"]
    assert sum(after <= 3_600 for after in back) / len(waits) == pytest.approx(truth()["waits"], abs=0.02)
    assert sum(after <= truth()["waits_median"] for after in back) / len(waits) == pytest.approx(0.5, abs=0.02)


def test_intervals_hold_the_truth_about_as_often_as_they_say() -> None:
    true = truth()
    held = Counter[str]()
    for seed in SEEDS:
        found = report(sample(seed, people=60), now=NOW)
        for name, value in true.items():
            estimate = found[name]
            held[name] += estimate.low is not None and estimate.low <= value <= (estimate.high or float("inf"))
    assert {name: count for name, count in held.items() if count < 0.85 * len(SEEDS)} == {}
    assert 0.9 <= held.total() / (len(SEEDS) * len(true)) < 1


def test_nothing_in_a_sample_is_later_than_its_reading_time() -> None:
    for item in sample(3):
        events: list[Activity] = item.activities if isinstance(item, Session) else []
        assert all(event.at <= NOW for event in events)

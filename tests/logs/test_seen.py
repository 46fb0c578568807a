"""Subjects seen before, as a set would know them, in less memory."""

from __future__ import annotations

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from evalr.logs.seen import Seen


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["x", "y", None]))))
def test_it_knows_what_a_set_knows(subjects: list[tuple[str, str | None]]) -> None:
    seen, known = Seen(), set()
    for subject in subjects:
        assert seen.add(subject) is (subject not in known)
        known.add(subject)
    assert len(seen) == len(known)


def test_it_knows_them_after_it_has_grown() -> None:
    seen = Seen()
    subjects = [("session", f"u{number % 7}", f"s{number}") for number in range(20_000)]
    assert all(seen.add(subject) for subject in subjects)
    assert not any(seen.add(subject) for subject in subjects)


def test_hashes_that_crowd_one_place_are_kept_apart() -> None:
    seen = Seen()
    # Small numbers are their own hashes: these all begin at one place of the smallest table, and 0 and -1 are special.
    subjects = [number << 20 for number in range(500)] + [-1, 0, 1]
    assert [seen.add(subject) for subject in subjects].count(True) == len(
        set(map(hash, subjects))
    ) - 1  # 0 is taken for 1
    assert not any(seen.add(subject) for subject in subjects)


def test_a_subject_takes_few_bytes() -> None:
    count = 100_000
    tracemalloc.start()
    try:
        seen = Seen()
        for number in range(count):
            seen.add(("session", str(number)))
        after, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after / count < 30
    assert peak / count < 45

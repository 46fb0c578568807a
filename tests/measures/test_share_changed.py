"""The share that an edit changed: equal to its definition, decided without it, and never stalling."""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys
import time
import unicodedata
from collections.abc import Iterator
from datetime import datetime, timedelta
from difflib import SequenceMatcher
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rapidfuzz.distance import LCSseq

from evalr.errors import InputError
from evalr.measures.share_changed import (
    BOUND_CELLS,
    TOKEN,
    TOKEN_CELLS,
    Change,
    align,
    changed_at_least,
    measure_change,
    share_changed,
)

# The package names its function like the module, so the module itself is fetched by its name.
MODULE = import_module("evalr.measures.share_changed")


def share_of(same: int, before: str, after: str) -> float:
    return 1 - 2 * same / (len(before) + len(after)) if before or after else 0.0


def size_of(matches: list[tuple[int, int, int]]) -> int:
    return sum(size for _, _, size in matches)


def by_definition(before: str, after: str) -> float:
    """The definition, written with plain difflib."""
    a, b = before.splitlines(keepends=True), after.splitlines(keepends=True)
    same = 0
    for tag, a_low, a_high, b_low, b_high in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        old, new = "".join(a[a_low:a_high]), "".join(b[b_low:b_high])
        if tag == "equal":
            same += len(old)
        else:
            same += sum(match.size for match in SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks())
    return share_of(same, before, after)


# --- texts ---------------------------------------------------------------------------------------------------------

LINE_ENDS = ["\n", "\r\n", "\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029", ""]
WORDS = ["a", "b", "ab", "the", "rule", "billing", "é", "e\u0301", "漢字", "\ud800", "\x00", "😀", "  ", "- [ ]", ""]

letters = st.text("ab\n", max_size=40)
lines = st.lists(st.tuples(st.lists(st.sampled_from(WORDS), max_size=4), st.sampled_from(LINE_ENDS)), max_size=12)
documents = lines.map(lambda parts: "".join(" ".join(words) + end for words, end in parts))


@st.composite
def edits(draw: st.DrawFn) -> tuple[str, str]:
    """A document, and the same after a few pieces of it were replaced."""
    before = draw(documents)
    after = before
    for _ in range(draw(st.integers(0, 3))):
        low = draw(st.integers(0, len(after)))
        high = draw(st.integers(low, min(len(after), low + 12)))
        after = after[:low] + draw(st.one_of(documents, letters).map(lambda text: text[:20])) + after[high:]
    return before, after


pairs = st.one_of(
    st.tuples(letters, letters),
    st.tuples(documents, documents),
    st.tuples(st.text(max_size=30), st.text(max_size=30)),
    edits(),
)


def random_text(letters: str, size: int, seed: int) -> str:
    return "".join(random.Random(seed).choices(letters, k=size))


def twice(letters: str, size: int) -> tuple[str, str]:
    return random_text(letters, size, 1), random_text(letters, size, 2)


def signs(count: int, first: int = 0x4E00) -> str:
    return "".join(map(chr, range(first, first + count)))


# --- the share -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "share"),
    [
        ("", "", 0.0),
        ("", "abc", 1.0),
        ("abc", "", 1.0),
        ("abc", "abc", 0.0),
        ("abc", "xyz", 1.0),
        ("abcd", "abxd", 1 - 6 / 8),
        ("a\nb\nc\n", "a\nc\n", 1 - 8 / 10),
        # The line ends of changed lines are matched too, and lines are matched whole before characters are.
        ("ab\ncd\n", "cd\nab\n", 1 - 6 / 12),
        ("- [ ] draft\n- [ ] legal\n- [ ] ship\n", "- [x] draft\n- [ ] legal\n- [ ] ship\n", 1 - 68 / 70),
        # Characters are matched only inside their own changed run, not across the equal line between two runs.
        ("x1\nsame\nqq\n", "q\nsame\nx\n", 1 - 2 * (5 + 1 + 1) / 20),
    ],
)
def test_shares_counted_by_hand(before: str, after: str, share: float) -> None:
    assert share_changed(before, after) == share
    assert by_definition(before, after) == share


@given(pairs)
@example(("ab", "acab"))
@example(("ab\x85cd", "ab\u2028cd"))
def test_the_share_is_the_definition(pair: tuple[str, str]) -> None:
    before, after = pair
    assert measure_change(before, after) == Change(by_definition(before, after), None)


def test_autojunk_is_off() -> None:
    before, after = random_text("ab", 300, 1), random_text("ab", 300, 2)
    assert share_changed(before, after) == by_definition(before, after)


@pytest.mark.parametrize("sparse", [False, True])
@given(pairs)
def test_the_metered_search_finds_the_same(sparse: bool, pair: tuple[str, str]) -> None:
    before, after = pair
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MODULE, "_most_steps", lambda a, b: math.inf)
        if sparse:
            patch.setattr(MODULE, "_fast_matcher", lambda: SequenceMatcher)
        assert measure_change(before, after) == Change(by_definition(before, after), None)


@st.composite
def edited_lines(draw: st.DrawFn) -> tuple[list[str], list[str]]:
    """Lines of which most are unlike all others, and the same after some were put in, taken out, moved or repeated."""
    before = [draw(st.sampled_from(["", "}", f"line {number}"])) for number in range(draw(st.integers(0, 25)))]
    after = list(before)
    for _ in range(draw(st.integers(0, 4))):
        low, size = draw(st.integers(0, len(after))), draw(st.integers(0, 6))
        piece = after[low : low + size]
        if draw(st.booleans()):
            del after[low : low + size]
        to = draw(st.integers(0, len(after)))
        after[to:to] = draw(st.sampled_from([piece, ["", "new"], ["}", ""], before[:3]]))
    return before, after


def unanchored(a: list[str], b: list[str], once: set[str]) -> tuple[list[Any], int]:
    return [], len(a)


@given(edited_lines(), st.sampled_from([10**9, 10**9, 1_000, 3_000]))
def test_what_stands_once_settles_windows_and_changes_no_answer(lines: tuple[list[str], list[str]], steps: int) -> None:
    before, after = lines
    found, left = MODULE._metered_matches(before, after, steps)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MODULE, "_anchored", unanchored)
        assert MODULE._metered_matches(before, after, steps) == (found, left)
    if left >= 0:
        matcher = SequenceMatcher(None, before, after, autojunk=False)
        places = {(i + n, j + n) for i, j, size in matcher.get_matching_blocks() for n in range(size)}
        assert {(i + n, j + n) for i, j, size in found for n in range(size)} == places


def test_only_what_nothing_settles_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    searched = []

    class Seen(SequenceMatcher):  # type: ignore[type-arg]
        def find_longest_match(self, alo: int, ahi: int, blo: int, bhi: int) -> Any:  # type: ignore[override]
            searched.append((ahi - alo, bhi - blo))
            return super().find_longest_match(alo, ahi, blo, bhi)

    monkeypatch.setattr(MODULE, "_fast_matcher", lambda: Seen)
    before = [f"line {number}" if number % 5 else "" for number in range(1_000)]
    after = [*before[500:600], *before[:500], "new", *before[600:700], "newer", *before[701:]]
    found, _ = MODULE._metered_matches(before, after, MODULE.STEPS)
    # The hundred lines that moved are lost, and of line 700, which is empty, and "newer" nothing is the same.
    assert found == [(0, 100, 500), (600, 601, 100), (701, 702, 299)]
    assert searched == [(1, 1), (100, 1)]


@given(pairs)
def test_a_search_never_costs_more_than_its_bound(pair: tuple[str, str]) -> None:
    a, b = pair
    if a and b:
        most = MODULE._most_steps(a, b)
        _, left = MODULE._metered_matches(a, b, most)
        assert left >= 0


def test_many_unlike_lines_are_aligned_exactly() -> None:
    lines = [f"line {number}\n" for number in range(100_000)]
    before, after = "".join(lines), "".join([*lines[:100], "new\n", *lines[101:20_000], *lines[20_010:]])
    assert measure_change(before, after) == Change(by_definition(before, after), None)


@pytest.mark.parametrize("size", [10, 20_000])
def test_a_search_that_meets_nothing_equal_is_not_free(size: int) -> None:
    matches, left = MODULE._metered_matches(["old"] * size, ["new"] * size, MODULE.STEPS)
    assert matches == []
    assert left <= MODULE.STEPS - size


def test_without_cydifflib_the_values_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    before, after = random_text("abc \n", 900, 1), random_text("abc \n", 900, 2)
    monkeypatch.setitem(sys.modules, "cydifflib", None)
    MODULE._fast_matcher.cache_clear()
    try:
        assert MODULE._fast_matcher() is SequenceMatcher
        slow = share_changed(before, after)
    finally:
        MODULE._fast_matcher.cache_clear()
    monkeypatch.undo()
    assert MODULE._fast_matcher() is not SequenceMatcher
    assert share_changed(before, after) == slow == by_definition(before, after)


def test_importing_it_loads_no_matcher() -> None:
    heavy = "import sys, evalr.measures.share_changed; print({'cydifflib', 'rapidfuzz'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", heavy], capture_output=True, text=True, check=True).stdout == "set()\n"


# --- normalised texts ----------------------------------------------------------------------------------------------


def test_line_ends_and_composition_count_unless_normalized() -> None:
    before, after = "caf\u00e9\nbar\nbaz\n", "cafe\u0301\r\nbar\rbaz\r\n"
    assert share_changed(before, after) > 0.2
    assert changed_at_least(before, after, 0.2).changed
    assert share_changed(before, after, normalize=True) == 0
    assert not changed_at_least(before, after, 0.2, normalize=True).changed
    assert share_changed("a\r\nb\r\n", "a\nc\n", normalize=True) == by_definition("a\nb\n", "a\nc\n")


COMPOSABLE = "ae\u0300\u0315\u0323\u0344\u0f71\u0f73\u0f81\u1100\u1161\u11a8\uac00\u212b\ud800\n"


@given(st.text(st.sampled_from(COMPOSABLE), max_size=12))
def test_composing_is_nfc(text: str) -> None:
    assert MODULE._composed(text) == unicodedata.normalize("NFC", text)


@pytest.mark.parametrize("marks", ["\u0315\u0300", "\u0300", "\u0f73"])
def test_a_long_run_of_combining_marks_does_not_stall(marks: str) -> None:
    started = time.process_time()
    share_changed("a" + marks * 200_000, "b" + marks * 200_000, normalize=True)
    assert time.process_time() - started < 20


# --- decisions -----------------------------------------------------------------------------------------------------


@given(pairs, st.floats(0, 1), st.booleans())
def test_a_decision_is_the_shares_verdict(pair: tuple[str, str], anywhere: float, normalize: bool) -> None:
    before, after = pair
    share, method = measure_change(before, after, normalize=normalize)
    nearby = [math.nextafter(share, 0), share, math.nextafter(share, 1)]
    for threshold in (0, 0.2, 1, anywhere, *nearby):
        if 0 <= threshold <= 1:
            decision = changed_at_least(before, after, threshold, normalize=normalize)
            assert decision.changed == (share >= threshold)
            assert decision.method in {None, method}


@pytest.mark.parametrize("threshold", [-0.1, 1.1, math.nan, math.inf])
def test_a_threshold_that_is_no_share_is_refused(threshold: float) -> None:
    with pytest.raises(InputError, match="threshold"):
        changed_at_least("a", "b", threshold)


def refuse(*_: object) -> None:
    raise AssertionError("that was not needed")


def test_equal_texts_and_lengths_settle_decisions_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MODULE, "_align_lines", refuse)
    long, short = "long\n" * 100, "short\n"
    assert changed_at_least(long, long, 0.2) == (False, None)
    assert changed_at_least(long, short, 0.2) == (True, None)
    assert changed_at_least(short, long, 0.2) == (True, None)
    with pytest.raises(AssertionError, match="that was not needed"):
        changed_at_least(long, long[:-1] + "!", 0.2)


def test_bounds_settle_most_decisions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MODULE, "_same_inside", refuse)
    before, after = twice("abcdefghijklmnopqrstuvwxyz     ", 8_000)
    assert changed_at_least(before, after, 0.2) == (True, None)
    assert changed_at_least("kept\n" * 90 + "old\n", "kept\n" * 90 + "new\n", 0.2) == (False, None)
    with pytest.raises(AssertionError, match="that was not needed"):
        changed_at_least("a quick brown fox", "a quicker brown fox", 0.2)


# --- alignments ----------------------------------------------------------------------------------------------------

LIMITS: list[dict[str, int]] = [
    {},
    {"STEPS": 0},
    {"STEPS": 300},
    {"STEPS": 3_000},
    {"STEPS": 0, "BOUND_CELLS": 20, "TOKEN_CELLS": 20},
    {"STEPS": 0, "BOUND_CELLS": 0, "TOKEN_CELLS": 0},
    {"STEPS": 1_000, "BOUND_CELLS": 5, "TOKEN_CELLS": 10},
]


@pytest.mark.parametrize(
    ("before", "after", "matches"),
    [
        ("", "", []),
        ("", "abc", []),
        ("abc", "abc", [(0, 0, 3)]),
        ("abcd", "abxd", [(0, 0, 2), (3, 3, 1)]),
        ("a\nb\nc\n", "a\nc\n", [(0, 0, 2), (4, 2, 2)]),
        # The second line stays; of the first, "on" and the line end do.
        ("one\ntwo\n", "zero\non\ntwo\n", [(0, 5, 2), (3, 7, 1), (4, 8, 4)]),
    ],
)
def test_alignments_counted_by_hand(before: str, after: str, matches: list[tuple[int, int, int]]) -> None:
    found = align(before, after)
    assert ([match for match in found.matches if match[2]], found.method) == (matches, None)


@pytest.mark.parametrize("limits", LIMITS)
@given(pairs)
def test_an_alignment_is_what_the_share_counts(limits: dict[str, int], pair: tuple[str, str]) -> None:
    before, after = pair
    with pytest.MonkeyPatch.context() as patch:
        for name, limit in limits.items():
            patch.setattr(MODULE, name, limit)
        matches, method = align(before, after)
        assert measure_change(before, after) == Change(share_of(size_of(matches), before, after), method)
    taken_before: list[int] = []
    taken_after: list[int] = []
    for i, j, size in matches:
        assert before[i : i + size] == after[j : j + size]
        taken_before += range(i, i + size)
        taken_after += range(j, j + size)
    assert len(set(taken_before)) == len(taken_before)
    assert len(set(taken_after)) == len(taken_after)
    assert taken_before == sorted(taken_before)
    assert method == "overlap/1" or taken_after == sorted(taken_after)


def test_an_overlap_takes_the_first_of_equal_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("STEPS", "BOUND_CELLS", "TOKEN_CELLS"):
        monkeypatch.setattr(MODULE, name, 0)
    # "," followed by " a" and "," comes twice before and once after; and nothing else of these is the same.
    assert align(", a, a, b", "x, a, c") == ([(0, 1, 1)], "overlap/1")
    assert align("x, a, c", ", a, a, b") == ([(1, 0, 1)], "overlap/1")


# --- estimates -----------------------------------------------------------------------------------------------------


@pytest.fixture
def short_of_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MODULE, "STEPS", 0)


@pytest.fixture
def short_of_cells(short_of_steps: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MODULE, "TOKEN_CELLS", 0)
    monkeypatch.setattr(MODULE, "BOUND_CELLS", 0)


@pytest.mark.usefixtures("short_of_steps")
@pytest.mark.parametrize(
    ("before", "after", "share"),
    [
        ("one two three", "one four three", 1 - 2 * 9 / 27),
        ("x, y", "x; y", 1 - 2 * 3 / 8),
        # The long word is cut after the first vowel from its eighth letter on: "internati" stays.
        ("internationally", "internationalise", 1 - 2 * 9 / 31),
        # A token that moves does not stay.
        ("a b c d", "d a b c", 1 - 2 * 4 / 14),
    ],
)
def test_tokens_counted_by_hand(before: str, after: str, share: float) -> None:
    assert measure_change(before, after) == Change(share, "tokens/1")
    assert measure_change(before, before) == Change(0.0, None)


@pytest.mark.usefixtures("short_of_cells")
def test_overlap_counted_by_hand() -> None:
    # Only " three", which ends both texts, is followed by the same two tokens.
    assert measure_change("one two three", "one four three") == Change(1 - 2 * 6 / 27, "overlap/1")
    assert measure_change("one", "two") == Change(1.0, "overlap/1")


def test_only_changed_runs_are_estimated_and_all_share_the_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    kept, old, new = "kept\n", "ab " * 40 + "\n", "ba " * 40 + "\n"
    _, left = MODULE._metered_matches(old, new, MODULE.STEPS)
    monkeypatch.setattr(MODULE, "STEPS", MODULE.STEPS - left)
    assert measure_change(kept + old, kept + new).method is None
    # A second run like the first, and the two together take too long.
    share, method = measure_change(kept + old + kept + old, kept + new + kept + new)
    assert method == "tokens/1"
    # Neither the first "ab" nor any later " ab" is a token of the other side; the last white space of both is.
    assert share == 1 - 2 * (2 * len(kept) + 2 * len(" \n")) / (4 * len(kept + old))


def test_texts_whose_lines_are_not_aligned_are_estimated_whole() -> None:
    lines = MODULE._align_lines("same\nold\n", "same\nnew\n", 0)
    assert lines == (0, [], [("same\nold\n", "same\nnew\n")], [(0, 0)], False)
    # Even where the characters alone could be matched: the definition aligns lines first.
    assert MODULE._same_inside(lines) == (len("same\n\n"), "tokens/1")


@pytest.mark.usefixtures("short_of_steps")
@pytest.mark.parametrize(("cells", "method"), [(12, "tokens/1"), (11, "overlap/1")])
def test_tokens_are_aligned_up_to_the_limit(monkeypatch: pytest.MonkeyPatch, cells: int, method: str) -> None:
    monkeypatch.setattr(MODULE, "BOUND_CELLS", cells)
    monkeypatch.setattr(MODULE, "TOKEN_CELLS", cells)
    assert measure_change("a b c", "a d e f").method == method


@pytest.mark.parametrize("limits", LIMITS)
@given(pairs)
def test_decisions_agree_with_estimates(limits: dict[str, int], pair: tuple[str, str]) -> None:
    before, after = pair
    with pytest.MonkeyPatch.context() as patch:
        for name, limit in limits.items():
            patch.setattr(MODULE, name, limit)
        share, method = measure_change(before, after)
        assert 0 <= share <= 1
        assert method in {None, "tokens/1", "overlap/1"}
        if method is None:
            assert share == by_definition(before, after)
        for threshold in (0, 0.2, share, math.nextafter(share, 0), min(1, math.nextafter(share, 1)), 1):
            if threshold >= 0:
                decision = changed_at_least(before, after, threshold)
                assert decision.changed == (share >= threshold)
                assert decision.method in {None, method}


def test_the_bound_of_decisions_holds_for_estimates() -> None:
    # A text has no more tokens than characters, so what the bound may weigh is never left to an overlap.
    assert BOUND_CELLS <= TOKEN_CELLS


@given(pairs)
def test_tokens_hold_every_character_and_align_to_a_common_subsequence(pair: tuple[str, str]) -> None:
    before, after = pair
    a, b = TOKEN.findall(before), TOKEN.findall(after)
    assert "".join(a) == before
    assert all(len(token) <= 33 for token in a)
    assert size_of(MODULE._in_order(a, b)) <= LCSseq.similarity(before, after)
    assert MODULE._same_anywhere(a, b) <= min(len(before), len(after))
    assert size_of(MODULE._in_order(a, a)) == MODULE._same_anywhere(a, a) == len(before)


# --- hostile texts -------------------------------------------------------------------------------------------------


def every_fortieth_replaced() -> tuple[str, str]:
    before = random_text("abcdefghijklmnopqrstuvwxyz      ", 16_000, 1)
    return before, "".join("#" if place % 40 == 0 else sign for place, sign in enumerate(before))


def interleaved(count: int, with_sign: bool) -> tuple[str, str]:
    """Texts whose matches are single characters, found one after the other: difflib's cubic case."""
    links = signs(count) if with_sign else " " * count
    old, new = signs(count, 0x10000), signs(count, 0x20000)
    return tuple("".join(a + b for a, b in zip(text, links, strict=True)) for text in (old, new))  # type: ignore[return-value]


HOSTILE: dict[str, tuple[str | None, tuple[str, str]]] = {
    "2 letters": ("tokens/1", twice("ab", 16_000)),
    "4 letters": ("tokens/1", twice("acgt", 16_000)),
    "28 letters": (None, twice(signs(28), 16_000)),
    "200 letters": (None, twice(signs(200), 16_000)),
    "5,000 letters": (None, twice(signs(5_000), 16_000)),
    "one letter": (None, ("a" * 16_000, "a" * 15_999 + "b")),
    "periodic": (None, ("ab" * 8_000, "ba" * 8_000)),
    "spaced": ("tokens/1", interleaved(8_000, with_sign=False)),
    "linked": ("tokens/1", interleaved(8_000, with_sign=True)),
    "edited evenly": ("tokens/1", every_fortieth_replaced()),
    "blank lines": ("tokens/1", ("\n" * 100_000, "\n" * 99_999 + "x")),
    "two lines": ("tokens/1", ("\n".join(random_text("ab", 40_000, 1)), "\n".join(random_text("ab", 40_000, 2)))),
    "unlike lines": ("overlap/1", ("\n".join(map(str, range(99_999))), "\n".join(map(str, range(0, 199_999, 2))))),
    "a megabyte of letters": ("tokens/1", twice("abcdefghijklmnopqrstuvwxyz", 1_000_000)),
    "a megabyte of words": ("overlap/1", twice("abc     ", 1_000_000)),
    "a megabyte of signs": ("tokens/1", twice(signs(5_000), 1_000_000)),
    "surrogates and nulls": ("tokens/1", ("\ud800\x00" * 8_000, "\x00\udfff" * 8_000)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_text_stalls(name: str) -> None:
    method, (before, after) = HOSTILE[name]
    started = time.process_time()
    change = measure_change(before, after)
    decision = changed_at_least(before, after, 0.2)
    # Each takes a second or two, and the processor's own time is the same on a busy machine; unmetered, many of these
    # take minutes.
    assert time.process_time() - started < 60
    assert change.method == method
    assert 0 < change.share <= 1
    assert decision.changed == (change.share >= 0.2)
    assert decision.method in {None, method}


@pytest.mark.parametrize(
    ("letters", "method"), [("abcdefgh", "tokens/1"), ("abcdefghijklmnopqrst    ,.;:", "overlap/1")]
)
def test_estimates_of_small_edits_are_small_and_of_rewrites_large(letters: str, method: str) -> None:
    before, rewritten = twice(letters, 500_000)
    edited = before[:250_000] + "Q" + before[250_001:]
    small, large = measure_change(before, edited), measure_change(before, rewritten)
    assert small.method == large.method == method
    assert 0 < small.share < 0.001
    assert large.share > 0.9


# --- real histories ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def histories(real_logs: Path) -> list[list[dict[str, Any]]]:
    with (real_logs / "aider_history" / "histories.jsonl").open(encoding="utf-8") as file:
        return [json.loads(line)["revisions"] for line in file]


def rewrites(revisions: list[dict[str, Any]], window: timedelta) -> Iterator[tuple[str, str]]:
    """Each text by the agent, and what people had last made of it within the window, before the agent wrote again."""
    at = [datetime.fromisoformat(revision["at"]) for revision in revisions]
    for place, revision in enumerate(revisions):
        if revision["role"] == "agent":
            last = None
            for later in range(place + 1, len(revisions)):
                if revisions[later]["role"] == "agent" or at[later] - at[place] > window:
                    break
                last = revisions[later]["text"]
            if last is not None:
                yield revision["text"], last


def test_every_real_edit_has_the_share_of_the_definition(histories: list[list[dict[str, Any]]]) -> None:
    seen = 0
    for revisions in histories:
        for old, new in pairwise(revision["text"] for revision in revisions):
            share = by_definition(old, new)
            assert measure_change(old, new) == Change(share, None)
            for threshold in (0.05, 0.2, 0.5, share):
                assert changed_at_least(old, new, threshold) == (share >= threshold, None)
            seen += 1
    assert seen == 750


def test_real_rewrites_are_those_counted_before(histories: list[list[dict[str, Any]]]) -> None:
    windows = [timedelta(minutes=10), timedelta(hours=1), timedelta(days=1), timedelta(days=7)]
    counts = [
        sum(changed_at_least(*pair, 0.2).changed for revisions in histories for pair in rewrites(revisions, window))
        for window in windows
    ]
    assert counts == [5, 13, 16, 21]

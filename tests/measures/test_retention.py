"""Retention: what is still there of what the agent added, equal to its definition, for histories and drafts alike."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from difflib import SequenceMatcher
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from evalr import Failure, InputError, Verdict, scores
from evalr.inputs import About
from evalr.measures import (
    Draft,
    History,
    Retention,
    Revision,
    measure_retention,
    measure_rewrites,
    retention_evaluator,
    retention_of_edited,
    retention_share,
    rewrite_evaluator,
    rewrite_rate,
)
from evalr.measures.drafts import split_drafts
from evalr.measures.retention import measure
from evalr.measures.rewrites import measure as rewrites
from evalr.measures.share_changed import TOKEN
from evalr.testing import EvaluatorContract, MeasureContract

# The package names its function like the module, so the module itself is fetched by its name.
SHARE_CHANGED = import_module("evalr.measures.share_changed")

START = datetime(2026, 9, 28, 9, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)


def minutes(number: float) -> datetime:
    return START + timedelta(minutes=number)


def revision(minute: float, role: str, text: str) -> Revision:
    return Revision(at=minutes(minute), role=role, text=text)  # type: ignore[arg-type]


def history(*revisions: Revision, **fields: Any) -> History:
    return History(id="brief", revisions=list(revisions), **fields)


def retained(*revisions: Revision, now: float | None = None, normalize: bool = False, **fields: Any) -> Any:
    """(added, kept, pending)"""
    moment = None if now is None else minutes(now)
    found = measure_retention(history(*revisions, **fields), window=HOUR, now=moment, normalize=normalize)
    return found.added, found.kept, found.pending


def of_texts(before: str | None, text: str, *people: str, normalize: bool = False) -> tuple[int, int]:
    """(added, kept) of one draft that people went on to make these texts of."""
    began = [] if before is None else [revision(-1, "person", before)]
    later = [revision(minute, "person", each) for minute, each in enumerate(people, start=1)]
    added, kept, pending = retained(*began, revision(0, "agent", text), *later, normalize=normalize)
    assert pending == 0
    return added, kept


# -- the definition, written with plain difflib ----------------------------------------------------------------------


def same_places(before: str, after: str) -> tuple[set[int], set[int]]:
    """Where the characters are, in either text, that are in equal lines or matched inside a changed run of lines."""
    a, b = before.splitlines(keepends=True), after.splitlines(keepends=True)
    in_before, in_after = set[int](), set[int]()
    for tag, a_low, a_high, b_low, b_high in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        at_a, at_b = len("".join(a[:a_low])), len("".join(b[:b_low]))
        old, new = "".join(a[a_low:a_high]), "".join(b[b_low:b_high])
        blocks = [(0, 0, len(old))]
        if tag != "equal":
            blocks = SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
        for i, j, size in blocks:
            in_before.update(range(at_a + i, at_a + i + size))
            in_after.update(range(at_b + j, at_b + j + size))
    return in_before, in_after


def by_definition(before: str | None, text: str, last: str | None) -> tuple[int, int]:
    """(added, kept) of a draft; `last` is None where nobody touched it."""
    added = set(range(len(text)))
    if before is not None:
        added -= same_places(before, text)[1]
    return len(added), len(added if last is None else added & same_places(text, last)[0])


def reference(whole: History, window: timedelta) -> tuple[int, int]:
    """(added, kept) of all drafts of a history that nothing is pending of."""
    sums = [0, 0]
    revisions = whole.revisions
    for place, written in enumerate(revisions):
        if written.role != "agent":
            continue
        last = None
        for later in revisions[place + 1 :]:
            if later.role == "agent":
                break
            if later.role == "person" and later.at - written.at <= window:
                last = later.text
        before = revisions[place - 1].text if place else None
        for index, count in enumerate(by_definition(before, written.text, last)):
            sums[index] += count
    return sums[0], sums[1]


# -- counted by hand -------------------------------------------------------------------------------------------------

CASES: dict[str, tuple[str | None, str, list[str], tuple[int, int]]] = {
    # "two\n" has 4 characters.
    "a line added, untouched": ("one\n", "one\ntwo\n", [], (4, 4)),
    "a line added, kept as it is": ("one\n", "one\ntwo\n", ["one\ntwo\n"], (4, 4)),
    "a line added, undone": ("one\n", "one\ntwo\n", ["one\n"], (4, 0)),
    "a line added, all deleted": ("one\n", "one\ntwo\n", [""], (4, 0)),
    # What the person added is not the agent's.
    "a line added, and one by a person": ("one\n", "one\ntwo\n", ["zero\none\ntwo\n"], (4, 4)),
    # Of the agent's "two\nsix\n", "six\n" is in an equal line.
    "a line of two deleted": ("one\n", "one\ntwo\nsix\n", ["one\nsix\n"], (8, 4)),
    # What the person took out was not the agent's.
    "an older line deleted": ("one\n", "one\ntwo\n", ["two\n"], (4, 4)),
    # "the " and " page\n" are matched, "old" and "new" share nothing: 3 added. "new" and "last" share nothing either.
    "a word replaced, twice": ("the old page\n", "the new page\n", ["the last page\n"], (3, 0)),
    # "new" and "now" share n and w.
    "a word replaced, then edited": ("the old page\n", "the new page\n", ["the now page\n"], (3, 2)),
    "a word replaced, then back": ("the old page\n", "the new page\n", ["the old page\n"], (3, 0)),
    # The agent only took out.
    "nothing added": ("one\ntwo\n", "one\n", ["six\n"], (0, 0)),
    "nothing changed": ("one\n", "one\n", ["six\n"], (0, 0)),
    # A draft that began the artifact added all of it, and one that follows an empty text as well.
    "all of it new": (None, "one\n", [], (4, 4)),
    "all of it new after nothing": ("", "one\n", [], (4, 4)),
    "an empty draft": (None, "", ["one\n"], (0, 0)),
    # Of two lines that change places the first is aligned, and the other one is lost: "alpha\n" is 6 of 11.
    "lines that moved": ("top\n", "top\nalpha\nbeta\n", ["top\nbeta\nalpha\n"], (11, 6)),
    # By chance, "ick\n" of "quick\n" is in "brick\n" too.
    "a chance match": (None, "quick\n", ["brick\n"], (6, 4)),
    # The last text counts, and it is compared with the draft directly.
    "an edit, then undone": (None, "one\ntwo\n", ["six\n", "one\ntwo\n"], (8, 8)),
    "edits, step by step": (None, "one\ntwo\n", ["one\n", "one\nten\n"], (8, 4 + 2)),  # t and \n of "two\n", "ten\n"
    # Whatever their size in bytes, each is one character, and so is the line end.
    "signs of every size": (None, "é漢😀\n", ["é漢\n"], (4, 3)),
    # \x0b ends a line as \n does: the first is equal; of the second, "b" is matched.
    "odd line ends": (None, "a\x0bb\x0b", ["a\x0bb\n"], (4, 3)),
}


@pytest.mark.parametrize("name", CASES)
def test_counted_by_hand(name: str) -> None:
    before, text, people, expected = CASES[name]
    assert of_texts(before, text, *people) == expected
    assert by_definition(before, text, people[-1] if people else None) == expected


def test_line_ends_and_composition_count_unless_normalized() -> None:
    # Of "a\r\nb\r\n", a person's editor leaves "a\nb\n": 4 of 6 characters, or 4 of 4 where line ends do not count.
    assert of_texts(None, "a\r\nb\r\n", "a\nb\n") == (6, 4)
    assert of_texts(None, "a\r\nb\r\n", "a\nb\n", normalize=True) == (4, 4)
    # "é" in one sign or in two: the e of it is no é.
    assert of_texts(None, "caf\u00e9\n", "cafe\u0301\n") == (5, 4)
    assert of_texts(None, "caf\u00e9\n", "cafe\u0301\n", normalize=True) == (5, 5)
    # What the agent added is counted in normalised characters too.
    assert of_texts("a\r\n", "a\nb\r\n", "a\n", normalize=True) == (2, 0)


# -- windows, and the agent writing again ----------------------------------------------------------------------------

AGENT = revision(0, "agent", "one\ntwo\n")


def test_a_revision_at_exactly_the_window_counts_and_a_moment_later_does_not() -> None:
    assert retained(AGENT, revision(60, "person", "one\n")) == (8, 4, 0)
    late = Revision(at=minutes(60) + timedelta(microseconds=1), role="person", text="one\n")
    assert retained(AGENT, late) == (8, 8, 0)
    assert retained(AGENT, revision(5, "person", "one\n"), late) == (8, 4, 0)


def test_only_people_take_out_and_only_before_the_agent_writes_again() -> None:
    assert retained(AGENT, revision(5, "tool", "one\n")) == (8, 8, 0)
    # The agent's second revision adds nothing to the person's: it keeps what they left, and takes nothing out.
    assert retained(AGENT, revision(5, "person", "one\n"), revision(10, "agent", "one\n")) == (8, 4, 0)
    # What a person takes out afterwards is taken out of the second revision, which added "six\n" alone.
    again = revision(10, "agent", "one\ntwo\nsix\n")
    assert retained(AGENT, again, revision(20, "person", "six\n")) == (8 + 4, 8 + 4, 0)
    assert retained(AGENT, again, revision(20, "person", "one\n")) == (8 + 4, 8, 0)


def test_ties_in_time_keep_the_order_given() -> None:
    person, again = revision(5, "person", "one\n"), revision(5, "agent", "one\ntwo\n")
    assert retained(AGENT, person, again) == (8 + 4, 4 + 4, 0)
    assert retained(AGENT, again, person) == (8, 8, 0)


def test_a_draft_is_pending_until_its_window_has_passed() -> None:
    person = revision(30, "person", "one\n")
    assert retained(AGENT, person, now=29) == (0, 0, 8)
    assert retained(AGENT, person, now=59) == (0, 0, 8)
    assert retained(AGENT, person, now=60) == (8, 4, 0)
    assert retained(AGENT, person, now=-1) == (0, 0, 0)


def test_a_draft_is_decided_when_the_agent_writes_again() -> None:
    revisions = (AGENT, revision(5, "person", "one\n"), revision(10, "agent", "one\nsix\n"))
    assert retained(*revisions, now=9) == (0, 0, 8)
    assert retained(*revisions, now=10) == (8, 4, 4)


def test_without_a_reading_time_nothing_is_pending() -> None:
    assert retained(AGENT) == (8, 8, 0)
    assert retained(AGENT, read_at=minutes(30)) == (0, 0, 8)
    assert retained(AGENT, read_at=minutes(30), now=600) == (0, 0, 8)
    assert retained(AGENT, revision(40, "person", ""), read_at=minutes(90)) == (8, 0, 0)


def test_a_history_without_the_agent_has_no_share() -> None:
    found = measure_retention(history(revision(0, "person", "one\n")))
    assert (found.added, found.share) == (0, None)


@pytest.mark.parametrize("window", [timedelta(0), -HOUR, 3600])
def test_a_window_is_a_positive_timedelta(window: Any) -> None:
    with pytest.raises(InputError, match="must be a positive timedelta"):
        measure_retention(history(), window=window)
    with pytest.raises(InputError, match="must be a positive timedelta"):
        retention_evaluator(window=window)


# -- any texts -------------------------------------------------------------------------------------------------------

words = st.lists(st.sampled_from(["a", "ab", "the", "rule", "é", "e\u0301", "漢", "😀", "- [ ]", ""]), max_size=4)
lines = st.lists(st.tuples(words, st.sampled_from(["\n", "\r\n", "\r", "\x0b", "\u2028", ""])), max_size=10)
documents = lines.map(lambda parts: "".join(" ".join(words) + end for words, end in parts))


@st.composite
def edited(draw: st.DrawFn, text: str) -> str:
    """The text after a few pieces of it were replaced."""
    for _ in range(draw(st.integers(0, 3))):
        low = draw(st.integers(0, len(text)))
        high = draw(st.integers(low, min(len(text), low + 12)))
        text = text[:low] + draw(documents.map(lambda piece: piece[:16])) + text[high:]
    return text


@st.composite
def three_texts(draw: st.DrawFn) -> tuple[str | None, str, str | None]:
    """A text, what an agent made of it, and what a person made of that, if anybody did."""
    before = draw(st.one_of(st.none(), documents, st.text("ab\n", max_size=30)))
    text = draw(st.one_of(edited(before or ""), documents))
    return before, text, draw(st.one_of(st.none(), edited(text), edited(before or ""), documents))


@given(three_texts())
def test_any_draft_is_as_defined(texts: tuple[str | None, str, str | None]) -> None:
    before, text, last = texts
    assert of_texts(before, text, *[] if last is None else [last]) == by_definition(before, text, last)


@given(three_texts())
def test_what_holds_of_every_draft(texts: tuple[str | None, str, str | None]) -> None:
    before, text, last = texts
    added, kept = of_texts(before, text, *[] if last is None else [last])
    assert 0 <= kept <= added <= len(text)
    assert of_texts(before, text) == of_texts(before, text, text) == (added, added)
    assert of_texts(before, text, "") == (added, 0)
    assert of_texts(before, text, "something else\n", text) == (added, added)
    assert of_texts(None, text, "") == (len(text), 0)
    assert of_texts(text, text, "") == (0, 0)


@pytest.mark.parametrize(
    ("limits", "methods"),
    [
        ({"STEPS": 0}, {None, "tokens/1"}),
        ({"STEPS": 0, "BOUND_CELLS": 0, "TOKEN_CELLS": 0}, {None, "tokens/1", "overlap/1"}),
        ({"STEPS": 500, "BOUND_CELLS": 5, "TOKEN_CELLS": 10}, {None, "tokens/1", "overlap/1"}),
    ],
)
@given(three_texts())
def test_estimates_stay_within_what_was_added(
    limits: dict[str, int], methods: set[str | None], texts: tuple[str | None, str, str | None]
) -> None:
    before, text, last = texts
    revisions = [revision(minute, "person", each) for minute, each in ((-1, before), (1, last)) if each is not None]
    with pytest.MonkeyPatch.context() as patch:
        for name, limit in limits.items():
            patch.setattr(SHARE_CHANGED, name, limit)
        found = measure_retention(history(revision(0, "agent", text), *revisions), window=HOUR)
        assert 0 <= found.kept <= found.added <= len(text)
        assert found.compared in methods
        assert of_texts(before, text) == of_texts(before, text, text) == (found.added, found.added)
        assert of_texts(before, text, "") == (found.added, 0)


def with_next_two(text: str) -> Counter[tuple[str, str, str]]:
    tokens = [*TOKEN.findall(text), "", ""]
    return Counter(zip(tokens[:-2], tokens[1:-1], tokens[2:], strict=True))


@given(documents, documents, documents)
def test_an_overlap_keeps_of_each_token_as_many_as_are_left_beyond_the_older(before: str, text: str, last: str) -> None:
    # The first ones of a token are the older ones, so that of what a later text holds too, the rest are the agent's.
    older, drafted, left = map(with_next_two, (before, text, last))
    added = sum(len(token[0]) * max(0, count - older[token]) for token, count in drafted.items())
    kept = sum(len(token[0]) * max(0, min(count, left[token]) - older[token]) for token, count in drafted.items())
    with pytest.MonkeyPatch.context() as patch:
        for name in ("STEPS", "BOUND_CELLS", "TOKEN_CELLS"):
            patch.setattr(SHARE_CHANGED, name, 0)
        assert of_texts(before, text, last) == (added, kept)


@pytest.mark.parametrize(("steps", "cells", "method"), [(0, None, "tokens/1"), (0, 0, "overlap/1"), (None, None, None)])
def test_the_comparison_is_named_where_it_is_an_estimate(
    monkeypatch: pytest.MonkeyPatch, steps: int | None, cells: int | None, method: str | None
) -> None:
    for name, limit in (("STEPS", steps), ("TOKEN_CELLS", cells), ("BOUND_CELLS", cells)):
        if limit is not None:
            monkeypatch.setattr(SHARE_CHANGED, name, limit)
    whole = history(revision(-1, "person", "one two three"), revision(0, "agent", "one four three"))
    assert measure_retention(whole).compared == method
    begun = history(revision(0, "agent", "one two three"), revision(1, "person", "one four three"))
    assert measure_retention(begun).compared == method
    assert measure_retention(begun, now=minutes(30)).compared is None  # only what it added was asked for


def test_estimates_counted_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SHARE_CHANGED, "STEPS", 0)
    # In tokens, " four" is new, 5 characters of it; it is lost where a person writes " six".
    assert of_texts("one two three", "one four three", "one four five") == (5, 5)
    assert of_texts("one two three", "one four three", "one six three") == (5, 0)
    monkeypatch.setattr(SHARE_CHANGED, "TOKEN_CELLS", 0)
    monkeypatch.setattr(SHARE_CHANGED, "BOUND_CELLS", 0)
    # Of "one four three" only " three", which ends both texts, is followed by the same two tokens: "one four" is new.
    # The last text shares "one" before " four" and " five" with none; only " three" at its end, which is not new.
    assert of_texts("one two three", "one four three", "two four three") == (8, 5)
    assert of_texts("one two three", "one four three", "one four five three") == (8, 0)


# -- histories -------------------------------------------------------------------------------------------------------

texts = st.sampled_from(["", "one\ntwo\n", "one\nthree\n", "one\n", "six\ntwo\none\n", "sixteen"])
histories = st.lists(
    st.builds(
        revision,
        st.integers(0, 13).map(lambda tens: tens * 10),
        st.sampled_from(["agent", "agent", "person", "person", "tool"]),
        texts,
    ),
    max_size=8,
)
moments = st.one_of(st.none(), st.integers(-1, 20).map(lambda tens: minutes(tens * 10)))


@given(histories)
def test_random_histories_are_as_defined(revisions: list[Revision]) -> None:
    whole = history(*revisions)
    found = measure_retention(whole, window=HOUR)
    assert (found.added, found.kept) == reference(whole, HOUR)


@given(histories, moments)
def test_drafts_together_say_what_their_history_says(revisions: list[Revision], now: datetime | None) -> None:
    whole = history(*revisions)
    found = measure_retention(whole, window=HOUR, now=now)
    parts = [measure_retention(draft, window=HOUR, now=now) for draft in whole.drafts(now=now)]
    assert sum(part.added for part in parts) == found.added
    assert sum(part.kept for part in parts) == found.kept
    assert sum(part.pending for part in parts) == found.pending
    assert retention_share(parts) == retention_share([found])


@given(histories, st.integers(-1, 20).map(lambda tens: minutes(tens * 10)))
def test_a_draft_split_later_is_measured_as_at_its_reading_time(revisions: list[Revision], now: datetime) -> None:
    whole = history(*revisions)
    split_then = [measure_retention(draft, window=HOUR, now=now) for draft in whole.drafts(now=now)]
    split_later = [draft for draft in whole.drafts() if draft.written <= now]
    assert [measure_retention(draft, window=HOUR, now=now) for draft in split_later] == split_then


@given(histories, moments)
def test_what_is_pending_for_retention_is_pending_for_rewrites(revisions: list[Revision], now: datetime | None) -> None:
    for draft in history(*revisions).drafts(now=now):
        retention = measure_retention(draft, window=HOUR, now=now)
        rewritten = measure_rewrites(draft, window=HOUR, now=now)
        assert not (retention.pending and rewritten.agent_revisions)
        assert not (retention.added and rewritten.pending)
        assert rewritten.followed or retention.kept == retention.added


@given(histories, histories)
def test_histories_that_follow_each_other_add_up(first: list[Revision], second: list[Revision]) -> None:
    # Between them, a person starts anew when no draft's window is open, so that neither tells of the other's drafts.
    pause = [revision(300, "person", "anew\n")]
    later = [each.model_copy(update={"at": each.at + timedelta(minutes=400)}) for each in second]
    whole = measure_retention(history(*first, *pause, *later), window=HOUR)
    parts = [measure_retention(history(*each), window=HOUR) for each in (first, [*pause, *later])]
    assert whole.added == sum(part.added for part in parts)
    assert whole.kept == sum(part.kept for part in parts)


@given(histories, st.integers(0, 20))
def test_a_later_reading_never_forgets_what_was_added(revisions: list[Revision], tens: int) -> None:
    early, late = (
        measure_retention(history(*revisions), window=HOUR, now=minutes(now)) for now in (tens * 10, tens * 10 + 10)
    )
    assert early.added <= late.added
    assert early.kept <= late.kept
    assert early.added + early.pending <= late.added + late.pending


# -- values ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fields",
    [
        {"added": 1, "kept": 2},
        {"added": 2, "kept": 1, "share": 0.4},
        {"added": 0, "kept": 0, "share": 0.0},
        {"added": 2, "kept": 1, "share": None},
        {"added": -1, "kept": -1},
        {"added": 1, "kept": -1},
        {"added": 1, "kept": 0, "pending": -1},
        {"added": 1.5, "kept": 1},
    ],
)
def test_what_contradicts_itself_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Retention(**fields)


def test_the_share_follows_from_the_counts() -> None:
    assert Retention(added=3, kept=1).share == 1 / 3
    assert Retention(added=0, kept=0).share is None


def test_only_what_says_something_is_printed() -> None:
    assert str(Retention(added=4, kept=3)) == "added=4 kept=3 share=0.75"
    assert str(Retention(added=0, kept=0, pending=8)) == "added=0 kept=0 share=None pending=8"
    assert str(Retention(added=4, kept=3, compared="tokens/1")) == "added=4 kept=3 share=0.75 compared='tokens/1'"


def test_a_value_comes_back_from_its_json_as_it_was() -> None:
    for found in (Retention(added=3, kept=1, pending=2, compared="tokens/1"), Retention(added=0, kept=0)):
        assert Retention.model_validate_json(found.model_dump_json()) == found


# -- the evaluator ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "version"),
    [
        ({}, "1:1209600s"),
        ({"window": HOUR}, "1:3600s"),
        ({"window": timedelta(seconds=0.1)}, "1:0.1s"),
        ({"window": HOUR, "normalize": True}, "1:3600s:normalize"),
    ],
)
def test_the_version_has_every_option_that_changes_answers(settings: dict[str, Any], version: str) -> None:
    assert retention_evaluator(**settings).version == version


def test_the_evaluator_reads_histories_and_drafts() -> None:
    whole = history(AGENT, revision(5, "person", "one\r\n"), user="ada")
    verdict = retention_evaluator(window=HOUR, normalize=True).evaluate_inline(whole)
    assert isinstance(verdict, Verdict)
    assert (verdict.evaluator, verdict.as_of, verdict.about) == ("retention", None, whole.about())
    assert {score.name: score.value for score in scores(verdict)} == {
        "retention.added": 8,
        "retention.kept": 4,
        "retention.share": 0.5,
        "retention.pending": 0,
        "retention.edited": None,
        "retention.compared": None,
    }
    (draft,) = whole.drafts()
    part = retention_evaluator(window=HOUR, now=minutes(30)).evaluate_inline(draft)
    assert isinstance(part, Verdict)
    assert (part.as_of, part.value.pending) == (minutes(30), 8)
    assert part.about is not None
    assert (part.about.kind, part.about.session, part.about.user) == ("draft", "brief", "ada")


def varied(number: int) -> History:
    begun = START + timedelta(days=number)
    made = [None, "a line\nthat stands\n", "a line\nthat stood, nearly\n", "all of it is new now", ""][number % 5]
    people = [] if made is None else [Revision(at=begun + timedelta(days=number % 3), role="person", text=made)]
    agent = Revision(at=begun, role="agent", text="a line\nthat stands\n" if number % 6 else "")
    return History(id=f"h{number}", user=f"u{number % 3}", revisions=[agent, *people])


class TestMeasure(MeasureContract):
    measure = measure
    inputs: ClassVar[list[History]] = [varied(number) for number in range(20)]
    now = START + timedelta(days=25)
    other_settings: ClassVar[dict[str, Any]] = {"window": timedelta(days=1)}


class TestEvaluator(EvaluatorContract):
    evaluator = retention_evaluator(now=START + timedelta(days=12))
    inputs: ClassVar[list[History | Draft]] = [*map(varied, range(12)), *varied(3).drafts(), *varied(9).drafts()]


def test_the_measure_names_its_window_and_shares_its_split_with_rewrites() -> None:
    assert measure.split is rewrites.split is split_drafts
    headline, edited = measure.summaries(window=HOUR)
    assert (headline.name, headline.title) == ("retention", "agent's text kept after 1h")
    assert edited.name == "retention_edited"


def test_of_edited_drafts_only_those_count_that_a_person_revised() -> None:
    edited = history(AGENT, revision(5, "person", "one\n"), user="edited")
    untouched = history(AGENT, user="untouched")
    deletes = history(revision(-1, "person", "one\ntwo\n"), revision(0, "agent", "one\n"), revision(1, "person", ""))
    pending = history(revision(90, "agent", "new\n"), user="pending")
    evaluator = retention_evaluator(window=HOUR, now=minutes(100))
    results = [
        evaluator.evaluate_inline(draft) for each in (edited, untouched, deletes, pending) for draft in each.drafts()
    ]
    found = retention_of_edited.estimate(results)
    assert (found.n, found.counts) == (1, {"sum": 4, "total": 8})
    assert found.left_out == {"not edited": 1, "nothing added": 1, "pending": 1}
    assert retention_of_edited.estimate([evaluator.evaluate_inline(edited)]).left_out == {"unknown": 1}


def test_a_draft_and_what_became_of_it_are_aligned_once_for_both_measures() -> None:
    before = "".join(f"line {number}\n" for number in range(40))
    agents, persons = before.replace("7\n", "7 of them\n"), before.replace("7\n", "7 of those\n")
    (draft,) = history(revision(-1, "person", before), revision(0, "agent", agents)).drafts()
    draft = draft.model_copy(update={"people": [revision(1, "person", persons)]})
    aligned = SHARE_CHANGED._align_lines
    for first, second in ((rewrite_evaluator(), retention_evaluator()), (retention_evaluator(), rewrite_evaluator())):
        aligned.cache_clear()
        for evaluator in (first, second):
            evaluator.evaluate_inline(draft)
        assert (aligned.cache_info().misses, aligned.cache_info().hits) == (2, 1)
    assert aligned.cache_info().maxsize == 2  # texts are large, and these stay in memory


# -- the summary -----------------------------------------------------------------------------------------------------


def verdict(number: int, session: str, **fields: int) -> Verdict[Retention]:
    return Verdict(Retention(**fields), "retention", "1:3600s", About("draft", str(number), session=session))


def test_characters_are_pooled_and_drafts_are_counted() -> None:
    results = [
        verdict(1, "a", added=10, kept=5),
        verdict(2, "a", added=30, kept=30),
        verdict(3, "b", added=7, kept=0),
        verdict(4, "b", added=0, kept=0, pending=53),
        verdict(5, "c", added=0, kept=0),
        verdict(6, "d", added=0, kept=0, pending=0),
    ]
    estimate = retention_share.estimate(results)
    # 5 + 30 + 0 of 10 + 30 + 7, and 53 more to come: all of them lost, or all of them kept.
    assert estimate.counts == {"sum": 35, "total": 47}
    assert estimate.value == 35 / 47
    assert estimate.bounds == (35 / 100, 88 / 100)
    assert (estimate.n, estimate.clusters, estimate.clustered_by) == (3, 2, {"history": 2})
    assert estimate.left_out == {"nothing added": 2, "pending": 1}
    assert estimate.low is not None
    assert estimate.high is not None
    assert 0 < estimate.low < 35 / 47 < estimate.high < 1
    assert "3 drafts of 2 histories" in str(estimate)
    assert "74.5%" in str(estimate)  # 35 / 47
    assert retention_share.estimate(results[:3]).bounds == (35 / 47, 35 / 47)
    assert retention_share.estimate([*results, Failure("broke")]).bounds == (0, 1)


def test_a_pooled_share_is_exact_however_large() -> None:
    values = [Retention(added=3**40, kept=2 * 3**39), Retention(added=3, kept=1)]
    estimate = retention_share.estimate(values)
    assert estimate.counts == {"sum": 2 * 3**39 + 1, "total": 3**40 + 3}
    assert all(type(count) is int for count in estimate.counts.values())


def test_only_pending_drafts_have_no_share_yet() -> None:
    estimate = retention_share.estimate([Retention(added=0, kept=0, pending=8)])
    assert (estimate.value, estimate.status, estimate.bounds) == (None, "undefined", (0, 1))
    assert estimate.left_out == {"pending": 1}


def test_a_history_may_be_pending_in_part() -> None:
    estimate = retention_share.estimate([Retention(added=8, kept=2, pending=2)])
    assert (estimate.value, estimate.n, estimate.bounds) == (0.25, 1, (2 / 10, 4 / 10))
    assert estimate.left_out == {"pending": 1}


# -- a real log ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real_histories(real_logs: Path) -> list[History]:
    rows = [json.loads(line) for line in (real_logs / "aider_history" / "histories.jsonl").read_bytes().splitlines()]
    fields = ("at", "role", "text")
    return [
        History.model_validate(
            {"id": row["id"], "revisions": [{name: each[name] for name in fields} for each in row["revisions"]]}
        )
        for row in rows
    ]


@pytest.mark.parametrize(
    ("window", "followed", "rewritten", "kept"),
    [
        (timedelta(minutes=10), 67, 5, 92_918),
        (HOUR, 90, 13, 91_339),
        (timedelta(days=1), 100, 16, 91_209),
        (timedelta(days=7), 109, 21, 90_946),
        (timedelta(days=14), 112, 21, 90_947),
    ],
)
def test_real_drafts_are_rewritten_and_retained_as_known(
    real_histories: list[History], window: timedelta, followed: int, rewritten: int, kept: int
) -> None:
    drafts = [draft for whole in real_histories for draft in split_drafts(whole, None)]
    rewrites_found = [measure_rewrites(draft, window=window) for draft in drafts]
    assert sum(found.followed or 0 for found in rewrites_found) == followed
    assert rewrite_rate.estimate(rewrites_found).counts == {"hits": rewritten, "total": 295}
    retention_found = [measure_retention(draft, window=window) for draft in drafts]
    estimate = retention_share.estimate(retention_found)
    assert estimate.counts == {"sum": kept, "total": 96_760}
    assert (estimate.n, estimate.left_out) == (263, {"nothing added": 32})
    assert all(found.compared is None for found in retention_found)


def test_real_histories_are_retained_as_defined(real_histories: list[History]) -> None:
    week = timedelta(days=7)
    sums = Counter[str]()
    for whole in real_histories:
        found = measure_retention(whole, window=week)
        assert (found.added, found.kept) == reference(whole, week)
        sums.update(added=found.added, kept=found.kept)
    assert sums == {"added": 96_760, "kept": 90_946}


def test_every_real_revision_is_aligned_as_defined(real_histories: list[History]) -> None:
    for whole in real_histories[:16]:
        for first, second in pairwise(whole.revisions):
            matches = SHARE_CHANGED.align(first.text, second.text).matches
            places = [
                {place for each in matches for place in range(each[side], each[side] + each[2])} for side in (0, 1)
            ]
            assert tuple(places) == same_places(first.text, second.text)

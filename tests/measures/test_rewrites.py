"""Rewrites: which of the agent's revisions people rewrote, at exact windows, per history and per draft alike."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from evalr import Failure, InputError, Verdict, scores
from evalr.measures import (
    Draft,
    History,
    Revision,
    Rewrites,
    followed_rate,
    measure_rewrites,
    rewrite_evaluator,
    rewrite_rate,
    share_changed,
    time_to_rewrite,
)
from evalr.measures.rewrites import measure

START = datetime(2026, 9, 28, 9, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
DRAFT = "We ship the new page on Friday."
REWRITTEN = "Legal has to sign off before anything goes live."
TOUCHED = "We ship the new page on Fridays."


def minutes(number: float) -> datetime:
    return START + timedelta(minutes=number)


def revision(minute: float, role: str, text: str) -> Revision:
    return Revision(at=minutes(minute), role=role, text=text)  # type: ignore[arg-type]


def history(*revisions: Revision, **fields: Any) -> History:
    return History(id="brief", revisions=list(revisions), **fields)


def rewrites(*revisions: Revision, now: float | None = None, **fields: Any) -> tuple[int, int, int, int | None]:
    """(decided, rewritten, pending, followed)"""
    moment = None if now is None else minutes(now)
    found = measure_rewrites(history(*revisions, **fields), window=HOUR, now=moment)
    return found.agent_revisions, found.rewritten, found.pending, found.followed


def of_draft(*revisions: Revision, now: float | None = None) -> tuple[float | None, str | None]:
    moment = None if now is None else minutes(now)
    (draft,) = history(*revisions).drafts(now=moment)[:1]
    found = measure_rewrites(draft, window=HOUR, now=moment)
    return found.after, found.ended


# -- what rewrites ---------------------------------------------------------------------------------------------------


def test_the_texts_of_these_tests_change_as_much_as_they_should() -> None:
    assert share_changed(DRAFT, REWRITTEN) > 0.5
    assert 0 < share_changed(DRAFT, TOUCHED) < 0.2


def test_a_rewrite_at_exactly_the_window_counts_and_a_moment_later_does_not() -> None:
    assert rewrites(revision(0, "agent", DRAFT), revision(60, "person", REWRITTEN)) == (1, 1, 0, 1)
    late = Revision(at=minutes(60) + timedelta(microseconds=1), role="person", text=REWRITTEN)
    assert rewrites(revision(0, "agent", DRAFT), late) == (1, 0, 0, 0)


def test_a_small_edit_follows_and_does_not_rewrite() -> None:
    assert rewrites(revision(0, "agent", DRAFT), revision(5, "person", TOUCHED)) == (1, 0, 0, 1)


def test_the_threshold_itself_rewrites() -> None:
    before, after = "abcdefghij", "abcdefghXY"
    changed = share_changed(before, after)
    pair = history(revision(0, "agent", before), revision(5, "person", after))
    assert measure_rewrites(pair, window=HOUR, threshold=changed).rewritten == 1
    assert measure_rewrites(pair, window=HOUR, threshold=changed + 1e-9).rewritten == 0


def test_of_several_revisions_by_people_the_last_in_the_window_counts() -> None:
    agent = revision(0, "agent", DRAFT)
    undone = (agent, revision(5, "person", REWRITTEN), revision(10, "person", DRAFT))
    assert rewrites(*undone) == (1, 0, 0, 1)
    assert rewrites(agent, revision(5, "person", TOUCHED), revision(10, "person", REWRITTEN)) == (1, 1, 0, 1)
    assert rewrites(agent, revision(5, "person", REWRITTEN), revision(61, "person", DRAFT)) == (1, 1, 0, 1)


def test_only_people_rewrite_and_only_before_the_agent_writes_again() -> None:
    agent, again = revision(0, "agent", DRAFT), revision(10, "agent", DRAFT)
    assert rewrites(agent, revision(5, "tool", REWRITTEN)) == (1, 0, 0, 0)
    assert rewrites(agent, again, revision(20, "person", REWRITTEN)) == (2, 1, 0, 1)
    assert rewrites(agent, revision(5, "person", REWRITTEN), again) == (2, 1, 0, 1)


def test_ties_in_time_keep_the_order_given() -> None:
    agent, again, person = revision(0, "agent", DRAFT), revision(5, "agent", "x"), revision(5, "person", REWRITTEN)
    assert of_draft(agent, person, again) == (300, "rewritten")
    assert of_draft(agent, again, person) == (300, "superseded")
    assert rewrites(revision(0, "person", REWRITTEN), agent) == (1, 0, 0, 0)
    assert rewrites(agent, revision(0, "person", REWRITTEN)) == (1, 1, 0, 1)


def test_a_history_without_the_agent_has_no_rate() -> None:
    assert rewrites() == (0, 0, 0, 0)
    found = measure_rewrites(history(revision(0, "person", DRAFT)), window=HOUR)
    assert (found.agent_revisions, found.rate) == (0, None)


# -- reading times ---------------------------------------------------------------------------------------------------


def test_a_draft_is_pending_until_its_window_has_passed() -> None:
    agent, person = revision(0, "agent", DRAFT), revision(30, "person", REWRITTEN)
    assert rewrites(agent, person, now=29) == (0, 0, 1, 0)
    assert rewrites(agent, person, now=59) == (0, 0, 1, 0)
    assert rewrites(agent, person, now=60) == (1, 1, 0, 1)
    assert rewrites(agent, person, now=-1) == (0, 0, 0, 0)


def test_a_draft_is_decided_when_the_agent_writes_again() -> None:
    agent, person, again = revision(0, "agent", DRAFT), revision(5, "person", REWRITTEN), revision(10, "agent", DRAFT)
    assert rewrites(agent, person, again, now=9) == (0, 0, 1, 0)
    assert rewrites(agent, person, again, now=10) == (1, 1, 1, 1)


def test_without_a_reading_time_nothing_is_pending() -> None:
    assert rewrites(revision(0, "agent", DRAFT)) == (1, 0, 0, 0)
    assert rewrites(revision(0, "agent", DRAFT), read_at=minutes(30)) == (0, 0, 1, 0)
    assert rewrites(revision(0, "agent", DRAFT), read_at=minutes(30), now=600) == (0, 0, 1, 0)
    assert rewrites(revision(0, "agent", DRAFT), revision(40, "person", REWRITTEN), read_at=minutes(30))[2] == 1


def test_a_draft_lasts_until_it_was_rewritten_or_superseded_or_its_window_ended() -> None:
    agent = revision(0, "agent", DRAFT)
    assert of_draft(agent, revision(5, "person", REWRITTEN)) == (300, "rewritten")
    assert of_draft(agent, revision(5, "person", TOUCHED), revision(7, "agent", DRAFT)) == (420, "superseded")
    assert of_draft(agent, revision(60, "agent", DRAFT)) == (3600, "superseded")
    assert of_draft(agent, revision(61, "agent", DRAFT)) == (3600, None)
    assert of_draft(agent) == (3600, None)
    assert of_draft(agent, now=20) == (1200, None)
    found = measure_rewrites(history(agent, revision(5, "person", REWRITTEN)), window=HOUR)
    assert (found.after, found.ended) == (None, None)  # a history is not one draft


# -- per draft and per history ---------------------------------------------------------------------------------------

texts = st.sampled_from([DRAFT, REWRITTEN, TOUCHED, "", "one\ntwo\n", "one\nthree\n"])
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


@given(histories, moments)
def test_drafts_together_say_what_their_history_says(revisions: list[Revision], now: datetime | None) -> None:
    whole = history(*revisions)
    found = measure_rewrites(whole, window=HOUR, now=now)
    parts = [measure_rewrites(draft, window=HOUR, now=now) for draft in whole.drafts(now=now)]
    assert sum(part.agent_revisions for part in parts) == found.agent_revisions
    assert sum(part.rewritten for part in parts) == found.rewritten
    assert sum(part.pending for part in parts) == found.pending
    assert sum(part.followed or 0 for part in parts) == found.followed
    assert rewrite_rate(parts) == rewrite_rate([found])
    assert followed_rate(parts) == followed_rate([found])


@given(histories, st.integers(-1, 20).map(lambda tens: minutes(tens * 10)))
def test_a_draft_split_later_is_measured_as_at_its_reading_time(revisions: list[Revision], now: datetime) -> None:
    whole = history(*revisions)
    split_then = [measure_rewrites(draft, window=HOUR, now=now) for draft in whole.drafts(now=now)]
    split_later = [draft for draft in whole.drafts() if draft.written <= now]
    assert [measure_rewrites(draft, window=HOUR, now=now) for draft in split_later] == split_then


def by_the_page(revisions: list[Revision]) -> int:
    ordered = sorted(revisions, key=lambda each: each.at)
    count = 0
    for place, written in enumerate(ordered):
        if written.role != "agent":
            continue
        rest = ordered[place + 1 :]
        agents = [index for index, later in enumerate(rest) if later.role == "agent"]
        people = [later for later in rest[: agents[0] if agents else None] if later.role == "person"]
        soon = [later for later in people if later.at - written.at <= HOUR]
        count += bool(soon) and share_changed(written.text, soon[-1].text) >= 0.2
    return count


@given(histories)
def test_random_histories_are_rewritten_as_the_page_says(revisions: list[Revision]) -> None:
    found = measure_rewrites(history(*revisions), window=HOUR)
    assert found.rewritten == by_the_page(revisions)
    assert found.agent_revisions == sum(each.role == "agent" for each in revisions)


@given(histories, st.integers(0, 20))
def test_a_later_reading_never_forgets_a_draft(revisions: list[Revision], tens: int) -> None:
    early, late = (
        measure_rewrites(history(*revisions), window=HOUR, now=minutes(now)) for now in (tens * 10, tens * 10 + 10)
    )
    assert early.agent_revisions <= late.agent_revisions
    assert early.agent_revisions + early.pending <= late.agent_revisions + late.pending
    assert early.rewritten <= late.rewritten


# -- values ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fields",
    [
        {"agent_revisions": 1, "rewritten": 2},
        {"agent_revisions": 2, "rewritten": 1, "rate": 0.4},
        {"agent_revisions": 0, "rewritten": 0, "rate": 0.0},
        {"agent_revisions": 2, "rewritten": 1, "rate": None},
        {"agent_revisions": 2, "rewritten": 1, "followed": 0},
        {"agent_revisions": 2, "rewritten": 1, "followed": 3},
        {"agent_revisions": -1, "rewritten": 0},
        {"agent_revisions": 1, "rewritten": 0, "pending": -1},
        {"agent_revisions": 1, "rewritten": 0, "after": -1},
    ],
)
def test_what_contradicts_itself_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Rewrites(**fields)


def test_the_rate_follows_from_the_counts() -> None:
    assert Rewrites(agent_revisions=3, rewritten=1).rate == 1 / 3
    assert Rewrites(agent_revisions=0, rewritten=0).rate is None


def test_what_is_printed_is_what_the_page_shows() -> None:
    assert str(Rewrites(agent_revisions=2, rewritten=1, followed=1)) == "agent_revisions=2 rewritten=1 rate=0.5"
    assert str(Rewrites(agent_revisions=0, rewritten=0)) == "agent_revisions=0 rewritten=0 rate=None"
    assert (
        str(Rewrites(agent_revisions=2, rewritten=1, pending=2)) == "agent_revisions=2 rewritten=1 rate=0.5 pending=2"
    )
    assert str(Rewrites(agent_revisions=1, rewritten=0, compared="tokens/1")).endswith(" compared='tokens/1'")
    assert repr(Rewrites(agent_revisions=2, rewritten=1)) == "Rewrites(agent_revisions=2, rewritten=1, rate=0.5)"


def test_a_value_comes_back_from_its_json_as_it_was() -> None:
    for found in (
        Rewrites(agent_revisions=3, rewritten=1, pending=2, followed=2),
        Rewrites(agent_revisions=0, rewritten=0),
    ):
        assert Rewrites.model_validate_json(found.model_dump_json()) == found


@pytest.mark.parametrize("threshold", [0, -0.1, 1.1, float("nan")])
def test_a_threshold_is_a_share_of_a_text(threshold: float) -> None:
    with pytest.raises(InputError, match="must be a share of a text"):
        measure_rewrites(history(), threshold=threshold)
    with pytest.raises(InputError, match="must be a share of a text"):
        rewrite_evaluator(threshold=threshold)


@pytest.mark.parametrize("window", [timedelta(0), -HOUR, 3600])
def test_a_window_is_a_positive_timedelta(window: Any) -> None:
    with pytest.raises(InputError, match="must be a positive timedelta"):
        measure_rewrites(history(), window=window)
    with pytest.raises(InputError, match="must be a positive timedelta"):
        rewrite_evaluator(window=window)


# -- the evaluator ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "version"),
    [
        ({"window": HOUR}, "2:3600s:0.2"),
        ({}, "2:1209600s:0.2"),
        ({"window": timedelta(seconds=0.1)}, "2:0.1s:0.2"),
        ({"window": HOUR, "threshold": 0.30000000000000004}, "2:3600s:0.30000000000000004"),
        ({"window": HOUR, "threshold": 1}, "2:3600s:1.0"),
        ({"window": HOUR, "normalize": True}, "2:3600s:0.2:normalize"),
    ],
)
def test_the_version_has_every_option_that_changes_answers(settings: dict[str, Any], version: str) -> None:
    assert rewrite_evaluator(**settings).version == version


def test_normalising_is_a_choice() -> None:
    pair = history(revision(0, "agent", "caf\u00e9\r\nbar\r\n"), revision(5, "person", "cafe\u0301\nbar\n"))
    assert measure_rewrites(pair, window=HOUR).rewritten == 1
    assert measure_rewrites(pair, window=HOUR, normalize=True).rewritten == 0


def test_the_evaluator_reads_histories_and_drafts() -> None:
    whole = history(revision(0, "agent", DRAFT), revision(5, "person", REWRITTEN), user="ada")
    evaluator = rewrite_evaluator(window=HOUR)
    verdict = asyncio.run(evaluator.evaluate(whole))
    assert isinstance(verdict, Verdict)
    assert (verdict.evaluator, verdict.as_of, verdict.about) == ("rewrites", None, whole.about())
    assert {score.name: score.value for score in scores(verdict)} | {"rewrites.rate": 1.0} == {
        "rewrites.agent_revisions": 1,
        "rewrites.rewritten": 1,
        "rewrites.rate": 1.0,
        "rewrites.pending": 0,
        "rewrites.followed": 1,
        "rewrites.after": None,
        "rewrites.ended": None,
        "rewrites.compared": None,
    }
    (draft,) = whole.drafts()
    part = rewrite_evaluator(window=HOUR, now=minutes(600)).evaluate_inline(draft)
    assert isinstance(part, Verdict)
    assert (part.as_of, part.value.after, part.value.ended) == (minutes(600), 300, "rewritten")
    assert part.about is not None
    assert (part.about.kind, part.about.session, part.about.user) == ("draft", "brief", "ada")


# -- summaries -------------------------------------------------------------------------------------------------------


def test_rates_pool_revisions_and_count_pending_ones() -> None:
    values = [
        Rewrites(agent_revisions=3, rewritten=1, followed=2, pending=1),
        Rewrites(agent_revisions=1, rewritten=1, followed=1),
        Rewrites(agent_revisions=0, rewritten=0, followed=0),
    ]
    estimate = rewrite_rate.estimate(values)
    assert (estimate.value, estimate.n, estimate.left_out) == (0.5, 4, {"pending": 1})
    assert estimate.bounds == (2 / 5, 3 / 5)
    assert (estimate.clusters, estimate.clustered_by) == (2, {"history": 2})
    assert "4 drafts of 2 histories" in str(estimate)
    assert followed_rate(values) == 0.75
    assert rewrite_rate.estimate([*values, Failure("broke")]).bounds == (0, 1)


def test_whether_people_followed_may_be_unknown() -> None:
    values = [Rewrites(agent_revisions=2, rewritten=1), Rewrites(agent_revisions=2, rewritten=0, followed=1)]
    estimate = followed_rate.estimate(values)
    assert (estimate.value, estimate.left_out, estimate.bounds) == (0.5, {"unknown": 2}, (1 / 4, 3 / 4))


def test_drafts_of_one_history_are_one_cluster() -> None:
    long_history = history(*(revision(minute, "agent" if minute % 2 else "person", REWRITTEN) for minute in range(9)))
    evaluator = rewrite_evaluator(window=HOUR)
    results = [evaluator.evaluate_inline(draft) for draft in long_history.drafts()]
    estimate = rewrite_rate.estimate(results)
    assert (estimate.n, estimate.clusters, estimate.clustered_by) == (4, 1, {"history": 1})


def test_the_agent_writing_again_is_a_competing_end() -> None:
    values = [
        Rewrites(agent_revisions=1, rewritten=1, followed=1, after=600, ended="rewritten"),
        Rewrites(agent_revisions=1, rewritten=0, followed=0, after=60, ended="superseded"),
        Rewrites(agent_revisions=1, rewritten=0, followed=0, after=3600),
        Rewrites(agent_revisions=0, rewritten=0, followed=0, pending=1, after=30),
    ]
    estimate = time_to_rewrite.estimate(values)
    assert estimate.value == 600
    assert estimate.counts == {"ended": 1, "ended_otherwise": 1, "censored": 2}
    assert time_to_rewrite.estimate([Rewrites(agent_revisions=2, rewritten=1)]).left_out == {"unknown": 1}


def test_the_measure_splits_histories_and_names_its_window() -> None:
    assert measure.split is not None
    assert measure.evaluator is not None
    whole = history(revision(0, "agent", DRAFT), revision(5, "person", REWRITTEN), revision(6, "agent", DRAFT))
    drafts = list(measure.split(whole, minutes(6)))
    assert all(isinstance(draft, Draft) for draft in drafts)
    evaluator = measure.evaluator(now=minutes(6), window=HOUR, threshold=0.2)
    results = [evaluator.evaluate_inline(draft) for draft in drafts]
    headline, followed, first_tenth = measure.summaries(window=HOUR, threshold=0.2)
    assert (headline.name, headline.title) == ("rewrites", "rewritten within 1h")
    assert (headline(results), followed(results), first_tenth(results)) == (1, 1, 300)


def test_a_pending_draft_that_was_rewritten_already_is_not_taken_for_untouched() -> None:
    whole = history(revision(0, "agent", DRAFT), revision(5, "person", REWRITTEN))
    (draft,) = whole.drafts(now=minutes(30))
    verdict = measure_rewrites(draft, window=HOUR, now=minutes(30))
    assert (verdict.agent_revisions, verdict.pending) == (0, 1)
    assert (verdict.ended, verdict.after) == ("rewritten", 300)


# -- a real log ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("window", "followed", "rewritten"),
    [(timedelta(minutes=10), 67, 5), (HOUR, 90, 13), (timedelta(days=1), 100, 16), (timedelta(days=7), 109, 21)],
)
def test_real_histories_are_followed_and_rewritten_as_known(
    real_logs: Path, window: timedelta, followed: int, rewritten: int
) -> None:
    found = []
    for line in (real_logs / "aider_history" / "histories.jsonl").read_bytes().splitlines():
        row = json.loads(line)
        revisions = [{key: each[key] for key in ("at", "role", "text")} for each in row["revisions"]]
        found.append(measure_rewrites(History.model_validate({"id": row["id"], "revisions": revisions}), window=window))
    estimate = rewrite_rate.estimate(found)
    assert estimate.counts == {"hits": rewritten, "total": 295}
    assert followed_rate.estimate(found).counts == {"hits": followed, "total": 295}
    assert all(each.compared is None for each in found)

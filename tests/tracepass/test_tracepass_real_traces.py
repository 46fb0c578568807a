"""What the heuristics and transforms find in real traces, beside the marks that the data itself has.

`EVALR_DATA` names a folder with `entire_transcripts` (coding agents, with the tool errors that the agent's own program
marked) and `whowhen` (groups of agents that failed, whose terminal says how each program ended).
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from evalr.estimates.estimate import Estimate
from evalr.inputs import Transcript, Turn
from evalr.tracepass import (
    HEURISTIC_SIGNALS,
    Account,
    LocalTransport,
    Passes,
    Signal,
    SignalRates,
    heuristics,
    open_store,
    pass_rates,
    plan,
    reading,
    transform,
)

ME = Account("ann")

DATA = os.environ.get("EVALR_DATA")
pytestmark = pytest.mark.skipif(not DATA, reason="EVALR_DATA names no folder of real traces")


def lines(*parts: str) -> Iterator[dict[str, Any]]:
    with Path(DATA or "", *parts).open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def coding_sessions() -> Iterator[Transcript]:
    for line in lines("entire_transcripts", "transcripts.jsonl"):
        turns = [
            {**{name: value for name, value in turn.items() if name != "tool"}, "metadata": {"tool": turn.get("tool")}}
            for turn in line["turns"]
        ]
        yield Transcript.model_validate({"id": line["id"], "request": line["request"], "turns": turns})


def group_chats() -> Iterator[Transcript]:
    for line in lines("whowhen", "whowhen_dev.jsonl"):
        turns = [
            Turn(
                role="tool" if turn["name"] == "Computer_terminal" else "agent",
                text=turn["text"],
                metadata={"name": turn["name"]},
            )
            for turn in line["turns"]
        ]
        yield Transcript(id=line["id"], request=line["question"], turns=turns)


def fired(name: str, traces: Iterator[Transcript]) -> list[tuple[str, int | None]]:
    signal, reflex = HEURISTIC_SIGNALS[name], heuristics()[name]
    rows = list(plan([signal]).rows(traces))
    predictions = reflex.predict([row.text for row in rows])
    assert isinstance(predictions, list)
    return [
        (row.item.convo_id, row.item.turn_index)
        for row, found in zip(rows, predictions, strict=True)
        if reading(signal, found).fired
    ]


def failure_windows(traces: Iterator[Transcript]) -> Counter[tuple[str, int | None]]:
    by = transform("tool_failure_window")
    made = plan([Signal(signal_id="any", model="any", display_name="Any", transform=by)])
    return Counter((row.item.convo_id, row.item.turn_index) for row in made.rows(traces))


def test_R6_every_tool_error_that_the_data_marks_has_its_window() -> None:
    marked = set()
    for line in lines("entire_transcripts", "transcripts.jsonl"):
        called = {turn.get("ref"): place for place, turn in enumerate(line["turns"]) if turn["kind"] == "tool_call"}
        marked |= {(line["id"], called[turn["ref"]]) for turn in line["turns"] if turn["kind"] == "tool_error"}
    found = failure_windows(coding_sessions())
    assert len(marked) == 17
    assert marked <= found.keys()
    # One more: a command that printed that its exit code was 1.
    assert len(found) == 18


def test_R6_every_program_that_failed_has_its_window() -> None:
    # Both sides read the exit code that the terminal printed: this shows that no window is lost, or misplaced.
    failed = sum(
        turn["text"].startswith("exitcode: 1")
        for line in lines("whowhen", "whowhen_dev.jsonl")
        for turn in line["turns"]
    )
    assert failed == sum(failure_windows(group_chats()).values()) == 44


def test_R2_a_loop_is_found_where_the_terminal_gave_the_same_answer_three_times() -> None:
    # No labels of people, and near to what the heuristic counts itself: recall of the plain case, and no precision.
    marked = set()
    for line in lines("whowhen", "whowhen_dev.jsonl"):
        said = Counter(turn["text"].strip() for turn in line["turns"] if turn["name"] == "Computer_terminal")
        if max(said.values(), default=0) >= 3:
            marked.add(line["id"])
    found = {convo for convo, _ in fired("heuristic-loop", group_chats())}
    assert marked <= found
    assert (len(marked), len(found)) == (3, 6)


def test_R2_no_loop_and_no_streak_is_found_in_the_coding_sessions() -> None:
    # Nobody has labelled them: this says what the heuristics do, and not that they are right.
    assert fired("heuristic-loop", coding_sessions()) == []
    assert fired("heuristic-tool-errors", coding_sessions()) == []


def test_R2_where_nothing_was_answered_people_interrupted() -> None:
    # "Within five turns" was chosen with these sessions in sight, so that the share holds for them alone.
    interrupted = {
        (line["id"], place)
        for line in lines("entire_transcripts", "transcripts.jsonl")
        for place, turn in enumerate(line["turns"])
        if turn["kind"] == "interrupt"
    }
    unanswered = fired("heuristic-no-answer", coding_sessions())
    soon = [
        (convo, turn)
        for convo, turn in unanswered
        if turn is not None and any((convo, turn + after) in interrupted for after in range(1, 6))
    ]
    assert (len(interrupted), len(unanswered), len(soon)) == (6, 6, 5)


def rates(names: list[str], traces: Iterator[Transcript], folder: Path) -> dict[str, SignalRates]:
    """The rates of a whole pass, planned, read, stored, and read back."""
    with closing(open_store(folder / "passes.db")) as store:
        run = Passes(ME, store, LocalTransport(heuristics()))
        found = run.run_sync(plan([HEURISTIC_SIGNALS[name] for name in names]), traces)
        assert found.status == "complete"
        listed = {each.convo_id for each in store.conversations(ME, flagged=True, limit=1_000)}
        records = list(store.results(ME))
    assert listed == {each.convo_id for each in records if each.fired}
    return {each.signal.signal_id: each for each in pass_rates(records, found)}


def limits(estimate: Estimate) -> tuple[float, float, float]:
    assert estimate.value is not None
    assert estimate.low is not None
    assert estimate.high is not None
    return round(estimate.low, 4), round(estimate.value, 4), round(estimate.high, 4)


def test_M1_the_rates_of_the_group_chats_with_their_intervals(tmp_path: Path) -> None:
    found = rates(["heuristic-loop", "heuristic-tool-errors"], group_chats(), tmp_path)
    loop, errors = found["heuristic-loop"], found["heuristic-tool-errors"]
    assert (loop.conversations.counts, loop.turns.counts) == ({"hits": 6, "total": 65}, {"hits": 9, "total": 407})
    # Wilson on 6 of 65, and over conversations where turns are counted.
    assert limits(loop.conversations) == (0.043, 0.0923, 0.1871)
    assert loop.turns.clustered_by == {"conversation": 65}
    assert limits(errors.conversations) == (0.0027, 0.0154, 0.0821)
    assert loop.coverage.share == errors.coverage.share == 1.0


def test_M1_the_rates_of_the_coding_sessions_with_their_intervals(tmp_path: Path) -> None:
    found = rates(["heuristic-loop", "heuristic-no-answer"], coding_sessions(), tmp_path)
    assert limits(found["heuristic-loop"].conversations) == (0.0, 0.0, 0.1611)
    unanswered = found["heuristic-no-answer"]
    assert limits(unanswered.conversations) == (0.1119, 0.25, 0.4687)
    assert "low_confidence" in unanswered.conversations.flags

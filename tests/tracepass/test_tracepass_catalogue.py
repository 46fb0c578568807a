"""The signals that come with it, one's own, and the files that hold them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from evalr.errors import DatasetError, InputError
from evalr.tracepass import (
    DEFAULT_SIGNALS,
    SIGNALS,
    Preset,
    Signal,
    availability,
    heuristics,
    load_signals,
    save_signals,
    signal,
    signals_like,
    transform,
)

NOW = datetime(2026, 12, 1, tzinfo=UTC)

MINE = Signal(
    signal_id="bad-handoff",
    model="handoff-2",
    display_name="Bad handoff",
    labels=("fine", "bad"),
    fires_on=("bad",),
    transform=transform("full_conversation").model_copy(update={"id": "short_trace", "version": 3, "max_tokens": 500}),
    thresholds={"bad": 0.7},
    monitor=True,
    created=NOW,
    updated=NOW,
)


def test_R7_the_seeds_nine_signals_have_its_transforms() -> None:
    user, agent = "user_message", "assistant_message"
    assert {name: each.transform.id for name, each in DEFAULT_SIGNALS.items()} == {
        "jailbreak": user,
        "guardrail": user,
        "incomplete-thought": user,
        "difficulty": user,
        "ambiguity": user,
        "domain": user,
        "user-frustration": user,
        "leaked-thinking": agent,
        "stuck-in-a-loop": agent,
    }
    assert all(each.source == "default" and each.model == name for name, each in DEFAULT_SIGNALS.items())


def test_R7_five_of_them_start_ticked_and_no_other() -> None:
    assert {name for name, each in SIGNALS.items() if each.enabled_by_default} == {
        "jailbreak",
        "guardrail",
        "user-frustration",
        "leaked-thinking",
        "stuck-in-a-loop",
    }


def test_R7_a_signal_of_ones_own_reads_user_chat_unless_it_says_otherwise() -> None:
    assert Signal(signal_id="s", model="m", display_name="S").transform == transform("user_message")
    assert MINE.transform.id == "short_trace"


def test_R3_a_signal_without_a_classifier_is_shown_with_the_reason() -> None:
    found = {each.signal.signal_id: each.reason for each in availability(SIGNALS.values(), heuristics())}
    assert {name for name, reason in found.items() if reason is None} == set(heuristics())
    assert found["jailbreak"] == (
        "no classifier named 'jailbreak' is configured: pass one of that name, or a service that has it"
    )


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("frustrated|looping", {"user-frustration", "stuck-in-a-loop", "heuristic-loop"}),
        ("THINK", {"leaked-thinking", "incomplete-thought", "heuristic-thinking-tags"} - {"incomplete-thought"}),
        ("^heuristic-", set(heuristics())),
        ("handoff", set()),
    ],
)
def test_B20_a_pattern_finds_signals_by_their_names_and_labels(pattern: str, expected: set[str]) -> None:
    assert {each.signal_id for each in signals_like(pattern)} == expected


def test_B20_a_pattern_that_is_none_is_an_error() -> None:
    with pytest.raises(InputError, match="no regular expression"):
        signals_like("(")


def test_B19_signals_and_presets_come_back_from_their_file(tmp_path: Path) -> None:
    preset = Preset(name="nightly", signals=("bad-handoff", "jailbreak"), monitor=True, created=NOW, updated=NOW)
    save_signals(tmp_path / "signals.json", [MINE], [preset])
    found = load_signals(tmp_path / "signals.json")
    assert found.signals == {"bad-handoff": MINE}
    assert found.presets == {"nightly": preset}
    assert preset.chosen(found.signals) == [MINE, SIGNALS["jailbreak"]]
    assert signal("bad-handoff", found.signals) is found.signals["bad-handoff"]


@pytest.mark.parametrize(
    ("signals", "presets", "words"),
    [
        ([MINE, MINE.model_copy(update={"model": "x"})], [], "two signals are named 'bad-handoff'"),
        ([SIGNALS["jailbreak"]], [], "another name"),
        ([], [Preset(name="p", signals=("nope",))], "no signal 'nope'"),
        ([], [Preset(name="p", signals=()), Preset(name="p", signals=("domain",))], "two presets are named 'p'"),
    ],
)
def test_B19_names_that_say_nothing_clear_are_refused(
    tmp_path: Path, signals: list[Signal], presets: list[Preset], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        save_signals(tmp_path / "signals.json", signals, presets)
    assert not (tmp_path / "signals.json").exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            {"type": "tracepass-signals", "format": 1, "signals": [{"signal_id": "s", "model": "m"}]},
            r"'s'.*display_name",
        ),
        (
            {
                "type": "tracepass-signals",
                "format": 1,
                "signals": [MINE.to_dict() | {"thresholds": {"bad": 2}}],
            },
            r"'bad-handoff'.*thresholds\.bad",
        ),
        ({"type": "tracepass-signals", "format": 1, "signals": {}}, "must be a list"),
        ({"type": "tracepass-signals", "format": 1, "presets": [3]}, "preset"),
    ],
)
def test_B19_a_file_that_cannot_be_used_says_where(tmp_path: Path, content: object, words: str) -> None:
    path = tmp_path / "signals.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(InputError, match=words):
        load_signals(path)


def test_B19_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text("{}", encoding="utf-8")
    with pytest.raises(DatasetError, match="something else"):
        load_signals(tmp_path / "other.json")
    with pytest.raises(DatasetError, match="cannot be read"):
        load_signals(tmp_path / "none.json")

"""What a report's page shows of passes: signals with their rates, coverage, and flagged conversations with chips."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tracepass_records import AT, record

import evalr
from evalr.logs import Cards, Cell, Figure, Further, Notice, Table
from evalr.tracepass import Result, write_records

NOW = datetime(2026, 12, 1, tzinfo=UTC)
ATTACK = "<script>alert(1)</script>\u202e{{ 7*7 }}"


def records() -> list[Result]:
    found = []
    for number in range(40):
        convo, fired = f"c{number}", number % 4 == 0
        for turn in range(2):
            score = 0.9 if fired and turn == 1 else 0.1
            found.append(record(convo, turn, score, user=f"u{number % 10}", truncated=turn == 0 and number == 3))
    found.append(record("c1", 2, error_type="timeout", user="u1"))
    for place, score in enumerate((0.999, 0.85, 0.75, 0.71)):
        name = f"other-{place}"
        found.append(
            record(
                "c4", 5, score, user="u4", signal_id=name, reflex_model=name, top_label=f"label-{place}", turn_index=5
            )
        )
    return found


def section(tmp_path: Path, given: list[Result], **asked: object) -> Further:
    path = tmp_path / "passes.jsonl"
    write_records(path, given)
    found = evalr.report(path, now=NOW, details=True, **asked)  # type: ignore[arg-type]
    return next(each for each in found.further if each.name == "passes")


def test_each_signal_has_its_rates_with_intervals_and_n(tmp_path: Path) -> None:
    table = section(tmp_path, records()).blocks[0]
    assert isinstance(table, Table)
    cells = dict(zip(table.columns, next(row for row in table.rows if row[0] == "loud"), strict=True))
    row = {name: cell if isinstance(cell, str) else cell.text for name, cell in cells.items()}
    flagged = cells["conversations flagged"]
    assert isinstance(flagged, Cell)
    assert (flagged.tip or "").startswith("10 of 40; 40 conversations")
    assert "95% interval: Wilson" in (flagged.method or "")
    # 10 of 40 conversations, 10 of 80 turns; the failed one is in no share.
    assert row["conversations flagged"].startswith("25.0% [")
    assert row["texts flagged"].startswith("12.5% [")
    assert [row[name] for name in ("reads", "of conversations", "of texts", "failed")] == ["User chat", "40", "80", "1"]


def test_what_could_not_be_read_is_drawn_with_its_counts(tmp_path: Path) -> None:
    figure = section(tmp_path, records()).blocks[1]
    assert isinstance(figure, Figure)
    assert "loud: 79 read whole, 1 cut to fit, 1 failed" in figure.says


def test_flagged_conversations_have_at_most_three_chips_the_highest_first(tmp_path: Path) -> None:
    found = section(tmp_path, records())
    cards = found.blocks[2]
    assert isinstance(cards, Cards)
    assert cards.total == len(cards.cards) == found.data["flagged"] == 10
    chips = {card.title: card.chips for card in cards.cards}
    assert chips["c4"] == ("label-0 99%", "loud 90%", "label-1 85%")
    assert chips["c8"] == ("loud 90%",)
    (c4,) = (card for card in cards.cards if card.title == "c4")
    assert ("turn 1", "loud: loud 90%") in c4.texts  # from 0, as the command counts


def test_only_what_the_report_counts_is_in_it(tmp_path: Path) -> None:
    given = [*records(), record("late", 0, 0.9, created_at=NOW + timedelta(days=1))]
    early = record("early", 0, 0.9, source_start_time=AT - timedelta(days=30), created_at=AT - timedelta(days=30))
    found = section(tmp_path, [*given, early], since=AT)
    assert found.data["flagged"] == 10


def test_where_nothing_fired_the_page_says_so(tmp_path: Path) -> None:
    found = section(tmp_path, [record(f"c{number}", 0) for number in range(3)])
    assert isinstance(found.blocks[2], Notice)


def test_ids_that_several_users_share_are_told_apart(tmp_path: Path) -> None:
    given = [record("c", 0, 0.9, user=user, request_id=user) for user in ("ann", "bob")]
    cards = section(tmp_path, given).blocks[2]
    assert isinstance(cards, Cards)
    assert [card.title for card in cards.cards] == ["c of bob", "c of ann"]


def test_the_screen_is_as_without_and_the_page_escapes_every_text(tmp_path: Path) -> None:
    pytest.importorskip("vl_convert", reason="pages need the extra evalr[report]")
    given = [
        record(ATTACK, 0, 0.9, signal_id=ATTACK, reflex_model="m", top_label=ATTACK, user=ATTACK, selected_labels=())
    ]
    path = tmp_path / "passes.jsonl"
    write_records(path, given)
    found = evalr.report(path, now=NOW, details=True)
    assert str(found) == str(evalr.report(path, now=NOW))
    page = found.to_html()
    assert "<script" not in page
    assert "flagged conversations" in page
    assert "\u202e" not in page

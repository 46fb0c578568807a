"""How long agents' lines stay: line by line, and as a page shows it of a repository."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from repositories import AGENT, PERSON, START, Story

import evalr
from evalr.inputs import History, Revision
from evalr.logs import Figure, Further, Table
from evalr.logs.git import lives
from evalr.logs.git.lives import Life, lives_of

DAY = timedelta(days=1)
NOW = START + 100 * DAY


def history(*told: tuple[str, int, str]) -> History:
    """A history of revisions, each of who wrote it, on which day, and its lines as letters."""
    return History(
        id="f",
        revisions=[
            Revision(at=START + day * DAY, role=role, text="\n".join(text) + "\n", attributes={"agent": "a"})  # type: ignore[arg-type]
            for role, day, text in told
        ],
    )


def lived(*told: tuple[str, int, str], now: datetime = NOW) -> list[tuple[int, str | None]]:
    """For how many days each line of an agent was there, and who took it out."""
    return [((each.until - each.born) // DAY, each.taken_by) for each in lives_of(history(*told), now)]


def test_a_line_lives_until_somebody_takes_it_out() -> None:
    told = ("agent", 0, "abcd"), ("person", 2, "abd"), ("agent", 5, "aexd")
    assert lived(*told) == [(100, None), (5, "agent"), (2, "person"), (100, None), (95, None), (95, None)]


def test_lines_that_were_there_before_are_nobodys() -> None:
    assert lived(("person", 0, "ab"), ("agent", 1, "abc"), ("person", 3, "bc")) == [(99, None)]


def test_an_edit_that_is_undone_took_nothing_out() -> None:
    told = ("agent", 0, "abc"), ("person", 2, "a"), ("person", 4, "abc")
    assert lived(*told) == [(100, None)] * 3
    assert lived(*told, ("person", 6, "ac")) == [(100, None), (6, "person"), (100, None)]


def test_a_moved_line_is_taken_out_and_deleting_the_file_takes_out_all() -> None:
    assert lived(("agent", 0, "abc"), ("person", 1, "bca")) == [(1, "person"), (100, None), (100, None)]
    assert lived(("agent", 0, "ab"), ("person", 3, "")) == [(3, "person"), (3, "person")]


def test_what_came_after_the_reading_time_does_not_exist_yet() -> None:
    told = ("agent", 0, "ab"), ("person", 3, "b"), ("agent", 5, "bc")
    assert lived(*told, now=START + 2 * DAY) == [(2, None), (2, None)]


texts = st.text(alphabet="abc", max_size=6)


@given(st.lists(st.tuples(st.sampled_from(["agent", "person"]), texts), max_size=6))
def test_lines_that_live_are_those_of_the_last_text_that_agents_wrote(told: list[tuple[str, str]]) -> None:
    found = lives_of(history(*((role, day, text) for day, (role, text) in enumerate(told))), NOW)
    alive = [life for life in found if life.taken_by is None]
    assert len(alive) <= len(told[-1][1]) if told else not found
    assert all(life.born <= life.until <= NOW for life in found)
    if all(role == "agent" for role, _ in told) and told:
        assert len(alive) == len(told[-1][1])


def test_texts_too_long_to_align_keep_equal_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    told = ("agent", 0, "xabab"), ("person", 2, "ybaab")
    monkeypatch.setattr(lives, "MOST_PAIRS", 1)
    assert [taken_by for _, taken_by in lived(*told)] == ["person", None, None, None, None]


# ---------------------------------------------------------------------------------------------------------------------
# On the page
# ---------------------------------------------------------------------------------------------------------------------


def lines(letters: str) -> str:
    return "".join(f"line {letter}\n\n" for letter in letters)


def section(path: Path, **asked: Any) -> list[Further]:
    story = Story()
    for number in range(6):
        story.commit({f"f{number}.py": lines("abcdefghij")}, by=AGENT, at=START + number * timedelta(hours=1))
    for number in range(3):
        story.commit({f"f{number}.py": lines("cdefghij")}, by=PERSON, at=START + (3 + number) * DAY)
    story.commit({"f5.py": lines("abcdefghi")}, by=AGENT, at=START + 20 * DAY)
    story.write(path / "repo")
    found = evalr.report(path / "repo", now=asked.pop("now", NOW), details=True, **asked)
    return [each for each in found.further if each.name == "lines"]


def test_a_page_has_the_curve_the_shares_by_then_and_the_files(tmp_path: Path) -> None:
    (found,) = section(tmp_path)
    curve, by_then, files = found.blocks
    assert isinstance(curve, Figure)
    assert isinstance(by_then, Table)
    assert isinstance(files, Table)
    assert "of 60 lines of 6 files, 53 still there" in (curve.footnote or "")
    assert "Kaplan-Meier" in (curve.footnote or "")
    rows = {str(row[0]): [getattr(cell, "text", cell) for cell in row[1:]] for row in by_then.rows}
    assert rows["1d"][0].startswith("100.0% [")
    # 6 of 60 lines went in a week, and another in thirty days.
    assert [rows["7d"][place].split(" ")[0] for place in range(3)] == ["90.0%", "10.0%", "0.0%"]
    assert [rows["30d"][place].split(" ")[0] for place in range(3)] == ["88.3%", "10.0%", "1.7%"]
    assert rows["30d"][3] == "53"
    assert "180d" not in rows
    assert [row[:6] for row in files.rows if row[0] in ("f0.py", "f5.py")] == [
        ("f0.py", files.rows[0][1], "10", "2 (20.0%)", "0 (0.0%)", "8 (80.0%)"),
        ("f5.py", files.rows[0][1], "10", "0 (0.0%)", "1 (10.0%)", "9 (90.0%)"),
    ]
    assert [row[3] for row in files.rows[:3]] == ["2 (20.0%)"] * 3


def test_a_period_takes_the_lines_that_came_in_it(tmp_path: Path) -> None:
    (found,) = section(tmp_path, since=START + timedelta(hours=3, minutes=30))
    assert found.data["lines"] == 20
    assert found.data["files"] == 2


def test_without_a_page_nothing_is_read_for_it(tmp_path: Path) -> None:
    story = Story()
    story.commit({"f.py": lines("ab")}, by=AGENT)
    story.write(tmp_path / "repo")
    assert evalr.report(tmp_path / "repo", now=NOW).further == ()


def test_lives_are_plain_data() -> None:
    (life,) = lives_of(history(("agent", 0, "a")), datetime(2030, 1, 1, tzinfo=UTC))
    assert life == Life("a", START, datetime(2030, 1, 1, tzinfo=UTC), None)

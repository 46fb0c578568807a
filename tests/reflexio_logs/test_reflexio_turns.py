"""Ordinary turns, which are summed up as the log has them, and the same turns read one by one: equal."""

from __future__ import annotations

import json
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from reflexio_odd import odd_log
from reflexio_writing import BEGIN

from evalr import report
from evalr.reflexio import impact, open_store
from evalr_reflexio import store as store_module
from evalr_reflexio.answers.impact import UNREAD
from evalr_reflexio.conversations import user_turns_of
from evalr_reflexio.rows import SessionRecord
from evalr_reflexio.speaking import Spoken, spoken
from evalr_reflexio.turns import OrdinaryTurns, ids_of, judged_turns, raw_roles_of, said_by

NOW = BEGIN + timedelta(days=12)
Counted = tuple[dict[str, int], dict[str, Any], dict[str, int]]


def sessions_of(path: Path, **asked: Any) -> tuple[list[SessionRecord], Counted]:
    """All sessions, and what was counted as left out or repaired."""
    with open_store(path) as store:
        account = store.account()
        records = list(store.sessions(account, **asked))
        left_out = account.left_out
        places = {reason: list(found) for reason, found in left_out.places.items()}
        return records, (dict(left_out.counts), places, dict(account.repaired))


def plain(said: Spoken) -> list[Any]:
    """What turns say, with the turns themselves taken apart."""

    def of_turn(turn: Any) -> tuple[Any, ...]:
        return (turn.interaction_id, turn.at, turn.role, turn.shadow_content, turn.citations, turn.learnings)

    with_shadow = [(of_turn(turn), has_message) for turn, has_message in said.with_shadow]
    return [*said[:4], with_shadow, [of_turn(turn) for turn in said.given], list(said.cited), said.is_all]


def differences(path: Path, now: datetime = NOW, **asked: Any) -> tuple[int, int]:
    """Compare both ways of reading; returns how many sessions have ordinary turns, and how many have others."""
    ordinary, counted = sessions_of(path, now=now, **asked)
    one_by_one, counted_so = sessions_of(path, **asked)
    assert counted == counted_so
    assert len(ordinary) == len(one_by_one)
    numbers = [0, 0]
    for mine, theirs in zip(ordinary, one_by_one, strict=True):
        turns = mine.interactions
        numbers[not isinstance(turns, OrdinaryTurns)] += bool(turns)
        assert plain(said_by(turns, now)) == plain(spoken(theirs.interactions, now))
        assert ids_of(turns) == [turn.interaction_id for turn in theirs.interactions]
        assert raw_roles_of(turns) == [turn.raw_role for turn in theirs.interactions]
        assert [user_turns_of(mine, row) for row in mine.outcomes] == [
            user_turns_of(theirs, row) for row in theirs.outcomes
        ]
        by_id = {turn.interaction_id: turn for turn in theirs.interactions}
        found = judged_turns(mine)
        for row in (*theirs.shadow_verdicts, *theirs.learning_verdicts):
            here, there = found.get(row.interaction or 0), by_id.get(row.interaction or 0)
            assert (here is None) == (there is None)
            if here is not None and there is not None:
                assert (here.at, here.citations, here.role) == (there.at, there.citations, there.role)
        mine.interactions = list(turns)
        assert mine == theirs
    return numbers[0], numbers[1]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("odd", [0, 0.01])
@pytest.mark.parametrize("without", [(), UNREAD])
def test_logs_of_a_seed(seed: int, odd: float, without: tuple[str, ...], tmp_path: Path) -> None:
    path = odd_log(tmp_path / "reflexio.db", seed, odd=odd, sessions=60)
    _, others = differences(path, without=without)
    assert others > 3  # times without a zone or out of order, roles in other spellings
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE interactions SET role = iif(interaction_id % 2, 'User', 'Agent')")
        for table in ("requests", "interactions"):
            in_order = f"strftime('%Y-%m-%dT%H:%M:%S+00:00', '2026-09-02', {table}.rowid || ' minutes')"
            connection.execute(f"UPDATE {table} SET created_at = {in_order}")
    connection.close()
    tidied, others = differences(path, without=without)
    assert tidied > 5 + others


def test_a_log_that_reflexio_wrote(newest_log: Path) -> None:
    ordinary, others = differences(newest_log, now=datetime(2026, 12, 1, tzinfo=UTC))
    assert ordinary > 0 == others


CELLS = [
    ("created_at", "2026-09-01T10:00:00"),
    ("created_at", "2026-09-01T10:00:00+02:00"),
    ("created_at", "2026-09-01"),
    ("created_at", "1970-01-01T00:00:00+00:00"),
    ("created_at", "9999-01-01T00:00:00+00:00"),
    ("created_at", "2026-12-31T00:00:00+00:00"),
    ("created_at", 1.5e9),
    ("created_at", "soon"),
    ("role", "USER "),
    ("role", "wizard"),
    ("role", b"Agent"),
    ("token_count", -1),
    ("token_count", "many"),
    ("token_count", None),
    ("content", b"bytes"),
    ("content", b"\xff"),
    ("content", b""),
    ("shadow_content", b"bytes"),
    ("shadow_content", b""),
    ("tools_used", "{}"),
    ("tools_used", "[1]"),
    ("tools_used", '[{"tool_name": 1}]'),
    ("tools_used", '[{"tool_name": "t", "status": 5}]'),
    ("tools_used", '[{"tool_name": "t", "status": null}]'),
    ("tools_used", "[NaN]"),
    ("tools_used", "null"),
    ("tools_used", ""),
    ("citations", "[1]"),
    ("citations", None),
    ("retrieved_learnings", '[{"kind": "tale", "learning_id": "1"}]'),
    ("retrieved_learnings", '[{"kind": "user_playbook", "learning_id": ""}]'),
    ("retrieved_learnings", None),
    ("user_action", "jump"),
    ("expert_content", b"\xfe"),
]


@pytest.fixture(scope="module")
def sound_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return odd_log(tmp_path_factory.mktemp("sound") / "reflexio.db", 3, odd=0, sessions=12)


@pytest.mark.parametrize(("column", "cell"), CELLS)
def test_a_cell_out_of_the_ordinary(column: str, cell: Any, sound_log: Path, tmp_path: Path) -> None:
    path = tmp_path / "reflexio.db"
    path.write_bytes(sound_log.read_bytes())
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE interactions SET created_at = '2026-09-01T09:00:00+00:00'")
        connection.execute(f"UPDATE interactions SET {column} = ? WHERE interaction_id % 3 = 0", [cell])
    connection.close()
    differences(path)


@pytest.mark.parametrize("seed", range(4))
def test_answers_are_the_same_either_way(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = odd_log(tmp_path / "reflexio.db", seed, odd=0.01, sessions=60)
    period = {"since": BEGIN + timedelta(days=2)} if seed % 2 else {}

    def found() -> tuple[Any, ...]:
        answer = impact(path, arms="experiment:exp", now=NOW, **period)
        whole = report(path, now=NOW, **period)
        return answer.to_dict(), str(answer), json.dumps(whole.to_dict(), default=str), whole.text()

    at_once = found()
    monkeypatch.setattr(store_module, "spoken_in", lambda raw, now: None)
    assert at_once == found()

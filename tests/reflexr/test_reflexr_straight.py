"""Straight from a store into tallies: to the last figure what comes of its runs one by one."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reflexr_samples import ADA, BEGIN, BOT, Row, Writer, oracle_rows, write_sqlite

import evalr_reflexr.straight
from evalr import report
from evalr.inputs import Role
from evalr.reflexr import read, rule_runs

GUEST = {"kind": "external_agent", "client_id": "c", "name": None, "on_behalf_of": ADA}
ROBOT = {**GUEST, "on_behalf_of": None}
REACTOR = {"kind": "system", "name": "reactor"}
ACTORS = (ADA, BOT, GUEST, ROBOT, REACTOR)
FACTS = (
    *("rule_fired", "run_started", "run_retrying", "run_succeeded", "run_dead_lettered", "run_requeued"),
    *("run_skipped", "run_cancelled"),
)


def both(path: Path, open_log: Callable[..., Any] = rule_runs, **asked: Any) -> tuple[Any, Any, bool]:
    """What a report says by each way, and whether it went straight."""
    options = {name: asked.pop(name) for name in ("tenant", "workspace", "roles", "strict") if name in asked}
    asked.setdefault("now", BEGIN + timedelta(days=1))
    asked.setdefault("measures", ["rules"])
    straight, slow = open_log(path, **options), open_log(path, **options)
    counted: list[Any] = []
    ask = straight.straight

    def noted(log: Any, reading: Any) -> Any:
        counted.extend(ask(log, reading))
        return counted

    straight.straight, slow.straight = noted, None
    return report(straight, **asked).to_dict(), report(slow, **asked).to_dict(), bool(counted)


@pytest.mark.parametrize("by", [None, "rule", "tenant", "workspace"])
@pytest.mark.parametrize("compat", [None, "reflexr"])
def test_the_oracles_log(oracle_sqlite: Path, by: str | None, compat: str | None) -> None:
    found, expected, is_straight = both(oracle_sqlite, by=by, compat=compat)
    assert is_straight
    assert found == expected
    assert found["log"]["inputs"] == {"run": 85}


@pytest.mark.parametrize(
    "asked", [{"tenant": "acme"}, {"workspace": "prod"}, {"tenant": "acme", "workspace": "staging"}]
)
def test_some_of_the_oracles_log(oracle_sqlite: Path, asked: dict[str, str]) -> None:
    found, expected, is_straight = both(oracle_sqlite, **asked)
    assert is_straight
    assert found == expected


@pytest.mark.parametrize("minutes", [-1, 0, 1, 30, 125.5])
def test_at_an_earlier_time(oracle_sqlite: Path, minutes: float) -> None:
    found, expected, is_straight = both(oracle_sqlite, now=BEGIN + timedelta(minutes=minutes))
    assert is_straight
    assert found == expected


def test_a_choice_of_roles_decides_who_intervenes(oracle_sqlite: Path) -> None:
    def everybody(actor: Any) -> Role:
        return "person"

    found, expected, is_straight = both(oracle_sqlite, roles=everybody)
    assert is_straight
    assert found == expected != both(oracle_sqlite)[0]


@pytest.mark.parametrize(
    "asked", [{"by": "scope"}, {"by": "day"}, {"by": lambda about: "all"}, {"cluster": "rule"}, {"since": BEGIN}]
)
def test_what_else_is_asked_is_read_run_by_run(oracle_sqlite: Path, asked: dict[str, Any]) -> None:
    found, expected, is_straight = both(oracle_sqlite, **asked)
    assert not is_straight
    assert found == expected


def test_a_report_of_everything_counts_runs_straight_and_reads_the_rest(oracle_sqlite: Path) -> None:
    found, expected, is_straight = both(oracle_sqlite, read, measures=None)
    assert is_straight
    assert found == expected
    assert found["log"]["inputs"].keys() == {"run", "chain", "session"}


def test_a_log_is_read_once(oracle_sqlite: Path) -> None:
    log = rule_runs(oracle_sqlite)
    assert report(log, measures=["rules"]).inputs == {"run": 85}
    with pytest.raises(Exception, match="read once"):
        list(log)
    with pytest.raises(Exception, match="read once"):
        report(log, measures=["rules"])


def test_it_is_flat_and_reads_no_envelope(oracle_sqlite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Were each run an input all the same, there would be nothing to it."""
    monkeypatch.setattr("evalr_reflexr.runs._run", None)
    found = report(rule_runs(oracle_sqlite), measures=["rules"])
    assert found.inputs == {"run": 85}


class Chaos:
    """A log whose facts come in any order, as no version of reflexr would write it."""

    def __init__(self, seed: int, *, likely: bool) -> None:
        self.random = random.Random(seed)
        self.likely = likely

    def rows(self) -> list[Row]:
        return [row for place in (("a", "x"), ("a", "y"), ("b", "x")) for row in self.workspace(*place)]

    def workspace(self, tenant: str, name: str) -> list[Row]:
        pick = self.random
        writer = Writer(tenant, name)
        chains = [writer.event("desk:opened") for _ in range(3)]
        runs = {f"fir_{number}": (pick.choice(chains), pick.choice(["r", "s"])) for number in range(6)}
        fired: set[str] = set()
        for _ in range(pick.randrange(40)):
            run = pick.choice(list(runs))
            chain, rule = runs[run]
            kind = pick.choice(FACTS)
            if self.likely and (run not in fired) != (kind == "rule_fired"):
                if run in fired:
                    continue
                kind = "rule_fired"
            if kind == "run_started" and run not in fired:
                continue  # starts are not looked at, and so not missed either
            fired.add(run)
            after = pick.choice([0, 0.5, 60, 60 if self.likely else -90])
            fields: dict[str, Any] = {}
            if kind == "rule_fired":
                scope = pick.choice([{}, {"a": 1}])
                fields = {"matched": pick.choice([[1], [1, 2], []]), "scope": scope, "scope_key": str(len(scope))}
            if kind in ("run_retrying", "run_dead_lettered"):
                fields = {"reason": pick.choice([None, "timeout"])}
            if kind == "run_cancelled":
                fields = {"reason": pick.choice([None, "", "its rule was archived", "no more"])}
            if not self.likely and pick.random() < 0.03:
                rule = pick.choice(["", "é\ud83d", "[x", None, 7])  # type: ignore[assignment]
            writer.fact(kind, run, chain=chain, rule=rule, actor=pick.choice(ACTORS), after=after, **fields)
            if pick.random() < 0.1:
                facts = {"rule_installed": {"version": pick.choice(["1", 2])}, "rule_reset": {"generation": 1}}
                facts["rule_archived"] = {"version": "1", "cancelled": pick.randrange(3)}
                fact = pick.choice(list(facts))
                writer.event(f"reflexr:{fact}", actor=ADA, rule="r", **facts[fact])
        return writer.rows


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), compat=st.sampled_from([None, "reflexr"]), minutes=st.integers(0, 40))
def test_both_ways_agree_on_logs_that_could_be(tmp_path: Path, seed: int, compat: str | None, minutes: int) -> None:
    path = tmp_path / "store.db"
    path.unlink(missing_ok=True)
    write_sqlite(path, Chaos(seed, likely=True).rows())
    found, expected, is_straight = both(path, now=BEGIN + timedelta(minutes=minutes), compat=compat)
    assert is_straight
    assert found == expected


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), minutes=st.integers(0, 40))
def test_and_on_logs_that_could_not(tmp_path: Path, seed: int, minutes: int) -> None:
    path = tmp_path / "store.db"
    path.unlink(missing_ok=True)
    write_sqlite(path, Chaos(seed, likely=False).rows())
    found, expected, _ = both(path, now=BEGIN + timedelta(minutes=minutes))
    assert found == expected


def without(name: str) -> Callable[[Any], None]:
    def change(envelope: Any) -> None:
        del envelope[name]

    return change


def event_with(**fields: Any) -> Callable[[Any], None]:
    return lambda envelope: envelope["event"].update(fields)


BROKEN = [
    *map(without, ("id", "ts", "actor", "event", "correlation_id", "seq", "workspace_id")),
    lambda envelope: envelope.update(ts="2026-11-02T08:00:00"),
    lambda envelope: envelope.update(ts="2026-11-02T10:00:00+02:00"),
    lambda envelope: envelope.update(ts="2026-11-02T08:00:00ZZ"),
    lambda envelope: envelope.update(ts="2026-11-02T08:00:00.Z"),
    lambda envelope: envelope.update(ts=7),
    lambda envelope: envelope.update(correlation_id=""),
    lambda envelope: envelope.update(correlation_id={"a": "b"}),
    lambda envelope: envelope.update(id=["a", "b"]),
    lambda envelope: envelope.update(seq="1"),
    lambda envelope: envelope.update(seq=-1),
    lambda envelope: envelope.update(seq=2**63),
    lambda envelope: envelope.update(seq=float(envelope["seq"])),
    lambda envelope: envelope.update(seq=True),
    lambda envelope: envelope["actor"].update(kind=None),
    event_with(rule=None),
    event_with(rule=""),
    event_with(rule="other"),
    event_with(rule=["r"]),
    event_with(run_id=None, firing_id=None),
    event_with(run_id="another"),
    event_with(run_id=7),
    event_with(type="reflexr:run_started"),
    event_with(type="desk:opened"),
    event_with(error="\ud800"),
    event_with(rule="\ud800"),
]


@pytest.mark.parametrize("number", range(len(BROKEN)))
@pytest.mark.parametrize("fact", ["rule_fired", "run_requeued"])
def test_a_row_that_is_not_as_reflexr_writes_it(tmp_path: Path, number: int, fact: str) -> None:
    path = write_sqlite(tmp_path / "store.db", oracle_rows())
    with closing(sqlite3.connect(path)) as db, db:
        where = "tenant_id = 'acme' AND workspace_id = 'prod' AND seq = ?"
        (seq, text) = db.execute(
            f"SELECT seq, envelope FROM reflexr_events WHERE event_type = 'reflexr:{fact}' ORDER BY seq DESC LIMIT 1"
        ).fetchone()
        envelope = json.loads(text)
        BROKEN[number](envelope)
        db.execute(f"UPDATE reflexr_events SET envelope = ? WHERE {where}", (json.dumps(envelope), seq))
    found, expected, _ = both(path)
    found["left_out"]["repaired"] = expected["left_out"][
        "repaired"
    ]  # of texts that rates do not depend on, it says nothing
    assert found == expected


@pytest.mark.parametrize("text", ["{", "", "[]", "null", '{"seq": NaN}', "{seq: 1}"])
def test_a_row_that_is_no_json(tmp_path: Path, text: str) -> None:
    path = write_sqlite(tmp_path / "store.db", oracle_rows())
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE reflexr_events SET envelope = ? WHERE event_type = 'reflexr:run_skipped'", (text,))
    found, expected, is_straight = both(path)
    assert not is_straight
    assert found == expected


def test_names_of_any_kind(tmp_path: Path) -> None:
    for name in ('","', '"', "'", "[a", "{b", "a/b", "%", "é😀", "\\", "\x00", "a\nb"):
        writer = Writer("t'", 'w"')
        chain = writer.event("desk:opened", id=name)
        writer.fact("rule_fired", name, chain=chain, rule=name, matched=[1], scope={name: name}, scope_key=name)
        writer.fact("run_cancelled", name, chain=chain, rule=name, actor=ADA, reason=name)
        path = tmp_path / "store.db"
        path.unlink(missing_ok=True)
        found, expected, _ = both(write_sqlite(path, writer.rows))
        assert found == expected, name


def test_without_functions_for_json_it_is_read_run_by_run(oracle_sqlite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evalr_reflexr.straight, "_RUNS", "SELECT json_nothing()")
    found, expected, is_straight = both(oracle_sqlite)
    assert not is_straight
    assert found == expected

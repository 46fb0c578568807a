"""reflexr's own numbers, over a log that its own library wrote: rules, resolutions, drop-off and feedback."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from evalr import Verdict, report
from evalr.measures import drop_off_rate, measure_drop_off
from evalr.reflexr import (
    Envelope,
    Feedback,
    Matches,
    chain_sessions,
    chains,
    feedback,
    measure_chain_as_reflexr,
    measure_run_as_reflexr,
    rule_outcomes,
    rule_rates,
    rule_runs,
    time_to_resolution,
)

NAMES = ["acme/prod", "acme/staging", "globex/prod", "acme/nowhere"]

PREDICATES: dict[str, Matches] = {
    "first_resolved": "oncall:incident.resolved",
    "resolved_by_agent": lambda e: e.type == "oncall:incident.resolved" and e.actor["kind"] == "agent",
    "report": "incident.report",
    "any_run_succeeded": "reflexr:run_succeeded",
    "first_event_itself": "oncall:service.error",
    "completed_feedback": {"type": "reflexr:feedback_given", "feedback_type": "resolution", "value.completed": True},
}


def split(name: str) -> dict[str, str]:
    tenant, _, workspace = name.partition("/")
    return {"tenant": tenant, "workspace": workspace}


@pytest.mark.parametrize("name", NAMES)
def test_rule_outcomes_are_reflexrs(oracle_store: Path | str, oracle: Any, name: str) -> None:
    found = rule_outcomes(oracle_store, **split(name))
    rates = ("dead_letter_rate", "retry_rate", "intervention_rate")
    plain = {rule: each._asdict() | {rate: getattr(each, rate) for rate in rates} for rule, each in found.items()}
    assert plain == oracle["workspaces"][name]["rule_outcomes"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("predicate", PREDICATES)
def test_times_to_resolution_are_reflexrs(oracle_store: Path | str, oracle: Any, name: str, predicate: str) -> None:
    found = time_to_resolution(oracle_store, resolves=PREDICATES[predicate], **split(name))
    expected = oracle["workspaces"][name]["time_to_resolution_s"][predicate]
    assert {key: each.total_seconds() for key, each in found.items()} == {
        f"{name}/{chain}": seconds for chain, seconds in expected.items()
    }


def test_the_wire_says_what_the_store_says(oracle_wire: Path, oracle: Any) -> None:
    expected = oracle["workspaces"]["acme/prod"]
    found = rule_outcomes(oracle_wire, workspace="prod")
    assert {rule: each.runs for rule, each in found.items()} == {
        rule: each["runs"] for rule, each in expected["rule_outcomes"].items()
    }
    times = time_to_resolution(oracle_wire, resolves="*.resolved", tenant="acme")
    assert {key.rpartition("/")[2]: each.total_seconds() for key, each in times.items()} == expected[
        "time_to_resolution_s"
    ]["first_resolved"]


@pytest.mark.parametrize("name", NAMES[:3])
def test_verdicts_on_runs_add_up_to_reflexrs_rates(oracle_sqlite: Path, oracle: Any, name: str) -> None:
    now = datetime.fromisoformat(oracle["log_read_at"])
    by_rule: dict[str, list[Any]] = {}
    for run in rule_runs(oracle_sqlite, **split(name)):
        by_rule.setdefault(run.rule, []).append(measure_run_as_reflexr(run, now))  # type: ignore[union-attr]
    expected = oracle["workspaces"][name]["rule_outcomes"]
    fields = ("succeeded", "dead_lettered", "retried", "intervened")
    counted = {
        rule: {field: sum(getattr(each, field) for each in found) for field in fields} | {"runs": len(found)}
        for rule, found in by_rule.items()
    }
    assert counted == {rule: {field: each[field] for field in (*fields, "runs")} for rule, each in expected.items()}


@pytest.mark.parametrize("name", NAMES[:3])
def test_where_runs_stand_is_what_the_store_says(oracle_sqlite: Path, oracle: Any, name: str) -> None:
    now = datetime.fromisoformat(oracle["log_read_at"])
    states = [measure_run_as_reflexr(run, now).state for run in rule_runs(oracle_sqlite, **split(name))]  # type: ignore[arg-type, union-attr]
    expected = oracle["workspaces"][name]["runs_by_status"]
    assert {state: states.count(state) for state in expected} == expected


@pytest.mark.parametrize("predicate", PREDICATES)
def test_chains_agree_with_reflexr_where_it_says_something(oracle_sqlite: Path, oracle: Any, predicate: str) -> None:
    now = datetime.fromisoformat(oracle["log_read_at"])
    log = chains(oracle_sqlite, starts="*", resolves=PREDICATES[predicate], reopens=(), **split("acme/prod"))
    found = {chain.id: measure_chain_as_reflexr(chain, now) for chain in log}  # type: ignore[arg-type, union-attr]
    assert len(found) == len(oracle["workspaces"]["acme/prod"]["chain_lengths"])
    resolved = {key.rpartition("/")[2]: each.after for key, each in found.items() if each.ended == "resolved"}
    assert resolved == oracle["workspaces"]["acme/prod"]["time_to_resolution_s"][predicate]


def test_the_report_has_reflexrs_rates(oracle_sqlite: Path, oracle: Any) -> None:
    now = datetime.fromisoformat(oracle["log_read_at"])
    found = report(oracle_sqlite, now=now, compat="reflexr", tenant="acme", workspace="prod", measures=["rules"])
    expected = oracle["workspaces"]["acme/prod"]["rule_outcomes"]
    names = {"rules_dead_lettered": "dead_letter_rate", "rules_retried": "retry_rate"}
    names |= {"rules_intervened": "intervention_rate"}
    for summary, rate in names.items():
        (row,) = [row for row in found.rows if row.estimate.name == summary]
        assert row.groups is not None
        assert {rule: each.value for rule, each in row.groups.items()} == {
            rule: each[rate] for rule, each in expected.items()
        }


def mapping(name: str) -> Callable[[Any], Any]:
    """The roles of one of the oracle's mappings: it says them for external agents, and is the same for all others."""
    external = {"evalr_tests": "system", "artifactr_style": "agent", "operators_as_people": "person"}[name]
    roles = {"user": "person", "agent": "agent", "external_agent": external}
    return lambda actor: roles.get(actor["kind"], "system")


@pytest.mark.parametrize("name", ["evalr_tests", "artifactr_style", "operators_as_people"])
@pytest.mark.parametrize("seconds", ["60", "1800", "14400"])
def test_drop_off_of_chains(oracle_sqlite: Path, oracle: Any, drop_off_oracle: Any, name: str, seconds: str) -> None:
    now = datetime.fromisoformat(drop_off_oracle["now"])
    log = chain_sessions(
        oracle_sqlite, starts="*", resolves=(), failures=False, roles=mapping(name), **split("acme/prod")
    )
    names = {chain: alias for alias, chain in oracle["chains"].items()}
    window = timedelta(seconds=int(seconds))
    found = {}
    for session in log:
        chain = session.id.rpartition("/")[2]  # type: ignore[union-attr]
        found[names.get(chain, chain)] = measure_drop_off(session, window=window, now=now)  # type: ignore[arg-type]
    expected = drop_off_oracle["maps"][name][seconds]
    assert {chain: [each.outcome, each.cause] for chain, each in found.items()} == expected["verdicts"]
    assert drop_off_rate(list(found.values())) == expected["rate"]


class Triage(BaseModel):
    correct: bool
    severity: str
    note: str | None = None


class Completion(BaseModel):
    completed: bool
    quality: int
    reason: str | None = None


@pytest.mark.parametrize(
    ("name", "verdict_type", "options"),
    [
        ("triage_people", Triage, {"feedback_type": "triage_quality"}),
        ("triage_all", Triage, {"feedback_type": "triage_quality", "givers": ("people", "evaluators", "others")}),
        ("triage_run_only", Triage, {"feedback_type": "triage_quality", "targets": ("run",)}),
        ("resolution", Completion, {"feedback_type": "resolution"}),
    ],
)
def test_feedback_is_what_reflexrs_source_yields(
    oracle_store: Path | str, oracle: Any, name: str, verdict_type: type[BaseModel], options: dict[str, Any]
) -> None:
    log = feedback(oracle_store, verdict_type, latest=False, **options, **split("acme/prod"))
    found = sorted((each for each in log if isinstance(each, Feedback)), key=lambda each: each.seq)
    assert [
        {
            "id": each.id,
            "verdict": each.result.value.model_dump(),
            "target": each.target,
            "given_by": each.given_by,
            "seq": each.seq,
        }
        for each in found
    ] == [
        {
            "id": each["id"],
            "verdict": each["verdict"],
            "target": each["metadata"]["target"],
            "given_by": each["metadata"]["given_by"],
            "seq": each["metadata"]["seq"],
        }
        for each in oracle["feedback_sources"][name]
    ]


def test_no_context_holds_a_label_or_what_came_after_the_target(oracle_sqlite: Path) -> None:
    givers = ("people", "evaluators", "others")
    log = feedback(oracle_sqlite, Triage, feedback_type="triage_quality", givers=givers, latest=False)
    count = 0
    for each in log:
        assert isinstance(each, Feedback)
        assert isinstance(each.result, Verdict)
        seqs = [envelope.seq for envelope in each.context]
        assert max(seqs) < each.seq
        assert all(envelope.fact != "feedback_given" for envelope in each.context)
        turns = each.transcript().turns
        assert all("feedback" not in turn.text for turn in turns)
        count += 1
    assert count == 28


def test_a_run_is_judged_as_of_its_own_end(oracle_sqlite: Path) -> None:
    log = feedback(oracle_sqlite, Triage, feedback_type="triage_quality", targets=("run",), **split("acme/prod"))
    first = next(iter(log))
    assert isinstance(first, Feedback)
    last = first.context[-1]
    # The chain went on for four minutes: an action was proposed, approved and applied.
    assert (last.fact, last.seq) == ("run_succeeded", 5)
    assert isinstance(last, Envelope)


def test_default_rates_leave_out_what_nobody_decided(oracle_sqlite: Path, oracle: Any) -> None:
    now = datetime.fromisoformat(oracle["log_read_at"])
    found = report(oracle_sqlite, now=now, tenant="acme", workspace="prod", measures=["rules"])
    by_rule = {row.estimate.name: row.groups for row in found.rows}
    intervened = by_rule["rules_intervened"]
    assert intervened is not None
    archived = intervened["custom:notify"]
    assert (archived.value, archived.left_out) == (None, {"cancelled with their rule": 2})
    assert intervened["oncall:bad-deploy"].left_out == {"refired": 1}
    triage = intervened["oncall:triage"]
    assert (triage.n, triage.left_out["pending"]) == (24, 2)
    assert triage.bounds is not None
    assert triage.value is not None
    assert triage.bounds[0] < triage.value < triage.bounds[1]
    assert [summary.name for summary in rule_rates()] == list(by_rule)

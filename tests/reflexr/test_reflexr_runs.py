"""Runs of rules: where they stand, who intervened, and what they can be grouped by."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest
from reflexr_samples import ADA, BEGIN, BOT, Writer, write_sqlite, write_wire

from evalr import InputError, Skip, Verdict, report
from evalr.reflexr import (
    RuleOutcome,
    RuleRun,
    actor_role,
    measure_run,
    measure_run_as_reflexr,
    participant,
    rule_evaluator,
    rule_rates,
    rule_runs,
)
from evalr.testing import MeasureContract
from evalr_reflexr.rules import measure

LATER = BEGIN + timedelta(days=1)
UNATTENDED = {"kind": "external_agent", "client_id": "mcp-1", "name": None, "on_behalf_of": None}
ATTENDED = {**UNATTENDED, "on_behalf_of": ADA}
CRON = {"kind": "system", "name": "cron"}


def runs(folder: Path, writer: Writer, **options: Any) -> list[RuleRun]:
    return list(rule_runs(write_wire(folder / "log.jsonl", writer.rows), tenant="acme", **options))  # type: ignore[arg-type]


def one_run(*facts: str, actor: Any = None, **fields: Any) -> Writer:
    writer = Writer()
    chain = writer.event("desk:ticket.opened")
    writer.fact("rule_fired", "fir_1", chain=chain, matched=[1], scope={"desk": "north"}, scope_key='["north"]')
    for fact in facts:
        writer.fact(fact, "fir_1", chain=chain, actor=actor, **fields)
    return writer


@pytest.mark.parametrize(
    ("facts", "state"),
    [
        ((), "pending"),
        (("run_started",), "running"),
        (("run_started", "run_retrying"), "retrying"),
        (("run_started", "run_succeeded"), "succeeded"),
        (("run_started", "run_dead_lettered"), "dead"),
        (("run_dead_lettered", "run_requeued"), "pending"),
        (("run_skipped",), "skipped"),
        (("run_cancelled",), "cancelled"),
        (("run_progressed",), "pending"),
    ],
)
def test_where_a_run_stands(tmp_path: Path, facts: tuple[str, ...], state: str) -> None:
    (run,) = runs(tmp_path, one_run(*facts))
    outcome = measure_run(run, LATER)
    assert isinstance(outcome, RuleOutcome)
    assert outcome.state == state


def test_dead_then_retried_by_a_person_and_succeeded_counts_in_all(tmp_path: Path) -> None:
    writer = one_run("run_started", "run_retrying", "run_started", "run_dead_lettered")
    writer.fact("run_requeued", "fir_1", chain="evt_1", actor=ADA)
    writer.fact("run_requeued", "fir_1", chain="evt_1", actor=ADA)
    writer.fact("run_succeeded", "fir_1", chain="evt_1")
    (run,) = runs(tmp_path, writer)
    assert measure_run(run, LATER) == RuleOutcome(
        state="succeeded", succeeded=True, dead_lettered=True, retried=True, intervened=True
    )


@pytest.mark.parametrize(
    ("actor", "person", "operator"),
    [(ADA, True, True), (ATTENDED, True, True), (UNATTENDED, False, True), (BOT, False, False), (CRON, False, False)],
)
def test_who_intervenes(tmp_path: Path, actor: Any, person: bool, operator: bool) -> None:
    """An unattended agent is no person; reflexr counts it."""
    (run,) = runs(tmp_path, one_run("run_skipped", actor=actor))
    assert measure_run(run, LATER).intervened is person  # type: ignore[union-attr]
    assert measure_run_as_reflexr(run, LATER).intervened is operator  # type: ignore[union-attr]


def test_roles_are_the_callers_to_choose(tmp_path: Path) -> None:
    writer = one_run("run_skipped", actor=UNATTENDED)
    for roles in ({"external_agent": "person"}, lambda actor: "person"):
        (run,) = runs(tmp_path, writer, roles=roles)
        assert measure_run(run, LATER).intervened  # type: ignore[union-attr]
    with pytest.raises(InputError, match="roles=7"):
        rule_runs(tmp_path / "log.jsonl", roles=7)  # type: ignore[arg-type]


def test_what_happened_later_is_not_known_yet(tmp_path: Path) -> None:
    (run,) = runs(tmp_path, one_run("run_started", "run_dead_lettered"))
    times = [step.at for step in run.steps]
    states = [measure_run(run, now).state for now in times]  # type: ignore[union-attr]
    assert states == ["pending", "running", "dead"]
    assert isinstance(measure_run(run, times[0] - timedelta(seconds=1)), Skip)


def test_a_run_that_is_not_done_is_pending_whatever_happened_to_it(tmp_path: Path) -> None:
    (run,) = runs(tmp_path, one_run("run_started", "run_retrying"))
    evaluator = rule_evaluator(now=LATER)
    result = evaluator.evaluate_sync(run)
    assert isinstance(result, Verdict)
    assert evaluator.pending is not None
    assert evaluator.pending(result.value)
    for rate in rule_rates():
        estimate = rate.estimate([result])
        assert (estimate.n, estimate.left_out, estimate.bounds) == (0, {"pending": 1}, (0.0, 1.0))
    (retried,) = (rate for rate in rule_rates(compat="reflexr") if rate.name == "rules_retried")
    assert retried.estimate([result]).counts == {"hits": 1, "total": 1}


def test_a_run_says_what_it_can_be_grouped_by(tmp_path: Path) -> None:
    writer = Writer()
    writer.event("reflexr:rule_installed", actor=ADA, rule="r", version=3)
    writer.event("reflexr:rule_reset", actor=ADA, rule="r", generation=2, reason="changed")
    chain = writer.event("desk:ticket.opened")
    scope = {"scope": {"desk": "north", "level": 2}, "scope_key": '["north",2]'}
    writer.fact("rule_fired", "fir_1", chain=chain, matched=[3], **scope)
    writer.fact("run_retrying", "fir_1", chain=chain, attempt=1, reason="timeout")
    writer.fact("run_retrying", "fir_1", chain=chain, attempt=2, reason=None)
    writer.event("reflexr:rule_installed", actor=ADA, rule="r", version=4)
    (run,) = runs(tmp_path, writer)
    assert run.attributes == {
        "rule": "r",
        "generation": "2",
        "rule_version": "3",
        "scope": "desk=north, level=2",
        "reason": ["timeout", "exception"],
        "tenant": "acme",
        "workspace": "prod",
    }
    assert (run.id, run.chain, run.about().session) == ("acme/prod/fir_1", "acme/prod/evt_3", "acme/prod/evt_3")


def test_a_refired_occurrence_is_a_run_of_its_own_that_no_rate_counts_twice(tmp_path: Path) -> None:
    writer = one_run("run_dead_lettered")
    writer.event("reflexr:rule_reset", actor=ADA, rule="r", generation=1, reason="replayed")
    writer.fact("rule_fired", "fir_2", chain="evt_1", matched=[1], scope_key='["north"]')
    writer.fact("run_succeeded", "fir_2", chain="evt_1")
    writer.fact("rule_fired", "fir_3", chain="evt_1", matched=[1, 2], scope_key='["north"]')
    writer.fact("run_succeeded", "fir_3", chain="evt_1")
    assert [(run.refired, run.attributes["generation"]) for run in runs(tmp_path, writer)] == [
        (False, "0"),
        (True, "1"),
        (False, "1"),
    ]
    found = report(rule_runs(tmp_path / "log.jsonl"), measures=["rules"])
    assert (found["rules"].n, found["rules"].left_out) == (2, {"refired": 1})


@pytest.mark.parametrize("reason", ["its rule was archived", "no more of these"])
def test_cancelling_with_the_rule_is_no_intervention(tmp_path: Path, reason: str) -> None:
    """Such cancellations stand right behind the archiving, whatever reason they give."""
    writer = one_run()
    writer.event("reflexr:rule_archived", actor=ADA, rule="r", version=2, reason=reason, cancelled=1)
    writer.fact("run_cancelled", "fir_1", chain="evt_1", actor=ADA, reason=reason)
    (run,) = runs(tmp_path, writer)
    outcome = measure_run(run, LATER)
    assert isinstance(outcome, RuleOutcome)
    assert (outcome.archived, outcome.intervened) == (True, False)
    assert measure_run_as_reflexr(run, LATER).intervened  # type: ignore[union-attr]


def test_a_persons_own_cancellation_is_one(tmp_path: Path) -> None:
    writer = Writer()
    writer.event("reflexr:rule_archived", actor=ADA, rule="other", version=2, cancelled=3)
    chain = writer.event("desk:ticket.opened")
    writer.fact("rule_fired", "fir_1", chain=chain, matched=[2])
    writer.fact("run_cancelled", "fir_1", chain=chain, actor=ADA, reason="false alarm")
    (run,) = runs(tmp_path, writer)
    assert measure_run(run, LATER).intervened  # type: ignore[union-attr]


def test_facts_that_lack_their_run_or_their_firing_are_counted(tmp_path: Path) -> None:
    writer = Writer()
    chain = writer.event("desk:ticket.opened")
    writer.fact("run_succeeded", "fir_1", chain=chain)
    writer.event("reflexr:run_started", chain=chain, rule="r")
    log = rule_runs(write_wire(tmp_path / "log.jsonl", writer.rows))
    assert list(log) == []
    assert dict(log.left_out.counts) == {"fact without a run": 1, "run whose firing is missing": 1}


def test_an_export_is_read_as_of_its_last_event(tmp_path: Path) -> None:
    """What came then is not in it: without a reading time of its own, everything would have been pending since."""
    writer = one_run("run_started")
    (run,) = runs(tmp_path, writer)
    assert run.read_at == writer.at


@pytest.mark.parametrize(
    ("actor", "role", "name"),
    [
        (ADA, "person", "user:ada"),
        (BOT, "agent", "agent:r"),
        (ATTENDED, "person", "external_agent:mcp-1"),
        (UNATTENDED, "agent", "external_agent:mcp-1"),
        (CRON, "system", "system:cron"),
        ({"kind": "source", "name": "monitor"}, "system", "source:monitor"),
        ({"kind": "evaluator", "name": "judge", "version": "3"}, "system", "evaluator:judge@3"),
        ({"kind": "something_new"}, "system", "something_new:None"),
    ],
)
def test_actors(actor: Any, role: str, name: str) -> None:
    assert (actor_role(actor), participant(actor)) == (role, name)


def test_compat_is_reflexrs_or_nothing() -> None:
    with pytest.raises(InputError, match="compat='mine' must be 'reflexr'"):
        rule_rates(compat="mine")
    assert rule_evaluator(compat="reflexr").version == "1:reflexr"


class TestRules(MeasureContract):
    measure = measure
    inputs: ClassVar[Any] = [
        RuleRun.model_validate(
            {
                "id": name,
                "chain": "c",
                "rule": "r",
                "attributes": {"rule": "r"},
                "steps": [
                    {"at": BEGIN, "kind": "fired"},
                    {"at": BEGIN + timedelta(seconds=2), "kind": "skipped", "by": by, "actor": actor},
                ],
            }
        )
        for name, by, actor in (("a", "person", "user"), ("b", "agent", "external_agent"), ("c", "system", "system"))
    ]
    now = LATER
    other_settings: ClassVar[Any] = {"compat": "reflexr"}


def test_a_start_behind_its_end_changes_nothing_of_a_run(tmp_path: Path) -> None:
    writer = Writer()
    chain = writer.event("desk:opened")
    for run, ends in (("fir_1", ["run_skipped"]), ("fir_2", ["run_skipped", "run_requeued"])):
        for fact in ("rule_fired", *ends, "run_started"):
            writer.fact(fact, run, chain=chain)
    path = write_sqlite(tmp_path / "store.db", writer.rows)
    states = [measure_run(run, writer.at).state for run in rule_runs(path)]  # type: ignore[arg-type, union-attr]
    assert states == ["skipped", "running"]

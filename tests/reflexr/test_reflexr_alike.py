"""Made-up logs: every way to the same number gives it, in every kind of store."""

from __future__ import annotations

import tempfile
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from reflexr_samples import ADA, BEGIN, BOT, Writer, write_sqlite, write_wire

from evalr.reflexr import (
    chains,
    measure_chain_as_reflexr,
    measure_run_as_reflexr,
    read,
    rule_outcomes,
    rule_runs,
    time_to_resolution,
)

LATER = BEGIN + timedelta(days=1)
ACTORS: tuple[Any, ...] = (ADA, BOT, {"kind": "system", "name": "cron"}, {"kind": "external_agent", "client_id": "c"})
FACTS = ("run_started", "run_retrying", "run_succeeded", "run_dead_lettered", "run_requeued", "run_skipped")
FACTS += ("run_cancelled", "run_progressed")

steps = st.tuples(st.sampled_from(FACTS), st.integers(0, 4), st.sampled_from(ACTORS))
others = st.tuples(st.sampled_from(["desk:a.resolved", "desk:a.reopened", "desk:note"]), st.integers(0, 3))
logs = st.lists(st.one_of(steps, others), max_size=30)


def write(log: list[tuple[Any, ...]], tenant: str) -> Writer:
    """Four chains, over which five runs of three rules are spread, and what happens to them."""
    writer = Writer(tenant, "w")
    begun = [writer.event("desk:a.opened") for _ in range(4)]
    for run in range(5):
        writer.fact("rule_fired", f"fir_{run}", chain=begun[run % 4], rule=f"r{run % 3}", matched=[run % 4 + 1])
    for entry in log:
        if len(entry) == 3:
            fact, run, actor = entry
            writer.fact(fact, f"fir_{run}", chain=begun[run % 4], rule=f"r{run % 3}", actor=actor)
        else:
            writer.event(entry[0], chain=begun[entry[1]])
    return writer


@settings(max_examples=25)
@given(logs, logs)
def test_queries_wire_and_verdicts_agree(first: list[Any], second: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        rows = write(first, "a").rows
        store = write_sqlite(Path(folder) / "store.db", [*rows, *write(second, "b").rows])
        wire = write_wire(Path(folder) / "log.jsonl", rows)

        runs: Counter[tuple[str, str]] = Counter()
        for run in rule_runs(store):
            outcome = measure_run_as_reflexr(run, LATER)  # type: ignore[arg-type]
            runs[run.rule, "runs"] += 1  # type: ignore[union-attr]
            for field in ("succeeded", "dead_lettered", "retried", "intervened"):
                runs[run.rule, field] += getattr(outcome, field)  # type: ignore[union-attr]
        counted = rule_outcomes(store)
        assert runs == Counter({(rule, name): n for rule, each in counted.items() for name, n in _counts(each)})
        assert rule_outcomes(wire) == rule_outcomes(store, tenant="a")

        by_type = time_to_resolution(store, resolves="desk:a.resolved")
        assert by_type == time_to_resolution(store, resolves=lambda envelope: envelope.type == "desk:a.resolved")
        verdicts = {chain.id: measure_chain_as_reflexr(chain, LATER) for chain in chains(store)}  # type: ignore[arg-type, union-attr]
        resolved = {name: timedelta(seconds=each.after) for name, each in verdicts.items() if each.ended == "resolved"}
        assert by_type == resolved

        log = read(store)
        items = list(log)
        assert log.records == len(items) - log.derived + log.left_out.total
        assert [item.kind for item in items].count("run") == 10  # type: ignore[union-attr]


def _counts(outcomes: Any) -> list[tuple[str, int]]:
    return [(name, n) for name, n in outcomes._asdict().items() if name != "rule"]

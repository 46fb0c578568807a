"""Made-up logs of reflexr, and its definitions written out plainly beside: every store and every way says the same."""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from reflexr_samples import ADA, BEGIN, BOT, Row, Writer, write_sqlite, write_wire

from evalr import report
from evalr.reflexr import rule_outcomes, time_to_resolution

GUEST = {"kind": "external_agent", "client_id": "c", "name": None, "on_behalf_of": ADA}
ROBOT = {**GUEST, "on_behalf_of": None}
CRON = {"kind": "system", "name": "cron"}
ACTORS = (ADA, BOT, GUEST, ROBOT, CRON)
PLACES = (("a", "x"), ("a", "y"), ("b", "x"))
OPERATIONS = ("run_requeued", "run_skipped", "run_cancelled")
UNFINISHED = ("rule_fired", "run_started", "run_retrying", "run_requeued")
NEXT = {
    "waiting": ("run_started",) * 7 + OPERATIONS,
    "run_started": ("run_succeeded",) * 4 + ("run_retrying",) * 3 + ("run_dead_lettered",) * 2 + ("run_cancelled",),
    "ended": ("run_requeued",),
}
"""What may happen to a run, by what happened to it last."""


class Simulation:
    """A workspace in which rules fire, are archived and replayed, runs fail, people step in, at times all at once."""

    def __init__(self, seed: int, tenant: str, workspace: str) -> None:
        self.pick = random.Random(f"{seed} {tenant} {workspace}")
        self.writer = Writer(tenant, workspace)
        self.is_old = self.pick.random() < 0.2
        self.chains: list[str] = []
        self.runs: dict[str, dict[str, Any]] = {}

    def event(self, name: str, **fields: Any) -> str:
        own = name.startswith(("rule_", "run_", "tick"))
        prefix = "" if self.is_old else "reflexr:" if own else "desk:"
        return self.writer.event(prefix + name, after=self.pick.choice([0, 0, 0.25, 1, 30, 600]), **fields)

    def rows(self) -> list[Row]:
        steps = (self.open, self.tick, self.fire, self.fire, self.refire, self.archive, self.install, self.resolve)
        self.open()
        for _ in range(self.pick.randrange(5, 60)):
            self.pick.choice((*steps, *[self.proceed] * 6))()
        return self.writer.rows

    def open(self) -> None:
        self.chains.append(self.event("opened"))

    def tick(self) -> None:
        self.event("tick", actor=CRON)

    def install(self) -> None:
        self.event("rule_installed", rule=self.pick.choice("rs"), version=str(self.pick.randrange(3)), actor=ADA)

    def resolve(self) -> None:
        self.event(self.pick.choice(["resolved", "resolved", "reopened"]), chain=self.pick.choice(self.chains))

    def fire(self) -> None:
        scope = self.pick.choice([{}, {"s": "a"}])
        matched = self.pick.choice([[], [1], [1, 2], [len(self.writer.rows)]])
        self._fire(self.pick.choice(self.chains), self.pick.choice("rs"), scope, matched)

    def _fire(self, chain: str, rule: str, scope: dict[str, str], matched: list[int]) -> None:
        run = f"fir_{len(self.runs)}"
        self.event(
            "rule_fired", chain=chain, rule=rule, firing_id=run, matched=matched, scope=scope, scope_key=str(scope)
        )
        self.runs[run] = {"chain": chain, "rule": rule, "scope": scope, "matched": matched, "last": "rule_fired"}

    def refire(self) -> None:
        if self.runs:
            run = self.pick.choice(list(self.runs.values()))
            self.event("rule_reset", rule=run["rule"], generation=len(self.runs), actor=ADA)
            self._fire(run["chain"], run["rule"], run["scope"], run["matched"])

    def archive(self) -> None:
        rule, who = self.pick.choice("rs"), self.pick.choice(ACTORS)
        open_runs = [name for name, run in self.runs.items() if run["rule"] == rule and run["last"] in UNFINISHED]
        self.event("rule_archived", rule=rule, version="1", cancelled=len(open_runs), actor=who)
        for name in open_runs:
            self.happen(name, "run_cancelled", who, reason=self.pick.choice(["its rule was archived", "other"]))

    def proceed(self) -> None:
        if self.runs:
            name = self.pick.choice(list(self.runs))
            last = self.runs[name]["last"]
            state = last if last == "run_started" else "waiting" if last in UNFINISHED else "ended"
            fact = self.pick.choice(NEXT[state])
            if last != "run_succeeded":
                self.happen(name, fact, self.pick.choice(ACTORS) if fact in OPERATIONS else CRON, reason=None)

    def happen(self, name: str, fact: str, who: Any, **fields: Any) -> None:
        run = self.runs[name]
        run["last"] = fact
        self.event(fact, chain=run["chain"], rule=run["rule"], run_id=name, actor=who, **fields)


Log = dict[tuple[str, str], list[dict[str, Any]]]


def log_of(rows: Sequence[Row]) -> Log:
    found: Log = defaultdict(list)
    for tenant, workspace, _, _, text, *_ in rows:
        envelope = json.loads(text)
        envelope["ts"] = datetime.fromisoformat(envelope["ts"])
        envelope["fact"] = envelope["event"]["type"].rpartition(":")[2]
        found[tenant, workspace].append(envelope)
    return found


def is_person(actor: Any) -> bool:
    return actor["kind"] == "user" or bool(actor["kind"] == "external_agent" and actor["on_behalf_of"])


def compat_by_hand(log: Log) -> dict[str, Any]:
    """Different runs, by rule and by what happened to them at least once."""
    found: dict[str, dict[str, set[Any]]] = defaultdict(lambda: defaultdict(set))
    names = {"rule_fired": 0, "run_succeeded": 1, "run_dead_lettered": 2, "run_retrying": 3}
    for place, envelopes in log.items():
        for each in envelopes:
            event = each["event"]
            what: Any = names.get(each["fact"])
            if each["fact"] in OPERATIONS and each["actor"]["kind"] in ("user", "external_agent"):
                what = 4
            if what is not None:
                found[event["rule"]][what].add((place, event.get("run_id") or event["firing_id"]))
    return {rule: (rule, *(len(sets[what]) for what in range(5))) for rule, sets in found.items()}  # type: ignore[index]


def rates_by_hand(log: Log, now: datetime) -> Counter[tuple[str, str]]:
    """By rule: how many runs are counted or left out, and how many hits each rate has."""
    counts: Counter[tuple[str, str]] = Counter()
    for envelopes in log.values():
        occurrences: set[Any] = set()
        runs: dict[str, list[Any]] = {}
        with_rule: set[int] = set()
        for each in envelopes:
            event, fact = each["event"], each["fact"]
            if fact == "rule_archived":
                with_rule |= set(range(each["seq"] + 1, each["seq"] + 1 + event["cancelled"]))
            if fact == "run_cancelled" and event["reason"] == "its rule was archived":
                with_rule.add(each["seq"])
            if fact == "rule_fired":
                key = (each["correlation_id"], event["rule"], event["scope_key"], str(event["matched"]))
                runs[event["firing_id"]] = [event["rule"], bool(event["matched"]) and key in occurrences]
                occurrences.add(key)
            if fact == "rule_fired" or fact.startswith("run_"):
                runs[event.get("run_id") or event["firing_id"]] += [each] * (each["ts"] <= now)
        for rule, is_refired, *steps in runs.values():
            facts = [each["fact"] for each in steps]
            if not facts:
                continue
            why = "refired" if is_refired else "pending" if facts[-1] in UNFINISHED else None
            if not is_refired and facts[-1] == "run_cancelled" and steps[-1]["seq"] in with_rule:
                why = "cancelled with their rule"
            counts[rule, why or "total"] += 1
            if why is None:
                counts[rule, "rules"] += "run_succeeded" in facts
                counts[rule, "rules_dead_lettered"] += "run_dead_lettered" in facts
                counts[rule, "rules_retried"] += "run_retrying" in facts
                counts[rule, "rules_intervened"] += any(
                    each["fact"] in OPERATIONS and is_person(each["actor"]) and each["seq"] not in with_rule
                    for each in steps
                )
    return +counts


def chains_by_hand(log: Log, now: datetime) -> list[tuple[Fraction, bool]]:
    """Of each chain of an application: for how long it was open, and whether it is resolved for good, as is known."""
    found = []
    for envelopes in log.values():
        chains: dict[str, list[Any]] = defaultdict(list)
        for each in envelopes:
            chains[each["correlation_id"]].append(each)
        for first, *others in chains.values():
            if first["fact"] == "opened" and first["ts"] <= now:
                resolved = None
                for each in others:
                    if each["ts"] <= now and each["fact"] in ("resolved", "reopened"):
                        resolved = None if each["fact"] == "reopened" else resolved or each["ts"]
                open_for = ((resolved or now) - first["ts"]) / timedelta(microseconds=1)
                found.append((Fraction(open_for) / 1_000_000, resolved is not None))
    return found


def survival(chains: list[tuple[Fraction, bool]]) -> list[tuple[Fraction, Fraction]]:
    """Kaplan and Meier's curve in fractions: (time, share still open from then on)."""
    curve, share = [(Fraction(0), Fraction(1))], Fraction(1)
    for time in sorted({after for after, is_resolved in chains if is_resolved}):
        at_risk = sum(after >= time for after, _ in chains)
        share *= 1 - Fraction(chains.count((time, True)), at_risk)
        curve.append((time, share))
    return curve


def restricted_mean(curve: list[tuple[Fraction, Fraction]], until: Fraction) -> Fraction:
    area = Fraction(0)
    for (time, share), (end, _) in pairwise([*curve, (until, Fraction(0))]):
        if time < until:
            area += (min(end, until) - time) * share
    return area


def check(store: Path | str, log: Log, now: datetime, within: timedelta) -> None:
    assert {rule: tuple(each) for rule, each in rule_outcomes(store).items()} == compat_by_hand(log)

    by_hand = rates_by_hand(log, now)
    for row in report(store, measures=["rules"], now=now).rows:
        for rule, of_rule in (row.groups or {}).items():
            assert rule is not None
            assert of_rule.counts == {"hits": by_hand[rule, row.estimate.name], "total": by_hand[rule, "total"]}
            left_out = ("pending", "refired", "cancelled with their rule")
            assert of_rule.left_out == {why: by_hand[rule, why] for why in left_out if by_hand[rule, why]}
        assert set(row.groups or {}) == {rule for rule, _ in by_hand}

    chains = chains_by_hand(log, now)
    asked: dict[str, Any] = {"resolves": "resolved", "reopens": "reopened", "within": within}
    found = report(store, measures=["chains"], now=now, **asked)
    curve, until = survival(chains), Fraction(within.total_seconds())
    if any(after >= until for after, _ in chains):
        share = next(share for time, share in reversed(curve) if time <= until)
        assert found["chains"].value == pytest.approx(float(1 - share), abs=1e-12)
        assert found["chains_mean"].value == pytest.approx(float(restricted_mean(curve, until)))
    for name, quantile in (("chains_median", Fraction(1, 2)), ("chains_p90", Fraction(9, 10))):
        times = [float(time) for time, share in curve if share <= 1 - quantile]
        assert found[name].value == (pytest.approx(times[0]) if times else None)

    times_by_hand: dict[tuple[Any, str], timedelta] = {}
    for place, envelopes in log.items():
        begun: dict[str, datetime] = {}
        for each in envelopes:
            since = each["ts"] - begun.setdefault(each["correlation_id"], each["ts"])
            if each["fact"] == "resolved":
                times_by_hand.setdefault((place, each["correlation_id"]), since)
    assert sorted(time_to_resolution(store, resolves="resolved").values()) == sorted(times_by_hand.values())


@pytest.mark.parametrize("seed", range(9))
def test_every_number_is_the_one_by_hand(tmp_path: Path, seed: int) -> None:
    rows = [row for place in PLACES for row in Simulation(seed, *place).rows()]
    log = log_of(rows)
    times = [each["ts"] for envelopes in log.values() for each in envelopes]
    now = [max(times) + timedelta(days=2), times[len(times) // 2], BEGIN + (max(times) - BEGIN) / 3][seed % 3]
    within = timedelta(seconds=[60, 600, 3600][seed % 3])
    check(write_sqlite(tmp_path / "store.db", rows), log, now, within)
    # An export is read as of its last event.
    exported = {PLACES[0]: log[PLACES[0]]}
    wire = write_wire(tmp_path / "log.jsonl", [row for row in rows if row[:2] == PLACES[0]])
    check(wire, exported, exported[PLACES[0]][-1]["ts"], within)


def test_and_on_a_server(postgres: Any) -> None:
    rows = [row for place in PLACES for row in Simulation(99, *place).rows()]
    check(postgres.store("by_hand", rows), log_of(rows), BEGIN + timedelta(days=9), timedelta(minutes=10))

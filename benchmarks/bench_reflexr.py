"""How fast and how lean a reflexr store is measured, beside parsing its whole log into models.

    python benchmarks/bench_reflexr.py [--copies 150]

Each row runs in a process of its own on one generated store, so that its peak of memory is its own: `--copies` of a log
of 361 events (150 of them are 54,150), each with ids of its own. Times are of the processor, without imports.

The other side reads every envelope into pydantic models, a class for each kind of event and actor, chosen by its
discriminator, and holds them in a list, as reflexr's own measures do; it then counts the same. Both sides' numbers are
compared, and a row that says something else ends the benchmark.
"""

from __future__ import annotations

import argparse
import json
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, TypeAdapter

SAMPLE = Path(__file__).resolve().parent.parent / "tests" / "reflexr_logs" / "acme_prod.jsonl"
RESOLVES = "oncall:incident.resolved"
LENGTH = timedelta(hours=4)
"""Of the sample: the next copy begins when it is over, as times of a log never go back."""

NOW = datetime(2027, 6, 1, tzinfo=UTC)
"""When the logs are read: after the last of a thousand copies."""

TABLE = """
CREATE TABLE reflexr_events (
    tenant_id VARCHAR NOT NULL, workspace_id VARCHAR NOT NULL, seq BIGINT NOT NULL, event_id VARCHAR NOT NULL,
    envelope JSON NOT NULL, event_type VARCHAR NOT NULL, rule VARCHAR,
    PRIMARY KEY (tenant_id, workspace_id, seq), UNIQUE (tenant_id, workspace_id, event_id)
)
"""
INDEX = "CREATE INDEX ix_reflexr_events_type ON reflexr_events (tenant_id, workspace_id, event_type, seq)"


def write_store(path: Path, copies: int) -> int:
    """Copies of the sample, one after the other in one workspace; returns how many events."""
    sample = [json.loads(line) for line in SAMPLE.read_text(encoding="utf-8").split("\n") if line]
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(TABLE)
        db.execute(INDEX)
        db.execute("CREATE TABLE reflexr_alembic_version (version_num VARCHAR(32) PRIMARY KEY)")
        db.execute("INSERT INTO reflexr_alembic_version VALUES ('0008')")
        db.executemany("INSERT INTO reflexr_events VALUES ('acme', 'prod', ?, ?, ?, ?, NULL)", _rows(sample, copies))
    return copies * len(sample)


def _rows(sample: list[dict[str, Any]], copies: int) -> Iterator[tuple[int, str, str, str]]:
    for copy in range(copies):
        for envelope in sample:
            text = json.dumps(envelope).replace("evt_", f"evt_{copy}_").replace("fir_", f"fir_{copy}_")
            own = json.loads(text)
            own["seq"] += copy * len(sample)
            own["ts"] = (datetime.fromisoformat(own["ts"]) + copy * LENGTH).isoformat().replace("+00:00", "Z")
            event = own["event"]
            if "matched" in event:
                event["matched"] = [seq + copy * len(sample) for seq in event["matched"]]
            yield own["seq"], own["id"], json.dumps(own), event["type"]


# The other side: every envelope as models


class Model(BaseModel):
    model_config = ConfigDict(frozen=True)


class User(Model):
    kind: Literal["user"]
    id: str
    name: str | None = None


class Agent(Model):
    kind: Literal["agent"]
    rule: str
    run_id: str
    name: str | None = None


class ExternalAgent(Model):
    kind: Literal["external_agent"]
    client_id: str
    name: str | None = None
    on_behalf_of: User | None = None


class Named(Model):
    kind: Literal["system", "source"]
    name: str


class Evaluator(Model):
    kind: Literal["evaluator"]
    name: str
    version: str


Actor = Annotated[User | Agent | ExternalAgent | Named | Evaluator, Field(discriminator="kind")]


class Causation(Model):
    firing_id: str
    run_id: str
    depth: int


class Fired(Model):
    type: Literal["reflexr:rule_fired"]
    rule: str
    scope: dict[str, Any]
    scope_key: str
    firing_id: str
    matched: list[int]


class Started(Model):
    type: Literal["reflexr:run_started"]
    run_id: str
    rule: str
    scope: dict[str, Any]
    scope_key: str
    attempt: int


class Progressed(Model):
    type: Literal["reflexr:run_progressed"]
    run_id: str
    rule: str
    step: str


class Retrying(Model):
    type: Literal["reflexr:run_retrying"]
    run_id: str
    rule: str
    attempt: int
    error: str
    next_attempt_at: datetime
    reason: str | None


class Succeeded(Model):
    type: Literal["reflexr:run_succeeded"]
    run_id: str
    rule: str
    output: Any


class DeadLettered(Model):
    type: Literal["reflexr:run_dead_lettered"]
    run_id: str
    rule: str
    attempts: int
    error: str
    reason: str | None


class Operated(Model):
    type: Literal["reflexr:run_requeued", "reflexr:run_skipped", "reflexr:run_cancelled"]
    run_id: str
    rule: str
    reason: str | None = None


class Given(Model):
    type: Literal["reflexr:feedback_given"]
    feedback_type: str
    target: dict[str, Any]
    value: Any


class Tick(Model):
    type: Literal["reflexr:tick"]
    schedule: str
    at: datetime


class Other(Model):
    model_config = ConfigDict(frozen=True, extra="allow")
    type: str


KINDS: tuple[type[Model], ...] = (
    *(Fired, Started, Progressed, Retrying, Succeeded, DeadLettered, Operated, Given, Tick),
)
TAGS = {name: kind.__name__ for kind in KINDS for name in kind.model_fields["type"].annotation.__args__}  # type: ignore[union-attr]


def tag(event: Any) -> str:
    name = event.get("type") if isinstance(event, dict) else event.type
    return TAGS.get(name, "Other")


Event = Annotated[
    Annotated[Fired, Tag("Fired")]
    | Annotated[Started, Tag("Started")]
    | Annotated[Progressed, Tag("Progressed")]
    | Annotated[Retrying, Tag("Retrying")]
    | Annotated[Succeeded, Tag("Succeeded")]
    | Annotated[DeadLettered, Tag("DeadLettered")]
    | Annotated[Operated, Tag("Operated")]
    | Annotated[Given, Tag("Given")]
    | Annotated[Tick, Tag("Tick")]
    | Annotated[Other, Tag("Other")],
    Discriminator(tag),
]


class Envelope(Model):
    seq: int
    id: str
    ts: datetime
    workspace_id: str
    actor: Actor
    causation: Causation | None
    correlation_id: str
    traceparent: str | None
    event: Event


def parsed(path: Path) -> list[Envelope]:
    """The whole log as models, in pages of a thousand, from the dictionaries that a driver makes of JSON columns."""
    read = TypeAdapter(Envelope).validate_python
    found: list[Envelope] = []
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        for (text,) in db.execute("SELECT envelope FROM reflexr_events ORDER BY tenant_id, workspace_id, seq"):
            found.append(read(json.loads(text)))
    return found


COUNTED: Mapping[type[Model], str] = {
    Fired: "runs",
    Succeeded: "succeeded",
    DeadLettered: "dead_lettered",
    Retrying: "retried",
    Operated: "intervened",
}


def models_rates(path: Path) -> str:
    runs: dict[str, dict[str, set[str]]] = {}
    for envelope in parsed(path):
        event: Any = envelope.event
        what = COUNTED.get(type(event))
        if what == "intervened" and envelope.actor.kind not in ("user", "external_agent"):
            continue
        if what is not None:
            run = event.firing_id if what == "runs" else event.run_id
            runs.setdefault(event.rule, {}).setdefault(what, set()).add(run)
    return said_of_rates({rule: {what: len(found) for what, found in each.items()} for rule, each in runs.items()})


def models_times(path: Path) -> str:
    begun: dict[str, datetime] = {}
    found: dict[str, timedelta] = {}
    for envelope in parsed(path):
        first = begun.setdefault(envelope.correlation_id, envelope.ts)
        if envelope.correlation_id not in found and envelope.event.type == RESOLVES:
            found[envelope.correlation_id] = envelope.ts - first
    return said_of_times(found)


# This side


def own_rates(path: Path) -> str:
    from evalr.reflexr import rule_outcomes

    return said_of_rates({rule: each._asdict() for rule, each in rule_outcomes(path).items()})


def own_times(path: Path) -> str:
    from evalr.reflexr import time_to_resolution

    return said_of_times(time_to_resolution(path, resolves=RESOLVES))


def own_rates_with_intervals(path: Path) -> str:
    from evalr import report
    from evalr.reflexr import rule_runs

    return "; ".join(str(row.estimate) for row in report(rule_runs(path), measures=["rules"], now=NOW).rows)


def own_times_with_intervals(path: Path) -> str:
    from evalr import report
    from evalr.reflexr import chains

    found = report(chains(path, resolves=RESOLVES), measures=["chains"], now=NOW, within=timedelta(hours=3))
    return "; ".join(str(row.estimate) for row in found.rows)


def own_report(path: Path) -> str:
    from evalr import report

    found = report(path, now=NOW)
    return ", ".join(f"{count:,} {kind}s" for kind, count in found.inputs.items())


def said_of_rates(counts: Mapping[str, Mapping[str, Any]]) -> str:
    fields = ("runs", "succeeded", "dead_lettered", "retried", "intervened")
    sums = {field: sum(each.get(field, 0) for each in counts.values()) for field in fields}
    return f"{len(counts)} rules: " + ", ".join(f"{name} {count:,}" for name, count in sums.items())


def said_of_times(times: Mapping[str, timedelta]) -> str:
    return f"{len(times):,} resolved, {sum(each.total_seconds() for each in times.values()):,.0f} s in all"


JOBS: Mapping[str, Callable[[Path], str]] = {
    "rule rates: all into models": models_rates,
    "rule rates: `rule_outcomes`": own_rates,
    "times to resolution: all into models": models_times,
    "times to resolution: `time_to_resolution`": own_times,
    "`rule_runs`, reported: four rates a rule, with intervals": own_rates_with_intervals,
    "`chains`, reported: open ones censored, with intervals": own_times_with_intervals,
    "`evalr report`: runs, chains, sessions, waits": own_report,
}
SAME = (("rule rates: all into models", "rule rates: `rule_outcomes`"),)
SAME += (("times to resolution: all into models", "times to resolution: `time_to_resolution`"),)


def run(job: str, path: Path) -> None:
    """One job, in this process."""
    import scipy.special  # noqa: F401  imports are not part of the time

    import evalr.reflexr  # noqa: F401
    import evalr_reflexr.straight  # noqa: F401
    from evalr.measures import installed_measures

    installed_measures()
    begin = time.process_time()
    said = JOBS[job](path)
    seconds = time.process_time() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "peak": peak, "said": said}))


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--copies", type=int, default=150)
    options.add_argument("--job")
    options.add_argument("--store", type=Path)
    given = options.parse_args()
    if given.job:
        run(given.job, given.store)
        return
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "reflexr.db"
        events = write_store(store, given.copies)
        print(f"{events:,} events, {store.stat().st_size / 1e6:,.0f} MB\n\n| job | s | times as fast | peak MB |")
        print("|---|---|---|---|")
        found: dict[str, dict[str, Any]] = {}
        for job in JOBS:
            command = [sys.executable, __file__, "--job", job, "--store", str(store)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            found[job] = json.loads(done.stdout)
            beside = next(
                (found[other]["seconds"] for other in found if "models" in other and _alike(other, job)), None
            )
            ratio = "" if beside is None else f"{beside / found[job]['seconds']:.1f}"
            print(f"| {job} | {found[job]['seconds']:.2f} | {ratio} | {found[job]['peak']:.0f} |", flush=True)
        print("\n" + "\n".join(f"- {job}: {each['said']}" for job, each in found.items()))
        for one, other in SAME:
            assert found[one]["said"] == found[other]["said"], (one, other)


def _alike(models: str, job: str) -> bool:
    """Whether a job answers what that one with models does."""
    return models.partition(":")[0] == job.partition(":")[0]


if __name__ == "__main__":
    main()

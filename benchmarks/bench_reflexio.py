"""Reading a Reflexio log of a million interactions, beside a plain scan of the same rows with sqlite3 and json.

Each way runs in a process of its own, so that its memory can be told: `bench_reflexio.py [INTERACTIONS]`. Ratios are of
the processor's time, all processes' own and the system's for them, and of the clock, which also tells what else the
machine does. Two processes read for a report, where there are two cores; `report_alone` has one.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

BEGIN = datetime(2026, 6, 1, tzinfo=UTC)
END = datetime(2026, 8, 1, tzinfo=UTC)
TURNS, REQUESTS_A_SESSION, SESSIONS_A_USER = 4, 2, 5

RELEASE = Path(__file__).parents[1] / "tests" / "reflexio_logs" / "release_0_2_32.sql"
"""A database as this release of Reflexio made it, whose tables and indexes are taken."""

EMBEDDING = json.dumps([0.0] * 512)
"""What each interaction and each result carries, as the release writes it where no model is set: no way reads it."""

TABLES = (
    "requests", "interactions", "agent_success_evaluation_result", "shadow_comparison_verdicts",
    "retrieved_learning_evaluation", "user_playbooks",
)  # fmt: skip

SCANNED = {
    "requests": """request_id, user_id, session_id, created_at, source, agent_version, evaluation_only,
        retrieval_experiment_id, retrieval_experiment_arm""",
    "interactions": """tools_used, citations, retrieved_learnings, interaction_id, request_id, created_at, role,
        content, shadow_content, token_count, user_action, expert_content""",
    "agent_success_evaluation_result": """tags, result_id, user_id, session_id, created_at, agent_version,
        evaluation_name, is_success, failure_type, failure_reason, number_of_correction_per_session,
        user_turns_to_resolution, is_escalated, trajectory_through_request_id""",
    "shadow_comparison_verdicts": """verdict_id, interaction_id, session_id, created_at, agent_version,
        reflexio_is_request_1, better_request, is_significantly_better, comparison_reason, judge_prompt_version""",
    "retrieved_learning_evaluation": """diagnosis, result_id, user_id, session_id, created_at, interaction_id,
        interaction_created_at, kind, learning_id, is_relevant, relevance_reason, impact, impact_reason""",
}
"""Of each table the columns that are read, those of JSON first."""

OF_JSON = {"interactions": 3, "agent_success_evaluation_result": 1, "retrieved_learning_evaluation": 1}


def generate(path: Path, interactions: int) -> None:
    """A log whose sessions overlap in time, as those of many people do."""
    chance = random.Random(7)
    connection = sqlite3.connect(path)
    with sqlite3.connect(":memory:") as release:
        release.executescript(RELEASE.read_text(encoding="utf-8"))
        for (statement,) in release.execute(
            f"SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND type IN ('table', 'index') "
            f"AND tbl_name IN ({', '.join('?' * len(TABLES))}) ORDER BY type DESC",
            TABLES,
        ):
            connection.execute(statement)
    sessions = max(1, interactions // TURNS)
    words = " ".join(f"word{number}" for number in range(30))
    tools = json.dumps([{"tool_name": "search_docs", "tool_data": {"query": "reset password"}, "status": "success"}])
    learnings = json.dumps([{"kind": "user_playbook", "learning_id": str(number)} for number in (1, 2)])
    cited = json.dumps([{"kind": "user_playbook", "real_id": "1", "tag": "r1", "title": "rule"}])
    connection.executemany(
        "INSERT INTO user_playbooks (user_playbook_id, user_id, created_at, request_id, content, trigger) "
        "VALUES (?, 'user-1', ?, '', ?, 'when')",
        [(number, BEGIN.isoformat(), f"Rule {number}") for number in (1, 2)],
    )
    rows: dict[str, list[tuple[object, ...]]] = {name: [] for name in "riesl"}
    inserts = {
        "r": "INSERT INTO requests (request_id,user_id,created_at,source,agent_version,session_id,evaluation_only,"
        "retrieval_experiment_id,retrieval_experiment_arm) VALUES (?,?,?,?,?,?,?,?,?)",
        "i": "INSERT INTO interactions (interaction_id,user_id,content,request_id,created_at,role,token_count,"
        "shadow_content,tools_used,citations,retrieved_learnings,embedding) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)",
        "e": "INSERT INTO agent_success_evaluation_result (user_id,session_id,agent_version,evaluation_name,is_success,"
        "failure_type,failure_reason,created_at,number_of_correction_per_session,user_turns_to_resolution,tags,"
        "embedding) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)",
        "s": "INSERT INTO shadow_comparison_verdicts (interaction_id,session_id,agent_version,reflexio_is_request_1,"
        "better_request,is_significantly_better,comparison_reason,judge_prompt_version,created_at)"
        " VALUES (?,?,?,?,?,?,?,?,?)",
        "l": "INSERT INTO retrieved_learning_evaluation (user_id,session_id,interaction_id,interaction_created_at,kind,"
        "learning_id,is_relevant,relevance_reason,impact,impact_reason,created_at) VALUES (?,?,?,?,?,?,?,?,?,?,?)",
    }
    turn = 0
    for number in range(sessions):
        # A log is written as time goes by, and so in this order.
        user, session = f"user-{chance.randrange(1 + sessions // SESSIONS_A_USER)}", f"{chance.getrandbits(64):016x}"
        begin = BEGIN + timedelta(seconds=20 * number)
        treated = number % 2
        arm = "treatment" if treated else "holdout"
        for request in range(REQUESTS_A_SESSION):
            name = f"{chance.getrandbits(64):016x}-{number}-{request}"
            at = begin + timedelta(minutes=request)
            rows["r"].append((name, user, at.isoformat(), "prod", "agent@2", session, 1 - treated, "exp-1", arm))
            for role in ("User", "Agent"):
                turn += 1
                agent = role == "Agent"
                has_shadow = agent and number % 5 == 0
                rows["i"].append((
                    turn, user, words, name, (at + timedelta(seconds=10 * agent)).isoformat(), role, 60,
                    words if has_shadow else "", tools if agent else "[]", cited if agent else "[]",
                    learnings if agent and treated else "[]", EMBEDDING,
                ))  # fmt: skip
                if has_shadow:
                    rows["s"].append((
                        str(turn), session, "agent@2", chance.randrange(2), chance.choice("12"), 0, "why", "v1.1.0",
                        at.isoformat(),
                    ))  # fmt: skip
                if agent and treated and number % 4 == 1:
                    rows["l"].append((
                        user, session, turn, int(at.timestamp()), "user_playbook", "1", 1, "rel", "positive", "imp",
                        int(begin.timestamp()),
                    ))  # fmt: skip
        success = chance.random() < 0.7
        rows["e"].append((
            user, session, "agent@2", "agent_success", success, "" if success else "wrong_answer",
            "" if success else "why", begin.isoformat(), chance.randrange(3), 2 if success else None, '["billing"]',
            EMBEDDING,
        ))  # fmt: skip
        if number % 5000 == 0 or number == sessions - 1:
            for kind, insert in inserts.items():
                connection.executemany(insert, rows[kind])
                rows[kind] = []
    connection.commit()
    connection.close()


def scan(path: Path) -> int:
    """What anybody would write: every row, and json.loads of what is JSON."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    count = 0
    for table, columns in SCANNED.items():
        json_columns = OF_JSON.get(table, 0)
        for row in connection.execute(f"SELECT {columns} FROM {table}"):
            for cell in row[:json_columns]:
                if cell is not None:
                    json.loads(cell)
            count += table == "interactions"
    return count


def sessions(path: Path) -> int:
    """Whole sessions, with everything that belongs to each."""
    from evalr.reflexio import open_store

    with open_store(path) as store:
        return sum(len(record.interactions) for record in store.sessions(store.account()))


def figures(path: Path) -> int:
    """Whole sessions, but for texts and tools, which no figure is made of."""
    from evalr.reflexio import open_store

    without = ("content", "expert_content", "tools_used")
    with open_store(path) as store:
        return sum(len(record.interactions) for record in store.sessions(store.account(), without=without))


def inputs(path: Path) -> int:
    """What the reader yields: transcripts, sessions, exchanges, learnings in use, stored verdicts."""
    from evalr.logs import read
    from evalr.measures import Transcript

    items: Iterator[object] = iter(read(path, kind="reflexio", arms="experiment:exp-1"))
    return sum(len(item.turns) for item in items if isinstance(item, Transcript))


def compat(path: Path) -> int:
    """All that Reflexio itself computes: its page by day and week, its sets, rules, experiment, dashboard and lists."""
    from evalr.reflexio import Config, Experiment, compat_figures, open_store

    config = Config(experiments=[Experiment("exp-1", 50.0, BEGIN)])
    with open_store(path) as store:
        found = compat_figures(store, source_sets={"all": ["prod"]}, config=config, now=END)
    assert found["get_evaluation_overview"]["week"]["hero"]["regular_success_rate_pp"] > 0
    return int(found["row_counts"]["interactions"])


def everything(path: Path) -> int:
    """The figures of whole sessions, and then all that Reflexio itself computes."""
    figures(path)
    return compat(path)


def answers(path: Path) -> int:
    """All that `impact` says: both arms in six measures, trends, shadow answers, learnings, the newest, health."""
    from evalr.reflexio import impact

    found = impact(path, arms="experiment:exp-1")
    return 4 * found.health.published


def report(path: Path) -> int:
    """What `evalr report` prints: every measure with its intervals, and all that `impact` says without arms."""
    return _report(path)


def report_alone(path: Path) -> int:
    """The same, read by one process."""
    return _report(path, processes=1)


def report_compat(path: Path) -> int:
    """What `evalr report --compat reflexio` prints, and all that it has as JSON."""
    return _report(path, compat="reflexio")


def _report(path: Path, **settings: str | int) -> int:
    from evalr import report

    found = report(path, now=END, **settings)
    assert "came back" in found.text()
    json.dumps(found.to_dict(), default=str)
    return 4 * found.inputs["transcript"]


WAYS: dict[str, Callable[[Path], int]] = {
    "scan": scan,
    "figures": figures,
    "answers": answers,
    "sessions": sessions,
    "inputs": inputs,
    "compat": compat,
    "everything": everything,
    "report": report,
    "report_alone": report_alone,
    "report_compat": report_compat,
}


def one_way(way: str, path: Path) -> None:
    before, clock = processor_seconds(), time.perf_counter()
    count = WAYS[way](path)
    wall, seconds = time.perf_counter() - clock, processor_seconds() - before
    peak = max(resource.getrusage(who).ru_maxrss for who in EVERYBODY) / 1024
    print(json.dumps({"way": way, "interactions": count, "seconds": seconds, "wall": wall, "peak_mib": peak}))


EVERYBODY = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)


def processor_seconds() -> float:
    """Of this process, and of those that it has started and that have ended."""
    used = [resource.getrusage(who) for who in EVERYBODY]
    return sum(each.ru_utime + each.ru_stime for each in used)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("interactions", nargs="?", type=int, default=1_000_000)
    options.add_argument("--way", choices=WAYS)
    options.add_argument("--database", type=Path)
    options.add_argument("--rounds", type=int, default=3)
    given = options.parse_args()
    if given.way is not None:
        one_way(given.way, given.database)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = given.database or Path(folder) / "reflexio_bench.db"
        if not path.exists():
            generate(path, given.interactions)
        print(f"{given.interactions:,} interactions, {path.stat().st_size / 1e6:,.0f} MB")
        plain: dict[str, float] = {}
        for way in WAYS:
            command = [sys.executable, __file__, "--way", way, "--database", str(path)]
            runs = [
                json.loads(subprocess.run(command, capture_output=True, check=True).stdout) for _ in range(given.rounds)
            ]
            best = {name: min(run[name] for run in runs) for name in ("seconds", "wall", "peak_mib")}
            plain = plain or best
            print(
                f"  {way:13} {best['wall']:6.2f} s by the clock, {best['wall'] / plain['wall']:5.2f}x; "
                f"{best['seconds']:6.2f} s of the processor, {best['seconds'] / plain['seconds']:5.2f}x; "
                f"{best['peak_mib']:4.0f} MiB a process; {runs[0]['interactions']:,} turns"
            )


if __name__ == "__main__":
    main()

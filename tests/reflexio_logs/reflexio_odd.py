"""Logs made up of a seed, of which about each twentieth cell is not what Reflexio writes."""

from __future__ import annotations

import json
import random
from datetime import timedelta
from pathlib import Path
from typing import Any

from reflexio_writing import BEGIN, Writer

TAG = "reflexio_retrieval_enabled"
_STRANGE = [
    None,
    "",
    0,
    1,
    -3,
    7,
    2.5,
    1e30,
    "x",
    b"y",
    b"\xff\xfe",
    "[]",
    "{}",
    "null",
    "[1]",
    '{"a": 1}',
    " ",
    "2026-09-01",
]
_TIMES = [
    None, "", "soon", 0, 1.5e9, "1790000000", "2026-09-01 10:00:00", "2026-09-01T10:00:00+02:00", "9999-01-01T00:00:00",
    b"2026-09-01",
]  # fmt: skip


def _or(name: Any) -> Any:
    return "" if name is None else name


class _Chance(random.Random):
    """Odds of a made-up log."""

    odd = 0.05

    def cell(self, usual: Any) -> Any:
        """The usual value, or now and then another one."""
        return self.choice(_STRANGE) if self.random() < self.odd else usual

    def time(self, usual: Any) -> Any:
        """The usual time, or now and then another one."""
        if self.random() < self.odd:
            return self.choice(_TIMES)
        return usual.isoformat(timespec="auto") if self.random() < 0.9 else usual.replace(tzinfo=None).isoformat(" ")

    def learnings(self, id_name: str) -> str | None:
        """What an answer was given, or cites."""
        kinds = ["user_playbook", "profile", "agent_playbook", "playbook" if id_name == "real_id" else "profile"]
        named = [{"kind": self.choice(kinds), id_name: self.choice("123p"), "title": self.choice(["", "rule", " a "])}
                 for _ in range(self.randrange(4))]  # fmt: skip
        return None if self.random() < 0.1 else json.dumps(named)


def odd_log(
    path: Path, seed: int, *, release: str = "0.2.32", sessions: int = 40, odd: float = 0.05, shared: bool = True
) -> Path:
    """A log of a release; those of one seed are alike. Without strange cells where `odd` is 0.

    Session ids are those of several users where they are `shared`.
    """
    chance = _Chance(seed)
    chance.odd = odd
    writer = Writer(path, release, indexes=chance.random() < 0.7)
    for table in ("profiles (profile_id TEXT", "user_playbooks (user_playbook_id INTEGER"):
        writer.connection.execute(f"CREATE TABLE {table}, content TEXT, trigger TEXT, created_at TEXT)")
    writer.connection.execute("INSERT INTO user_playbooks VALUES (1, 'Rule', 'when', '2026-09-01T00:00:00+00:00')")
    writer.connection.execute("INSERT INTO profiles VALUES ('p', 'Likes tea', NULL, '2026-09-02T00:00:00+00:00')")
    writer.connection.execute("CREATE TABLE _operation_state (service_name TEXT, operation_state TEXT)")
    number = 0
    for place in range(sessions):
        user = chance.choice(["u1", "u2", "u3", f"u{place}", chance.cell("u4")])
        session = chance.choice([f"s{place}", f"s{place}", "shared", chance.cell("s")])
        session = session if shared else f"s{place}"
        began = BEGIN + timedelta(hours=chance.randrange(400), microseconds=chance.choice([0, 0, 250]))
        turns: list[int] = []
        names: list[str] = []
        for part in range(chance.randrange(4)):
            at = began + timedelta(minutes=20 * part)
            name = f"r{place}-{part}"
            names.append(name)
            experiment = chance.choice([None, "exp", "exp", chance.cell("other")])
            writer.add(
                "requests", request_id=chance.cell(name) if chance.random() < 0.1 else name, user_id=_or(user),
                session_id=session, created_at=chance.time(at) or "",
                source=chance.cell(chance.choice(["prod", "", "beta"])) or "", agent_version=chance.cell("v1") or "",
                evaluation_only=chance.cell(chance.choice([0, 0, 1])) or 0, retrieval_experiment_id=experiment,
                retrieval_experiment_arm=chance.cell(chance.choice(["treatment", "holdout"])),
                metadata=chance.cell(json.dumps({TAG: chance.choice([True, False, "true"])})) or "{}",
            )  # fmt: skip
            for _ in range(chance.randrange(5)):
                number += 1
                role = chance.choice(["User", "Agent", "Agent", "user", "tool", chance.cell("system")])
                agent = role == "Agent"
                said = at + timedelta(seconds=chance.randrange(9000))
                turns.append(number)
                writer.add(
                    "interactions", interaction_id=number, request_id=name, created_at=chance.time(said) or "",
                    role=_or(role), content=chance.cell("text") or "", token_count=chance.cell(7),
                    shadow_content=chance.choice(["", "other"]) if agent else chance.cell("") or "",
                    user_action=chance.cell("none") or "", expert_content=chance.cell("") or "",
                    tools_used=chance.cell(json.dumps([{"tool_name": "find", "tool_data": {"q": 1}}])),
                    citations=chance.cell(chance.learnings("real_id")) if agent else None,
                    retrieved_learnings=chance.cell(chance.learnings("learning_id")) if agent else None,
                )  # fmt: skip
        for _ in range(chance.randrange(3)):
            _judge(writer, chance, session, user, began, names)
        for turn in turns:
            if chance.random() < 0.3:
                writer.shadow(
                    chance.cell(turn), chance.cell(session) or "", chance.time(began) or "",
                    reflexio_is_request_1=chance.cell(chance.choice([0, 1])) or 0,
                    better_request=chance.cell(chance.choice(["1", "2", "tie"])) or "",
                    is_significantly_better=chance.cell(chance.choice([0, 1])) or 0,
                    judge_prompt_version=chance.choice(["v1.1.0", "v1.1.0", "v2", ""]),
                )  # fmt: skip
            if chance.random() < 0.4 and release >= "0.2.29":
                _judge_learning(writer, chance, session, user, began, turn)
        if chance.random() < 0.1:
            name = f"retrieved_learning_eval::{len(str(user))}:{user}::{len(str(session))}:{session}"
            state = {
                "status": chance.choice(["complete", "degraded"]),
                "evaluation_version": chance.choice(["2", "3", ""]),
            }
            writer.connection.execute(
                "INSERT INTO _operation_state VALUES (?, ?)", [name, chance.cell(json.dumps(state))]
            )
        if chance.random() < 0.1 and release >= "0.2.29":
            writer.add(
                "session_outcomes", outcome_id=f"o{place}", user_id=_or(user), session_id=_or(session),
                outcome=chance.cell(chance.choice(["success", "failure", "unknown"])) or "",
                occurred_at=chance.cell(int(began.timestamp())) or 0, value=chance.cell(1.5),
            )  # fmt: skip
    writer.add("interactions", interaction_id=number + 1, request_id="gone", created_at=BEGIN.isoformat(), role="User")
    return writer.done()


def _judge(writer: Writer, chance: _Chance, session: Any, user: Any, began: Any, names: list[str]) -> None:
    success = chance.choice([0, 1])
    writer.outcome(
        chance.cell(session) or "", _or(user) if chance.random() < 0.95 else "", chance.time(began) or "",
        success=chance.cell(success) or 0, agent_version=chance.cell("v1") or "",
        evaluation_name=chance.choice(["judge", "judge", "other", None]),
        failure_type=None if success else chance.cell(chance.choice(["wrong_answer", "SYSTEM_ERROR "])),
        failure_reason=chance.cell(None), number_of_correction_per_session=chance.cell(chance.randrange(3)) or 0,
        user_turns_to_resolution=chance.cell(chance.choice([None, 1, 4])),
        is_escalated=chance.cell(chance.choice([0, 1])) or 0,
        tags=chance.cell(chance.choice([None, '["billing"]', "[]"])),
        trajectory_through_request_id=chance.choice([None, *names]),
    )  # fmt: skip


def _judge_learning(writer: Writer, chance: _Chance, session: Any, user: Any, began: Any, turn: int) -> None:
    for _ in range(chance.choice([1, 1, 2])):
        diagnosis = {
            "category": chance.choice(["content_defect", "no_issue", "odd"]),
            "evidence_interaction_ids": [turn],
        }
        writer.add(
            "retrieved_learning_evaluation", user_id=_or(user), session_id=_or(session),
            interaction_id=chance.cell(turn), interaction_created_at=chance.cell(int(began.timestamp())),
            kind=chance.cell(chance.choice(["user_playbook", "profile"])) or "", learning_id=chance.choice("12p"),
            is_relevant=chance.cell(chance.choice([None, 0, 1])),
            impact=chance.cell(chance.choice([None, "positive", "neutral", "negative"])),
            created_at=int(began.timestamp()), diagnosis=chance.cell(chance.choice([None, json.dumps(diagnosis)])),
            evaluated_playbook_digest=chance.choice([None, "d"]),
            diagnosis_evidence_complete=chance.choice([0, 1]),
        )  # fmt: skip

"""A made-up Reflexio log with everything that a page shows: arms, two answers, learnings, experiments, many sources."""

from __future__ import annotations

import json
import random
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from reflexio_writing import Writer, columns_of

BEGIN = datetime.fromisoformat("2026-10-05T08:00:00+00:00")
MESSAGES = (
    "Can I place the same order as last time?",
    "Where is my invoice for September? I cannot find it in the portal.",
    "How do I reset my password when I no longer have that phone?",
    "The deployment fails at the migration step, what should I check first?",
    "Please cancel the second of my two subscriptions, but keep the first one.",
)
SERVED = (
    "Yes. Your last order was one barbecue chicken pizza, to be delivered to the office. Would you like that again?",
    "Your September invoice is under Billing, Documents. I have sent it to your address as well.",
    "Open Account Settings, choose Security, then Reset Password, and confirm with one of your backup codes.",
)
SHADOW = ("Yes. What would you like to order?", "Invoices are in the portal.", "Please contact support.")
FAILURES = ("wrong_answer", "missing_tool", "insufficient_info_from_tool", None)
SOURCES = ("web", "mobile", "mail", "partner api")
RULES = ("Confirm the last order before a new one", "Name the menu that a document is found under")


class MadeUp:
    """Sessions of many users over some weeks, written in bulk."""

    def __init__(self, writer: Writer, *, tags: bool, experiment: str | None, texts: tuple[str, ...] = ()) -> None:
        self.writer, self.tags, self.experiment = writer, tags, experiment
        self.chosen = random.Random(7)
        self.texts = texts
        self.rows: dict[str, list[dict[str, Any]]] = {}
        self.interactions = 0

    def say(self, text: str) -> str:
        return self.chosen.choice(self.texts) if self.texts else text

    def add(self, table: str, **row: Any) -> None:
        late = table == "retrieved_learning_evaluation" and self.writer.release < "0.2.29"
        known = {} if late else columns_of(table, self.writer.release)
        self.rows.setdefault(table, []).append({name: value for name, value in row.items() if name in known})

    def turn(self, request: str, user: str, at: datetime, role: str, content: str, **row: Any) -> int:
        self.interactions += 1
        self.add("interactions", interaction_id=self.interactions, request_id=request, user_id=user,
                 created_at=at.isoformat(), role=role, content=content, **row)  # fmt: skip
        return self.interactions

    def session(self, number: int, users: int, days: int) -> None:
        chosen = self.chosen
        user, session = f"user-{number % users:04d}", f"session-{number:06d}"
        at = BEGIN + timedelta(days=number % days, minutes=chosen.randrange(600))
        treated = number % users % 5 > 0
        arm: dict[str, Any] = {}
        if self.experiment is not None:
            arm["retrieval_experiment_id"] = self.experiment
            arm["retrieval_experiment_arm"] = "treatment" if treated else "holdout"
        tag: dict[str, Any] = {"reflexio_retrieval_enabled": treated} if number % 11 else {}
        self.add("requests", request_id=f"r{number}", user_id=user, session_id=session, created_at=at.isoformat(),
                 source=self.say(SOURCES[number % 7 % 4]), agent_version="agent@2", evaluation_only=int(not treated),
                 metadata=json.dumps(tag if self.tags else {}), **arm)  # fmt: skip
        self.turn(f"r{number}", user, at, "User", self.say(chosen.choice(MESSAGES)))
        learnings = [("user_playbook", str(number % 9)), ("profile", f"p{number % users}")][: 1 + number % 2]
        given = json.dumps([{"kind": kind, "learning_id": name} for kind, name in learnings]) if treated else None
        shadow = self.say(chosen.choice(SHADOW)) if number % 3 == 0 else ""
        answered = at + timedelta(minutes=1)
        answer = self.turn(f"r{number}", user, answered, "Agent", self.say(chosen.choice(SERVED)), token_count=40,
                           shadow_content=shadow, retrieved_learnings=given,
                           citations=json.dumps([]) if treated else None)  # fmt: skip
        if number % 4:
            self.turn(f"r{number}", user, at + timedelta(minutes=2 + chosen.randrange(90)), "User", self.say("Thanks."))
        if number % 10:
            success = chosen.random() < (0.74 if treated else 0.62)
            self.add("agent_success_evaluation_result", user_id=user, session_id=session, agent_version="agent@2",
                     created_at=at.isoformat(), is_success=int(success), evaluation_name="agent_success",
                     failure_type=None if success else chosen.choice(FAILURES),
                     failure_reason=None if success else self.say("It did not say where the document is found."),
                     number_of_correction_per_session=chosen.randrange(3),
                     is_escalated=int(not success and number % 3 == 0),
                     user_turns_to_resolution=1 + number % 3 if success else None,
                     tags=[None, "[]", '["billing", "vip"]'][number % 3])  # fmt: skip
        if shadow:
            better = chosen.choice(["1", "1", "2", "tie"])
            self.add("shadow_comparison_verdicts", interaction_id=str(answer), session_id=session,
                     created_at=answered.isoformat(), reflexio_is_request_1=1, better_request=better,
                     is_significantly_better=int(number % 2), judge_prompt_version="v1",
                     comparison_reason=self.say("It names the order, so that one word is enough."))  # fmt: skip
        for kind, name in learnings if treated and number % 2 else ():
            self.learning(session, user, answer, answered, kind, name)

    def learning(self, session: str, user: str, answer: int, at: datetime, kind: str, name: str) -> None:
        impact = self.chosen.choice(["positive", "positive", "neutral", "negative", None])
        diagnosis = {"category": "content_defect", "reason": self.say("The rule names a menu that is gone."),
                     "evidence_interaction_ids": [answer - 1, answer]}  # fmt: skip
        self.add("retrieved_learning_evaluation", user_id=user, session_id=session, interaction_id=answer,
                 interaction_created_at=int(at.timestamp()), kind=kind, learning_id=name, is_relevant=1,
                 relevance_reason=self.say("It is about the document that was asked for."), impact=impact,
                 impact_reason=self.say("The answer names the menu that it says."), created_at=int(at.timestamp()),
                 diagnosis=json.dumps(diagnosis) if impact == "negative" and kind != "profile" else None,
                 evaluated_playbook_digest="d", diagnosis_evidence_complete=1)  # fmt: skip

    def done(self) -> Path:
        for table, rows in self.rows.items():
            if not rows[0]:
                continue  # of a later release
            names = sorted({name for row in rows for name in row})
            marks = ", ".join("?" * len(names))
            self.writer.connection.executemany(
                f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})",
                [
                    [row.get(name, "" if name in ("shadow_content", "metadata") else None) for name in names]
                    for row in rows
                ],
            )
        return self.writer.done()


def made_up_log(
    path: Path,
    *,
    sessions: int,
    users: int,
    days: int = 28,
    release: str = "0.2.32",
    experiment: str | None = "autumn-2026",
    texts: tuple[str, ...] = (),
) -> Path:
    """The database, whose sessions are tagged where its release keeps tags."""
    made = MadeUp(Writer(path, release), tags=release <= "0.2.25", experiment=experiment, texts=texts)
    for number in range(sessions):
        made.session(number, users, days)
    return made.done()

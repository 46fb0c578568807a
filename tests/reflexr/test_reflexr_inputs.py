"""Chains as sessions, transcripts and histories, and feedback as verdicts."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from reflexr_samples import ADA, BEGIN, BOT, Writer, write_wire

from evalr import InputError, Verdict, report
from evalr.labels import Dataset
from evalr.logs.jsonl import to_line
from evalr.measures import History, Session, TaskCompletion, Transcript, completion_rate, measure_drop_off
from evalr.reflexr import (
    Envelope,
    Feedback,
    artifact_histories,
    chain_sessions,
    chain_transcripts,
    event_words,
    feedback,
    read,
)

BOB = {"kind": "user", "id": "bob", "name": None}
JUDGE = {"kind": "evaluator", "name": "judge", "version": "3"}
CRON = {"kind": "system", "name": "cron"}
LATER = BEGIN + timedelta(days=1)


def wire(folder: Path, writer: Writer) -> Path:
    return write_wire(folder / "log.jsonl", writer.rows)


def desk() -> Writer:
    """One ticket: a run fails once, proposes a fix, a person approves it, it is applied and resolved."""
    writer = Writer()
    chain = writer.event("desk:ticket.opened", id="t", service="billing", severity=8)
    writer.fact("rule_fired", "fir_1", chain=chain, matched=[1])
    writer.fact("run_started", "fir_1", chain=chain)
    writer.fact("run_retrying", "fir_1", chain=chain, error="timed out")
    writer.event("desk:fix.proposed", chain=chain, actor=BOT, proposal_id="p1", summary="roll back")
    writer.fact("run_succeeded", "fir_1", chain=chain)
    writer.event("desk:fix.approved", chain=chain, actor=ADA, proposal_id="p1", after=300)
    writer.event("desk:ticket.resolved", chain=chain, actor=BOT, note="rolled back", after=5)
    return writer


# Sessions


def test_a_chain_is_a_session(tmp_path: Path) -> None:
    (session,) = chain_sessions(wire(tmp_path, desk()))
    assert isinstance(session, Session)
    assert [(each.role, each.kind, each.ref) for each in session.activities] == [
        ("system", "desk:ticket.opened", None),
        ("system", "reflexr:rule_fired", None),
        ("system", "reflexr:run_started", None),
        ("agent", "run_failed", None),
        ("agent", "proposal", "p1"),
        ("system", "reflexr:run_succeeded", None),
        ("person", "resolution", "p1"),
        ("agent", "closed", None),
    ]
    assert session.attributes == {"starts": "desk:ticket.opened", "workspace": "prod"}
    assert session == Session.model_validate(session.model_dump())
    assert [wait.ended for wait in session.waits(now=LATER)] == ["returned", "returned"]


def outcome(folder: Path, writer: Writer, **options: Any) -> str:
    (session,) = chain_sessions(wire(folder, writer), **options)
    assert isinstance(session, Session)
    session = session.model_copy(update={"read_at": None})
    return measure_drop_off(session, window=timedelta(hours=1), now=LATER).outcome


def test_a_chain_that_an_agent_resolved_alone_is_not_dropped(tmp_path: Path) -> None:
    writer = Writer()
    chain = writer.event("desk:ticket.opened")
    writer.event("desk:ticket.resolved", chain=chain, actor=BOT)
    assert outcome(tmp_path, writer) == "continued"
    assert outcome(tmp_path, writer, resolves=()) == "dropped"


def test_a_run_that_only_failed_waits_for_a_person(tmp_path: Path) -> None:
    """The facts are the system's own: read so, the agent never acted, and nothing was dropped."""
    writer = Writer()
    chain = writer.event("desk:ticket.opened")
    writer.fact("rule_fired", "fir_1", chain=chain, matched=[1])
    writer.fact("run_dead_lettered", "fir_1", chain=chain, error="broken")
    assert outcome(tmp_path, writer) == "dropped"
    assert outcome(tmp_path, writer, failures=False) == "continued"
    writer.fact("run_requeued", "fir_1", chain=chain, actor=ADA, after=60)
    assert outcome(tmp_path, writer) == "continued"


def test_an_external_agent_is_a_person_where_it_acts_for_one(tmp_path: Path) -> None:
    client = {"kind": "external_agent", "client_id": "mcp", "name": None, "on_behalf_of": ADA}
    for who, expected in ((client, "continued"), ({**client, "on_behalf_of": None}, "dropped")):
        writer = Writer()
        chain = writer.event("desk:ticket.opened")
        writer.event("desk:note.added", chain=chain, actor=BOT)
        writer.event("desk:note.added", chain=chain, actor=who)
        assert outcome(tmp_path, writer) == expected


def test_an_open_proposal_is_a_wait(tmp_path: Path) -> None:
    writer = Writer()
    chain = writer.event("desk:ticket.opened")
    writer.event("desk:fix.suggested", chain=chain, actor=BOT, id="x", ticket={"fix": "p9"})
    writer.event("desk:note.added", chain=chain, actor=ADA)
    (session,) = chain_sessions(wire(tmp_path, writer), proposes="fix.suggested", ref="ticket.fix")
    assert isinstance(session, Session)
    assert measure_drop_off(session, window=timedelta(hours=1), now=LATER).cause is None
    assert [(wait.of, wait.ended) for wait in session.waits(now=LATER)] == [("reply", "returned"), ("proposal", None)]


# Transcripts


def test_a_chain_is_a_transcript(tmp_path: Path) -> None:
    writer = desk()
    writer.event("reflexr:feedback_given", chain="t", actor=ADA, feedback_type="x", target={}, value={"text": "LABEL"})
    (transcript,) = chain_transcripts(wire(tmp_path, writer))
    assert isinstance(transcript, Transcript)
    assert transcript.request == "desk:ticket.opened: service=billing, severity=8"
    assert [(turn.role, turn.text, turn.kind) for turn in transcript.turns] == [
        ("agent", "timed out", "run_failed"),
        ("agent", "roll back", "proposal"),
        ("person", "desk:fix.approved: proposal_id=p1", "resolution"),
        ("agent", "rolled back", "closed"),
    ]
    assert transcript.result == "rolled back"
    assert "LABEL" not in to_line(transcript)
    assert transcript.id == "prod/t"


def test_the_words_of_events_are_the_callers_to_choose(tmp_path: Path) -> None:
    (transcript,) = chain_transcripts(wire(tmp_path, desk()), words=lambda envelope: f"<{envelope.type}>", resolves=())
    assert isinstance(transcript, Transcript)
    assert transcript.request == "<desk:ticket.opened>"
    assert transcript.result is None


def test_words_leave_out_what_is_no_plain_field(tmp_path: Path) -> None:
    writer = Writer()
    writer.event("desk:ticket.opened", tags=["a"], note="", flag=True)
    seen: list[Envelope] = []
    list(chain_transcripts(wire(tmp_path, writer), words=lambda envelope: seen.append(envelope) or "x"))  # type: ignore[func-returns-value]
    assert event_words(seen[0]) == "desk:ticket.opened: note=, flag=True"


# Histories


def test_artifacts_are_histories(tmp_path: Path) -> None:
    writer = Writer()
    chain = writer.event("docs:page.written", actor=BOT, page="intro", text="We ship on Friday.")
    writer.event("docs:page.edited", chain=chain, actor=ADA, page="intro", text="We ship on Monday.")
    other = writer.event("docs:page.written", actor=ADA, page="faq", text="None yet.")
    writer.event("docs:edit.proposed", chain=other, actor=BOT, page="faq", proposal_id="p1", text="One: when?")
    writer.event("docs:edit.proposed", chain=other, actor=BOT, page="faq", proposal_id="p2", text="Never taken.")
    writer.event("docs:edit.rejected", chain=other, actor=ADA, page="faq", proposal_id="p2")
    writer.event("docs:edit.approved", chain=other, actor=ADA, proposal_id="p1", text="One: when? On Monday.")
    writer.event("docs:comment.added", chain=other, actor=BOB, note="fine")
    log = artifact_histories(wire(tmp_path, writer), artifact="page", tenant="acme")
    intro, faq = log
    assert isinstance(intro, History)
    assert isinstance(faq, History)
    assert (intro.id, faq.id) == ("acme/prod/intro", "acme/prod/faq")
    assert [(each.role, each.text) for each in intro.revisions] == [
        ("agent", "We ship on Friday."),
        ("person", "We ship on Monday."),
    ]
    assert [(each.role, each.text, each.at) for each in faq.revisions] == [
        ("person", "None yet.", BEGIN + timedelta(seconds=3)),
        ("agent", "One: when?", BEGIN + timedelta(seconds=7)),
        ("person", "One: when? On Monday.", BEGIN + timedelta(seconds=7)),
    ]
    found = report(artifact_histories(tmp_path / "log.jsonl", artifact="page"), now=LATER, measures=["rewrites"])
    assert found["rewrites"].n + found["rewrites"].left_out.get("pending", 0) == 2


def test_an_approval_as_it_stands_is_the_proposers(tmp_path: Path) -> None:
    writer = Writer()
    writer.event("docs:edit.proposed", actor=BOT, page="faq", proposal_id="p1", text="One: when?")
    writer.event("docs:edit.approved", actor=ADA, page="faq", proposal_id="p1")
    (history,) = artifact_histories(wire(tmp_path, writer), artifact=lambda envelope: envelope.text_field("page"))
    assert isinstance(history, History)
    assert [(each.role, each.attributes) for each in history.revisions] == [("agent", {"by": "agent:r"})]


def test_an_artifact_needs_a_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="artifact='' must name a field"):
        artifact_histories(wire(tmp_path, Writer()), artifact="")


# Feedback


class Rating(BaseModel):
    good: bool


def rated() -> Writer:
    writer = desk()
    run = {"kind": "run", "run_id": "fir_1"}

    def give(actor: Any, good: Any, target: Any, kind: str = "rating") -> None:
        value = {"good": good}
        writer.event("reflexr:feedback_given", chain="t", actor=actor, feedback_type=kind, target=target, value=value)

    give(ADA, False, run)
    give(BOB, True, run)
    give(JUDGE, False, run)
    give(CRON, True, run)
    give(ADA, True, run)
    give(ADA, True, {"kind": "firing", "firing_id": "fir_1"})
    give(ADA, True, {"kind": "chain", "correlation_id": "t"})
    give(ADA, "maybe", run)
    give(ADA, True, {"kind": "run", "run_id": "fir_9"})
    give(ADA, True, {"kind": "chain", "correlation_id": "elsewhere"})
    give(ADA, True, {"kind": "thread"})
    give(ADA, True, run, kind="other")
    return writer


def given_feedback(folder: Path, **options: Any) -> tuple[list[Feedback[Rating]], dict[str, int]]:
    log = feedback(wire(folder, rated()), Rating, feedback_type="rating", **options)
    found = [each for each in log if isinstance(each, Feedback)]
    assert log.records == len(found) + log.left_out.total
    return found, dict(log.left_out.counts)


def test_peoples_feedback_is_kept_apart_and_the_last_of_each_counts(tmp_path: Path) -> None:
    found, left_out = given_feedback(tmp_path)
    assert [(each.given_by, each.target, each.result.value.good) for each in found] == [
        ("user:bob", "run", True),
        ("user:ada", "run", True),
        ("user:ada", "firing", True),
        ("user:ada", "chain", True),
    ]
    assert left_out == {
        "feedback by evaluators": 1,
        "feedback by others": 1,
        "feedback that its giver gave anew": 1,
        "feedback that is no Rating: wrong type in 'value.good'": 1,
        "feedback on a run that is not in its chain": 1,
        "feedback on a chain that is not in its chain": 1,
        "feedback on nothing that is known": 1,
    }
    everything, _ = given_feedback(tmp_path, givers=("people", "evaluators", "others"), latest=False)
    assert [each.result.evaluator for each in everything] == ["people"] * 2 + ["judge", "system:cron"] + ["people"] * 3
    assert [each.result.version for each in everything][2] == "3"


def test_each_context_ends_where_its_target_did(tmp_path: Path) -> None:
    found, _ = given_feedback(tmp_path)
    ends = {each.target: each.context[-1].type for each in found}
    assert ends == {
        "run": "reflexr:run_succeeded",
        "firing": "reflexr:rule_fired",
        "chain": "desk:ticket.resolved",
    }
    by_target = {each.target: each for each in found}
    assert by_target["chain"].transcript().result == "rolled back"
    assert by_target["run"].transcript().result is None
    assert [turn.text for turn in by_target["run"].transcript().turns] == ["timed out", "roll back"]
    about = by_target["run"].result.about
    assert about is not None
    assert (about.kind, about.id, about.session, about.user) == ("run", "prod/fir_1", "prod/t", "user:ada")


def test_feedback_makes_a_dataset(tmp_path: Path) -> None:
    found, _ = given_feedback(tmp_path, targets=("run",))
    examples = [each.example() for each in found]
    assert [(each.id, each.expected, each.author, each.group) for each in examples] == [
        ("prod/evt_10", Rating(good=True), "user:bob", "prod/t"),
        ("prod/evt_13", Rating(good=True), "user:ada", "prod/t"),
    ]
    assert all(isinstance(each.input, Transcript) and each.input.turns for each in examples)
    assert [each.id for each in Dataset("ratings", examples)] == [each.id for each in examples]


def test_a_report_reads_feedback_as_verdicts(tmp_path: Path) -> None:
    writer = desk()
    for actor, completed in ((ADA, True), (BOB, False), (JUDGE, True)):
        value = {"completed": completed, "quality": 4, "reason": None}
        target = {"kind": "chain", "correlation_id": "t"}
        writer.event("reflexr:feedback_given", chain="t", actor=actor, feedback_type="done", target=target, value=value)
    path = wire(tmp_path, writer)
    found = report(path, feedback="done=completion", now=LATER)
    rows = {row.evaluator: row.estimate.value for row in found.rows if row.estimate.name == "completion"}
    assert rows == {"people@1": 0.5, "judge@3": 1.0}
    verdicts = [each.result for each in feedback(path, TaskCompletion, feedback_type="done", measure="completion")]  # type: ignore[union-attr]
    assert completion_rate(verdicts) == 0.5
    assert all(isinstance(each, Verdict) for each in verdicts)
    early = report(path, feedback="done=completion", now=writer.at - timedelta(seconds=1))
    assert sum(row.estimate.n for row in early.rows if row.estimate.name == "completion") == 2


@pytest.mark.parametrize(
    ("choice", "message"),
    [("done", "write TYPE=MEASURE"), ("=completion", "write TYPE=MEASURE"), ("done=complete", "named 'complete'")],
)
def test_feedback_names_a_type_and_a_measure(tmp_path: Path, choice: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(wire(tmp_path, desk()), feedback=choice)


@pytest.mark.parametrize(("option", "value"), [("targets", ("thread",)), ("givers", "everybody")])
def test_targets_and_givers_are_those_that_there_are(tmp_path: Path, option: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"{option} has"):
        feedback(wire(tmp_path, desk()), Rating, feedback_type="rating", **{option: value})

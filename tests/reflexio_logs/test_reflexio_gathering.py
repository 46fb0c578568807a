"""Sums of parts add up to the whole, in whatever order sessions come: held against made-up sessions of any kind."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from evalr.estimates.lift import Lift
from evalr.logs import Log
from evalr.measures import drop_off_evaluator, drop_off_share, success_rate
from evalr.reflexio import Config, Impact, SourceArms
from evalr_reflexio.answers.asked import Asked
from evalr_reflexio.answers.gathering import Gathering
from evalr_reflexio.answers.impact import answers_of
from evalr_reflexio.conversations import session_of
from evalr_reflexio.corrections import Corrections
from evalr_reflexio.rows import (
    NOT_KEPT,
    CustomerOutcomeRow,
    GradingState,
    InteractionRow,
    LearningRow,
    OutcomeRow,
    Reference,
    RequestRow,
    SessionRecord,
    ShadowRow,
)
from evalr_reflexio.stored import outcome_verdict

BEGIN = datetime(2026, 9, 1, tzinfo=UTC)
NOW = BEGIN + timedelta(days=20)
ARMS = SourceArms({"treatment": ["with"], "control": ["without"]})
LEARNINGS = [Reference("user_playbook", "1"), Reference("user_playbook", "2"), Reference("profile", "p")]


class Nothing:
    """What answers ask of a store beside its sessions."""

    path, org = "made up", None
    notes: tuple[str, ...] = ()

    def learning_texts(self, references: object) -> dict[Reference, str]:
        return {}


@st.composite
def sessions(draw: Any, number: int) -> SessionRecord:
    user = draw(st.sampled_from(["u1", "u2", "u3", ""]))
    at = BEGIN + timedelta(hours=draw(st.integers(0, 400)))
    record = SessionRecord(user, f"s{number}")
    if draw(st.integers(0, 5)):
        source = draw(st.sampled_from(["with", "without", "beta"]))
        only = draw(st.sampled_from([True, False, None]))
        record.requests.append(
            RequestRow(f"r{number}", user, record.session, at, source, "v1", only, None, None, NOT_KEPT, number)
        )
        record.interactions = draw(turns(number, at))
    for place in range(draw(st.integers(0, 2))):
        row = OutcomeRow(
            10 * number + place, user, record.session, at, "v1", draw(st.sampled_from(["judge", "other"])),
            draw(st.booleans()), "wrong_answer", None, draw(st.sampled_from([None, 0, 2])),
            draw(st.sampled_from([None, 1, 5])), draw(st.sampled_from([None, True, False])), None, None, None, None,
        )  # fmt: skip
        record.outcomes.append(row)
    record.shadow_verdicts = [
        ShadowRow(10 * number + place, turn.interaction_id, record.session, at, "v1", draw(st.booleans()),
                  draw(st.sampled_from(["1", "2", "tie"])), draw(st.booleans()), None,
                  draw(st.sampled_from(["v1", "v2"])))
        for place, turn in enumerate(record.interactions)
        if turn.shadow_content
    ]  # fmt: skip
    uses = [(turn, each) for turn in record.interactions for each in turn.learnings or ()]
    record.learning_verdicts = [
        LearningRow(10 * number + place, user, record.session, at, "v1", turn.interaction_id, turn.at, each.kind,
                    each.id, draw(st.sampled_from([None, True, False])), None,
                    draw(st.sampled_from([None, "positive", "neutral", "negative"])), None, None, None, (), False, None)
        for place, (turn, each) in enumerate(uses)
    ]  # fmt: skip
    if draw(st.booleans()):
        outcome = draw(st.sampled_from(["success", "failure", "unknown"]))
        record.customer_outcome = CustomerOutcomeRow(
            f"c{number}", user, record.session, at, outcome, "", None, None, draw(st.booleans())
        )
    record.grading = draw(st.sampled_from([None, GradingState("complete", "2", 0), GradingState("failed", "2", 3)]))
    return record


@st.composite
def turns(draw: Any, number: int, at: datetime) -> list[InteractionRow]:
    found = []
    for place in range(draw(st.integers(0, 4))):
        role = draw(st.sampled_from(["person", "agent", "tool"]))
        given_ = draw(st.lists(st.sampled_from(LEARNINGS), unique=True, max_size=2)) if role == "agent" else []
        cited = draw(st.sampled_from([None, (), tuple(given_[:1])]))
        at += timedelta(minutes=draw(st.integers(0, 200)))
        raw, shadow = {"person": "User", "agent": "Agent"}.get(role, role), role == "agent" and draw(st.booleans())
        row = InteractionRow(
            10 * number + place, f"r{number}", at, role, raw, "", "shadow" if shadow else "",
            draw(st.sampled_from([None, 3, 8])), None, "", (), cited, tuple(given_),
        )  # fmt: skip
        found.append(row)
    return found


@st.composite
def logs(draw: Any) -> list[SessionRecord]:
    return [draw(sessions(number)) for number in range(draw(st.integers(0, 12)))]


def gathering(records: list[SessionRecord]) -> Gathering:
    found = Gathering(
        Asked(now=NOW, newest=5, listed=5),
        arms=ARMS,
        config=Config(),
        evaluator="judge",
        shadow_version="v1",
        controls=("control",),
        corrections=Corrections(are_kept=True, are_dated=False),
    )
    for record in records:
        found.see(record)
    return found


def answer(found: Gathering) -> Impact:
    account = Log("made up", "reflexio", lambda log: iter(()))
    return answers_of(found, Nothing(), account, randomised=False)  # type: ignore[arg-type]


@settings(max_examples=50, deadline=None)
@given(logs(), st.data())
def test_parts_in_any_order_add_up_to_the_whole(records: list[SessionRecord], data: Any) -> None:
    whole = answer(gathering(records)).to_dict()
    shuffled = data.draw(st.permutations(records))
    cut = data.draw(st.integers(0, len(records)))
    parts = gathering(shuffled[:cut])
    parts.merge(gathering(shuffled[cut:]))
    assert answer(parts).to_dict() == whole


@settings(max_examples=50, deadline=None)
@given(logs())
def test_sums_are_those_of_verdicts(records: list[SessionRecord]) -> None:
    found = answer(gathering(records))
    assert found.arms is not None
    verdicts = []
    for record in records:
        own = [row for row in record.outcomes if row.evaluator == "judge"]
        if own:
            verdicts.append(outcome_verdict(record, own[-1], arm=ARMS.read(record).arm))
    assert found.success == success_rate.estimate(verdicts)
    assert dict(found.trend) == dict(success_rate.trend(verdicts))
    evaluator = drop_off_evaluator(now=NOW)
    spoken = [session_of(record, arm=ARMS.read(record).arm) for record in records if record.interactions]
    dropped = [evaluator.evaluate_inline(session) for session in spoken]
    assert found.everyone.measures["drop_off"].value == drop_off_share.estimate(dropped).value
    lift: Lift = found.arms.pairs[0].lifts["success"]
    if {each.about.arm for each in verdicts if each.about} <= {"treatment", "control", None}:
        expected = success_rate.lift(verdicts)
        assert lift.difference == expected.difference
        assert (lift.p, lift.always_valid, lift.relative) == (expected.p, expected.always_valid, expected.relative)

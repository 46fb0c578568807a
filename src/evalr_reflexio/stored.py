"""What the log's own judges and customers said, as evalr's verdicts, each about the input that it judges.

| evaluator | measure | version |
|---|---|---|
| the judge's name, or agent_success | outcome | reflexio: no release keeps that of its prompt |
| shadow_comparison | shadow | the version of its prompt |
| retrieved_learning | learning | that of its grading, where the log keeps it |
| customer, customer_inferred | outcome | 1 |
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from evalr.inputs import About, Side
from evalr.logs.log import Stored
from evalr.measures.learning import LearningImpact
from evalr.measures.session_outcome import SessionOutcome
from evalr.measures.shadow import ShadowWin
from evalr.verdicts import Skip, Verdict
from evalr_reflexio.assigning import CONTROL, HOLDOUT
from evalr_reflexio.conversations import attributes_of, cited_of, learning_id_of, use_words, user_turns_of
from evalr_reflexio.rows import (
    CustomerOutcomeRow,
    InteractionRow,
    LearningRow,
    OutcomeRow,
    Reference,
    SessionRecord,
    ShadowRow,
)
from evalr_reflexio.speaking import Bearer

OUTCOME, SHADOW, LEARNING = "outcome", "shadow", "learning"
SHADOW_JUDGE, LEARNING_JUDGE = "shadow_comparison", "retrieved_learning"
CUSTOMER, INFERRED = "customer", "customer_inferred"
UNVERSIONED = "reflexio"

NO_TAG = "(none)"
"""The tag of verdicts that were tagged, and of which no tag is true."""

PREFIX, PARTIAL = "prefix", "partial"
"""Flags: of a verdict on the first part of a session, and of learnings whose grading did not finish."""

Turns = Mapping[int, InteractionRow | Bearer]
"""The turns of a session by their id."""

Served = Literal["served", "shadow", "arm"]
"""Which answer had Reflexio: that which was served, the shadow, or the served one but in the control's sessions."""


CONTROLS = (CONTROL, HOLDOUT)
"""The arms whose served answers had no Reflexio, unless told otherwise."""


def treatment_side(which: Served, arm: str | None, controls: tuple[str, ...] = CONTROLS) -> Side | None:
    """The answer that had Reflexio in a session of this arm; None where only the arm says, and it has none."""
    if which == "arm":
        return None if arm is None else "shadow" if arm in controls else "served"
    return which


def outcome_verdict(record: SessionRecord, row: OutcomeRow, *, arm: str | None = None) -> Verdict[SessionOutcome]:
    """A verdict on a session. What a release did not keep is None; a success has no failure's type or reason."""
    failed = not row.success
    value = SessionOutcome(
        success=row.success,
        corrections=row.corrections,
        escalated=row.escalated,
        # A failure ends the wait for a success after so many turns; left out, only quick successes would be seen.
        user_turns=row.turns if row.success or row.turns is not None else user_turns_of(record, row),
        failure_type=row.failure_type if failed else None,
        failure_reason=row.failure_reason if failed else None,
    )
    attributes = attributes_of(record)
    if row.agent_version:
        attributes["agent_version"] = row.agent_version
    attributes["evaluator"] = row.evaluator
    if row.tags is not None:  # not tagged yet is another thing than tagged, and nothing fits
        attributes["tags"] = list(row.tags) or NO_TAG
    failure_type = (value.failure_type or "").strip().casefold()
    if failure_type:
        attributes["failure_type"] = failure_type
    first = record.first
    about = About(
        "transcript",
        record.session,
        record.user or None,
        at=row.at if first is None else first.at,
        arm=arm,
        attributes=attributes,
    )
    return Verdict(value, row.evaluator, UNVERSIONED, about, flags=(PREFIX,) if is_prefix(record, row) else ())


def is_prefix(record: SessionRecord, row: OutcomeRow) -> bool:
    """Whether requests came after the last one that the judge saw."""
    if row.through_request is None or record.last is None:
        return False
    return row.through_request != record.last.request_id


def shadow_verdict(
    record: SessionRecord, row: ShadowRow, *, turns: Turns, treatment: Side = "served", arm: str | None = None
) -> Verdict[ShadowWin]:
    """A verdict on two answers: which won follows from the position that it was shown in, as recorded."""
    tie = row.winner == "tie"
    value = ShadowWin(
        winner=row.winner,
        significant=False if tie else row.significant,
        shown_first="served" if row.served_first else "shadow",
        reason=row.reason,
        treatment=treatment,
    )
    turn = None if row.interaction is None else turns.get(row.interaction)
    attributes = attributes_of(record)
    if row.agent_version:
        attributes["agent_version"] = row.agent_version
    about = About(
        "exchange",
        f"verdict:{row.verdict_id}" if row.interaction is None else str(row.interaction),
        record.user or None,
        record.session,
        row.at if turn is None else turn.at,
        arm=arm,
        attributes=attributes,
    )
    return Verdict(value, SHADOW_JUDGE, row.prompt_version or "unknown", about)


def learning_verdict(
    record: SessionRecord, row: LearningRow, *, turns: Turns, arm: str | None = None
) -> Verdict[LearningImpact]:
    """A verdict on what one learning did for one response; what the judge did not say is None."""
    value = LearningImpact(
        relevant=row.relevant,
        relevance_reason=row.relevance_reason,
        impact=row.impact,
        impact_reason=row.impact_reason,
        diagnosis=row.diagnosis,  # type: ignore[arg-type]  # read as one of them
        diagnosis_reason=row.diagnosis_reason,
    )
    learning = Reference(row.kind, row.learning)
    turn = None if row.interaction is None else turns.get(row.interaction)
    attributes = attributes_of(record)
    if row.agent_version:
        attributes["agent_version"] = row.agent_version
    attributes |= {"learning": row.learning, "learning_kind": row.kind}
    if row.interaction is not None:
        attributes["response"] = str(row.interaction)
    if turn is not None:
        attributes |= use_words(cited_of(turn, learning))
    if row.diagnosis is not None:
        attributes["diagnosis_evidence"] = "incomplete" if row.diagnosis_lacks else "complete"
    grading = record.grading
    if grading is not None:
        attributes["grading"] = grading.status
    about = About(
        "learning",
        learning_id_of(row.interaction, learning),
        record.user or None,
        record.session,
        row.interaction_at or row.at,
        arm=arm,
        attributes=attributes,
    )
    version = UNVERSIONED if grading is None or grading.version is None else grading.version
    is_whole = grading is None or grading.status == "complete"
    return Verdict(value, LEARNING_JUDGE, version, about, flags=() if is_whole else (PARTIAL,))


def customer_verdict(
    record: SessionRecord, row: CustomerOutcomeRow, *, arm: str | None = None
) -> Verdict[SessionOutcome] | Skip:
    """What the customer reported: a skip where that is "unknown". An inferred one is Reflexio's own opinion."""
    attributes = attributes_of(record)
    if row.label is not None:
        attributes["label"] = row.label
    about = About("transcript", record.session, record.user or None, at=row.at, arm=arm, attributes=attributes)
    evaluator = INFERRED if row.inferred else CUSTOMER
    if row.outcome == "unknown":
        return Skip("the customer reported unknown", evaluator, "1", about)
    return Verdict(SessionOutcome(success=row.outcome == "success"), evaluator, "1", about)


def _turns_of(record: SessionRecord) -> Turns:
    return {turn.interaction_id: turn for turn in record.interactions}


@dataclass(frozen=True, slots=True)
class Told:
    """One verdict of a session, with the row that it comes from."""

    stored: Stored
    row: Any
    place: str
    is_earlier: bool = False
    """Whether a later row is about the same subject by the same judge: one of them counts."""


def outcomes_told(record: SessionRecord, *, arm: str | None = None) -> Iterator[Told]:
    """The verdicts on a session, by id; of one judge, the last counts."""
    last = {row.evaluator: row.result_id for row in record.outcomes}
    for row in record.outcomes:
        stored = Stored(OUTCOME, outcome_verdict(record, row, arm=arm))
        yield Told(stored, row, f"result {row.result_id}", last[row.evaluator] != row.result_id)


def shadows_told(
    record: SessionRecord,
    *,
    which: Served = "served",
    arm: str | None = None,
    controls: tuple[str, ...] = CONTROLS,
) -> Iterator[Told | ShadowRow]:
    """The verdicts on two answers, by id; of one turn and prompt version, the last counts.

    The bare row where only the arm could say which answer had Reflexio, and the session has none.
    """
    side = treatment_side(which, arm, controls)
    turns = _turns_of(record) if record.shadow_verdicts else {}
    last = {(row.interaction, row.prompt_version): row.verdict_id for row in record.shadow_verdicts}
    for row in record.shadow_verdicts:
        if side is None:
            yield row
            continue
        stored = Stored(SHADOW, shadow_verdict(record, row, turns=turns, treatment=side, arm=arm))
        is_earlier = row.interaction is not None and last[row.interaction, row.prompt_version] != row.verdict_id
        yield Told(stored, row, f"shadow verdict {row.verdict_id}", is_earlier)


def learnings_told(record: SessionRecord, *, arm: str | None = None) -> Iterator[Told]:
    """The verdicts on learnings, by id; of one response and learning, the last counts."""
    turns = _turns_of(record) if record.learning_verdicts else {}
    last = {(row.interaction, row.kind, row.learning): row.result_id for row in record.learning_verdicts}
    for row in record.learning_verdicts:
        stored = Stored(LEARNING, learning_verdict(record, row, turns=turns, arm=arm))
        is_earlier = last[row.interaction, row.kind, row.learning] != row.result_id
        yield Told(stored, row, f"learning result {row.result_id}", is_earlier)

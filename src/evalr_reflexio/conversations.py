"""What happened in a session, as evalr's inputs: the conversation, its times, its exchanges, and learnings in use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from evalr.inputs import Exchange, Input, LearningUse, Session, Side, ToolCall, Transcript, Turn
from evalr_reflexio.rows import InteractionRow, Reference, SessionRecord

NO_SOURCE = "(none)"
"""The request source of requests that name none: no text that Reflexio lets in."""

CITED, SUPPLIED = "cited", "supplied only"


def attributes_of(record: SessionRecord) -> dict[str, str | list[str]]:
    """What a session and all that is about it can be grouped by, from its first request."""
    first = record.first
    if first is None:
        return {}
    found: dict[str, str | list[str]] = {"request_source": first.source or NO_SOURCE}
    if first.agent_version:
        found["agent_version"] = first.agent_version
    if first.evaluation_only is not None:
        found["evaluation_only"] = "true" if first.evaluation_only else "false"
    return found


def shared_fields(record: SessionRecord, arm: str | None) -> dict[str, Any]:
    """The fields that every input and result of a session has."""
    return {"user": record.user or None, "arm": arm, "attributes": attributes_of(record)}


def transcript_of(record: SessionRecord, *, arm: str | None = None) -> Transcript:
    """The conversation: messages, answers, tools, and what people did instead of writing."""
    turns = [_turn(each) for each in record.interactions]
    asked = next((each.content for each in record.interactions if each.role == "person" and each.content), "")
    answers = (each.content for each in reversed(record.interactions) if each.role == "agent" and each.content)
    first = record.first
    return Transcript.model_validate(
        {
            "id": record.session,
            "at": None if first is None else first.at,
            "request": asked,
            "turns": turns,
            "result": next(answers, None),
            **shared_fields(record, arm),
        }
    )


def session_of(record: SessionRecord, *, arm: str | None = None) -> Session:
    """The same as times and roles alone."""
    first = record.first
    return Session.model_validate(
        {
            "id": record.session,
            "at": None if first is None else first.at,
            "activities": [
                {"at": each.at, "role": each.role, "kind": each.action or "message"} for each in record.interactions
            ],
            **shared_fields(record, arm),
        }
    )


def _turn(row: InteractionRow) -> dict[str, Any]:
    turn: dict[str, Any] = {
        "role": row.role,
        "text": row.content,
        "id": row.interaction_id,
        "at": row.at,
        "kind": row.action or "message",
    }
    if row.tools:
        turn["tool_calls"] = [
            ToolCall(name=tool.name or "unnamed", arguments=tool.arguments, status=tool.status or None)
            for tool in row.tools
        ]
    if row.tokens is not None or row.expert_content:
        metadata: dict[str, Any] = {} if row.tokens is None else {"tokens": row.tokens}
        turn["metadata"] = {**metadata, "expert_content": row.expert_content} if row.expert_content else metadata
    return turn


def is_exchange(row: InteractionRow) -> bool:
    """Whether a turn is an answer with another one beside it."""
    return row.role == "agent" and bool(row.shadow_content)


def messages_before(record: SessionRecord) -> Iterator[tuple[InteractionRow, str | None]]:
    """Each turn with the last message of the person before it, None where there is none."""
    message: str | None = None
    for row in record.interactions:
        if row.role == "person" and row.content:
            message = row.content
        yield row, message


def exchanges_of(record: SessionRecord, *, treatment: Side = "served", arm: str | None = None) -> Iterator[Exchange]:
    """Each answer that has another one beside it. One before any message has "" for its message."""
    shared = shared_fields(record, arm)
    for row, message in messages_before(record):
        if is_exchange(row):
            yield Exchange(
                id=str(row.interaction_id),
                at=row.at,
                session=record.session,
                message=message or "",
                served=row.content,
                shadow=row.shadow_content,
                treatment=treatment,
                **shared,
            )


def cited_of(row: InteractionRow, learning: Reference) -> bool | None:
    """Whether an answer says that it used a learning; None where answers do not say."""
    if row.citations is None:
        return None
    # Older releases cite a user's playbook as a playbook.
    older = learning.kind == "user_playbook" and Reference("playbook", learning.id) in row.citations
    return older or learning in row.citations


def learning_id_of(interaction: int | None, learning: Reference) -> str:
    """The id of one use of a learning: that of the input, and of the verdict on it."""
    return f"{interaction}:{learning.kind}:{learning.id}" if interaction is not None else f"{learning.kind}:{learning.id}"


def use_words(cited: bool | None) -> dict[str, str]:
    """The attribute that tells learnings that were used from those that were only there."""
    return {} if cited is None else {"use": CITED if cited else SUPPLIED}


def references_in(records: list[SessionRecord]) -> set[Reference]:
    """Every learning that was attached to an answer."""
    return {each for record in records for row in record.interactions for each in row.learnings or ()}


def learning_uses_of(
    record: SessionRecord, texts: Mapping[Reference, str], *, arm: str | None = None
) -> Iterator[LearningUse | Reference]:
    """Each learning that an answer was given; the bare reference where its text is gone, so that it cannot be judged."""
    shared, turns = shared_fields(record, arm), None
    for row, message in messages_before(record):
        for learning in row.learnings or ():
            text = texts.get(learning)
            if text is None:
                yield learning
                continue
            if turns is None:
                turns = [Turn.model_validate(_turn(each)) for each in record.interactions]
            cited = cited_of(row, learning)
            yield LearningUse(
                id=learning_id_of(row.interaction_id, learning),
                at=row.at,
                session=record.session,
                message=message or "",
                response=row.content,
                learning=text,
                learning_kind=learning.kind,
                learning_id=learning.id,
                response_id=str(row.interaction_id),
                cited=cited,
                turns=turns,
                **{**shared, "attributes": {**shared["attributes"], **use_words(cited)}},
            )


def inputs_of(record: SessionRecord, *, arm: str | None = None) -> Iterator[Input]:
    """The conversation and its times."""
    yield transcript_of(record, arm=arm)
    yield session_of(record, arm=arm)

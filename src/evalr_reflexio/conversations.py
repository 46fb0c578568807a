"""What happened in a session, as evalr's inputs: the conversation, its times, its exchanges, and learnings in use."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import Any

from evalr.inputs import Activity, Exchange, LearningUse, Session, Side, ToolCall, Transcript, Turn
from evalr_reflexio.making import made
from evalr_reflexio.rows import InteractionRow, OutcomeRow, Reference, SessionRecord, ToolUse
from evalr_reflexio.speaking import Bearer
from evalr_reflexio.turns import raw_roles_of

NO_SOURCE = "(none)"
"""The request source of requests that name none: no text that Reflexio lets in."""

CITED, SUPPLIED = "cited", "supplied only"

NO_SIDE_EXCHANGE = "answer with a shadow in a session without an arm"
NO_MESSAGE = "answer with a shadow, and no message before it"
GONE = "learning whose text is gone"
"""Why what happened in a session is left out of what can be judged."""


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
    return made(
        Transcript,
        {
            "id": record.session,
            "at": None if first is None else first.at,
            "read_at": None,
            "weight": None,
            "request": asked,
            "turns": turns,
            "result": next(answers, None),
            **shared_fields(record, arm),
        },
    )


def session_of(record: SessionRecord, *, arm: str | None = None) -> Session:
    """The same as times and roles alone."""
    first = record.first
    return made(
        Session,
        {
            "id": record.session,
            "at": None if first is None else first.at,
            "read_at": None,
            "weight": None,
            "activities": [
                made(
                    Activity,
                    {
                        "at": each.at,
                        "role": each.role,
                        "kind": each.action or "message",
                        "ref": None,
                    },
                )
                for each in record.interactions
            ],
            **shared_fields(record, arm),
        },
    )


def _turn(row: InteractionRow) -> Turn:
    """Not validated once more: the store has read each cell as what it must be, and JSON from text that was UTF-8."""
    metadata: dict[str, Any] = {} if row.tokens is None else {"tokens": row.tokens}
    if row.expert_content:
        metadata["expert_content"] = row.expert_content
    return made(
        Turn,
        {
            "role": row.role,
            "text": row.content if row.content or row.action is None else row.action_description,
            "id": str(row.interaction_id),
            "at": row.at,
            "kind": row.action or "message",
            "ref": None,
            "tool_calls": [_tool_call(tool) for tool in row.tools],
            "metadata": metadata,
        },
    )


def _tool_call(tool: ToolUse) -> ToolCall:
    return made(
        ToolCall,
        {
            "name": tool.name or "unnamed",
            "id": None,
            "arguments": tool.arguments,
            "status": tool.status or None,
            "error": None,
            "result": None,
        },
    )


_NO_PERSON = frozenset(("agent", "assistant", "system", "tool", "internal"))


def user_turns_of(record: SessionRecord, row: OutcomeRow) -> int | None:
    """How many turns of the person a session has, as Reflexio counts them, so far as its judge saw it.

    It keeps that number of successes alone. None where the log has no turns.
    """
    if not record.interactions:
        return None
    roles = raw_roles_of(record.interactions)
    seen = roles if row.judged_interactions is None else roles[: row.judged_interactions]
    return sum(map(_counts_as_person, seen))


@lru_cache(maxsize=256)
def _counts_as_person(raw_role: str) -> bool:
    return raw_role.lower() not in _NO_PERSON


def is_exchange(row: InteractionRow | Bearer) -> bool:
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
            # Not validated once more: the store has read each cell as what it must be.
            yield made(
                Exchange,
                {
                    "id": str(row.interaction_id),
                    "at": row.at,
                    "read_at": None,
                    "weight": None,
                    "session": record.session,
                    "message": message or "",
                    "served": row.content,
                    "shadow": row.shadow_content,
                    "treatment": treatment,
                    **shared,
                },
            )


def cited_of(row: InteractionRow | Bearer, learning: Reference) -> bool | None:
    """Whether an answer says that it used a learning; None where answers do not say."""
    if row.citations is None:
        return None
    return is_cited(learning, row.citations)


def is_cited(learning: Reference, citations: Collection[Reference]) -> bool:
    """Whether a learning is among those cited. Older releases cite a user's playbook as a playbook."""
    if learning in citations:
        return True
    return learning.kind == "user_playbook" and Reference("playbook", learning.id) in citations


def learning_id_of(interaction: int | None, learning: Reference) -> str:
    """The id of one use of a learning: that of the input, and of the verdict on it."""
    return (
        f"{interaction}:{learning.kind}:{learning.id}" if interaction is not None else f"{learning.kind}:{learning.id}"
    )


def use_words(cited: bool | None) -> dict[str, str]:
    """The attribute that tells learnings that were used from those that were only there."""
    return {} if cited is None else {"use": CITED if cited else SUPPLIED}


def references_in(records: list[SessionRecord]) -> set[Reference]:
    """Every learning that was attached to an answer."""
    return {each for record in records for row in record.interactions for each in row.learnings or ()}


def learning_uses_of(
    record: SessionRecord, texts: Mapping[Reference, str], *, turns: list[Turn] | None = None, arm: str | None = None
) -> Iterator[LearningUse | Reference]:
    """Each learning that an answer was given; the bare reference where its text is gone, so that it cannot be judged.

    Args:
        record: the session.
        texts: of learnings; see `Store.learning_texts`.
        turns: of its transcript, where that was made; all uses of a session share them.
        arm: of the session.
    """
    shared = shared_fields(record, arm)
    for row, message in messages_before(record):
        for learning in row.learnings or ():
            text = texts.get(learning)
            if text is None:
                yield learning
                continue
            if turns is None:
                turns = transcript_of(record, arm=arm).turns
            cited = cited_of(row, learning)
            yield made(
                LearningUse,
                {
                    "id": learning_id_of(row.interaction_id, learning),
                    "at": row.at,
                    "read_at": None,
                    "weight": None,
                    "session": record.session,
                    "message": message or "",
                    "response": row.content,
                    "learning": text,
                    "learning_kind": learning.kind,
                    "learning_id": learning.id,
                    "response_id": str(row.interaction_id),
                    "cited": cited,
                    "turns": turns,
                    **shared,
                    "attributes": {**shared["attributes"], **use_words(cited)},
                },
            )

"""Chains as transcripts, for judges: what was asked, what people and agents did about it, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from evalr.inputs import Transcript, Turn
from evalr_reflexr.envelopes import Envelope, is_own
from evalr_reflexr.runs import workspace_attributes
from evalr_reflexr.sessions import FAILURES, SessionRules

FEEDBACK = "feedback_given"

TEXT_FIELDS = ("text", "message", "summary", "note", "content", "error")
"""Where an event may carry a text, in the order in which they are looked at."""

NAMES_ONLY = ("type", "run_id", "firing_id", "scope_key")

Words = Callable[[Envelope], str]


def event_words(envelope: Envelope) -> str:
    """An event's own text, where it carries one, or else its type and its plain fields."""
    for name in TEXT_FIELDS:
        text = envelope.text_field(name)
        if text is not None:
            return text
    plain = {name: value for name, value in envelope.event.items() if name not in NAMES_ONLY}
    fields = ", ".join(
        f"{name}={value}" for name, value in plain.items() if isinstance(value, str | int | float | bool)
    )
    return f"{envelope.type}: {fields}" if fields else envelope.type


def is_said(envelope: Envelope, rules: SessionRules) -> bool:
    """Whether a judge is to read of it: feedback would be reading the label, and bookkeeping is nothing anybody did."""
    if envelope.fact == FEEDBACK:
        return False
    return not is_own(envelope.type) or envelope.fact in FAILURES or rules.role_of(envelope) != "system"


def transcript_of(
    chain: Sequence[Envelope], rules: SessionRules, *, words: Words, name: str | None = None
) -> Transcript:
    """A chain as a transcript, or what came of it so far.

    Args:
        chain: its envelopes, the first of which began it.
        rules: how events become activities.
        words: the text of an event.
        name: of the transcript, where it is not the chain's.
    """
    first = chain[0]
    turns, result = [], None
    for envelope in chain[1:]:
        if not is_said(envelope, rules):
            continue
        kind, ref = rules.kind_of(envelope)
        text = words(envelope)
        if kind == "closed":
            result = text
        turns.append(
            Turn(
                role=rules.role_of(envelope),
                text=text,
                id=envelope.id,
                at=envelope.at,
                kind=kind,
                ref=ref,
                metadata={"type": envelope.type, "seq": envelope.seq},
            )
        )
    return Transcript(
        id=first.key if name is None else name,
        at=first.at,
        attributes={"starts": first.type, **workspace_attributes(first.workspace)},
        request=words(first),
        turns=turns,
        result=result,
    )

"""Artifacts whose texts an application's events carry, as histories: who wrote which version."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from evalr.errors import InputError
from evalr.inputs import History, Revision, Role
from evalr_reflexr.envelopes import Actor, Envelope, participant
from evalr_reflexr.matching import Matcher
from evalr_reflexr.runs import workspace_attributes

Field = str | Callable[[Envelope], str | None]
"""A field of an event (dotted where nested), or a function of the envelope; None where the event has none."""


def field_reader(field: Field, name: str) -> Callable[[Envelope], str | None]:
    """The function that a field stands for.

    Raises:
        InputError: it is neither a text nor a function.
    """
    if callable(field):
        return field
    if not isinstance(field, str) or not field:
        raise InputError(f"{name}={field!r} must name a field of events, or be a function of an envelope")
    return lambda envelope: envelope.text_field(field)


class HistoryRules(NamedTuple):
    """How events become versions.

    Attributes:
        artifact: which artifact an event is about.
        text: its text after the event.
        proposes: events whose text is only proposed.
        accepts: events by which a proposal becomes the artifact's text.
        ref: the field that names a proposal.
        role: of an actor.
    """

    artifact: Callable[[Envelope], str | None]
    text: Callable[[Envelope], str | None]
    proposes: Matcher
    accepts: Matcher
    ref: str
    role: Callable[[Actor], Role]


def histories_of(envelopes: Iterable[Envelope], rules: HistoryRules) -> list[History]:
    """The histories of the artifacts that events in the order of the log are about, in the order in which they begin.

    A text belongs to who wrote it: a proposal that is accepted is its proposer's, from when it is accepted. Where the
    acceptance carries another text, that is a second version at the same moment, by who accepted.
    """
    revisions: dict[str, list[Revision]] = {}
    firsts: dict[str, Envelope] = {}
    proposals: dict[str, tuple[str, Envelope, str]] = {}

    def write(artifact: str, author: Envelope, when: Envelope, text: str) -> None:
        firsts.setdefault(artifact, when)
        revisions.setdefault(artifact, []).append(
            Revision(
                at=when.at,
                role=rules.role(author.actor),
                text=text,
                id=author.id,
                attributes={"by": participant(author.actor)},
            )
        )

    for envelope in envelopes:
        artifact, text = rules.artifact(envelope), rules.text(envelope)
        ref = envelope.text_field(rules.ref)
        if rules.proposes(envelope):
            if ref is not None and artifact is not None and text is not None:
                proposals[ref] = (artifact, envelope, text)
            continue
        if rules.accepts(envelope) and ref in proposals:
            of, proposal, proposed = proposals.pop(ref)
            write(of, proposal, envelope, proposed)
            if text is None or text == proposed:
                continue
            artifact = artifact or of
        if artifact is not None and text is not None:
            write(artifact, envelope, envelope, text)
    return [_history(artifact, firsts[artifact], found) for artifact, found in revisions.items()]


def _history(artifact: str, first: Envelope, revisions: Sequence[Revision]) -> History:
    return History(
        id=first.workspace.key(artifact),
        attributes={"starts": first.type, **workspace_attributes(first.workspace)},
        revisions=list(revisions),
    )

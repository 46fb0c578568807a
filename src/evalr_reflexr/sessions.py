"""Chains as sessions: proposals, decisions and failures as what people and agents did."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from evalr.inputs import Activity, Role, Session
from evalr_reflexr.envelopes import Actor, Envelope
from evalr_reflexr.matching import Matcher
from evalr_reflexr.runs import workspace_attributes

FAILURES = ("run_retrying", "run_dead_lettered")
"""The facts of failed attempts: reflexr writes them itself, and they tell of what an agent did."""

FAILED = "run_failed"


class SessionRules:
    """How the events of a chain become activities.

    Args:
        resolves: the events that close the session.
        proposes: the events that ask a person to decide.
        decides: the events that decide.
        ref: the field that names what is proposed.
        role: of an actor.
        failures: whether failed attempts of runs are activities of the agent, rather than of the system.
    """

    def __init__(
        self,
        *,
        resolves: Matcher,
        proposes: Matcher,
        decides: Matcher,
        ref: str,
        role: Callable[[Actor], Role],
        failures: bool,
    ) -> None:
        self._resolves, self._proposes, self._decides = resolves, proposes, decides
        self._ref, self._role, self._failures = ref, role, failures

    @property
    def settings(self) -> dict[str, Any]:
        """Its choices, as reports repeat them."""
        matchers = {"resolves": self._resolves, "proposes": self._proposes, "decides": self._decides}
        given = {name: matcher.given for name, matcher in matchers.items()}
        return {**given, "ref": self._ref, "failures": self._failures}

    def role_of(self, envelope: Envelope) -> Role:
        """Who did it."""
        return "agent" if self._failures and envelope.fact in FAILURES else self._role(envelope.actor)

    def activity(self, envelope: Envelope) -> Activity:
        """One event as an activity."""
        kind, ref = self.kind_of(envelope)
        return Activity.model_construct(at=envelope.at, role=self.role_of(envelope), kind=kind, ref=ref)

    def kind_of(self, envelope: Envelope) -> tuple[str, str | None]:
        """What it is called in a session, and what it refers to."""
        if self._resolves(envelope):
            return "closed", None
        if self._proposes(envelope):
            return "proposal", envelope.text_field(self._ref)
        if self._decides(envelope):
            return "resolution", envelope.text_field(self._ref)
        if self._failures and envelope.fact in FAILURES:
            return FAILED, None
        return envelope.type, None

    def session(self, chain: Sequence[Envelope]) -> Session:
        """A chain, whose first envelope began it, as a session."""
        first = chain[0]
        return Session.model_construct(
            id=first.key,
            user=None,
            arm=None,
            at=None,
            read_at=None,
            attributes={"starts": first.type, **workspace_attributes(first.workspace)},
            weight=None,
            activities=[self.activity(envelope) for envelope in chain],
        )

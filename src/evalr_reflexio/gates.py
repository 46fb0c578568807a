"""Which sessions are judged by which families of judges: as the configuration says, and the same each time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from evalr.evaluators import Evaluator
from evalr.inputs import Input
from evalr.quoting import quoted
from evalr.runs import Family, sampled
from evalr.runs.sampling import spelled, weighed
from evalr.verdicts import Skip
from evalr_reflexio.assigning import sampling_fraction
from evalr_reflexio.config import DEFAULT_ORG, Config
from evalr_reflexio.conversing import Conversation

FamilyName = Literal["outcome", "shadow", "learning"]
OUTCOME, SHADOW, LEARNING = "outcome", "shadow", "learning"

NOT_CONFIGURED = "the configuration has no agent_success_config"
NOTHING_SAID = "nothing was said"
NO_SHADOW = "no answer with a shadow answer, after a message"
NO_LEARNING = "no learning attached to an answer"
GONE = "the texts of its learnings are gone"

Gate = Callable[[str, Conversation], float | None]
"""Of a family and a session, the share of sessions that it stands for; None where it is not in the sample."""


def rate_of(config: Config, family: str, given: Conversation) -> float:
    """The share of such sessions that the family judges, from 0 to 1. Shadow answers are all judged."""
    rates = config.rates
    if family == OUTCOME:
        rate = rates.evaluation_only if given.evaluation_only else rates.sessions
    else:
        rate = rates.learnings if family == LEARNING else 1.0
    return min(1.0, max(0.0, rate))


def gate(config: Config, *, nested: bool = False) -> Gate:
    """The gates of all families: by a hash of organisation, user and session, so that each process decides the same.

    Args:
        config: has the rates.
        nested: as in Reflexio: one hash for all families, so that the sessions of a lower rate are among those of a
            higher one. Otherwise each family draws by itself.
    """
    org = config.org or DEFAULT_ORG

    def share(family: str, given: Conversation) -> float | None:
        rate = rate_of(config, family, given)
        user, session = given.user or "", given.id
        if nested:
            is_in = rate >= 1 or sampling_fraction(org, user, session) < rate
        else:
            is_in = sampled(spelled((org, user, session)), rate, seed=f"reflexio {family}")
        return rate if is_in else None

    return share


def families(config: Config, judges: Mapping[str, Evaluator[Any, Any]], gates: Gate | None) -> dict[str, Family]:
    """The families of judges over `Conversation`s.

    Args:
        config: says what is graded.
        judges: who is asked, by family.
        gates: which sessions are in the sample; None asks about all.
    """
    reads: dict[str, tuple[Callable[[Conversation], Iterable[Input] | Skip], str]] = {
        OUTCOME: (_transcript, NOTHING_SAID),
        SHADOW: (lambda given: given.exchanges, NO_SHADOW),
        LEARNING: (_learnings, NO_LEARNING),
    }
    return {
        name: Family(judge, _split(name, config, gates, reads[name][0]), none=reads[name][1], input_type=Conversation)
        for name, judge in judges.items()
    }


def why_not(config: Config, family: str) -> str | None:
    """Why a family grades no session at all, where it does not."""
    return NOT_CONFIGURED if family != SHADOW and not config.grades_success else None


def _split(
    name: str, config: Config, gates: Gate | None, parts: Callable[[Conversation], Iterable[Input] | Skip]
) -> Callable[[Conversation], Iterable[Input] | Skip]:
    def split(given: Conversation) -> Iterable[Input] | Skip:
        reason = why_not(config, name) or _unread_source(config, name, given)
        if reason is not None:
            return Skip(reason)
        found = parts(given)
        if gates is None or isinstance(found, Skip):
            return found
        share = gates(name, given)
        if share is None:
            return Skip(f"not in the sample of {rate_of(config, name, given):.4g} of all sessions")
        weight = 1.0 if given.weight is None else given.weight
        return [weighed(part, weight / share) for part in found]

    return split


def _unread_source(config: Config, family: str, given: Conversation) -> str | None:
    enabled = config.request_sources
    if family == SHADOW or enabled is None or given.request_source in enabled:
        return None
    return f"request source {quoted(given.request_source)} is not graded"


def _transcript(given: Conversation) -> Iterable[Input]:
    return () if given.transcript is None else (given.transcript,)


def _learnings(given: Conversation) -> Iterable[Input] | Skip:
    return Skip(GONE) if given.gone and not given.learnings else given.learnings

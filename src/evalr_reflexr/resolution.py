"""Chains: how long until a chain of events is resolved, or how long it has been open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from evalr.estimates.words import window_words
from evalr.evaluators import FunctionEvaluator
from evalr.input_fields import Name, Time
from evalr.inputs import Input, Now, Role, check_window, utc_now
from evalr.measures.measure import Measure
from evalr.summaries import Rate, Summary, TimeTo
from evalr_reflexr.envelopes import Actor, Envelope
from evalr_reflexr.matching import Matcher
from evalr_reflexr.rules import check_compat
from evalr_reflexr.runs import workspace_attributes

WITHIN = timedelta(days=1)


class ChainMark(BaseModel):
    """An event that resolved a chain, or opened it again."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    at: Time
    kind: Literal["resolved", "reopened"]
    by: Role = "system"
    type: Name | None = None


def _in_time_order(marks: list[ChainMark]) -> list[ChainMark]:
    return sorted(marks, key=lambda mark: mark.at)


class Chain(Input):
    """One chain: all that came of one event, as far as it tells whether that is resolved.

    Attributes:
        began: when its first event was published.
        marks: the events that resolved it or opened it again, in the order of the times.
    """

    kind: ClassVar[str] = "chain"

    id: Name
    began: Time
    marks: Annotated[list[ChainMark], AfterValidator(_in_time_order)] = Field(default_factory=list)

    def first_event(self) -> datetime | None:
        """When it began."""
        return self.began


class Resolution(BaseModel):
    """How long a chain took to be resolved, in seconds, or how long it has been open."""

    after: float = Field(ge=0, allow_inf_nan=False)
    ended: Literal["resolved", "still_open"]
    reopened: int = Field(default=0, ge=0, description="How often it was opened again after it had been resolved")


def chain_of(
    envelopes: Sequence[Envelope], resolves: Matcher, reopens: Matcher, role: Callable[[Actor], Role]
) -> Chain:
    """The chain that envelopes in the order of the log make, the first of which began it."""
    first = envelopes[0]
    marks = []
    for envelope in envelopes:
        kind: Literal["resolved", "reopened"] | None = (
            "resolved" if resolves(envelope) else "reopened" if reopens(envelope) else None
        )
        if kind is not None:
            by = role(envelope.actor)
            marks.append(ChainMark.model_construct(at=envelope.at, kind=kind, by=by, type=envelope.type))
    return Chain.model_construct(
        id=first.key,
        user=None,
        arm=None,
        at=None,
        read_at=None,
        attributes={"starts": first.type, **workspace_attributes(first.workspace)},
        weight=None,
        began=first.at,
        marks=marks,
    )


def measure_chain(chain: Chain, now: datetime) -> Resolution:
    """How long until a chain was resolved for good, as far as is known at `now`: one that is open again is open."""
    resolved: datetime | None = None
    reopened = 0
    for mark in chain.marks:
        if mark.at > now:
            break
        if mark.kind == "reopened":
            reopened += resolved is not None
            resolved = None
        elif resolved is None:
            resolved = mark.at
    return _resolution(chain, resolved, reopened, now)


def measure_chain_as_reflexr(chain: Chain, now: datetime) -> Resolution:
    """How long until it was resolved for the first time, whatever came then."""
    times = [mark.at for mark in chain.marks if mark.kind == "resolved" and mark.at <= now]
    return _resolution(chain, times[0] if times else None, 0, now)


def _resolution(chain: Chain, resolved: datetime | None, reopened: int, now: datetime) -> Resolution:
    until = now if resolved is None else resolved
    return Resolution.model_construct(
        after=max(timedelta(0), until - chain.began).total_seconds(),
        ended="still_open" if resolved is None else "resolved",
        reopened=reopened,
    )


def chain_evaluator(*, now: Now = utc_now, compat: str | None = None) -> FunctionEvaluator[Chain, Resolution]:
    """`measure_chain` as an evaluator."""
    function = measure_chain if check_compat(compat) is None else measure_chain_as_reflexr
    return FunctionEvaluator(
        "chains",
        "1" if compat is None else f"1:{compat}",
        function,
        Chain,
        Resolution,
        now=now,
        inline=True,
        pending=lambda v: v.ended == "still_open",
    )


def _after(resolution: Resolution) -> float:
    return resolution.after


def _end(resolution: Resolution) -> str | None:
    return None if resolution.ended == "still_open" else resolution.ended


def _reopened(resolution: Resolution) -> int:
    return int(resolution.reopened > 0)


def _unresolved(resolution: Resolution) -> str | None:
    return "unresolved" if resolution.ended == "still_open" else None


def _never_resolved(resolution: Resolution) -> str | None:
    return "never resolved" if resolution.ended == "still_open" and not resolution.reopened else None


def chain_summaries(*, within: timedelta = WITHIN, compat: str | None = None) -> Sequence[Summary[Resolution]]:
    """The share of chains that is resolved within a time, and how long it takes: median, 90th percentile, mean.

    Chains that are open when the log is read are right-censored, and counted. The mean counts at most `within` of each.

    Args:
        within: see above.
        compat: "reflexr" for its own numbers: of resolved chains alone, until they were resolved for the first time.
    """
    check_window(within)
    known = None if check_compat(compat) is None else _unresolved
    words = window_words(within)
    share: TimeTo[Resolution] = TimeTo(
        "chains",
        of=Resolution,
        after=_after,
        end=_end,
        event="resolved",
        within=within,
        leaves_out=known,
        title=f"resolved within {words}",
        noun="chain",
    )
    found: list[Summary[Any]] = [
        share,
        replace(share, name="chains_median", within=None, title="time to resolution (median)"),
        replace(share, name="chains_p90", within=None, quantile=0.9, title="time to resolution (p90)"),
        replace(share, name="chains_mean", mean=True, title=f"time to resolution (mean to {words})"),
    ]
    if compat is None:
        found.append(
            Rate(
                "chains_reopened",
                of=Resolution,
                hits=_reopened,
                leaves_out=_never_resolved,
                title="reopened once resolved",
                noun="chain",
            )
        )
    return found


measure = Measure(
    name="chains",
    question="how long until a chain of events is resolved?",
    input=Chain,
    verdict=Resolution,
    summaries=chain_summaries,
    settings={"within": WITHIN, "compat": None},
    evaluator=lambda now, within, compat: chain_evaluator(now=now, compat=compat),
)

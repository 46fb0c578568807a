"""The signals that come with it: the nine of the service, and one for each heuristic."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from typing import NamedTuple

from evalr.errors import InputError
from evalr.estimates.words import choice_words
from evalr_tracepass.heuristics import HEURISTICS
from evalr_tracepass.records import Reflex
from evalr_tracepass.signals import Signal
from evalr_tracepass.transforms import Transform, transform


def _default(
    name: str,
    display_name: str,
    category: str,
    labels: tuple[str, ...],
    fires_on: tuple[str, ...],
    *,
    by: str = "user_message",
    ticked: bool = False,
) -> Signal:
    return Signal(
        signal_id=name,
        model=name,
        display_name=display_name,
        source="default",
        category=category,
        labels=labels,
        fires_on=fires_on,
        transform=transform(by),
        enabled_by_default=ticked,
    )


_AGENT = "assistant_message"

DEFAULT_SIGNALS: dict[str, Signal] = {
    each.signal_id: each
    for each in (
        _default("jailbreak", "Jailbreak", "safety", ("benign", "jailbreak"), ("jailbreak",), ticked=True),
        _default("guardrail", "Guardrail", "safety", ("true", "false", "clean"), ("true",), ticked=True),
        _default(
            "user-frustration",
            "User Frustration",
            "user state",
            ("frustrated", "not frustrated"),
            ("frustrated",),
            ticked=True,
        ),
        _default("incomplete-thought", "Incomplete Thought", "user input", ("complete", "incomplete"), ("incomplete",)),
        _default("difficulty", "Difficulty", "user input", ("easy", "medium", "hard"), ("hard",)),
        _default("ambiguity", "Ambiguity", "user input", ("low", "med", "high"), ("high",)),
        _default("domain", "Domain", "user input", (), ()),
        _default(
            "leaked-thinking", "Leaked Thinking", "agent", ("clean", "leaked"), ("leaked",), by=_AGENT, ticked=True
        ),
        _default(
            "stuck-in-a-loop",
            "Stuck-in-a-loop",
            "agent",
            ("progressing", "looping"),
            ("looping",),
            by=_AGENT,
            ticked=True,
        ),
    )
}
"""The nine signals of the service, as it starts with them. Each needs a classifier of its name."""


def _heuristic(name: str, display_name: str, by: Transform, fires_on: tuple[str, ...]) -> Signal:
    return Signal(
        signal_id=name,
        model=name,
        display_name=display_name,
        source="default",
        category="heuristic",
        labels=HEURISTICS[name].labels,
        fires_on=fires_on,
        transform=by,
    )


HEURISTIC_SIGNALS: dict[str, Signal] = {
    each.signal_id: each
    for each in (
        _heuristic("heuristic-loop", "Repeated steps", transform("agent_window"), ("looping",)),
        _heuristic("heuristic-tool-errors", "Tool errors in a row", transform("agent_window"), ("error_streak",)),
        _heuristic("heuristic-thinking-tags", "Thinking tags", transform("assistant_message"), ("thinking_tags",)),
        _heuristic("heuristic-no-answer", "No answer", transform("user_and_answer"), ("unanswered", "refused")),
        _heuristic("heuristic-negative-tone", "Negative tone", transform("user_message"), ("negative",)),
    )
}
"""One signal for each heuristic, with the transform that it reads. They run here, and start unticked."""

SIGNALS: dict[str, Signal] = {**DEFAULT_SIGNALS, **HEURISTIC_SIGNALS}


def titles() -> dict[str, str]:
    """What people call the signals that come with it, by their ids. No signal of one's own can have one of these."""
    return {name: each.display_name for name, each in SIGNALS.items()}


class Available(NamedTuple):
    """A signal, and why it cannot run; None where it can."""

    signal: Signal
    reason: str | None


def availability(signals: Iterable[Signal], models: Container[str]) -> list[Available]:
    """Which signals can run where these models are configured, by their aliases, and why the others cannot."""
    return [
        Available(
            signal,
            None
            if signal.model in models
            else f"no classifier named {signal.model!r} is configured: pass one of that name, or a service that has it",
        )
        for signal in signals
    ]


def signal(name: str, custom: Mapping[str, Signal] | None = None) -> Signal:
    """The signal of that id, one of your own before those that come with it.

    Raises:
        InputError: there is none.
    """
    known = {**SIGNALS, **(custom or {})}
    if name not in known:
        raise InputError(f"there is no signal {name!r}; {choice_words(name, known)}")
    return known[name]


def signals_like(pattern: str, signals: Iterable[Signal] = SIGNALS.values()) -> list[Signal]:
    """The signals whose id, name or a label that they fire on holds what a regular expression finds, in any case.

    Raises:
        InputError: it is no regular expression.
    """
    try:
        wanted = re.compile(pattern, re.IGNORECASE)
    except re.error as error:
        raise InputError(f"{pattern!r} is no regular expression: {error}") from error
    return [each for each in signals if any(map(wanted.search, (each.signal_id, each.display_name, *each.fires_on)))]


def heuristics() -> dict[str, Reflex]:
    """The classifiers that work offline, by their names: rules written by hand."""
    return dict(HEURISTICS)

"""What a command is asked for, made into signals, classifiers and a scope."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from evalr.cli.texts import read_length, read_time
from evalr.errors import InputError
from evalr.inputs import resolve_now, utc_now
from evalr.quoting import safe_text
from evalr_tracepass.catalogue import HEURISTIC_SIGNALS, SIGNALS, availability, heuristics, signal, signals_like
from evalr_tracepass.records import Filters, Reflex, Scope
from evalr_tracepass.scopes import filters_of, random_sample, selected
from evalr_tracepass.signal_files import SignalFile, load_signals
from evalr_tracepass.signals import Signal

T = TypeVar("T")

WHERE_RULE = (
    "write --where as a text that some turn holds, as user=ID, as errors, or as since=TIME, until=TIME or last=24h"
)


@dataclass(frozen=True)
class Choice:
    """Which signals are run, and what was said about those that cannot be.

    Attributes:
        signals: those that run.
        reflexes: the classifiers that run here, by their aliases.
        notes: lines to say of those that do not run, and why.
    """

    signals: tuple[Signal, ...]
    reflexes: Mapping[str, Reflex]
    notes: tuple[str, ...] = ()


def own_signals(path: str | None) -> SignalFile:
    """A person's own signals and presets, of a file; none where no file is named."""
    return SignalFile() if path is None else load_signals(path)


def choose(
    names: Sequence[str] = (),
    *,
    pattern: str | None = None,
    preset: str | None = None,
    own: SignalFile | None = None,
    service: bool = False,
) -> Choice:
    """Signals by name, by preset, by a pattern, or, where nobody says, those that start ticked.

    Args:
        names: ids of signals: each must be able to run.
        pattern: a regular expression for names and labels: those that match and can run are taken.
        preset: the name of one's own preset.
        own: one's own signals and presets.
        service: they are for a service, which says itself which models it has, and not for the classifiers here.

    Raises:
        InputError: there is no such signal or preset, nothing matches, or none of them can run.
    """
    own = own or SignalFile()
    reflexes = {} if service else heuristics()
    known = {**SIGNALS, **own.signals}
    runnable = {each.model for each in known.values()} - HEURISTIC_SIGNALS.keys() if service else set(reflexes)
    named = [signal(name, own.signals) for name in names]
    if preset is not None:
        if preset not in own.presets:
            raise InputError(f"there is no preset {safe_text(preset)!r}: {safe_text(', '.join(own.presets)) or 'none'}")
        named += own.presets[preset].chosen(own.signals)
    if named and pattern is None:
        unique = {each.signal_id: each for each in named}
        refused = [each for each in availability(unique.values(), runnable) if each.reason]
        if refused:
            raise InputError("; ".join(f"{each.signal.signal_id}: {each.reason}" for each in refused))
        return Choice(tuple(unique.values()), reflexes)
    if pattern is not None:
        wanted = signals_like(pattern, named or list(known.values()))
        if not wanted:
            raise InputError(f"no signal has a name or a label like {safe_text(pattern)!r}: {', '.join(sorted(known))}")
        found = availability(wanted, runnable)
        usable = tuple(each.signal for each in found if each.reason is None)
        notes = tuple(f"{each.signal.signal_id} cannot run: {each.reason}" for each in found if each.reason)
        if not usable:
            raise InputError("; ".join(notes))
        return Choice(usable, reflexes, notes)
    ticked = availability([each for each in known.values() if each.enabled_by_default], runnable)
    usable = tuple(each.signal for each in ticked if each.reason is None)
    if usable:
        return Choice(
            usable,
            reflexes,
            tuple(f"{each.signal.signal_id} cannot run: {each.reason}" for each in ticked if each.reason),
        )
    # Somebody without a service sees what works without one, and is told that it is another thing.
    away = ", ".join(each.signal.signal_id for each in ticked)
    note = f"{away}: no classifier of these is configured; these run instead, which are rules written by hand"
    return Choice(tuple(HEURISTIC_SIGNALS.values()), reflexes, (note,))


def scope_of(
    *,
    where: Sequence[str] = (),
    convo: Sequence[str] = (),
    since: datetime | None = None,
    until: datetime | None = None,
    last: timedelta | None = None,
    sample: str | None = None,
    now: datetime | None = None,
) -> Scope:
    """The scope that options name, with how its traces are chosen.

    Raises:
        InputError: options contradict one another, or one cannot be read.
    """
    filters = _filters(where, since, until, last, now)
    if sample is not None:
        if convo:
            raise InputError("--sample draws conversations at random, and --convo names them: pass one of the two")
        fraction, seed = _read_sample(sample)
        return random_sample(fraction, seed=seed, filters=filters)
    if convo:
        return selected(convo, filters)
    if filters == Filters():
        return Scope()
    dated = filters.since is not None or filters.until is not None
    return Scope(kind="date_range" if dated else "current_filters", filters=filters)


def _filters(
    where: Sequence[str],
    since: datetime | None,
    until: datetime | None,
    last: timedelta | None,
    now: datetime | None,
) -> Filters:
    search = user = None
    errors_only = False
    for text in where:
        name, equals, value = text.partition("=")
        name = name.strip().lower()
        if text.strip().lower() in ("errors", "errors only", "errors=true"):
            errors_only = True
        elif equals and name == "user":
            user = _once(user, value, text)
        elif equals and name == "since":
            since = _once(since, read_time(value), text)
        elif equals and name == "until":
            until = _once(until, read_time(value), text)
        elif equals and name == "last":
            last = _once(last, read_length(value), text)
        elif equals and name == "search":
            search = _once(search, value, text)
        elif text.strip():
            search = _once(search, text, text)
        else:
            raise InputError(WHERE_RULE)
    return filters_of(
        search=search,
        user=user,
        errors_only=errors_only,
        since=since,
        until=until,
        last=last,
        now=resolve_now(now or utc_now),
    )


def _once(known: T | None, value: T, text: str) -> T:
    if known is not None:
        raise InputError(f"--where {safe_text(text)!r}: that is said already; {WHERE_RULE}")
    return value


def _read_sample(text: str) -> tuple[float, int | None]:
    """`10%`, `0.1`, or either with a seed after a colon, as in `10%:7`."""
    share, colon, seed = text.partition(":")
    try:
        fraction = float(share.rstrip("%")) / (100 if share.endswith("%") else 1)
        return fraction, int(seed) if colon else None
    except ValueError as error:
        raise InputError(
            f"--sample {safe_text(text)!r}: write a share of conversations, as 10% or 0.1, or with a seed, as 10%:7"
        ) from error

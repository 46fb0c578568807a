"""What a command is asked for, made into signals, classifiers and a scope."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from evalr.cli.texts import read_length, read_time
from evalr.errors import InputError
from evalr.estimates.words import choice_words
from evalr.quoting import safe_text
from evalr_tracepass.catalogue import (
    HEURISTIC_SIGNALS,
    SIGNALS,
    Available,
    availability,
    heuristics,
    signal,
    signals_like,
)
from evalr_tracepass.command.filters import read_filters
from evalr_tracepass.command.options import Own, Place, Which
from evalr_tracepass.command.places import is_there, opened
from evalr_tracepass.planning import Plan, plan
from evalr_tracepass.records import Filters, Reflex, Scope
from evalr_tracepass.reflex_files import load_reflex
from evalr_tracepass.scopes import random_sample, selected
from evalr_tracepass.signal_files import Preset, SignalFile, load_signals
from evalr_tracepass.signals import Signal

REFLEX_RULE = "write --reflex as NAME=FILE: the alias that signals name as their model, and the file of its classifier"

SAMPLE_RULE = "write a share of conversations, as 10% or 0.1, or with a seed, as 10%:7"


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

    def prices(self, rate: float | None) -> dict[str, float]:
        """US dollars for one prediction of each model whose price is known: `rate` is that of what a service reads."""
        known = {each.model: price(self.reflexes.get(each.model)) for each in self.signals}
        found = {model: rate if said is None else said for model, said in known.items()}
        return {model: each for model, each in found.items() if each is not None}

    def rate_notes(self, rate: float | None) -> list[str]:
        """What to say of a rate that prices nothing."""
        if rate is None or rate in self.prices(rate).values():
            return []
        return ["--rate is the price of what a service reads: what runs here says itself what it costs"]


def price(reflex: Reflex | None) -> float | None:
    """US dollars for one prediction, as its classifier says: rules, and what was trained here, say that it is nothing.

    None where it does not say: a service has a price of its own, and so has the model that a judge asks.
    """
    said: float | None = getattr(reflex, "cost_per_text", None)
    return said


@dataclass(frozen=True)
class OwnThings:
    """Signals, presets and classifiers of one's own, of a file, of a store, and as they are named.

    Attributes:
        signals: by their ids.
        presets: by their names.
        files: of classifiers, by their aliases.
        lm: the model that answers the questions of judges.
        api_base: where that is served.
    """

    signals: Mapping[str, Signal] = field(default_factory=dict)
    presets: Mapping[str, Preset] = field(default_factory=dict)
    files: Mapping[str, Path] = field(default_factory=dict)
    lm: str | None = None
    api_base: str | None = None

    def reflexes(self, models: Collection[str] | None = None) -> dict[str, Reflex]:
        """The rules that come with evalr, and of one's own classifiers those that are needed, by default all."""
        return heuristics() | {
            name: load_reflex(name, path, lm=self.lm, api_base=self.api_base)
            for name, path in self.files.items()
            if models is None or name in models
        }


def own_signals(path: str | None) -> SignalFile:
    """A person's own signals and presets, of a file; none where no file is named."""
    return SignalFile() if path is None else load_signals(path)


def own_things(own: Own, place: Place | None = None) -> OwnThings:
    """What a person has, of the file that is named and of the store, if there is one; the file's stand before others.

    Raises:
        InputError: a classifier is named without its file, or something in the file cannot be used.
        DatasetError: there is no such file.
        StoreError: the store cannot be read.
    """
    of_file = own_signals(own.file)
    signals, presets = dict(of_file.signals), dict(of_file.presets)
    if place is not None and is_there(place):
        with opened(place, results=False) as kept:
            signals = kept.store.signals(kept.account) | signals
            presets = kept.store.presets(kept.account) | presets
    files = dict(of_file.reflexes)
    for text in own.reflex or ():
        name, equals, path = text.partition("=")
        if not (name and equals and path):
            raise InputError(f"--reflex {safe_text(text)!r}: {REFLEX_RULE}")
        files[name] = Path(path)
    return OwnThings(signals, presets, files, own.lm, own.api_base)


def choose(
    names: Sequence[str] = (),
    *,
    pattern: str | None = None,
    preset: str | None = None,
    own: OwnThings | None = None,
    service: bool = False,
    hosted: Callable[[Signal], Reflex] | None = None,
) -> Choice:
    """Signals by name, by preset, by a pattern, or, where nobody says, those that start ticked.

    Args:
        names: ids of signals: each must be able to run.
        pattern: a regular expression for names and labels: those that match and can run are taken.
        preset: the name of one's own preset.
        own: one's own signals, presets and classifiers.
        service: they are for a service, which says itself which models it has, and not for the classifiers here.
        hosted: what reads for a signal that no classifier here reads for.

    Raises:
        InputError: there is no such signal or preset, nothing matches, or none of them can run.
    """
    own = own or OwnThings()
    known = {**SIGNALS, **own.signals}
    if service:
        runnable = {each.model for each in known.values()} - HEURISTIC_SIGNALS.keys()
    elif hosted is not None:
        runnable = {each.model for each in known.values()}
    else:
        runnable = {*heuristics(), *own.files}
    named = [signal(name, own.signals) for name in names]
    if preset is not None:
        if preset not in own.presets:
            raise InputError(f"there is no preset {safe_text(preset)!r}; {choice_words(preset, own.presets)}")
        named += own.presets[preset].chosen(own.signals)

    def chosen(signals: Iterable[Signal], notes: tuple[str, ...] = ()) -> Choice:
        taken = tuple(signals)
        read_by_none = sorted(own.files.keys() - {each.model for each in known.values()})
        notes += tuple(
            f"no signal has the model {safe_text(name, longest=60)!r}, so that its classifier reads nothing: save one "
            f"with `evalr tracepass signals save`"
            for name in read_by_none
        )
        reflexes = {} if service else own.reflexes({each.model for each in taken})
        if hosted is not None:
            reflexes |= {each.model: hosted(each) for each in taken if each.model not in reflexes}
        return Choice(taken, reflexes, notes)

    if named and pattern is None:
        unique = {each.signal_id: each for each in named}
        refused = [each for each in availability(unique.values(), runnable) if each.reason]
        if refused:
            raise InputError("; ".join(_cannot(each, service=service) for each in refused))
        return chosen(unique.values())
    if pattern is not None:
        wanted = signals_like(pattern, named or list(known.values()))
        if not wanted:
            raise InputError(f"no signal has a name or a label like {safe_text(pattern)!r}: {', '.join(sorted(known))}")
        found = availability(wanted, runnable)
        notes = [_cannot(each, service=service) for each in found if each.reason]
        usable = [each.signal for each in found if each.reason is None]
        if not usable:
            offline = "" if service else f"; rules written by hand run here, such as {', '.join(HEURISTIC_SIGNALS)}"
            raise InputError("; ".join(notes) + offline)
        taken, twins = _one_of_each(usable)
        return chosen(taken, (*notes, *twins))
    ticked = availability([each for each in known.values() if each.enabled_by_default], runnable)
    usable = [each.signal for each in ticked if each.reason is None]
    if usable:
        return chosen(usable, tuple(_cannot(each, service=service) for each in ticked if each.reason))
    # Somebody without a service sees what works without one, and is told that it is another thing.
    away = ", ".join(each.signal.signal_id for each in ticked)
    note = f"{away}: no classifier of these is configured; these run instead, which are rules written by hand"
    return chosen(HEURISTIC_SIGNALS.values(), (note,))


def _one_of_each(signals: Iterable[Signal]) -> tuple[list[Signal], list[str]]:
    """Of signals whose classifier reads the same texts the last, which is a person's own; and whom it stands for."""
    taken: dict[tuple[str, str], Signal] = {}
    notes = []
    for each in signals:
        twin = taken.get((each.transform.id, each.model))
        if twin is not None:
            name, other = (safe_text(one.signal_id, longest=60) for one in (each, twin))
            notes.append(
                f"{other} does not run: {name} has its classifier read the same texts; --signal {other} runs it"
            )
        taken[each.transform.id, each.model] = each
    return list(taken.values()), notes


def _cannot(found: Available, *, service: bool) -> str:
    name, model = (safe_text(each, longest=60) for each in (found.signal.signal_id, found.signal.model))
    if service:
        return f"{name} cannot run by a service: {model!r} is a rule that runs here, without --by"
    return (
        f"{name} cannot run: no classifier named {model!r} is configured; "
        f"name one with --reflex {model}=FILE, or have a service read with it: --by live, or run --by batch"
    )


def watched(own: OwnThings) -> list[str]:
    """The signals that a monitor runs where nobody says: those whose monitor is on, and those of such presets."""
    of_presets = [name for each in own.presets.values() if each.monitor for name in each.signals]
    return list(dict.fromkeys([*(name for name, each in own.signals.items() if each.monitor), *of_presets]))


def planned(choice: Choice, which: Which) -> Plan:
    """The plan for signals over the conversations that options name."""
    return plan(choice.signals, scope=asked_scope(which), reflexes=choice.reflexes)


def asked_scope(which: Which) -> Scope:
    """The scope that options name, as they were written."""
    return scope_of(
        where=which.where or (),
        convo=which.convo or (),
        since=None if which.since is None else read_time(which.since),
        until=None if which.until is None else read_time(which.until),
        last=None if which.last is None else read_length(which.last),
        sample=which.sample,
        now=None if which.now is None else read_time(which.now),
    )


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
    filters = read_filters(where, since=since, until=until, last=last, now=now)
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


def _read_sample(text: str) -> tuple[float, int | None]:
    """`10%`, `0.1`, or either with a seed after a colon, as in `10%:7`."""
    share, colon, seed = text.partition(":")
    try:
        fraction = float(share.rstrip("%")) / (100 if share.endswith("%") else 1)
        drawn = int(seed) if colon else None
    except ValueError as error:
        raise InputError(f"--sample {safe_text(text)!r}: {SAMPLE_RULE}") from error
    if not 0 < fraction <= 1:
        raise InputError(f"--sample {safe_text(text)!r} is not above 0% and at most 100%: {SAMPLE_RULE}")
    return fraction, drawn

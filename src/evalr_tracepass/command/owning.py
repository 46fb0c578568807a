"""Signals and presets of one's own: changed in a store, or in a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from evalr.errors import InputError
from evalr.estimates.words import choice_words
from evalr.inputs import utc_now
from evalr.quoting import safe_text
from evalr_tracepass.catalogue import heuristics
from evalr_tracepass.command.options import Place
from evalr_tracepass.command.own_app import SignalParts
from evalr_tracepass.command.places import Kept, opened
from evalr_tracepass.planning import plan
from evalr_tracepass.signal_files import Preset, SignalFile, checked_signals, load_signals, save_signals
from evalr_tracepass.signals import Signal
from evalr_tracepass.transforms import transform

Change = Callable[[SignalFile], SignalFile]


def edited(file: str | None, place: Place, change: Change) -> None:
    """Change what a file holds, or, where none is named, what the account has in its store.

    Raises:
        InputError: the change cannot be made, or what it comes to is not whole.
        DatasetError: the file cannot be read or written.
    """
    if file is None:
        with opened(place, new=True, results=False) as kept:
            _keep(kept, change)
        return
    before = load_signals(file) if Path(file).exists() else SignalFile()
    after = change(before)
    folder = Path(file).resolve().parent
    files = {
        name: path.relative_to(folder) if path.is_relative_to(folder) else path for name, path in after.reflexes.items()
    }
    save_signals(file, after.signals.values(), after.presets.values(), files)


def _keep(kept: Kept, change: Change) -> None:
    store, account = kept.store, kept.account
    before = SignalFile(store.signals(account), store.presets(account))
    changed = change(before)
    after = checked_signals(changed.signals.values(), changed.presets.values())
    for name, signal in after.signals.items():
        if before.signals.get(name) != signal:
            store.save_signal(account, signal)
    for name, preset in after.presets.items():
        if before.presets.get(name) != preset:
            store.save_preset(account, preset)
    for name in before.presets.keys() - after.presets.keys():
        store.delete_preset(account, name)
    for name in before.signals.keys() - after.signals.keys():
        store.delete_signal(account, name)


def changed_signal(known: SignalFile, name: str, parts: SignalParts) -> SignalFile:
    """With a signal as its parts say; those that are not given stay as they were.

    Raises:
        InputError: it would be no signal.
    """
    before = known.signals.get(name)
    given: dict[str, Any] = {
        "model": parts.model,
        "display_name": parts.title,
        "transform": None if parts.transform is None else transform(parts.transform),
        "fires_on": None if parts.fires_on is None else tuple(parts.fires_on),
        "thresholds": None if parts.threshold is None else dict(map(_threshold, parts.threshold)),
        "enabled_by_default": parts.ticked,
        "monitor": parts.monitor,
    }
    given = {key: value for key, value in given.items() if value is not None}
    shared = {"signal_id": name, "model": name, "display_name": name} if before is None else dict(before)
    now = utc_now()
    created = now if before is None else before.created or now
    try:
        made = Signal.model_validate({**shared, **given, "created": created, "updated": now})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        of = "".join(f"{safe_text(str(each))}: " for each in first["loc"])
        raise InputError(f"signal {safe_text(name)!r}: {of}{safe_text(first['msg'], longest=300)}") from None
    plan([made], reflexes=heuristics())  # which refuses labels that a rule does not have
    if not made.fires_on:
        raise InputError(f"signal {safe_text(name)!r} fires on nothing: name a label with --fires-on")
    return replace(known, signals={**known.signals, name: made})


def _threshold(text: str) -> tuple[str, float]:
    label, equals, score = text.rpartition("=")
    try:
        if not (equals and label):
            raise ValueError
        found = float(score)
    except ValueError:
        raise InputError(f"--threshold {safe_text(text)!r}: write LABEL=SCORE, as in frustrated=0.7") from None
    if not 0 <= found <= 1:
        raise InputError(f"--threshold {safe_text(text)!r}: a score is from 0 to 1, as in {safe_text(label)}=0.7")
    return label, found


def changed_preset(known: SignalFile, name: str, signals: Sequence[str], *, monitor: bool | None) -> SignalFile:
    """With a preset of these signals; without any, of those that it had.

    Raises:
        InputError: it would have no signal.
    """
    before = known.presets.get(name)
    chosen = tuple(dict.fromkeys(signals)) or (() if before is None else before.signals)
    if not chosen:
        raise InputError(f"preset {safe_text(name)!r} has no signal: name each with --signal")
    now = utc_now()
    made = Preset(
        name=name,
        signals=chosen,
        monitor=monitor if monitor is not None else before is not None and before.monitor,
        created=now if before is None else before.created or now,
        updated=now,
    )
    return replace(known, presets={**known.presets, name: made})


def without_signal(known: SignalFile, name: str) -> SignalFile:
    """Without a signal.

    Raises:
        InputError: there is none of that name, or a preset runs it.
    """
    if name not in known.signals:
        raise InputError(f"there is no signal of your own {safe_text(name)!r}; {choice_words(name, known.signals)}")
    users = [each.name for each in known.presets.values() if name in each.signals]
    if users:
        raise InputError(f"preset {safe_text(', '.join(users))} runs signal {safe_text(name)!r}: change that first")
    return replace(known, signals={each: signal for each, signal in known.signals.items() if each != name})


def without_preset(known: SignalFile, name: str) -> SignalFile:
    """Without a preset.

    Raises:
        InputError: there is none of that name.
    """
    if name not in known.presets:
        raise InputError(f"there is no preset {safe_text(name)!r}; {choice_words(name, known.presets)}")
    return replace(known, presets={each: preset for each, preset in known.presets.items() if each != name})


def with_all_of(known: SignalFile, loaded: SignalFile) -> SignalFile:
    """With the signals and presets of a file, which say when they were made, or else now."""
    now = utc_now()
    signals = {
        name: each.model_copy(update={"created": each.created or now, "updated": each.updated or now})
        for name, each in loaded.signals.items()
    }
    presets = {
        name: each.model_copy(update={"created": each.created or now, "updated": each.updated or now})
        for name, each in loaded.presets.items()
    }
    return replace(known, signals={**known.signals, **signals}, presets={**known.presets, **presets})

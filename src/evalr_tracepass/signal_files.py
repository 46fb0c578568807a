"""Files of signals: a person's own signals, presets and classifiers as JSON, which a team can review with its code."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from evalr.errors import InputError
from evalr.input_fields import Name, Time
from evalr.labels.decision_fit import json_file
from evalr.labels.files import Place, locked, real_path, replace_lines
from evalr.quoting import safe_text
from evalr_tracepass.catalogue import SIGNALS, signal
from evalr_tracepass.signals import Signal

KIND = "tracepass-signals"
FORMAT = 1


class Preset(BaseModel):
    """Signals that are run together.

    Attributes:
        name: of the preset.
        signals: the ids of its signals.
        monitor: whether a monitor runs them.
        created: when it was made.
        updated: when it was last changed.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    name: Name
    signals: tuple[Name, ...]
    monitor: bool = False
    created: Time | None = None
    updated: Time | None = None

    def chosen(self, custom: Mapping[str, Signal] | None = None) -> list[Signal]:
        """Its signals.

        Raises:
            InputError: one is neither among one's own nor among those that come with evalr.
        """
        return [signal(name, custom) for name in self.signals]


@dataclass(frozen=True)
class SignalFile:
    """What a file of signals holds.

    Attributes:
        signals: one's own, by their ids.
        presets: by their names.
        reflexes: files of classifiers, by the aliases that signals name as their model; see `load_reflex`.
    """

    signals: Mapping[str, Signal] = field(default_factory=dict)
    presets: Mapping[str, Preset] = field(default_factory=dict)
    reflexes: Mapping[str, Path] = field(default_factory=dict)


def save_signals(
    path: Place, signals: Iterable[Signal], presets: Iterable[Preset] = (), reflexes: Mapping[str, Place] | None = None
) -> None:
    """Write signals and presets to a file, whole or not at all. What it held before is replaced.

    Args:
        path: of the file.
        signals: one's own.
        presets: of these, and of those that come with evalr.
        reflexes: files of classifiers, by their aliases: as seen from the folder of the file, unless they are absolute.

    Raises:
        InputError: two have one name, or a preset names a signal that is not there.
        DatasetError: the file cannot be written.
    """
    own, named = list(signals), list(presets)
    checked_signals(own, named)
    content = {
        "type": KIND,
        "format": FORMAT,
        "signals": [each.to_dict() for each in own],
        "presets": [each.model_dump(mode="json") for each in named],
        "reflexes": {name: os.fspath(file) for name, file in (reflexes or {}).items()},
    }
    real = real_path(path)
    with locked(real):
        replace_lines(real, [json.dumps(content, ensure_ascii=False, indent=2)])


def load_signals(path: Place) -> SignalFile:
    """Read what `save_signals` wrote, or a person did by hand.

    Raises:
        DatasetError: the file is missing, or something else.
        InputError: a signal or a preset in it cannot be used; the message names it.
    """
    real = real_path(path)
    found = json_file(real, KIND, FORMAT)
    signals = [_read(Signal, each, f"{real}: signal") for each in _listed(found.get("signals", []), f"{real}: signals")]
    presets = [_read(Preset, each, f"{real}: preset") for each in _listed(found.get("presets", []), f"{real}: presets")]
    return replace(checked_signals(signals, presets), reflexes=_files(found.get("reflexes", {}), real))


def _files(found: object, path: Path) -> dict[str, Path]:
    if not isinstance(found, dict) or not all(isinstance(each, str) and each for each in found.values()):
        raise InputError(f"{path}: reflexes must be files by the names of classifiers")
    return {name: path.parent / each for name, each in found.items()}


def checked_signals(signals: Iterable[Signal], presets: Iterable[Preset]) -> SignalFile:
    """Signals and presets by their names.

    Raises:
        InputError: two have one name, a signal has that of one that comes with evalr, or a preset names one that is not
            there.
    """
    own: dict[str, Signal] = {}
    for each in signals:
        if own.setdefault(each.signal_id, each) is not each:
            raise InputError(f"two signals are named {safe_text(each.signal_id)!r}")
        if each.signal_id in SIGNALS:
            raise InputError(
                f"{safe_text(each.signal_id)!r} is a signal that comes with evalr: give yours another name"
            )
    named: dict[str, Preset] = {}
    for preset in presets:
        if named.setdefault(preset.name, preset) is not preset:
            raise InputError(f"two presets are named {safe_text(preset.name)!r}")
        preset.chosen(own)
    return SignalFile(own, named)


def _listed(found: object, where: str) -> list[Any]:
    if not isinstance(found, list):
        raise InputError(f"{where} must be a list")
    return found


def _read(model: Any, found: Any, where: str) -> Any:
    try:
        return model.model_validate(found)
    except ValidationError as error:
        name = found.get("signal_id", found.get("name", "?")) if isinstance(found, dict) else "?"
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        what = f"{place}: {first['msg']}" if place else first["msg"]
        raise InputError(f"{where} {safe_text(str(name))!r}: {safe_text(what, longest=200)}") from None

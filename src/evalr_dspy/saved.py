"""Judges as JSON files: everything but keys, and types by their names alone."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import dspy

from evalr.errors import InputError
from evalr.labels.lines import Types, example_fields, example_of, input_type_named, verdict_type_named
from evalr.measures import Preference
from evalr.quoting import safe_text
from evalr_dspy.client import CONNECTION
from evalr_dspy.judge import DspyJudge

FORMAT = "evalr judge"
VERSION = 1


def save(judge: DspyJudge[Any, Any], path: str | os.PathLike[str]) -> None:
    """Write a judge; what was at the path is replaced as a whole."""
    state = {
        "format": FORMAT,
        "format_version": VERSION,
        "name": judge.name,
        "version": judge.version,
        "verdict_type": judge.verdict_type.__name__,
        "input_type": judge.inputs.__name__,
        "instructions": judge.instructions,
        "fields": list(judge.fields),
        "budget": judge.budget,
        "target": judge.target,
        "cache": judge.cache,
        "trained_on": judge.trained_on,
        "demos": [example_fields(demo) for demo in judge.demos],
        "lm": _lm_state(judge.lm),
    }
    place = Path(path)
    draft = place.with_name(f".{place.name}.{os.getpid()}")
    draft.write_text(json.dumps(state, indent=2, ensure_ascii=False, default=str) + "\n", encoding="utf-8")
    draft.replace(place)


def load(
    path: str | os.PathLike[str],
    *,
    lm: dspy.BaseLM | None = None,
    verdict_type: type[Any] | None = None,
    inputs: type[Any] | None = None,
) -> DspyJudge[Any, Any]:
    """Read a judge; see `DspyJudge.load`."""
    place = Path(path)
    state = _read(place)
    try:
        input_type = input_type_named(state["input_type"], inputs)
        found = _verdict_type(state["verdict_type"], verdict_type)
        types = Types(input_type, found)
        return DspyJudge(
            found,
            inputs=input_type,
            lm=_lm(state["lm"]) if lm is None else lm,
            name=state["name"],
            instructions=state["instructions"],
            demos=[example_of(fields, types) for fields in state["demos"]],
            fields=state["fields"],
            budget=state["budget"],
            target=state["target"],
            cache=state["cache"],
            trained_on=[tuple(subject) for subject in state.get("trained_on", ())],
        )
    except KeyError as error:
        raise InputError(f"{place} is no whole saved judge: it lacks {error}") from None


def _read(place: Path) -> dict[str, Any]:
    try:
        state = json.loads(place.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{place} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"{place} is no saved judge: {error}") from None
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise InputError(f"{place} is no saved judge")
    if state.get("format_version") != VERSION:
        raise InputError(f"{place} is a judge saved by another version of evalr: save it again with this one")
    return state


def _verdict_type(name: str, given: type[Any] | None) -> type[Any]:
    if given is None and name == Preference.__name__:
        return Preference
    found = verdict_type_named(name, given)
    if found is None:
        raise InputError("a saved judge needs a verdict type")
    return found


def _lm_state(lm: dspy.BaseLM) -> dict[str, Any]:
    """A model without what is secret, or belongs to the machine that it was saved on."""
    return {name: value for name, value in lm.dump_state().items() if name not in CONNECTION}


def _lm(state: dict[str, Any]) -> dspy.BaseLM:
    # A file does not say where keys are sent either, whoever wrote it.
    state = {name: value for name, value in state.items() if name not in CONNECTION}
    try:
        return dspy.BaseLM.load_state(state)
    except (ValueError, TypeError, ImportError) as error:
        model = safe_text(str(state.get("model")))
        raise InputError(f"the saved model {model} cannot be made here: pass lm= ({error})") from error

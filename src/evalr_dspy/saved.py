"""Judges as JSON files: everything but keys, and types by their names alone."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import dspy
from pydantic import BaseModel, ValidationError

from evalr.errors import InputError
from evalr.labels.lines import Types, example_fields, example_of, input_type_named, verdict_type_named
from evalr.measures import Preference
from evalr.quoting import safe_text
from evalr_dspy.client import CONNECTION
from evalr_dspy.judge import DspyJudge

FORMAT = "evalr judge"
VERSION = 1


class _State(BaseModel):
    """What a file says of a judge, whoever wrote or changed it."""

    input_type: str
    verdict_type: str
    lm: dict[str, Any]
    name: str
    instructions: str
    fields: list[str]
    budget: int
    target: str | None
    cache: bool
    demos: list[dict[str, Any]]
    trained_on: list[tuple[str, str | None, str | None, str]] = []


_AS_THEY_ARE = ("name", "instructions", "fields", "budget", "target", "cache", "trained_on")


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
    input_type = input_type_named(state.input_type, inputs)
    found = _verdict_type(state.verdict_type, verdict_type)
    types = Types(input_type, found)
    return DspyJudge(
        found,
        inputs=input_type,
        lm=_lm(state.lm) if lm is None else lm,
        demos=[example_of(fields, types) for fields in state.demos],
        **{name: getattr(state, name) for name in _AS_THEY_ARE},
    )


def _read(place: Path) -> _State:
    try:
        state = json.loads(place.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{place} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"{place} is no saved judge: {error}") from None
    except RecursionError:
        raise InputError(f"{place} is no saved judge: it is nested too deeply") from None
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise InputError(f"{place} is no saved judge")
    if state.get("format_version") != VERSION:
        raise InputError(f"{place} is a judge saved by another version of evalr: save it again with this one")
    try:
        # Strictly, but for tuples, which JSON has no word for.
        return _State.model_validate_json(json.dumps(state), strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        name = ".".join(map(str, first["loc"]))
        wrong = f"it lacks {name!r}" if first["type"] == "missing" else f"{safe_text(name)}: {safe_text(first['msg'])}"
        raise InputError(f"{place} is no whole saved judge: {wrong}") from None


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

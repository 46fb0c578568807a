"""A judge's signature: the texts that it is shown, and the verdict's fields with their bounds and choices."""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import Enum
from typing import Any, get_origin

import dspy
from pydantic import BaseModel

from evalr.errors import InputError
from evalr.fields import Field, verdict_fields
from evalr.inputs import Input

ITEMS = ", one JSON object a line, in order; where some are left out, a line says how many"

_RESERVED = frozenset({"fields", "input_fields", "instructions", "output_fields", "signature"})
"""Names that a signature has for itself."""

_TAKEN = frozenset({"config", "demos", "lm", "new_signature", "prediction", "signature"}) | _RESERVED
"""Names that a predictor takes for its own options, or a signature for itself."""


def answer_fields(verdict_type: type[BaseModel]) -> tuple[Field, ...]:
    """The fields that a model is asked for: those of the verdict type that are not computed."""
    return tuple(field for field in verdict_fields(verdict_type) if field.name in verdict_type.model_fields)


def shown_names(verdict_type: type[BaseModel], shown: Sequence[str]) -> dict[str, str]:
    """The name under which each field of an input is shown: its own, unless the verdict has one of that name."""
    taken = _TAKEN | {field.name for field in answer_fields(verdict_type)}
    return {name: f"given_{name}" if name in taken else name for name in shown}


def judge_signature(
    verdict_type: type[BaseModel], inputs: type[Input], shown: Sequence[str], instructions: str
) -> type[dspy.Signature]:
    """The signature of a judge: texts in, the verdict's fields out, the rubric as its instructions."""
    unknown = [name for name in shown if name not in inputs.model_fields]
    if unknown or not shown:
        raise InputError(f"fields={list(shown)} must be fields of {inputs.__name__}: {', '.join(inputs.model_fields)}")
    reserved = [field.name for field in answer_fields(verdict_type) if field.name in _RESERVED]
    if reserved:
        raise InputError(
            f"{verdict_type.__name__}.{reserved[0]} has a name that dspy keeps for itself: call the field another name"
        )
    fields: dict[str, Any] = {
        name: (str, dspy.InputField(desc=_shown_words(inputs, field)))
        for field, name in shown_names(verdict_type, shown).items()
    }
    for field in answer_fields(verdict_type):
        annotation = verdict_type.model_fields[field.name].annotation
        fields[field.name] = (annotation, dspy.OutputField(desc=spelled(field)))
    signature: type[dspy.Signature] = dspy.make_signature(fields, instructions, verdict_type.__name__)
    return signature


def _shown_words(inputs: type[Input], name: str) -> str:
    words = inputs.model_fields[name].description or f"the {name.replace('_', ' ')}"
    return f"{words}{ITEMS}" if get_origin(inputs.model_fields[name].annotation) is list else words


def spelled(field: Field) -> str:
    """What a field may hold, in words: its bounds, its choices, and what its declaration says of it."""
    words = _values(field)
    if field.optional:
        words += ", or null"
    return f"{words}. {field.description.rstrip('.')}." if field.description else f"{words}."


def _values(field: Field) -> str:
    match field.kind:
        case "bool":
            return "true or false"
        case "choice":
            return f"one of {_choices(field)}"
        case "choices":
            return f"a list of any of {_choices(field)}; [] for none of them"
        case "integer" | "number":
            return ("a whole number" if field.kind == "integer" else "a number") + _bounds(field)
        case "text":
            return "a text"


def _choices(field: Field) -> str:
    values = (choice.value if isinstance(choice, Enum) else choice for choice in field.choices)
    return ", ".join(json.dumps(value, ensure_ascii=False) for value in values)


def _bounds(field: Field) -> str:
    low, high = (None if bound is None else f"{bound:.15g}" for bound in (field.low, field.high))
    if low is not None and high is not None:
        return f" from {low} to {high}"
    return f", at least {low}" if low is not None else f", at most {high}" if high is not None else ""

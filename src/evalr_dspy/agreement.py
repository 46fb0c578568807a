"""Agreement of a judge with people on one field of a verdict, as a rate, and as feedback to train by."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, Field
from pydantic_core import to_jsonable_python

from evalr.errors import InputError
from evalr.estimates.estimate import Estimate
from evalr.labels import Example
from evalr.summaries import Rate
from evalr.verdicts import Result, Verdict
from evalr_dspy.signature import answer_fields


class Agreement(BaseModel):
    """Whether a judge said of an example what people said."""

    agreed: bool = Field(description="The judge and people said the same")


agreement_rate = Rate("agreement", of=Agreement, hits=lambda v: v.agreed, title="agreement with people", noun="example")


def agreed_field(verdict_type: type[BaseModel], name: str | None) -> str:
    """The field that a judge and people are to agree on: the one named, or the first that is no text.

    Raises:
        InputError: there is none.
    """
    known = {field.name: field.kind for field in answer_fields(verdict_type)}
    if name is None:
        name = next((each for each, kind in known.items() if kind != "text"), None)
    if name is None or name not in known:
        raise InputError(f"on={name!r} must be a field of {verdict_type.__name__}: {', '.join(known)}")
    return name


def agreements(examples: Sequence[Example[Any]], results: Iterable[Result[Any]], on: str) -> Estimate:
    """How often results agree with the labels of their examples; failures count as missing, never as either."""
    labels = {example.given().about().subject: example for example in examples}
    judged: list[Result[Any]] = []
    for result in results:
        example = labels[result.about.subject if result.about is not None else None]
        if isinstance(result, Verdict):
            value = Agreement(agreed=agrees(example, result, on))
            judged.append(replace(result, value=value, about=example.about()))
        else:
            judged.append(replace(result, about=example.about()))
    return agreement_rate.estimate(judged)


def agrees(example: Example[Any], result: Result[Any], on: str) -> bool:
    """Whether a judge says what people say of a field; where it gives no verdict, it does not."""
    return isinstance(result, Verdict) and _same(getattr(result.value, on), getattr(example.expected, on))


def feedback(example: Example[Any], said: dict[str, Any], on: str) -> str:
    """What people said of an example, why, and where the judge said otherwise."""
    expected = dict(example.expected or ())
    lines = [
        f"People said {on} = {_json(expected[on])}, and so did you."
        if _same(said[on], expected[on])
        else f"You said {on} = {_json(said[on])}. People said {on} = {_json(expected[on])}, and people are right."
    ]
    reason = example.reason or expected.get("reason")
    if isinstance(reason, str) and reason:
        lines.append(f"Their reason: {reason}")
    for name, value in expected.items():
        if name not in (on, "reason") and value is not None and not _same(said[name], value):
            lines.append(f"You said {name} = {_json(said[name])}, and people said {_json(value)}.")
    return "\n".join(lines)


def _same(said: object, expected: object) -> bool:
    """Whether two values of a field are one; choices have no order."""
    if isinstance(said, list) and isinstance(expected, list):
        return set(said) == set(expected)
    return said == expected


def _json(value: object) -> str:
    return json.dumps(to_jsonable_python(value), ensure_ascii=False)

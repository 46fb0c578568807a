"""Results as lines of a log: what stands for each of the four, and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from evalr.input_fields import Attributes, Name, Text, Time
from evalr.inputs import About
from evalr.logs.log import Stored
from evalr.verdicts import Failure, HandOff, Result, Skip, Verdict

Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class AboutLine(_Line):
    """What a result is about. Its subject (kind, user, session, id) is unique among an evaluator's results."""

    kind: Name = Field(description="The kind of input: session, history, transcript, wait, draft.")
    id: Name | None = Field(None, description="The id of the input.")
    user: Name | None = Field(None, description="The person it belongs to; intervals are computed over users.")
    session: Name | None = Field(None, description="The session or artifact that the input is a part of, if it is one.")
    at: Time | None = Field(None, description="When it happened.")
    read_at: Time | None = Field(None, description="When its log was read.")
    arm: Name | None = Field(None, description="The side of an A/B test, such as treatment or control.")
    weight: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = Field(
        None, description="How many such inputs it stands for in a sample."
    )
    attributes: Attributes | None = Field(None, description="Texts to group by; a list puts it into several groups.")
    repeat: Annotated[int, Field(ge=1)] | None = Field(
        None, description="Which time it was, from 1, where one input was judged several times on purpose."
    )


class ResultLine(_Line):
    """What an evaluator, a judge or a person said of one input.

    A verdict has a `value`, of the verdict type of its `measure`; a failure an `error`; a skip or hand-off a `reason`.
    """

    type: Literal["result"] = Field("result", description="Says that the line is a result.")
    status: Literal["verdict", "failed", "skipped", "handed_off"] = Field(
        "verdict", description="Which of the four it is."
    )
    measure: Name | None = Field(None, description="The measure that it belongs to; by default the evaluator's name.")
    evaluator: Name | None = Field(
        None, description="Who gave it: an evaluator's name, or people for a person's feedback."
    )
    version: Name | None = Field(None, description="The evaluator's version; 1 where a verdict has none.")
    value: dict[str, Any] | None = Field(None, description="The verdict, by the fields of its type.")
    confidence: dict[Name, Share] | None = Field(None, description="From 0 to 1, by field of the value.")
    about: AboutLine | None = Field(None, description="What it is about.")
    latency: Amount | None = Field(None, description="Seconds of work, without waiting.")
    cost: Amount | None = Field(None, description="US dollars; left out where unknown.")
    as_of: Time | None = Field(None, description="The reading time that it depends on, if it depends on one.")
    flags: tuple[Name, ...] = Field((), description="What to know of a verdict, such as truncated.")
    given_by: Name | None = Field(
        None, description="Of an evaluator that asks others: the one that gave the verdict, as name@version."
    )
    error: Text | None = Field(None, description="Why an evaluator failed.")
    reason: Text | None = Field(None, description="Why it skipped the input or handed it off.")
    verdict: ResultLine | None = Field(
        None, description="The verdict that was not sure enough, where one was handed off."
    )
    supersedes: bool | None = Field(
        None, description="Whether it takes the place of the earlier results of its subject by the same evaluator."
    )


def measure_of(line: ResultLine) -> str | None:
    """The measure that a line belongs to."""
    return line.measure or line.evaluator


def missing_part(line: ResultLine) -> str | None:
    """The field that a line of its status cannot be without, where it is without it."""
    if line.status == "verdict":
        needed = {"value": line.value, "evaluator": line.evaluator}
    else:
        needed = {"error": line.error} if line.status == "failed" else {"reason": line.reason}
    return next((name for name, value in needed.items() if value is None), None)


def to_result(line: ResultLine, read_value: Callable[[dict[str, Any]], BaseModel]) -> Result[Any]:
    """The result that a line without a missing part stands for. `read_value` makes a verdict's value of its fields."""
    about = None if line.about is None else About(*(getattr(line.about, name) for name in About._fields))
    if line.status == "verdict":
        return Verdict(
            read_value(line.value or {}),
            line.evaluator or "",
            line.version or "1",
            about,
            line.confidence,
            line.latency,
            line.cost,
            line.as_of,
            line.flags,
            line.given_by,
        )
    shared = (line.evaluator, line.version, about, line.latency, line.cost, line.as_of)
    if line.status == "failed":
        return Failure(line.error or "", *shared)
    if line.status == "skipped":
        return Skip(line.reason or "", *shared)
    inner = None if line.verdict is None else to_result(line.verdict, read_value)
    return HandOff(line.reason or "", *shared, inner if isinstance(inner, Verdict) else None)


def to_result_line(stored: Stored) -> ResultLine:
    """The line that stands for a result."""
    measure, result = stored
    about = None if result.about is None else AboutLine(**result.about._asdict())
    fields: dict[str, Any] = {
        "status": result.status,
        "measure": measure,
        "evaluator": result.evaluator,
        "version": result.version,
        "about": about,
        "latency": result.latency,
        "cost": result.cost,
        "as_of": result.as_of,
    }
    if isinstance(result, Verdict):
        fields |= {"value": result.value.model_dump(mode="json"), "flags": result.flags, "given_by": result.given_by}
        fields["confidence"] = None if result.confidence is None else dict(result.confidence)
    elif isinstance(result, Failure):
        fields["error"] = result.error
    else:
        fields["reason"] = result.reason
        if isinstance(result, HandOff) and result.verdict is not None:
            fields["verdict"] = to_result_line(Stored(measure, result.verdict))
    return ResultLine(**fields)

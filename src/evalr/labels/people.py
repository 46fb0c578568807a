"""Feedback: what people say of inputs, as verdicts like any other."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from os import PathLike
from typing import Any

from pydantic import BaseModel

from evalr.errors import InputError
from evalr.inputs import About, Input
from evalr.labels.datasets import Dataset
from evalr.quoting import safe_text
from evalr.verdicts import LABELLED_BY, NO_VERDICT, PEOPLE, Result, V, Verdict, about_of

Labels = Dataset[Any] | Iterable[Result[Any]]
"""What people said: a dataset, or verdicts and the like by them, such as `labels_of` finds in a log."""


def feedback(
    given: Input | About, value: V, *, author: str | None = None, at: datetime | None = None, version: str = "1"
) -> Verdict[V]:
    """What a person says of an input: a verdict by `people`, which summaries, logs and reports take like any other.

    Args:
        given: the input, or what a result of it is about.
        value: what the person says, of the verdict type that judges give, too.
        author: who said it; it is the attribute `labelled_by`, so that results can be grouped by it.
        at: when they said it, with its zone. With `duplicates="latest"` a person's last word counts.
        version: of the question that people were asked. Answers to several are not pooled unless asked to.

    Raises:
        InputError: the input has no id, so that nothing else could be known to be about it; the value is of no verdict
            type; or `at` has no zone.
    """
    about = given.about() if isinstance(given, Input) else given
    if not isinstance(about, About):
        kind = safe_text(type(given).__name__)
        raise InputError(
            f"feedback is about an input with an id, not a {kind}: pass the input, or the .about of a result of it"
        )
    if about.id is None:
        raise InputError("feedback is about an input with an id, by which a judge's verdict on it is found: give one")
    if not isinstance(value, BaseModel):
        kind = safe_text(type(value).__name__)
        raise InputError(f"feedback is a verdict, not a {kind}: pass a value of the judge's verdict type")
    if author is not None:
        if not isinstance(author, str) or not author:
            raise InputError(f"author={safe_text(repr(author))} must be a name, or left out")
        about = about._replace(attributes={**(about.attributes or {}), LABELLED_BY: author})
    return Verdict(value, PEOPLE, version, about, as_of=at)


def labels_of(source: Labels | Iterable[Any]) -> list[Result[Any]]:
    """What people said: those results that are by `people`, also where they gave no answer.

    Args:
        source: a dataset, results, or all that `evalr.logs.read` finds in a log.

    Raises:
        InputError: it holds none of these.
    """
    if isinstance(source, Dataset):
        return list(source.labels())
    if isinstance(source, str | PathLike):
        raise InputError("labels_of takes what a log holds, not its path: labels_of(read(path))")
    return [result for each in source if (result := _result_in(each)) is not None and result.evaluator == PEOPLE]


def _result_in(item: object) -> Result[Any] | None:
    """A result, also as a log stores it with the name of its measure; None for an input, which holds none."""
    if isinstance(item, Input):
        return None
    result = getattr(item, "result", item)
    if not isinstance(result, (Verdict, *NO_VERDICT)):
        raise InputError(f"labels_of takes results, or what a log holds, not a {safe_text(type(item).__name__)}")
    return result


def labeller(result: Result[Any]) -> str:
    """Who gave a label: its author where one is known, else its evaluator."""
    about = about_of(result)
    author = None if about is None else (about.attributes or {}).get(LABELLED_BY)
    return author if isinstance(author, str) else result.evaluator or PEOPLE

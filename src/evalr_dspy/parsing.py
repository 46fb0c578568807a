"""Reading a model's answer: one JSON object, whatever stands around it, and nothing where it is ambiguous."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from enum import Enum
from math import isfinite
from typing import Any, NamedTuple, NoReturn, TypeVar

from pydantic import BaseModel, ValidationError

from evalr.errors import EvalrError
from evalr.fields import verdict_fields
from evalr.input_fields import without_lone_surrogates
from evalr.quoting import quoted, safe_text

LONGEST_ANSWER = 400_000
"""Characters of an answer; no verdict needs more, and reading one must not hold up the others."""

MOST_BRACES = 100
"""How many braces that begin no JSON object an answer may hold: each is looked at, and an answer may be all braces."""

NUMBER = r"-?[0-9]+(?:\.[0-9]+)?"
"""One in prose."""

M = TypeVar("M", bound=BaseModel)


class UnclearAnswerError(EvalrError):
    """A model's answer is no verdict: there is none in it, more than one, or one that does not validate."""


def read_answer(text: str | None, verdict_type: type[M], names: Sequence[str]) -> M:
    """The verdict in a model's answer.

    It is the one JSON object that has any of the verdict's fields. Fences and prose around it do not matter; objects
    without such a field are prose, unless one that has such a field and differs stands within them, or the prose gives
    a field another number, truth value or choice. Types are taken strictly: "4" is no number and 1 no truth value; a
    number is finite.

    Args:
        text: the answer.
        verdict_type: what it must validate as.
        names: the fields that the model was asked for; others in the answer are ignored.

    Raises:
        UnclearAnswerError: there is no such object, there are several that differ, one of them is broken or names a
            field twice, or it does not validate.
    """
    if text is None or not text.strip():
        raise UnclearAnswerError("the model's answer is empty")
    if len(text) > LONGEST_ANSWER:
        raise UnclearAnswerError(f"the model's answer is longer than {LONGEST_ANSWER:,} characters")
    try:
        return _read(text, verdict_type, names)
    except RecursionError:
        raise UnclearAnswerError("the model's answer is nested too deeply") from None


def _read(text: str, verdict_type: type[M], names: Sequence[str]) -> M:
    parts = list(_parts(text))
    objects = [part for part in parts if not isinstance(part, str)]
    prose = "".join(part for part in parts if isinstance(part, str))
    folded = {name.casefold() for name in names}
    answers = [each for each in objects if any(key.casefold() in folded for key in each.value)]
    broken = next((name for name in names if re.search(rf'["\']{re.escape(name)}["\']\s*:', prose)), None)
    if broken is not None:
        raise UnclearAnswerError(f"the model's answer has {broken!r} outside of whole JSON objects: it is broken")
    if not answers:
        raise UnclearAnswerError(f"the model's answer has no JSON object with a verdict: {quoted(text, longest=80)}")
    if any(answer.value != answers[0].value for answer in answers):
        raise UnclearAnswerError(f"the model gave {len(answers)} answers that differ")
    value = answers[0].value
    within = [inner for each in objects for inner in _within(each.value, names)]
    if any(inner.get(name, value.get(name)) != value.get(name) for inner in within for name in names):
        raise UnclearAnswerError("the model's answer holds another one that differs")
    choices = _choices(verdict_type)
    said = next((name for name in names if _says_otherwise(prose, name, value.get(name), choices.get(name, ()))), None)
    if said is not None:
        raise UnclearAnswerError(f"the model's answer gives {said!r} another value in words than in its JSON object")
    twice = answers[0].twice or next((key for key in value if key not in names and key.casefold() in folded), None)
    if twice:
        raise UnclearAnswerError(f"the model's answer has two values for {safe_text(twice)!r}")
    return _validated(value, verdict_type, names)


class _Object(NamedTuple):
    value: dict[str, Any]
    twice: str | None
    """A key that it has twice, at any depth."""


def _parts(text: str) -> Iterator[str | _Object]:
    """The outermost JSON objects of a text, and what stands between them."""
    start = misses = 0
    while (brace := text.find("{", start)) >= 0:
        yield text[start:brace]
        found = _object_at(text, brace)
        if found is None:
            misses += 1
            if misses > MOST_BRACES:
                raise UnclearAnswerError("the model's answer is full of braces that begin no JSON object")
            yield "{"
            start = brace + 1
        else:
            yield found[0]
            start = found[1]
    yield text[start:]


def _object_at(text: str, brace: int) -> tuple[_Object, int] | None:
    twice: list[str] = []

    def collected(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            twice.extend(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        return found

    decoder = json.JSONDecoder(
        object_pairs_hook=collected, parse_constant=_refused, parse_float=_finite, parse_int=_whole
    )
    try:
        value, end = decoder.raw_decode(text, brace)
    except (ValueError, RecursionError):
        return None
    return _Object(value, twice[0] if twice else None), end


def _within(value: Any, names: Sequence[str], *, inner: bool = False) -> Iterator[dict[str, Any]]:
    """The objects inside of one, at any depth but in the verdict's own fields, that have any of these."""
    if isinstance(value, dict):
        if inner and any(name in value for name in names):
            yield value
        for name, part in value.items():
            if inner or name not in names:
                yield from _within(part, names, inner=True)
    elif isinstance(value, list):
        for part in value:
            yield from _within(part, names, inner=True)


def _says_otherwise(prose: str, name: str, value: Any, choices: Sequence[Any]) -> bool:
    """Whether words around an answer give a field a truth value, a null, a number or a choice that is not its own."""
    texts = sorted((each for each in choices if isinstance(each, str) and each), key=len, reverse=True)
    words = "|".join([*map(re.escape, texts), "true", "false", "null", NUMBER])
    given = re.findall(rf"(?<!\w){re.escape(name)}[`*]*\s*[:=]\s*[`*\"']*({words})(?!\w)", prose, re.IGNORECASE)
    return any(not _says(word.lower(), value) for word in given)


def _says(word: str, value: Any) -> bool:
    if isinstance(value, str):
        return word == value.lower()
    if isinstance(value, int | float) and re.fullmatch(NUMBER, word):
        return float(word) == value
    return word == json.dumps(value)


def _choices(verdict_type: type[BaseModel]) -> dict[str, list[Any]]:
    """The plain values of each field that is a choice."""
    return {
        field.name: [choice.value if isinstance(choice, Enum) else choice for choice in field.choices]
        for field in verdict_fields(verdict_type)
        if field.kind == "choice"
    }


def _refused(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    return number if isfinite(number) else _refused(digits)


def _whole(digits: str) -> int:
    _finite(digits)  # a field that takes any number would make it infinite
    return int(digits)


def _validated(value: dict[str, Any], verdict_type: type[M], names: Sequence[str]) -> M:
    asked = {name: _clean(value[name]) for name in names if name in value}
    try:
        found = verdict_type.model_validate_json(json.dumps(asked), strict=True, by_alias=False, by_name=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or verdict_type.__name__
        raise UnclearAnswerError(
            f"the model's answer is no {verdict_type.__name__}: {safe_text(place)}: {safe_text(first['msg'])}"
        ) from error
    other = next((name for name, choices in _choices(verdict_type).items() if not _typed(asked.get(name), choices)), "")
    if other:
        raise UnclearAnswerError(f"the model's answer is no {verdict_type.__name__}: {other}: Input is of another type")
    return found


def _typed(value: Any, choices: Sequence[Any]) -> bool:
    """Whether a choice is of the type that it is declared with: to Python, true and 1.0 are 1 as well."""
    return value is None or any(type(value) is type(each) and value == each for each in choices if value == each)


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return without_lone_surrogates(value)
    if isinstance(value, list):
        return [_clean(item) for item in value]
    if isinstance(value, dict):
        return {_clean(name): _clean(item) for name, item in value.items()}
    return value

"""Classifiers of one's own by file: one that was trained and saved, or the question that a language model answers."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evalr.errors import DatasetError, InputError
from evalr.input_fields import Name
from evalr.labels import LocalClassifier
from evalr.labels.decision_fit import json_file
from evalr.labels.files import Place, locked, read_bytes, real_path, replace_lines
from evalr.labels.local import KIND as TRAINED
from evalr.quoting import safe_text
from evalr_tracepass.judged import judge_reflex
from evalr_tracepass.records import Reflex
from evalr_tracepass.trained import ClassifierReflex

KIND = "tracepass-judge"
FORMAT = 1


class JudgeQuestion(BaseModel):
    """What a language model is asked of each text, and among which labels it chooses.

    Attributes:
        labels: two or more, all different.
        question: what to decide, and what each label means.
        lm: the model, such as "openai/gpt-5-mini"; None where whoever runs it says.
        api_base: where it is served, None where its maker's is meant. A key is never here, but in the environment.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    labels: Annotated[tuple[Name, ...], Field(min_length=2)]
    question: Name
    lm: Name | None = None
    api_base: Name | None = None

    def reflex(self, name: str, *, lm: str | None = None, api_base: str | None = None) -> Reflex:
        """A judge that asks it.

        Args:
            name: the reflex's alias.
            lm: the model, in place of the one that is named here.
            api_base: where it is served, in place of what is said here.

        Raises:
            InputError: no model is named, or it cannot be used.
            MissingExtraError: dspy is not installed: `pip install 'evalr[dspy]'`.
        """
        model = lm or self.lm
        if model is None:
            raise InputError(f"no model is named to answer the question of {safe_text(name)!r}: name one with --lm")
        # By name: this package stands beside the one of judges, and neither needs the other to be imported.
        importlib.import_module("evalr.dspy")
        named_lm = importlib.import_module("evalr_dspy.commanded").named_lm
        return judge_reflex(name, self.labels, self.question, named_lm(model, api_base=api_base or self.api_base))


def save_question(path: Place, question: JudgeQuestion) -> None:
    """Write a question to a file, whole or not at all.

    Raises:
        DatasetError: the file cannot be written.
    """
    content = {"type": KIND, "format": FORMAT, **question.model_dump(mode="json", exclude_none=True)}
    real = real_path(path)
    with locked(real):
        replace_lines(real, [json.dumps(content, ensure_ascii=False, indent=2)])


def load_reflex(name: str, path: Place, *, lm: str | None = None, api_base: str | None = None) -> Reflex:
    """The classifier of a file: what `LocalClassifier.save` or `save_question` wrote, or a question by hand.

    Args:
        name: its alias, which signals name as their model.
        path: of the file.
        lm: the model that answers a question, in place of the file's own.
        api_base: where that is served.

    Raises:
        DatasetError: the file is missing, damaged or something else.
        InputError: its question cannot be used, or names no model.
        MissingExtraError: what it needs is not installed.
    """
    real = real_path(path)
    kind = _kind(real)
    if kind == TRAINED:
        return ClassifierReflex(name, LocalClassifier.load(real))
    if kind != KIND:
        raise DatasetError(
            f'{real}: no "type": "{TRAINED}" (a trained classifier) or "{KIND}" (a question for a model) in it'
        )
    found = {each: value for each, value in json_file(real, KIND, FORMAT).items() if each not in ("type", "format")}
    try:
        question = JudgeQuestion.model_validate(found)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        what = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        raise InputError(f"{real}: {safe_text(what, longest=200)}") from None
    return question.reflex(name, lm=lm, api_base=api_base)


def _kind(path: Path) -> Any:
    try:
        found = json.loads(read_bytes(path))
    except (ValueError, RecursionError):
        return None
    return found.get("type") if isinstance(found, dict) else None

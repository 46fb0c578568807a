"""The judge: an evaluator that asks a language model."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from time import perf_counter
from typing import Any, Generic

import dspy
from dspy.utils.exceptions import AdapterParseError

from evalr.background import run_sync
from evalr.errors import InputError
from evalr.evaluators import I
from evalr.fields import verdict_fields
from evalr.input_fields import without_lone_surrogates
from evalr.inputs import Input, Subject
from evalr.labels import Example
from evalr.labels.subjects import OfSubject, subject_of
from evalr.measures.measure import default_name
from evalr.quoting import quoted, safe_text
from evalr.verdicts import TRAINED_ON, Failure, Result, Skip, V, Verdict
from evalr_dspy import client
from evalr_dspy.client import Heard, Line
from evalr_dspy.default_rubric import default_rubric
from evalr_dspy.formatting import BUDGET, TRUNCATED, Formatter, Shown, own_fields, tokens
from evalr_dspy.pacing import PACE
from evalr_dspy.parsing import UnclearAnswerError
from evalr_dspy.prices import price
from evalr_dspy.prompt import VERSION, JudgeAdapter, UnreadAnswerError
from evalr_dspy.signature import judge_signature, shown_names

ANSWER_TOKENS = 300
"""What an answer is expected to take, for limits."""


@dataclass(frozen=True)
class DspyJudge(Generic[I, V]):
    """A judge by a language model, for any type of input and of verdict.

    The model is shown the input's own fields as data (never users, arms or attributes), is told the verdict's fields
    with their bounds and choices, and answers with one JSON object. An answer that is ambiguous, broken, cut off or no
    verdict is a `Failure`, and so is any error of the client. Each evaluation is one call: nothing is cached unless
    asked for, and nothing is tried again, which `evaluate_all` does.

    The version changes with whatever may change an answer: rubric, form of the answer, demonstrations, types,
    formatter, model and its settings.

    Args:
        verdict_type: what it says; any type whose fields scores can read.
        inputs: the type of input that it reads.
        lm: the language model, such as `dspy.LM("openai/gpt-5-mini")`.
        name: the prefix of its scores; by default the name of the installed measure with that verdict type.
        instructions: the rubric; by default evalr's own for that verdict type, or else what the type says of itself.
        demos: labelled examples that the model is shown before the input.
        fields: which fields of the input the model is shown; by default all of its own.
        budget: how many tokens of the input the model is shown, at four bytes each. Verdicts on more are flagged
            `truncated`.
        target: the field, or else the attribute, of an input that holds the id of the turn to judge (or several), which
            is then marked and never left out.
        cache: let dspy's cache answer. Repeats are then no second opinions.
        trained_on: what it was trained or tuned with, as `Gepa` says it: a dataset, or examples, inputs or subjects, of
            which only the subjects (kind, user, session, id) are kept. A verdict on one of them, or on a demonstration,
            has the flag "trained_on", and agreement with people leaves it out.

    Raises:
        InputError: an argument cannot be used.
        FieldTypeError: the verdict type has a field that cannot be read.
    """

    verdict_type: type[V]
    inputs: type[I] = field(kw_only=True)
    lm: dspy.BaseLM = field(kw_only=True, repr=False)
    name: str = field(default="", kw_only=True)
    instructions: str = field(default="", kw_only=True, repr=False)
    demos: Sequence[Example[V]] = field(default=(), kw_only=True, repr=False)
    fields: Sequence[str] = field(default=(), kw_only=True)
    budget: int = field(default=BUDGET, kw_only=True)
    target: str | None = field(default=None, kw_only=True)
    cache: bool = field(default=False, kw_only=True)
    trained_on: Iterable[OfSubject] = field(default=(), kw_only=True, repr=False)

    def __post_init__(self) -> None:
        verdict_fields(self.verdict_type)
        if not (isinstance(self.inputs, type) and issubclass(self.inputs, Input)):
            raise InputError(f"inputs={self.inputs!r} must be a type of input, such as Transcript")
        client.checked(self.lm)
        settled = {
            "name": self.name or default_name(self.verdict_type),
            "instructions": without_lone_surrogates(self.instructions or default_rubric(self.verdict_type)),
            "demos": tuple(self.demos),
            "fields": tuple(self.fields) or own_fields(self.inputs),
            "trained_on": tuple(dict.fromkeys(map(_subject, self.trained_on))),
        }
        for name, value in settled.items():
            object.__setattr__(self, name, value)
        for demo in self.demos:
            self.check_label(demo)
        self.signature, self.formatter  # noqa: B018  what cannot be made is an error of whoever makes the judge

    def check_label(self, example: Example[V]) -> None:
        """Refuse an example that this judge could not have judged, or whose label it could not have given."""
        if not (isinstance(example.input, self.inputs) and isinstance(example.expected, self.verdict_type)):
            wanted = f"a {self.inputs.__name__} labelled with a {self.verdict_type.__name__}"
            raise InputError(f"example {quoted(example.id)} must be {wanted}")

    # -- what it is ---------------------------------------------------------------------------------------------------

    @property
    def input_type(self) -> type[I]:
        """The type of input that it reads."""
        return self.inputs

    @cached_property
    def formatter(self) -> Formatter:
        """What makes texts of an input."""
        return Formatter(tuple(self.fields), self.budget, self.target)

    @cached_property
    def signature(self) -> type[dspy.Signature]:
        """Its dspy signature: texts in, the verdict's fields out, the rubric as instructions."""
        return judge_signature(self.verdict_type, self.inputs, self.fields, self.instructions)

    @cached_property
    def adapter(self) -> JudgeAdapter:
        """What makes messages of texts, and verdicts of answers."""
        return JudgeAdapter(self.verdict_type)

    @cached_property
    def version(self) -> str:
        """The model's name, and a digest of all that may change an answer."""
        asked = {
            "prompt": VERSION,
            "rubric": self.adapter.format_system_message(self.signature),
            "demos": self.adapter.format_demos(self.signature, self.shown_demos),
            "types": [self.verdict_type.__name__, self.inputs.__name__],
            "formatter": self.formatter.version,
            "model": self.lm.model,
            "settings": client.settings(self.lm),
            "cache": self.cache,
        }
        if self.trained_on:  # its verdicts say of which they are, so a journal must not give back ones from before
            asked["trained_on"] = sorted(json.dumps(subject) for subject in self.trained_on)
        spelled = json.dumps(asked, sort_keys=True, default=repr)
        return f"{safe_text(self.lm.model)}#{blake2b(spelled.encode(), digest_size=6).hexdigest()}"

    @cached_property
    def made_with(self) -> frozenset[Subject]:
        """The subjects that it was trained with, and those of its demonstrations."""
        return frozenset(map(_subject, (*self.trained_on, *self.demos)))

    def expected_tokens(self, given: I, /) -> int:
        """About how many tokens a call takes, for limits: those of the messages, and 300 for the answer."""
        return sum(tokens(message["content"]) for message in self.prompt(given)) + ANSWER_TOKENS

    def expected_cost(self, given: I, /) -> float | None:
        """About what a call costs in US dollars, by the client's own prices; None where it has none for the model.

        It counts 300 tokens for the answer: a model that reasons before it answers takes more.
        """
        return price(self.lm, asked=self.expected_tokens(given) - ANSWER_TOKENS, answered=ANSWER_TOKENS)

    def prompt(self, given: I, /) -> list[dict[str, Any]]:
        """The messages that the model gets for an input."""
        self._refuse_other(given)
        messages: list[dict[str, Any]] = self.adapter.format(self.signature, self.shown_demos, self.shown(given).texts)
        return messages

    def shown(self, given: I, /) -> Shown:
        """The texts of an input that the model is shown, by the signature's names, and whether they are all."""
        found = self.formatter(given)
        names = shown_names(self.verdict_type, self.fields)
        return Shown({names[field]: text for field, text in found.texts.items()}, found.truncated)

    @cached_property
    def shown_demos(self) -> list[dict[str, Any]]:
        """Its demonstrations as the model is shown them: texts, and the fields of their labels."""
        return [self.shown(demo.given()).texts | _label(demo) for demo in self.demos]  # type: ignore[arg-type]

    # -- judging ------------------------------------------------------------------------------------------------------

    async def evaluate(self, given: I, /) -> Result[V]:
        """The result for one input: one call of the model."""
        self._refuse_other(given)
        try:
            if (gone := given.unjudgeable()) is not None:
                return Skip(gone, self.name, self.version, given.about())
            shown = self.shown(given)
        except Exception as error:  # noqa: BLE001  an input that cannot be read is this input's failure
            return self._failure(given, client.words(error, self.lm), exception=error)
        line = Line(self.lm, cache=self.cache)
        await PACE.turn()
        start = perf_counter()
        answer: dict[str, Any] | Exception
        try:
            with dspy.context(send_stream=None, disable_history=False):
                answers = await self.adapter.acall(line.lm, {}, self.signature, self.shown_demos, shown.texts)
            answer = answers[0] if len(answers) == 1 else UnclearAnswerError(f"the model gave {len(answers)} answers")
        except Exception as error:  # noqa: BLE001  whatever the client raises is this input's failure
            answer = error
        latency, heard = perf_counter() - start, line.heard()
        wrong = _wrong(answer, heard, self.lm)
        if wrong is not None:
            exception = answer if isinstance(answer, Exception) else None
            return self._failure(given, wrong, exception=exception, latency=latency, cost=heard.cost)
        return Verdict(
            self.verdict_type.model_validate(answer, by_alias=False, by_name=True),
            self.name,
            self.version,
            given.about(),
            latency=latency,
            cost=heard.cost,
            flags=self._flags(given, shown),
        )

    def evaluate_sync(self, given: I, /) -> Result[V]:
        """As `evaluate`, from code that cannot await, in a notebook too; see `run_sync`."""
        return run_sync(self.evaluate(given))

    def _flags(self, given: I, shown: Shown) -> tuple[str, ...]:
        trained_on = given.about().subject in self.made_with
        return ((TRUNCATED,) if shown.truncated else ()) + ((TRAINED_ON,) if trained_on else ())

    def _refuse_other(self, given: object) -> None:
        if not isinstance(given, self.inputs):
            raise InputError(f"judge {self.name!r} reads {self.inputs.__name__}, not {type(given).__name__}")

    def _failure(self, given: I, error: str, **details: Any) -> Failure:
        return Failure(error, self.name, self.version, given.about(), **details)

    # -- saving -------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it as JSON: rubric, demonstrations, types by name, formatter, and the model without any key."""
        from evalr_dspy.saved import save

        save(self, path)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        lm: dspy.BaseLM | None = None,
        verdict_type: type[V] | None = None,
        inputs: type[I] | None = None,
    ) -> DspyJudge[I, V]:
        """Read what `save` wrote.

        Args:
            path: the file.
            lm: the model; by default the saved one, for which the client finds its key where it always does.
            verdict_type: needed where it is of no installed measure: a file does not say what code to import.
            inputs: needed where that type of input is not known here.

        Raises:
            InputError: the file is no saved judge, or a type is not known.
        """
        from evalr_dspy.saved import load

        return load(path, lm=lm, verdict_type=verdict_type, inputs=inputs)


def _subject(given: OfSubject) -> Subject:
    subject = subject_of(given)
    if subject is None:
        raise InputError(
            f"trained_on= names a {safe_text(type(given).__name__)} that has no id: pass a dataset, or subjects"
        )
    return subject


def _label(example: Example[Any]) -> dict[str, Any]:
    """The fields of a label, with the person's words as its reason where the label itself has none."""
    fields = dict(example.expected or ())
    if "reason" in fields and fields["reason"] is None:
        fields["reason"] = example.reason
    return fields


def _wrong(answer: dict[str, Any] | Exception, heard: Heard, lm: dspy.BaseLM) -> str | None:
    """Why an answer is no verdict."""
    if heard.cut_off:
        return "the model's answer was cut off at its limit of tokens: give the model a larger max_tokens"
    if heard.refused:
        return "the provider's filter kept the model's answer back"
    if isinstance(answer, UnreadAnswerError | UnclearAnswerError):
        return str(answer)
    if isinstance(answer, AdapterParseError):
        return "the model's answer is empty"
    return client.words(answer, lm) if isinstance(answer, Exception) else None

"""Tags of outcomes: judged by what was stored of a session's outcome, never by the session."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import dspy

from evalr.errors import InputError
from evalr.fields import verdict_fields
from evalr.input_fields import Name, Text
from evalr.inputs import About, Input
from evalr.measures import SessionOutcome
from evalr.verdicts import Result, V, Verdict
from evalr_dspy.judge import DspyJudge
from evalr_dspy.rubrics import tagging_rubric


class StoredOutcome(Input):
    """What was stored of a session's outcome: the fields of a `SessionOutcome`, and nothing of the session itself."""

    kind: ClassVar[str] = "outcome"

    session: Name | None = None
    success: bool
    corrections: int | None = None
    escalated: bool | None = None
    user_turns: int | None = None
    failure_type: Text | None = None
    failure_reason: Text | None = None

    def _parent(self) -> str | None:
        return self.session


def stored_outcomes(results: Iterable[Result[SessionOutcome]]) -> Iterator[StoredOutcome]:
    """The outcomes in results, each an input about the same session; failures, skips and hand-offs hold none."""
    for result in results:
        if isinstance(result, Verdict) and isinstance(result.value, SessionOutcome):
            about = result.about or About("transcript")
            yield StoredOutcome(
                id=about.id,
                user=about.user,
                session=about.session,
                arm=about.arm,
                at=about.at,
                read_at=about.read_at,
                weight=about.weight,
                attributes=about.attributes or {},
                **result.value.model_dump(include=set(SessionOutcome.model_fields)),
            )


def tagging_judge(
    verdict_type: type[V], *, lm: dspy.BaseLM, definition: str, **options: Any
) -> DspyJudge[StoredOutcome, V]:
    """Which of a team's own tags does a stored outcome have?

    Args:
        verdict_type: a type with one list of choices, such as `tags: list[Literal["billing", "login"]]`.
        lm: the language model.
        definition: what each tag means, in your own words.
        **options: others of `DspyJudge`.

    Raises:
        InputError: the type has no such field, or one that may be None, which is kept for what is not tagged yet.
    """
    _tags_field(verdict_type)
    own = {"instructions": tagging_rubric(definition)}
    return DspyJudge(verdict_type, inputs=StoredOutcome, lm=lm, **{**own, **options})


def tags_of(
    outcomes: Iterable[Result[SessionOutcome]], tagged: Iterable[Result[Any]]
) -> list[tuple[Result[SessionOutcome], list[Any] | None]]:
    """Each outcome with its tags: None where it is not tagged yet, an empty list where it is, and none matched.

    A tagging that failed is not tagged yet.

    Args:
        outcomes: the results of session outcome.
        tagged: the results of a tagging judge on them, as far as there are any.
    """
    found: dict[object, list[Any]] = {}
    for result in tagged:
        if isinstance(result, Verdict) and result.about is not None and result.about.id is not None:
            found[_session(result.about)] = list(getattr(result.value, _tags_field(type(result.value))))
    return [(result, None if result.about is None else found.get(_session(result.about))) for result in outcomes]


def _session(about: About) -> tuple[str | None, str | None, str | None]:
    return about.user, about.session, about.id


def _tags_field(verdict_type: type[Any]) -> str:
    lists = [field for field in verdict_fields(verdict_type) if field.kind == "choices"]
    if len(lists) != 1 or lists[0].optional:
        raise InputError(
            f'{verdict_type.__name__} needs one list of choices that is never None, such as list[Literal["billing"]]: '
            "None is what is not tagged yet"
        )
    return lists[0].name

"""What the learnings of one response did together, as one row: the whole account behind the folded summaries."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from json import dumps
from typing import Any, Literal

from pydantic import BaseModel, Field, model_validator

from evalr.errors import MixedVersionsError
from evalr.inputs import About
from evalr.measures.learning import LearningImpact, per_response
from evalr.summaries.keys import UnitOf, unit_reader
from evalr.verdicts import Duplicates, Result, Verdict, about_of, one_per_subject

FoldedImpactName = Literal["positive", "negative", "mixed", "neutral"]


class FoldedImpact(BaseModel):
    """What several learnings did together for one response, or one learning for several responses.

    It is relevant if any is. The impact is positive where any helped and none hurt, negative where any hurt and none
    helped, mixed where some did either, and neutral where none did. It is unknown (None) while none is judged.
    """

    relevant: bool | None = Field(default=None, description="Any of them applied")
    impact: FoldedImpactName | None = Field(default=None, description="What they did together")
    uses: int = Field(ge=1, description="How many there are, judged or not")
    judged: int = Field(ge=0, description="Those whose impact is known")

    @model_validator(mode="after")
    def _what_is_judged_is_there(self) -> FoldedImpact:
        if self.judged > self.uses:
            raise ValueError("no more are judged than there are")
        if (self.impact is None) != (self.judged == 0):
            raise ValueError("the impact is unknown exactly where none is judged")
        return self


def fold_impacts(
    results: Iterable[Result[LearningImpact]], *, per: UnitOf = per_response, duplicates: Duplicates = "error"
) -> list[Verdict[FoldedImpact]]:
    """One row for each response, or for each learning, in the order in which they first come up.

    The rows say what `response_net_impact` and its like count. A failure or a skip is a use that is not judged.

    Args:
        results: verdicts on `LearningUse`s, failures and skips.
        per: `per_response` or `per_learning`.
        duplicates: what to do with a second result of one subject: "error", "first" or "latest".

    Returns:
        Verdicts about what `per` says, with the evaluator and version of those that they are made of, and the earliest
        of their times. User, session and arm are there where all have the same.

    Raises:
        InputError: a result is not about the use of a learning.
        MixedVersionsError: verdicts of one row are of several evaluators or versions.
    """
    unit_of = unit_reader(per)
    units: dict[Hashable, list[Result[LearningImpact]]] = {}
    for result in one_per_subject(results, duplicates=duplicates):
        units.setdefault(unit_of(about_of(result) or About("value"), result), []).append(result)
    return [_folded(per.noun, key, found) for key, found in units.items()]


def _folded(noun: str, key: Any, results: Sequence[Result[LearningImpact]]) -> Verdict[FoldedImpact]:
    verdicts = [result for result in results if isinstance(result, Verdict)]
    impacts = [verdict.value.impact for verdict in verdicts if verdict.value.impact is not None]
    relevant = [verdict.value.relevant for verdict in verdicts if verdict.value.relevant is not None]
    value = FoldedImpact(
        relevant=any(relevant) if relevant else None,
        impact=_together(impacts),
        uses=len(results),
        judged=len(impacts),
    )
    evaluator, version = _given_by(verdicts or results)
    flags = tuple(dict.fromkeys(flag for verdict in verdicts for flag in verdict.flags))
    about = _about(noun, str(key[-1]), [found for result in results if (found := about_of(result)) is not None])
    return Verdict(value, evaluator, version, about, flags=flags)


def _together(impacts: Sequence[str]) -> FoldedImpactName | None:
    helped, hurt = "positive" in impacts, "negative" in impacts
    if not impacts:
        return None
    if helped and hurt:
        return "mixed"
    return "positive" if helped else "negative" if hurt else "neutral"


def _given_by(results: Sequence[Result[Any]]) -> tuple[str, str]:
    found = {(result.evaluator or "learning", result.version or "1") for result in results}
    if len(found) > 1:
        names = dumps(sorted(f"{evaluator}@{version}" for evaluator, version in found))
        raise MixedVersionsError(
            f"fold_impacts would pool verdicts of {names}: fold the results of one evaluator and version at a time"
        )
    return found.pop()


def _about(noun: str, name: str, abouts: Sequence[About]) -> About:
    def shared(values: set[Any]) -> Any:
        return values.pop() if len(values) == 1 else None

    return About(
        noun,
        name,
        shared({about.user for about in abouts}),
        shared({about.session for about in abouts}),
        min((about.at for about in abouts if about.at is not None), default=None),
        arm=shared({about.arm for about in abouts}),
    )

"""What stands beside an impact on a page alone: texts, and the same sessions split in other ways."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from evalr_reflexio.answers.arm_answer import ArmsAnswer
from evalr_reflexio.answers.impact import Impact
from evalr_reflexio.config import Experiment
from evalr_reflexio.conversations import messages_before
from evalr_reflexio.rows import Reference
from evalr_reflexio.splits import Splits
from evalr_reflexio.store import Store

LONGEST_KEPT = 1_500
"""Characters of any one text: a page shows no more."""

Key = tuple[str | None, str, int]
"""(user, session, interaction)."""


class AnswerTexts(NamedTuple):
    """One answer with what it answers."""

    message: str
    served: str
    shadow: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What a page shows that an impact does not hold.

    Attributes:
        answers: the texts of the answers that the impact lists.
        turns: the texts of the turns that diagnoses cite, by (session, interaction).
        learnings: the texts of the learnings that it lists.
        sources: the same sessions by request source; None where there is one at most.
        experiments: the same sessions in the arms of other experiments than that of the impact.
        more_experiments: how many others there are.
    """

    answers: Mapping[Key, AnswerTexts] = field(default_factory=dict)
    turns: Mapping[tuple[str, int], str] = field(default_factory=dict)
    learnings: Mapping[Reference, str] = field(default_factory=dict)
    sources: ArmsAnswer | None = None
    experiments: Mapping[Experiment, ArmsAnswer] = field(default_factory=dict)
    more_experiments: int = 0


def beside_of(store: Store, impact: Impact, splits: Splits) -> Beside:
    """Other splits, and the texts of what an impact lists: of its newest answers and learnings, and of no others."""
    answers: dict[Key, AnswerTexts] = {}
    turns: dict[tuple[str, int], str] = {}
    wanted, cited, learnings = _wanted(impact)
    for session in dict.fromkeys(key[1] for key in wanted):
        for record in store.sessions_of_id(session, store.account()):
            for row, message in messages_before(record):
                key = (record.user or None, session, row.interaction_id)
                if key in wanted:
                    answers[key] = AnswerTexts(*map(_cut, (message or "", row.content, row.shadow_content)))
                if (session, row.interaction_id) in cited:
                    turns[session, row.interaction_id] = f"{row.role}: {_cut(row.content)}"
    texts = {name: _cut(text) for name, text in store.learning_texts(learnings).items()}
    sources, experiments = splits.answers()
    return Beside(
        answers=answers,
        turns=turns,
        learnings=texts,
        sources=sources,
        experiments=experiments,
        more_experiments=splits.more,
    )


def _wanted(impact: Impact) -> tuple[set[Key], set[tuple[str, int]], set[Reference]]:
    """The answers, turns and learnings that are listed."""
    shadow, judged = impact.shadow, impact.learnings
    compared = () if shadow is None else (*shadow.recent, *shadow.disagreements)
    found: set[Key] = {(each.user, each.session, each.interaction) for each in compared if each.interaction is not None}
    cited: set[tuple[str, int]] = set()
    learnings: set[Reference] = set()
    if judged is not None:
        learnings |= {Reference(each.kind, each.id) for each in _records(judged.harming, judged.helping, judged.marked)}
        for response in judged.recent:
            found.add((response.user, response.session, response.interaction))
            for row in response.learnings:
                learnings.add(Reference(row.kind, row.learning))
                cited |= {(response.session, number) for number in row.evidence}
    return found, cited, learnings


def _records(*lists: Iterable[Any]) -> Iterable[Any]:
    return (each for records in lists for each in records)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_KEPT else text[: LONGEST_KEPT - 1] + "…"

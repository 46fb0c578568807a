"""Learnings: shares of responses that they helped or hurt, and each response with what it was given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evalr.estimates.estimate import Estimate
from evalr.estimates.lift import Lift
from evalr.estimates.stating import method_sentence, number_cell
from evalr.estimates.words import count_words
from evalr.logs.blocks import Block, Card, Cards, Cell, Notice, Numbers, Table
from evalr_reflexio.answers.associations import Association
from evalr_reflexio.answers.learning_sums import ImpactEstimates
from evalr_reflexio.answers.learnings import LearningAnswer, LearningRecord
from evalr_reflexio.answers.responses import JudgedResponse
from evalr_reflexio.blocks.beside import Beside
from evalr_reflexio.blocks.words import LONGEST_NAME, counts_words, excerpt, moment, of_user, shortened
from evalr_reflexio.rows import LearningRow, Reference

MOST_CHARACTERS = 150_000
"""Of the texts of all responses together: later ones are counted, and left out."""
MOST_LEARNINGS = 10
"""That a response opens to."""
LISTED = 10
_GONE = "its text is not in the log"
_TOGETHER = {"positive": "helped", "negative": "hurt", "mixed": "helped and hurt", "neutral": "neither"}
_RELEVANT = {True: "relevant", False: "not relevant", None: "relevance not known"}
_NO_CAUSE = (
    "Judges' verdicts help to diagnose retrieval; by themselves they do not show that Reflexio improves outcomes. "
    "For that, compare arms that were assigned at random."
)


def learning_blocks(learnings: LearningAnswer, beside: Beside) -> Iterator[Block]:
    """The section on learnings."""
    yield Notice(text=_NO_CAUSE)
    yield Numbers(
        title="responses, each counted once",
        rows=tuple(_of_responses(learnings.responses)),
        footnote="A response helped where any of its learnings did and none hurt; it is relevant where any applied."
        + _left_out(learnings),
    )
    yield Numbers(
        title="learnings one by one",
        rows=tuple(_one_by_one(learnings)),
        footnote=f"{learnings.judged:,} of {count_words(learnings.attached, 'learning')} given to answers have a "
        "verdict. Cited are those that an answer says it used.",
    )
    cards = list(_fitting(learnings.recent, beside))
    if cards:
        yield Cards(
            title="responses, newest first: open one to its learnings",
            cards=tuple(cards),
            total=learnings.recent_of,
        )
    if learnings.diagnoses:
        yield Table(
            title="negative verdicts by diagnosis",
            columns=("diagnosis", "verdicts"),
            numbers=("verdicts",),
            rows=tuple((name, f"{count:,}") for name, count in learnings.diagnoses.items()),
            footnote="A diagnosis counts where it cites interactions, on complete evidence, of a playbook whose digest "
            "is recorded; the others are named by what they lack.",
        )
    for title, records in (
        ("playbooks to be revised", learnings.marked),
        ("learnings that hurt most", learnings.harming),
        ("learnings that helped most", learnings.helping),
    ):
        if records:
            yield _table(title, records, beside)
    if learnings.cited_rules:
        yield _attribution(learnings.cited_rules)


def _of_responses(found: ImpactEstimates) -> Iterator[tuple[str, Estimate | Lift]]:
    yield "helped", found.helped
    yield "hurt", found.hurt
    if found.mixed is not None:
        yield "helped and hurt", found.mixed
    yield "with a relevant learning", found.relevant
    yield "net: helped less hurt", found.net


def _one_by_one(learnings: LearningAnswer) -> Iterator[tuple[str, Estimate | Lift]]:
    found = learnings.verdicts
    yield "helped", found.helped
    yield "hurt", found.hurt
    yield "relevant", found.relevant
    for use, each in learnings.by_use.items():
        yield f"helped, {use}", each.helped


def _left_out(learnings: LearningAnswer) -> str:
    return f" Left out: {counts_words(learnings.left_out)}." if learnings.left_out else ""


# Each response


def _fitting(responses: Sequence[JudgedResponse], beside: Beside) -> Iterator[Card]:
    room = MOST_CHARACTERS
    for each in responses:
        card = _response(each, beside)
        room -= sum(len(text) for one in (card, *card.inside) for _, text in one.texts)
        if room < 0:
            return
        yield card


def _response(each: JudgedResponse, beside: Beside) -> Card:
    texts = beside.answers.get((each.user, each.session, each.interaction))
    together = "impact not known" if each.impact is None else _TOGETHER[each.impact]
    told = zip(each.learnings, each.uses, strict=True)
    inside = [_learning(row, use, each.session, beside) for row, use in list(told)[:MOST_LEARNINGS]]
    hidden = len(each.learnings) - len(inside)
    more = (("and", f"{count_words(hidden, 'more learning')}; --json has them all"),) if hidden else ()
    message, answer = ("", "") if texts is None else (texts.message, texts.served)
    return Card(
        title=f"{moment(each.at)} · {excerpt(message or _GONE)}",
        chips=(together, _RELEVANT[each.relevant], count_words(len(each.learnings), "learning")),
        texts=(
            ("answer", f"{each.interaction} in {of_user(each.session, each.user)}"),
            ("message", shortened(message) or _GONE),
            ("response", shortened(answer) or _GONE),
            *more,
        ),
        inside=tuple(inside),
    )


def _learning(row: LearningRow, use: str, session: str, beside: Beside) -> Card:
    text = beside.learnings.get(Reference(row.kind, row.learning))
    impact = "impact not known" if row.impact is None else _TOGETHER[row.impact]
    texts = [
        ("learning", shortened(text or "its text is no longer in the log", 400)),
        ("why relevant or not", shortened(row.relevance_reason or "no reason given")),
        ("why it helped or not", shortened(row.impact_reason or "no reason given")),
    ]
    if row.diagnosis is not None:
        why_not = "" if row.diagnosis_lacks is None else f" (does not count: {row.diagnosis_lacks})"
        texts.append(("diagnosis", f"{row.diagnosis}{why_not}: {shortened(row.diagnosis_reason or 'no reason given')}"))
    if row.evidence:
        cited = (_turn(number, session, beside) for number in row.evidence[:MOST_LEARNINGS])
        texts.append(("cited interactions", "\n".join(cited)))
    return Card(
        title=f"{row.kind.replace('_', ' ')} {shortened(row.learning, LONGEST_NAME)}",
        chips=(impact, _RELEVANT[row.relevant], use, *([] if row.diagnosis is None else [row.diagnosis])),
        texts=tuple(texts),
    )


def _turn(number: int, session: str, beside: Beside) -> str:
    text = beside.turns.get((session, number))
    return f"{number}" if text is None else f"{number}, {shortened(text, 160)}"


# Each learning


def _table(title: str, records: Sequence[LearningRecord], beside: Beside) -> Table:
    shown = records[:LISTED]
    texts = [beside.learnings.get(Reference(each.kind, each.id), "") for each in shown]
    there = ("text",) if any(texts) else ()
    return Table(
        title=title,
        columns=("learning", *there, "helped", "neither", "hurt", "sessions", "diagnoses", "success with it"),
        numbers=("helped", "neither", "hurt", "sessions"),
        rows=tuple(
            (_name(each), *(shortened(text, 160) for _ in there), *_record(each))
            for each, text in zip(shown, texts, strict=True)
        ),
        footnote=_first(records) + _TABLE_NOTES[title] + _ASSOCIATED,
    )


def _first(records: Sequence[LearningRecord]) -> str:
    """How many are shown, where there are more: lists are cut before, so that nobody knows of how many."""
    return f"The first {LISTED}; --json has more. " if len(records) > LISTED else ""


def _name(each: LearningRecord) -> str:
    return f"{each.kind.replace('_', ' ')} {shortened(each.id, LONGEST_NAME)}"


_TABLE_NOTES = {
    "playbooks to be revised": "At least three sessions that they hurt, which no diagnosis lays to something else, and "
    "two that they helped. ",
    "learnings that hurt most": "By verdicts that say so. ",
    "learnings that helped most": "Of those that never hurt, by verdicts that say so. ",
}
_ASSOCIATED = (
    "Success with it less success without it, in points with its interval, clustered by user, is an association: who "
    "is given a learning asks for other things."
)


def _record(each: LearningRecord) -> tuple[str | Cell, ...]:
    counts = (each.positive, each.neutral, each.negative, each.sessions)
    return (*(f"{count:,}" for count in counts), counts_words(each.diagnoses), _associated(each.association))


def _associated(found: Association | None) -> str | Cell:
    if found is None or found.difference.value is None:
        return ""
    with_it, without_it = (
        f"{number_cell(each)} of {each.counted_words()}" for each in (found.with_it, found.without_it)
    )
    of = f"with it {with_it}; without it {without_it}; among {found.among}"
    return Cell(number_cell(found.difference), of, method_sentence(found.difference))


def _attribution(records: Sequence[LearningRecord]) -> Table:
    return Table(
        title="rule attribution: sessions that cite a learning",
        columns=("learning", "succeeded", "failed", "net"),
        numbers=("succeeded", "failed", "net"),
        rows=tuple(
            (
                _name(each),
                f"{each.successes_with:,}",
                f"{each.failures_with:,}",
                f"{each.net_sessions:+,}",
            )
            for each in records[:LISTED]
        ),
        footnote=_first(records)
        + "Judged sessions in which an answer says that it used it: an association, no effect.",
    )

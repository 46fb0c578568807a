"""Learnings: which of them help and which harm, by the judge's word and by what became of sessions with them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from typing import Any

from evalr.estimates.estimate import number_line
from evalr.estimates.shown import Fielded
from evalr.estimates.words import count_words
from evalr.quoting import safe_text
from evalr.tallies.numbering import Numbering
from evalr_reflexio.answers.asked import Asked
from evalr_reflexio.answers.associations import Association, Everyone
from evalr_reflexio.answers.learning_sums import ImpactEstimates, ImpactSums, folded
from evalr_reflexio.answers.newest import Newest
from evalr_reflexio.answers.responses import JudgedResponse
from evalr_reflexio.conversations import CITED, SUPPLIED, cited_of, is_cited
from evalr_reflexio.rows import InteractionRow, LearningRow, Reference, SessionRecord
from evalr_reflexio.speaking import Bearer
from evalr_reflexio.stored import LEARNING_JUDGE, UNVERSIONED

NO_ANSWER = "of a whole session, and no answer"
EARLIER = "judged again"
NOT_TOLD = "not told"
"""The use of a learning where answers do not say what they cite, or the answer is gone."""

_NOT_ITS_FAULT = frozenset(("application_failure", "external_failure", "no_issue"))
_POSITIVE, _NEGATIVE, _EXCUSED = 1, 2, 4
"""What verdicts say of a learning in a session; excused is a negative one that a diagnosis lays to something else."""
PLAYBOOKS = frozenset(("user_playbook", "agent_playbook"))
LEAST_NEGATIVE, LEAST_POSITIVE = 3, 2


def diagnosis_of(row: LearningRow) -> str | None:
    """The diagnosis of a verdict, where it counts, and otherwise what it lacks."""
    return row.diagnosis_lacks or row.diagnosis


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningRecord(Fielded):
    """One learning: what the judge says of it, and what became of sessions with it.

    Attributes:
        kind: "profile", "user_playbook", "agent_playbook", or "playbook" where only older citations name it.
        id: its id.
        sessions: in how many sessions an answer was given it.
        uses: how often it was given to an answer.
        cited: how often the answer also cites it.
        judged: verdicts on it.
        relevant, irrelevant: verdicts that say so; the others do not know.
        positive, neutral, negative: verdicts by impact; the others do not know.
        positive_sessions: sessions with a positive verdict.
        negative_sessions: sessions with a negative one.
        qualifying_sessions: those of the negative ones that no diagnosis that counts lays to something else.
        diagnoses: the negative verdicts by diagnosis, or by why theirs does not count.
        marked: a playbook with at least three qualifying negative sessions and two positive ones.
        successes_with: sessions that cite it and succeeded. Rule attribution is an association, too.
        failures_with: sessions that cite it and failed.
        association: success with and without it; None where no session with it was judged.
        text: how what it says begins; None where the log does not have it any more.
    """

    kind: str
    id: str
    sessions: int
    uses: int
    cited: int
    judged: int
    relevant: int
    irrelevant: int
    positive: int
    neutral: int
    negative: int
    positive_sessions: int
    negative_sessions: int
    qualifying_sessions: int
    diagnoses: Mapping[str, int]
    marked: bool
    successes_with: int
    failures_with: int
    association: Association | None
    text: str | None = None

    @property
    def net_sessions(self) -> int:
        """Rule attribution: sessions that cite it and succeeded, less those that failed."""
        return self.successes_with - self.failures_with

    def __str__(self) -> str:
        """One line: `user playbook 4: 2 helped, 0 neutral, 5 hurt in 9 sessions · 5 no diagnosis`."""
        verdicts = f"{self.positive:,} helped, {self.neutral:,} neutral, {self.negative:,} hurt"
        parts = [f"{self.kind.replace('_', ' ')} {self.id}: {verdicts} in {count_words(self.sessions, 'session')}"]
        parts += [f"{count:,} {why}" for why, count in self.diagnoses.items()]
        if self.association is not None:
            parts.append(number_line("success with it: association", self.association.difference))
        return safe_text(" · ".join([*parts, *(["marked"] if self.marked else [])]), longest=400)

    def to_dict(self) -> dict[str, Any]:
        """Everything, in plain types that JSON takes."""
        plain = {name: getattr(self, name) for name in self.__slots__}
        association = None if self.association is None else self.association.to_dict()
        return plain | {
            "diagnoses": dict(self.diagnoses),
            "net_sessions": self.net_sessions,
            "association": association,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningAnswer(Fielded):
    """What learnings do.

    Attributes:
        verdicts: of learnings one by one.
        responses: of whole responses.
        by_use: of learnings by whether the answer cites them: "cited", "supplied only", or "not told".
        responses_by_use: of responses, each by its learnings of one use alone.
        attached: learnings that were given to answers, each answer's once.
        judged: those of them with a verdict.
        diagnoses: the negative verdicts by diagnosis, or by why theirs does not count.
        harming: learnings with a negative verdict, most first.
        helping: learnings with a positive verdict and no negative one, most first.
        cited_rules: learnings by `net_sessions`, most first.
        given: learnings by the sessions that they were given in, most first.
        marked: playbooks with at least three qualifying negative and two positive sessions.
        recent: the newest answers with a verdict on a learning, newest first.
        recent_of: how many there are, of which `recent` are the newest.
        known: how many different learnings there are; each list holds the first few.
        left_out: verdicts that are in no number, by reason.
    """

    verdicts: ImpactEstimates
    responses: ImpactEstimates
    by_use: Mapping[str, ImpactEstimates]
    responses_by_use: Mapping[str, ImpactEstimates]
    attached: int
    judged: int
    diagnoses: Mapping[str, int]
    harming: tuple[LearningRecord, ...]
    helping: tuple[LearningRecord, ...]
    cited_rules: tuple[LearningRecord, ...]
    given: tuple[LearningRecord, ...]
    marked: tuple[LearningRecord, ...]
    recent: tuple[JudgedResponse, ...]
    recent_of: int
    known: int
    left_out: Mapping[str, int]

    def references(self) -> set[Reference]:
        """The learnings that are listed."""
        return {Reference(each.kind, each.id) for name in _LISTS for each in getattr(self, name)}

    def with_texts(self, texts: Mapping[Reference, str]) -> LearningAnswer:
        """The same, with how the texts of what is listed begin."""
        begun: dict[str, Any] = {name: tuple(_begun(each, texts) for each in getattr(self, name)) for name in _LISTS}
        return replace(self, **begun)

    def to_dict(self) -> dict[str, Any]:
        """Everything, in plain types that JSON takes."""
        return {
            "verdicts": self.verdicts.to_dict(),
            "responses": self.responses.to_dict(),
            "by_use": {use: each.to_dict() for use, each in self.by_use.items()},
            "responses_by_use": {use: each.to_dict() for use, each in self.responses_by_use.items()},
            "attached": self.attached,
            "judged": self.judged,
            "diagnoses": dict(self.diagnoses),
            **{name: [each.to_dict() for each in getattr(self, name)] for name in _LISTS},
            "recent": [each.to_dict() for each in self.recent],
            "recent_of": self.recent_of,
            "known": self.known,
            "left_out": dict(self.left_out),
        }


_LISTS = ("harming", "helping", "cited_rules", "given", "marked")
_BEGINNING = 160
"""Characters of what a learning says."""


def _begun(each: LearningRecord, texts: Mapping[Reference, str]) -> LearningRecord:
    text = texts.get(Reference(each.kind, each.id))
    return each if text is None else replace(each, text=text[:_BEGINNING])


class _One:
    """What is summed up of one learning."""

    __slots__ = (
        "by_user", "cited", "diagnoses", "failures_with", "in_no_arm", "irrelevant", "judged", "negative",
        "negative_sessions", "neutral", "positive", "positive_sessions", "qualifying_sessions", "relevant", "sessions",
        "successes_with", "uses",
    )  # fmt: skip

    _COUNTS = tuple(name for name in __slots__ if name not in ("by_user", "diagnoses", "in_no_arm"))

    def __init__(self) -> None:
        for name in self._COUNTS:
            setattr(self, name, 0)
        self.diagnoses: Counter[str] = Counter()
        self.by_user: dict[int, tuple[int, int]] = {}
        """(successes, sessions) of judged sessions with it, by the number of the user."""
        self.in_no_arm: dict[int, tuple[int, int]] = {}
        """The same of sessions in no arm, where there are arms."""

    def count(self, row: LearningRow, diagnosis: str | None) -> None:
        """Count a verdict."""
        self.judged += 1
        if row.relevant is not None:
            if row.relevant:
                self.relevant += 1
            else:
                self.irrelevant += 1
        if row.impact == "positive":
            self.positive += 1
        elif row.impact == "neutral":
            self.neutral += 1
        elif diagnosis is not None:
            self.negative += 1
            self.diagnoses[diagnosis] += 1

    def ended(self, user: int, success: bool, *, in_no_arm: bool) -> None:
        """Count a judged session that it was given in."""
        by_user = self.in_no_arm if in_no_arm else self.by_user
        successes, sessions = by_user.get(user, (0, 0))
        by_user[user] = (successes + success, sessions + 1)

    def merge(self, other: _One, numbers: Any) -> None:
        """Count what another pass has counted, of other sessions."""
        for name in self._COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.diagnoses.update(other.diagnoses)
        for ours, theirs in ((self.by_user, other.by_user), (self.in_no_arm, other.in_no_arm)):
            for user, (successes, sessions) in theirs.items():
                mine = ours.get(numbers[user], (0, 0))
                ours[numbers[user]] = (mine[0] + successes, mine[1] + sessions)

    # what `__init__` sets, for those who read types
    uses: int
    cited: int
    sessions: int
    judged: int
    relevant: int
    irrelevant: int
    positive: int
    neutral: int
    negative: int
    positive_sessions: int
    negative_sessions: int
    qualifying_sessions: int
    successes_with: int
    failures_with: int


_Judged = tuple[str, str, datetime, int, list[tuple[LearningRow, str]]]
"""What a judged response is made of, which most never are."""


def _response(
    user: str, session: str, at: datetime, interaction: int, judged: list[tuple[LearningRow, str]]
) -> JudgedResponse:
    return JudgedResponse(
        interaction=interaction,
        user=user or None,
        session=session,
        at=at,
        learnings=tuple(row for row, _ in judged),
        uses=tuple(use for _, use in judged),
    )


class LearningSums:
    """Learnings and the verdicts on them, as one pass sums them up."""

    def __init__(self, numbering: Numbering, newest: int = 0) -> None:
        self.numbering = numbering
        self.newest: Newest[_Judged] = Newest(newest)
        self.by_use: dict[str, ImpactSums] = {}
        self.responses_by_use: dict[str, ImpactSums] = {}
        self.responses = ImpactSums(numbering)
        # Most answers have one verdict, which is a verdict and a response at once, of one use: it is counted once.
        self.alone_by_use: dict[str, ImpactSums] = {}
        self.attached = self.judged = 0
        self.diagnoses: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()
        self.learnings: defaultdict[Reference, _One] = defaultdict(_One)

    def give(self, given: Collection[Reference], cited: Collection[Reference]) -> None:
        """Count the learnings that one answer was given, and which of them it cites."""
        self.attached += len(given)
        for learning in given:
            one = self.learnings[learning]
            one.uses += 1
            if cited and is_cited(learning, cited):
                one.cited += 1

    def end(
        self,
        given: Collection[Reference],
        cited: Collection[Reference],
        success: bool | None,
        user: int,
        *,
        could_be_given: bool,
        in_no_arm: bool = False,
    ) -> None:
        """Count how a session ended.

        Args:
            given: the learnings that any of its answers was given.
            cited: those that any of them cites.
            success: what its judge says; None where it has no verdict that counts.
            user: the number of its user.
            could_be_given: whether it is in an arm whose answers have learnings.
            in_no_arm: whether there are arms, and it is in none.
        """
        learnings = self.learnings
        for learning in given:
            one = learnings[learning]
            one.sessions += 1
            if success is not None and (could_be_given or in_no_arm):
                one.ended(user, success, in_no_arm=in_no_arm)
        if success is None:
            return
        for learning in cited:
            if success:
                learnings[learning].successes_with += 1
            else:
                learnings[learning].failures_with += 1

    def see(self, record: SessionRecord, turns: Mapping[int, InteractionRow | Bearer], asked: Asked) -> None:
        """Count the verdicts of one session."""
        cluster = self.numbering.number(record.user or (record.session,))
        grading = record.grading
        version = UNVERSIONED if grading is None or grading.version is None else grading.version
        given_by, partial = (LEARNING_JUDGE, version), grading is not None and grading.status != "complete"
        by_response: dict[int, list[tuple[LearningRow, str]]] = {}
        signs: dict[Reference, int] = {}
        for interaction, learning, row in self._counting(record.learning_verdicts, asked):
            turn = turns.get(interaction)
            use = _use(None if turn is None else cited_of(turn, learning))
            by_response.setdefault(interaction, []).append((row, use))
            self.judged += turn is not None and learning in (turn.learnings or ())
            diagnosis = diagnosis_of(row) if row.impact == "negative" else None
            self.learnings[learning].count(row, diagnosis)
            if diagnosis is not None:
                self.diagnoses[diagnosis] += 1
                signs[learning] = signs.get(learning, 0) | (_EXCUSED if diagnosis in _NOT_ITS_FAULT else _NEGATIVE)
            elif row.impact == "positive":
                signs[learning] = signs.get(learning, 0) | _POSITIVE
        for learning, found in signs.items():
            one = self.learnings[learning]
            one.positive_sessions += bool(found & _POSITIVE)
            one.negative_sessions += bool(found & (_NEGATIVE | _EXCUSED))
            one.qualifying_sessions += bool(found & _NEGATIVE)
        for interaction, judged in by_response.items():
            at = judged[0][0].interaction_at or judged[0][0].at
            self.newest.add(at, interaction, (record.user, record.session, at, interaction, judged))
            if len(judged) == 1:
                ((row, use),) = judged
                of_use = self._sums(self.alone_by_use, use)
                of_use.add(row.relevant, row.impact, cluster, given_by, partial=partial)
                continue
            for row, use in judged:
                self._sums(self.by_use, use).add(row.relevant, row.impact, cluster, given_by, partial=partial)
            self.responses.add(*folded([row for row, _ in judged]), cluster, given_by, partial=partial)
            for use in dict.fromkeys(use for _, use in judged):
                of_use = self._sums(self.responses_by_use, use)
                of_use.add(*folded([row for row, each in judged if each == use]), cluster, given_by, partial=partial)

    def _counting(self, rows: list[LearningRow], asked: Asked) -> Iterator[tuple[int, Reference, LearningRow]]:
        """The verdicts that count, each with its answer and its learning: of one learning for one answer, the last."""
        last = {(row.interaction, row.kind, row.learning): row.result_id for row in rows} if len(rows) > 1 else {}
        for row in rows:
            interaction = row.interaction
            if not asked.takes_in(row.interaction_at or row.at):
                continue
            if interaction is None:
                self.left_out[NO_ANSWER] += 1
            elif last and last[interaction, row.kind, row.learning] != row.result_id:
                self.left_out[EARLIER] += 1
            else:
                yield interaction, Reference(row.kind, row.learning), row

    def _sums(self, sums: dict[str, ImpactSums], use: str) -> ImpactSums:
        found = sums.get(use)
        if found is None:
            found = sums[use] = ImpactSums(self.numbering)
        return found

    def merge(self, other: LearningSums) -> None:
        """Count what another pass has counted, of other sessions."""
        for mine, theirs in (
            (self.by_use, other.by_use),
            (self.responses_by_use, other.responses_by_use),
            (self.alone_by_use, other.alone_by_use),
        ):
            for use, sums in theirs.items():
                self._sums(mine, use).merge(sums)
        self.responses.merge(other.responses)
        self.newest.merge(other.newest)
        self.attached += other.attached
        self.judged += other.judged
        self.diagnoses.update(other.diagnoses)
        self.left_out.update(other.left_out)
        numbers = self.numbering.of(other.numbering)
        for learning, one in other.learnings.items():
            self.learnings[learning].merge(one, numbers)

    def _with_alone(self, sums: Mapping[str, ImpactSums]) -> dict[str, ImpactSums]:
        """Sums by use with those of answers that have one verdict."""
        parts = [sums, self.alone_by_use]
        uses = dict.fromkeys(use for part in parts for use in part)
        return {use: self._together(part[use] for part in parts if use in part) for use in uses}

    def _together(self, sums: Iterable[ImpactSums]) -> ImpactSums:
        whole = ImpactSums(self.numbering)
        for each in sums:
            whole.merge(each)
        return whole

    # -- what they come to --------------------------------------------------------------------------------------------

    def answer(
        self,
        asked: Asked,
        ended: tuple[Sequence[int], Sequence[int]],
        judge: tuple[str, str],
        *,
        among: str,
        in_no_arm: bool = False,
    ) -> LearningAnswer:
        """What they come to.

        Args:
            asked: the level, and how many each list holds.
            ended: by the number of the user, the successes and the number of the judged sessions in which learnings
                could have been given.
            judge: of sessions.
            among: what the sessions are called in which learnings could have been given.
            in_no_arm: whether those are the ones in no arm, as no session of the period is in any.
        """
        by_use = self._with_alone(self.by_use)
        whole = self._together(by_use.values())
        responses = self._together([self.responses, *self.alone_by_use.values()])
        every = Everyone(ended, self.numbering, judge, asked, among)

        @cache  # since many are in several lists
        def record(name: Reference) -> LearningRecord:
            one = self.learnings[name]
            return _record(name, one, one.in_no_arm if in_no_arm else one.by_user, every)

        def first(order: Any, wanted: Any) -> tuple[LearningRecord, ...]:
            chosen = [item for item in self.learnings.items() if wanted(*item)]
            chosen.sort(key=lambda item: (*order(item[1]), item[0]))
            return tuple(record(name) for name, _ in chosen[: asked.listed])

        return LearningAnswer(
            verdicts=whole.estimates(asked.level, of_responses=False),
            responses=responses.estimates(asked.level, of_responses=True),
            by_use=_estimates(by_use, asked.level, of_responses=False),
            responses_by_use=_estimates(self._with_alone(self.responses_by_use), asked.level, of_responses=True),
            attached=self.attached,
            judged=self.judged,
            diagnoses=dict(self.diagnoses.most_common()),
            harming=first(lambda one: (-one.negative, one.positive), lambda _, one: one.negative),
            helping=first(lambda one: (-one.positive,), lambda _, one: one.positive and not one.negative),
            cited_rules=first(
                lambda one: (one.failures_with - one.successes_with, -one.failures_with - one.successes_with),
                lambda _, one: one.failures_with or one.successes_with,
            ),
            given=first(lambda one: (-one.sessions,), lambda _, one: one.sessions),
            marked=first(lambda one: (-one.qualifying_sessions,), _is_marked),
            recent=tuple(_response(*each) for each in self.newest),
            recent_of=self.newest.seen,
            known=len(self.learnings),
            left_out=dict(self.left_out),
        )


def _use(cited: bool | None) -> str:
    return NOT_TOLD if cited is None else CITED if cited else SUPPLIED


def _estimates(sums: Mapping[str, ImpactSums], level: float, *, of_responses: bool) -> dict[str, ImpactEstimates]:
    order = (CITED, SUPPLIED, NOT_TOLD)
    return {use: sums[use].estimates(level, of_responses=of_responses) for use in order if use in sums}


def _is_marked(name: Reference, one: _One) -> bool:
    enough = one.qualifying_sessions >= LEAST_NEGATIVE and one.positive_sessions >= LEAST_POSITIVE
    return name.kind in PLAYBOOKS and enough


def _record(name: Reference, one: _One, with_it: Mapping[int, tuple[int, int]], every: Everyone) -> LearningRecord:
    counts = {count: getattr(one, count) for count in _One._COUNTS}
    return LearningRecord(
        kind=name.kind,
        id=name.id,
        **counts,
        diagnoses=dict(one.diagnoses.most_common()),
        marked=_is_marked(name, one),
        association=every.association(with_it) if with_it else None,
    )

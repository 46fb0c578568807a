"""The whole answer: does Reflexio help, by how much, how sure are we, and what is behind it?"""

from __future__ import annotations

import gc
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from os import PathLike
from typing import TYPE_CHECKING, Any

from evalr.errors import InputError
from evalr.estimates.estimate import Estimate, Trend
from evalr.estimates.words import count_words
from evalr.inputs import Clock, resolve_now, utc_now
from evalr.logs.further import Further
from evalr.logs.log import Log
from evalr.measures.drop_off import WINDOW
from evalr.quoting import quoted
from evalr_reflexio.answers.arm_answer import (
    ArmAnswer,
    ArmsAnswer,
    Coverage,
    Entries,
    Members,
    arm_answer,
    compared,
    untagged_of,
)
from evalr_reflexio.answers.arm_sums import ArmSums
from evalr_reflexio.answers.asked import LISTED, NEWEST, PLANNED, TURNS, Asked, Bucket
from evalr_reflexio.answers.customers import CustomerAnswer
from evalr_reflexio.answers.gathering import Gathering
from evalr_reflexio.answers.health import Health
from evalr_reflexio.answers.learnings import LearningAnswer
from evalr_reflexio.answers.recent import RecentOutcome, by_request_source, recent_outcome
from evalr_reflexio.answers.shadows import ShadowAnswer
from evalr_reflexio.arm_checks import assignment_rule, check_rule, checked_by
from evalr_reflexio.arms import Arms, ExperimentArms, arms_of
from evalr_reflexio.assigning import AssignmentRule, Unit, share_of
from evalr_reflexio.config import Config, Rates
from evalr_reflexio.controls import controls_of
from evalr_reflexio.corrections import corrections_in
from evalr_reflexio.parsing import UNNAMED_EVALUATOR
from evalr_reflexio.places import config_for, open_store
from evalr_reflexio.store import Store
from evalr_reflexio.stored import UNVERSIONED, Served

if TYPE_CHECKING:
    from evalr_reflexio.blocks.beside import Beside

UNREAD = ("content", "expert_content", "tools_used", "user_action", "user_action_description")
"""Columns of interactions that no answer is made of."""

ALL_VERSIONS = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Impact:
    """What a Reflexio log says of its impact. Print it, show it in a notebook, or take it apart.

    Attributes:
        path: of the log.
        org: the organisation, where that is known.
        evaluator: the judge of sessions whose verdicts count.
        now, since, until: the reading time, and the period.
        level: of all intervals.
        bucket: of all trends.
        turns: within which arms are compared in the share of sessions resolved.
        window: how long a person has to come back.
        everyone: all sessions, whatever their arm.
        arms: the arms, by themselves and compared; None where no split was named.
        shadow: the judge of two answers; None where the log has no such verdict.
        learnings: what learnings do; None where the log has none.
        recent: the newest verdicts on sessions, newest first.
        recent_of: how many there are, of which `recent` are the newest.
        customers: how far the judge says what customers reported; None where they reported nothing.
        health: what was judged, what was not, and what was skipped.
        always_valid: whether the intervals of lifts that are printed are those for who looks every day.
        notes: what else to know of how the log was read.
    """

    path: str
    org: str | None
    evaluator: str
    now: datetime
    since: datetime | None
    until: datetime | None
    level: float
    bucket: Bucket
    turns: int
    window: timedelta
    everyone: ArmAnswer
    arms: ArmsAnswer | None
    shadow: ShadowAnswer | None
    learnings: LearningAnswer | None
    recent: tuple[RecentOutcome, ...]
    recent_of: int
    customers: CustomerAnswer | None
    health: Health
    always_valid: bool
    notes: tuple[str, ...]

    @property
    def success(self) -> Estimate:
        """The success rate of all judged sessions."""
        return self.everyone.measures["success"]

    @property
    def trend(self) -> Trend:
        """Success over time."""
        return self.everyone.trend

    @property
    def has_arms(self) -> bool:
        """Whether any session of the period is in an arm."""
        return self.arms is not None and any(
            answer.coverage.whole or answer.measures["success"].n
            for arm, answer in self.arms.by_arm.items()
            if arm is not None
        )

    def recent_by_source(self) -> Mapping[str | None, list[RecentOutcome]]:
        """`recent` by the request source of the sessions' first requests."""
        return by_request_source(self.recent)

    def sections(self, beside: Beside | None = None) -> tuple[Further, ...]:
        """The sections that it adds to a report; with what a page shows, where what stands beside it is given."""
        from evalr_reflexio.answers.showing import sections

        return sections(self, beside)

    def __str__(self) -> str:
        return self.text()

    def text(self, *, width: int = 100, color: bool = False) -> str:
        """The answers as lines of text that fit `width`."""
        from evalr.reports.screen import sections_text

        return sections_text(self.sections(), width=width, color=color)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    def _repr_html_(self) -> str:
        from evalr.reports.page import sections_page

        return sections_page(self.sections(), level=self.level)

    def to_dict(self) -> dict[str, Any]:
        """Everything, in plain types that JSON takes."""
        return {
            "path": self.path,
            "org": self.org,
            "evaluator": self.evaluator,
            "now": self.now.isoformat(),
            "since": None if self.since is None else self.since.isoformat(),
            "until": None if self.until is None else self.until.isoformat(),
            "level": self.level,
            "bucket": self.bucket,
            "turns": self.turns,
            "window": self.window.total_seconds(),
            "everyone": self.everyone.to_dict(),
            "arms": None if self.arms is None else self.arms.to_dict(),
            "shadow": None if self.shadow is None else self.shadow.to_dict(),
            "learnings": None if self.learnings is None else self.learnings.to_dict(),
            "recent": [each.to_dict() for each in self.recent],
            "recent_of": self.recent_of,
            "customers": None if self.customers is None else self.customers.to_dict(),
            "health": self.health.to_dict(),
            "always_valid": self.always_valid,
            "notes": list(self.notes),
        }


def impact(
    log: str | PathLike[str] | Store,
    *,
    arms: str | Arms | None = None,
    config: str | PathLike[str] | Config | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    now: datetime | Clock | None = None,
    randomised: bool = False,
    unit: Unit = "session",
    holdout: float | str | None = None,
    assigned: str | AssignmentRule | None = None,
    registry: str | PathLike[str] | None = None,
    level: float = 0.95,
    bucket: Bucket = "day",
    always_valid: bool = False,
    planned: int = PLANNED,
    turns: int = TURNS,
    window: timedelta = WINDOW,
    shadow: Served = "served",
    shadow_version: str | None = None,
    evaluator: str | None = None,
    newest: int = NEWEST,
    listed: int = LISTED,
    strict: bool = False,
) -> Impact:
    """What a Reflexio log says of Reflexio's impact, in one pass and flat memory.

    Sessions are those of one user each, and have one verdict: the last one by the judge that counts.

    Args:
        log: the path of a database, a file or folder of HTTP answers, or a store that is open.
        arms: `tag`, `request-source:A=x,y;B=z`, `experiment:ID`, or an object that tells the arm of a session. By None,
            sessions are in no arms and nothing is compared.
        config: Reflexio's configuration; by default the one that belongs to the log.
        since: begins the period, which selects sessions by when they began, and verdicts on answers by when those were
            given.
        until: ends it; what began exactly then is outside.
        now: the reading time; the wall clock by default. What began after it does not exist yet.
        randomised: say that tags or request sources were assigned at random; without it, differences are flagged
            observational. Retrieval experiments are randomised by Reflexio.
        unit: what tags or request sources were assigned to, which the sample-ratio check counts: "session", or "user".
        holdout: the share that was meant to be held out, such as 0.1 or "10%", for the sample-ratio check; of an
            experiment its own percentage is known.
        assigned: how the application assigned with `assign_arm`, as `user:10%` or `session:10%`: then the arm of each
            session is computed anew and checked against the log. It says the unit and the share held out, too.
        registry: of evalr's own experiments, for `experiment:ID`; by default `experiments.db` beside the log, where the
            configuration has no such experiment.
        level: of all intervals.
        bucket: of trends: "day", "week" (from Monday) or "month", in UTC.
        always_valid: print intervals of lifts that hold however often one looks; the data have both.
        planned: how many users both arms together are planned to have; see `Summary.lift`.
        turns: arms are compared in the share of sessions resolved within so many of the person's turns.
        window: how long a person has to come back before a session dropped off.
        shadow: which of two answers had Reflexio: "served", "shadow", or "arm" where it is the served one, except in
            the control's sessions.
        shadow_version: the prompt version of the shadow verdicts that count; by default the one that the configuration
            names, or else the most frequent one, as with "all": rubrics are not mixed.
        evaluator: the judge of sessions whose verdicts count; by default the one that the configuration names, where it
            has any, or else the most frequent one. Verdicts of others are counted, and in no number.
        newest: how many of the newest verdicts on sessions to keep.
        listed: how many learnings, and comparisons of two answers, a list holds.
        strict: raise RecordError at the first row that cannot be used, rather than count it.

    Raises:
        LogError: the log cannot be read, or holds nothing.
        InputError: an argument makes no sense, or the log cannot have such arms.

    Example:
        `print(impact("reflexio_my-org.db", arms="experiment:support-agent-2026-08"))`
    """
    asked = Asked(
        now=resolve_now(utc_now if now is None else now),
        since=since,
        until=until,
        level=level,
        bucket=bucket,
        turns=turns,
        window=window,
        shadow=shadow,
        evaluator=evaluator,
        shadow_version=shadow_version,
        holdout=share_of(holdout) if isinstance(holdout, str) else holdout,
        assigned=assignment_rule(assigned, unit),
        planned=planned,
        always_valid=always_valid,
        newest=newest,
        listed=listed,
    )
    if isinstance(log, Store):
        with fewer_collections():
            return _impact(log, asked, arms, config, unit, registry, randomised=randomised, strict=strict)
    with open_store(log) as store, fewer_collections():
        return _impact(store, asked, arms, config, unit, registry, randomised=randomised, strict=strict)


def _impact(
    store: Store,
    asked: Asked,
    arms: str | Arms | None,
    config: str | PathLike[str] | Config | None,
    unit: Unit,
    registry: str | PathLike[str] | None,
    *,
    randomised: bool,
    strict: bool,
) -> Impact:
    known = config_for(store, config)
    unit = unit if asked.assigned is None else asked.assigned.by
    chosen = None
    if arms is not None:
        chosen = arms_of(arms, config=known, store=store, randomised=randomised, unit=unit, registry=registry)
    gathering = gathering_for(store, asked, chosen, known)
    account = store.account(strict=strict)
    seen = 0
    for record in store.sessions(account, without=UNREAD, now=asked.now):
        gathering.see(record)
        seen += 1
    if not seen:
        raise store.empty()
    return answers_of(gathering, store, account, randomised=randomised)


@contextmanager
def fewer_collections() -> Iterator[None]:
    """Have Python look for garbage more seldom: rows are in no circles, and to look through them takes a sixth."""
    before = gc.get_threshold()
    gc.set_threshold(max(_BETWEEN_COLLECTIONS, before[0]) if before[0] else 0, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


_BETWEEN_COLLECTIONS = 20_000


def gathering_for(store: Store, asked: Asked, arms: Arms | None, config: Config) -> Gathering:
    """An empty gathering that knows which verdicts of the log count.

    Raises:
        InputError: the judge or the prompt version that was asked for has no verdict in the log, or the arms cannot be
            checked against the rule of assignment.
    """
    check_rule(arms, asked.assigned)
    return Gathering(
        asked,
        arms=arms,
        config=config,
        evaluator=_judge(store, asked, config),
        shadow_version=_version(store, asked, config),
        controls=controls_of(arms, asked.shadow),
        corrections=corrections_in(store),
    )


def _judge(store: Store, asked: Asked, config: Config) -> str:
    seen = store.judges_seen()
    if asked.evaluator is not None:
        if asked.evaluator not in seen:
            there = ", ".join(map(quoted, seen)) or "none"
            raise InputError(f"no verdict is by evaluator={asked.evaluator!r}; there are: {there}")
        return asked.evaluator
    if config.evaluation_name is not None and config.evaluation_name in seen:
        return config.evaluation_name
    return next(iter(seen), UNNAMED_EVALUATOR)


def _version(store: Store, asked: Asked, config: Config) -> str | None:
    seen = store.shadow_versions_seen()
    wanted = asked.shadow_version
    if wanted not in (None, ALL_VERSIONS) and wanted not in seen:
        there = ", ".join(map(quoted, seen)) or "none"
        raise InputError(f"no shadow verdict is of shadow_version={wanted!r}; there are: {there}")
    wanted = wanted or config.shadow_prompt_version
    return next(iter(seen), None) if wanted in (None, ALL_VERSIONS) else wanted


def answers_of(
    gathering: Gathering, store: Store, account: Log, *, randomised: bool, sound: Collection[str] = ()
) -> Impact:
    """What a pass comes to; `sound` are reasons for which the account leaves out what nothing is wrong with."""
    asked, arms = gathering.asked, gathering.arms
    judge = (gathering.evaluator, UNVERSIONED)
    members = Members(*gathering.members(), gathering.bits)
    everyone = ArmSums(gathering.numbering)
    for sums in gathering.sums.values():
        everyone.merge(sums)
    entries = {arm: sums.entries() for arm, sums in gathering.sums.items()}
    return Impact(
        path=store.path,
        org=store.org or gathering.config.org,
        evaluator=gathering.evaluator,
        now=asked.now,
        since=asked.since,
        until=asked.until,
        level=asked.level,
        bucket=asked.bucket,
        turns=asked.turns,
        window=asked.window,
        everyone=arm_answer(everyone, everyone.entries(), sum(map(bool, members.published)), asked, judge),
        arms=None if arms is None else _arms(gathering, arms, entries, members, judge, randomised=randomised),
        shadow=_shadow(gathering),
        learnings=_learnings(gathering, store, judge),
        recent=tuple(recent_outcome(*each) for each in gathering.recent),
        recent_of=gathering.recent.seen,
        customers=_customers(gathering),
        health=_health(gathering, everyone, account, sound),
        always_valid=asked.always_valid,
        notes=tuple(store.notes),
    )


def arms_answer(gathering: Gathering, arms: Arms, *, randomised: bool) -> ArmsAnswer:
    """What a pass comes to of its arms alone."""
    members = Members(*gathering.members(), gathering.bits)
    entries = {arm: sums.entries() for arm, sums in gathering.sums.items()}
    return _arms(gathering, arms, entries, members, (gathering.evaluator, UNVERSIONED), randomised=randomised)


def _arms(
    gathering: Gathering,
    arms: Arms,
    entries: Mapping[str | None, Entries],
    members: Members,
    judge: tuple[str, str],
    *,
    randomised: bool,
) -> ArmsAnswer:
    asked = gathering.asked
    by_chance = randomised or arms.randomised
    there = {arm: sums for arm, sums in gathering.sums.items() if arm is not None or sums.published or sums.judged}
    by_arm = {arm: arm_answer(sums, entries[arm], members.users(arm), asked, judge) for arm, sums in there.items()}
    return ArmsAnswer(
        name=arms.name,
        unit=arms.unit,
        randomised=by_chance,
        pairs=compared(gathering.sums, entries, members, arms, asked, judge, randomised=by_chance),
        by_arm=by_arm,
        attributed=Coverage(gathering.attributed, gathering.judged_in_experiment),
        checked_by=checked_by(arms, asked.assigned),
        notes=_notes(arms, gathering),
        **untagged_of(gathering.arm_counts),
    )


def _notes(arms: Arms, gathering: Gathering) -> tuple[str, ...]:
    if not isinstance(arms, ExperimentArms):
        return ()
    outside = gathering.attributed_outside
    if not outside:
        return arms.notes
    sessions = count_words(outside, "judged session")
    # Nobody can choose --since and --until who is not told when it ran.
    ran = f" ({arms.experiment.period_words})" if arms.experiment.period_words else ""
    return (
        *arms.notes,
        f"{sessions} of these arms began while the experiment did not run{ran}: --since and --until leave such out",
    )


def _shadow(gathering: Gathering) -> ShadowAnswer | None:
    sums = gathering.shadows
    if not sums.arms and not sums.with_shadow and not sums.left_out:
        return None
    return sums.answer(gathering.asked, has_arms=gathering.arms is not None)


def _learnings(gathering: Gathering, store: Store, judge: tuple[str, str]) -> LearningAnswer | None:
    if not gathering.learnings.learnings and not gathering.learnings.left_out:
        return None
    # Where nobody is in an arm, those in none are everybody, of whom there is as much to say as without arms.
    in_no_arm = gathering.arms is not None and not gathering.has_arms()
    among = "all sessions" if gathering.arms is None or in_no_arm else "sessions in an arm with Reflexio"
    ended = ArmSums(gathering.numbering)
    for arm, sums in gathering.sums.items():
        if in_no_arm or gathering.could_be_given(arm):
            ended.merge(sums)
    found = gathering.learnings.answer(gathering.asked, ended.ended(), judge, among=among, in_no_arm=in_no_arm)
    return found.with_texts(store.learning_texts(found.references()))


def _customers(gathering: Gathering) -> CustomerAnswer | None:
    sums = gathering.customers
    if not sums.reported and not sums.left_out:
        return None
    return sums.answer(gathering.evaluator, gathering.asked.level)


def _health(gathering: Gathering, everyone: ArmSums, account: Log, sound: Collection[str]) -> Health:
    sums, config = gathering.health, gathering.config
    return Health(
        published=everyone.published,
        evaluated=everyone.evaluated,
        without_turns=sums.without_turns,
        evaluation_only=everyone.evaluation_only,
        prefix=everyone.flags["prefix"],
        gone=sums.gone,
        judged_again=sums.judged_again,
        other_judges=dict(sums.other_judges.most_common()),
        gradings=dict(sums.gradings.most_common()),
        failed_chunks=sums.failed_chunks,
        answers_with_shadow=gathering.shadows.with_shadow,
        shadow_judged=gathering.shadows.judged,
        learnings_attached=gathering.learnings.attached,
        learnings_judged=gathering.learnings.judged,
        disagreeing=dict(gathering.noticed.counts.most_common()),
        disagreeing_sessions=dict(gathering.noticed.sessions),
        outside_the_period=sums.outside,
        skipped={why: count for why, count in account.left_out.counts.most_common() if why not in sound},
        repaired=dict(account.repaired),
        sampling=None if config.path is None else _sampled(config)._asdict(),
    )


def _sampled(config: Config) -> Rates:
    """The shares of sessions that are judged: nothing is where the configuration does not say what success is."""
    return config.rates if config.grades_success else Rates(0.0, 0.0, 0.0)

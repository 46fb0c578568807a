"""Judging a Reflexio log as its configuration says: one session, a period, or what has become quiet.

Verdicts go into a journal of their own, and never into the log, which is only read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from evalr.background import run_sync
from evalr.errors import InputError
from evalr.estimates.words import choice_words
from evalr.evaluators import Evaluator
from evalr.inputs import Now, resolve_now, utc_now
from evalr.logs.log import Log
from evalr.measures.ready_judges import ready_judge
from evalr.quoting import quoted
from evalr.runs import (
    Budget,
    Family,
    Grades,
    Journal,
    Limiter,
    Readiness,
    Regeneration,
    Retry,
    SyncRegeneration,
    Watch,
    grade,
    regenerate,
    stratified_sample,
)
from evalr_reflexio.arms import Arms, arms_of
from evalr_reflexio.config import Config
from evalr_reflexio.controls import controls_of
from evalr_reflexio.conversing import Conversation, conversations
from evalr_reflexio.gates import LEARNING, OUTCOME, SHADOW, families, gate, why_not
from evalr_reflexio.log import Compat
from evalr_reflexio.pinning import pinned_to
from evalr_reflexio.places import config_for, open_store
from evalr_reflexio.stored import Served

Evaluators = Mapping[str, Evaluator[Any, Any]]
"""Who judges, by family: "outcome" (of sessions), "shadow" (of two answers), "learning"; those that are there."""

FAMILIES: Final = (OUTCOME, SHADOW, LEARNING)
DAY: Final = timedelta(hours=24)


@dataclass(frozen=True, kw_only=True)
class LogGrading:
    """How a log is judged; see `grading_of`.

    Attributes:
        path: of the log.
        config: what the team has set.
        arms: what puts sessions into arms, or None.
        shadow: which of two answers had Reflexio.
        compat: "reflexio" draws samples as Reflexio does.
        account: what could not be used in the last reading, counted.
    """

    path: str
    config: Config
    arms: Arms | None = None
    shadow: Served = "served"
    compat: Compat | None = None
    _accounts: list[Log] = field(default_factory=list, repr=False)

    # -- what is judged, and by whom ----------------------------------------------------------------------------------

    @property
    def account(self) -> Log | None:
        """What the last reading could not use."""
        return self._accounts[-1] if self._accounts else None

    @property
    def not_graded(self) -> dict[str, str]:
        """The families that judge nothing at all, each with the reason."""
        return {name: reason for name in FAMILIES if (reason := why_not(self.config, name)) is not None}

    @property
    def settings(self) -> dict[str, dict[str, Any]]:
        """What the configuration sets of each family's judge: of what success is, and of the agent's tools."""
        config = self.config
        team: dict[str, Any] = {}
        if config.success_definition is not None:
            team["success_definition"] = config.success_definition
        if config.tools:
            team["tools"] = tuple(f"{name}={description}" for name, description in config.tools.items())
        return {OUTCOME: dict(team), SHADOW: {}, LEARNING: dict(team)}

    @property
    def stratum(self) -> tuple[str, str]:
        """What a period is sampled by: the day, and the arm, or without arms the request source."""
        return "day", "request_source" if self.arms is None else "arm"

    def evaluators(self, lm: str, *, api_base: str | None = None, **settings: Any) -> dict[str, Evaluator[Any, Any]]:
        """The installed judges of the families that judge anything, with the model and what the configuration sets.

        Args:
            lm: the model's name.
            api_base: the address of another server than the model's own.
            **settings: of judges, rather than what the configuration says.

        Raises:
            PluginError: a judge cannot be loaded; the message says what to install.
            InputError: no such model or setting.
        """
        found: dict[str, Evaluator[Any, Any]] = {}
        known: set[str] = set()
        for name in (each for each in FAMILIES if each not in self.not_graded):
            ready = ready_judge(name)
            known |= ready.settings.keys()
            given = {**ready.settings, **self.settings[name]}
            given |= {key: value for key, value in settings.items() if key in ready.settings}
            found[name] = ready.make(lm=lm, api_base=api_base, **given)
        unknown = sorted(settings.keys() - known)
        if unknown:
            raise InputError(f"no judge has a setting {unknown[0]!r}; {choice_words(unknown[0], sorted(known))}")
        return found

    def judges(self, evaluators: Evaluators, *, sampled: bool = False) -> dict[str, Family]:
        """The families of judges over `Conversation`s, for `grade`, `regenerate` and `outlook`.

        The version of shadow verdicts has the prompt version that the configuration pins, so that those of two pins
        are never pooled.

        Args:
            evaluators: who is asked, by family.
            sampled: whether only sessions in the configuration's samples are judged, each standing for the others.

        Raises:
            InputError: there is no such family.
        """
        for name in evaluators:
            if name not in FAMILIES:
                raise InputError(f"no family of judges is named {name!r}; {choice_words(name, FAMILIES)}")
        pin = self.config.shadow_prompt_version
        asked = {
            name: pinned_to(each, pin) if name == SHADOW and pin is not None else each
            for name, each in evaluators.items()
        }
        return families(self.config, asked, gate(self.config, nested=self.compat == "reflexio") if sampled else None)

    @property
    def concurrency(self) -> int:
        """How many calls there may be at once."""
        return self.config.concurrency

    # -- sessions -----------------------------------------------------------------------------------------------------

    def conversations(self) -> Iterator[Conversation]:
        """Every session of the log, by when it began. The log is open until the last one was read."""
        with open_store(self.path) as store:
            account = store.account()
            self._accounts[:] = [account]
            yield from conversations(store, store.sessions(account), account, arms=self.arms, shadow=self.shadow)

    def quiet(self, *, now: Now = utc_now, ready: Readiness | None = None) -> Iterator[Conversation]:
        """The sessions in which nothing has happened for a while: ten minutes, unless `ready` says otherwise."""
        readiness, moment = Readiness() if ready is None else ready, resolve_now(now)
        return (each for each in self.conversations() if readiness.is_ready(each, moment))

    def period(self, since: datetime | None, until: datetime | None) -> Iterator[Conversation]:
        """The sample of a period that `regenerate` judges, each with how many sessions it stands for.

        Args:
            since: sessions that began then or later; None is without a beginning.
            until: and before then; None is without an end.
        """
        within = (
            each
            for each in self.conversations()
            if each.at is not None and (since is None or since <= each.at) and (until is None or each.at < until)
        )
        return iter(stratified_sample(within, self.stratum, n=self.config.stratum_size))

    def find(self, session: str, *, user: str | None = None) -> Conversation:
        """One session.

        Args:
            session: its id.
            user: whose, where several users have one of this id.

        Raises:
            InputError: there is none, or several users have one.
        """
        with open_store(self.path) as store:
            account = store.account()
            self._accounts[:] = [account]
            records = store.sessions_of_id(session, account)
            if user is not None:
                records = [record for record in records if record.user == user]
            found = list(conversations(store, records, account, arms=self.arms, shadow=self.shadow))
        if not found:
            of = "" if user is None else f" of user {quoted(user)}"
            raise InputError(f"{self.path} has no session {quoted(session)}{of}")
        if len(found) > 1:
            users = ", ".join(quoted(each.user or "") for each in found)
            raise InputError(f"{len(found)} users have a session {quoted(session)}: say whose, of {users}")
        return found[0]

    # -- judging ------------------------------------------------------------------------------------------------------

    async def grade(
        self,
        session: str,
        evaluators: Evaluators,
        *,
        journal: Journal | str | os.PathLike[str],
        user: str | None = None,
        lifetime: timedelta | None = DAY,
        now: Now = utc_now,
        again: bool = False,
        limit: int | Limiter | None = None,
        budget: Budget | None = None,
        retry: Retry | None = None,
        timeout: float | None = None,  # noqa: ASYNC109  of each question, as a run has it
    ) -> Grades:
        """Judge one session now, whether or not it is in a sample, or quiet. What was asked of late is not asked again.

        Args:
            session: its id.
            evaluators: who is asked, by family; see `evaluators`.
            journal: where verdicts are kept.
            user: whose session, where several users have one of this id.
            lifetime: how long an answer is served after it was asked for; a day, unless given.
            now: the time of the request.
            again: ask everything again.
            limit: how many calls there may be at once; by default the configuration's.
            budget: what it may spend.
            retry: how often failures that may pass are tried again.
            timeout: seconds for each question, all its tries together.

        Raises:
            InputError: there is no such session, or several users have one.
            LogError: the log cannot be read.
            JournalError: the journal cannot be used.
        """
        return await grade(
            self.find(session, user=user),
            self.judges(evaluators),
            cache=self._beside(journal),
            lifetime=lifetime,
            now=now,
            again=again,
            limit=self.config.concurrency if limit is None else limit,
            budget=budget,
            retry=retry,
            timeout=timeout,
        )

    def grade_sync(
        self,
        session: str,
        evaluators: Evaluators,
        *,
        journal: Journal | str | os.PathLike[str],
        user: str | None = None,
        lifetime: timedelta | None = DAY,
        now: Now = utc_now,
        again: bool = False,
        limit: int | Limiter | None = None,
        budget: Budget | None = None,
        retry: Retry | None = None,
        timeout: float | None = None,
    ) -> Grades:
        """As `grade`, from code that cannot await, in a notebook too."""
        work = self.grade(
            session,
            evaluators,
            journal=journal,
            user=user,
            lifetime=lifetime,
            now=now,
            again=again,
            limit=limit,
            budget=budget,
            retry=retry,
            timeout=timeout,
        )
        return run_sync(work)

    def regenerate(
        self,
        evaluators: Evaluators,
        *,
        since: datetime | None,
        until: datetime | None,
        journal: Journal | str | os.PathLike[str],
        n: int | None = None,
        again: bool = False,
        limit: int | Limiter | None = None,
        budget: Budget | None = None,
        retry: Retry | None = None,
        timeout: float | None = None,
        progress: Watch | bool | None = None,
    ) -> Regeneration:
        """Judge a period anew: of each day and arm, or request source without arms, as many as the configuration says.

        Each result says how many sessions it stands for, so that rates are those of the whole period. An iterator over
        results, as `evalr.runs.regenerate`, which says what else there is.

        Args:
            evaluators: who is asked, by family.
            since: sessions that began then or later; None is without a beginning.
            until: and before then; None is without an end.
            journal: where verdicts are kept.
            n: of each stratum at most; by default the configuration's, which is 200 unless set.
            again: ask everything again.
            limit: how many calls there may be at once; by default the configuration's.
            budget: what it may spend.
            retry: how often failures that may pass are tried again.
            timeout: seconds for each question, all its tries together.
            progress: called about twice a second; True shows a line in a terminal.
        """
        return self._run(
            self.conversations(),
            self.judges(evaluators),
            since=since,
            until=until,
            journal=journal,
            n=self.config.stratum_size if n is None else n,
            again=again,
            limit=limit,
            budget=budget,
            retry=retry,
            timeout=timeout,
            progress=progress,
        )

    def regenerate_sync(self, evaluators: Evaluators, **options: Any) -> SyncRegeneration:
        """As `regenerate`, with the same options, from code that cannot await: an iterator over the results."""
        return SyncRegeneration(self.regenerate(evaluators, **options))

    def catch_up(
        self,
        evaluators: Evaluators,
        *,
        journal: Journal | str | os.PathLike[str],
        now: Now = utc_now,
        ready: Readiness | None = None,
        limit: int | Limiter | None = None,
        budget: Budget | None = None,
        retry: Retry | None = None,
        timeout: float | None = None,
        progress: Watch | bool | None = None,
    ) -> Regeneration:
        """Judge what is due: each session that has been quiet for ten minutes and is in the sample of a family.

        Run it as often as you like: what was judged is in the journal, and is asked again only once it goes on. Each
        family has its own sample, and a result stands for as many sessions as its rate says.

        Args:
            evaluators: who is asked, by family.
            journal: where verdicts are kept.
            now: when it is.
            ready: when a session is quiet enough.
            limit: how many calls there may be at once; by default the configuration's.
            budget: what it may spend.
            retry: how often failures that may pass are tried again.
            timeout: seconds for each question, all its tries together.
            progress: called about twice a second; True shows a line in a terminal.
        """
        return self._run(
            self.quiet(now=now, ready=ready),
            self.judges(evaluators, sampled=True),
            since=None,
            until=None,
            journal=journal,
            n=None,
            again=False,
            limit=limit,
            budget=budget,
            retry=retry,
            timeout=timeout,
            progress=progress,
        )

    def catch_up_sync(self, evaluators: Evaluators, **options: Any) -> SyncRegeneration:
        """As `catch_up`, with the same options, from code that cannot await: an iterator over the results."""
        return SyncRegeneration(self.catch_up(evaluators, **options))

    def _run(
        self,
        given: Iterable[Conversation],
        judges: Mapping[str, Family],
        *,
        journal: Journal | str | os.PathLike[str],
        limit: int | Limiter | None,
        **options: Any,
    ) -> Regeneration:
        return regenerate(
            given,
            judges,
            journal=self._beside(journal),
            stratum=self.stratum,
            limit=self.config.concurrency if limit is None else limit,
            **options,
        )

    def _beside(self, journal: Journal | str | os.PathLike[str]) -> Journal | str | os.PathLike[str]:
        """The journal, where it is not in the log, which is only read."""
        if not isinstance(journal, Journal):
            place, log = Path(journal).resolve(), Path(self.path).resolve()
            # What has one of these names is SQLite's own, which it reads, and takes away, with the log.
            of_log = {log, *(log.with_name(log.name + end) for end in ("-journal", "-wal", "-shm"))}
            is_log = place in of_log or (place.is_file() and log.is_file() and place.samefile(log))
            if is_log or (log.is_dir() and log in place.parents):
                raise InputError(f"{journal} would be in the log, which is only read: name another place")
        return journal


def grading_of(
    path: str | os.PathLike[str],
    *,
    config: str | os.PathLike[str] | Config | None = None,
    arms: str | Arms | None = None,
    shadow: Served = "served",
    compat: Compat | None = None,
    success_definition: str | None = None,
    registry: str | os.PathLike[str] | None = None,
) -> LogGrading:
    """How a log is judged: what its configuration says of success, tools, request sources, rates, sizes and versions.

        grading = grading_of("reflexio.db", arms="tag")
        judges = grading.evaluators("openai/gpt-5-mini")
        grades = await grading.grade("session-17", judges, journal="judged.db")
        async for result in grading.regenerate(judges, since=first, until=last, journal="judged.db"): ...

    Args:
        path: of the log; it is only read.
        config: Reflexio's configuration file; by default the one beside the log, or where Reflexio keeps it.
        arms: `tag`, `request-source:A=x,y;B=z` or `experiment:ID`.
        shadow: which of two answers had Reflexio: "served", "shadow", or "arm".
        compat: "reflexio" nests the samples of the families, as Reflexio does.
        success_definition: what success is, where the configuration does not say, or says something else. Sessions are
            then graded.
        registry: of evalr's own experiments, for `experiment:ID`; by default the one beside the log.

    Raises:
        LogError: the log or the configuration cannot be read.
        InputError: an argument cannot be used.
    """
    if compat not in (None, "reflexio"):
        raise InputError(f"compat={compat!r} must be None or 'reflexio'")
    with open_store(path) as store:
        known = config_for(store, config)
        found = None if arms is None else arms_of(arms, config=known, store=store, registry=registry)
    controls_of(found, shadow)  # which refuses what makes no sense
    if success_definition is not None:
        known = replace(known, grades_success=True, success_definition=success_definition)
    return LogGrading(path=os.fspath(path), config=known, arms=found, shadow=shadow, compat=compat)

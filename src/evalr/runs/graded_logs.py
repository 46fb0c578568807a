"""Logs that are judged by their owners' own settings, which the log's reader knows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

from evalr.evaluators import Evaluator
from evalr.inputs import Input, Now
from evalr.logs.log import Log
from evalr.runs.families import Family
from evalr.runs.grading import Grades
from evalr.runs.regeneration import SyncRegeneration


@runtime_checkable
class GradedLog(Protocol):
    """How a log is judged by what its owners have set, as the log's reader knows it: for `evalr judge`.

    A reader (`evalr.logs.Reader`) whose logs have such settings has a method `grading(path, **settings)` that returns
    one. The settings are those of the reader that the command was given, and `success_definition` where it was.
    `evalr judge LOG --lm MODEL` then judges one session (`--session`), a period (`--since`, `--until`), or what is due;
    with `--measure` the judge of that measure is made with the owners' settings.

    Families of judges have the names of the measures whose verdicts they give, such as "outcome".
    """

    @property
    def account(self) -> Log | None:
        """What the last reading could not use; None before the first."""

    @property
    def not_graded(self) -> Mapping[str, str]:
        """The families that judge nothing at all, each with the reason, which the command prints."""

    @property
    def concurrency(self) -> int:
        """How many calls there may be at once, unless `--limit` says otherwise."""

    @property
    def settings(self) -> Mapping[str, Mapping[str, Any]]:
        """What the owners have set of each family's judge, by the name of the family, such as a success definition."""

    def evaluators(self, lm: str, *, api_base: str | None = None, **settings: Any) -> Mapping[str, Evaluator[Any, Any]]:
        """Who judges, by family, with the owners' settings.

        Args:
            lm: the model's name, as `--lm` gives it.
            api_base: the address of another server than the model's own.
            **settings: of judges, as `--set` gives them: they go before the owners'.
        """

    def judges(self, evaluators: Mapping[str, Evaluator[Any, Any]], *, sampled: bool = False) -> Mapping[str, Family]:
        """How each family splits a session.

        Args:
            evaluators: who judges, by family.
            sampled: whether only sessions in the family's sample have parts, each with its weight.
        """

    def find(self, session: str, *, user: str | None = None) -> Input:
        """One session.

        Args:
            session: its id.
            user: whose, where several users have one of this id.

        Raises:
            InputError: there is none, or several users have one.
        """

    def period(self, since: datetime | None, until: datetime | None) -> Iterator[Input]:
        """The sessions that began in a period, from `since` and before `until`: as many as `regenerate_sync` judges."""

    def quiet(self, *, now: Now = ...) -> Iterator[Input]:
        """The sessions in which nothing has happened for a while: what `catch_up_sync` judges."""

    def grade_sync(self, session: str, evaluators: Mapping[str, Evaluator[Any, Any]], **options: Any) -> Grades:
        """Judge one session now.

        Args:
            session: its id.
            evaluators: who judges, by family.
            **options: `user`, and those of `evalr.runs.grade`, of which `cache` is called `journal`.
        """

    def regenerate_sync(self, evaluators: Mapping[str, Evaluator[Any, Any]], **options: Any) -> SyncRegeneration:
        """Judge a period anew.

        Args:
            evaluators: who judges, by family.
            **options: those of `evalr.runs.regenerate`: `since`, `until`, `journal` and the like.
        """

    def catch_up_sync(self, evaluators: Mapping[str, Evaluator[Any, Any]], **options: Any) -> SyncRegeneration:
        """Judge what is due: sessions that are quiet, in the samples of families, and not in the journal.

        Args:
            evaluators: who judges, by family.
            **options: `now`, and those of `evalr.runs.regenerate` but `since`, `until` and `again`.
        """

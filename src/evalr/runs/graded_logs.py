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
    """What a reader with a method `grading(path, **settings)` returns, for `evalr judge` without `--measure`.

    Families of judges have the names of the measures whose verdicts they give.
    """

    @property
    def account(self) -> Log | None:
        """What the last reading could not use."""

    @property
    def not_graded(self) -> Mapping[str, str]:
        """The families that judge nothing at all, each with the reason."""

    @property
    def concurrency(self) -> int:
        """How many calls there may be at once."""

    @property
    def settings(self) -> Mapping[str, Mapping[str, Any]]:
        """What the owners have set of each family's judge."""

    def evaluators(self, lm: str, *, api_base: str | None = None, **settings: Any) -> Mapping[str, Evaluator[Any, Any]]:
        """Who judges, by family, with the owners' settings."""

    def judges(self, evaluators: Mapping[str, Evaluator[Any, Any]], *, sampled: bool = False) -> Mapping[str, Family]:
        """How each family splits a session; with `sampled`, those that are in its sample alone."""

    def find(self, session: str, *, user: str | None = None) -> Input:
        """One session."""

    def period(self, since: datetime | None, until: datetime | None) -> Iterator[Input]:
        """The sessions of a period that are in the sample of one, each with its weight."""

    def quiet(self, *, now: Now = ...) -> Iterator[Input]:
        """The sessions in which nothing has happened for a while."""

    def grade_sync(self, session: str, evaluators: Mapping[str, Evaluator[Any, Any]], **options: Any) -> Grades:
        """Judge one session now."""

    def regenerate_sync(self, evaluators: Mapping[str, Evaluator[Any, Any]], **options: Any) -> SyncRegeneration:
        """Judge a period anew."""

    def catch_up_sync(self, evaluators: Mapping[str, Evaluator[Any, Any]], **options: Any) -> SyncRegeneration:
        """Judge what is due."""

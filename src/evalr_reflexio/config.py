"""Reflexio's configuration of one organisation, as far as it bears on measuring: a JSON file beside its data."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from pydantic_core import from_json

from evalr.errors import LogError
from evalr.logs.finding import unreadable
from evalr.logs.lines import BYTE_ORDER_MARK
from evalr.logs.reasons import Reason
from evalr.quoting import quoted
from evalr_reflexio.cells import instant

DEFAULT_ORG = "self-host-org"
DATA_FILE = re.compile(r"reflexio_(?P<org>.+)\.db")

SAMPLING_RATE = 0.05
STRATUM_SIZE = 200
CONCURRENCY = 10

OTHER_STORAGE = (
    "evalr reads Reflexio's SQLite file and the answers of its HTTP API. From {what}: fetch the answers with "
    "evalr.reflexio.fetch_sync(url, folder, since=...) and read the folder, or write evalr's own JSON Lines"
)


@dataclass(frozen=True, slots=True)
class Experiment:
    """One retrieval experiment: users are split by a hash, and a share of them is held out.

    Attributes:
        id: unique for ever.
        holdout_percentage: between 0 and 100; None where only its requests are known.
        started_at: when; None where only its requests are known.
        ended_at: when; None while it is active.
        assigned_in: the organisation for which evalr's own registry assigns users; None where Reflexio's server does.
    """

    id: str
    holdout_percentage: float | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    assigned_in: str | None = None

    @property
    def until(self) -> datetime | None:
        """When it was over: logs keep whole seconds, and what began in the second of the stop began before it."""
        return None if self.ended_at is None else self.ended_at + timedelta(seconds=1)

    @property
    def period_words(self) -> str:
        """`active since 2026-08-01 09:00 UTC`, or from when to when it ran; empty where that is not known."""
        if self.started_at is None:
            return ""
        began = f"{self.started_at:%Y-%m-%d %H:%M}"
        if self.ended_at is None:
            return f"active since {began} UTC"
        return f"{began} to {self.ended_at:%Y-%m-%d %H:%M} UTC"

    def ran_at(self, time: datetime) -> bool:
        """Whether it ran then, as far as that is known."""
        return (self.started_at is None or time >= self.started_at) and (self.until is None or time < self.until)


class Rates(NamedTuple):
    """Shares of sessions that are judged."""

    sessions: float
    evaluation_only: float
    learnings: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What one organisation has set. Where a file does not say, Reflexio's own defaults stand.

    Attributes:
        path: of the file; None where there is none.
        org: the organisation, from the file's name.
        experiments: all that there ever were, newest first.
        shadow_prompt_version: the version of the shadow judge's prompt that its page shows; None for all.
        grades_success: whether sessions are graded at all.
        success_definition: what makes a session a success.
        evaluation_name: the name of its success judge.
        tagging_definition: what its tags mean.
        tools: what its agent can call, by name, with a description of each.
        request_sources: the request sources that are graded; None for all.
        sampling_rate: of sessions whose success is judged, from 0 to 1.
        evaluation_only_sampling_rate: of those that are for evaluation only; None for `sampling_rate`.
        learning_sampling_rate: of sessions whose learnings are judged, those for evaluation only among them; None for
            `sampling_rate`.
        stratum_size: how many sessions of a day and request source are graded anew at most.
        concurrency: how many are graded at a time.
        agent_context: what its judges are told of the agent.
    """

    path: str | None = None
    org: str | None = None
    experiments: Sequence[Experiment] = ()
    shadow_prompt_version: str | None = None
    grades_success: bool = False
    success_definition: str | None = None
    evaluation_name: str | None = None
    tagging_definition: str | None = None
    tools: Mapping[str, str] = field(default_factory=dict)
    request_sources: Sequence[str] | None = None
    sampling_rate: float = SAMPLING_RATE
    evaluation_only_sampling_rate: float | None = None
    learning_sampling_rate: float | None = None
    stratum_size: int = STRATUM_SIZE
    concurrency: int = CONCURRENCY
    agent_context: str | None = None

    @property
    def rates(self) -> Rates:
        """The sampling rates as they are used: one that is not set is `sampling_rate`."""
        usual, only, learnings = self.sampling_rate, self.evaluation_only_sampling_rate, self.learning_sampling_rate
        return Rates(usual, usual if only is None else only, usual if learnings is None else learnings)

    @property
    def active_experiment(self) -> Experiment | None:
        """The experiment that new users are assigned to, if there is one."""
        return next((each for each in self.experiments if each.started_at and each.ended_at is None), None)

    def experiment(self, name: str) -> Experiment | None:
        """The experiment of this id."""
        return next((each for each in self.experiments if each.id == name), None)


def read_config(path: str | os.PathLike[str]) -> Config:
    """A configuration file, or what its HTTP API answers to `get_config`.

    Raises:
        LogError: it cannot be opened, is no configuration, or says that the data are not in SQLite.
    """
    path = Path(path)
    try:
        found = from_json(path.read_bytes().removeprefix(BYTE_ORDER_MARK))
    except (OSError, ValueError) as error:
        if isinstance(error, OSError):
            raise unreadable(path, error) from error
        raise LogError(f"{path} is no configuration of Reflexio: it is not JSON ({error})") from error
    if isinstance(found, dict) and isinstance(found.get("config"), dict):
        found = found["config"]
    if not isinstance(found, dict) or not {"agent_success_config", "storage_config", "window_size"} & found.keys():
        raise LogError(
            f"{path} is no configuration of Reflexio: it has neither agent_success_config nor storage_config"
        )
    return _config(found, path)


def find_config(path: Path, org: str | None) -> Path | None:
    """The configuration that belongs to a database: beside it, or where Reflexio keeps it."""
    named = DATA_FILE.fullmatch(path.name)
    for each in dict.fromkeys((named["org"] if named else None, org)):
        if each is not None and "/" not in each:
            for folder in (path.parent, path.parent.parent / "configs"):
                candidate = folder / f"config_{each}.json"
                if candidate.is_file():
                    return candidate
    return None


def _config(found: Mapping[str, Any], path: Path) -> Config:
    _refuse_other_storage(found.get("storage_config"), path)
    success = found.get("agent_success_config")
    grading: Mapping[str, Any] = success if isinstance(success, dict) else {}
    rate = _rate(grading.get("sampling_rate"))
    named = re.fullmatch(r"config_(.+)\.json", path.name)
    tools = found.get("tool_can_use")
    sources = grading.get("request_sources_enabled")
    return Config(
        path=str(path),
        org=named[1] if named else None,
        experiments=_experiments(found, path),
        shadow_prompt_version=_text(found.get("shadow_comparison_judge_prompt_version")),
        grades_success=isinstance(success, dict),
        success_definition=_text(grading.get("success_definition_prompt")),
        evaluation_name=_text(grading.get("evaluation_name")),
        tagging_definition=_text(grading.get("tagging_definition_prompt")),
        tools={
            str(each["tool_name"]): str(each.get("tool_description") or "")
            for each in (tools if isinstance(tools, list) else [])
            if isinstance(each, dict) and each.get("tool_name")
        },
        request_sources=[str(each) for each in sources] if isinstance(sources, list) else None,
        sampling_rate=SAMPLING_RATE if rate is None else rate,
        evaluation_only_sampling_rate=_rate(grading.get("evaluation_only_sampling_rate")),
        learning_sampling_rate=_rate(grading.get("retrieved_learning_sampling_rate")),
        stratum_size=_whole(found.get("eval_sample_n_per_stratum"), STRATUM_SIZE),
        concurrency=_whole(found.get("eval_concurrency_limit"), CONCURRENCY),
        agent_context=_text(found.get("agent_context_prompt")),
    )


def _experiments(found: Mapping[str, Any], path: Path) -> list[Experiment]:
    history = found.get("retrieval_experiment_history")
    experiments = [experiment_of(each, path) for each in (history if isinstance(history, list) else [])]
    active = found.get("retrieval_experiment_config")
    if isinstance(active, dict) and not any(each.id == active.get("experiment_id") for each in experiments):
        experiments.append(experiment_of(active, path))
    # Of two that began in one second, the one that was added later is the newer one.
    experiments.sort(key=lambda each: each.started_at.timestamp() if each.started_at else 0)
    return experiments[::-1]


def experiment_of(found: Any, path: Path | str) -> Experiment:
    """An experiment as the configuration and the HTTP API write it.

    Raises:
        LogError: it is none.
    """
    if not isinstance(found, dict) or not isinstance(found.get("experiment_id"), str):
        raise LogError(f"{path}: an experiment without an experiment_id")
    name, percentage = found["experiment_id"], found.get("holdout_percentage")
    if percentage is not None and (isinstance(percentage, bool) or not isinstance(percentage, int | float)):
        raise LogError(f"{path}: the holdout_percentage of experiment {quoted(name)} is no number")
    if percentage is not None and not 0 <= percentage <= 100:
        raise LogError(f"{path}: the holdout_percentage of experiment {quoted(name)} is {percentage}: no percentage")
    times: dict[str, Any] = {}
    for key in ("started_at", "ended_at"):
        try:
            times[key] = None if found.get(key) is None else instant(found[key])
        except Reason as reason:
            raise LogError(f"{path}: {key} of experiment {quoted(name)}: {reason}") from None
    return Experiment(name, None if percentage is None else float(percentage), **times)


def _refuse_other_storage(storage: Any, path: Path) -> None:
    if not isinstance(storage, dict):
        return
    kind = str(storage.get("type") or "").casefold()
    what = next((name for name in ("supabase", "postgres", "disk") if kind.startswith(name)), None)
    if what is None and any(str(name).startswith("supabase") for name in storage):
        what = "supabase"
    if what is None and any(name in storage for name in ("db_url", "dsn", "connection_string")):
        what = "postgres"
    if what is not None:
        words = {"supabase": "Supabase", "postgres": "Postgres", "disk": "the disk layout of files"}
        raise LogError(f"{path} says that the data are in another store. {OTHER_STORAGE.format(what=words[what])}")


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value.strip() else None


def _rate(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        return None
    return min(1.0, max(0.0, float(value)))


def _whole(value: Any, default: int) -> int:
    return value if type(value) is int and value >= 1 else default

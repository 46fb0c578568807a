"""The reader that `evalr report` uses: everything in a Reflexio log as evalr's inputs and stored verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from evalr.bulk.processes import check_processes
from evalr.errors import InputError
from evalr.estimates.estimate import USUAL_LEVEL
from evalr.inputs import utc_now
from evalr.logs.further import ReportTerms
from evalr_reflexio.answers.asked import PLANNED, Bucket
from evalr_reflexio.arm_checks import assignment_rule
from evalr_reflexio.arms import Arms, TagArms
from evalr_reflexio.assigning import AssignmentRule, Unit, share_of
from evalr_reflexio.config import Config
from evalr_reflexio.controls import controls_of
from evalr_reflexio.log import Compat, Options, ReflexioLog
from evalr_reflexio.log_pass import ALL_PROMPTS, items_of
from evalr_reflexio.places import claim_of
from evalr_reflexio.stored import Served

if TYPE_CHECKING:
    from evalr_reflexio.grading import LogGrading

_SETTINGS = {
    "config": None,
    "arms": None,
    "shadow": "served",
    "shadow_version": None,
    "compat": None,
    "evaluator": None,
    "unit": "session",
    "holdout": None,
    "assigned": None,
    "registry": None,
    "bucket": "day",
    "always_valid": False,
    "planned": PLANNED,
    "processes": None,
}


@dataclass(frozen=True)
class ReflexioReader:
    """Reads Reflexio's logs, of releases 0.2.24 to 0.2.32: its SQLite database, or answers of its HTTP API."""

    name: str = "reflexio"
    describes: str = "a Reflexio log: its SQLite database, or answers of its HTTP API as JSON"
    settings: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType(_SETTINGS))
    schemes: tuple[str, ...] = ("http", "https")  # to say that such an address is fetched first

    def claim(self, path: Path, head: bytes) -> float:
        """Sure of a database with its tables, and of a JSON object with its lists."""
        return claim_of(path, head)

    def open(
        self,
        path: Path,
        *,
        strict: bool = False,
        config: str | PathLike[str] | Config | None = None,
        arms: str | Arms | None = None,
        shadow: Served = "served",
        shadow_version: str | None = None,
        compat: Compat | None = None,
        evaluator: str | None = None,
        unit: Unit = "session",
        holdout: float | str | None = None,
        assigned: str | AssignmentRule | None = None,
        registry: str | PathLike[str] | None = None,
        bucket: Bucket = "day",
        always_valid: bool = False,
        planned: int = PLANNED,
        processes: int | None = None,
    ) -> ReflexioLog:
        """The log; nothing is read before it is iterated over.

        Args:
            path: the database, a file of HTTP answers, or a folder of them.
            strict: see `Log`.
            config: Reflexio's configuration file; by default the one beside the database, or where Reflexio keeps it.
            arms: `tag`, `request-source:A=x,y;B=z` or `experiment:ID`: what puts sessions into arms. By default a whole
                report takes the tag where requests have one, and else the newest experiment that ran in its period.
            shadow: which of two answers had Reflexio: "served", "shadow", or "arm" where it is the one that was served,
                except in the control's sessions.
            shadow_version: the prompt version of the shadow verdicts to read; by default the one that the configuration
                names, or all of them where it is not known, and with "all".
            compat: "reflexio" keeps every verdict of a session, as Reflexio counts them, rather than the last one.
            evaluator: the judge of sessions whose verdicts the sections beside the measures are of; see `impact`.
            unit: what tags or request sources were assigned to: "session" or "user".
            holdout: the share that was meant to be held out, such as 0.1 or "10%"; see `impact`.
            assigned: how the application assigned, as `user:10%`: arms are checked against it; see `impact`.
            registry: of evalr's own experiments, for `experiment:ID`; by default the one beside the log; see `impact`.
            bucket: of trends by arm: "day", "week" or "month".
            always_valid: print intervals of lifts that hold however often one looks.
            planned: how many users both arms together are planned to have.
            processes: how many read the log for a report, each a part of it, where it is a database. By default one,
                and where it is of 128 MB or more two, or three for Reflexio's own figures, too, if there are as many
                cores.

        Raises:
            InputError: a setting makes no sense.
        """
        if processes is not None:
            check_processes(processes)
        if compat not in (None, "reflexio"):
            raise InputError(f"compat={compat!r} must be None or 'reflexio'")
        controls_of(None if arms is None else TagArms() if isinstance(arms, str) else arms, shadow)
        rule = assignment_rule(assigned, unit)
        options = Options(
            config=config,
            arms=arms,
            shadow=shadow,
            shadow_version=shadow_version,
            compat=compat,
            evaluator=evaluator,
            unit=unit if rule is None else rule.by,
            holdout=share_of(holdout) if isinstance(holdout, str) else holdout,
            assigned=rule,
            registry=registry,
            bucket=bucket,
            always_valid=always_valid,
            planned=planned,
            processes=processes,
        )
        options.asked(ReportTerms(utc_now(), None, None, USUAL_LEVEL, False))  # which refuses what makes no sense
        return ReflexioLog(str(path), self.name, partial(items_of, path, options), strict=strict)

    def grading(
        self,
        path: Path,
        *,
        config: str | PathLike[str] | Config | None = None,
        arms: str | Arms | None = None,
        shadow: Served = "served",
        shadow_version: str | None = None,
        compat: Compat | None = None,
        success_definition: str | None = None,
        registry: str | PathLike[str] | None = None,
        **others: Any,
    ) -> LogGrading:
        """How `evalr judge` judges the log without `--measure`: as its configuration says; see `grading_of`.

        Args:
            path: of the log.
            config: as for `open`.
            arms: as for `open`.
            shadow: as for `open`.
            shadow_version: the version that is pinned, rather than the configuration's.
            compat: as for `open`; and samples are drawn as Reflexio draws them.
            success_definition: what success is, rather than what the configuration says.
            registry: as for `open`.
            **others: none that there is; those of `open` that bear on reports alone are refused by name.

        Raises:
            InputError: a setting makes no sense.
        """
        from evalr_reflexio.grading import grading_of

        if others:
            raise InputError(f"{min(others)} bears on a report alone, and not on what is judged: leave it out")

        found = grading_of(
            path,
            config=config,
            arms=arms,
            shadow=shadow,
            compat=compat,
            success_definition=success_definition,
            registry=registry,
        )
        if shadow_version is None:
            return found
        pin = None if shadow_version == ALL_PROMPTS else shadow_version
        return replace(found, config=replace(found.config, shadow_prompt_version=pin))


reader = ReflexioReader()

"""The reader of reflexr's log: runs of rules, chains, their sessions, and feedback, in one pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any

from evalr.inputs import Input, Session
from evalr.logs.jsonl import verdict_types
from evalr.logs.log import Item, Log
from evalr_reflexr.asking import (
    REOPENS,
    RESOLVES,
    may_begin,
    named_events,
    of_runs,
    runs_straight,
    session_rules,
    skip,
    starts_of,
)
from evalr_reflexr.envelopes import Envelope, Roles, role_reader
from evalr_reflexr.feedback_events import feedback_choice, feedback_in
from evalr_reflexr.matching import Matcher, Matches
from evalr_reflexr.reading import NAME, Found, NeededLog, Wanted, begins, every_type, log_of, until_end
from evalr_reflexr.resolution import Chain, chain_of
from evalr_reflexr.rules import check_compat
from evalr_reflexr.runs import RuleRun, runs_in


@dataclass(frozen=True)
class ReflexrReader:
    """Reads a store of reflexr, or envelopes as JSON Lines."""

    name: str = NAME
    describes: str = "a reflexr event log (SQLite, PostgreSQL, JSON Lines): runs, chains, sessions"
    schemes: tuple[str, ...] = ("postgresql", "postgres")
    settings: Mapping[str, Any] = field(
        default_factory=lambda: MappingProxyType(
            {
                "tenant": None,
                "workspace": None,
                "starts": (),
                "resolves": RESOLVES,
                "reopens": REOPENS,
                "feedback": (),
                "compat": None,
            }
        )
    )

    def claim(self, path: Path, head: bytes) -> float:
        """Sure of a database with reflexr's table of events, and of lines that hold an envelope."""
        from evalr_reflexr.sqlite import is_store
        from evalr_reflexr.wire import is_wire

        if path.is_dir():
            return 0.0
        return float(is_store(path, head) or is_wire(head))

    def open(
        self,
        path: Path | str,
        *,
        strict: bool = False,
        tenant: str | None = None,
        workspace: str | None = None,
        starts: Matches = (),
        resolves: Matches = RESOLVES,
        reopens: Matches = REOPENS,
        feedback: str | tuple[str, ...] = (),
        compat: str | None = None,
    ) -> Log:
        """The log; nothing is read before it is iterated over.

        Args:
            path: of the store, or the address of one on a server.
            strict: see `Log`.
            tenant: only this tenant's.
            workspace: only this one.
            starts: the first events of eligible chains; by default those of applications.
            resolves: the events that resolve a chain, and close its session.
            reopens: the events that open it again.
            feedback: which feedback is verdicts of which measure, as in `resolution=completion`.
            compat: "reflexr": chains of any beginning are eligible where `starts` names none.

        Raises:
            InputError: a setting that makes no sense.
        """
        return read(
            path,
            strict=strict,
            tenant=tenant,
            workspace=workspace,
            starts=starts,
            resolves=resolves,
            reopens=reopens,
            feedback=feedback,
            compat=compat,
        )


reader = ReflexrReader()


def read(
    path: str | PathLike[str],
    *,
    strict: bool = False,
    tenant: str | None = None,
    workspace: str | None = None,
    starts: Matches = (),
    resolves: Matches = RESOLVES,
    reopens: Matches = REOPENS,
    feedback: str | tuple[str, ...] = (),
    compat: str | None = None,
    roles: Roles | None = None,
) -> Log:
    """Everything that `evalr report` measures of a reflexr log: runs, chains, their sessions, and the feedback named.

    Args:
        path: of a SQLite store or of envelopes as JSON Lines, or the address of a PostgreSQL store.
        strict: raise RecordError at the first record that cannot be used, rather than count it.
        tenant: only this tenant's; row-level security needs it. A wire log is read as this tenant's.
        workspace: only this one.
        starts: the first events of eligible chains; by default those of applications, so that ticks do not count.
        resolves: the events that resolve a chain, and close its session.
        reopens: the events that open it again.
        feedback: which feedback is verdicts of which measure, as in `resolution=completion`; one or several.
        compat: "reflexr": chains of any beginning are eligible where `starts` names none.
        roles: which role an actor has; see `actor_role` for the default.

    Raises:
        LogError: there is no such store.
        InputError: a setting that makes no sense.
    """
    any_start = check_compat(compat) is not None and not starts
    first = starts_of(("*",) if any_start else starts)
    resolving, reopening = Matcher(resolves, name="resolves"), Matcher(reopens, name="reopens")
    choices = (feedback,) if isinstance(feedback, str) else tuple(feedback)
    labels = [feedback_choice(text, verdict_types()) for text in choices]
    role = role_reader(roles)
    rules = session_rules(resolves, roles=roles)

    def types(type_name: str, *, runs: bool, chains: bool) -> bool:
        if runs and of_runs(type_name):
            return True
        return chains and (may_begin(type_name) or resolving.could_be(type_name) or reopening.could_be(type_name))

    def wanted(log: NeededLog) -> Wanted:
        # A session is of everything that happened, and so is what was known when feedback was given.
        named = {}
        if log.needs(Chain) or log.needs(Session):
            named = named_events(first, resolving, reopening, reopens)
        if labels or log.needs(Session):
            return Wanted(tenant, workspace, every_type, named)
        return Wanted(tenant, workspace, partial(types, runs=log.needs(RuleRun), chains=log.needs(Chain)), named)

    def items(found: Found, log: NeededLog) -> Iterator[Item]:
        for chain in found.chains:
            ended = partial(until_end, workspace=chain[0].workspace, ends=found.ends)
            if log.needs(RuleRun):
                for run in runs_in(chain, found.rules, role, partial(skip, log)):
                    log.records += 1
                    yield ended(run)
            for label in labels:
                yield from feedback_in(chain, label, rules=rules, role=role, log=log)  # type: ignore[misc]
            if log.needs(Chain) or log.needs(Session):
                yield from map(ended, of_chain(chain, log))

    def of_chain(chain: list[Envelope], log: NeededLog) -> Iterator[Input]:
        if begins(chain, first, log):
            log.records += 1
            if log.needs(Chain):
                yield chain_of(chain, resolving, reopening, role)
            if log.needs(Session):
                log.derived += log.needs(Chain)
                yield rules.session(chain)

    straight = partial(runs_straight, wanted=Wanted(tenant, workspace, of_runs), role=role)
    settings: dict[str, Any] = {"tenant": tenant, "workspace": workspace, "roles": roles, **rules.settings}
    settings |= {"starts": ("*",) if any_start else starts, "reopens": reopens, "feedback": choices, "compat": compat}
    return log_of(path, items, wanted, strict=strict, settings=settings, holds_results=bool(labels), straight=straight)

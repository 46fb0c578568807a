"""reflexr's own numbers, by its own definitions: distinct runs, at least once ever; first resolutions alone."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import timedelta
from os import PathLike, fspath
from typing import NamedTuple

from evalr.logs.log import Log
from evalr_reflexr.asking import may_begin
from evalr_reflexr.envelopes import Envelope, fact_of
from evalr_reflexr.matching import Matcher, Matches
from evalr_reflexr.reading import NAME, Wanted, fill
from evalr_reflexr.rules import OPERATORS
from evalr_reflexr.runs import run_of
from evalr_reflexr.scratch import Scratch
from evalr_reflexr.stores import MissingWorkspaceError, find_store


class RuleOutcomes(NamedTuple):
    """How many different runs of a rule there were, and to how many something happened at least once."""

    rule: str
    runs: int
    succeeded: int
    dead_lettered: int
    retried: int
    intervened: int

    @property
    def dead_letter_rate(self) -> float:
        """Of all runs; 0 where there are none."""
        return self._of_runs(self.dead_lettered)

    @property
    def retry_rate(self) -> float:
        """Of all runs; 0 where there are none."""
        return self._of_runs(self.retried)

    @property
    def intervention_rate(self) -> float:
        """Of all runs; 0 where there are none."""
        return self._of_runs(self.intervened)

    def _of_runs(self, count: int) -> float:
        return count / self.runs if self.runs else 0.0


COUNTED = {
    "rule_fired": "runs",
    "run_succeeded": "succeeded",
    "run_dead_lettered": "dead_lettered",
    "run_retrying": "retried",
    "run_requeued": "intervened",
    "run_skipped": "intervened",
    "run_cancelled": "intervened",
}


def rule_outcomes(
    path: str | PathLike[str], *, tenant: str | None = None, workspace: str | None = None
) -> dict[str, RuleOutcomes]:
    """What `reflexr.evals.rule_outcomes` says of a workspace, by rule, in the time and memory of a query.

    Of several workspaces it is the sums, runs of one id in two of them counted as two. What cannot be read is left out.

    Args:
        path: of a SQLite store or of envelopes as JSON Lines, or the address of a PostgreSQL store.
        tenant: only this tenant's.
        workspace: only this one.

    Returns:
        Rules that have facts about runs. None where there is no such workspace, as reflexr has it.

    Raises:
        LogError: there is no such store.
    """

    def rows(envelopes: Iterator[Envelope]) -> Iterator[tuple[str, str, str]]:
        for envelope in envelopes:
            what = COUNTED[envelope.fact or ""]
            rule, run = envelope.text_field("rule"), run_of(envelope)
            counts = what != "intervened" or envelope.actor["kind"] in OPERATORS
            if counts and rule is not None and run is not None:
                yield rule, what, envelope.workspace.key(run)

    def types(type_name: str) -> bool:
        return fact_of(type_name) in COUNTED

    counts: dict[str, dict[str, int]] = {}
    with closing(sqlite3.connect("", isolation_level=None)) as db:
        db.execute("CREATE TABLE facts (rule TEXT, what TEXT, run TEXT)")
        db.execute("BEGIN")
        with find_store(path).opened() as store:
            found = store.envelopes(unaccounted(path), tenant=tenant, workspace=workspace, types=types)
            with suppress(MissingWorkspaceError):
                db.executemany(_INSERT, rows(found))
        for rule, what, count in db.execute(_COUNT):
            counts.setdefault(rule, {})[what] = count
    names = RuleOutcomes._fields[1:]
    return {rule: RuleOutcomes(rule, *(found.get(name, 0) for name in names)) for rule, found in sorted(counts.items())}


_INSERT = "INSERT INTO facts VALUES (?, ?, ?)"
_COUNT = "SELECT rule, what, count(*) FROM (SELECT DISTINCT rule, what, run FROM facts) GROUP BY rule, what"


def time_to_resolution(
    path: str | PathLike[str], *, resolves: Matches, tenant: str | None = None, workspace: str | None = None
) -> dict[str, timedelta]:
    """What `reflexr.evals.time_to_resolution` says: from a chain's first event to the first that resolves it.

    Chains that are not resolved are missing, so that its mean is of quick ones; see `chains` for all of them.

    Args:
        path: as for `rule_outcomes`.
        resolves: the events that resolve a chain.
        tenant: only this tenant's.
        workspace: only this one.

    Returns:
        The times by the key of the chain, such as `acme/prod/evt_1`.

    Raises:
        LogError: there is no such store.
    """
    resolving = Matcher(resolves, name="resolves")

    def types(type_name: str) -> bool:
        return may_begin(type_name) or resolving.could_be(type_name)

    found: dict[str, timedelta] = {}
    wanted = Wanted(tenant, workspace, types)
    with Scratch() as scratch, suppress(MissingWorkspaceError):
        for chain in fill(scratch, find_store(path), wanted, unaccounted(path)).chains:
            first = chain[0]
            if first.id != first.chain:
                continue
            resolved = next((envelope for envelope in chain if resolving(envelope)), None)
            if resolved is not None:
                found[first.key] = resolved.at - first.at
    return found


def unaccounted(path: str | PathLike[str]) -> Log:
    """A log whose account nobody asks for."""
    return Log(fspath(path), NAME, lambda log: iter(()))

"""reflexr's own numbers, by its own definitions: distinct runs, at least once ever; first resolutions alone."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from datetime import timedelta
from os import PathLike, fspath
from typing import NamedTuple

from evalr.logs.log import Log
from evalr.logs.reasons import Reason
from evalr_reflexr.asking import may_begin
from evalr_reflexr.envelopes import Workspace, fact_of, read_time
from evalr_reflexr.matching import Matcher, Matches
from evalr_reflexr.reading import NAME, Wanted, fill
from evalr_reflexr.rules import OPERATORS
from evalr_reflexr.scratch import Scratch
from evalr_reflexr.stores import MissingWorkspaceError, Row, find_store


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
    numbers: dict[Workspace, int] = {}

    def counted(rows: Iterator[Row]) -> Iterator[tuple[str, str, int, str]]:
        for place, _, type_name, (rule, run, firing, actor) in rows:
            what = COUNTED[fact_of(type_name) or ""]
            run = run or firing
            if isinstance(rule, str) and isinstance(run, str) and (what != "intervened" or actor in OPERATORS):
                yield rule, what, numbers.setdefault(place, len(numbers)), run

    counts: dict[str, dict[str, int]] = {}
    with closing(sqlite3.connect("", isolation_level=None)) as db:
        db.execute("CREATE TABLE facts (rule TEXT, what TEXT, workspace INTEGER, run TEXT)")
        db.execute("BEGIN")
        rows = _rows(path, tenant, workspace, lambda name: fact_of(name) in COUNTED, ("rule", "run", "firing", "actor"))
        db.executemany("INSERT INTO facts VALUES (?, ?, ?, ?)", counted(rows))
        for rule, what, count in db.execute(_COUNT):
            counts.setdefault(rule, {})[what] = count
    names = RuleOutcomes._fields[1:]
    return {rule: RuleOutcomes(rule, *(found.get(name, 0) for name in names)) for rule, found in sorted(counts.items())}


_COUNT = """
    SELECT rule, what, count(*) FROM (SELECT DISTINCT rule, what, workspace, run FROM facts) GROUP BY rule, what
"""


def _rows(
    path: str | PathLike[str],
    tenant: str | None,
    workspace: str | None,
    types: Callable[[str], bool],
    fields: Sequence[str],
) -> Iterator[Row]:
    """Fields of a store; none where there is no such workspace."""
    with find_store(path).opened() as store, suppress(MissingWorkspaceError):
        yield from store.rows(_unaccounted(path), tenant=tenant, workspace=workspace, types=types, fields=fields)


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

    if resolving.by_type_alone:
        return _times_by_type(_rows(path, tenant, workspace, types, ("id", "chain", "at")), resolving)
    found: dict[str, timedelta] = {}
    wanted = Wanted(tenant, workspace, types)
    with Scratch() as scratch, suppress(MissingWorkspaceError):
        for chain in fill(scratch, find_store(path), wanted, _unaccounted(path)).chains:
            first = chain[0]
            resolved = next((envelope for envelope in chain if resolving(envelope)), None)
            if resolved is not None and first.id == first.chain:
                found[first.key] = resolved.at - first.at
    return found


def _times_by_type(rows: Iterator[Row], resolving: Matcher) -> dict[str, timedelta]:
    """The same, where nothing but a few fields is needed: of what begins a chain, and of what resolves it."""
    numbers: dict[Workspace, int] = {}

    def marked(rows: Iterator[Row]) -> Iterator[tuple[int, str, int, bool, str]]:
        for place, seq, type_name, (name, chain, at) in rows:
            resolves = resolving.could_be(type_name)
            if isinstance(chain, str) and isinstance(at, str) and (resolves or name == chain):
                number = numbers.setdefault(place, len(numbers))
                if name == chain:
                    yield number, chain, seq, False, at
                if resolves:
                    yield number, chain, seq, True, at

    found: dict[str, timedelta] = {}
    with closing(sqlite3.connect("", isolation_level=None)) as db:
        db.execute("CREATE TABLE marks (workspace INTEGER, chain TEXT, seq INTEGER, resolves INTEGER, at TEXT)")
        db.execute("BEGIN")
        db.executemany("INSERT INTO marks VALUES (?, ?, ?, ?, ?)", marked(rows))
        db.execute("CREATE INDEX firsts ON marks (workspace, chain) WHERE NOT resolves")
        places = list(numbers)
        for number, chain, begin, _, end in db.execute(_TIMES):
            with suppress(Reason):
                found[places[number].key(chain)] = read_time(end) - read_time(begin)
    return found


# A bare column beside one min() is of the row that has it (sqlite.org/lang_select.html#bareagg).
_TIMES = """
    SELECT workspace, chain, first.at, resolved.seq, resolved.at
    FROM (SELECT workspace, chain, min(seq) AS seq, at FROM marks WHERE resolves GROUP BY workspace, chain) AS resolved
    JOIN marks AS first USING (workspace, chain)
    WHERE NOT first.resolves
    ORDER BY workspace, first.seq
"""


def _unaccounted(path: str | PathLike[str]) -> Log:
    """A log whose account nobody asks for."""
    return Log(fspath(path), NAME, lambda log: iter(()))

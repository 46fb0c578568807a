"""Rule attribution: sessions with a cited rule that succeeded, less those that failed; an association, and no effect.

Each rule counts once a session, whose outcome is that of the row that Reflexio reads last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from evalr.logs.reasons import Reason
from evalr_reflexio.cells import KINDS_OF_CITATION
from evalr_reflexio.compat.account import AskedStore
from evalr_reflexio.compat.cells import json_of
from evalr_reflexio.compat.counted import SESSIONS
from evalr_reflexio.tables import INTERACTIONS, REQUESTS

TOP = 5
CITED = "evalr_cited"
_FEW = 20
"""Where a session is one of so many requests or more, looking up its own is faster than reading all there are."""

Rule = tuple[str, str]
"""(kind, id): a "playbook" and an "agent_playbook" of one id are two rules."""


@dataclass(slots=True)
class _Found:
    """What is known of one rule, in all sessions (None) and in those of each set of request sources."""

    number: int
    title: str = ""
    outcomes: dict[int | None, list[int]] = field(default_factory=dict)


class Rules:
    """The rules that sessions in a period cited; their sessions wait in the temporary database."""

    def __init__(self, asked: AskedStore, found: dict[Rule, _Found], listed: int | None) -> None:
        self._asked, self._found, self._listed = asked, found, listed

    def rows(self, set_number: int | None = None) -> list[dict[str, Any]]:
        """The five rules with the most net sessions. Reflexio leaves the order of equals to chance; here it is none."""
        counted = [(rule, each, *each.outcomes.get(set_number, (0, 0))) for rule, each in self._found.items()]
        counted = [each for each in counted if each[2] or each[3]]
        counted.sort(key=lambda each: (each[3] - each[2], -(each[2] + each[3]), each[0]))
        return [
            {
                "rule_id": name,
                "kind": kind,
                "title": each.title,
                "successes_with": won,
                "failures_with": lost,
                "net_sessions": won - lost,
                "cited_session_ids": self._sessions(each.number, set_number),
            }
            for (kind, name), each, won, lost in counted[:TOP]
        ]

    def _sessions(self, number: int, set_number: int | None) -> list[str]:
        of_set, given = ("", ()) if set_number is None else (" AND set_number = ?", (set_number,))
        query = f"SELECT session_id FROM temp.{CITED} WHERE rule = ?{of_set} ORDER BY rowid LIMIT ?"
        limit = -1 if self._listed is None else self._listed
        return [session for (session,) in self._asked.queries.rows(query, [number, *given, limit])]


def find_rules(asked: AskedStore, listed: int | None, *, by_user: bool) -> Rules:
    """The rules that the sessions of `counted` cite, in requests of their own user or of anybody."""
    found: dict[Rule, _Found] = {}
    asked.queries.temporary(CITED, "rule INTEGER, set_number INTEGER, session_id TEXT", anew=True)
    if asked.store.has(INTERACTIONS, "citations") and asked.store.has(REQUESTS):
        rows = asked.queries.rows(
            "SELECT i.interaction_id, s.user_id, s.session_id, i.citations, s.success, s.set_number "
            f"FROM {_cited_in(asked)} AND {'r.user_id = s.user_id' if by_user else '1'} "
            "WHERE i.citations IS NOT NULL AND i.citations <> '' AND i.citations <> '[]' "
            "ORDER BY s.session_id, i.created_at, i.interaction_id"
        )
        kept = _kept(_count(asked, rows, found), found, listed)
        asked.queries.change_many(f"INSERT INTO temp.{CITED} VALUES (?, ?, ?)", kept)
        asked.queries.change(f"CREATE INDEX temp.{CITED}_rules ON {CITED} (rule)")
    return Rules(asked, found, listed)


def _cited_in(asked: AskedStore) -> str:
    """The interactions of the sessions of `counted`: of few, session by session, and else as they stand in the log."""
    queries = asked.queries
    sessions = next(queries.rows(f"SELECT count(*) FROM temp.{SESSIONS}"))[0]
    if sessions * _FEW < queries.count(REQUESTS):
        requests = queries.by(REQUESTS, "session_id", "s.session_id", "r")
        interactions = queries.by(INTERACTIONS, "request_id", "r.request_id", "i")
        return f"temp.{SESSIONS} s CROSS JOIN {requests} CROSS JOIN {interactions}"
    requests = queries.by(REQUESTS, "request_id", "i.request_id", "r")
    return f"{INTERACTIONS} i CROSS JOIN {requests} CROSS JOIN temp.{SESSIONS} s ON s.session_id = r.session_id"


def citations_of(text: Any) -> list[tuple[Rule, str]]:
    """((kind, id), title) of each citation that Reflexio takes. Raises Reason where the cell is no JSON."""
    found = json_of(text, "citations")
    if not isinstance(found, list):
        return []
    try:
        return [
            ((each["kind"], str(each["real_id"])), str(each.get("title") or ""))
            for each in found
            if isinstance(each, dict) and each.get("kind") in KINDS_OF_CITATION and each.get("real_id")
        ]
    except TypeError:
        raise Reason("unreadable citations") from None


_known = lru_cache(maxsize=1024)(citations_of)
"""For texts: few differ, since few rules are cited together."""


class _Session(NamedTuple):
    """A session that cites rules."""

    success: int
    set_number: int | None
    rules: dict[Rule, None]


def _count(
    asked: AskedStore, rows: Iterable[Sequence[Any]], found: dict[Rule, _Found]
) -> Iterator[tuple[Rule, int | None, str]]:
    """Count the rules of each session once. Yields (rule, set of request sources, session) of each."""
    current = None
    users: dict[str, _Session] = {}
    for interaction, user, session, text, success, set_number in rows:
        if session != current:
            yield from _ended(current, users, found)
            current, users = session, {}
        asked.account.records += 1
        try:
            citations = _known(text) if type(text) is str else citations_of(text)
        except Reason as reason:
            asked.account.skip(str(reason), f"interaction {interaction}")
            continue
        seen = users.get(user)
        if seen is None:
            seen = users[user] = _Session(success, set_number, {})
        for rule, title in citations:
            seen.rules[rule] = None
            known = found.get(rule)
            if known is None:
                known = found[rule] = _Found(len(found))
            if title and not known.title:
                known.title = title
    yield from _ended(current, users, found)


def _ended(
    session: Any, users: dict[str, _Session], found: dict[Rule, _Found]
) -> Iterator[tuple[Rule, int | None, str]]:
    for success, set_number, rules in users.values():
        for rule in rules:
            outcomes = found[rule].outcomes
            for of_set in (None,) if set_number is None else (None, set_number):
                counts = outcomes.get(of_set)
                if counts is None:
                    counts = outcomes[of_set] = [0, 0]
                counts[not success] += 1
            yield rule, set_number, session


def _kept(
    cited: Iterable[tuple[Rule, int | None, str]], found: Mapping[Rule, _Found], listed: int | None
) -> Iterator[tuple[int, int | None, str]]:
    """What of it can be listed: of each rule the first sessions, and the first of each set of request sources."""
    for rule, set_number, session in cited:
        known = found[rule]
        counts = [sum(known.outcomes[of_set]) for of_set in {None, set_number}]
        if listed is None or min(counts) <= listed:
            yield known.number, set_number, session

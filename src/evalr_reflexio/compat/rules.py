"""Rule attribution: sessions with a cited rule that succeeded, less those that failed; an association, and no effect.

Each rule counts once a session, whose outcome is that of the row that Reflexio reads last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, NamedTuple

from evalr.logs.reasons import Reason
from evalr_reflexio.cells import KINDS_OF_CITATION
from evalr_reflexio.compat.account import Asked
from evalr_reflexio.compat.cells import json_of
from evalr_reflexio.compat.counted import SESSIONS
from evalr_reflexio.tables import INTERACTIONS, REQUESTS

TOP = 5
CITED = "evalr_cited"

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

    def __init__(self, asked: Asked, found: dict[Rule, _Found], listed: int | None) -> None:
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


class _Cited(NamedTuple):
    user: str
    session: str
    citations: Sequence[tuple[Rule, str]]
    success: int
    set_number: int | None


def find_rules(asked: Asked, listed: int | None, *, by_user: bool) -> Rules:
    """The rules that the sessions of `counted` cite, in requests of their own user or of anybody."""
    found: dict[Rule, _Found] = {}
    asked.queries.temporary(CITED, "rule INTEGER, set_number INTEGER, session_id TEXT", anew=True)
    if asked.store.has(INTERACTIONS, "citations") and asked.store.has(REQUESTS):
        requests = asked.queries.by(REQUESTS, "session_id", "s.session_id", "r")
        interactions = asked.queries.by(INTERACTIONS, "request_id", "r.request_id", "i")
        rows = asked.queries.rows(
            "SELECT i.interaction_id, s.user_id, s.session_id, i.citations, s.success, s.set_number "
            f"FROM temp.{SESSIONS} s CROSS JOIN {requests} CROSS JOIN {interactions} "
            f"WHERE {'r.user_id = s.user_id' if by_user else '1'} "
            "AND i.citations IS NOT NULL AND i.citations <> '' AND i.citations <> '[]' "
            "ORDER BY s.session_id, i.created_at, i.interaction_id"
        )
        cited = asked.read(rows, _cited, "interaction")
        asked.queries.change_many(f"INSERT INTO temp.{CITED} VALUES (?, ?, ?)", _count(cited, found))
        asked.queries.change(f"CREATE INDEX temp.{CITED}_rules ON {CITED} (rule)")
    return Rules(asked, found, listed)


def _cited(row: Sequence[Any]) -> _Cited:
    _, user, session, text, success, set_number = row
    return _Cited(user, session, citations_of(text), success, set_number)


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


def _count(cited: Iterator[_Cited], found: dict[Rule, _Found]) -> Iterator[tuple[int, int | None, str]]:
    """Count the rules of each session once. Yields (rule, set of request sources, session) to be kept."""
    for _, of_id in groupby(cited, key=lambda each: each.session):
        rules: dict[str, tuple[_Cited, dict[Rule, None]]] = {}
        for each in of_id:
            seen = rules.setdefault(each.user, (each, {}))[1]
            for rule, title in each.citations:
                seen[rule] = None
                known = found.get(rule)
                if known is None:
                    known = found[rule] = _Found(len(found))
                known.title = known.title or title
        for first, seen in rules.values():
            for rule in seen:
                known = found[rule]
                for of_set in {None, first.set_number}:
                    known.outcomes.setdefault(of_set, [0, 0])[not first.success] += 1
                yield known.number, first.set_number, first.session

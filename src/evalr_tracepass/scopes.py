"""Scopes: which traces a pass reads, and how they were chosen."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from hashlib import blake2b

from evalr.errors import InputError
from evalr.inputs import Now, resolve_now, utc_now
from evalr_tracepass.records import Filters, Scope
from evalr_tracepass.storable import storable
from evalr_tracepass.traces import Trace

NO_ID = "no id"
NO_TIME = "no time to filter by"
OTHER = "not in the scope"
NOT_DRAWN = "not drawn into the sample"
NOT_SINCE = "nothing new since the last run"
NOT_ENDED = "may still go on"


def everything() -> Scope:
    """Every trace."""
    return Scope()


def matching(
    *,
    search: str | None = None,
    user: str | None = None,
    errors_only: bool = False,
    since: datetime | None = None,
    until: datetime | None = None,
    last: timedelta | None = None,
    now: Now = utc_now,
) -> Scope:
    """The traces that match all that is given.

    Args:
        search: a text that some turn holds, in any case.
        user: the end user's id.
        errors_only: only traces in which a turn or a tool call failed.
        since: only those that began at that time or later.
        until: only those that began before it.
        last: only those that began in the last so long before `now`, such as `timedelta(hours=24)`.
        now: the reading time.

    Raises:
        InputError: both `since` and `last` are given, or `last` is not positive.
    """
    filters = filters_of(
        search=search, user=user, errors_only=errors_only, since=since, until=until, last=last, now=now
    )
    dated = since is not None or until is not None or last is not None
    return Scope(kind="date_range" if dated else "current_filters", filters=filters)


def filters_of(
    *,
    search: str | None = None,
    user: str | None = None,
    errors_only: bool = False,
    since: datetime | None = None,
    until: datetime | None = None,
    last: timedelta | None = None,
    now: Now = utc_now,
) -> Filters:
    """What `matching` takes, as filters for another scope. `last` becomes the time that it stands for."""
    if last is not None:
        if since is not None:
            raise InputError("since and last both say where the traces begin: pass one of them")
        if last <= timedelta(0):
            raise InputError(f"last={last!r} must be a positive timedelta, such as timedelta(hours=24)")
        since = resolve_now(now) - last
    kept = None if user is None else storable(user)
    return Filters(search=search, user=kept, errors_only=errors_only, since=since, until=until)


def selected(convo_ids: Iterable[str], filters: Filters | None = None) -> Scope:
    """The traces with these ids: picked by hand, so that no rate of theirs speaks for others.

    Ids are kept as a store can hold them, with escapes for what is no character.
    """
    ids = tuple(dict.fromkeys(map(storable, convo_ids)))
    if not ids:
        raise InputError("a selection needs the id of at least one conversation")
    return Scope(kind="conversation" if len(ids) == 1 else "selection", convo_ids=ids, filters=filters or Filters())


def since_last_run(since: datetime | None, filters: Filters | None = None) -> Scope:
    """What is new since a time: turns at that time or later, of old conversations, too. None is since ever."""
    return Scope(kind="since_last_run", since=since, filters=filters or Filters())


def random_sample(fraction: float, *, seed: int | None = None, filters: Filters | None = None) -> Scope:
    """Each conversation with that chance, by its user and id: the same ones for the same seed, wherever it is drawn.

    Without a seed one is drawn, and kept in the scope.
    """
    if isinstance(fraction, bool) or not 0 < fraction <= 1:
        raise InputError(f"fraction={fraction!r} must be above 0 and at most 1")
    drawn = secrets.randbelow(2**31) if seed is None else seed
    return Scope(kind="random_sample", fraction=fraction, seed=drawn, filters=filters or Filters())


Refusal = Callable[[Trace], str | None]


def refusal_of(scope: Scope) -> Refusal:
    """A function of a trace: why a scope leaves it out, None where it takes it."""
    filters = scope.filters
    folded = filters.search.casefold() if filters.search else None
    ids = frozenset(map(storable, scope.convo_ids))
    user = None if filters.user is None else storable(filters.user)
    has_ids = scope.kind in ("conversation", "selection")
    fraction, key = scope.fraction, b"%d" % (scope.seed or 0)
    dated = filters.since is not None or filters.until is not None

    def refusal(trace: Trace) -> str | None:
        if not trace.convo_id:
            return NO_ID
        if has_ids and storable(trace.convo_id) not in ids:
            return OTHER
        if user is not None and storable(trace.user) != user:
            return OTHER
        if dated:
            if trace.began is None:
                return NO_TIME
            if (filters.since is not None and trace.began < filters.since) or (
                filters.until is not None and trace.began >= filters.until
            ):
                return OTHER
        by_its_end = _by_its_end(scope, trace.ended)
        if by_its_end is not None:
            return by_its_end
        if filters.errors_only and not trace.has_error:
            return OTHER
        if folded is not None and not trace.says(folded):
            return OTHER
        if fraction is not None and _position(trace, key) >= fraction:
            return NOT_DRAWN
        return None

    return refusal


def _by_its_end(scope: Scope, ended: datetime | None) -> str | None:
    if scope.since is None and scope.ended_since is None and scope.ended_until is None:
        return None
    if ended is None:
        return NO_TIME
    if scope.ended_until is not None and ended >= scope.ended_until:
        return NOT_ENDED
    return NOT_SINCE if any(since is not None and ended < since for since in (scope.since, scope.ended_since)) else None


def _position(trace: Trace, key: bytes) -> float:
    """From 0 to 1, by the user and the id alone."""
    spelled = f"{len(trace.user)}:{trace.user}{trace.convo_id}".encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(spelled, digest_size=7, salt=key[-16:]).digest(), "big") / 2**56

"""From a store to its chains, one by one, and from chains to inputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from os import PathLike
from typing import Any, NamedTuple

from evalr.estimates.words import count_words
from evalr.inputs import Input
from evalr.logs.log import Item, Log
from evalr.quoting import quoted
from evalr_reflexr.envelopes import NAMESPACE, Envelope, Workspace
from evalr_reflexr.matching import Matcher
from evalr_reflexr.runs import RuleFacts
from evalr_reflexr.scratch import Scratch
from evalr_reflexr.stores import Store, TypeFilter, find_store

NAME = "reflexr"
NAMED = 4


class Wanted(NamedTuple):
    """What of a store is to be read."""

    tenant: str | None
    workspace: str | None
    types: TypeFilter


class Found(NamedTuple):
    """The chains of a store, what it says of its rules, and until when each workspace was written, where it ends."""

    chains: Iterator[list[Envelope]]
    rules: RuleFacts
    ends: Mapping[Workspace, datetime]


def every_type(type_name: str) -> bool:
    """No filter."""
    return True


def log_of(
    path: str | PathLike[str],
    items: Callable[[Found, Log], Iterator[Any]],
    wanted: Wanted,
    *,
    strict: bool,
    holds_results: bool = False,
    chain: Callable[[Envelope], str | None] | None = None,
) -> Log:
    """A log of what `items` makes of the chains of a store; nothing is read before it is iterated over.

    Args:
        path: of the store.
        items: makes them.
        wanted: what is read.
        strict: see `Log`.
        holds_results: see `Log`.
        chain: what envelopes are put together by, where it is not their chain; those for which it is None are left out.
    """
    store = find_store(path)

    def read(log: Log) -> Iterator[Item]:
        with Scratch() as scratch:
            yield from items(fill(scratch, store, wanted, log, chain), log)

    return Log(store.path, NAME, read, strict=strict, holds_results=holds_results)


def fill(
    scratch: Scratch,
    store: Store,
    wanted: Wanted,
    log: Log,
    chain: Callable[[Envelope], str | None] | None = None,
) -> Found:
    """Read what is wanted of a store, all of it, and let go of the store."""
    rules, ends, unknown = RuleFacts(), dict[Workspace, datetime](), Counter[str]()

    def noted(envelopes: Iterable[Envelope]) -> Iterator[Envelope]:
        for envelope in envelopes:
            rules.take(envelope)
            if not goes_on:
                ends[envelope.workspace] = max(envelope.at, ends.get(envelope.workspace, envelope.at))
            if envelope.fact is None and envelope.type.startswith(f"{NAMESPACE}:"):
                unknown[envelope.type] += 1
            if chain is None:
                yield envelope
            elif (name := chain(envelope)) is not None:
                yield envelope._replace(chain=name)

    with store.opened() as opened:
        goes_on = opened.goes_on
        scratch.fill(noted(opened.envelopes(log, tenant=wanted.tenant, workspace=wanted.workspace, types=wanted.types)))
    if unknown:
        names = ", ".join(f"{quoted(name)} ({count:,})" for name, count in unknown.most_common(NAMED))
        log.notes.append(f"{count_words(len(unknown), 'kind')} of event that this reader does not know: {names}")
    return Found(scratch.chains(), rules, ends)


def begins(chain: list[Envelope], starts: Matcher, log: Log) -> bool:
    """Whether a chain is one of those that are asked for; it is counted where it is not.

    One whose first event is not in the log, or cannot be read, has no known beginning.
    """
    first = chain[0]
    if first.id != first.chain:
        log.records += 1
        log.skip("chain whose first event is missing", f"{quoted(first.chain)} of {first.workspace}")
        return False
    if not starts(first):
        log.records += 1
        log.leave_out(f"not eligible, as it starts with {quoted(first.type)}", f"{quoted(first.id)}")
        return False
    return True


def until_end(given: Input, workspace: Workspace, ends: Mapping[Workspace, datetime]) -> Input:
    """An input of a log that ends, read when that ended: what came then is not known."""
    end = ends.get(workspace)
    return given if end is None else given.model_copy(update={"read_at": end})

"""From a store to its chains, one by one, and from chains to inputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from os import PathLike
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from evalr.estimates.words import choice_words, count_words
from evalr.inputs import Input
from evalr.logs.log import Item, Log
from evalr.quoting import quoted, safe_text
from evalr_reflexr.envelopes import NAMESPACE, Envelope, Workspace
from evalr_reflexr.matching import Matcher, same_type
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
    named: Mapping[str, Matcher] = MappingProxyType({})
    """Events that somebody has named, by the name of the option: types among them that are not there are told."""


Straight: TypeAlias = Callable[["NeededLog", Any], Collection[type[Input]]]
"""Counts what it can of a log into a report's reading, without making inputs of it; returns of which types of input."""


@dataclass
class NeededLog(Log):
    """A log of which a report reads what its measures need, and no more."""

    needed: tuple[type[Input], ...] | None = field(default=None, init=False)
    straight: Straight | None = field(default=None, repr=False)

    def needs(self, kind: type[Input]) -> bool:
        """Whether inputs of a type are to be read: all are, where nobody says what is needed."""
        return self.needed is None or any(issubclass(kind, each) for each in self.needed)

    def read_into(self, reading: Any, progress: Any) -> None:
        """What a report calls, with its measures, to have everything counted once; see `evalr.reports`."""
        self.needed = tuple({track.measure.reads for track in reading.tracks if track.evaluator is not None})
        counted = () if self.straight is None or self._begun else self.straight(self, reading)
        self.needed = tuple(kind for kind in self.needed if kind not in counted)
        if self.needed or self.holds_results or not counted:
            reading.read_each(self, progress)
        else:
            iter(self)  # it is read once, this way or another


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
    items: Callable[[Found, NeededLog], Iterator[Any]],
    wanted: Wanted | Callable[[NeededLog], Wanted],
    *,
    strict: bool,
    settings: Mapping[str, Any],
    holds_results: bool = False,
    chain: Callable[[Envelope], str | None] | None = None,
    straight: Callable[[Store, NeededLog, Any], Collection[type[Input]]] | None = None,
) -> NeededLog:
    """A log of what `items` makes of the chains of a store; nothing is read before it is iterated over.

    Args:
        path: of the store.
        items: makes them.
        wanted: what is read; a function where that depends on what is needed.
        strict: see `Log`.
        settings: see `Log`; those that nobody chose need not be among them.
        holds_results: see `Log`.
        chain: what envelopes are put together by, where it is not their chain; those for which it is None are left out.
        straight: the fast way, for a report.
    """
    store = find_store(path)

    def read(log: Log) -> Iterator[Item]:
        asked = wanted if isinstance(wanted, Wanted) else wanted(found)
        with Scratch() as scratch:
            yield from items(fill(scratch, store, asked, log, chain), found)

    found = NeededLog(
        store.path,
        NAME,
        read,
        strict=strict,
        holds_results=holds_results,
        settings=settings,
        straight=None if straight is None else partial(straight, store),
    )
    return found


def fill(
    scratch: Scratch,
    store: Store,
    wanted: Wanted,
    log: Log,
    chain: Callable[[Envelope], str | None] | None = None,
) -> Found:
    """Read what is wanted of a store, all of it, and let go of the store."""
    rules, unknown, types = RuleFacts(), Counter[str](), dict[str, bool]()

    def noted(envelopes: Iterable[Envelope]) -> Iterator[Envelope]:
        for envelope in envelopes:
            rules.take(envelope)
            if envelope.fact is None and envelope.type.startswith(f"{NAMESPACE}:"):
                unknown[envelope.type] += 1
            if chain is None:
                yield envelope
            elif (name := chain(envelope)) is not None:
                yield envelope._replace(chain=name)

    def is_wanted(type_name: str) -> bool:
        if type_name not in types:
            types[type_name] = wanted.types(type_name)
        return types[type_name]

    with store.opened() as opened:
        scratch.fill(noted(opened.envelopes(log, tenant=wanted.tenant, workspace=wanted.workspace, types=is_wanted)))
        ends = opened.ends
    if unknown:
        names = ", ".join(f"{quoted(name)} ({count:,})" for name, count in unknown.most_common(NAMED))
        log.notes.append(f"{count_words(len(unknown), 'kind')} of event that this reader does not know: {names}")
    log.notes += [
        f"no event here is of type {quoted(text)} ({option}); {choice_words(text, map(safe_text, sorted(types)))}"
        for option, matcher in wanted.named.items()
        for text in matcher.texts
        if not any(same_type(text, type_name) for type_name in types)
    ]
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

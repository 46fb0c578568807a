"""Rerunning: of the rows of a plan, which have been read already, and by which models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from evalr_tracepass.records import Account, Row
from evalr_tracepass.storable import storable, storable_row
from evalr_tracepass.stores.store import ResultStore

_TOGETHER = 2_000
"""Rows that are looked up together."""


def already_read(results: ResultStore, account: Account, convo_ids: Sequence[str]) -> set[str]:
    """Which of these conversations have results of any pass: what to tell before they are read again."""
    known = results.answered(account, [storable(each) for each in convo_ids])
    return {each.convo_id for each in known if not each.too_long}


def only_new(rows: Iterable[Row], results: ResultStore, account: Account) -> Iterator[Row]:
    """Rows as they are, each with those of its models that have not read it; none of a row that all have read.

    A row has been read by a model where a completed result has its id, its end user, the version of its transform and,
    where both have one, the hash of its text: what has changed since is new. What failed is new, too, unless it was too
    long, as it would be again.
    """
    stream = map(storable_row, rows)  # as they are stored
    while together := list(islice(stream, _TOGETHER)):
        convo_ids = list(dict.fromkeys(row.item.convo_id for row in together))
        known: dict[_What, set[str]] = {}
        too_long: dict[_What, set[str]] = {}
        for each in results.answered(account, convo_ids):
            what = (each.user, each.convo_id, each.request_id, each.transform_version, each.model)
            (too_long if each.too_long else known).setdefault(what, set()).add(each.input_hash)
        for row in together:
            item = row.item
            asked = [
                (item.user, item.convo_id, item.request_id, item.transform_version, model)
                for model in item.selected_models
            ]
            left = tuple(
                what[-1]
                for what in asked
                if not (_has(known.get(what), item.input_hash) or _fails_again(too_long.get(what), row))
            )
            if left == item.selected_models:
                yield row
            elif left:
                yield row._replace(item=item._replace(selected_models=left))


_What = tuple[str, str, str, int, str]
"""Whose row, and which; the version of its transform, and the model."""


def _fails_again(hashes: set[str] | None, row: Row) -> bool:
    """Whether a row was too long before, and is the same text, or is too long still. One without a hash may fit now."""
    return hashes is not None and (row.error is not None or row.item.input_hash in hashes)


def _has(hashes: set[str] | None, input_hash: str) -> bool:
    return hashes is not None and (not input_hash or input_hash in hashes or "" in hashes)

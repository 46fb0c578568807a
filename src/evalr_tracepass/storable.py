"""Texts that every store and service can hold: ids of logs may have what PostgreSQL, or UTF-8, does not know."""

from __future__ import annotations

from functools import lru_cache

from evalr_tracepass.records import Item, Row


def storable(text: str) -> str:
    """A text with escapes for NUL and for halves of surrogate pairs, which are not characters."""
    if text.isascii():
        return text.replace("\0", "\\x00") if "\0" in text else text
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")


@lru_cache(maxsize=1_000)
def is_storable(label: str) -> bool:
    """Whether a label, of which there are few, can be held as it is."""
    return storable(label) == label


def storable_row(row: Row) -> Row:
    """A row whose ids can be held. What its text is, is the service's to read."""
    item = row.item
    if is_plain(f"{item.request_id}{item.user}{item.release}"):
        return row
    return row._replace(item=storable_item(item))


def storable_item(item: Item) -> Item:
    """A row's mapping with ids that can be held; the request's id holds those of its conversation and turn."""
    return item._replace(
        request_id=storable(item.request_id),
        convo_id=storable(item.convo_id),
        event_id=storable(item.event_id),
        span_id=storable(item.span_id),
        user=storable(item.user),
        release=storable(item.release),
        transform_id=storable(item.transform_id),
    )


def is_plain(text: str) -> bool:
    """Whether there is nothing to escape, as far as can be told at once."""
    return text.isascii() and "\0" not in text

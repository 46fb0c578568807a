"""`--where` and its kin: which conversations, as people write it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from difflib import get_close_matches
from typing import Any

from evalr.cli.texts import read_length, read_time
from evalr.errors import InputError
from evalr.inputs import resolve_now, utc_now
from evalr.quoting import safe_text
from evalr_tracepass.records import Filters
from evalr_tracepass.scopes import filters_of

WHERE_RULE = (
    "write --where as a text that some turn holds, as user=ID, as errors, or as since=TIME, until=TIME or last=24h"
)
KNOWN_NAMES = "user, since, until, last and search"

ERRORS = frozenset({"errors", "errors only", "errors-only", "errors=true"})


def _text(value: str) -> str:
    if not value.strip():
        raise InputError("there is nothing after the =")
    return value


READ: dict[str, Callable[[str], Any]] = {
    "search": _text,
    "user": _text,
    "since": read_time,
    "until": read_time,
    "last": read_length,
}
"""What may stand before a =, and how the rest is read."""

MEANT = {
    "text": "search",
    "userid": "user",
    "enduser": "user",
    "enduserid": "user",
    "from": "since",
    "after": "since",
    "to": "until",
    "before": "until",
    "errors": "errors",
    "error": "errors",
}
"""Other words that people use for the same, without their signs between letters."""

_NAME = re.compile(r"[a-z][a-z _-]{0,15}|[\w.-]+", re.IGNORECASE)
"""What may be meant as a name: a word, or a few such as "end user"."""


def read_filters(
    where: Sequence[str] = (),
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    last: timedelta | None = None,
    now: datetime | None = None,
) -> Filters:
    """What conversations must match: the filters that are written out, and the times of options of their own.

    Raises:
        InputError: one cannot be read, is said twice, or is close to one that can be; or no time matches.
    """
    errors_only = False
    found: dict[str, Any] = {"since": since, "until": until, "last": last}
    for text in where:
        if text.strip().lower() in ERRORS:
            errors_only = True
            continue
        name, value = _read(text)
        if found.get(name) is not None:
            raise InputError(f"--where {safe_text(text)!r}: that is said already; {WHERE_RULE}")
        found[name] = value
    filters = filters_of(errors_only=errors_only, now=resolve_now(now or utc_now), **found)
    if filters.since is not None and filters.until is not None and filters.since >= filters.until:
        raise InputError(
            f"nothing began at {filters.since.isoformat()} or later and before {filters.until.isoformat()}: the times "
            "are the wrong way round"
        )
    return filters


def _read(text: str) -> tuple[str, Any]:
    """`user=ada` as a name and what it says; a text that names nothing is one to search for."""
    before, equals, value = text.partition("=")
    name = before.strip().lower()
    if not equals or not _NAME.fullmatch(name):
        if not text.strip():
            raise InputError(f"--where is given nothing; {WHERE_RULE}")
        return "search", text
    if name not in READ:
        plain = re.sub("[ _-]", "", name)
        close = [MEANT[plain]] if plain in MEANT else get_close_matches(name, READ, n=1, cutoff=0.7)
        if " " in name and not close:
            return "search", text  # a phrase
        meant = close[0] if close == ["errors"] else f"{close[0]}={value}" if close else ""
        asked = f"did you mean {safe_text(meant)!r}? " if meant else ""
        raise InputError(
            f"--where {safe_text(text)!r}: {asked}Before a = there may be {KNOWN_NAMES}; for a text that holds a =, "
            f"write {safe_text(f'search={text}')!r}"
        )
    try:
        return name, READ[name](value if name in ("search", "user") else value.strip())
    except InputError as error:
        raise InputError(f"--where {safe_text(text)!r}: {error}") from error

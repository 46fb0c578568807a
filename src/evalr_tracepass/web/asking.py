"""What an address asks of a list, read from its query and written back into links."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol
from urllib.parse import urlencode

from evalr_tracepass.records import Filters
from evalr_tracepass.stores.store import LATEST

ALL, FLAGGED = "all", "flagged"

LONGEST = 400
"""Characters of a filter."""


class Query(Protocol):
    """The fields of an address or a form, each of which may stand several times."""

    def get(self, name: str, default: str = "", /) -> str:
        """A field's text, the last one where there are several."""

    def getlist(self, name: str, /) -> list[str]:
        """All of a field's texts."""


class Asked(NamedTuple):
    """Which conversations a list shows.

    Attributes:
        search: a text that some turn holds.
        user: an end user's id.
        errors: only conversations in which something failed.
        show: "all", "flagged", or the id of a signal that fired.
        passes: "latest", "all", or the id of one pass.
        page: from 1.
        visible: whether the rows of the page start ticked.
        to: of one conversation, the id of a signal whose turn is to be shown.
    """

    search: str = ""
    user: str = ""
    errors: bool = False
    show: str = ALL
    passes: str = LATEST
    page: int = 1
    visible: bool = False
    to: str = ""

    @property
    def filters(self) -> Filters:
        """What of it is said of the traces themselves."""
        return Filters(search=self.search or None, user=self.user or None, errors_only=self.errors)

    @property
    def is_filtered(self) -> bool:
        """Whether some conversations are not shown."""
        return self.filters != Filters() or self.show != ALL

    def fields(self, **changed: Any) -> list[tuple[str, str]]:
        """As the fields of a form; what is as it starts is left out."""
        asked = self._replace(**changed)
        named = [
            ("q", asked.search),
            ("user", asked.user),
            ("errors", "1" if asked.errors else ""),
            ("show", "" if asked.show == ALL else asked.show),
            ("pass", "" if asked.passes == LATEST else asked.passes),
            ("page", "" if asked.page == 1 else str(asked.page)),
            ("visible", "1" if asked.visible else ""),
            ("to", asked.to),
        ]
        return [(name, value) for name, value in named if value]

    def link(self, path: str = "/", **changed: Any) -> str:
        """The address of a list."""
        return address(path, self.fields(**changed))


def asked_of(query: Query) -> Asked:
    """What a query asks; what cannot be read stands as it starts."""
    page = query.get("page", "1")
    return Asked(
        query.get("q", "").strip()[:LONGEST],
        query.get("user", "").strip()[:LONGEST],
        query.get("errors", "") == "1",
        query.get("show", "") or ALL,
        query.get("pass", "") or LATEST,
        int(page) if page.isascii() and page.isdigit() and 0 < len(page) < 8 and int(page) else 1,
        query.get("visible", "") == "1",
    )


def address(path: str, fields: list[tuple[str, str]]) -> str:
    """A path with a query, if there is one."""
    return f"{path}?{urlencode(fields, errors='replace')}" if fields else path

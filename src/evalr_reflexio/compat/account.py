"""What every answer has in common: a database that is asked, and an account of rows that would break Reflexio's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from evalr.errors import LogError
from evalr.logs.log import Log
from evalr.logs.reasons import Reason
from evalr_reflexio.config import Config
from evalr_reflexio.places import config_for
from evalr_reflexio.queries import Queries
from evalr_reflexio.store import Store

T = TypeVar("T")


class AskedStore:
    """A store that one answer is made of.

    Args:
        store: the log.
        account: takes count of rows that are skipped.

    Raises:
        LogError: the log holds answers of the HTTP API.
    """

    def __init__(self, store: Store, account: Log | None) -> None:
        if store.over_http:
            raise LogError(
                f"{store.path} holds answers of Reflexio's HTTP API, which are its own numbers: they are computed anew "
                "of its database alone"
            )
        self.store = store
        self.queries: Queries = store.queries
        self.account = store.account() if account is None else account

    def read(self, rows: Iterable[Sequence[Any]], read: Callable[[Sequence[Any]], T], noun: str) -> Iterator[T]:
        """What `read` makes of each row; one for which it raises Reason is skipped, counted and named by its id."""
        for row in rows:
            self.account.records += 1
            try:
                yield read(row)
            except Reason as reason:
                self.account.skip(str(reason), f"{noun} {row[0]}")

    def config(self, given: Config | None) -> Config:
        """The settings given, or those found beside the log."""
        return config_for(self.store, given)

    def fields(self, table: str, names: Sequence[str], alias: str = "t") -> str:
        """Columns to select; NULL for those that a release does not have."""
        return ", ".join(f"{alias}.{name}" if self.store.has(table, name) else "NULL" for name in names)

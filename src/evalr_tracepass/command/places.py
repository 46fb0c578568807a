"""Where passes and results are kept, opened by their addresses, for one account."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from evalr.errors import InputError, MissingExtraError, StoreError
from evalr.quoting import safe_text
from evalr_tracepass.command.options import DEFAULT_ACCOUNT, DEFAULT_STORE, Place
from evalr_tracepass.records import Account, Pass, Result
from evalr_tracepass.stores.clickhouse_ddl import clickhouse_ddl
from evalr_tracepass.stores.opening import clickhouse_results, open_store
from evalr_tracepass.stores.store import PassStore, ResultStore

PASSWORD = "CLICKHOUSE_PASSWORD"

SERVERS = {"clickhouse": "http", "clickhouses": "https"}
EMBEDDED = "chdb"
"""ClickHouse's engine in this process, with its files in a folder."""

DEFAULT_DATABASE = "evalr"

RESULTS_RULE = "results are kept in clickhouse://host:8123/database, or clickhouses:// where that is encrypted"


@dataclass(frozen=True)
class Kept:
    """Open stores, on behalf of one account."""

    store: PassStore
    results: ResultStore
    account: Account
    place: Place

    def get_pass(self, name: str) -> Pass:
        """The pass whose id begins so; "latest" is the latest of all.

        Raises:
            InputError: there is none, or there are several.
        """
        found = self.store.passes(self.account, limit=1_000)
        if name == "latest":
            matching = found[:1]
        else:
            matching = [each for each in found if each.id == name] or [
                each for each in found if each.id.startswith(name)
            ]
        if len(matching) == 1:
            return matching[0]
        if not matching:
            raise InputError(
                f"there is no pass {safe_text(name)!r} of this account: see "
                f"`evalr tracepass passes{options_of(self.place)}`"
            )
        raise InputError(f"{len(matching)} passes begin with {safe_text(name)!r}: write more of the id")

    def passes_named(self, name: str) -> str:
        """Which passes a store is asked for: "latest", "all", or the whole id of the one whose id begins so."""
        return name if name in ("latest", "all") else self.get_pass(name).id

    def results_of(self, name: str, **options: Any) -> Iterator[Result]:
        """The results of "latest", "all", or one pass."""
        return self.results.results(self.account, passes=self.passes_named(name), **options)


def is_there(place: Place) -> bool:
    """Whether there is a store: a file that nobody has made is none, and a server is not asked."""
    return "://" in place.store or Path(place.store).exists()


def account_of(place: Place) -> Account:
    """Whose traces and results options name."""
    return Account(place.account, place.org).checked()


@contextmanager
def opened(place: Place, *, new: bool = False, results: bool = True) -> Iterator[Kept]:
    """Stores, for as long as they are needed.

    Args:
        place: where, and whose.
        new: whether a file is made where there is none.
        results: whether they are asked for: where they are kept apart, that is left alone otherwise.

    Raises:
        InputError: there is no such file, or an address that is none.
        StoreError: it cannot be opened.
    """
    account = account_of(place)
    if not new and not is_there(place):
        raise InputError(
            f"there is no store {safe_text(place.store, longest=200)}: `evalr tracepass run` makes one, and --store "
            "says where another is"
        )
    with ExitStack() as stack:
        store = open_store(place.store)
        stack.callback(store.close)
        kept: ResultStore = store
        if results and place.results_in is not None:
            client, database = clickhouse_client(place.results_in)
            stack.callback(client.close)
            kept = clickhouse_results(client, database=database)
        yield Kept(store, kept, account, place)


def clickhouse_client(address: str) -> tuple[Any, str]:
    """A client for the server at an address, and the name of its database.

    Raises:
        InputError: it is no address of ClickHouse.
        StoreError: nobody answers there, or lets us in. The message holds no password.
        MissingExtraError: clickhouse-connect is not installed.
    """
    try:
        parts = urlsplit(address)
        scheme, host, port = parts.scheme, parts.hostname, parts.port
    except ValueError as error:
        raise InputError(f"--results: it cannot be read as an address: {RESULTS_RULE}") from error
    if scheme not in SERVERS and scheme != EMBEDDED:
        raise InputError(f"--results {_shown(address)!r}: {RESULTS_RULE}")
    if scheme != EMBEDDED and not host:
        raise InputError(f"--results {_shown(address)!r} names no host: {RESULTS_RULE}")
    database = DEFAULT_DATABASE if scheme == EMBEDDED else parts.path.strip("/") or DEFAULT_DATABASE
    clickhouse_ddl(database)  # which refuses what is no name
    try:
        import clickhouse_connect
        from clickhouse_connect.driver.exceptions import Error
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            "results in ClickHouse need clickhouse-connect: pip install 'evalr[clickhouse]'", name="clickhouse-connect"
        ) from error
    try:
        if scheme == EMBEDDED:
            return clickhouse_connect.get_client(interface="chdb", path=address.partition("://")[2]), database
        client = clickhouse_connect.get_client(
            interface=SERVERS[scheme],
            host=host,
            port=port or 0,
            username=unquote(parts.username or "default"),
            password=unquote(parts.password or "") or os.environ.get(PASSWORD, ""),
        )
    except Error as error:
        code = getattr(error, "code", None)
        raise StoreError(
            f"{_shown(address)}: ClickHouse cannot be used there: {type(error).__name__}"
            + (f" (code {code})" if code else "")
        ) from None
    return client, database


def options_of(place: Place) -> str:
    """What has to be added to a command so that it finds the same store: nothing where it is the usual one."""
    options = {
        "--store": None if place.store == DEFAULT_STORE else _shown(place.store),
        "--results": None if place.results_in is None else _shown(place.results_in),
        "--account": None if place.account == DEFAULT_ACCOUNT else place.account,
        "--org": place.org or None,
    }
    return "".join(f" {name} {shlex.quote(safe_text(text, longest=400))}" for name, text in options.items() if text)


def _shown(address: str) -> str:
    """An address without a password."""
    scheme, found, rest = address.partition("://")
    if not found or "@" not in rest:
        return address
    who, _, where = rest.rpartition("@")
    user = who.partition(":")[0]
    return f"{scheme}://{user}@{where}"

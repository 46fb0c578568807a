"""The traces page for whoever serves it: nothing that it needs is imported before it is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from os import PathLike, fspath
from typing import Any

from evalr.errors import InputError, MissingExtraError
from evalr.quoting import safe_text
from evalr_tracepass.catalogue import SIGNALS, heuristics
from evalr_tracepass.passes import Passes
from evalr_tracepass.records import Account, Reflex
from evalr_tracepass.signal_files import Preset
from evalr_tracepass.signals import Signal
from evalr_tracepass.sources import Source
from evalr_tracepass.stores.store import PassStore, ResultStore
from evalr_tracepass.transports.local import LocalTransport
from evalr_tracepass.transports.transport import Transport


def check_installed(*modules: str) -> None:
    """See that what pages need is there.

    Raises:
        MissingExtraError: something is not.
    """
    for module in modules:
        try:
            import_module(module)
        except ModuleNotFoundError as error:
            if error.name != module:
                raise
            raise MissingExtraError(
                f"the traces page needs {module!r}, which is not installed: pip install 'evalr[web]'", name=module
            ) from error


def traces_page(
    log: str | PathLike[str] | Source,
    store: PassStore,
    account: Account,
    *,
    results: ResultStore | None = None,
    reflexes: Mapping[str, Reflex] | None = None,
    transport: Transport | None = None,
    signals: Iterable[Signal] = (),
    presets: Iterable[Preset] = (),
    rate: float | Mapping[str, float] | None = None,
    kind: str | None = None,
    strict: bool = False,
    token: str | None = None,
    names: Sequence[str] = (),
    local: bool = True,
    read_only: bool = False,
) -> Any:
    """The traces page of a log and a store as an ASGI app, for a server such as uvicorn; see `evalr tracepass serve`.

    Whoever reaches the server sees the traces: serve it on loopback, or with a token. It is made to stand at the root
    of its address.

    Args:
        log: a log of conversations, a folder of logs, or traces.
        store: of passes and results. It is left open.
        account: whose passes, results and signals.
        results: where results are kept, where that is not the store.
        reflexes: the classifiers that run here, by their aliases; by default the heuristics, none with a transport.
        transport: how texts come to classifiers; by default to those that run here.
        signals: of one's own, beside those that the store keeps.
        presets: signals that are run together, beside those that the store keeps.
        rate: US dollars for one prediction, or by model.
        kind: the reader of the log, where it should not be found by looking.
        strict: stop at the first record that cannot be used.
        token: what a browser must know, 16 characters or more.
        names: by which the server may be called, beside `localhost` and numbers.
        local: whether only names of this machine are answered to.
        read_only: show results, and change nothing.

    Raises:
        MissingExtraError: the extra is not installed.
        InputError: the account is none, the token is too short, it is not local and has none, or a signal has the id
            of one that comes with evalr.
    """
    check_installed("starlette", "jinja2")
    from evalr_tracepass.web.app import make_app
    from evalr_tracepass.web.desk import Desk
    from evalr_tracepass.web.guard import Guard
    from evalr_tracepass.web.kept import Kept
    from evalr_tracepass.web.reading import read_log, read_source

    if not local and token is None:
        raise InputError("a page that other machines reach needs a token")
    own = {each.signal_id: each for each in signals}
    taken = sorted(own.keys() & SIGNALS.keys())
    if taken:
        raise InputError(f"{safe_text(taken[0])!r} is a signal that comes with evalr: give yours another name")
    here = dict(reflexes) if reflexes is not None else heuristics() if transport is None else {}
    to = transport or LocalTransport(here)
    reading = read_source(log) if isinstance(log, Source) else read_log(fspath(log), kind=kind, strict=strict)
    reading.begin()
    return make_app(
        Desk(
            reading,
            Kept(store, Passes(account, store, to, results=results).result_store, account),
            Guard(token=token, names=tuple(names), local=local, read_only=read_only),
            to,
            here,
            own,
            {each.name: each for each in presets},
            rate,
        )
    )

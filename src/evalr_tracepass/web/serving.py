"""Serving the traces page, as `evalr tracepass serve` does."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from evalr.errors import InputError
from evalr.logs import find_reader
from evalr.quoting import safe_text
from evalr_tracepass.command.choosing import own_things, price
from evalr_tracepass.command.options import Own, Place, Reading
from evalr_tracepass.command.passing import LOCAL, transport_of
from evalr_tracepass.command.places import opened
from evalr_tracepass.web.guard import check_token, is_loopback
from evalr_tracepass.web.page import check_installed, traces_page


def serve(
    log: str,
    *,
    reading: Reading,
    place: Place,
    own: Own,
    by: str = LOCAL,
    url: str | None = None,
    rate: float | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    token: str | None = None,
    names: Sequence[str] = (),
    read_only: bool = False,
    say: Callable[[str], object],
) -> None:
    """Serve a log and a store until it is stopped.

    Args:
        log: a log of conversations, or a folder of logs.
        reading: how it is read.
        place: the stores, and whose.
        own: signals and classifiers of one's own.
        by: how texts come to classifiers.
        url: of a service.
        rate: US dollars for one prediction.
        host: the address to listen at.
        port: the port; 0 for any that is free.
        token: what a browser must know, needed where other machines reach the address.
        names: by which the server may be called, beside its address.
        read_only: show results, and change nothing.
        say: told the address once it is listened at.

    Raises:
        MissingExtraError: the extra is not installed.
        InputError: other machines reach the address, and there is no token; it cannot be listened at; or there is no
            store to read.
        StoreError: the store cannot be opened.
        LogError: there is no such log.
    """
    check_installed("starlette", "uvicorn", "jinja2")
    local = is_loopback(host)
    if not local and token is None:
        raise InputError(
            f"other machines reach {safe_text(host)!r}, so that anybody on the network could read these traces: pass "
            "--token, or set EVALR_TRACES_TOKEN, to what a browser must know"
        )
    if token is not None:
        check_token(token)
    # Signals of the store are read from it whenever a page is made.
    things = own_things(own)
    reflexes = things.reflexes() if by == LOCAL else {}
    transport = transport_of(by, url, reflexes)
    if not Path(log).is_dir():
        # What is no log is said now, and not by a page.
        find_reader(log, kind=reading.kind)
    known = {name: price(each) for name, each in reflexes.items()}
    prices = {name: each for name, each in known.items() if each is not None}
    listening = _listen(host, port)
    try:
        with opened(place, new=not read_only) as kept:
            app = traces_page(
                log,
                kept.store,
                kept.account,
                results=kept.results,
                transport=transport,
                reflexes=reflexes,
                signals=things.signals.values(),
                presets=things.presets.values(),
                rate=prices if rate is None and reflexes else rate,
                kind=reading.kind,
                strict=reading.strict,
                token=token,
                names=names,
                local=local,
                read_only=read_only,
            )
            say(f"http://{_spelled(host)}:{listening.getsockname()[1]}/")
            _run(app, listening)
    finally:
        listening.close()


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        if os.name == "posix":
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host.strip("[]"), port))
        # From here on a browser waits in the queue instead of being refused while the server starts.
        listening.listen()
    except OSError as error:
        listening.close()
        way_out = "; --port takes another, and --port 0 one that is free" if error.errno == errno.EADDRINUSE else ""
        raise InputError(f"cannot listen at {safe_text(host)}:{port}: {error.strerror or error}{way_out}") from error
    return listening


def _spelled(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def _run(app: Any, listening: socket.socket) -> None:
    import uvicorn

    # Its log would hold addresses, and these what somebody searched for.
    config = uvicorn.Config(app, log_level="error", access_log=False, server_header=False, lifespan="off")
    uvicorn.Server(config).run(sockets=[listening])

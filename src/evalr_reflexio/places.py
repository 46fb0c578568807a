"""Which kind of Reflexio log a path is, and opening it."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

from evalr.errors import LogError
from evalr.logs.finding import unreadable
from evalr.logs.sqlite import WAIT, is_sqlite, open_database
from evalr_reflexio.config import DATA_FILE, OTHER_STORAGE, Config, find_config, read_config
from evalr_reflexio.documents import is_disk_layout, looks_like_answers, read_answers
from evalr_reflexio.store import Store

HEAD = 64 * 1024
CACHES = {"main": "-8192", "temp": "-32768"}
"""Of pages, in KiB with a minus: what keeps memory flat is that they have a bound."""

_LOOKED_AT = 50

_SERVERS = (
    (re.compile(r"postgres(ql)?(\+\w+)?:"), "Postgres"),
    (re.compile(r"supabase:|https?:/+[^/]*\.supabase\."), "Supabase"),
)


def open_store(path: str | os.PathLike[str], *, wait: float = WAIT, watched: bool = False) -> Store:
    """A Reflexio log: an SQLite file, a file of HTTP answers, or a folder of them.

    It is opened for reading alone: not a byte of it, or beside it, is written.

    Args:
        path: of the file or folder.
        wait: seconds to wait where another program has locked the database.
        watched: look whether somebody writes to it: see `Store.is_newest`.

    Raises:
        LogError: it is missing, empty, cut off, damaged, locked, or no log of Reflexio's; for a store of another kind
            the message names the way in.

    Example:
        `with open_store("reflexio_my-org.db") as store: ...`
    """
    text = os.fspath(path)
    for address, what in _SERVERS:
        if address.match(text):
            raise LogError(f"this is the address of a server. {OTHER_STORAGE.format(what=what)}")
    if text.startswith(("http:/", "https:/")):
        raise LogError(
            "an address is fetched first: evalr.reflexio.fetch_sync(ADDRESS, 'answers', since=...), "
            "and then the folder is read"
        )
    path = Path(path)
    try:
        if path.is_dir():
            return _of_folder(path)
        with path.open("rb") as file:
            head = file.read(HEAD)
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error
    if not head:
        raise LogError(f"{path} is empty: there are no records to read")
    if is_sqlite(head):
        named = DATA_FILE.fullmatch(path.name)
        database = open_database(path, wait=wait, watched=watched)
        for schema, size in CACHES.items():
            database.connection.execute(f"PRAGMA {schema}.cache_size = {size}")
        return Store(database, path, org=named["org"] if named else None)
    if looks_like_answers(head):
        return _of_answers(path)
    raise LogError(
        f"{path} is neither an SQLite database of Reflexio's nor an answer of its HTTP API. "
        + OTHER_STORAGE.format(what="anywhere else")
    )


def _of_folder(path: Path) -> Store:
    if is_disk_layout(path):
        raise LogError(f"{path} is a disk layout of files. {OTHER_STORAGE.format(what='the disk layout')}")
    if any(looks_like_answers(_head(each)) for each in sorted(path.glob("*.json"))[:_LOOKED_AT]):
        return _of_answers(path)
    databases = databases_in(path)
    if databases:
        names = ", ".join(each.name for each in databases[:5])
        raise LogError(f"{path} is a folder: give the database in it ({names})")
    raise LogError(f"{path} is a folder without an answer of Reflexio's HTTP API in it")


def _of_answers(path: Path) -> Store:
    answers = read_answers(path)
    return Store(answers.database, path, over_http=True, experiments=answers.experiments, refused=answers.refused)


def databases_in(folder: Path) -> list[Path]:
    """The files of a folder that are named as Reflexio's databases are."""
    return sorted(each for each in folder.glob("reflexio*.db") if each.is_file())


def config_for(store: Store, given: str | os.PathLike[str] | Config | None = None) -> Config:
    """The configuration that belongs to a log: the one given, else one that is found, else what its answers list.

    Raises:
        LogError: the file cannot be read.
    """
    if isinstance(given, Config):
        return given
    found = Path(given) if given is not None else None if store.over_http else find_config(Path(store.path), store.org)
    if found is not None:
        try:
            config = read_config(found)
        except LogError as error:
            if given is not None:
                raise
            raise LogError(
                f"{error}. It was found by itself: mend it, or name another with config=FILE (--config)"
            ) from error
        return replace(config, org=store.org or config.org)
    return Config(org=store.org, experiments=store.experiments)


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(HEAD)


def claim_of(path: Path, head: bytes) -> float:
    """How sure it is that a log is Reflexio's, from 0 to 1; nothing is written, and nothing raised."""
    try:
        if path.is_dir():
            if any(looks_like_answers(_head(each)) for each in sorted(path.glob("*.json"))[:_LOOKED_AT]):
                return 0.9
            return TO_EXPLAIN if is_disk_layout(path) or databases_in(path) else 0.0
    except OSError:
        return 0.0
    if looks_like_answers(head):
        return 0.9
    if not is_sqlite(head):
        return 0.0
    try:
        with open_store(path, wait=0.2):
            return 0.95
    except LogError:
        # What cannot be opened now may still say what to do.
        is_named = DATA_FILE.fullmatch(path.name) is not None
        return 0.5 if is_named or b"agent_success_evaluation_result" in head else 0.0


TO_EXPLAIN = 0.05
"""The claim to what is no log, but for which the error says what to do."""

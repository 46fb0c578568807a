"""Which reader a log is for."""

from __future__ import annotations

import gzip
import re
import zlib
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from evalr.errors import AmbiguousLogError, InputError, LogError, PluginError, UnknownLogError, error_words
from evalr.estimates.words import choice_words
from evalr.logs.log import Log, Reader, reader_settings
from evalr.plugins import Plugins, load_plugins

HEAD = 64 * 1024
GZIP = b"\x1f\x8b"


def installed_readers() -> Plugins[Reader]:
    """Every reader that is installed, by name, and those that cannot be loaded, with the reason."""
    return load_plugins("evalr.logs", Reader)  # type: ignore[type-abstract]


def read(path: str | PathLike[str], *, kind: str | None = None, strict: bool = False, **settings: Any) -> Log:
    """The inputs and results of a log, as a stream that is read once.

    Args:
        path: a file, a directory, or an address that a reader knows; it is only ever opened for reading.
        kind: the name of the reader to use, where it should not be found by looking at the log.
        strict: raise RecordError at the first record that cannot be used, rather than count it.
        settings: the reader's own, such as `time="commit"` for a git repository; `evalr measures` lists them.

    Raises:
        LogError: the log is missing, empty, or cannot be opened.
        InputError: the reader has no such setting.
        UnknownLogError: no reader knows it.
        AmbiguousLogError: several readers claim it alike.
        PluginError: the reader named `kind` cannot be loaded.

    Example:
        `for item in read("sessions.jsonl"): ...` yields `Session`s, `History`s, `Transcript`s and `Stored` results.
    """
    reader = find_reader(path, kind=kind)
    known = reader_settings(reader)
    for name in settings:
        if name not in known:
            raise InputError(f"the reader {reader.name!r} has no setting {name!r}; {choice_words(name, known)}")
    return reader.open(place_of(path), strict=strict, **settings)


def scheme_of(log: str | PathLike[str]) -> str | None:
    """The scheme of an address, such as "postgresql" of `postgresql+psycopg://host/database`; None for a path."""
    scheme, found, _ = fspath(log).partition("://")
    return scheme.partition("+")[0] if found and _SCHEME.fullmatch(scheme) else None


_SCHEME = re.compile(r"[a-z][a-z0-9.+-]+")


def place_of(log: str | PathLike[str]) -> Any:
    """Where a log is, as its reader opens it: a path, or an address as it is."""
    return Path(log) if scheme_of(log) is None else log


def find_reader(path: str | PathLike[str], *, kind: str | None = None) -> Reader:
    """The reader named `kind`, or else the one that is surest of the log.

    Raises:
        LogError, UnknownLogError, AmbiguousLogError, PluginError: as for `read`.
    """
    readers = installed_readers()
    if kind is not None:
        if kind in readers.broken:
            raise PluginError(f"the reader {kind!r} cannot be used: {readers.broken[kind]}")
        if kind not in readers.loaded:
            raise UnknownLogError(f"no reader is named {kind!r}; {_choices(readers.loaded, readers.broken)}")
        return readers.loaded[kind]

    scheme = scheme_of(path)
    if scheme is not None:
        return _reader_of(scheme, readers)
    path = Path(path)
    head = log_head(path)
    broken = dict(readers.broken)
    claims: dict[str, float] = {}
    for name, reader in readers.loaded.items():
        try:
            claim = reader.claim(path, head)
            possible = 0 <= claim <= 1
        except Exception as error:  # noqa: BLE001  a stranger's reader may raise anything; it is listed with its cause
            broken[name] = error_words(error)
            continue
        if not possible:
            broken[name] = f"claims {claim!r}, which is not from 0 to 1"
        elif claim:
            claims[name] = claim

    if not claims and path.is_dir():
        around = next((each for each in path.resolve().parents if _is_claimed(each, readers.loaded)), None)
        if around is not None:
            raise UnknownLogError(
                f"{path} is a directory inside of {around}, which is a log as a whole: give that, or one file; "
                f"{_choices(readers.loaded, broken)}"
            )
        raise UnknownLogError(
            f"{path} is a directory, which needs a reader for directories of its kind, and none that is installed "
            "reads this one: give one file of it (files of JSON lines may be put together into one); "
            f"{_choices(readers.loaded, broken)}"
        )
    if not claims:
        raise UnknownLogError(f"{path}: no reader knows this kind of log; {_choices(readers.loaded, broken)}")
    best = [name for name, claim in claims.items() if claim == max(claims.values())]
    if len(best) > 1:
        options = " or ".join(f"--log {name}" for name in best)
        raise AmbiguousLogError(
            f"{path}: the readers {', '.join(best)} claim this log alike; say which: {options}, or kind= in Python"
        )
    return readers.loaded[best[0]]


def _reader_of(scheme: str, readers: Plugins[Reader]) -> Reader:
    """The reader of addresses of a scheme. They are not named in messages, as they may hold passwords."""
    for reader in readers.loaded.values():
        if scheme in getattr(reader, "schemes", ()):
            return reader
    raise UnknownLogError(f"no reader reads {scheme}:// addresses; {_choices(readers.loaded, readers.broken)}")


def _is_claimed(directory: Path, readers: dict[str, Reader]) -> bool:
    """Whether a reader is sure of a directory."""
    for reader in readers.values():
        try:
            if reader.claim(directory, b"") == 1:
                return True
        except Exception:  # noqa: BLE001  a stranger's reader may raise anything; it was listed above
            continue
    return False


def _choices(loaded: dict[str, Reader], broken: dict[str, str]) -> str:
    known = ", ".join(f"{name} ({reader.describes})" for name, reader in loaded.items()) or "none"
    lost = "".join(f"; the reader {name!r} cannot be used: {why}" for name, why in broken.items())
    return (
        f"readers: {known}{lost}. Choose one with --log KIND, or kind= in Python; tables are read in Python, by "
        "evalr.logs.read_frame"
    )


def log_head(path: Path) -> bytes:
    """The first 64 KiB of a file, decompressed where it is gzip; empty for a directory.

    Raises:
        LogError: it is missing, empty, or cannot be opened.
    """
    try:
        if path.is_dir():
            return b""
        if path.exists() and not path.is_file():
            raise LogError(f"{path} is a stream that can be read only once: say what it is with --log KIND, or kind=")
        with path.open("rb") as file:
            head = file.read(HEAD)
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error
    if not head:
        raise LogError(f"{path} is empty: there are no records to read")
    return decompressed(head) if head.startswith(GZIP) else head


def decompressed(head: bytes) -> bytes:
    """What the beginning of a gzip file holds, as far as it can be read."""
    try:
        return zlib.decompressobj(wbits=zlib.MAX_WBITS | 16).decompress(head, HEAD)
    except (zlib.error, gzip.BadGzipFile):
        return b""


def unreadable(path: Path, error: Exception) -> LogError:
    """The error for a file that cannot be opened, with its path and why."""
    if isinstance(error, FileNotFoundError):
        return LogError(f"{path}: there is no such file")
    if isinstance(error, IsADirectoryError):
        return LogError(f"{path} is a directory, not a file")
    if isinstance(error, PermissionError):
        return LogError(f"{path}: no permission to read it")
    return LogError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}")

"""Files that are replaced whole: whoever reads one finds the old content or the new, and never a part."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from evalr.errors import DatasetError
from evalr.locking import file_lock

Place = str | os.PathLike[str]


def real_path(path: Place) -> Path:
    """Where a file really is: a link is not replaced, but what it leads to."""
    return Path(os.path.realpath(path))


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep every other process that saves to a file waiting.

    Raises:
        DatasetError: it cannot be locked.
    """
    lock = path.with_name(f".{path.name}.lock")
    with _told(path, "locked"), file_lock(lock):
        yield


def replace_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines to a file that is `locked`: all of them, or (also where the power fails) none.

    What saves that were killed have left beside it is removed: nobody else saves it now.

    Raises:
        DatasetError: the file cannot be written.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    with _told(path, "written"):
        _remove_left_over(path)
        try:
            with beside.open("xb") as file:
                for line in lines:
                    file.write(line.encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
            with contextlib.suppress(FileNotFoundError):
                beside.chmod(path.stat().st_mode & 0o777)
            beside.replace(path)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
        _sync_folder(path.parent)


def _remove_left_over(path: Path) -> None:
    mine = re.compile(re.escape(f".{path.name}.") + r"\d+-[0-9a-f]{8}\.tmp")
    for each in path.parent.iterdir():
        if mine.fullmatch(each.name):
            with contextlib.suppress(OSError):  # it stays
                each.unlink()


def _sync_folder(folder: Path) -> None:
    """Have the disk know of the new name, where folders can be told so."""
    with contextlib.suppress(OSError):
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def read_bytes(path: Path) -> bytes:
    """The content of a file.

    Raises:
        DatasetError: it cannot be read.
    """
    with _told(path, "read"):
        return path.read_bytes()


@contextmanager
def _told(path: Path, what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DatasetError(f"{path}: it cannot be {what}: {error.strerror or error}") from error

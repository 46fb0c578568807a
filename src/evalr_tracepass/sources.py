"""Where traces come from: a log that a reader knows, a frame, or a table of spans in ClickHouse.

Each can be iterated over again, once to estimate and once to run, and holds one conversation at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from evalr.errors import LogError
from evalr.estimates.words import count_words
from evalr.inputs import Transcript
from evalr.logs import Log, find_reader, read, read_frame
from evalr.logs.finding import log_head, scheme_of
from evalr.logs.jsonl import TO_EXPLAIN
from evalr.quoting import safe_text

UNKNOWN_FILE = "file of a kind that no reader knows"
NO_CONVERSATION = "file without a conversation"
OUTSIDE = "link that leads out of the folder"


class Source(Iterable[Transcript]):
    """Traces that can be read as often as they are needed.

    Attributes:
        name: where they come from.
        left_out: what could not be read the last time, by reason; complete when that has come to its end.
    """

    def __init__(self, name: str, begin: Callable[[Counter[str]], Iterator[Transcript]]) -> None:
        self.name = name
        self.left_out: Counter[str] = Counter()
        self._begin = begin

    def __iter__(self) -> Iterator[Transcript]:
        self.left_out = Counter()
        return self._begin(self.left_out)


def log_traces(path: str | PathLike[str], *, kind: str | None = None, strict: bool = False, **settings: Any) -> Source:
    """The conversations of a log, by whichever reader knows it; see `evalr.logs.read`.

    A folder that is no log itself stands for the files in it, and in its folders: see `log_sources`. Those that no
    reader knows are counted. Iterating raises LogError where a log cannot be read, or holds no conversation with turns.
    """

    def begin(left_out: Counter[str]) -> Iterator[Transcript]:
        for source in log_sources(path, kind=kind, strict=strict, unknown=left_out, **settings):
            yield from source
            left_out.update(source.left_out)

    return Source(fspath(path), begin)


def log_sources(
    path: str | PathLike[str],
    *,
    kind: str | None = None,
    strict: bool = False,
    unknown: Counter[str] | None = None,
    within: Path | None = None,
    **settings: Any,
) -> Iterator[Source]:
    """The logs that a path stands for, one by one: itself, or the files of a folder that is no log as a whole.

    Args:
        path: a log, or a folder of logs.
        kind: the name of the reader to use for all of them.
        strict: raise at the first record that cannot be used.
        unknown: where files of a folder are counted that no reader knows, or that hold no conversation.
        within: a folder that links must not lead out of, resolved: such files are counted and not opened.
        settings: the reader's own.

    Raises:
        LogError: the path cannot be read, or nothing in the folder can.
    """
    folder = Path(path)
    if scheme_of(path) is not None or not folder.is_dir() or kind is not None or _is_log(folder):
        yield _log(path, kind, strict, settings)
        return
    left_out = Counter[str]() if unknown is None else unknown
    found = 0
    for file in sorted(each for each in folder.rglob("*") if each.is_file() and not each.name.startswith(".")):
        if within is not None and not file.resolve().is_relative_to(within):
            left_out[OUTSIDE] += 1
            continue
        if not _is_log(file):
            left_out[UNKNOWN_FILE] += 1
            continue
        found += 1
        yield _log(file, None, strict, settings, left_out)
    if not found:
        if not left_out:
            raise LogError(f"{safe_text(fspath(path), longest=200)}: there is no file in this folder")
        raise LogError(
            f"{safe_text(fspath(path), longest=200)}: no file in it is a log that a reader knows "
            f"({count_words(left_out[UNKNOWN_FILE], 'file')} looked at); `evalr measures` lists the readers"
        )


def _is_log(path: Path) -> bool:
    try:
        reader = find_reader(path)
    except LogError:
        return False
    # A reader also claims, faintly, what it can only explain: alone that is worth an error, in a folder it is no log.
    return path.is_dir() or reader.claim(path, log_head(path)) > TO_EXPLAIN


def _log(
    path: str | PathLike[str],
    kind: str | None,
    strict: bool,
    settings: dict[str, Any],
    others: Counter[str] | None = None,
) -> Source:
    def begin(left_out: Counter[str]) -> Iterator[Transcript]:
        return _of_log(read(path, kind=kind, strict=strict, **settings), left_out, others)

    return Source(fspath(path), begin)


def frame_traces(frame: Any, **options: Any) -> Source:
    """The conversations of a frame with one row for each turn; the options are those of `evalr.logs.read_frame`.

    An iterator of rows can be read once; a list, or a frame of pandas, polars, pyarrow or DuckDB, again.
    """

    def begin(left_out: Counter[str]) -> Iterator[Transcript]:
        return _of_log(read_frame(frame, kind="transcript", **options), left_out)

    return Source("frame", begin)


def _of_log(log: Log, left_out: Counter[str], among: Counter[str] | None = None) -> Iterator[Transcript]:
    """The conversations of a log. One that holds none is an error, or, among others, is counted."""
    found = others = 0
    for item in log:
        if isinstance(item, Transcript):
            found += 1
            yield item
        else:
            others += 1
    left_out.update(log.left_out.counts)
    if found or not others:
        return
    if among is not None:
        among[NO_CONVERSATION] += 1
        return
    raise LogError(
        f"{safe_text(log.path, longest=200)}: no conversation with turns in {count_words(others, 'record')}; a pass "
        "reads what was said, which times alone do not tell"
    )

"""Where traces come from: a log that a reader knows, a frame, or a table of spans in ClickHouse.

Each can be iterated over again, once to estimate and once to run, and holds one conversation at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from os import PathLike, fspath
from typing import Any

from evalr.errors import LogError
from evalr.estimates.words import count_words
from evalr.inputs import Transcript
from evalr.logs import Log, read, read_frame
from evalr.quoting import safe_text


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

    Iterating over them raises LogError where the log cannot be read, or holds no conversation with turns.
    """

    def begin(left_out: Counter[str]) -> Iterator[Transcript]:
        return _of_log(read(path, kind=kind, strict=strict, **settings), left_out)

    return Source(fspath(path), begin)


def frame_traces(frame: Any, **options: Any) -> Source:
    """The conversations of a frame with one row for each turn; the options are those of `evalr.logs.read_frame`.

    An iterator of rows can be read once; a list, or a frame of pandas, polars, pyarrow or DuckDB, again.
    """

    def begin(left_out: Counter[str]) -> Iterator[Transcript]:
        return _of_log(read_frame(frame, kind="transcript", **options), left_out)

    return Source("frame", begin)


def _of_log(log: Log, left_out: Counter[str]) -> Iterator[Transcript]:
    found = others = 0
    for item in log:
        if isinstance(item, Transcript):
            found += 1
            yield item
        else:
            others += 1
    left_out.update(log.left_out.counts)
    if not found and others:
        raise LogError(
            f"{safe_text(log.path, longest=200)}: no conversation with turns in {count_words(others, 'record')}; a "
            "pass reads what was said, which times alone do not tell"
        )

"""Where what is judged is kept: the journal, and the file of results."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from evalr.errors import InputError
from evalr.estimates.words import count_words
from evalr.logs import Stored, to_line
from evalr.logs.finding import scheme_of
from evalr.quoting import safe_text
from evalr.runs import Journal, RunSummary
from evalr.runs.running import SyncRun
from evalr.verdicts import Failure, Result

HOPELESS = 10
"""So many failures, and nothing else, are enough to see that a key or a model's name is wrong."""


def places(read: str, measure: str, *, journal: str | None, out: str | None) -> tuple[Path, Path]:
    """The journal and the file of results: in the current folder, unless named, and never in the log that is read."""
    scheme = scheme_of(read)
    log = Path(scheme or read)  # the rest of an address may hold a password
    name = log.resolve().name
    stem = name if log.is_dir() else Path(name.removesuffix(".gz")).stem
    book = Path(f"{stem}.judged.db" if journal is None else journal)
    results = Path(f"{stem}.{measure}.jsonl" if out is None else out)
    for option, path in (("--journal", book), ("--out", results)):
        place, source = path.resolve(), log.resolve()
        # SQLite takes what has these names for a part of the database.
        of_log = {source, *(source.with_name(source.name + end) for end in ("-journal", "-wal", "-shm"))}
        if place in of_log or (log.is_dir() and source in place.parents):
            raise InputError(f"{path} would be in the log, which is only read: name another place with {option}")
        if not os.access(place.parent, os.W_OK):
            raise InputError(f"{path}: its folder must exist, and be writable; name another place with {option}")
    if results.resolve() == book.resolve():
        raise InputError(f"--journal and --out are both {results}: they are two files")
    _refuse_other(results)
    return book, results


def _refuse_other(out: Path) -> None:
    """A file is replaced only where it holds results."""
    if not out.exists():
        return
    try:
        with out.open("rb") as file:
            line = file.readline(1 << 20)
        record = json.loads(line) if line.strip() else {"type": "result"}
    except (OSError, ValueError):
        record = None
    if not (isinstance(record, dict) and record.get("type") == "result"):
        raise InputError(f"{out} is already there, and holds no results: name another place with --out")


@contextmanager
def opened(journal: Path) -> Iterator[Journal | None]:
    """The journal where there is one: it is made only when somebody has said yes."""
    if not journal.exists():
        yield None
        return
    with Journal(journal) as book:
        yield book


@contextmanager
def _kept_lines(out: Path) -> Iterator[Callable[[str], object]]:
    """What to call with lines, which are the file's when all is done; what was there before stays until then."""
    with TemporaryFile("w+", encoding="utf-8") as spool:
        yield lambda line: spool.write(f"{line}\n")
        if not spool.tell():
            return
        spool.seek(0)
        place = out.resolve()
        part = place.with_name(f".{place.name}.{os.getpid()}.part")
        try:
            with part.open("w", encoding="utf-8") as file:
                shutil.copyfileobj(spool, file)
            part.replace(place)
        except OSError as error:
            part.unlink(missing_ok=True)
            raise InputError(
                f"{out} cannot be written: {error.strerror or error}; nothing that was judged is lost: run the command "
                "again with another --out"
            ) from error


def keep_results(run: SyncRun, out: Path, measure_of: Callable[[Result[Any]], str]) -> None:
    """Take a run's results, each of the measure of that name, to a file that is there when all of them are.

    Raises:
        InputError: the first calls all failed, or the file cannot be written.
    """
    first: Failure | None = None
    with _kept_lines(out) as keep, run:
        for result in run:
            keep(to_line(Stored(measure_of(result), result)))
            if isinstance(result, Failure):
                first = first or result
                if run.summary.failed >= HOPELESS:
                    _refuse_hopeless(run.summary, first)
        if first is not None:
            _refuse_hopeless(run.summary, first)


def refuse_failures(results: Sequence[Result[Any]]) -> None:
    """End where there are results, and nothing but failures.

    Raises:
        InputError: it is so.
    """
    failures = [result for result in results if isinstance(result, Failure)]
    if failures and len(failures) == len(results):
        raise _no_verdict("the one answer" if len(failures) == 1 else f"all {len(failures):,} answers", failures[0])


def _refuse_hopeless(summary: RunSummary, first: Failure) -> None:
    """End a run of which nothing came but failures: a wrong key fails as often as it is used."""
    if summary.results == summary.failed:
        raise _no_verdict(f"all of the first {count_words(summary.failed, 'answer')}", first)


def _no_verdict(which: str, first: Failure) -> InputError:
    return InputError(
        f"no verdict: {which} failed, as in: {safe_text(first.error, longest=500)}; what failed is asked again by the "
        "same command"
    )

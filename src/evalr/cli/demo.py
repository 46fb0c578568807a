"""`evalr demo`: a sample log and a sample repository are measured as any are, and the truth is printed beside it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from evalr.cli.sample import NOW, sample_lines, truth
from evalr.cli.sample_repository import sample_repository, write_repository
from evalr.errors import InputError
from evalr.estimates.words import interval_words, value_words
from evalr.reports.fitting import cells, padded
from evalr.reports.report import Report, report

NAME = "sample.jsonl"

REPOSITORY = "sample-repository"

NEXT = """\
Now with your own log:
  evalr report LOG       what it holds, measured
  evalr schema session   what a line of a log looks like, where yours has to be written first
  evalr measures         what can be measured, and the names for gates, as in  evalr gate 'drop_off<20%' LOG"""

NEXT_REPOSITORY = """\
And in a git repository of your own, for what people did with what coding agents wrote there:
  evalr report ."""


def show_demo(write: str | None, repository: str | None, seed: int, *, width: int, color: bool) -> None:
    """Print the reports on two samples, their truth, and what to do next.

    The log is kept in the file `write`, the repository in the directory `repository`, where these are given.
    """
    if repository is not None and Path(repository).exists():
        raise InputError(f"{repository} is already there: choose another name")
    with TemporaryDirectory() as folder:
        log = Path(folder, NAME) if write is None else Path(write)
        _write(log, seed)
        found = report(log, now=NOW)
        print((found if write else replace(found, path=NAME)).text(width=width, color=color))
        print()
        print("\n".join(truth_lines(found)))
        print()
        print(NEXT)
        print()
        _show_repository(Path(folder, REPOSITORY) if repository is None else Path(repository), seed, width, color)
        print(NEXT_REPOSITORY)


def _show_repository(folder: Path, seed: int, width: int, color: bool) -> None:
    commits, truth = sample_repository(seed)
    try:
        folder.mkdir()
    except OSError as error:
        raise InputError(
            f"{folder} cannot be made: {error.strerror}; name a directory that is not there yet"
        ) from error
    if not write_repository(folder, commits):
        print("There is also a repository to measure, but no git program here to make it with.\n")
        return
    found = replace(report(folder, now=NOW), path=folder.name)
    print(found.text(width=width, color=color))
    print()
    share = value_words(truth.kept / truth.added, "share")
    print(f"It is made up too: of the {truth.added:,} characters that its agents added, people left {share}.\n")


def _write(path: Path, seed: int) -> None:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in sample_lines(seed))
    except FileExistsError as error:
        raise InputError(f"{path} is already there: choose another name") from error
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from error


def truth_lines(found: Report) -> Iterator[str]:
    """The truth beside the estimates, and how many intervals hold it."""
    titles = {row.estimate.name: row.title for row in found.rows}
    rows = []
    held = 0
    for name, true in truth().items():
        estimate = found[name]
        inside = estimate.low is not None and estimate.low <= true and (estimate.high is None or true <= estimate.high)
        held += inside
        interval = interval_words(estimate.low, estimate.high, estimate.unit)
        measured, shown = value_words(estimate.value, estimate.unit), value_words(true, estimate.unit)
        rows.append((titles[name], measured, interval, shown, "inside" if inside else "outside"))
    yield "The log is made up, and what is true of it is known:"
    table = [("", "measured", "interval", "truth", ""), *rows]
    widths = [max(cells(row[column]) for row in table) for column in range(5)]
    for row in table:
        yield ("  " + "  ".join(padded(text, width) for text, width in zip(row, widths, strict=True))).rstrip()
    share = f"{100 * found.level:g} of 100"
    yield f"{held} of {len(rows)} intervals hold the truth; over many logs, {share} are meant to."

"""`evalr demo`: a sample log is measured as any log is, and the truth is printed beside what was measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from evalr.cli.sample import NOW, sample_lines, truth
from evalr.errors import InputError
from evalr.estimates.words import interval_words, value_words
from evalr.reports.fitting import cells, padded
from evalr.reports.report import Report, report

NAME = "sample.jsonl"

NEXT = """\
Now with your own log:
  evalr report LOG       what it holds, measured
  evalr schema session   what a line of a log looks like, where yours has to be written first
  evalr measures         what can be measured, and the names for gates, as in  evalr gate 'drop_off<20%' LOG"""


def show_demo(write: str | None, seed: int, *, width: int, color: bool) -> None:
    """Print the report on a sample, its truth, and what to do next. The sample is kept where `write` says so."""
    if write is not None:
        _write(Path(write), seed)
        found = report(write, now=NOW)
    else:
        with TemporaryDirectory() as folder:
            path = Path(folder) / NAME
            _write(path, seed)
            found = replace(report(path, now=NOW), path=NAME)
    print(found.text(width=width, color=color))
    print()
    print("\n".join(truth_lines(found)))
    print()
    print(NEXT)


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

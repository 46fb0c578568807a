"""What `evalr judge` asks of: the inputs in a log that a measure's judge reads, chosen as the report counts them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b
from json import dumps
from typing import Any

from evalr.errors import InputError
from evalr.inputs import About, Input
from evalr.logs import Log, find_reader
from evalr.logs.finding import place_of
from evalr.measures.measure import Measure
from evalr.reports.reading import Progress, Reading, Track, share_read
from evalr.runs import sample, stratified_sample
from evalr.runs.sampling import weighed
from evalr.summaries.keys import UnitOf

PROGRESS_EVERY = 500


@dataclass
class LogInputs:
    """The inputs of a log that a measure's judge reads. Each iteration reads the log anew, and holds none of them.

    Attributes:
        path, kind, strict, reader_settings: of the log, as for `evalr.logs.read`.
        measure: whose judge reads them.
        now, since, until: as for a report.
        progress: called as a report calls it.
        log: what the last iteration read.
        not_counted: what it read and is not judged, by the reason.
        kinds: the inputs that it came by, by kind.
        stored: results of the measure that the log itself holds.
        seen: how many inputs were yielded.
        unsplit: inputs that could not be split into what the judge reads, by the error.
    """

    path: str
    measure: Measure
    now: datetime
    since: datetime | None = None
    until: datetime | None = None
    kind: str | None = None
    strict: bool = False
    reader_settings: Mapping[str, Any] = field(default_factory=dict)
    progress: Progress | None = None
    log: Log | None = None
    not_counted: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    stored: int = 0
    unsplit: Counter[str] = field(default_factory=Counter)
    seen: int = 0

    def __iter__(self) -> Iterator[Input]:
        log = find_reader(self.path, kind=self.kind).open(
            place_of(self.path), strict=self.strict, **self.reader_settings
        )
        track = _Taken(self.measure, self.now)
        reading = Reading([track], now=self.now, since=self.since, until=self.until)
        self.log, self.not_counted, self.kinds = log, reading.left_out, reading.kinds
        self.stored, self.seen, self.unsplit = 0, 0, track.unsplit
        for count, item in enumerate(log, start=1):
            if isinstance(item, Input):
                reading.read_one(item)
                self.seen += len(track.taken)
                yield from track.taken
                track.taken.clear()
            else:
                self.stored += item.measure == self.measure.name
            if self.progress is not None and count % PROGRESS_EVERY == 0:
                self.progress(log.records, share_read(log))


class _Taken(Track):
    """What a report would measure of each input, taken instead."""

    def __init__(self, measure: Measure, now: datetime) -> None:
        super().__init__(measure, {}, now=now, by=None, cluster=None)
        self.taken: list[Input] = []
        self.unsplit: Counter[str] = Counter()

    def measure_one(self, given: Input) -> None:
        self.taken.append(given)

    def fail(self, error: Exception, given: Input) -> None:
        self.unsplit[type(error).__name__] += 1


def read_sample(text: str) -> float:
    """`200` as a number of inputs, an int; `10%` or `0.1` as a share of them, a float."""
    share, number = text.endswith("%"), text.removesuffix("%")
    try:
        if not share and number.isdecimal() and int(number) >= 1:
            return int(number)
        rate = float(number) / 100 if share else float(number)
    except ValueError:
        rate = -1.0
    if not 0 < rate <= 1:
        raise InputError(f"--sample {text}: write how many to judge, as 200, or the share of all, as 10% or 0.1")
    return rate


def drawn_whole(measure: Measure) -> UnitOf | None:
    """What a sample of a measure's inputs takes as a whole, since its summaries fold it; None where that is nothing."""
    units = (summary.per for summary in measure.summaries(**measure.settings))
    return next((unit for unit in units if isinstance(unit, UnitOf)), None)


def sampled_inputs(inputs: LogInputs, size: float | None) -> LogInputs | _Share | tuple[Input, ...]:
    """Those that are judged, chosen by their ids: the same ones whenever the log is read, each with its weight.

    Where units are drawn whole, the inputs are about as many as asked for.
    """
    unit = drawn_whole(inputs.measure)
    if size is None:
        return inputs
    if not isinstance(size, int):
        return _Share(inputs, size, unit)
    if unit is None:
        return stratified_sample(inputs, lambda _: "all", n=size).inputs
    return _whole_units(inputs, unit, size)


@dataclass(frozen=True)
class _Share:
    """A share of the inputs, drawn anew at each iteration and the same each time."""

    inputs: LogInputs
    rate: float
    unit: UnitOf | None

    def __iter__(self) -> Iterator[Input]:
        unit = self.unit
        return sample(self.inputs, self.rate, key=None if unit is None else lambda about: _spelled(unit, about))


def _whole_units(inputs: LogInputs, unit: UnitOf, size: int) -> tuple[Input, ...]:
    sizes = Counter(_spelled(unit, given.about()) for given in inputs)
    if not sizes:
        return ()
    # How many is settled before any is drawn, or large units would be drawn less often than others.
    count = max(1, min(size * len(sizes) // sizes.total(), len(sizes)))
    drawn = set(sorted(sizes, key=lambda name: blake2b(name.encode(), digest_size=16).digest())[:count])
    factor = len(sizes) / count
    return tuple(weighed(given, factor) for given in inputs if _spelled(unit, given.about()) in drawn)


def _spelled(unit: UnitOf, about: About) -> str:
    return dumps(unit.read(about), ensure_ascii=True, default=str)

"""What a reader returns: the inputs and results of one log, streamed, with an account of everything it left out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

from evalr.errors import LogError, RecordError
from evalr.estimates.shown import Printed
from evalr.estimates.words import plural
from evalr.inputs import Input
from evalr.logs.further import Further, ReportTerms
from evalr.verdicts import Result

PLACES = 3
"""How many places are named for each reason."""

NAMES = 200
"""How many different reasons, or names of unknown fields, one log may add: what it says must not fill the memory."""

OTHERS = "others"

COUNTED = re.compile(
    r"\b(answer|bot|change|commit|field|file|id|interaction|learning|lockfile|number|object|request|role|session|squash|"
    r"submodule|symlink|time|type|value|verdict)\b"
)


class Stored(NamedTuple):
    """A result that a log already holds, and the measure whose verdict type its value is of."""

    measure: str
    result: Result[Any]


Item: TypeAlias = Input | Stored


class LeftOut(Printed):
    """The records that a reader left out: how many for each reason, and where the first few were.

    Attributes:
        counts: records by reason, such as {"naive time": 2}.
        places: the first three places of each reason, such as {"naive time": ["line 17", "line 204"]}.
        faults: how many could not be used; the others are sound, and no part of what is measured.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.places: dict[str, list[str]] = {}
        self.faults = 0

    def add(self, reason: str, place: str, *, fault: bool = True) -> None:
        """Count one record. Beyond two hundred different reasons it is counted under "others"."""
        self.faults += fault
        if reason not in self.counts and len(self.counts) >= NAMES:
            reason = OTHERS
        self.counts[reason] += 1
        places = self.places.setdefault(reason, [])
        if len(places) < PLACES:
            places.append(place)

    def merge(self, other: LeftOut) -> None:
        """Count what was left out of what comes after in the log; reasons beyond two hundred are not put together."""
        self.counts.update(other.counts)
        self.faults += other.faults
        for reason, places in other.places.items():
            known = self.places.setdefault(reason, [])
            known += places[: PLACES - len(known)]

    @property
    def total(self) -> int:
        """How many records were left out."""
        return self.counts.total()

    def words(self) -> str:
        """`2 naive times (lines 17, 204), 1 duplicate id (line 881)`; empty where nothing was left out."""
        return ", ".join(self._words(reason, count) for reason, count in self.counts.most_common())

    def _words(self, reason: str, count: int) -> str:
        named = reason if count == 1 else COUNTED.sub(lambda found: plural(found[0]), reason, count=1)
        return f"{count:,} {named} ({_together(self.places[reason])}{', …' if count > PLACES else ''})"

    def __str__(self) -> str:
        return self.words()

    def __repr__(self) -> str:
        return f"<LeftOut {self.words() or 'nothing'}>"


def _together(places: list[str]) -> str:
    """`lines 17, 204` for places that are all lines, and likewise for any other noun before numbers."""
    nouns, numbers = zip(*(place.rpartition(" ")[::2] for place in places), strict=True)
    if len(places) > 1 and len(set(nouns)) == 1 and nouns[0].isalpha() and all(number.isdigit() for number in numbers):
        return f"{plural(nouns[0])} {', '.join(numbers)}"
    return ", ".join(places)


@dataclass
class Log:
    """The inputs and results of one log, read as they are asked for: iterate over it once.

    It holds nothing that it has yielded, and its account is complete when the iteration has ended.

    Args:
        path: of the log, as messages name it.
        kind: the name of its reader.
        items: given this log, yields what it holds; it counts `records`, and calls `skip` or `leave_out` for each that
            it does not yield.
        strict: stop at the first record that cannot be used.
        noun: what a record is called.
        cluster: the key to cluster by where nobody names one; None for a result's user, or what it is a part of.
        holds_results: whether logs of its kind can hold verdicts, so that a report says where there are none.
        titles: what people call those who gave its verdicts, by their names, where that is something else.
        settings: the reader's own that decide what is read, defaults included, as a report repeats them; no secrets.

    Attributes:
        records: how many records were seen so far. Each was yielded or is in `left_out`.
        derived: how many inputs were yielded beside their record: the sessions of transcripts whose turns have times.
        left_out: what was left out, why and where.
        refused: how many of those were results, by the measure that they say they belong to.
        unknown_fields: fields that the reader does not know and ignored, by name; nested ones as "activities.tool".
        repaired: what was mended in records that were kept, such as {"lone surrogates": 2}.
        notes: what else to know of how it was read, as sentences without their full stop.
        randomised: whether the log knows that its arms were assigned at random; then no lift is called observational.
        bytes_read: of the file as it is stored, compressed or not; for progress.
        bytes_total: of the same; None where it is not known.
    """

    path: str
    kind: str
    items: Callable[[Log], Iterator[Item]] = field(repr=False)
    strict: bool = False
    noun: str = "record"
    cluster: str | None = None
    holds_results: bool = True
    titles: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    records: int = field(default=0, init=False)
    derived: int = field(default=0, init=False)
    left_out: LeftOut = field(default_factory=LeftOut, init=False)
    refused: Counter[str] = field(default_factory=Counter, init=False)
    unknown_fields: Counter[str] = field(default_factory=Counter, init=False)
    repaired: Counter[str] = field(default_factory=Counter, init=False)
    notes: list[str] = field(default_factory=list, init=False)
    randomised: bool = field(default=False, init=False)
    bytes_read: int = field(default=0, init=False)
    bytes_total: int | None = field(default=None, init=False)
    _begun: bool = field(default=False, init=False, repr=False)

    def __iter__(self) -> Iterator[Item]:
        """The items, once.

        Raises:
            LogError: it cannot be read at all, or was iterated over before.
            RecordError: with `strict`, at the first record that would be left out.
        """
        if self._begun:
            raise LogError(f"{self.path}: a log is read once, as a stream; open it again with evalr.logs.read")
        self._begun = True
        return self.items(self)

    def prepare(self, terms: ReportTerms) -> None:
        """What a report calls before it reads the log, where it will ask for `further` sections afterwards."""

    def further(self) -> Sequence[Further]:
        """Sections that the reader adds to the report, once the log has been read; none unless it overrides this."""
        return ()

    def skip(self, reason: str, place: str) -> None:
        """Leave out one record that cannot be used.

        Args:
            reason: short and the same for all records of its kind; text from the log only as `quoted`.
            place: where it is, such as "line 17".

        Raises:
            RecordError: the log is read with `strict`.
        """
        if self.strict:
            raise RecordError(f"{self.path}, {place}: {reason}; mend it, or read without strict to leave it out")
        self.left_out.add(reason, place)

    def leave_out(self, reason: str, place: str) -> None:
        """Leave out one record that is sound, and no part of what is measured; with `strict` too.

        Args:
            reason: as for `skip`.
            place: as for `skip`.
        """
        self.left_out.add(reason, place, fault=False)

    def refuse_result(self, measure: str) -> None:
        """Count a left out result under its measure. Beyond two hundred names it is counted under "others"."""
        if measure not in self.refused and len(self.refused) >= NAMES:
            measure = OTHERS
        self.refused[measure] += 1

    def ignore_field(self, name: str, count: int = 1) -> None:
        """Count a field that is not known. Beyond two hundred names it is counted under "others"."""
        if name not in self.unknown_fields and len(self.unknown_fields) >= NAMES:
            name = OTHERS
        self.unknown_fields[name] += count

    def merge(self, other: Log) -> None:
        """Add the account of another part of the log, which comes after; names beyond two hundred are kept."""
        self.records += other.records
        self.derived += other.derived
        self.left_out.merge(other.left_out)
        self.refused.update(other.refused)
        self.unknown_fields.update(other.unknown_fields)
        self.repaired.update(other.repaired)
        self.notes += [note for note in other.notes if note not in self.notes]


@runtime_checkable
class Reader(Protocol):
    """Reads one kind of log. A package adds one under the entry point group `evalr.logs`."""

    name: str
    """Its one name, as in `--log NAME`."""

    describes: str
    """What it reads, in one line. A reader with settings also has `settings`, their defaults by name; one of logs that
    are no files has `schemes`, those of the addresses that it opens, which `open` then gets as texts."""

    def claim(self, path: Path, head: bytes) -> float:
        """How sure it is that the log is of its kind: from 0 (it is not) to 1.

        Args:
            path: the file or directory.
            head: the file's first 64 KiB, decompressed where it is gzip; empty for a directory.
        """

    def open(self, path: Path, *, strict: bool = False) -> Log:
        """The log, opened for reading alone. Nothing is read before it is iterated over.

        Settings that the reader has come as keywords beside `strict`.
        """


def reader_settings(reader: Reader) -> Mapping[str, Any]:
    """What can be set of how a reader reads, with the defaults."""
    settings: Mapping[str, Any] = getattr(reader, "settings", {})
    return settings

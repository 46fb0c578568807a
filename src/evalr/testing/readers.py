"""The contract of log readers, as a class of tests.

A package that adds a reader subclasses it, says how to write logs of its kind, and lets pytest run what it inherits:

    class TestMyReader(ReaderContract):
        reader = my_package.reader

        def write(self, folder, ids): ...
        def write_with_a_bad_record(self, folder): ...
"""

from __future__ import annotations

import math
import random
import tracemalloc
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import ClassVar

from evalr.errors import LogError, RecordError
from evalr.inputs import Input
from evalr.logs import Item, Log, Reader
from evalr.logs.finding import log_head
from evalr.testing.checks import expect

HOSTILE = (
    "<script>alert(1)</script>",
    '<img src=x onerror="alert(1)">',
    "\x1b[31mred\x1b[0m",
    "{0.__class__} {} {{x}} %s %(x)s ${x}",
    "quotes \" and ' and \\",
    "two\nlines\r\nand a\ttab",
    "line\u2028separator\u2029paragraph\x85next",
    "[bold]markup[/bold] | table | `code`",
    "\u202eright to left",
    "🙂 é e\u0301",
)
"""Ids that break whatever prints, formats or splits text without care."""

FOREIGN = {
    "prose": b"Dear all,\n\nthe agent did well this week.\n",
    "a table": b"id,user,score\ns1,u1,0.5\ns2,u2,0.75\n",
    "a web page": b"<!doctype html>\n<html><head><title>{}</title></head><body>[1, 2]</body></html>\n",
    "a picture": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0",
    "a program": b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\0\x3e\0\x01\0\0\0",
    "noise": random.Random(2026).randbytes(4096),
}


class ReaderContract:
    """Subclass it, name the reader, and say how logs of its kind are written.

    Every test takes the folder that pytest's `tmp_path` gives, and writes only there.
    """

    reader: ClassVar[Reader]
    """The reader that is tested."""

    hostile: ClassVar[Sequence[str]] = HOSTILE
    """Ids to read back unchanged. Leave out those that the kind of log cannot hold."""

    bytes_a_record: ClassVar[int] = 200
    """How many bytes it may keep for each record: enough to know its subject again, too few to hold it."""

    records_for_memory: ClassVar[int] = 5_000
    """How many records the memory is measured over."""

    cuts: ClassVar[int] = 60
    """In how many places a log is cut off."""

    stands_alone: ClassVar[bool] = True
    """Whether one record makes one input, so that what comes later in a log changes nothing of what came before."""

    # -- what a subclass says -----------------------------------------------------------------------------------------

    def write(self, folder: Path, ids: Iterable[str]) -> Path:
        """Write a log with one record for each id, in this order, each an hour later; return its path.

        An id that is given twice is written twice.
        """
        raise NotImplementedError

    def write_with_a_bad_record(self, folder: Path) -> Path:
        """Write a log of several records, one of which cannot be used; return its path."""
        raise NotImplementedError

    def write_out_of_order(self, folder: Path) -> tuple[Path, Path] | None:
        """Write one log twice, its events in another order the second time; None where that cannot be."""
        return None

    def id_of(self, item: Item) -> str | None:
        """The id that `write` was given for what a log yields; None for what was derived from a record beside it."""
        return item.id if isinstance(item, Input) else None

    # -- what every reader must do ------------------------------------------------------------------------------------

    def test_it_is_a_reader(self) -> None:
        """It has a name and one line that says what it reads."""
        expect(isinstance(self.reader, Reader), f"{self.reader!r} lacks a part of evalr.logs.Reader")
        expect(bool(self.reader.name) and self.reader.name.isprintable(), "its name must be one printable word")
        expect(bool(self.reader.describes) and "\n" not in self.reader.describes, "describes must be one line")

    def test_it_reads_a_good_log(self, tmp_path: Path) -> None:
        """Every record is yielded under its id, in the log's order, and nothing is left out, in strict mode too."""
        ids = [f"id{number}" for number in range(20)]
        path = self.write(tmp_path, ids)
        for log in (self.reader.open(path), self.reader.open(path, strict=True)):
            items = list(log)
            expect(self._ids(items) == ids, f"wrote the ids {ids} and read {self._ids(items)}")
            expect(log.left_out.total == 0, f"left out records of a good log: {log.left_out}")
            self._adds_up(log, items)
            expect(log.kind == self.reader.name, f"the log says it was read by {log.kind!r}")
            expect(log.path == str(path), f"the log says its path is {log.path!r}")
            whole = log.bytes_total
            expect(whole is None or log.bytes_read == whole, f"read {log.bytes_read} bytes of {whole} to the end")

    def test_it_is_read_once(self, tmp_path: Path) -> None:
        """A second iteration is an error, and not an empty log."""
        log = self.reader.open(self.write(tmp_path, ["a", "b", "c"]))
        list(log)
        try:
            again = list(log)
        except LogError:
            return
        raise AssertionError(f"a log that was read to its end yields {len(again)} items when iterated over again")

    def test_two_readings_are_alike(self, tmp_path: Path) -> None:
        """Opening it again gives the same."""
        path = self.write(tmp_path, ["a", "b", "c"])
        first, second = list(self.reader.open(path)), list(self.reader.open(path))
        expect(first == second, "reading a log twice gives different items")

    def test_it_never_writes(self, tmp_path: Path) -> None:
        """Not a byte, a time or a file beside the log is changed."""
        path = self.write(tmp_path, ["a", "b", "c"])
        before = _picture(tmp_path)
        list(self.reader.open(path))
        self.reader.claim(path, log_head(path))
        expect(_picture(tmp_path) == before, "reading a log changed it, or left something beside it")

    def test_it_claims_its_own_logs_and_no_others(self, tmp_path: Path) -> None:
        """A claim is from 0 to 1, above 0 for its own, 0 for what is foreign, and never an error."""
        path = self.write(tmp_path, ["a", "b", "c"])
        head = log_head(path)
        own = self._claim(path, head)
        expect(own > 0, "it does not claim a log of its own kind")
        for what, foreign in FOREIGN.items():
            other = tmp_path / what
            other.write_bytes(foreign)
            claim = self._claim(other, foreign)
            expect(claim == 0, f"it claims {what} at {claim}")
        for end in _cuts(len(head), self.cuts):
            self._claim(path, head[:end])

    def test_a_bad_record_is_left_out_by_name(self, tmp_path: Path) -> None:
        """The others are read, and the account says how many were not, why and where."""
        log = self.reader.open(self.write_with_a_bad_record(tmp_path))
        items = list(log)
        expect(bool(items), "one bad record lost the whole log")
        expect(log.left_out.total == 1, f"one record is bad, and left out are: {log.left_out.words() or 'none'}")
        ((reason, places),) = log.left_out.places.items()
        expect(bool(reason) and len(places) == 1 and bool(places[0]), "a record was left out without a reason or place")
        self._adds_up(log, items)
        self._is_fit_to_print(log)

    def test_strict_stops_at_a_bad_record(self, tmp_path: Path) -> None:
        """With an error that names the file and the place."""
        path = self.write_with_a_bad_record(tmp_path)
        lenient = self.reader.open(path)
        list(lenient)
        strict = self.reader.open(path, strict=True)
        try:
            list(strict)
        except RecordError as error:
            message = str(error)
        else:
            raise AssertionError("strict=True read a bad record without an error")
        expect(str(path) in message, f"the error does not name the file: {message}")
        places = [place for found in lenient.left_out.places.values() for place in found]
        expect(any(place in message for place in places), f"the error does not name the place {places}: {message}")

    def test_the_first_of_one_subject_is_kept(self, tmp_path: Path) -> None:
        """Later ones are left out and counted."""
        log = self.reader.open(self.write(tmp_path, ["a", "b", "a", "c", "a"]))
        items = list(log)
        expect(self._ids(items) == ["a", "b", "c"], f"of a, b, a, c, a it yields {self._ids(items)}")
        expect(
            log.left_out.total == 2, f"two records are duplicates, and left out are: {log.left_out.words() or 'none'}"
        )
        self._adds_up(log, items)

    def test_text_comes_through_unchanged(self, tmp_path: Path) -> None:
        """Whatever an id holds, it is read back as it was, and what the account says is fit to print."""
        log = self.reader.open(self.write(tmp_path, self.hostile))
        items = list(log)
        expect(self._ids(items) == list(self.hostile), f"wrote {list(self.hostile)} and read {self._ids(items)}")
        self._adds_up(log, items)
        again = self.reader.open(self.write(tmp_path, [*self.hostile, *self.hostile]))
        list(again)
        self._is_fit_to_print(again)

    def test_a_log_that_was_cut_off_is_accounted_for(self, tmp_path: Path) -> None:
        """Cut anywhere, it is read as far as it goes or refused as a log; what is lost is counted."""
        whole = self.write(tmp_path, ["a", "b", "c", "d", "e"])
        if whole.is_dir():
            return
        items, stored = list(self.reader.open(whole)), whole.read_bytes()
        cuts, silent = _cuts(len(stored), self.cuts), []
        for end in cuts:
            whole.write_bytes(stored[:end])
            log = self.reader.open(whole)
            try:
                found = list(log)
            except RecordError as error:
                raise AssertionError(f"cut at byte {end}: raises {error!r} without being strict") from error
            except LogError:
                continue
            self._adds_up(log, found, f"cut at byte {end}: ")
            if self.stands_alone:
                expect(found == items[: len(found)], f"cut at byte {end}: what came before the cut reads differently")
            if len(found) < len(items) and not log.left_out.total:
                silent.append(end)
        # A cut between two records loses nothing that could be seen; most places are inside one.
        expect(2 * len(silent) <= len(cuts), f"cut at bytes {silent[:5]}, …: records are lost, and nothing says so")

    def test_it_holds_nothing_that_it_has_yielded(self, tmp_path: Path) -> None:
        """Ten times the records take no more memory than it needs to know their subjects again."""
        peaks = []
        few = self.records_for_memory // 10
        for count in (few, self.records_for_memory):
            path = self.write(tmp_path, (f"id{number:08d}" for number in range(count)))
            log = self.reader.open(path)
            tracemalloc.start()
            try:
                for _ in log:
                    pass
                peaks.append(tracemalloc.get_traced_memory()[1])
            finally:
                tracemalloc.stop()
        each = (peaks[1] - peaks[0]) / (self.records_for_memory - few)
        expect(each <= self.bytes_a_record, f"it keeps {each:.0f} bytes for each record it has yielded")

    def test_times_are_in_order(self, tmp_path: Path) -> None:
        """The order in which a log holds the events of an input changes nothing."""
        logs = self.write_out_of_order(tmp_path)
        if logs is None:
            return
        ordered, disordered = (list(self.reader.open(path)) for path in logs)
        expect(bool(ordered) and ordered == disordered, "the same events in another order give other inputs")

    def test_what_is_missing_is_a_log_error(self, tmp_path: Path) -> None:
        """A missing log, and one without a byte, are refused by their path."""
        empty = tmp_path / "empty"
        empty.write_bytes(b"")
        for path in (tmp_path / "missing", empty):
            try:
                list(self.reader.open(path))
            except LogError as error:
                expect(str(path) in str(error), f"the error does not name the file: {error}")
            else:
                raise AssertionError(f"reading {path.name!r} is no error")

    # -- the parts of the checks --------------------------------------------------------------------------------------

    def _ids(self, items: Iterable[Item]) -> list[str]:
        return [found for item in items if (found := self.id_of(item)) is not None]

    def _claim(self, path: Path, head: bytes) -> float:
        claim = self.reader.claim(path, head)
        expect(isinstance(claim, float | int) and math.isfinite(claim) and 0 <= claim <= 1, f"claims {claim!r}")
        return claim

    def _adds_up(self, log: Log, items: Sequence[Item], where: str = "") -> None:
        yielded, left_out = len(items) - log.derived, log.left_out.total
        expect(
            log.records == yielded + left_out,
            f"{where}of {log.records} records {yielded} were yielded and {left_out} left out",
        )

    def _is_fit_to_print(self, log: Log) -> None:
        for text in (*log.left_out.counts, *log.unknown_fields, log.left_out.words()):
            expect(text.isprintable(), f"the account holds raw text from the log: {text!r}")
            expect(len(text) <= 1000, f"the account holds {len(text)} characters from the log")


def _cuts(size: int, count: int) -> list[int]:
    """Places to cut `size` bytes at, all over and close together at the end."""
    spread = {size * step // count for step in range(1, count)}
    return sorted(spread | {end for end in range(size - 8, size) if end > 0})


def _picture(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every file below a folder, with the time of its last change and what it holds."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }

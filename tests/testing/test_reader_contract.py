"""The contract of readers: ours hold to it, and each of its checks can fail."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest

from evalr.errors import LogError, RecordError
from evalr.logs import Item, Log, Reader
from evalr.logs.jsonl import reader as jsonl
from evalr.testing import ReaderContract

BEGIN = datetime(2026, 9, 1, tzinfo=UTC)


def line(name: str, number: int = 0, *, backwards: bool = False, **fields: Any) -> str:
    times = [BEGIN + timedelta(hours=number, minutes=minute) for minute in range(3)]
    activities = [
        {"at": time.isoformat(), "role": role} for time, role in zip(times, ("person", "agent", "person"), strict=True)
    ]
    if backwards:
        activities.reverse()
    return json.dumps({"id": name, "user": "u", "activities": activities, **fields})


class JsonlLogs(ReaderContract):
    """How logs of our kind are written."""

    reader: ClassVar[Reader] = jsonl
    pack: Callable[[bytes], bytes] = staticmethod(bytes)

    def put(self, path: Path, lines: Iterable[str]) -> Path:
        path.write_bytes(self.pack("".join(f"{each}\n" for each in lines).encode()))
        return path

    def write(self, folder: Path, ids: Iterable[str]) -> Path:
        return self.put(folder / "log.jsonl", (line(name, number) for number, name in enumerate(ids)))

    def write_with_a_bad_record(self, folder: Path) -> Path:
        bad = line("\x1b[31m<b>{}\u2028", 1, type="\x1b[31m<b>{}\u2028" * 40)
        return self.put(folder / "log.jsonl", [line("a"), bad, line("c", 2)])

    def write_out_of_order(self, folder: Path) -> tuple[Path, Path]:
        return (
            self.put(folder / "one.jsonl", [line("a"), line("b")]),
            self.put(folder / "two.jsonl", [line("a", backwards=True), line("b", backwards=True)]),
        )


class TestJsonl(JsonlLogs):
    pass


class TestCompressedJsonl(JsonlLogs):
    pack = staticmethod(partial(gzip.compress, mtime=0))


# Broken readers: each is ours with one thing wrong, and the name of the check that must say so.


@dataclass
class Broken:
    name: str = "broken"
    describes: str = "a reader with something wrong"

    def claim(self, path: Path, head: bytes) -> float:
        return jsonl.claim(path, head)

    def open(self, path: Path, *, strict: bool = False) -> Log:
        return Log(str(path), self.name, lambda log: self.items(path, log), strict=strict)

    def items(self, path: Path, log: Log) -> Iterator[Item]:
        inner = jsonl.open(path, strict=log.strict)
        for item in inner:
            self.tell(log, inner)
            yield item
        self.tell(log, inner)

    def tell(self, log: Log, inner: Log) -> None:
        for name in ("records", "derived", "left_out", "bytes_read", "bytes_total", "unknown_fields"):
            setattr(log, name, getattr(inner, name))


class TestTheWrapperItself(JsonlLogs):
    """Without anything wrong it passes, so that what the broken ones fail by is what is wrong with them."""

    reader = Broken()


class Nameless(Broken):
    describes = ""

    def __init__(self) -> None:
        self.name, self.describes = "", ""


class Silent(Broken):
    """Says nothing of what it leaves out."""

    def tell(self, log: Log, inner: Log) -> None:
        super().tell(log, inner)
        log.left_out = type(inner.left_out)()
        log.records = inner.records - inner.left_out.total


class Miscounting(Broken):
    def tell(self, log: Log, inner: Log) -> None:
        super().tell(log, inner)
        log.records = 0


class Backwards(Broken):
    def items(self, path: Path, log: Log) -> Iterator[Item]:
        yield from reversed(list(super().items(path, log)))


class Endless(Broken):
    """Can be iterated over again, and then has nothing."""

    def open(self, path: Path, *, strict: bool = False) -> Log:
        log = super().open(path, strict=strict)

        class Again(Log):
            def __iter__(self) -> Iterator[Item]:
                return iter(()) if self._begun else super().__iter__()

        return Again(log.path, log.kind, log.items, strict)


class Forgetful(Broken):
    """Takes what it has read before for known."""

    def __init__(self) -> None:
        super().__init__()
        self.read: set[str] = set()

    def items(self, path: Path, log: Log) -> Iterator[Item]:
        for item in super().items(path, log):
            name = repr(item)
            if name not in self.read:
                self.read.add(name)
                yield item


class Writing(Broken):
    def items(self, path: Path, log: Log) -> Iterator[Item]:
        path.with_suffix(".index").write_text("an index")
        return super().items(path, log)


class Touching(Broken):
    def items(self, path: Path, log: Log) -> Iterator[Item]:
        path.touch()
        return super().items(path, log)


class Greedy(Broken):
    def claim(self, path: Path, head: bytes) -> float:
        return 0.5


class Overbearing(Broken):
    def claim(self, path: Path, head: bytes) -> float:
        return 1.5


class Fragile(Broken):
    def claim(self, path: Path, head: bytes) -> float:
        return 1.0 if json.loads(head.split(b"\n")[0]) else 0.0


class Modest(Broken):
    def claim(self, path: Path, head: bytes) -> float:
        return 0.0


class Fatal(Broken):
    """One bad record ends it."""

    def items(self, path: Path, log: Log) -> Iterator[Item]:
        for item in super().items(path, log):
            if log.left_out.total:
                return
            yield item


class Lax(Broken):
    def open(self, path: Path, *, strict: bool = False) -> Log:
        return super().open(path, strict=False)


class Vague(Broken):
    def items(self, path: Path, log: Log) -> Iterator[Item]:
        try:
            yield from super().items(path, log)
        except RecordError:
            raise RecordError("a record is bad") from None


class Doubling(Broken):
    """Yields every record of a subject."""

    def items(self, path: Path, log: Log) -> Iterator[Item]:
        for each in path.read_text(encoding="utf-8").splitlines():
            part = path.with_name("part")
            part.write_text(each, encoding="utf-8")
            log.records += 1
            yield from jsonl.open(part)


class Printing(Broken):
    """Puts text from the log into its account as it is."""

    def tell(self, log: Log, inner: Log) -> None:
        super().tell(log, inner)
        if inner.left_out.total:
            log.left_out = type(inner.left_out)()
            log.left_out.add("duplicate \x1b[31mid", "line 1")


class Cleaning(Broken):
    def items(self, path: Path, log: Log) -> Iterator[Item]:
        for item in super().items(path, log):
            yield item.model_copy(update={"id": item.id.replace("<", "")})  # type: ignore[union-attr]


class Raising(Broken):
    """Lets the errors of its parser through."""

    def items(self, path: Path, log: Log) -> Iterator[Item]:
        for each in path.read_text(encoding="utf-8").splitlines():
            json.loads(each)
        return super().items(path, log)


class AlwaysStrict(Broken):
    def open(self, path: Path, *, strict: bool = False) -> Log:
        return super().open(path, strict=True)


class Hoarding(Broken):
    def items(self, path: Path, log: Log) -> Iterator[Item]:
        yield from list(super().items(path, log))


class AsWritten(Broken):
    """Keeps the order of the log instead of that of time."""

    def items(self, path: Path, log: Log) -> Iterator[Item]:
        for item, each in zip(super().items(path, log), path.read_text(encoding="utf-8").splitlines(), strict=True):
            first = json.loads(each)["activities"][0]["at"]
            yield item.model_copy(update={"attributes": {"first": first}})  # type: ignore[union-attr]


class Hopeful(Broken):
    """Takes a missing log for an empty one."""

    def items(self, path: Path, log: Log) -> Iterator[Item]:
        try:
            yield from super().items(path, log)
        except LogError:
            return


BROKEN: list[tuple[str, type[Broken]]] = [
    ("test_it_is_a_reader", Nameless),
    ("test_it_reads_a_good_log", Backwards),
    ("test_it_reads_a_good_log", Miscounting),
    ("test_it_is_read_once", Endless),
    ("test_two_readings_are_alike", Forgetful),
    ("test_it_never_writes", Writing),
    ("test_it_never_writes", Touching),
    ("test_it_claims_its_own_logs_and_no_others", Greedy),
    ("test_it_claims_its_own_logs_and_no_others", Overbearing),
    ("test_it_claims_its_own_logs_and_no_others", Modest),
    ("test_a_bad_record_is_left_out_by_name", Silent),
    ("test_a_bad_record_is_left_out_by_name", Fatal),
    ("test_a_bad_record_is_left_out_by_name", Printing),
    ("test_strict_stops_at_a_bad_record", Lax),
    ("test_strict_stops_at_a_bad_record", Vague),
    ("test_the_first_of_one_subject_is_kept", Doubling),
    ("test_text_comes_through_unchanged", Cleaning),
    ("test_text_comes_through_unchanged", Printing),
    ("test_a_log_that_was_cut_off_is_accounted_for", Silent),
    ("test_a_log_that_was_cut_off_is_accounted_for", Miscounting),
    ("test_a_log_that_was_cut_off_is_accounted_for", AlwaysStrict),
    ("test_it_holds_nothing_that_it_has_yielded", Hoarding),
    ("test_times_are_in_order", AsWritten),
    ("test_what_is_missing_is_a_log_error", Hopeful),
]


@pytest.mark.parametrize(("check", "broken"), BROKEN, ids=[f"{broken.__name__}-{check}" for check, broken in BROKEN])
def test_each_check_finds_what_it_is_for(check: str, broken: type[Broken], tmp_path: Path) -> None:
    class Suite(JsonlLogs):
        reader = broken()

    run = getattr(Suite(), check)
    with pytest.raises(AssertionError):
        run(tmp_path) if check != "test_it_is_a_reader" else run()


@pytest.mark.parametrize(
    ("check", "broken"),
    [("test_a_log_that_was_cut_off_is_accounted_for", Raising), ("test_it_claims_its_own_logs_and_no_others", Fragile)],
)
def test_an_error_of_the_reader_itself_is_not_swallowed(check: str, broken: type[Broken], tmp_path: Path) -> None:
    class Suite(JsonlLogs):
        reader = broken()

    with pytest.raises(ValueError, match=r"Expecting|Unterminated|Invalid"):
        getattr(Suite(), check)(tmp_path)


def test_every_check_is_seen_to_fail() -> None:
    checks = {name for name in dir(ReaderContract) if name.startswith("test_")}
    assert checks == {check for check, _ in BROKEN}

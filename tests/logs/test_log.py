"""What a log is, whatever its kind: read once, with an account that is bounded and fit to print."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evalr.errors import LogError, RecordError
from evalr.inputs import Session
from evalr.logs import Item, LeftOut, Log, Reader, Stored
from evalr.logs.log import NAMES, OTHERS


def three(log: Log) -> Iterator[Item]:
    for number in range(3):
        log.records += 1
        if number == 1:
            log.skip("naive time", "line 2")
        else:
            yield Session(id=str(number))


def test_a_log_is_read_once() -> None:
    log = Log("a.log", "test", three)
    assert [item.id for item in log if isinstance(item, Session)] == ["0", "2"]
    with pytest.raises(LogError, match=r"^a\.log: a log is read once"):
        iter(log)


def test_the_account_is_complete_when_the_iteration_has_ended() -> None:
    log = Log("a.log", "test", three)
    items = iter(log)
    next(items)
    assert (log.records, log.left_out.total) == (1, 0)
    assert len(list(items)) == 1
    assert (log.records, log.left_out.total) == (3, 1)


def test_strict_names_the_log_the_place_and_the_reason() -> None:
    with pytest.raises(
        RecordError, match=r"^a\.log, line 2: naive time; mend it, or read without strict to leave it out$"
    ):
        list(Log("a.log", "test", three, strict=True))


def test_left_out_in_words() -> None:
    left_out = LeftOut()
    assert (left_out.words(), left_out.total) == ("", 0)
    left_out.add("duplicate id", "line 881")
    for number in (17, 204):
        left_out.add("naive time", f"line {number}")
    assert str(left_out) == "2 naive times (lines 17, 204), 1 duplicate id (line 881)"
    assert repr(left_out) == "<LeftOut 2 naive times (lines 17, 204), 1 duplicate id (line 881)>"


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("not JSON", "2 not JSON"),
        ("unknown type 'x'", "2 unknown types 'x'"),
        ("unknown role 'type'", "2 unknown roles 'type'"),
        ("missing field 'id'", "2 missing fields 'id'"),
        ("wrong value in 'weight'", "2 wrong values in 'weight'"),
        ("cut off", "2 cut off"),
    ],
)
def test_reasons_have_a_plural(reason: str, words: str) -> None:
    left_out = LeftOut()
    left_out.add(reason, "line 1")
    assert left_out.words() == f"1 {reason} (line 1)"
    left_out.add(reason, "line 2")
    assert left_out.words() == f"{words} (lines 1, 2)"


def test_only_the_first_places_are_named() -> None:
    left_out = LeftOut()
    for number in range(1, 2001):
        left_out.add("not JSON", f"line {number}")
    assert left_out.places == {"not JSON": ["line 1", "line 2", "line 3"]}
    assert left_out.words() == "2,000 not JSON (lines 1, 2, 3, …)"


def test_places_that_are_no_lines_stand_as_they_are() -> None:
    left_out = LeftOut()
    left_out.add("unknown agent", "commit 1f3a")
    left_out.add("unknown agent", "line 3")
    assert left_out.words() == "2 unknown agent (commit 1f3a, line 3)"


def test_reasons_and_names_are_bounded_and_every_record_is_counted() -> None:
    log = Log("a.log", "test", three)
    for number in range(3 * NAMES):
        log.skip(f"unknown type '{number}'", f"line {number}")
        log.ignore_field(f"field{number}", 2)
    assert len(log.left_out.counts) == len(log.unknown_fields) == NAMES + 1
    assert log.left_out.total == 3 * NAMES
    assert log.left_out.counts[OTHERS] == 2 * NAMES
    assert log.unknown_fields[OTHERS] == 4 * NAMES
    log.skip("unknown type '0'", "line 0")
    assert log.left_out.counts["unknown type '0'"] == 2


def test_stored_results_name_their_measure() -> None:
    assert Stored._fields == ("measure", "result")


def test_a_reader_is_known_by_its_parts() -> None:
    assert not isinstance(object(), Reader)

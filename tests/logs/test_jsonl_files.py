"""A JSON Lines file as a whole: how it is stored, what is no such file, and that it is only ever read."""

from __future__ import annotations

import gzip
import json
import os
import random
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from evalr.errors import LogError, RecordError
from evalr.inputs import Session
from evalr.logs import Log
from evalr.logs.jsonl import reader

SESSIONS = 200


@pytest.fixture
def stored() -> bytes:
    """Texts that do not compress, so that a cut of the gzip file is a cut of the log."""
    noise = random.Random(1)
    lines = (json.dumps({"id": f"s{n}", "user": noise.randbytes(200).hex(), "activities": []}) for n in range(SESSIONS))
    return "".join(f"{line}\n" for line in lines).encode()


def ids(log: Log) -> list[str | None]:
    return [item.id for item in log if isinstance(item, Session)]


def refused(path: Path) -> str:
    with pytest.raises(LogError) as caught:
        list(reader.open(path))
    assert not isinstance(caught.value, RecordError)
    assert str(path) in str(caught.value)
    return str(caught.value)


# Compressed


@pytest.mark.parametrize("name", ["log.jsonl", "log.jsonl.gz", "log.txt", "log"])
def test_gzip_is_known_by_what_it_holds_and_not_by_its_name(name: str, stored: bytes, tmp_path: Path) -> None:
    path = tmp_path / name
    for content in (stored, gzip.compress(stored), gzip.compress(stored[:5000]) + gzip.compress(stored[5000:])):
        path.write_bytes(content)
        log = reader.open(path)
        assert len(ids(log)) == SESSIONS
        assert log.bytes_read == log.bytes_total == len(content)
        assert not log.left_out.total


def test_a_gzip_file_that_was_cut_off_is_read_as_far_as_it_goes(stored: bytes, tmp_path: Path) -> None:
    packed = gzip.compress(stored)
    path = tmp_path / "log.gz"
    counts = set()
    for end in range(20, len(packed), len(packed) // 40):
        path.write_bytes(packed[:end])
        log = reader.open(path)
        try:
            found = ids(log)
        except LogError as error:
            assert "damaged gzip" in str(error)  # noqa: PT017  either is right, and each is checked
            continue
        assert found == [f"s{number}" for number in range(len(found))]
        assert log.left_out.counts == {"cut off": 1}
        assert log.left_out.places == {"cut off": [f"line {len(found) + 1}"]}
        assert log.records == len(found) + 1
        counts.add(len(found))
        with pytest.raises(RecordError, match=rf"line {len(found) + 1}: cut off"):
            list(reader.open(path, strict=True))
    assert len(counts) > 5


def test_a_gzip_file_that_was_damaged_says_so(stored: bytes, tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(stored))
    packed[-6] ^= 0xFF  # the checksum: every line is read before it is known to be wrong
    path = tmp_path / "log.gz"
    path.write_bytes(packed)
    log = reader.open(path)
    assert len(ids(log)) == SESSIONS
    assert log.left_out.counts == {"damaged gzip": 1}
    path.write_bytes(gzip.compress(stored) + b"something else")
    log = reader.open(path)
    assert len(ids(log)) == SESSIONS
    assert log.left_out.counts == {"damaged gzip": 1}


@pytest.mark.parametrize("content", [b"\x1f\x8b", b"\x1f\x8b\x08\0\0\0", b"\x1f\x8b" + b"x" * 100], ids=len)
def test_a_gzip_file_of_which_nothing_can_be_read(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "log.gz"
    path.write_bytes(content)
    assert "damaged gzip file" in refused(path)


# What is no such file


NO_SUCH_FILES = {
    "nothing": (b"", "no records"),
    "blank lines": (b"\n\r\n  \n", "no records"),
    "a byte order mark": (b"\xef\xbb\xbf", "no records"),
    "nothing, compressed": (gzip.compress(b""), "no records"),
    "UTF-16": ('{"id": "s", "activities": []}\n'.encode("utf-16"), "UTF-16: save it as UTF-8"),
    "UTF-16 without a mark": ('{"id": "s", "activities": []}\n'.encode("utf-16-be"), "is not text"),
    "a picture": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(50), "is not text"),
    "every byte": (bytes(range(256)) * 20, "is not text"),
    "noise": (random.Random(1).randbytes(4000), "is not text"),
    "a table": (b"id,activities\ns,2\n", "none of its first lines is a JSON object"),
    "prose": (b"Tuesday: all went well.\n", "none of its first lines is a JSON object"),
    "lists": (b"[1, 2]\n[3]\n", "none of its first lines is a JSON object"),
    "Python": (b"{'id': 's', 'activities': []}\n", "none of its first lines is a JSON object"),
    "a list": (json.dumps([{"id": "s", "activities": []}]).encode(), "one JSON document"),
    "an indented list": (json.dumps([{"id": "s", "activities": []}], indent=2).encode(), "one JSON document"),
    "an indented object": (json.dumps({"id": "s", "activities": []}, indent=2).encode(), "one JSON document"),
    "a list after a mark": (b"\xef\xbb\xbf" + json.dumps([{"id": "s"}], indent=1).encode(), "one JSON document"),
    "a list, compressed": (gzip.compress(json.dumps([{"id": "s"}], indent=1).encode()), "one JSON document"),
}


@pytest.mark.parametrize(("content", "why"), NO_SUCH_FILES.values(), ids=NO_SUCH_FILES)
def test_what_is_no_such_file_is_refused_with_the_reason(content: bytes, why: str, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(content)
    assert why in refused(path)


def test_a_missing_file(tmp_path: Path) -> None:
    assert "no such file" in refused(tmp_path / "missing.jsonl")
    assert "no such file" in refused(tmp_path / "missing" / "log.jsonl")


def test_a_directory(tmp_path: Path) -> None:
    assert "is a directory" in refused(tmp_path)


def test_a_file_as_a_directory(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("x", encoding="utf-8")
    assert "cannot be read" in refused(path / "log.jsonl")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="whoever runs this may read everything")
def test_a_file_without_permission(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("{}", encoding="utf-8")
    path.chmod(0)
    assert "no permission" in refused(path)


def test_no_permission_is_said_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*args: object, **kwargs: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", denied)
    assert "no permission to read it" in refused(tmp_path / "log.jsonl")


# How it is read


def test_it_is_opened_for_reading_alone(stored: bytes, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(stored)
    path.chmod(stat.S_IRUSR)
    before = path.stat().st_mtime_ns
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        assert len(ids(reader.open(path))) == SESSIONS
    finally:
        tmp_path.chmod(stat.S_IRWXU)
    assert path.read_bytes() == stored
    assert path.stat().st_mtime_ns == before
    assert list(tmp_path.iterdir()) == [path]


def test_nothing_is_read_before_it_is_iterated_over(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    log = reader.open(path)
    path.write_bytes(b'{"id": "late", "activities": []}\n')
    assert ids(log) == ["late"]


def test_the_file_is_closed_when_the_reading_stops_early(stored: bytes, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(stored)
    items = iter(reader.open(path))
    next(items)
    del items  # an open file would be a ResourceWarning, which is an error here
    path.write_bytes(b"")


def test_progress_is_told_on_the_way(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    line = b'{"id": "%d", "activities": []}\n'
    path.write_bytes(b"".join(line % number for number in range(20_000)))
    log = reader.open(path)
    told = [log.bytes_read for number, _ in enumerate(log) if number % 5000 == 4999]
    assert log.bytes_total == path.stat().st_size
    assert 0 < told[0] < told[-1] <= log.bytes_total
    assert told == sorted(told)


def test_a_pipe_is_read_as_it_comes(stored: bytes) -> None:
    if not Path("/dev/stdin").exists():
        pytest.skip("this system has no /dev/stdin")
    code = (
        "from pathlib import Path; from evalr.logs.jsonl import reader; log = reader.open(Path('/dev/stdin')); "
        "print(len(list(log)), log.bytes_total)"
    )
    for content in (stored, gzip.compress(stored)):
        ran = subprocess.run([sys.executable, "-c", code], input=content, capture_output=True, check=True)
        assert ran.stdout.decode().split() == [str(SESSIONS), "None"]


def test_a_block_of_nul_bytes_costs_one_line(stored: bytes, tmp_path: Path) -> None:
    """What a crash leaves in a log that is otherwise sound."""
    path = tmp_path / "log.jsonl"
    lines = stored.splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:3]) + bytes(4096) + b"\n" + b"".join(lines[3:]))
    log = reader.open(path)
    assert len(ids(log)) == SESSIONS
    assert log.left_out.places == {"not JSON": ["line 4"]}


def test_a_log_of_bad_lines_alone_is_an_account_and_no_error(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"id": "t", "turns": []}\n' * 5)
    log = reader.open(path)
    assert list(log) == []
    assert log.left_out.counts == {"missing field 'request'": 5}

"""Which reader a log is for: by looking, by name, or by an error that says how to choose."""

from __future__ import annotations

import gzip
import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from evalr.errors import AmbiguousLogError, LogError, PluginError, UnknownLogError
from evalr.inputs import Session
from evalr.logs import Log, Reader, find_reader, finding, installed_readers, read
from evalr.logs.jsonl import reader as jsonl
from evalr.plugins import Plugins

GOOD = b'{"id": "s", "activities": []}\n'


@dataclass
class Fixed:
    """A reader that claims every log alike."""

    name: str
    sure: float
    describes: str = "logs of a test"

    def claim(self, path: Path, head: bytes) -> float:
        if self.sure < 0:
            raise RuntimeError("cannot say")
        return self.sure

    def open(self, path: Path, *, strict: bool = False) -> Log:
        return Log(str(path), self.name, lambda log: iter(()), strict)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "log.jsonl"
    path.write_bytes(GOOD)
    return path


def install(monkeypatch: pytest.MonkeyPatch, *readers: Reader, **broken: str) -> None:
    found: Plugins[Reader] = Plugins({reader.name: reader for reader in readers}, broken)
    monkeypatch.setattr(finding, "installed_readers", lambda: found)


def test_our_reader_is_installed_and_found(path: Path) -> None:
    assert installed_readers().loaded["jsonl"] is jsonl
    assert find_reader(path) is jsonl
    assert [item.id for item in read(path) if isinstance(item, Session)] == ["s"]
    assert read(str(path), kind="jsonl", strict=True).strict


def test_the_surest_reads_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, Fixed("a", 0.2), Fixed("b", 0.6), Fixed("c", 0.0))
    assert find_reader(path).name == "b"
    assert read(path).kind == "b"


@pytest.mark.parametrize("claim", [None, "sure", 1j])
def test_a_claim_that_is_no_number_harms_no_other_reader(
    path: Path, monkeypatch: pytest.MonkeyPatch, claim: object
) -> None:
    bad = Fixed("bad", 1.0)
    monkeypatch.setattr(bad, "claim", lambda path, head: claim)
    install(monkeypatch, bad, Fixed("good", 0.5))
    assert find_reader(path).name == "good"
    install(monkeypatch, bad)
    with pytest.raises(UnknownLogError, match="'bad' cannot be used: TypeError"):
        find_reader(path)


def test_equal_claims_are_an_error_that_names_both_and_how_to_choose(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, Fixed("a", 0.6), Fixed("b", 0.6), Fixed("c", 0.5))
    with pytest.raises(AmbiguousLogError) as caught:
        read(path)
    message = str(caught.value)
    assert str(path) in message
    assert "--log a or --log b" in message
    assert "c" not in message.replace(str(path), "").replace("claim", "").replace("choose", "").split()
    assert read(path, kind="b").kind == "b"


def test_a_log_that_nobody_knows_is_an_error_that_lists_the_readers(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, Fixed("a", 0.0, "poems"), other="needs 'poet', which is not installed")
    with pytest.raises(UnknownLogError) as caught:
        read(path)
    message = str(caught.value)
    for part in (str(path), "a (poems)", "'other' cannot be used: needs 'poet'", "--log KIND"):
        assert part in message


def test_a_name_that_nobody_has(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, Fixed("a", 1.0), other="needs 'poet', which is not installed")
    with pytest.raises(UnknownLogError, match=r"no reader is named 'none'.*a \(logs of a test\).*needs 'poet'"):
        read(path, kind="none")
    with pytest.raises(PluginError, match="the reader 'other' cannot be used: needs 'poet', which is not installed"):
        read(path, kind="other")


@pytest.mark.parametrize("sure", [-1.0, 1.5, float("nan")])
def test_a_reader_that_fails_to_say_is_listed_and_stops_no_other(
    sure: float, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, Fixed("bad", sure), Fixed("good", 0.1))
    assert find_reader(path).name == "good"
    install(monkeypatch, Fixed("bad", sure))
    with pytest.raises(UnknownLogError, match=r"'bad' cannot be used: (RuntimeError: cannot say|claims)"):
        find_reader(path)


def test_no_reader_at_all(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)
    with pytest.raises(UnknownLogError, match="readers: none"):
        read(path)


@pytest.mark.parametrize(("content", "why"), [(b"", "is empty"), (None, "no such file")])
def test_what_cannot_be_looked_at(content: bytes | None, why: str, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(LogError, match=why):
        read(path)


def test_a_directory_is_shown_without_a_head(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heads: list[bytes] = []

    class Looking(Fixed):
        def claim(self, path: Path, head: bytes) -> float:
            heads.append(head)
            return 1.0

    install(monkeypatch, Looking("a", 1.0))
    find_reader(tmp_path)
    assert heads == [b""]
    path = tmp_path / "log"
    path.write_bytes(gzip.compress(GOOD * 10_000))
    find_reader(path)
    path.write_bytes(gzip.compress(GOOD)[:-12])
    find_reader(path)
    assert heads[1] == (GOOD * 10_000)[: finding.HEAD]
    assert GOOD.startswith(heads[2])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_not_looked_at_since_that_would_use_it_up(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(LogError, match="read only once: say what it is with --log KIND"):
        find_reader(path)
    assert find_reader(path, kind="jsonl") is jsonl


# What ours claims

SURE = [
    GOOD,
    b"\xef\xbb\xbf" + GOOD,
    b"\n\n" + GOOD,
    b'{"id": "h", "revisions": [], "path": "x"}\n',
    b'{"request": "r", "turns": []}\n',
    b'{"type": "session", "id": "s"}\n',
    b'{"evaluator": "completion", "value": {}}\n',
    b'{"type": "result", "status": "skipped", "measure": "completion", "reason": "r"}\n',
    b"not JSON\n" + GOOD,
]
PERHAPS = [
    b'{"id": "t", "turns": [{"role": "user", "content": "hi"}]}\n',
    b'{"id": "s", "activities": [{"at": "2026-09-28T09:00:00Z", "role": "agent"}, {"at": "20',
    b'{"type": "session", "cwd": "x"}\n',
]
TO_EXPLAIN = [
    GOOD.decode().encode("utf-16"),
    b"[\n" + GOOD + b"]\n",
    b"[" + GOOD.strip() + b"]",
    b'{\n  "id": "s",\n  "activities": []\n}\n',
]
FOREIGN = [
    b"",
    b"\n",
    b'{"type": "user", "message": {"role": "user"}, "sessionId": "x"}\n',
    b'{"status": 200, "path": "/"}\n',
    b'{"messages": []}\n',
    b'[{"role": "user"}]\n[{"role": "user"}]\n',
    b"SQLite format 3\0" + bytes(100),
    b"id,activities\n",
]


@pytest.mark.parametrize(
    ("head", "claim"),
    [
        *((head, 0.9) for head in SURE),
        *((head, 0.5) for head in PERHAPS),
        *((head, 0.05) for head in TO_EXPLAIN),
        *((head, 0.0) for head in FOREIGN),
    ],
    ids=repr,
)
def test_how_sure_our_reader_is(head: bytes, claim: float) -> None:
    assert jsonl.claim(Path("log"), head) == claim


def test_our_reader_claims_a_log_by_the_part_of_its_first_line_that_it_sees() -> None:
    head = b'{"id": "t", "request": "r", "turns": [{"role": "agent", "text": "' + b"x" * 70_000
    assert jsonl.claim(Path("log"), head[: finding.HEAD]) > 0.05

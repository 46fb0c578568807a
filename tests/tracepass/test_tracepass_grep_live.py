"""`evalr tracepass grep --by live`: what a service fires on, beside the rules that run here."""

from __future__ import annotations

from pathlib import Path

import pytest
from reflex_service import FakeReflex
from tracepass_command import conversation, ran, write_lines

GREP = ("grep", "rude|negative", "traces.jsonl", "--by", "live")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lines = [conversation(f"c{n}", f"{'bad' if n == 1 else 'good'} {n}", user=f"u{n}") for n in range(3)]
    write_lines(tmp_path / "traces.jsonl", *lines, conversation("c3", "this is useless, useless garbage", user="u3"))
    return tmp_path


def test_a_service_reads_what_no_classifier_here_does(folder: Path, fake: FakeReflex) -> None:
    code, out, err = ran(folder, *GREP, "--yes")
    assert code == 0, err
    assert [line.split("\t")[1:4:2] for line in out.splitlines()] == [["c1", "bad"], ["c3", "negative"]]
    assert set(fake.billed.values()) == {1}
    assert len(fake.billed) == 4
    assert fake.requests["upload"] == 0


def test_nobody_pays_without_a_yes(folder: Path, fake: FakeReflex) -> None:
    code, _, err = ran(folder, *GREP)
    assert code == 2
    assert "--yes" in err
    code, _, err = ran(folder, *GREP, "--rate", "0.5", "--budget", "1.99", "--yes")
    assert code == 2
    assert "would cost $2.00, more than the budget of $1.99" in err
    assert not fake.billed
    assert ran(folder, *GREP, "--rate", "0.5", "--budget", "2", "--yes")[0] == 0


def test_a_service_that_cannot_be_asked_is_asked_no_further(
    folder: Path, fake: FakeReflex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MORPH_API_KEY", "another")
    code, out, err = ran(folder, *GREP, "--yes")
    assert (code, out) == (2, "")
    assert "401" in err
    assert fake.requests.total() <= 4  # the texts of one batch, at most, and none again
    assert not fake.billed


def test_no_key_and_other_ways_are_refused_before_anything_is_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MORPH_API_KEY", raising=False)
    code, _, err = ran(folder, *GREP)
    assert (code, "set MORPH_API_KEY" in err) == (2, True)
    code, _, err = ran(folder, "grep", "negative", "traces.jsonl", "--by", "batch")
    assert (code, "run --by batch" in err) == (2, True)

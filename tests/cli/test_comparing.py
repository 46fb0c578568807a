"""`evalr compare`: two files in, a comparison out, and an exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import BaseModel

from evalr import FunctionEvaluator
from evalr.cli import main
from evalr.labels import Dataset, Example
from evalr.measures import TaskCompletion, Transcript
from evalr.runs import experiment_sync


def saved(path: Path, share: float, *, size: int = 60, version: str = "1") -> str:
    def look(given: Transcript) -> TaskCompletion:
        done = int(str(given.id)) < size * share
        return TaskCompletion(completed=done, quality=4 if done else 2)

    whole = Dataset("some", [Example(Transcript(id=str(n), request="x")) for n in range(size)])
    judge = FunctionEvaluator("completion", version, look, Transcript, TaskCompletion)
    experiment_sync(whole, None, judge, name=path.stem).save(path)
    return str(path)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["compare", *arguments])
    return code, *capsys.readouterr()


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    return saved(tmp_path / "before.jsonl", 0.5), saved(tmp_path / "after.jsonl", 0.8)


def test_it_compares_what_both_have(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, *files)
    assert code == 0
    assert out.startswith("before → after\n  completion 50.0% → 80.0% · +30.0pp [")
    assert "18 gained, 0 lost" in out
    assert "completion_quality 3 → 3.60" in out


@pytest.mark.parametrize(
    ("condition", "code", "verdict"),
    [("completion > -2pp", 0, "passed"), ("completion > 29pp", 1, "not cleared")],
)
def test_a_gate_is_the_exit_code(
    files: tuple[str, str],
    capsys: pytest.CaptureFixture[str],
    condition: str,
    code: int,
    verdict: str,
) -> None:
    found, out, _ = run(capsys, *files, "--gate", condition)
    assert found == code
    assert f"{verdict:<11}  {condition}" in out


def test_everything_as_json(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, *files, "--json", "--gate", "completion>0", "--correction", "none")
    found = json.loads(out)
    assert found["measures"][0]["difference"] == pytest.approx(0.3)
    assert found["gate"][0]["verdict"] == "passed"
    assert found["correction"] is None


def test_what_cannot_be_compared_is_misuse(
    files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = saved(tmp_path / "other.jsonl", 0.5, version="2")
    small = saved(tmp_path / "small.jsonl", 0.5, size=30)
    for arguments, message in (
        ((files[0], str(tmp_path / "none.jsonl")), "cannot be read"),
        ((files[0], other), "pass mix_versions=True (--mix-versions)"),
        ((files[0], small), "pass mix_datasets=True (--mix-datasets)"),
        ((*files, "--gate", "nothing > 0"), "no measure is named 'nothing'"),
        ((*files, "--correction", "x"), "there are: holm, bh, none"),
    ):
        code, _, err = run(capsys, *arguments)
        assert code == 2
        assert message in err
    assert run(capsys, files[0], other, "--mix-versions")[0] == 0
    assert run(capsys, files[0], small, "--mix-datasets")[0] == 0


def test_verdicts_of_no_installed_measure_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Own(BaseModel):
        good: bool

    judge = FunctionEvaluator("own", "1", lambda given: Own(good=True), Transcript, Own)
    whole = Dataset("some", [Example(Transcript(id="a", request="x"))])
    experiment_sync(whole, None, judge).save(tmp_path / "own.jsonl")
    code, _, err = run(capsys, str(tmp_path / "own.jsonl"), str(tmp_path / "own.jsonl"))
    assert code == 2
    assert "'Own' is of no installed measure" in err
    assert "the command knows" in err
    assert "in Python" in err

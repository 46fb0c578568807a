"""The reader: held to the contract, as a line and as a row, and asked for by the command."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import tracemalloc
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import pytest
from reflexr_samples import Row, Writer, write_sqlite, write_wire

from evalr import LogError, report
from evalr.inputs import Input
from evalr.logs import Item
from evalr.logs.finding import find_reader
from evalr.reflexr import chains, rule_outcomes, time_to_resolution
from evalr.testing import ReaderContract
from evalr_reflexr import Chain
from evalr_reflexr.reader import reader


def rows_of(ids: Iterable[str]) -> list[Row]:
    writer = Writer()
    for name in ids:
        writer.event("desk:ticket.opened", id=name, after=3_600)
    return writer.rows


def id_of(item: Item) -> str | None:
    """The id of a chain's first event; sessions are derived from chains."""
    if not isinstance(item, Chain):
        return None
    return item.id.rpartition("/")[2].replace("%2F", "/").replace("%25", "%")


class TestWire(ReaderContract):
    reader = reader
    stands_alone = False  # an export is read as of its last event

    def write(self, folder: Path, ids: Iterable[str]) -> Path:
        return write_wire(folder / "log.jsonl", rows_of(ids))

    def write_with_a_bad_record(self, folder: Path) -> Path:
        path = self.write(folder, ["a", "b", "c"])
        lines = path.read_text(encoding="utf-8").splitlines()
        path.write_text("\n".join([lines[0], '{"seq": 2', *lines[1:]]) + "\n", encoding="utf-8")
        return path

    def write_out_of_order(self, folder: Path) -> tuple[Path, Path]:
        writer = Writer()
        chain = writer.event("desk:ticket.opened")
        writer.event("desk:ticket.resolved", chain=chain)
        writer.event("desk:ticket.reopened", chain=chain)
        backwards = writer.rows[::-1]
        return write_wire(folder / "ordered.jsonl", writer.rows), write_wire(folder / "other.jsonl", backwards)

    def id_of(self, item: Item) -> str | None:
        return id_of(item)


class TestStore(ReaderContract):
    reader = reader
    bytes_a_record = 400
    hostile: ClassVar[Any] = [each for each in ReaderContract.hostile if "\0" not in each]

    def write(self, folder: Path, ids: Iterable[str]) -> Path:
        path = folder / "store.db"
        path.unlink(missing_ok=True)
        return write_sqlite(path, rows_of(ids), unique=False)

    def write_with_a_bad_record(self, folder: Path) -> Path:
        good = rows_of(["a", "b", "c"])
        bad = (*good[1][:2], 9, "d", '{"seq": 9', *good[1][5:])
        return write_sqlite(folder / "bad.db", [*good, bad])

    def test_the_first_of_one_subject_is_kept(self, tmp_path: Path) -> None:
        """reflexr's own constraint keeps a second event of one id out of a workspace."""
        with pytest.raises(sqlite3.IntegrityError):
            write_sqlite(tmp_path / "store.db", rows_of(["a", "b", "a"]))

    def id_of(self, item: Item) -> str | None:
        return id_of(item)


def test_both_kinds_are_found_by_looking(oracle_sqlite: Path, oracle_wire: Path) -> None:
    assert find_reader(oracle_sqlite).name == "reflexr"
    assert find_reader(oracle_wire).name == "reflexr"


def test_inputs_are_what_their_models_read_back(oracle_sqlite: Path) -> None:
    """They are made without validation, for speed: nothing of them may be other than validation would have it."""
    for item in reader.open(oracle_sqlite):
        assert isinstance(item, Input)
        assert type(item).model_validate(item.model_dump()) == item


# The command


def evalr(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "evalr.cli", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, env={**os.environ, **environment}
    )


def test_the_command_takes_what_the_log_needs(oracle_sqlite: Path) -> None:
    options = ["--tenant", "acme", "--workspace", "prod", "--starts", "oncall:service.error", "--starts", "*.finished"]
    options += ["--resolves", "incident.resolved", "--resolves=incident.report", "--compat", "reflexr", "--json"]
    done = evalr("report", oracle_sqlite, *options, "--now", "2026-11-02T11:49:49Z")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["log"]["inputs"] == {"run": 73, "chain": 28, "session": 28}
    sections = {section["measure"]: section for section in found["sections"]}
    assert sections["rules"]["settings"] == {"compat": "reflexr"}
    estimates = {row["estimate"]["name"]: row["estimate"] for row in sections["chains"]["rows"]}
    assert estimates["chains_median"]["counts"]["ended"] == 4
    (rates,) = (row for row in sections["rules"]["rows"] if row["estimate"]["name"] == "rules_dead_lettered")
    assert rates["grouped_by"] == "rule"
    assert {group["group"]: group["value"] for group in rates["groups"]}["oncall:triage"] == 4 / 26


def test_the_command_says_what_is_wrong(oracle_sqlite: Path) -> None:
    for arguments, message in (
        (["--workspace", "nowhere"], "no workspace 'nowhere'"),
        (["--compat", "mine"], "compat='mine' must be 'reflexr'"),
        (["--tenant"], "--tenant needs a value"),
        (["--feedback", "resolution"], "write TYPE=MEASURE"),
        (["--nothing", "x"], "No such option"),
    ):
        done = evalr("report", oracle_sqlite, *arguments)
        assert done.returncode == 2
        assert message in done.stderr


def test_a_gate_on_a_rule_rate(oracle_sqlite: Path) -> None:
    assert evalr("gate", "rules_dead_lettered<50%", oracle_sqlite, "--tenant", "acme").returncode == 0
    assert evalr("gate", "rules_dead_lettered<1%", oracle_sqlite, "--tenant", "acme").returncode == 1


# Memory


def large(count: int) -> Iterator[Row]:
    writer = Writer()
    for _ in range(count):
        chain = writer.event("desk:ticket.opened", after=1, note="x" * 100)
        run = f"fir_{len(writer.rows)}"
        writer.fact("rule_fired", run, chain=chain, matched=[1], after=0)
        writer.fact("run_succeeded", run, chain=chain, after=0)
        writer.event("desk:ticket.resolved", chain=chain, after=0)
    yield from writer.rows


def test_memory_does_not_grow_with_the_log(tmp_path: Path) -> None:
    """Beyond the texts that the JSON parser keeps for the next time they come, of which there are at most 16,384."""
    path = write_sqlite(tmp_path / "store.db", large(6_000))
    assert path.stat().st_size > 8_000_000
    tracemalloc.start()
    try:
        assert rule_outcomes(path)["r"].runs == 6_000
        assert sum(1 for _ in chains(path)) == 6_000
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2_000_000


def test_a_folder_is_not_a_log(tmp_path: Path) -> None:
    assert reader.claim(tmp_path, b"") == 0
    with pytest.raises(LogError, match="a directory"):
        time_to_resolution(tmp_path, resolves="x")


@pytest.mark.parametrize(
    ("measures", "inputs"),
    [
        (["rules"], {"run": 85}),
        (["chains"], {"chain": 38}),
        (["rules", "chains"], {"run": 85, "chain": 38}),
        (["drop_off"], {"session": 38}),
        (["chains", "waits"], {"chain": 38, "session": 38}),
        (None, {"run": 85, "chain": 38, "session": 38}),
    ],
)
def test_a_report_reads_what_its_measures_need(
    oracle_sqlite: Path, measures: list[str] | None, inputs: dict[str, int]
) -> None:
    """And says of them what it says where everything is read."""
    now = datetime(2026, 11, 2, 12, tzinfo=UTC)
    found, whole = report(oracle_sqlite, measures=measures, now=now), report(oracle_sqlite, now=now)
    assert found.inputs == inputs
    for row in found.rows:
        assert row.estimate == whole[row.estimate.name]
    assert found.records == sum(inputs.values()) - inputs.get("session", 0) * ("chain" in inputs) + (
        found.left_out.total
    )

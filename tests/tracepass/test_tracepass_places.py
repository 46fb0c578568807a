"""Passes in one place, results in another: SQLite or PostgreSQL, and ClickHouse by clickhouse-connect's own client."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from clickhouse_server import PASSWORD, serving
from tracepass_command import begun, conversation, parsed, ran, write_lines

from evalr.errors import InputError, StoreError
from evalr.inputs import Now
from evalr.testing import ResultStoreContract
from evalr.tracepass import Account, clickhouse_results, open_store, read_records
from evalr_tracepass.command.options import Place
from evalr_tracepass.command.places import clickhouse_client, is_there, opened, options_of

pytest.importorskip("chdb")
pytest.importorskip("clickhouse_connect")

NEGATIVE = ["--signal", "heuristic-negative-tone"]
ANGRY = "This is useless, awful and terrible!!"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(tmp_path_factory.mktemp("clickhouse")) as address:
        yield address


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lines = [
        conversation("calm", "Where is my order?", "It left today."),
        conversation("angry", "Where is it?", "On its way.", ANGRY, user="bob"),
    ]
    write_lines(tmp_path / "traces.jsonl", *lines)
    return tmp_path


def database(folder: Path) -> str:
    return f"t{abs(hash(str(folder)))}"


class TestClickHouseOverHttp(ResultStoreContract):
    @pytest.fixture(autouse=True)
    def _server(self, server: str) -> Iterator[None]:
        self.clients: list[Any] = []
        self.server = server
        yield
        for client in self.clients:
            client.close()

    def open(self, folder: Path, now: Now) -> Any:
        client, name = clickhouse_client(f"clickhouse://default:{PASSWORD}@{self.server}/{database(folder)}")
        self.clients.append(client)
        return clickhouse_results(client, database=name, now=now)


def test_R12_results_are_kept_in_clickhouse_and_passes_in_a_file(folder: Path, server: str) -> None:
    at = ["--results", f"clickhouse://default:{PASSWORD}@{server}/{database(folder)}", "--store", "passes.db"]
    code, out, err = ran(folder, "run", "traces.jsonl", *NEGATIVE, *at)
    assert code == 0, err
    assert out.splitlines()[:3] == ["Pass complete", "1 conversation flagged", "1 selected label"]
    # What to type next finds the same places, and repeats no password.
    assert PASSWORD not in out + err
    shown = f"clickhouse://default@{server}/{database(folder)}"
    assert out.splitlines()[3].endswith(f" --store passes.db --results {shown}")
    assert ran(folder, "results", *at)[1].startswith("angry  [negative ")
    assert ran(folder, "results", "--convo", "angry", *at)[1].splitlines()[1].startswith("  Turn 2  [negative ")
    assert parsed(folder, "status", "latest", *at)["flagged"] == 1
    (found,) = parsed(folder, "passes", *at)["passes"]
    assert (found["completed"], found["flagged"]) == (3, 1)
    (rate,) = parsed(folder, "results", "--rates", *at)["rates"]
    assert rate["turns"]["counts"] == {"hits": 1, "total": 3}
    assert parsed(folder, "export", "out.jsonl", *at)["results"] == len(read_records(folder / "out.jsonl")) == 3
    assert ran(folder, "grep", "negative", "traces.jsonl", "--only-new", *at)[0] == 1
    code, out, _ = ran(folder, "run", "traces.jsonl", *NEGATIVE, "--only-new", *at, "--json")
    assert (code, json.loads(out)["total_inputs"]) == (1, 0)
    assert parsed(folder, "monitor", "traces.jsonl", *NEGATIVE, "--now", "2026-11-02", *at)["total_inputs"] == 0
    # The file has the passes, and none of their results.
    store = open_store(folder / "passes.db")
    assert list(store.results(Account("local"), passes="all")) == []
    store.close()
    assert parsed(folder, "prune", "--now", "2100-01-01", *at) == {"removed": 3}


def test_R12_results_that_are_elsewhere_are_missed(folder: Path, server: str) -> None:
    at = ["--results", f"clickhouse://default:{PASSWORD}@{server}/{database(folder)}"]
    ran(folder, "run", "traces.jsonl", *NEGATIVE, *at)
    elsewhere = "none of its results are here: they have expired, or are kept where --results says"
    assert elsewhere in ran(folder, "status", "latest")[1].splitlines()
    assert elsewhere not in ran(folder, "status", "latest", *at)[1].splitlines()
    assert ran(folder, "results")[1].splitlines() == ["no conversation was flagged", elsewhere]


def test_R12_places_and_passwords_may_be_in_the_environment(
    folder: Path, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALR_TRACEPASS_STORE", "passes.db")
    monkeypatch.setenv("EVALR_TRACEPASS_RESULTS", f"clickhouse://{server}/{database(folder)}")
    monkeypatch.setenv("CLICKHOUSE_PASSWORD", PASSWORD)
    assert parsed(folder, "run", "traces.jsonl", *NEGATIVE)["flagged"] == 1
    assert parsed(folder, "results")["conversations"][0]["convo_id"] == "angry"
    assert not (folder / "tracepass.db").exists()


def test_R12_passes_in_postgresql_and_results_in_clickhouse(folder: Path, server: str, postgres: Any) -> None:
    store = postgres.make(f"command_{database(folder)}")
    at = ["--store", store, "--results", f"clickhouse://default:{PASSWORD}@{server}/{database(folder)}"]
    assert parsed(folder, "run", "traces.jsonl", *NEGATIVE, *at)["flagged"] == 1
    ran(folder, "signals", "save", "grumpy", "--model", "heuristic-negative-tone", "--fires-on", "negative", *at)
    assert ran(folder, "grep", "grumpy", "traces.jsonl", *at)[0] == 0
    assert ran(folder, "results", *at)[1].startswith("angry  [negative ")
    assert [path.name for path in folder.iterdir()] == ["traces.jsonl"]


def test_R12_the_engine_of_clickhouse_may_run_in_the_command(folder: Path) -> None:
    at = ["--results", "chdb://kept"]
    for arguments, said in (
        (["run", "traces.jsonl", *NEGATIVE], "1 conversation flagged"),
        (["results"], "angry  [negative "),
    ):
        with begun(folder, *arguments, *at) as child:
            out, err = child.communicate(timeout=120)
        assert child.returncode == 0, err
        assert said in out
    assert (folder / "kept").is_dir()


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("mysql://h/db", "results are kept in clickhouse://host:8123/database"),
        ("results.db", "results are kept in clickhouse://host:8123/database"),
        ("clickhouse:///db", "names no host"),
        ("clickhouse://h:port/db", "it cannot be read as an address"),
        ("clickhouse://ann:hush@127.0.0.1:9/db", "clickhouse://ann@127.0.0.1:9/db: ClickHouse cannot be used there"),
    ],
)
def test_R12_an_address_that_cannot_be_used_says_so(folder: Path, address: str, message: str) -> None:
    code, out, err = ran(folder, "run", "traces.jsonl", *NEGATIVE, "--results", address)
    assert (code, out) == (2, "")
    assert message in err
    assert "hush" not in err


def test_R12_a_wrong_password_is_told_without_it(server: str) -> None:
    with pytest.raises(StoreError, match=r"^clickhouse://default@.*code 516") as caught:
        clickhouse_client(f"clickhouse://default:wrong-one@{server}/db")
    assert "wrong-one" not in str(caught.value)


def test_R12_a_database_is_a_name(folder: Path, server: str) -> None:
    place = Place(store=str(folder / "p.db"), results_in=f"clickhouse://default:{PASSWORD}@{server}/a;DROP")
    with pytest.raises(InputError), opened(place, new=True):
        pass


def test_B20_what_to_type_next_is_as_short_as_it_can_be(folder: Path) -> None:
    assert options_of(Place()) == ""
    place = Place(store="postgresql://ann:hush@db/x", account="me and you", org="acme")
    assert options_of(place) == " --store postgresql://ann@db/x --account 'me and you' --org acme"
    assert is_there(place)
    assert not is_there(Place(store=str(folder / "nothing.db")))

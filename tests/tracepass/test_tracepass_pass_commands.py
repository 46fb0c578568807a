"""`evalr tracepass run` and what follows it: classifiers that run here, and a service over HTTP."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tracepass_command import conversation, parsed, ran, write_lines

from evalr.cli import main
from evalr.tracepass import read_records
from evalr_tracepass.heuristics import HEURISTICS

NEGATIVE = ["--signal", "heuristic-negative-tone"]
FRUSTRATED = ["--signal", "user-frustration", "--by", "batch"]
SECRET = "you cannot find this in a store"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lines = [
        conversation("calm", f"Where is my order? {SECRET}", "It left today."),
        conversation("angry", "Where is it?", "On its way.", "This is useless, awful and terrible!!", user="bob"),
    ]
    write_lines(tmp_path / "traces.jsonl", *lines)
    return tmp_path


def test_B15_a_run_says_what_it_comes_to_and_how_it_ended(folder: Path) -> None:
    code, out, err = ran(folder, "run", "traces.jsonl", *NEGATIVE)
    assert code == 0
    assert out.splitlines()[:3] == ["Pass complete", "1 conversation flagged", "1 selected label"]
    assert out.splitlines()[3].startswith("View flagged conversations: evalr tracepass results ")
    assert err.splitlines()[:3] == ["3 trace inputs", "3 predictions", "Estimated cost: $0.00"]
    kept = parsed(folder, "passes")["passes"][0]["estimate"]
    assert (kept["cost"], kept["rate"]) == (0, 0)


def test_B20_a_run_in_which_nothing_fired_exits_with_1(folder: Path) -> None:
    assert ran(folder, "run", "traces.jsonl", *NEGATIVE, "--convo", "calm")[0] == 1


def test_B16_results_list_flagged_conversations_with_their_chips(folder: Path) -> None:
    ran(folder, "run", "traces.jsonl", *NEGATIVE)
    (line,) = ran(folder, "results")[1].splitlines()
    assert line.startswith("angry  [negative ")
    found = parsed(folder, "results")["conversations"][0]
    assert (found["convo_id"], found["fired_count"], found["completed"], found["failed"]) == ("angry", 1, 2, 0)


def test_B17_one_conversation_shows_its_turns_and_clean_ones_when_asked(folder: Path) -> None:
    ran(folder, "run", "traces.jsonl", *NEGATIVE)
    lines = ran(folder, "results", "--convo", "angry")[1].splitlines()
    assert [line.split()[0] for line in lines] == ["angry", "Turn"]
    assert lines[1].startswith("  Turn 2  [negative ")
    assert len(ran(folder, "results", "--convo", "angry", "--all")[1].splitlines()) == 3


def test_M1_results_as_rates(folder: Path) -> None:
    ran(folder, "run", "traces.jsonl", *NEGATIVE)
    (found,) = parsed(folder, "results", "--rates")["rates"]
    assert found["conversations"]["counts"] == {"hits": 1, "total": 2}
    assert found["turns"]["counts"] == {"hits": 1, "total": 3}
    assert found["coverage"]["share"] == 1.0


def test_B16_results_say_why_there_is_nothing_to_show(folder: Path) -> None:
    ran(folder, "run", "traces.jsonl", *NEGATIVE, "--signal", "heuristic-thinking-tags")
    clean = ran(folder, "results", "--convo", "angry", "--signal", "heuristic-thinking-tags")[1]
    assert clean == "nothing fired in angry by heuristic-thinking-tags; --all shows what was read\n"
    for options in ([], ["--all"]):
        assert ran(folder, "results", "--convo", "nobody", *options)[1] == "there are no results of nobody\n"
    assert ran(folder, "results", "--signal", "typo")[1] == "no conversation was flagged by typo\n"


def test_B14_the_latest_pass_is_meant_where_none_is_named(folder: Path) -> None:
    ran(folder, "run", "traces.jsonl", *NEGATIVE)
    assert ran(folder, "status") == ran(folder, "status", "latest")
    assert ran(folder, "sync")[0] == 0


def test_B14_the_passes_of_an_account(folder: Path) -> None:
    assert ran(folder, "passes")[1].splitlines()[0] == "No Reflex passes yet"
    ran(folder, "run", "traces.jsonl", *NEGATIVE)
    ran(folder, "run", "traces.jsonl", *NEGATIVE, "--rerun-all", "--where", "user=bob")
    found = parsed(folder, "passes")["passes"]
    assert [each["chosen"] for each in found] == ["filtered", "all"]
    # The latest pass that read a conversation counts; all and one can be asked for.
    assert parsed(folder, "export", "latest.jsonl")["results"] == 3
    assert parsed(folder, "export", "all.jsonl", "--pass", "all")["results"] == 5
    assert parsed(folder, "export", "one.jsonl", "--pass", found[0]["id"][:8])["results"] == 2


def test_B18_an_account_sees_no_other(folder: Path) -> None:
    ran(folder, "run", "traces.jsonl", *NEGATIVE, "--account", "ada", "--org", "acme")
    assert parsed(folder, "passes", "--account", "ada", "--org", "globex") == {"passes": []}
    assert len(parsed(folder, "passes", "--account", "bob", "--org", "acme")["passes"]) == 1
    name = parsed(folder, "passes", "--org", "acme")["passes"][0]["id"]
    code, _, err = ran(folder, "status", name, "--org", "globex")
    assert code == 2
    assert "no pass" in err
    assert "evalr tracepass passes --org globex" in err


def test_B9_only_new_reads_what_no_pass_has_read(folder: Path) -> None:
    ran(folder, "run", "traces.jsonl", *NEGATIVE)
    write_lines(folder / "traces.jsonl", conversation("late", "Awful, terrible, useless!!"))
    found = parsed(folder, "run", "traces.jsonl", *NEGATIVE, "--only-new")
    assert (found["total_inputs"], found["flagged"]) == (1, 1)
    assert "3 predictions spared: earlier passes have them" in ran(folder, "status", "latest")[1].splitlines()
    assert "This pass read only what was new: 3 predictions of earlier passes" in ran(folder, "results", "--rates")[1]
    code, _, err = ran(folder, "run", "traces.jsonl", *NEGATIVE, "--only-new", "--rerun-all")
    assert (code, "pass one of them" in err) == (2, True)


def test_B19_an_export_is_read_back_and_reported_on(folder: Path) -> None:
    ran(folder, "run", "traces.jsonl", *NEGATIVE)
    assert ran(folder, "export", "passes.jsonl")[1] == "3 results in passes.jsonl\n"
    assert len(read_records(folder / "passes.jsonl")) == 3
    out = io.StringIO()
    with chdir(folder), redirect_stdout(out):
        assert main(["report", "passes.jsonl"]) == 0
    assert "conversations flagged" in out.getvalue()


def test_B19_a_report_of_several_signals_says_once_what_failed(folder: Path) -> None:
    ran(folder, "run", "traces.jsonl", *NEGATIVE, "--signal", "heuristic-thinking-tags")
    ran(folder, "export", "passes.jsonl")
    rows = [json.loads(line) for line in (folder / "passes.jsonl").read_text().splitlines()]
    for row in rows:
        if row["convo_id"] == "angry":
            row |= {"status": "failed", "fired": False, "error_type": "busy", "selected_labels": [], "classes_json": ""}
    (folder / "passes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = io.StringIO()
    with chdir(folder), redirect_stdout(out):
        assert main(["report", "passes.jsonl"]) == 0
    said = " ".join(out.getvalue().split())
    assert said.count("- failed: ") == 1
    assert "- failed: 2 of heuristic-negative-tone, 1 of heuristic-thinking-tags; the first: reading" in said
    # A signal is what its evaluator's rows are of: they are not said once more as those of its group.
    assert said.count("conversations flagged") == 2
    assert [line.strip() for line in out.getvalue().splitlines() if line.strip().startswith("heuristic-")] == []


def test_R12_the_store_is_a_log_and_holds_no_text(folder: Path) -> None:
    ran(folder, "run", "traces.jsonl", *NEGATIVE)
    for path in folder.iterdir():
        if path.name.startswith("tracepass.db"):
            assert SECRET.encode() not in path.read_bytes()
    assert len(read_records(folder / "tracepass.db")) == 3


def test_R12_results_expire_after_a_year(folder: Path) -> None:
    ran(folder, "run", "traces.jsonl", *NEGATIVE)
    assert parsed(folder, "prune") == {"removed": 0}
    assert parsed(folder, "prune", "--now", "2100-01-01") == {"removed": 3}


@pytest.mark.parametrize("engine", ["sqlite", "postgresql", "clickhouse"])
def test_R12_the_schema_says_that_no_text_is_stored(folder: Path, engine: str) -> None:
    code, out, _ = ran(folder, "schema", engine)
    assert code == 0
    assert "CREATE TABLE" in out
    assert "text" in out.lower()


def test_B19_a_monitor_reads_each_conversation_once(folder: Path) -> None:
    arguments = ["monitor", "traces.jsonl", *NEGATIVE, "--now", "2026-11-01T12:00:00Z"]
    assert parsed(folder, *arguments)["flagged"] == 1
    assert parsed(folder, *arguments)["total_inputs"] == 0
    assert ran(folder, *arguments)[1] == "nothing new since the last run\n"


def test_B19_a_webhook_needs_a_secret(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EVALR_WEBHOOK_SECRET", raising=False)
    code, _, err = ran(folder, "monitor", "traces.jsonl", *NEGATIVE, "--webhook", "http://127.0.0.1:9/x")
    assert (code, "EVALR_WEBHOOK_SECRET" in err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "traces.jsonl", *NEGATIVE, "--detach"], "leaves a batch to a service"),
        (["run", "traces.jsonl", "--by", "post"], "local, batch, live"),
        (["run", "traces.jsonl", *FRUSTRATED, "--budget", "1"], "add --rate"),
        (["run", "traces.jsonl", *FRUSTRATED, "--rate", "1", "--budget", "1"], "more than the budget of $1.00"),
        (["run", "traces.jsonl", *FRUSTRATED], "add --yes"),
        (["status", "nothing"], "there is no store tracepass.db: `evalr tracepass run` makes one"),
    ],
)
def test_B20_misuse_of_passes(
    folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.setenv("MORPH_API_KEY", "not-asked-for")
    code, out, err = ran(folder, *arguments)
    assert (code, out) == (2, "")
    assert message in err


@pytest.mark.parametrize("command", ["run", "monitor"])
def test_B20_a_key_that_is_missing_is_told_before_anything_else(
    folder: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.delenv("MORPH_API_KEY", raising=False)
    code, out, err = ran(folder, command, "traces.jsonl", *FRUSTRATED)
    assert (code, out) == (2, "")
    assert err.startswith("evalr: there is no key for account 'local': set MORPH_API_KEY")
    assert not (folder / "tracepass.db").exists()
    # What it comes to can be known without one.
    assert ran(folder, "estimate", "traces.jsonl", *FRUSTRATED)[0] == 0


def test_B9_rates_of_several_versions_say_which_and_the_way_out(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both = [*NEGATIVE, "--signal", "heuristic-no-answer"]
    ran(folder, "run", "traces.jsonl", *both)
    older = HEURISTICS["heuristic-negative-tone"]
    monkeypatch.setitem(HEURISTICS, older.name, replace(older, version="99"))
    line = conversation("calm", f"Where is my order? {SECRET}", "It left today.", "Thanks a lot.")
    (folder / "traces.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    ran(folder, "run", "traces.jsonl", *both, "--only-new")
    lines = ran(folder, "results", "--rates")[1].splitlines()
    assert lines[0].startswith("No answer (")
    said = f"no rate, since several versions of its classifier read: {older.version} (1 text), 99 (1 text)"
    assert f"heuristic-negative-tone: {said}" in lines
    assert "  one reads all: evalr tracepass run LOG --signal heuristic-negative-tone --rerun-all" in lines
    assert parsed(folder, "results", "--rates")["mixed_versions"] == {
        "heuristic-negative-tone": {older.version: 1, "99": 1}
    }
    ran(folder, "run", "traces.jsonl", *both, "--rerun-all")
    assert "no rate" not in ran(folder, "results", "--rates")[1]


# A service ------------------------------------------------------------------------------------------------------------


class Service:
    """Batches over HTTP on loopback, which end when they are told to."""

    def __init__(self) -> None:
        self.batches: dict[str, list[dict[str, Any]]] = {}
        self.keys: list[str] = []
        self.ended = False
        self.fails_on: str | None = None
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                service.keys.append(self.headers["Idempotency-Key"])
                name = f"rbatch-{len(service.batches)}"
                service.batches[name] = body["requests"]
                self.answer(service.state(name))

            def do_GET(self) -> None:
                parts = self.path.split("?")[0].split("/")
                if parts[-1] == "results":
                    self.answer({**service.state(parts[-2]), "results": service.results(parts[-2])})
                else:
                    self.answer(service.state(parts[-1]))

            def answer(self, found: dict[str, Any]) -> None:
                content = json.dumps(found).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def state(self, name: str) -> dict[str, Any]:
        rows = self.batches[name]
        failed = sum(self.fails(row) for row in rows) if self.ended else 0
        counts = {"total": len(rows), "completed": len(rows) - failed if self.ended else 0, "failed": failed}
        status = "completed" if self.ended else "queued"
        return {"id": name, "object": "reflex.batch", "status": status, "request_counts": counts}

    def fails(self, row: dict[str, Any]) -> bool:
        return self.fails_on is not None and self.fails_on in row["text"]

    def results(self, name: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for row in self.batches[name]:
            if self.fails(row):
                error = {"type": "inference_error", "message": "busy"}
                found.append({"id": row["id"], "status": "failed", "error": error})
                continue
            angry = "useless" in row["text"]
            classes = [
                {"label": "frustrated", "score": 0.97 if angry else 0.1, "selected": angry},
                {"label": "not frustrated", "score": 0.03 if angry else 0.9, "selected": not angry},
            ]
            predictions = [{"model": model, "mode": "single_label", "classes": classes} for model in row["model"]]
            found.append({"id": row["id"], "status": "completed", "predictions": predictions})
        return found

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    made = Service()
    monkeypatch.setenv("MORPH_API_KEY", "secret-key-of-the-test")
    monkeypatch.setenv("MORPH_BASE_URL", made.url)
    yield made
    made.close()


def test_B6_a_detached_run_is_synced_later(folder: Path, service: Service) -> None:
    code, out, _ = ran(folder, "run", "traces.jsonl", *FRUSTRATED, "--yes", "--detach")
    assert code == 0
    assert "rbatch-0" in out
    assert "0 / 3 inputs complete 0.0%" in out
    (found,) = parsed(folder, "passes")["passes"]
    assert service.keys == [f"trace-pass:{found['id']}"]
    assert "Still running" in ran(folder, "sync", found["id"])[1]
    service.ended = True
    for _ in range(2):
        lines = ran(folder, "sync", found["id"])[1].splitlines()
        assert lines[:3] == ["Pass complete", "1 conversation flagged", "1 selected label"]
    assert ran(folder, "results")[1] == "angry  [frustrated 97%]\n"
    assert len(service.batches) == 1
    assert b"secret-key-of-the-test" not in (folder / "tracepass.db").read_bytes()


def test_B6_a_pass_is_left_as_it_was_where_the_key_is_missing(
    folder: Path, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran(folder, "run", "traces.jsonl", *FRUSTRATED, "--yes", "--detach")
    monkeypatch.delenv("MORPH_API_KEY")
    for command in (["sync"], ["resume", "latest", "traces.jsonl"]):
        code, _, err = ran(folder, *command)
        assert (code, "set MORPH_API_KEY" in err) == (2, True)
    (found,) = parsed(folder, "passes")["passes"]
    assert (found["status"], found["error_message"]) == ("running", None)


def test_B9_only_what_is_new_is_priced(folder: Path, service: Service) -> None:
    service.ended = True
    arguments = ["run", "traces.jsonl", *FRUSTRATED, "--rate", "1", "--budget", "3", "--only-new"]
    assert ran(folder, *arguments, "--yes")[0] == 0
    write_lines(folder / "traces.jsonl", conversation("late", "Where is it?", "On its way."))
    code, _, err = ran(folder, *arguments)
    assert code == 2
    assert "of these new: 1 trace input, 1 prediction" in err
    assert "Run 1 prediction? Estimated cost: $1.00" in err
    # Nothing that is new costs nothing, and is not asked about.
    ran(folder, *arguments, "--yes")
    code, out, _ = ran(folder, *arguments)
    assert (code, "4 predictions spared: earlier passes have them" in out) == (1, True)
    assert len(service.batches) == 2


def test_B10_failed_rows_are_shown_and_tried_again(folder: Path, service: Service) -> None:
    service.ended, service.fails_on = True, "useless"
    lines = ran(folder, "run", "traces.jsonl", *FRUSTRATED, "--yes")[1].splitlines()
    assert lines[:3] == ["Pass complete with failed rows", "2 completed", "1 failed"]
    latest = parsed(folder, "passes")["passes"][0]["id"]
    assert f"Retry failed: evalr tracepass retry {latest} traces.jsonl" in lines
    shown = ran(folder, "results", latest, "--failed")[1].splitlines()
    assert shown[0] == "user-frustration: 1 failed, inference_error"
    assert shown[1].startswith("  angry, turn 2  user-frustration: ")
    service.fails_on = None
    lines = ran(folder, "retry", latest, "traces.jsonl", "--by", "batch")[1].splitlines()
    assert lines[:2] == ["Pass complete", "1 conversation flagged"]
    assert ran(folder, "results", latest, "--failed")[1] == "no input failed\n"
    assert ran(folder, "retry", latest, "traces.jsonl")[1] == f"pass {latest} has no failed inputs\n"

"""`evalr tracepass serve`, and the page as an app."""

from __future__ import annotations

import asyncio
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from traces_desk import ME, desk_lines, run_pass, write_log

from evalr import InputError, MissingExtraError
from evalr.background import run_sync
from evalr.tracepass import BatchTransport, Service, Signal, log_traces, open_store, traces_page, transform

PROGRAM = "import sys; sys.argv[0] = 'evalr'; from evalr.cli import main; sys.exit(main())"


def command(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-c", PROGRAM, "tracepass", "serve", *arguments]
    return subprocess.run(program, cwd=folder, capture_output=True, text=True, timeout=60, check=False)


def test_the_command_serves_a_log_until_it_is_stopped(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn", reason="the traces page needs the extra evalr[web]")
    log = write_log(tmp_path / "desk.jsonl", desk_lines(6))
    program = [sys.executable, "-c", PROGRAM, "tracepass", "serve", str(log), "--port", "0"]
    with subprocess.Popen(program, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as serving:
        try:
            assert serving.stdout is not None
            line = serving.stdout.readline()
            found = re.fullmatch(r"Traces at (http://127\.0\.0\.1:\d+)/  \(Ctrl-C stops it\)\n", line)
            assert found, line
            answer = httpx.get(found[1], timeout=30)
            assert "convo_0" in answer.text
            assert "server" not in answer.headers
            assert (tmp_path / "tracepass.db").is_file()
        finally:
            serving.send_signal(signal.SIGINT)
            _, said = serving.communicate(timeout=30)
    assert "Traceback" not in said
    assert serving.returncode in (0, 130)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--host", "0.0.0.0"], "pass --token, or set EVALR_TRACES_TOKEN"),
        (["--host", "0.0.0.0", "--token", "short"], "at least 16 characters"),
        (["--read-only"], "there is no store tracepass.db"),
        (["--host", "192.0.2.1", "--token", "a-token-of-these-tests"], "cannot listen at"),
        (["--by", "carrier-pigeon"], "must be one of"),
        (["--signals", "none.json"], "none.json"),
        (["--log", "pigeons"], "pigeons"),
    ],
)
def test_what_cannot_be_served_is_said(tmp_path: Path, arguments: list[str], said: str) -> None:
    write_log(tmp_path / "desk.jsonl", desk_lines(1))
    done = command("desk.jsonl", "--port", "0", *arguments, folder=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stdout == ""
    assert not (tmp_path / "tracepass.db").exists()


def test_a_port_that_is_taken_is_said_with_the_way_out(tmp_path: Path) -> None:
    write_log(tmp_path / "desk.jsonl", desk_lines(1))
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        done = command("desk.jsonl", "--port", str(port), folder=tmp_path)
    assert done.returncode == 2
    assert f"cannot listen at 127.0.0.1:{port}: " in done.stderr
    assert done.stderr.endswith("; --port takes another, and --port 0 one that is free\n")


def test_a_log_without_conversations_says_what_one_has_to_have(tmp_path: Path) -> None:
    log = tmp_path / "other.jsonl"
    log.write_text('{"id": "a", "question": "Where?", "turns": []}\n', encoding="utf-8")
    store = open_store(tmp_path / "passes.db")
    app = traces_page(log, store, ME)

    async def first_page() -> str:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
            return (await client.get("/")).text

    page = run_sync(first_page())
    store.close()
    assert "This log holds no conversation that can be shown." in page
    assert "evalr schema transcript" in page
    assert "1 missing field" in page


def test_what_is_no_log_is_said_at_once(tmp_path: Path) -> None:
    done = command("none.jsonl", "--port", "0", folder=tmp_path)
    assert done.returncode == 2
    assert "none.jsonl" in done.stderr
    assert not (tmp_path / "tracepass.db").exists()


@pytest.mark.parametrize("module", ["starlette", "jinja2"])
def test_without_the_extra_it_is_said_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    store = open_store(tmp_path / "passes.db")
    with pytest.raises(MissingExtraError, match=r"pip install 'evalr\[web\]'"):
        traces_page("desk.jsonl", store, ME)
    store.close()


def ask(app: object, path: str) -> httpx.Response:
    async def asked() -> httpx.Response:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            for _ in range(100):
                answer = await client.get(path)
                if "Reading the log" not in answer.text:
                    break
                await asyncio.sleep(0.05)
            return answer

    return run_sync(asked())


def test_an_app_takes_traces_that_are_no_file_and_signals_of_ones_own(tmp_path: Path) -> None:
    pytest.importorskip("starlette", reason="the traces page needs the extra evalr[web]")
    log = write_log(tmp_path / "desk.jsonl", desk_lines(6))
    with_store = open_store(tmp_path / "passes.db")
    run_pass(with_store, log)
    own = Signal(signal_id="mine", model="heuristic-negative-tone", display_name="Mine & yours")
    app = traces_page(log_traces(log), with_store, ME, signals=[own])
    assert "convo_5" in ask(app, "/").text
    assert "Mine &amp; yours" in ask(app, "/signals").text
    with pytest.raises(InputError, match="comes with evalr"):
        traces_page(log, with_store, ME, signals=[own.model_copy(update={"signal_id": "jailbreak"})])
    with pytest.raises(InputError, match="needs a token"):
        traces_page(log, with_store, ME, local=False)
    with_store.close()


def test_a_service_has_the_nine_signals(tmp_path: Path) -> None:
    pytest.importorskip("starlette", reason="the traces page needs the extra evalr[web]")
    log = write_log(tmp_path / "desk.jsonl", desk_lines(6))
    store = open_store(tmp_path / "passes.db")
    service = Service(url="http://127.0.0.1:9", key="sk-test-0123456789")
    app = traces_page(log, store, ME, transport=BatchTransport(service), rate=0.00003)
    page = ask(app, "/run").text
    assert re.search(r'value="jailbreak" checked>', page)
    assert 'value="heuristic-loop" disabled' in page
    assert "Estimated cost: under $0.01" in page
    assert "sk-test" not in page
    assert transform("user_message").name in page
    store.close()


def test_real_conversations_open(tmp_path: Path, real_logs: Path) -> None:
    pytest.importorskip("starlette", reason="the traces page needs the extra evalr[web]")
    store = open_store(tmp_path / "passes.db")
    log = real_logs / "entire_transcripts"
    run_pass(store, log)
    app = traces_page(log, store, ME)
    links = re.findall(r'<a href="(/c/[0-9a-f]+)"', ask(app, "/").text)
    assert len(links) == 20
    pages = [ask(app, link).text for link in links]
    assert all("<article" in page for page in pages)
    assert sum("chip fired" in page for page in pages) == ask(app, "/?show=flagged").text.count('<tr role="row">') - 1
    store.close()

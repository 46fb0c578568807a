"""What running evaluators costs: throughput against a slow server, overhead per item, and resuming a finished run.

    python benchmarks/bench_runs.py [--quick] [--no-peer]

- Throughput: a server on loopback, in a process of its own, answers after 200 ms; 64 calls at once, each over a new
  connection of plain asyncio. The ideal is items / 64 × 200 ms.
- Overhead: 10,000 items whose judge answers at once, 8 at a time, with and without a journal.
- Memory: the same with 100,000.
- Beside each, the same job by pydantic-evals: a case for each item, a task that returns at once, and an evaluator that
  asks the server with the same client, or says yes; `max_concurrency` is as many at once. It is installed into an
  environment in a temporary folder, and left out where that cannot be done. It keeps all in memory and has no journal,
  so that the row without one is its match.
- Resuming: a run of 100,000 items that is finished, in a new process, without imports; nothing is asked. Making the
  inputs is a part of it, and shown alone.

Jobs run in processes of their own, in turn, and the best of each is shown. CPU is that of the process, threads
included: on a machine that does other work, it says more than the clock.
"""

from __future__ import annotations

import argparse
import asyncio
import inspect
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
DELAY = 0.2
AT_ONCE = 64
PEER_NAME = "pydantic-evals, which has no journal"

SERVER = """
import asyncio, sys

async def answer(reader, writer):
    await reader.readuntil(b"\\r\\n\\r\\n")
    await asyncio.sleep(float(sys.argv[1]))
    writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: 3\\r\\nConnection: close\\r\\n\\r\\nyes")
    await writer.drain()
    writer.close()

async def main():
    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
"""

PEER = """
import json, resource, sys, time
from dataclasses import dataclass
from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import Evaluator, EvaluatorContext

items, at_once, port = map(int, sys.argv[1:])

@dataclass
class SaysYes(Evaluator):
    def evaluate(self, ctx: EvaluatorContext) -> bool:
        return True

@dataclass
class Asks(Evaluator):
    async def evaluate(self, ctx: EvaluatorContext) -> bool:
        return (await ask(port, ctx.name)).endswith(b"yes")

async def task(given: str) -> str:
    return given

async def main() -> None:
    begun, cpu = time.perf_counter(), time.process_time()
    cases = [Case(name=f"t{n}", inputs=f"done {n}") for n in range(items)]
    dataset = Dataset(name="judged", cases=cases, evaluators=[Asks() if port else SaysYes()])
    report = await dataset.evaluate(task, max_concurrency=at_once, progress=False)
    assert len(report.cases) == items
    assert all(case.assertions for case in report.cases)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6
    seconds, cpu = time.perf_counter() - begun, time.process_time() - cpu
    print(json.dumps({"seconds": seconds, "cpu": cpu, "peak": peak}))

asyncio.run(main())
"""


async def ask(port: int, name: str) -> bytes:
    """What the server says of an item: the client of both jobs."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(f"GET /{name} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        return await reader.read()
    finally:
        writer.close()


def inputs(items: int) -> Iterator[Any]:
    from evalr.inputs import Transcript, Turn

    for number in range(items):
        turns = [Turn(role="person", text="please"), Turn(role="agent", text=f"done {number}")]
        yield Transcript(id=f"t{number}", user=f"u{number % 1000}", request="do it", turns=turns)


def instant_judge() -> Any:
    from evalr import FunctionEvaluator
    from evalr.inputs import Transcript
    from evalr.measures import TaskCompletion

    verdict = TaskCompletion(completed=True, quality=4, reason="it was done")
    return FunctionEvaluator("judge", "1", lambda given: verdict, Transcript, TaskCompletion, inline=True)


def server_judge(port: int) -> Any:
    from evalr import FunctionEvaluator
    from evalr.inputs import Transcript
    from evalr.measures import TaskCompletion

    async def judged(given: Transcript) -> TaskCompletion:
        answer = await ask(port, given.id or "")
        return TaskCompletion(completed=answer.endswith(b"yes"), quality=4, reason="it was done")

    return FunctionEvaluator("judge", "1", judged, Transcript, TaskCompletion)


async def timed(judge: Any, items: int, journal: Path | None, **options: Any) -> dict[str, Any]:
    from evalr.runs import evaluate_all

    async for _ in evaluate_all(judge, inputs(1)):  # what is imported at the first use
        pass
    begun, cpu, count = time.perf_counter(), time.process_time(), 0
    run = evaluate_all(judge, inputs(items), journal=journal, **options)
    async for _ in run:
        count += 1
    seconds, cpu = time.perf_counter() - begun, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6
    return {"seconds": seconds, "cpu": cpu, "peak": peak, "given": count, "found": str(run.summary)}


def work(job: str, items: int, journal: Path | None, port: int) -> dict[str, Any]:
    """One job, in this process."""
    if job == "inputs":
        begun, cpu = time.perf_counter(), time.process_time()
        made = sum(1 for _ in inputs(items))
        return {"seconds": time.perf_counter() - begun, "cpu": time.process_time() - cpu, "given": made}
    judge = server_judge(port) if job == "server" else instant_judge()
    options = {"limit": AT_ONCE} if job == "server" else {"replay": job != "resume, left out"}
    return asyncio.run(timed(judge, items, journal, **options))


def apart(job: str, items: int, journal: Path | None, port: int = 0) -> dict[str, Any]:
    """One job, in a process of its own."""
    command = [sys.executable, str(HERE), "--job", job, "--items", str(items), "--port", str(port)]
    command += [] if journal is None else ["--journal", str(journal)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def apart_peer(python: Path, items: int, at_once: int, port: int = 0) -> dict[str, Any]:
    """The same job by pydantic-evals, in a process of its own."""
    command = [python, "-c", "import asyncio\n" + inspect.getsource(ask) + PEER, str(items), str(at_once), str(port)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def best(runs: list[dict[str, Any]]) -> dict[str, Any]:
    return min(runs, key=lambda run: run["seconds"])


def peer_python(folder: Path) -> Path | str:
    """An interpreter that has pydantic-evals, or why there is none."""
    python = folder / "peer" / "bin" / "python"
    try:
        subprocess.run([sys.executable, "-m", "venv", folder / "peer"], check=True, capture_output=True, timeout=120)
        subprocess.run(
            [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "pydantic-evals"],
            check=True,
            capture_output=True,
            text=True,
            timeout=600,
        )
    except (subprocess.SubprocessError, OSError) as error:
        said = (getattr(error, "stderr", None) or str(error)).strip().splitlines()
        return f"pydantic-evals could not be installed: {said[-1] if said else type(error).__name__}"
    return python


def throughput(folder: Path, items: int, peer: Path | str) -> None:
    server = subprocess.Popen([sys.executable, "-c", SERVER, str(DELAY)], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    shown: dict[str, list[dict[str, Any]]] = {"evalr, journal on": [], "evalr, no journal": [], PEER_NAME: []}
    try:
        port = int(server.stdout.readline())
        for number in range(2):
            shown["evalr, journal on"].append(apart("server", items, folder / f"server-{number}.db", port))
            shown["evalr, no journal"].append(apart("server", items, None, port))
            if isinstance(peer, Path):
                shown[PEER_NAME].append(apart_peer(peer, items, AT_ONCE, port))
    finally:
        server.kill()
        server.wait()
        server.stdout.close()
    ideal = items / AT_ONCE * DELAY
    print(f"\n{items:,} items against a server that answers after 200 ms, {AT_ONCE} at once: ideal is {ideal:.2f} s\n")
    print("| | s | share of ideal | CPU ms an item | peak MB |\n|---|---|---|---|---|")
    for name, runs in shown.items():
        if runs:
            run = best(runs)
            share, cpu = ideal / run["seconds"], 1000 * run["cpu"] / items
            print(f"| {name} | {run['seconds']:.2f} | {share:.3f} | {cpu:.2f} | {run['peak']:.0f} |")


def overhead(folder: Path, items: int, peer: Path | str) -> None:
    shown: dict[str, list[dict[str, Any]]] = {"evalr, journal on": [], "evalr, no journal": [], PEER_NAME: []}
    for number in range(3):
        shown["evalr, journal on"].append(apart("instant", items, folder / f"instant-{items}-{number}.db"))
        shown["evalr, no journal"].append(apart("instant", items, None))
        if isinstance(peer, Path):
            shown[PEER_NAME].append(apart_peer(peer, items, 8))
    print(f"\n{items:,} items that are judged at once, 8 at a time\n")
    print("| | s | ms an item | CPU ms an item | peak MB |\n|---|---|---|---|---|")
    for name, runs in shown.items():
        if runs:
            run, cpu = best(runs), min(run["cpu"] for run in runs)
            each, of_cpu = 1000 * run["seconds"] / items, 1000 * cpu / items
            print(f"| {name} | {run['seconds']:.2f} | {each:.3f} | {of_cpu:.3f} | {run['peak']:.0f} |")


def memory(items: int, peer: Path | str) -> None:
    shown = {"evalr, no journal": apart("instant", items, None)}
    if isinstance(peer, Path):
        shown[PEER_NAME] = apart_peer(peer, items, 8)
    print(f"\nThe same with {items:,} items\n")
    print("| | s | peak MB |\n|---|---|---|")
    for name, run in shown.items():
        print(f"| {name} | {run['seconds']:.2f} | {run['peak']:.0f} |")


def resuming(folder: Path, items: int) -> None:
    journal = folder / "resume.db"
    first = apart("instant", items, journal)
    shown = {
        "its inputs made, and nothing else": best([apart("inputs", items, None) for _ in range(3)]) | {"peak": None},
        "first run": first,
        "again, all results given once more": best([apart("resume", items, journal) for _ in range(3)]),
        "again, results left out": best([apart("resume, left out", items, journal) for _ in range(3)]),
    }
    size = journal.stat().st_size / 1e6
    print(f"\nA run of {items:,} items that is finished (its journal has {size:.0f} MB)\n")
    print("| | s | CPU s | results given | peak MB |\n|---|---|---|---|---|")
    for name, run in shown.items():
        peak, given = ("", "") if run["peak"] is None else (f"{run['peak']:.0f}", f"{run['given']:,}")
        print(f"| {name} | {run['seconds']:.2f} | {run['cpu']:.2f} | {given} | {peak} |")
    print()
    for name, run in shown.items():
        if "found" in run:
            print(f"- {name}: {run['found']}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the items")
    parser.add_argument("--no-peer", action="store_true", help="without pydantic-evals")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    parser.add_argument("--items", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--journal", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        print(json.dumps(work(options.job, options.items, options.journal, options.port)))
        return
    share = 10 if options.quick else 1
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        peer = "pydantic-evals was left out" if options.no_peer else peer_python(folder)
        throughput(folder, 6400 // share, peer)
        overhead(folder, 10_000 // share, peer)
        memory(100_000 // share, peer)
        resuming(folder, 100_000 // share)
        if isinstance(peer, str):
            print(f"\n{peer}")


if __name__ == "__main__":
    main()

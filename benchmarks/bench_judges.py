"""How near a judge comes to what its model could answer, and what importing the door costs.

    python benchmarks/bench_judges.py [--items 6400] [--imports]

The model is a server in a process of its own, OpenAI-compatible, that answers after 200 ms; the judge asks it through
dspy's real client, 64 at once, as `evaluate_all` runs it. Ideal is items / 64 x 200 ms. Beside it, dspy's client alone
asks the same prompts in the same number of tasks, without judge, run or verdict. Imports are in processes of their own,
by processor time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from statistics import median

AT_ONCE = 64
DELAY = 0.2
ANSWER = '{"completed": true, "quality": 4, "reason": "all there"}'
BODY = json.dumps(
    {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-4o-mini",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": ANSWER}}],
        "usage": {"prompt_tokens": 900, "completion_tokens": 20, "total_tokens": 920},
    }
).encode()
RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(BODY), BODY)


async def serve() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            await reader.readexactly(length)
            await asyncio.sleep(DELAY)
            writer.write(RESPONSE)
            await writer.drain()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=256)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextmanager
def model() -> Iterator[int]:
    """The port of a model in a process of its own."""
    command = [sys.executable, __file__, "--serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline())
        finally:
            process.kill()


def throughput(items: int) -> None:
    import dspy

    from evalr.dspy import completion_judge
    from evalr.inputs import Transcript, Turn
    from evalr.runs import evaluate_all

    def asks(n: int) -> list[Transcript]:
        turns = [Turn(role="person", text="Draft the brief"), Turn(role="agent", text="Here it is. " * 40)]
        return [Transcript(id=f"t{number}", request=f"Brief {number}", turns=turns) for number in range(n)]

    async def judged(lm: dspy.LM, n: int) -> None:
        run = evaluate_all(completion_judge(lm=lm), asks(n), limit=AT_ONCE)
        assert {result.status async for result in run} == {"verdict"}

    async def alone(lm: dspy.LM, n: int) -> None:
        judge = completion_judge(lm=lm)
        prompts = iter([judge.prompt(given)[-1]["content"] for given in asks(n)])

        async def ask() -> None:
            for prompt in prompts:
                await lm.acall(prompt)

        with dspy.context(disable_history=True):
            await asyncio.gather(*(ask() for _ in range(AT_ONCE)))

    def timed(job: Callable[[dspy.LM, int], Awaitable[None]], port: int) -> tuple[float, float]:
        lm = dspy.LM("openai/gpt-4o-mini", api_base=f"http://127.0.0.1:{port}/v1", api_key="none", cache=False)

        async def main() -> tuple[float, float]:
            await job(lm, AT_ONCE)
            wall, cpu = time.perf_counter(), time.process_time()
            await job(lm, items)
            spent = time.perf_counter() - wall, time.process_time() - cpu
            await lm.aclose()
            return spent

        return asyncio.run(main())

    ideal = items / AT_ONCE * DELAY
    print(f"{items:,} items against a model that answers after 200 ms, {AT_ONCE} at once: ideal is {ideal:.2f} s\n")
    print("| | s | share of ideal | CPU ms an item |\n|---|---|---|---|")
    with model() as port:
        for name, job in (("a judge, in a run", judged), ("dspy's client alone", alone)):
            wall, cpu = min(timed(job, port) for _ in range(2))
            print(f"| {name} | {wall:.2f} | {ideal / wall:.3f} | {1000 * cpu / items:.2f} |", flush=True)


def imports(runs: int = 15) -> None:
    # Compiled once, as installed packages are; a machine may be told to keep no bytecode.
    compiled = tempfile.TemporaryDirectory()
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": compiled.name}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def seconds(code: str) -> float:
        process = subprocess.Popen([sys.executable, "-c", code], env=environment)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"{code} failed")
        return used.ru_utime + used.ru_stime

    making = "import dspy, evalr.dspy; evalr.dspy.completion_judge(lm=dspy.LM('openai/gpt-5')).version"
    jobs = {"dspy": "import dspy", "evalr.dspy": "import evalr.dspy", "evalr.dspy, and a judge made": making}
    found: dict[str, list[float]] = {name: [] for name in jobs}
    with compiled:
        for _ in range(runs + 1):
            for name, code in jobs.items():
                found[name].append(seconds(code))
    print("\n| import | CPU ms, smallest | median |\n|---|---|---|")
    for name, times in found.items():
        print(f"| {name} | {1000 * min(times[1:]):.0f} | {1000 * median(times[1:]):.0f} |")  # the first run compiles


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=6400)
    parser.add_argument("--imports", action="store_true", help="measure imports alone")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve())
        return
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "true"  # no list of prices from the network
    if not options.imports:
        throughput(options.items)
    imports()


if __name__ == "__main__":
    main()

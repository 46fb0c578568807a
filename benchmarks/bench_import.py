"""What `import evalr.measures` costs, beside a module that defines one pydantic model.

    python benchmarks/bench_import.py [--runs 25]

Each import runs in a process of its own, and the two take turns. Times are of the processor, the interpreter's start
included in both; the smallest of the runs is the one with the least noise.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

ONE_MODEL = "from pydantic import BaseModel\n\n\nclass One(BaseModel):\n    name: str\n    count: int = 0\n"


def seconds(module: str, folder: str) -> float:
    """Of processor time for a process that imports one module."""
    path = os.pathsep.join([folder, *filter(None, [os.environ.get("PYTHONPATH")])])
    # Compiled once, as an installed package is; a machine may be told to keep no bytecode.
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONPYCACHEPREFIX": f"{folder}/cache"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    process = subprocess.Popen([sys.executable, "-c", f"import {module}"], env=environment)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"import {module} failed")
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=25)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "one_model.py").write_text(ONE_MODEL, encoding="utf-8")
        times: dict[str, list[float]] = {"one_model": [], "evalr.measures": []}
        for _ in range(runs + 1):
            for module, found in times.items():
                found.append(seconds(module, folder))
    one, ours = (found[1:] for found in times.values())  # the first run of each compiles
    print(f"# Imports, {runs} runs each, on Python {sys.version.split()[0]}\n")
    print("| module | smallest | median |\n|---|---|---|")
    print(f"| one pydantic model | {min(one) * 1000:.0f} ms | {median(one) * 1000:.0f} ms |")
    print(f"| evalr.measures | {min(ours) * 1000:.0f} ms | {median(ours) * 1000:.0f} ms |")
    print(f"| ratio | {min(ours) / min(one):.2f} | {median(ours) / median(one):.2f} |")


if __name__ == "__main__":
    main()

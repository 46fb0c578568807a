"""What must hold of the project as a whole: its files, entry points, imports and reference pages."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
ENTRY_POINTS = [
    (group, name, target)
    for group, targets in PROJECT["project"]["entry-points"].items()
    for name, target in targets.items()
]
PUBLIC_MODULES = ["evalr", "evalr.measures", "evalr.logs", "evalr.labels", "evalr.bulk", "evalr.runs", "evalr.testing"]
DOORS = ["evalr.dspy", "evalr.reflexio", "evalr.reflexr", "evalr.tracepass"]
"""Public too, and each may need an extra."""

PUBLISHED = ["src", "docs", "benchmarks", "examples", "requirements", ".ci"]
PUBLISHED_FILES = ["README.md", "CHANGELOG.md", "LICENSE", "Makefile", "mkdocs.yml", "pyproject.toml"]
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|tmp|root|home|Users)/|/\.pyenv/")
LOCK_HOST = re.compile(r"://|\bfile:|--(?:index-url|extra-index-url|find-links|trusted-host)|\s@\s")


def published_texts() -> list[Path]:
    """Every text file that a reader of the project sees, except the tests."""
    candidates = [ROOT / name for name in PUBLISHED_FILES]
    candidates += [path for folder in PUBLISHED for path in (ROOT / folder).rglob("*")]
    return [path for path in candidates if path.is_file() and "__pycache__" not in path.parts and is_text(path)]


def is_text(path: Path) -> bool:
    return b"\0" not in path.read_bytes()[:8192]


def matches(pattern: re.Pattern[str], path: Path) -> list[str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:120]}"
        for number, line in enumerate(lines, start=1)
        if pattern.search(line)
    ]


# Files


def test_published_files_name_no_path_of_a_machine() -> None:
    assert [hit for path in published_texts() for hit in matches(MACHINE_PATH, path)] == []


@pytest.mark.parametrize("text", ["open('/tmp/x')", "cd /root/x", "/home/me/log.jsonl"])
def test_a_path_of_a_machine_is_recognised(text: str) -> None:
    assert MACHINE_PATH.search(text)


@pytest.mark.parametrize("lock", ["dev.lock", "runtime.lock"])
def test_locks_pin_and_hash_everything_and_name_no_host(lock: str) -> None:
    path = ROOT / "requirements" / lock
    assert matches(LOCK_HOST, path) == []
    entries = re.split(r"\n(?=\S)", re.sub(r"^\s*#.*\n", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE))
    loose = [entry.splitlines()[0] for entry in entries if "==" not in entry or "--hash=sha256:" not in entry]
    assert loose == []


def test_the_runtime_lock_is_part_of_the_development_lock() -> None:
    assert pins("runtime.lock") <= pins("dev.lock")


def pins(lock: str) -> set[str]:
    text = (ROOT / "requirements" / lock).read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z0-9._-]+==[^\s;]+)", text, flags=re.MULTILINE))


def test_every_room_stands_on_a_floor() -> None:
    (contract,) = PROJECT["tool"]["importlinter"]["contracts"]
    placed = {room for layer in contract["layers"] for room in re.findall(r"[\w.]+", layer)}
    source = ROOT / "src"
    rooms = {f"evalr.{path.stem}" for path in source.glob("evalr/*.py") if not path.stem.startswith("__")}
    rooms |= {f"evalr.{path.parent.name}" for path in source.glob("evalr/*/__init__.py")}
    rooms |= {path.parent.name for path in source.glob("evalr_*/__init__.py")}
    assert rooms - placed == set()


# Entry points


@pytest.mark.parametrize(("group", "name", "target"), ENTRY_POINTS, ids=[f"{g}:{n}" for g, n, _ in ENTRY_POINTS])
def test_entry_points_load_under_the_name_they_give_themselves(group: str, name: str, target: str) -> None:
    assert metadata.EntryPoint(name, target, group).load().name == name


@pytest.mark.parametrize("group", sorted(PROJECT["project"]["entry-points"]))
def test_the_installed_entry_points_are_the_declared_ones(group: str) -> None:
    installed = {(point.name, point.value) for point in metadata.entry_points(group=group)}
    declared = {(name, target) for declared_group, name, target in ENTRY_POINTS if declared_group == group}
    assert declared - installed == set(), "installed from an older pyproject.toml: run `make test` once"


def test_the_version_is_the_one_declared() -> None:
    assert metadata.version("evalr") == PROJECT["project"]["version"]


# Imports

IMPORT_PROBE = """
import importlib, json, sys

blocked = set(json.loads(sys.argv[1]))

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in blocked:
            raise ModuleNotFoundError(f"{name} is blocked", name=name)

for name in blocked & sys.modules.keys():
    del sys.modules[name]
sys.meta_path.insert(0, Blocker())
for module in sys.argv[2:]:
    importlib.import_module(module)
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def modules_loaded_by(*modules: str, blocked: frozenset[str] = frozenset()) -> set[str]:
    """The top-level modules in a fresh interpreter that has imported `modules` with others made absent."""
    command = [sys.executable, "-c", IMPORT_PROBE, json.dumps(sorted(blocked)), *modules]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


def absent_without_extras() -> frozenset[str]:
    """Installed top-level modules that a plain install of evalr would not bring."""
    brought = {pin.partition("==")[0] for pin in pins("runtime.lock")} | {"evalr"}
    return frozenset(
        module
        for module, distributions in metadata.packages_distributions().items()
        if brought.isdisjoint(re.sub(r"[-_.]+", "-", name).lower() for name in distributions)
    )


def core_modules() -> list[str]:
    """Every module of evalr, except the doors to the extras' packages."""
    doors = {"evalr.dspy", "evalr.reflexr", "evalr.reflexio", "evalr.tracepass"}
    paths = (path.relative_to(ROOT / "src") for path in (ROOT / "src" / "evalr").rglob("*.py"))
    names = {".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in paths}
    return sorted(name for name in names - doors if not name.endswith(".__main__"))


def test_the_core_imports_without_extras_and_without_development_tools() -> None:
    absent = absent_without_extras()
    assert {"pandas", "pytest", "hypothesis"} <= absent
    assert absent.isdisjoint({"pydantic", "scipy", "numpy", "typer", "rich"})
    modules = core_modules()
    assert {*PUBLIC_MODULES, "evalr.cli"} <= set(modules)
    modules_loaded_by(*modules, blocked=absent)


def test_a_blocked_module_is_really_absent() -> None:
    with pytest.raises(AssertionError, match="pydantic is blocked"):
        modules_loaded_by("pydantic", blocked=frozenset({"pydantic"}))


@pytest.mark.parametrize("module", ["evalr", "evalr.measures"])
def test_importing_stays_light(module: str) -> None:
    heavy = {
        "anyio",
        "asyncio",
        "cydifflib",
        "numpy",
        "pandas",
        "rapidfuzz",
        "rich",
        "scipy",
        "sqlite3",
        "typer",
    }
    assert modules_loaded_by(module) & heavy == set()


# Reference


def documented() -> list[tuple[str, object]]:
    """The names that the reference pages render, and what they stand for."""
    pages = [page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "reference").glob("**/*.md")]
    paths = [path for page in pages for path in re.findall(r"^::: ([\w.]+)", page, flags=re.MULTILINE)]
    return [(path.rpartition(".")[2], pkgutil.resolve_name(path)) for path in paths]


@pytest.mark.parametrize("module", PUBLIC_MODULES + DOORS)
def test_every_public_name_is_in_the_reference(module: str) -> None:
    """A name that several modules offer is documented in one of them."""
    public, shown = importlib.import_module(module), documented()
    missing = [
        name
        for name in public.__all__
        if not any(name == other and getattr(public, name) is thing for other, thing in shown)
    ]
    assert missing == []


@pytest.mark.parametrize("module", PUBLIC_MODULES + DOORS)
def test_public_names_exist_once_and_are_documented_in_the_code(module: str) -> None:
    public = importlib.import_module(module)
    assert sorted(public.__all__) == sorted(set(public.__all__))
    undocumented = [
        name
        for name in public.__all__
        if (inspect.isclass(thing := getattr(public, name)) or inspect.isroutine(thing))
        and not (thing.__doc__ or "").strip()
    ]
    assert undocumented == []

"""Commands that other packages add: found by their entry points, and imported only when asked for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = '''
import typer

from evalr.cli.added import Command, new_app
from evalr.errors import InputError

print("LOADED", flush=True)
app = new_app("Greet, and more.")


@app.command()
def greet(name: str, loud: bool = False) -> None:
    """Say hello."""
    if name == "nobody":
        raise InputError("nobody cannot be greeted")
    print(f"hello {name}{'!' if loud else ''}")


@app.command()
def wave() -> None:
    """Wave."""


command = Command(name="hello", app=app)
single = new_app("Take leave.")


@single.command()
def bye() -> None:
    """Take leave."""
    print("bye")


alone = Command(name="bye", app=single)
report = Command(name="report", app=single)
'''

POINTS = """
[evalr.commands]
hello = greetings:command
bye = greetings:alone
other = greetings:alone
report = greetings:report
needy = greetings_needy:command
wrong = greetings:app
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    info = tmp_path / "greetings-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: greetings\nVersion: 1.0\n"
        "Provides-Extra: polite\nRequires-Dist: no_such_manners; extra == 'polite'\n",
        encoding="utf-8",
    )
    (info / "entry_points.txt").write_text(POINTS, encoding="utf-8")
    (tmp_path / "greetings.py").write_text(PACKAGE, encoding="utf-8")
    (tmp_path / "greetings_needy.py").write_text("import no_such_manners\n", encoding="utf-8")
    return tmp_path


def ran(site: Path, *arguments: str) -> tuple[int, str, str]:
    path = os.pathsep.join(part for part in (str(site), os.environ.get("PYTHONPATH", "")) if part)
    command = [sys.executable, "-m", "evalr.cli", *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, env={**os.environ, "PYTHONPATH": path}
    )
    return done.returncode, done.stdout, done.stderr


def test_a_command_of_another_package_runs_with_its_own_subcommands(site: Path) -> None:
    assert ran(site, "hello", "greet", "ada", "--loud") == (0, "LOADED\nhello ada!\n", "")
    code, out, _ = ran(site, "hello", "-h")
    assert (code, "Greet, and more." in out, "greet" in out, "wave" in out) == (0, True, True, True)


def test_one_command_alone_needs_no_subcommand(site: Path) -> None:
    assert ran(site, "bye") == (0, "LOADED\nbye\n", "")


def test_its_errors_end_as_ours_do(site: Path) -> None:
    assert ran(site, "hello", "greet", "nobody") == (2, "LOADED\n", "evalr: nobody cannot be greeted\n")


def test_nothing_of_it_is_imported_for_another_command(site: Path) -> None:
    code, out, _ = ran(site, "srm", "treatment=50", "control=50")
    assert (code, "LOADED" in out) == (0, False)


def test_our_own_command_stands_where_a_name_is_taken(site: Path) -> None:
    code, out, _ = ran(site, "report", "-h")
    assert (code, "Measure a log" in out, "LOADED" in out) == (0, True, False)


def test_help_lists_every_command_and_what_those_that_cannot_be_loaded_need(site: Path) -> None:
    code, out, _ = ran(site, "--help")
    lines = {line.split()[0]: " ".join(line.split()[1:]) for line in out.splitlines() if line.startswith("  ")}
    assert code == 0
    assert lines["hello"] == "Greet, and more."
    assert lines["bye"] == "Take leave."
    assert lines["needy"].startswith("Cannot be used: needs 'no_such_manners'")
    assert lines["wrong"].startswith("Cannot be used: greetings:app is not a Command")
    assert lines["other"].startswith("Cannot be used: it is 'bye', as it says itself")


def test_one_that_cannot_be_loaded_says_what_to_install(site: Path) -> None:
    code, _, err = ran(site, "needy", "--with", "options", "and", "arguments")
    assert code == 2
    assert err == (
        "evalr: the command 'needy' cannot be used: needs 'no_such_manners', which is not installed: "
        "pip install 'greetings[polite]'\n"
    )


def test_a_name_that_is_nearly_one_of_theirs_is_suggested(site: Path) -> None:
    code, _, err = ran(site, "helo")
    assert (code, "No such command 'helo'" in err, "'hello'" in err) == (2, True, True)

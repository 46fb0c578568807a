"""Settings of measures and readers as options of their own names."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from evalr import InputError
from evalr.cli.settings import _with_sets, read_settings, setting_defaults


def test_a_setting_is_an_option_of_its_own_name() -> None:
    own = {"--set", "--json", "--window"}
    given = [
        "log",
        "--threshold",
        "0.3",
        "--json",
        "--time=commit",
        "--window",
        "1h",
        "--unknown",
        "x",
        "--set",
        "rev=a",
    ]
    assert _with_sets(given, own) == [
        *("log", "--set", "threshold=0.3", "--json", "--set", "time=commit", "--window", "1h"),
        *("--unknown", "x", "--set", "rev=a"),
    ]


def test_what_comes_after_two_dashes_is_no_option() -> None:
    assert _with_sets(["--threshold", "1", "--", "--threshold"], set()) == ["--set", "threshold=1", "--", "--threshold"]


def test_a_setting_without_a_value_is_refused() -> None:
    with pytest.raises(InputError, match="--threshold needs a value"):
        _with_sets(["--threshold"], set())


def test_settings_that_take_several_are_given_once_for_each() -> None:
    defaults = {"types": (), "rev": "HEAD"}
    assert read_settings(["types=a", "rev=b", "types=c", "rev=d"], defaults) == {"types": ("a", "c"), "rev": "d"}
    assert read_settings([], defaults) == {}


def test_the_names_are_those_of_everything_installed() -> None:
    assert {"threshold", "window", "rev", "tenant", "within"} <= setting_defaults().keys()


def test_the_command_takes_them(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text('{"id": "h", "revisions": [{"at": "2026-09-28T09:00:00Z", "role": "agent", "text": "x"}]}\n')
    command = [sys.executable, "-m", "evalr.cli", "report", str(log), "--measure", "rewrites", "--threshold", "0.5"]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True)
    assert '"threshold": 0.5' in done.stdout
    wrong = subprocess.run([*command, "--treshold", "1"], capture_output=True, text=True, check=False)
    assert (wrong.returncode, "No such option: --treshold" in wrong.stderr) == (2, True)

"""What was asked for stands in the JSON of a report, beside its figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalr import report
from evalr.cli import main
from evalr.reflexr import Envelope, chain_sessions, chains, read, rule_runs


def settings_of(log: Any, **asked: Any) -> Any:
    return json.loads(json.dumps(report(log, **asked).to_dict()))["log"]["settings"]


def by_ada(envelope: Envelope) -> bool:
    return envelope.actor.get("id") == "ada"


def test_the_defaults_are_said(oracle_wire: Path) -> None:
    found = settings_of(oracle_wire)
    assert (found["starts"], found["resolves"], found["reopens"]) == ([], ["*.resolved"], ["*.reopened"])
    assert (found["proposes"], found["decides"]) == (["*.proposed"], ["*.approved", "*.rejected"])
    assert (found["tenant"], found["workspace"], found["compat"], found["feedback"]) == (None, None, None, [])


def test_and_so_is_what_was_chosen(oracle_sqlite: Path) -> None:
    found = settings_of(
        oracle_sqlite,
        tenant="acme",
        starts=("service.error",),
        resolves=("incident.resolved", {"status": "closed"}, by_ada),
        feedback="resolution=completion",
    )
    assert found["tenant"] == "acme"
    assert found["starts"] == ["service.error"]
    assert found["resolves"] == ["incident.resolved", {"status": "closed"}, "by_ada"]
    assert found["feedback"] == ["resolution=completion"]


def test_compat_says_that_chains_of_any_beginning_are_eligible(oracle_sqlite: Path) -> None:
    assert settings_of(oracle_sqlite, compat="reflexr")["starts"] == ["*"]
    assert settings_of(oracle_sqlite, compat="reflexr", starts="service.error")["starts"] == "service.error"


@pytest.mark.parametrize("open_log", [read, chains, chain_sessions, rule_runs])
def test_whatever_log_is_reported(oracle_sqlite: Path, open_log: Any) -> None:
    found = settings_of(open_log(oracle_sqlite, workspace="prod", roles={"external_agent": "person"}))
    assert (found["workspace"], found["roles"]) == ("prod", {"external_agent": "person"})


def test_in_a_shell(oracle_sqlite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--starts", "service.error", "--starts", "heartbeat", "--resolves", "incident.resolved", "--json"]
    assert main(["report", str(oracle_sqlite), *options]) == 0
    found = json.loads(capsys.readouterr().out)["log"]["settings"]
    assert (found["starts"], found["resolves"]) == (["service.error", "heartbeat"], ["incident.resolved"])

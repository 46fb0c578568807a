"""What a report counts of a log at once, and what it counts item by item: equal, field by field."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from reflexio_odd import odd_log
from reflexio_writing import BEGIN

from evalr import report
from evalr_reflexio import counting

NOW = BEGIN + timedelta(days=12)


def both_ways(path: Path, monkeypatch: pytest.MonkeyPatch, **asked: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The report at once, and item by item."""
    asked = {"now": NOW, "kind": "reflexio", **asked}
    at_once = plain(report(path, **asked))
    with monkeypatch.context() as patch:
        patch.setattr(counting, "counts_alone", lambda reading: False)
        return at_once, plain(report(path, **asked))


def plain(found: Any) -> dict[str, Any]:
    """A report as JSON has it, and what it says on the screen."""
    given = found.to_dict()
    return json.loads(json.dumps(given, default=str)) | {"text": found.text()}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("odd", [0, 0.03])
def test_made_up_logs(seed: int, odd: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = [
        {},
        {"arms": "experiment:exp", "shadow": "arm"},
        {"since": BEGIN + timedelta(days=2), "until": BEGIN + timedelta(days=9)},
        {"window": timedelta(minutes=20), "arms": "request-source:treatment=prod;control=beta", "shadow": "shadow"},
        {"compat": "reflexio"},
        {"measures": ["learning", "waits"], "shadow_version": "v2"},
    ][seed % 6]
    path = odd_log(tmp_path / "reflexio.db", seed, odd=odd, release="0.2.30" if seed == 5 else "0.2.32")
    at_once, one_by_one = both_ways(path, monkeypatch, **asked)
    assert at_once == one_by_one
    assert at_once["log"]["records"] > 60


@pytest.mark.parametrize("compat", [None, "reflexio"])
def test_a_log_that_reflexio_wrote(
    compat: str | None, newest_log: Path, tagged_log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in (newest_log, tagged_log):
        at_once, one_by_one = both_ways(path, monkeypatch, compat=compat)
        assert at_once == one_by_one


@pytest.mark.parametrize("asked", [{"by": "request_source"}, {"cluster": "session"}, {"details": True}])
def test_groups_clusters_and_details_are_counted_item_by_item(
    asked: dict[str, Any], newest_log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once, one_by_one = both_ways(newest_log, monkeypatch, **asked)
    assert at_once == one_by_one

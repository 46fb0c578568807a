"""A judge's confidence beside what people say."""

from __future__ import annotations

from typing import Literal

import pytest
from pydantic import BaseModel

from evalr import About, Failure, InputError, Verdict
from evalr.estimates.calibration import brier_score, reliability
from evalr.labels import calibration, feedback
from evalr.measures import TaskCompletion


class Said(BaseModel):
    ok: bool
    kind: Literal["a", "b"] = "a"


def about(n: int) -> About:
    return About("exchange", f"e{n}", user=f"u{n % 40}")


ROWS = [(0.55 + 0.1 * (n % 5), (n * 7) % 10 < 6) for n in range(120)]
RESULTS = [Verdict(Said(ok=True), "judge", "3", about(n), {"ok": confidence}) for n, (confidence, _) in enumerate(ROWS)]
LABELS = [feedback(about(n), Said(ok=right)) for n, (_, right) in enumerate(ROWS)]


def test_scores_and_bins_are_those_of_the_statistics() -> None:
    found = calibration(RESULTS, LABELS)
    rows = [(f"u{n % 40}", confidence, right) for n, (confidence, right) in enumerate(ROWS)]
    pure = brier_score(rows)
    assert (found.brier.value, found.brier.low, found.brier.high) == (pure.value, *pure.interval[:2])
    assert found.reliability == reliability(rows)
    assert sum(each.n for each in found.reliability.bins) == found.brier.n == 120
    assert found.right.value == pytest.approx(sum(right for _, right in ROWS) / 120)
    assert found.brier.clustered_by == {"user": 40}
    assert len(calibration(RESULTS, LABELS, bins=2, rule="equal_mass").reliability.bins) == 2


def test_what_has_no_confidence_label_or_verdict_is_counted() -> None:
    silent = Verdict(Said(ok=True), "judge", "3", about(200))
    failed = Failure("x", "judge", "3", about(201))
    tied = Verdict(Said(ok=True), "judge", "3", about(202), {"ok": 0.9})
    labels = [*LABELS, feedback(about(200), Said(ok=True)), feedback(about(201), Said(ok=True))]
    labels += [feedback(about(202), Said(ok=ok), author=name) for name, ok in (("ann", True), ("bob", False))]
    found = calibration([*RESULTS, silent, failed, tied], labels)
    assert found.brier.left_out == {"without a confidence": 1, "failed": 1, "tied between people": 1}
    assert "left out: 1 without a confidence, 1 failed, 1 tied between people" in str(found)
    assert calibration(RESULTS, LABELS, exclude=["e0", "e1"]).brier.n == 118


def test_wholly_certain_and_wrong_has_no_log_loss() -> None:
    result = Verdict(Said(ok=True), "judge", "3", about(1), {"ok": 1.0})
    found = calibration([result], [feedback(about(1), Said(ok=False))])
    assert (found.brier.value, found.log_loss.value, found.log_loss.status) == (1.0, None, "undefined")
    assert "wholly certain, and wrong" in str(found)


def test_the_field_is_named_where_it_could_be_several() -> None:
    both = [Verdict(Said(ok=True), "judge", "3", about(1), {"ok": 0.9, "kind": 0.7})]
    labels = [feedback(about(1), Said(ok=True, kind="b"))]
    with pytest.raises(InputError, match="pass field=; there are: ok, kind"):
        calibration(both, labels)
    assert calibration(both, labels, field="kind").right.value == 0.0
    with pytest.raises(InputError, match="there is no field 'kid'"):
        calibration(both, labels, field="kid")
    with pytest.raises(InputError, match="no verdict says how confident it is"):
        calibration([Verdict(Said(ok=True), "judge", "3", about(1))], labels)
    assert calibration([], [], field="ok").brier.status == "undefined"


def test_it_shows_its_bins() -> None:
    found = calibration(RESULTS, LABELS)
    lines = str(found).splitlines()
    assert lines[0] == "confidence in ok · 120 pairs of 40 users"
    assert lines[1].startswith("  Brier score  ")
    assert len(lines) == 5 + len(found.reliability.bins)
    assert "calibration error" in found._repr_html_()
    assert len(found.to_dicts()) == len(found.reliability.bins)
    assert found.to_dict()["reliability"]["bins"][0]["n"] > 0


def test_it_is_a_frame_of_bins() -> None:
    pytest.importorskip("pandas")
    assert list(calibration(RESULTS, LABELS).to_frame()["n"]) == [24] * 5


def test_other_types_are_read_too() -> None:
    result = Verdict(TaskCompletion(completed=True, quality=3), "judge", "1", about(1), {"quality": 0.8})
    said = {"ann": 3, "bob": 3, "eve": 5}
    labels = [feedback(about(1), TaskCompletion(completed=True, quality=q), author=name) for name, q in said.items()]
    assert calibration([result], labels).right.value == 1.0

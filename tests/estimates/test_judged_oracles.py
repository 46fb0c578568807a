"""Judges: every number of another implementation that ours must reproduce, and those it must not show."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalr.estimates.interval import Interval, normal_quantile
from evalr.estimates.judged import DoubleSample, double_sampling, ppi_plus_plus, rogan_gladen
from evalr.tallies.moments import Moments

Entry = dict[str, Any]

ENTRIES: dict[str, Entry] = {
    entry["id"]: entry
    for entry in json.loads(Path(__file__).with_name("oracles_judged.json").read_text(encoding="utf-8"))["entries"]
}

Z = normal_quantile(0.95)


def near(expected: Any, entry: Entry) -> Any:
    return pytest.approx(expected, rel=0, abs=entry["tol"])


def trials(hits: int, n: int) -> Moments:
    return Moments(n, n, hits, n, hits, hits, n)


def limits(interval: Interval) -> list[float | None]:
    return [interval.low, interval.high]


# --- corrected rates -----------------------------------------------------------------------------------------------


def rows_of(entry: Entry) -> list[tuple[None, float, float | None]]:
    inputs = entry["inputs"]
    labelled = zip(inputs["judge_on_same"], inputs["human"], strict=True)
    return [*((None, f, y) for f, y in labelled), *((None, f, None) for f in inputs.get("judge_unlabelled", []))]


def of_verdicts(entry: Entry) -> DoubleSample:
    return DoubleSample.of_rows((None, bool(f), None if y is None else bool(y)) for _, f, y in rows_of(entry))


def errors_known(entry: Entry) -> None:
    inputs, expected = entry["inputs"], entry["expected"]
    found = rogan_gladen(
        trials(inputs["judged_pass"], inputs["n"]),
        trials(inputs["tp"], inputs["positives"]),
        trials(inputs["tn"], inputs["negatives"]),
    )
    assert found.judge_only.value == near(expected["raw"], entry)
    assert found.value == near(expected["estimate"], entry)
    assert limits(found.interval) == near(expected["lang_reiczigel_ci"], entry)
    assert found.interval.variance is not None
    assert math.sqrt(found.interval.variance) == near(expected["wald_se"], entry)


def doubled(entry: Entry) -> None:
    sample, expected = of_verdicts(entry), entry["expected"]
    found = double_sampling(sample)
    shares = (sample.judged.ratio, sample.passed.ratio, sample.failed.ratio)
    assert [float(share or 0) for share in shares] == near(
        [expected["judge_pass_rate"], expected["ppv"], expected["one_minus_npv"]], entry
    )
    assert found.value == near(expected["estimate"], entry)
    assert limits(found.interval) == near(expected["mover_wilson_ci"], entry)
    assert found.interval.variance is not None
    assert math.sqrt(found.interval.variance) == near(expected["wald_se"], entry)


def no_label_of_a_fail(entry: Entry) -> None:
    """The judge failed something, or else nothing is missing."""
    rows = [*rows_of(entry), (None, 0.0, None)]
    found = double_sampling(DoubleSample.of_rows((None, bool(f), None if y is None else bool(y)) for _, f, y in rows))
    assert found.slope is entry["expected"] is None
    assert found.value == found.labels_only.value == pytest.approx(2 / 3)
    assert found.interval.reason


def variance_at(slope: float, entry: Entry, *, ddof: int) -> float:
    """Of the two means at a slope: the published ones divide by n, ours by n - 1."""
    inputs = entry["inputs"]
    left = [y - slope * f for f, y in zip(inputs["judge_on_same"], inputs["human"], strict=True)]
    others = [slope * f for f in inputs["judge_unlabelled"]]
    total = 0.0
    for values in (left, others):
        mean = sum(values) / len(values)
        total += sum((value - mean) ** 2 for value in values) / (len(values) - ddof) / len(values)
    return total


def powered(entry: Entry) -> None:
    slope = 1.0 if entry["id"] == "judge.ppi" else None
    found = ppi_plus_plus(rows_of(entry), slope=slope)
    low, high = entry["expected"]["ci"]
    assert found.value == near(entry["expected"]["estimate"], entry)
    assert found.slope is not None
    half = Z * math.sqrt(variance_at(found.slope, entry, ddof=0))
    assert [found.value - half, found.value + half] == near([low, high], entry)
    assert found.interval.variance == pytest.approx(variance_at(found.slope, entry, ddof=1))
    assert found.interval.low is not None
    assert found.interval.high is not None
    assert found.interval.low < low < high < found.interval.high


def powered_elsewhere(entry: Entry) -> None:
    expected = entry["expected"]
    for name, slope in (("ppi", 1.0), ("ppi_pp", slope_of(entry, expected["ppi_pp"]["estimate"]))):
        found = ppi_plus_plus(rows_of(entry), slope=slope)
        assert found.value == near(expected[name]["estimate"], entry)
        assert found.interval.variance is not None
        half = Z * math.sqrt(found.interval.variance)
        assert [found.value - half, found.value + half] == near(expected[name]["ci"], entry)


def slope_of(entry: Entry, estimate: float) -> float:
    inputs = entry["inputs"]
    judged, unlabelled, human = (
        sum(inputs[name]) / len(inputs[name]) for name in ("judge_on_same", "judge_unlabelled", "human")
    )
    return (estimate - human) / (unlabelled - judged)


def labels_alone(entry: Entry) -> None:
    expected = entry["expected"]
    labels = ppi_plus_plus(rows_of(entry)).labels_only
    assert labels.value == near(expected["estimate"], entry)
    assert limits(labels.interval) == near(expected["t_ci"], entry)
    assert labels.interval.variance is not None
    half = Z * math.sqrt(labels.interval.variance * 11 / 12)
    assert [labels.value - half, labels.value + half] == near(expected["ci"], entry)


def beginning(*starts: str) -> list[str]:
    return [name for name in ENTRIES if name.startswith(starts)]


CHECKS: dict[str, Callable[[Entry], None]] = {
    **dict.fromkeys(beginning("judge.rogan_gladen."), errors_known),
    "judge.double_sampling": doubled,
    "judge.double_sampling_missing_stratum": no_label_of_a_fail,
    "judge.ppi": powered,
    "judge.ppi_pp": powered,
    "judge.ppi_glide": powered_elsewhere,
    "judge.classical_labelled_only": labels_alone,
}


@pytest.mark.parametrize("name", CHECKS)
def test_oracle(name: str) -> None:
    CHECKS[name](ENTRIES[name])

"""Judges: every number of another implementation that ours must reproduce, and those it must not show."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalr.estimates.agreement import people_agreement, rating_agreement, verdict_agreement
from evalr.estimates.calibration import brier_score, reliability
from evalr.estimates.chance_corrected import (
    Coefficient,
    Weights,
    alpha,
    coefficient_interval,
    gwet,
    kappa,
    weight_matrix,
)
from evalr.estimates.interval import Interval, normal_quantile, t_quantile
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


# --- agreement -----------------------------------------------------------------------------------------------------


def pairs_of(entry: Entry) -> list[tuple[int, int]]:
    """Judge's and people's."""
    inputs = entry["inputs"]
    if "table" not in inputs:
        return list(zip(inputs["judge"], inputs["human"], strict=True))
    table = inputs["table"]
    return [
        *[(1, 1)] * table["both_pass"],
        *[(0, 1)] * table["human_only"],
        *[(1, 0)] * table["judge_only"],
        *[(0, 0)] * table["both_fail"],
    ]


def scale_of(entry: Entry) -> list[int]:
    return sorted({rating for pair in pairs_of(entry) for rating in pair})


def error_of(found: Coefficient) -> float:
    """The published standard error of kappa: over items, without the factor n / (n - 1)."""
    return math.sqrt(math.fsum(each * each for each in found.influence))


def two_raters(entry: Entry) -> None:
    name = {"cohen": "identity", "weighted": entry["id"].rsplit("_", 1)[1]}[entry["id"].split(".")[1].split("_")[0]]
    scale = scale_of(entry)
    pairs = [(scale.index(judge), scale.index(people)) for judge, people in pairs_of(entry)]
    found, expected = kappa(pairs, weight_matrix(scale, name)), entry["expected"]
    assert found is not None
    assert (found.value, error_of(found)) == (near(expected["kappa"], entry), near(expected["se"], entry))
    half = Z * error_of(found)
    assert [found.value - half, found.value + half] == near(expected["ci"], entry)
    rows = [(None, judge, people) for judge, people in pairs_of(entry)]
    if name == "identity":
        shown = verdict_agreement((None, bool(i), bool(j)) for _, i, j in rows).kappa
    elif name == "quadratic":
        shown = rating_agreement(rows).kappa
    else:
        return
    n = len(pairs)
    assert shown.value == found.value
    assert shown.interval.variance == pytest.approx(expected["se"] ** 2 * n / (n - 1))
    # ours takes in what the straight one leaves out, and does not pass 1
    assert shown.interval.low is not None
    assert shown.interval.high is not None
    assert shown.interval.low < expected["ci"][0]
    assert shown.interval.high < 1


def krippendorff(entry: Entry) -> None:
    metric = entry["id"].rsplit("_", 1)[1]
    found = people_agreement(((None, pair) for pair in pairs_of(entry)), metric=metric)
    assert found.alpha.value == near(entry["expected"], entry)
    if metric == "ordinal":
        rated = rating_agreement((None, judge, people) for judge, people in pairs_of(entry))
        assert rated.alpha.value == near(entry["expected"], entry)


def paradox(entry: Entry) -> None:
    found, expected = verdict_agreement((None, bool(i), bool(j)) for i, j in pairs_of(entry)), entry["expected"]
    values = [part.value for part in (found.accuracy, found.kappa, found.ac1, found.mcc)]
    assert values == near([expected[name] for name in ("agreement", "kappa", "ac1", "mcc")], entry)


def printed(entry: Entry) -> None:
    """The coefficient and its standard error; limits are theirs by Student's t, and ours by Wilson's."""
    _, _, name, *weights, which = entry["id"].split(".")
    scale = scale_of(entry)
    matrix = weight_matrix(scale, weights[0] if weights else "identity")  # type: ignore[arg-type]
    items = [[pair.count(rating) for rating in scale] for pair in pairs_of(entry)]
    found = {"gwet": gwet, "krippendorff": alpha, "bp": uniform}[which](items, matrix)
    assert found is not None
    n, expected = len(items), entry["expected"]
    # what is printed carries over, as ours leaves the factor for small samples out
    error = error_of(found) * math.sqrt(n / (n - 1))
    assert (found.value, error) == (near(expected["coef"], entry), near(expected["se"], entry))
    half = t_quantile(0.95, n - 1) * error
    limits_of_t = [found.value - half, min(1.0, found.value + half)]
    assert limits_of_t == pytest.approx(expected["ci"], abs=2e-5)
    clusters = list(range(n))
    shown = coefficient_interval(found, clusters, level=0.95, method=name)
    assert shown.variance == pytest.approx(error**2)


def uniform(items: list[list[int]], matrix: Weights) -> Coefficient:
    """Brennan and Prediger's coefficient, which ours has not: by our weights and agreement."""
    n, size = len(items), len(matrix)
    chance = sum(map(sum, matrix)) / size**2
    agreed = [
        (sum(matrix[i][j] * item[i] * item[j] for i in range(size) for j in range(size)) - sum(item)) / 2
        for item in items
    ]
    mean = sum(agreed) / n
    scale = 1 / (1 - chance)
    return Coefficient(1 - scale * (1 - mean), agreed, [1] * n, scale, [scale * (each - mean) / n for each in agreed])


# --- calibration ---------------------------------------------------------------------------------------------------


def confidences(entry: Entry) -> list[tuple[None, float, bool]]:
    inputs = entry["inputs"]
    return [(None, c, bool(right)) for c, right in zip(inputs["confidence"], inputs["correct"], strict=True)]


def ten_bins(entry: Entry) -> None:
    assert reliability(confidences(entry), closed="left").ece == near(entry["expected"], entry)
    # the same rows and as many bins, each closed at its other end
    assert reliability(confidences(entry)).ece != near(entry["expected"], entry)


def four_bins(entry: Entry) -> None:
    """Their bins part two rows of one confidence by the order they came in; ours never part them."""
    rows = confidences(entry)
    assert rows[1][1] == rows[2][1] == 0.9
    apart = [*rows[:2], (None, math.nextafter(0.9, 1), rows[2][2]), *rows[3:]]
    assert reliability(apart, bins=4, rule="equal_mass").ece == near(entry["expected"], entry)
    together = reliability(rows, bins=4, rule="equal_mass")
    assert [each.n for each in together.bins] == [3, 3, 4, 2]


def murphy(entry: Entry) -> None:
    found, expected = reliability(confidences(entry), closed="left"), entry["expected"]
    assert found.reliability == near(expected["reliability"], entry)
    assert found.resolution == near(expected["resolution"], entry)
    assert found.uncertainty == near(expected["uncertainty"], entry)
    assert brier_score(confidences(entry)).value == near(expected["brier"], entry)


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
    "agree.cohen_kappa": two_raters,
    **dict.fromkeys(beginning("agree.weighted_kappa_"), two_raters),
    **dict.fromkeys(beginning("agree.krippendorff_"), krippendorff),
    "agree.kappa_paradox": paradox,
    **dict.fromkeys(beginning("agree.irrcac."), printed),
    "cal.ece10": ten_bins,
    "cal.ece_equal_mass4": four_bins,
    "cal.brier_murphy": murphy,
}


@pytest.mark.parametrize("name", CHECKS)
def test_oracle(name: str) -> None:
    CHECKS[name](ENTRIES[name])


def test_every_oracle_is_checked() -> None:
    assert CHECKS.keys() == ENTRIES.keys()

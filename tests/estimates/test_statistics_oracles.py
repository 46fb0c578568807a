"""Every number of another implementation that a method of ours must reproduce, and those it must not show."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalr.estimates.duration import EVENT, OPEN, curve, incidence, quantile
from evalr.estimates.folds import pass_k
from evalr.estimates.interval import Interval
from evalr.estimates.mean import mean_interval
from evalr.estimates.rate import rate_interval
from evalr.tallies.moments import Exact, Moments

Entry = dict[str, Any]

ENTRIES: dict[str, Entry] = {
    entry["id"]: entry
    for entry in json.loads(Path(__file__).with_name("oracles.json").read_text(encoding="utf-8"))["entries"]
}

NOT_OFFERED = {
    "ratio.jackknife": "the padded variance holds its level better, from sums alone",
    "ratio.cluster_bootstrap_exact": "unsafe under about 20 clusters, and no closed form",
    "km.rmst8_uncensored": "no summary asks for a restricted mean",
    "km.logrank": "two groups are compared by the share ended at a time",
    "passk.at.k4": "a person gets one answer: pass^k asks whether it can be relied on",
}


def near(expected: Any, entry: Entry) -> Any:
    return pytest.approx(expected, rel=0, abs=entry["tol"])


def limits(interval: Interval) -> list[float | None]:
    return [interval.low, interval.high]


def users(entry: Entry) -> Moments:
    groups = entry["inputs"]["users"].values()
    return Moments.of_clusters((sum(group), len(group), len(group)) for group in groups)


def artifacts(entry: Entry) -> Moments:
    rewritten, revisions = entry["inputs"]["rewritten"], entry["inputs"]["revisions"]
    return Moments.of_clusters((r, m, 1) for r, m in zip(rewritten, revisions, strict=True))


def one_rate(entry: Entry) -> None:
    k, n = entry["inputs"]["k"], entry["inputs"]["n"]
    moments = Moments.of_clusters([(1, 1, 1)] * k + [(0, 1, 1)] * (n - k))
    method = entry["id"].split(".")[1]
    interval = rate_interval(moments, level=entry["inputs"]["level"], method=method)
    assert limits(interval) == near(entry["expected"], entry)


def rule_of_three(entry: Entry) -> None:
    moments = Moments.of_clusters([(0, 1, 1)] * entry["inputs"]["n"])
    interval = rate_interval(moments, level=0.9, method="clopper_pearson")
    assert interval.high == near(entry["expected"], entry)


def nothing_counted(entry: Entry) -> None:
    interval = rate_interval(Moments())
    assert limits(interval) == [None, None]
    assert interval.reason


def cr0(entry: Entry) -> None:
    moments = users(entry)
    assert moments.ratio is not None
    assert float(moments.ratio) == near(entry["expected"]["rate"], entry)
    assert math.sqrt(moments.squares_around(moments.ratio)) == near(entry["expected"]["se"], entry)


def cr1(moments: Moments, entry: Entry) -> None:
    """CR1 and t are the interval of a mean without bounds; a rate shows the variance, and other limits."""
    expected = entry["expected"]
    interval = mean_interval(moments)
    assert limits(interval) == near(expected["ci"], entry)
    assert moments.ratio is not None
    assert interval.variance is not None
    assert float(moments.ratio) == near(expected.get("rate", expected.get("mean")), entry)
    assert math.sqrt(interval.variance) == near(expected["se"], entry)
    shown = rate_interval(moments)
    assert shown.variance == interval.variance
    assert limits(shown) != near(expected["ci"], entry)
    assert shown.low is not None
    assert shown.high is not None
    assert 0 <= shown.low < shown.high <= 1


def effective_n(moments: Moments, entry: Entry) -> None:
    interval = rate_interval(moments, method="wilson_cr1")
    assert limits(interval) == near(entry["expected"]["ci"], entry)
    assert interval.effective_n == near(entry["expected"]["n_eff"], entry)
    default = rate_interval(moments)
    assert default.method != interval.method
    assert default.low is not None
    assert default.low < entry["expected"]["ci"][0]


def all_success(entry: Entry) -> None:
    for method in ("wilson", "wilson_cr1"):
        interval = rate_interval(users(entry), method=method)
        assert limits(interval) == near(entry["expected"]["ci"], entry)
        assert interval.effective_n == near(entry["expected"]["n_eff"], entry)
        assert interval.variance == entry["expected"]["se"]
        assert interval.reason


def one_user(entry: Entry) -> None:
    moments = users(entry)
    interval = rate_interval(moments)
    assert moments.ratio is not None
    assert float(moments.ratio) == near(entry["expected"]["rate"], entry)
    assert limits(interval) == [None, None]
    assert interval.variance is None
    assert interval.reason


def no_revisions(entry: Entry) -> None:
    moments = artifacts(entry)
    assert moments.ratio is None
    assert limits(rate_interval(moments)) == [None, None]


def inspect_stderr(entry: Entry) -> None:
    variance = users(entry).robust_variance()
    assert variance is not None
    assert math.sqrt(variance) == near(entry["expected"], entry)


def inspect_wilson(entry: Entry) -> None:
    assert limits(rate_interval(users(entry), method="wilson_cr1")) == near(entry["expected"], entry)


def chains(entry: Entry) -> tuple[Any, Any]:
    return entry["inputs"]["time"], entry["inputs"]["resolved"]


def km_curve(entry: Entry) -> None:
    expected = entry["expected"]
    drawn = curve(*chains(entry))
    assert drawn.times == expected["times"]
    for time, survival, se in zip(expected["times"], expected["S"], expected["se"], strict=True):
        result = incidence(*chains(entry), at=time).complement()
        assert result.value == near(survival, entry)
        assert result.interval.variance is not None
        assert math.sqrt(result.interval.variance) == near(se, entry)


def km_shares(entry: Entry) -> None:
    assert [1 - share for share in curve(*chains(entry)).shares] == near(entry["expected"], entry)


def km_log_log(entry: Entry) -> None:
    result = incidence(*chains(entry), at=entry["inputs"]["at"]).complement()
    assert result.value == near(entry["expected"]["S"], entry)
    assert limits(result.interval) == near(entry["expected"]["ci"], entry)


def km_median(entry: Entry) -> None:
    expected = entry["expected"]
    assert expected["ci_cloglog"][1] == "inf"
    result = quantile(*chains(entry))
    assert result.value == expected["median"]
    assert limits(result.interval) == [expected["ci_cloglog"][0], None]
    assert quantile(*chains(entry), q=0.25).value == expected["p25"]
    assert quantile(*chains(entry), q=0.75).value == expected["p75"]
    assert result.value != expected["naive_median_of_resolved"]


def km_half(entry: Entry) -> None:
    result = quantile(*chains(entry))
    assert result.value == entry["expected"]["first_t_S_le_half"] == entry["expected"]["lifelines"]
    assert result.value != entry["expected"]["statsmodels"]


def drop_off(entry: Entry) -> None:
    inputs, expected = entry["inputs"], entry["expected"]
    result = incidence(inputs["reply_hours"], inputs["replied"], at=inputs["window"])
    dropped = result.followed - result.ended
    assert result.complement().value == near(expected["km_dropoff"], entry)
    assert dropped / result.followed == near(expected["naive"], entry)
    everybody = result.followed + result.censored
    assert dropped / everybody == near(expected["treat_pending_as_continued"], entry)
    assert (dropped + result.censored) / everybody == near(expected["treat_pending_as_dropped"], entry)


def aalen_johansen(entry: Entry) -> None:
    times, states = entry["inputs"]["time"], entry["inputs"]["state"]
    swapped = [{0: 0, 1: 2, 2: 1}[state] for state in states]
    expected = entry["expected"]
    for time, first, second in zip(expected["times"], expected["cif1"], expected["cif2"], strict=True):
        assert incidence(times, states, at=time).value == near(first, entry)
        assert incidence(times, swapped, at=time).value == near(second, entry)
    censored = [EVENT if state == EVENT else OPEN for state in states]
    overstated = incidence(times, censored, at=9).value
    assert overstated is not None
    assert overstated > expected["cif1"][-1] + 0.05


def passing(tasks: list[tuple[int, int]], k: int) -> Moments:
    values: list[Exact] = []
    for trials, successes in tasks:
        value = pass_k(k)(successes, trials)
        assert not isinstance(value, str)
        values.append(value)
    return Moments.of_clusters((value, 1, 1) for value in values)


def pass_hat(entry: Entry) -> None:
    tasks = [(task["n"], task["c"]) for task in entry["inputs"]["tasks"]]
    moments = passing(tasks, entry["inputs"]["k"])
    assert moments.ratio is not None
    assert float(moments.ratio) == near(entry["expected"], entry)


def pass_hat_limits(entry: Entry) -> None:
    moments = passing([tuple(task) for task in entry["inputs"]["tasks"]], entry["inputs"]["k"])
    assert entry["expected"]["ci"][0] < 0
    assert entry["expected"]["ci"][1] > 1
    cr1(moments, entry)
    shown = mean_interval(moments, bounds=(0, 1))
    assert shown.low is not None
    assert shown.high is not None
    assert 0 <= shown.low < float(moments.ratio or 0) < shown.high <= 1


def too_few_trials(entry: Entry) -> None:
    inputs = entry["inputs"]
    assert entry["expected"] is None
    assert isinstance(pass_k(inputs["k"])(inputs["c"], inputs["n"]), str)


CHECKS: dict[str, Callable[[Entry], None]] = {
    **{name: one_rate for name in ENTRIES if name.count(".") == 2 and name.startswith("rate.")},
    "rate.rule_of_three.0of10": rule_of_three,
    "rate.empty": nothing_counted,
    "clustered_rate.cr0.se": cr0,
    "clustered_rate.cr1.se_ci": lambda entry: cr1(users(entry), entry),
    "clustered_rate.wilson_effective_n": lambda entry: effective_n(users(entry), entry),
    "clustered_rate.all_success": all_success,
    "clustered_rate.one_user": one_user,
    "ratio.delta_cluster": lambda entry: cr1(artifacts(entry), entry),
    "ratio.wilson_effective_n": lambda entry: effective_n(artifacts(entry), entry),
    "ratio.no_revisions": no_revisions,
    "inspect.stderr_cluster": inspect_stderr,
    "inspect.ci_wilson_cluster": inspect_wilson,
    "km.curve": km_curve,
    "km.curve_lifelines_scipy": km_shares,
    "km.S5_loglog_ci": km_log_log,
    "km.median": km_median,
    "km.exact_half_tie": km_half,
    "dropoff.km_at_window": drop_off,
    "dropoff.aalen_johansen": aalen_johansen,
    **{name: pass_hat for name in ENTRIES if name.startswith("passk.hat.")},
    "passk.hat_k2_ci": pass_hat_limits,
    "passk.too_few": too_few_trials,
}


@pytest.mark.parametrize("name", CHECKS)
def test_oracle(name: str) -> None:
    CHECKS[name](ENTRIES[name])


def test_every_oracle_is_checked_or_its_method_is_not_offered() -> None:
    assert not CHECKS.keys() & NOT_OFFERED.keys()
    assert CHECKS.keys() | NOT_OFFERED.keys() == ENTRIES.keys()

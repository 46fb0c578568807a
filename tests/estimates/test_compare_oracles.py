"""Comparisons: every number of another implementation that ours must reproduce, and those it must not show."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalr.estimates.compare import (
    Difference,
    mean_difference,
    rate_difference,
    relative_lift,
    square_and_add,
)
from evalr.estimates.contest import both_orders, net_win, paired_difference, position_adjusted, sign_test
from evalr.estimates.cuped import cuped_difference, lin_difference
from evalr.estimates.interval import normal_quantile
from evalr.estimates.many import benjamini_hochberg, benjamini_yekutieli, holm
from evalr.estimates.p_values import binomial_p
from evalr.estimates.power import design_effect, intraclass_correlation, power_of, users_needed
from evalr.estimates.rate import wilson
from evalr.estimates.reflexio_rules import session_rule, user_rule
from evalr.estimates.sample_ratio import ALARM_BELOW, sample_ratio, sequential_sample_ratio
from evalr.estimates.sequential import always_valid, mixture_radius, planned_tau2, rate_sequence
from evalr.tallies.contests import ContestMoments
from evalr.tallies.moments import Moments, exact

Entry = dict[str, Any]

ENTRIES: dict[str, Entry] = {
    entry["id"]: entry
    for entry in json.loads(Path(__file__).with_name("oracles_compare.json").read_text(encoding="utf-8"))["entries"]
}

WALD = "holds 0.95 for 65% of small holdouts, and has a width of 0 where all are alike"
PLANNED_LOOKS = "boundaries for planned looks need them kept to; an always-valid interval needs no plan"
OTHER_MIXTURE = "its mixture is another for each candidate rate and needs a planned number; Beta(1/2, 1/2) is exact too"

NOT_OFFERED = {
    **{name: WALD for name in ENTRIES if name.startswith("diff.wald.")},
    "clustered_diff.pooled_cr1_trap": "one regression over both arms corrects the smaller one too little",
    "seq.group_sequential.rho2": PLANNED_LOOKS,
    "seq.group_sequential.rho3": PLANNED_LOOKS,
    "seq.group_sequential.rhohalf": PLANNED_LOOKS,
    "seq.bernoulli_cs.8of10": OTHER_MIXTURE,
    "seq.bernoulli_cs.35of50": OTHER_MIXTURE,
}

Z = normal_quantile(0.95)


def near(expected: Any, entry: Entry) -> Any:
    return pytest.approx(expected, rel=0, abs=entry["tol"])


def trials(hits: int, n: int) -> Moments:
    return Moments(n, n, hits, n, hits, hits, n)


def arms(entry: Entry) -> tuple[Moments, Moments]:
    treatment, control = (
        Moments.of_clusters((sum(rows), len(rows), len(rows)) for rows in entry["inputs"][arm].values())
        for arm in ("treatment", "control")
    )
    return treatment, control


def two_rates(entry: Entry) -> tuple[Moments, Moments]:
    inputs = entry["inputs"]
    return trials(inputs["k1"], inputs["n1"]), trials(inputs["k2"], inputs["n2"])


def limits(found: Difference) -> list[float | None]:
    return [found.interval.low, found.interval.high]


def difference(entry: Entry) -> None:
    name = {"newcombe": "mover", "score": "miettinen_nurminen"}.get(
        entry["id"].split(".")[1], entry["id"].split(".")[1]
    )
    low, high = entry["expected"]
    # a difference of rates is never above 1, whatever a formula says
    expected = [max(-1.0, low), min(1.0, high)]
    assert limits(rate_difference(*two_rates(entry), level=entry["inputs"]["level"], method=name)) == near(
        expected, entry
    )


def score_test(entry: Entry) -> None:
    found = rate_difference(*two_rates(entry))
    assert (found.p, found.test) == (near(entry["expected"]["mn"], entry), "score/1")


def katz(entry: Entry) -> None:
    found = relative_lift(*two_rates(entry), method="log")
    assert found.value == near(entry["expected"]["lift"], entry)
    assert limits(found) == near(entry["expected"]["katz_log"], entry)
    # the default lies where Koopman's score interval does, which is the better one
    low, high = limits(relative_lift(*two_rates(entry)))
    koopman = entry["expected"]["koopman_score"]
    assert low == pytest.approx(koopman[0], abs=0.05)
    assert high == pytest.approx(koopman[1], rel=0.1)


def zero_control(entry: Entry) -> None:
    for method in ("mover", "log"):
        found = relative_lift(*two_rates(entry), method=method)
        assert found.value is entry["expected"] is None
        assert found.interval.reason


def cr0(entry: Entry) -> None:
    variance = sum(arm.squares_around(arm.ratio) for arm in arms(entry) if arm.ratio is not None)
    assert math.sqrt(variance) == near(entry["expected"]["se"], entry)
    assert rate_difference(*arms(entry)).value == near(entry["expected"]["lift"], entry)


def log_cr0(entry: Entry) -> None:
    treatment, control = arms(entry)
    assert treatment.ratio is not None
    assert control.ratio is not None
    assert math.log(treatment.ratio / control.ratio) == near(entry["expected"]["log_rr"], entry)
    variance = sum(arm.squares_around(arm.ratio) / arm.ratio**2 for arm in (treatment, control) if arm.ratio)
    assert math.sqrt(variance) == near(entry["expected"]["se"], entry)


def welch(entry: Entry) -> None:
    expected = entry["expected"]
    found = mean_difference(*arms(entry))
    assert found.value == near(expected["lift"], entry)
    assert limits(found) == near(expected["ci"], entry)
    assert (found.p, found.df) == (near(expected["p"], entry), near(expected["df"], entry))
    assert found.interval.variance == near(expected["se"] ** 2, entry)
    shown = rate_difference(*arms(entry))
    assert shown.interval.variance == found.interval.variance
    assert shown.interval.low is not None
    assert shown.interval.low < expected["ci"][0]


def mover(entry: Entry) -> None:
    found = rate_difference(*arms(entry), method="mover_cr1")
    assert found.value == near(entry["expected"]["lift"], entry)
    assert limits(found) == near(entry["expected"]["ci"], entry)
    low, high = limits(rate_difference(*arms(entry)))
    assert low is not None
    assert high is not None
    assert low < entry["expected"]["ci"][0] < entry["expected"]["ci"][1] < high


def zero_variance(entry: Entry) -> None:
    """Our users count as Kish does, 1.8 of 2 where one has twice the sessions, so ours is wider."""
    expected = entry["expected"]
    on_users = square_and_add((wilson(1, 2, Z)[0], 1, 1), (0, 0, wilson(0, 2, Z)[1]))
    assert on_users == near(tuple(expected["fallback_newcombe_on_users"]), entry)
    found = rate_difference(*arms(entry))
    assert (found.value, found.interval.variance) == (expected["lift"], expected["se"])
    assert found.interval.low is not None
    assert 0 < found.interval.low < expected["fallback_newcombe_on_users"][0]
    assert found.interval.high == 1
    assert found.interval.reason


def retrieval_experiment(entry: Entry) -> None:
    rule, expected = user_rule(*arms(entry)), entry["expected"]
    assert rule.low is not None
    assert rule.high is not None
    assert rule.lift == near(expected["lift_pp"] / 100, entry)
    assert [100 * rule.low, 100 * rule.high] == near(expected["ci_pp"], entry)
    assert rule.relative == near(expected["relative"], entry)


def session_lift(entry: Entry) -> None:
    inputs, expected = entry["inputs"], entry["expected"]
    rule = session_rule(trials(inputs["k_t"], inputs["n_t"]), trials(inputs["k_c"], inputs["n_c"]))
    if expected["lift_pp"] is None:
        assert rule == (None, None, None, None)
        return
    assert rule.lift is not None
    assert rule.half_width is not None
    assert rule.unclamped is not None
    assert 100 * rule.lift == near(expected["lift_pp"], entry)
    assert 100 * rule.half_width == near(expected["half_width_pp"], entry)
    assert 100 * rule.unclamped == near(expected["unclamped_pp"], entry)
    assert rule.low_confidence is expected["low_confidence"]


def rows_of(entry: Entry) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    inputs = entry["inputs"]
    treatment = list(zip(inputs["x_t"], inputs["y_t"], strict=True))
    return treatment, list(zip(inputs["x_c"], inputs["y_c"], strict=True))


def pooled_theta(entry: Entry) -> None:
    found, expected = cuped_difference(*rows_of(entry)), entry["expected"]
    assert (found.theta, found.raw) == (near(expected["theta"], entry), near(expected["raw"], entry))
    assert found.difference.value == near(expected["adjusted"], entry)
    assert limits(found.difference) == near(expected["ci"], entry)


def lin(entry: Entry) -> None:
    found = lin_difference(*rows_of(entry)).difference
    assert found.value == near(entry["expected"]["adjusted"], entry)
    assert found.interval.variance is not None
    assert math.sqrt(found.interval.variance) == near(entry["expected"]["se"], entry)


def net(entry: Entry) -> None:
    wins, losses, n = (entry["inputs"][name] for name in ("b", "c", "n"))
    contest = ContestMoments.of_counts(wins, n - wins - losses, losses)
    found = net_win(contest, method=entry["id"].split(".")[1])
    assert found.value == (wins - losses) / n
    assert limits(found) == near(entry["expected"], entry)


def newcombe_of_pairs(entry: Entry) -> None:
    both, only_a, only_b, neither = entry["inputs"].values()
    n, first, second = both + only_a + only_b + neither, both + only_a, both + only_b
    arms_of = [(low, k / n, high) for k in (first, second) for low, high in [wilson(k / n, n, Z)]]
    cross = both * neither - only_a * only_b
    cross = max(cross - n / 2, 0) if cross > 0 else cross
    phi = cross / math.sqrt(first * (n - first) * second * (n - second))
    assert square_and_add(arms_of[0], arms_of[1], phi) == near(tuple(entry["expected"]), entry)


def signs(entry: Entry) -> None:
    found = sign_test(entry["inputs"]["wins"], entry["inputs"]["losses"])
    assert found.exact == pytest.approx(entry["expected"], rel=1e-9)


def mcnemar(entry: Entry) -> None:
    found = sign_test(entry["inputs"]["b"], entry["inputs"]["c"])
    assert found == (near(entry["expected"]["exact"], entry), near(entry["expected"]["midp"], entry))


def paired_t(entry: Entry) -> None:
    pairs = zip(entry["inputs"]["a"], entry["inputs"]["b"], strict=True)
    found, expected = paired_difference(Moments.of_clusters((exact(a - b), 1, 1) for a, b in pairs)), entry["expected"]
    assert found.value == near(expected["diff"], entry)
    assert limits(found) == near(expected["ci"], entry)
    assert (found.p, found.df) == (near(expected["p"], entry), expected["df"])


def clustered_net(entry: Entry) -> None:
    users = [[rows.count(outcome) for outcome in (1, 0, -1)] for rows in entry["inputs"]["users"].values()]
    contest = ContestMoments.of_clusters((wins, ties, losses) for wins, ties, losses in users)
    found, expected = paired_difference(contest.net()), entry["expected"]
    assert found.value == near(expected["net"], entry)
    assert limits(found) == near(expected["ci"], entry)
    shown = net_win(contest)
    assert shown.value == found.value
    assert shown.interval.variance == pytest.approx(found.interval.variance)
    assert limits(shown) != near(expected["ci"], entry)


def unbalanced_order(entry: Entry) -> None:
    inputs, expected = entry["inputs"], entry["expected"]
    first, second = (
        ContestMoments.of_counts(*(inputs[f"{order}_{outcome}"] for outcome in ("win", "tie", "loss")))
        for order in ("first", "second")
    )
    found = position_adjusted(first, second)
    assert first.merge(second).half_tie == near(expected["raw"], entry)
    assert (found.adjusted, found.bias) == (near(expected["adjusted"], entry), near(expected["bias"], entry))


def orders(entry: Entry) -> None:
    names = ("ww", "ll", "tt", "wl", "lw", "mixed_with_tie")
    found, expected = both_orders(*(entry["inputs"][name] for name in names)), entry["expected"]
    contest = found.contest
    assert (contest.wins, contest.losses, contest.ties) == (expected["wins"], expected["losses"], expected["ties"])
    assert found.consistency == near(expected["consistency"], entry)
    assert found.position.exact == near(expected["position_effect_mcnemar_p"], entry)
    assert found.net.value == near(expected["net_point"], entry)
    assert limits(found.net) == near(expected["net"], entry)


def ratio_of_samples(entry: Entry) -> None:
    inputs, expected = entry["inputs"], entry["expected"]
    found = sample_ratio(inputs["observed"], inputs["expected_share"])
    few = min(inputs["expected_share"]) * sum(inputs["observed"]) < 5
    assert found.statistic == near(expected["chi2"], entry)
    assert found.p == near(expected["exact_p" if few else "p"], entry)
    assert found.alarm is (found.p is not None and found.p < ALARM_BELOW)
    exact_p = binomial_p(inputs["observed"][0], sum(inputs["observed"]), inputs["expected_share"][0])
    assert exact_p == near(expected["exact_p"], entry)


def sequential_ratio(entry: Entry) -> None:
    inputs = entry["inputs"]
    found = sequential_sample_ratio(inputs["observed"], inputs["theta0"], prior=inputs["k"])
    assert found.statistic is not None
    assert math.exp(found.statistic) == near(entry["expected"]["bf"], entry)
    assert found.p == entry["expected"]["p"]


def size(entry: Entry) -> None:
    inputs = entry["inputs"]
    ratio = inputs["ratio_treatment_to_control"]
    for pooled, name in ((False, "unpooled"), (True, "pooled_null")):
        found = users_needed(inputs["p1"], inputs["p2"], ratio=ratio, power=inputs["power"], pooled=pooled)
        assert found.control == near(entry["expected"][name], entry)
        assert found.treatment == pytest.approx(ratio * found.control)


def power(entry: Entry) -> None:
    inputs = entry["inputs"]
    found = power_of(inputs["p1"], inputs["p2"], treatment_users=inputs["n"], control_users=inputs["n"], pooled=True)
    assert found == near(entry["expected"], entry)


def effect_of_design(entry: Entry) -> None:
    inputs, expected = entry["inputs"], entry["expected"]
    mean, icc = inputs["mean_sessions"], inputs["icc"]
    assert design_effect(mean, icc) == near(expected["de"], entry)
    unequal = design_effect(mean, icc, cv=inputs["cv"])
    assert unequal == near(expected["de_unequal"], entry)
    assert inputs["n"] / unequal == near(expected["n_eff"], entry)


def icc(entry: Entry) -> None:
    users = entry["inputs"]["users"].values()
    found = intraclass_correlation((len(rows), sum(rows), sum(row * row for row in rows)) for rows in users)
    assert found == near(entry["expected"]["icc"], entry)


def planned(entry: Entry) -> None:
    t, alpha, expected = entry["inputs"]["t_opt"], entry["inputs"]["alpha"], entry["expected"]
    ours = planned_tau2(1 / t, 1 - alpha)
    assert ours == near(expected["paper"], entry)
    # what it is short of the exact one costs nothing at the planned end
    assert mixture_radius(1 / t, ours, 1 - alpha) / mixture_radius(1 / t, expected["exact"], 1 - alpha) < 1.0002


def confidence_sequence(entry: Entry) -> None:
    inputs = entry["inputs"]
    alpha, variance = inputs["alpha"], inputs["sd"] ** 2
    tau2 = planned_tau2(variance / inputs["t_opt"], 1 - alpha)
    assert mixture_radius(variance / inputs["t"], tau2, 1 - alpha) == near(entry["expected"], entry)


def mixture_bound(entry: Entry) -> None:
    inputs = entry["inputs"]
    v, alpha = inputs["v"], inputs["alpha"]
    rho = inputs["v_opt"] / (2 * math.log(1 / alpha) + math.log(1 + 2 * math.log(1 / alpha)))
    assert v * mixture_radius(1 / v, 1 / rho, 1 - alpha) == near(entry["expected"], entry)


def one_rate(entry: Entry) -> None:
    inputs = entry["inputs"]
    interval = rate_sequence(inputs["k"], inputs["n"], level=1 - inputs["alpha"])
    assert [interval.low, interval.high] == near(entry["expected"], entry)


def msprt(entry: Entry) -> None:
    inputs, expected = entry["inputs"], entry["expected"]
    found = always_valid(inputs["diff"], inputs["variance_of_diff"], tau2=inputs["tau2"], level=1 - inputs["alpha"])
    assert found.p == near(expected["p"], entry)
    assert found.p == pytest.approx(1 / expected["Lambda"])
    assert found.interval.high is not None
    assert found.interval.high - inputs["diff"] == near(expected["radius"], entry)


def adjusted(entry: Entry) -> None:
    p = entry["inputs"]["p"]
    if entry["id"] == "multi.ties_and_one":
        assert holm(p) == near(entry["expected"]["holm"], entry)
        assert benjamini_hochberg(p) == near(entry["expected"]["bh"], entry)
        return
    of = benjamini_hochberg if entry["id"] == "multi.bh" else benjamini_yekutieli
    assert of(p) == near(entry["expected"], entry)


def beginning(*starts: str) -> list[str]:
    return [name for name in ENTRIES if name.startswith(starts)]


CHECKS: dict[str, Callable[[Entry], None]] = {
    **dict.fromkeys(beginning("diff.agresti_caffo.", "diff.score.", "diff.newcombe."), difference),
    "diff.score_test.9of10_vs_3of10": score_test,
    **dict.fromkeys(beginning("relative.ratio."), katz),
    "relative.zero_control": zero_control,
    "relative.clustered_log_ratio_cr0": log_cr0,
    "clustered_diff.cr0": cr0,
    "clustered_diff.per_arm_cr1_welch": welch,
    "clustered_diff.newcombe_effective_n": mover,
    "clustered_diff.zero_variance_trap": zero_variance,
    "clustered_diff.reflexio_retrieval_experiment": retrieval_experiment,
    **dict.fromkeys(beginning("reflexio_wald."), session_lift),
    "cuped.pooled_theta": pooled_theta,
    "cuped.lin2013": lin,
    **dict.fromkeys(beginning("paired.bonett_price.", "paired.tango."), net),
    "paired.newcombe_mover.12_2_1_23": newcombe_of_pairs,
    **dict.fromkeys(beginning("paired.mcnemar."), mcnemar),
    "paired.t": paired_t,
    "paired.clustered_net": clustered_net,
    **dict.fromkeys(beginning("win.sign_test."), signs),
    "position.unbalanced_order": unbalanced_order,
    "position.both_orders": orders,
    **dict.fromkeys(beginning("srm.chi2."), ratio_of_samples),
    "srm.sequential.88_12": sequential_ratio,
    **dict.fromkeys(beginning("power.n."), size),
    "power.power.356": power,
    "power.design_effect": effect_of_design,
    "icc.anova": icc,
    "seq.rho2.t100": planned,
    **dict.fromkeys(beginning("seq.asymptotic_cs."), confidence_sequence),
    **dict.fromkeys(beginning("seq.normal_mixture_bound."), mixture_bound),
    **dict.fromkeys(beginning("seq.beta_binomial_cs."), one_rate),
    "seq.msprt": msprt,
    **dict.fromkeys(beginning("multi."), adjusted),
}


@pytest.mark.parametrize("name", CHECKS)
def test_oracle(name: str) -> None:
    CHECKS[name](ENTRIES[name])


def test_every_oracle_is_checked_or_its_method_is_not_offered() -> None:
    assert not CHECKS.keys() & NOT_OFFERED.keys()
    assert CHECKS.keys() | NOT_OFFERED.keys() == ENTRIES.keys()


@pytest.mark.parametrize("name", beginning("diff.wald."))
def test_wald_is_not_what_is_shown(name: str) -> None:
    found = limits(rate_difference(*two_rates(ENTRIES[name])))
    assert found != pytest.approx(ENTRIES[name]["expected"], abs=1e-3)

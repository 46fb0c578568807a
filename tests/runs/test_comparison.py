"""Comparing two runs: pairs by id, the numbers of the oracles, nothing dropped, and gates that pass on something."""

from __future__ import annotations

import html
import random
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from evalr import (
    DuplicateError,
    Failure,
    FunctionEvaluator,
    InputError,
    Mean,
    MixedVersionsError,
    Rate,
    Skip,
    TimeTo,
    Verdict,
)
from evalr.estimates.contest import net_win
from evalr.estimates.many import benjamini_hochberg, holm
from evalr.inputs import About
from evalr.labels import Dataset, Example
from evalr.measures import TaskCompletion, Transcript
from evalr.measures.task_completion import completion_pass_k, completion_rate
from evalr.runs import Comparison, Experiment, Trial, compare, experiment_sync
from evalr.tallies.contests import ContestMoments


class Score(BaseModel):
    value: float


class Part(BaseModel):
    hits: int
    total: int


class Hit(BaseModel):
    hit: bool


rate = Rate("hits", of=Hit, hits=lambda v: v.hit, noun="example")
mean = Mean("score", of=Score, value=lambda v: v.value)
bounded = Mean("rating", of=Score, value=lambda v: v.value, bounds=(1, 5))
ratio = Rate("parts", of=Part, hits=lambda v: v.hits, total=lambda v: v.total)


def about(name: object, group: str | None = None, repeat: int | None = None, **more: Any) -> About:
    attributes = {} if group is None else {"group": group}
    return About("transcript", f"e{name}", attributes=attributes, repeat=repeat, **more)


def verdicts(values: Sequence[BaseModel], groups: Sequence[str | None] | None = None, version: str = "1") -> list[Any]:
    groups = [None] * len(values) if groups is None else groups
    return [
        Verdict(value, "judge", version, about(n, group))
        for n, (value, group) in enumerate(zip(values, groups, strict=True))
    ]


def hits(values: Sequence[int], *groups: Any) -> list[Any]:
    return verdicts([Hit(hit=bool(value)) for value in values], *groups)


def scores(values: Sequence[float], *groups: Any) -> list[Any]:
    return verdicts([Score(value=value) for value in values], *groups)


def changed(gained: int, lost: int, n: int) -> tuple[list[Any], list[Any]]:
    """Two runs over n examples of which so many were gained and lost; half of the others are hits."""
    same = [k % 2 for k in range(n - gained - lost)]
    return hits([0] * gained + [1] * lost + same), hits([1] * gained + [0] * lost + same)


# Numbers of other implementations: statsmodels' mcnemar and OLS with clusters, scipy's ttest_rel, evalstats' interval


@pytest.mark.parametrize(
    ("gained", "lost", "n", "limits"),
    [
        (10, 3, 30, (-0.006032117793455555, 0.4435321177934556)),
        (0, 0, 20, (-0.12599125675906162, 0.12599125675906162)),
        (5, 0, 5, (0.19583598522357692, 1.0)),
        (1, 0, 1, (-0.7335359280789577, 1.0)),
        (12, 2, 38, (0.06996581213667588, 0.43003418786332415)),
    ],
)
def test_a_share_has_the_interval_of_bonett_and_price(
    gained: int, lost: int, n: int, limits: tuple[float, float]
) -> None:
    row = compare(*changed(gained, lost, n), rate)["hits"]
    assert (row.gained, row.lost, row.difference.n) == (gained, lost, n)
    assert (row.difference.low, row.difference.high) == pytest.approx(limits, abs=1e-9)
    assert row.difference.value == pytest.approx((gained - lost) / n)
    assert row.difference.unit == "points"


@pytest.mark.parametrize(("gained", "lost", "p"), [(0, 0, 1.0), (5, 0, 0.03125), (25, 12, 0.03355243967962451)])
def test_a_share_has_mcnemars_mid_p(gained: int, lost: int, p: float) -> None:
    row = compare(*changed(gained, lost, 40), rate)["hits"]
    assert row.p == pytest.approx(p, abs=1e-9)
    assert row.test == "sign-mid-p/1"


def test_a_score_has_the_paired_t() -> None:
    after, before = [4.0, 5.0, 3.0, 4.0, 2.0, 5.0], [3.0, 5.0, 2.0, 4.0, 3.0, 3.0]
    row = compare(scores(before), scores(after), mean)["score"]
    difference = row.difference
    assert (difference.value, row.p) == pytest.approx((0.5, 0.2955586447345286), abs=1e-9)
    assert (difference.low, difference.high) == pytest.approx((-0.6006573847080132, 1.6006573847080132), abs=1e-9)
    assert difference.variance == pytest.approx(0.4281744192888377**2, abs=1e-9)


USERS = {"u1": [1, 0, 1], "u2": [0], "u3": [-1, 1], "u4": [0, 0, 1]}
GROUPS = [user for user, found in USERS.items() for _ in found]
CHANGES = [change for found in USERS.values() for change in found]


def test_a_clustered_score_has_the_robust_variance_over_groups() -> None:
    row = compare(scores([3.0] * 9, GROUPS), scores([3.0 + change for change in CHANGES], GROUPS), mean)["score"]
    difference = row.difference
    assert difference.value == pytest.approx(0.33333333333333326, abs=1e-9)
    assert difference.variance == pytest.approx(0.16001828884957678**2, abs=1e-9)
    assert (difference.low, difference.high) == pytest.approx((-0.17591627879382354, 0.8425829454604901), abs=1e-9)
    assert (difference.clusters, difference.clustered_by) == (4, {"group": 4})


def test_a_clustered_share_is_the_net_win_of_a_contest() -> None:
    before, after = [int(change < 0) for change in CHANGES], [int(change > 0) for change in CHANGES]
    row = compare(hits(before, GROUPS), hits(after, GROUPS), rate)["hits"]
    difference = row.difference
    assert difference.value == pytest.approx(0.33333333333333326, abs=1e-9)
    assert difference.variance == pytest.approx(0.16001828884957678**2, abs=1e-9)
    wins = net_win(ContestMoments.of_clusters((u.count(1), u.count(0), u.count(-1)) for u in USERS.values()))
    assert (difference.low, difference.high, row.p) == (wins.interval.low, wins.interval.high, wins.p)
    assert difference.method == wins.interval.method == "bonett-price-effective-n/1"
    assert (row.gained, row.lost, difference.clusters) == (4, 1, 4)
    assert compare(hits(before, GROUPS), hits(after, GROUPS), rate, cluster="id")["hits"].test == "sign-mid-p/1"


def test_limits_of_a_share_stay_within_a_hundred_points_and_have_a_width_where_all_groups_are_alike() -> None:
    wide = compare(hits([0, 0, 1, 1]), hits([1, 1, 1, 1]), rate, cluster=lambda about: str(int(about.id[1:]) // 2))
    difference = wide["hits"].difference
    assert difference.high == 1
    assert difference.low is not None
    assert difference.low >= -1
    alike = compare(hits([0] * 12, list("aabbccddeeff")), hits([0] * 12, list("aabbccddeeff")), rate)["hits"].difference
    assert alike.low is not None
    assert alike.high is not None
    assert -0.5 < alike.low < 0 < alike.high < 0.5
    one = compare(hits([0, 1], ["a", "a"]), hits([1, 1], ["a", "a"]), rate)["hits"].difference
    assert (one.value, one.low, one.status) == (0.5, None, "degenerate")


@pytest.mark.parametrize(("correction", "function"), [("holm", holm), ("bh", benjamini_hochberg)])
def test_p_is_adjusted_for_all_measures(correction: Literal["holm", "bh"], function: Any) -> None:
    chance = random.Random(1)
    before, after = (
        [[chance.random() < share for share in shares] for _ in range(60)]
        for shares in ([0.3, 0.5, 0.5], [0.6, 0.6, 0.5])
    )

    class Three(BaseModel):
        a: bool
        b: bool
        c: bool

    runs = [verdicts([Three(a=a, b=b, c=c) for a, b, c in run]) for run in (before, after)]
    summaries = [Rate(name, of=Three, hits=lambda v, name=name: getattr(v, name)) for name in "abc"]
    found = compare(*runs, summaries, correction=correction)
    assert [row.adjusted_p for row in found.values()] == function([row.p for row in found.values()])
    assert "p adjusted for 3 tests" in str(found)
    assert [row.adjusted_p for row in compare(*runs, summaries, correction=None).values()] == [None] * 3


# Repeats


def test_repeats_are_the_mean_of_their_example() -> None:
    def run(shares: list[list[int]]) -> list[Any]:
        return [
            Verdict(Hit(hit=bool(value)), "judge", "1", about(n, repeat=k))
            for n, found in enumerate(shares)
            for k, value in enumerate(found, start=1)
        ]

    row = compare(run([[0, 1, 0], [1, 1, 1], [0, 0, 1]]), run([[1, 1, 0], [1, 1, 1], [1, 1, 1]]), rate)["hits"]
    assert row.difference.value == pytest.approx((1 / 3 + 0 + 2 / 3) / 3)
    assert (row.difference.n, row.gained) == (3, None)
    assert row.difference.counts == {"higher": 2, "lower": 0, "same": 1}
    # an example is a cluster of its repeats, here of 3: two gained one and two, one stayed
    wins = net_win(ContestMoments.of_clusters([(1, 2, 0), (0, 3, 0), (2, 1, 0)]))
    assert (row.difference.low, row.difference.high, row.p) == (wins.interval.low, wins.interval.high, wins.p)
    alike = compare(run([[1, 1]] * 4), run([[1, 1]] * 4), rate)["hits"]
    assert (alike.gained, alike.lost, alike.difference.counts["same"]) == (0, 0, 4)


# What is missing


def test_failures_in_either_run_are_counted_and_widen_the_bounds() -> None:
    before, after = hits([1, 1, 0, 0, 1, 0]), hits([1, 1, 1, 1, 1, 0])
    before[0] = Failure("x", "judge", "1", about(0))
    after[5] = Skip("y", "judge", "1", about(5))
    row = compare(before, after, rate)["hits"]
    assert row.difference.left_out == {"failed before": 1, "skipped after": 1}
    assert row.difference.n == 4
    assert (row.before, row.after) == (0.5, 1.0)
    # Of six pairs two are known to be gained; the one that failed may be gained, too, and so may the skipped one.
    assert row.difference.bounds == pytest.approx((2 / 6, 4 / 6))
    assert "left out: 1 failed before, 1 skipped after" in str(row)


@given(st.lists(st.tuples(st.sampled_from([0, 1, None]), st.sampled_from([0, 1, None])), min_size=1, max_size=12))
@settings(max_examples=60, deadline=None)
def test_the_bounds_hold_whatever_the_missing_ones_were(pairs: list[tuple[int | None, int | None]]) -> None:
    def run(values: Sequence[int | None], missing: int | None) -> list[Any]:
        known = [missing if value is None else value for value in values]
        return [
            Failure("x", "judge", "1", about(n))
            if value is None
            else Verdict(Hit(hit=bool(value)), "judge", "1", about(n))
            for n, value in enumerate(known)
        ]

    before, after = zip(*pairs, strict=True)
    found = compare(run(before, None), run(after, None), rate)["hits"].difference
    extremes = [compare(run(before, b), run(after, a), rate)["hits"].difference.value for b, a in ((1, 0), (0, 1))]
    assert found.bounds == pytest.approx(tuple(extremes))


@given(
    st.lists(st.tuples(st.sampled_from([0.5, 1.0, 3.0]), st.integers(0, 2), st.integers(0, 2)), min_size=2, max_size=8)
)
@settings(max_examples=40, deadline=None)
def test_weights_of_repeats_are_those_of_their_examples(rows: list[tuple[float, int, int]]) -> None:
    """The same weight for everyone is none at all, and no weight moves the difference from the mean of its pairs."""

    def run(at: int, scale: float | None = None) -> list[Any]:
        return [
            Verdict(Hit(hit=k < row[at]), "judge", "1", about(n, repeat=k + 1, weight=scale or row[0]))
            for n, row in enumerate(rows)
            for k in range(2)
        ]

    weighed = compare(run(1), run(2), rate)["hits"].difference
    expected = sum(w * (after - before) / 2 for w, before, after in rows) / sum(w for w, _, _ in rows)
    assert weighed.value == pytest.approx(expected)
    assert weighed.low is not None
    assert weighed.high is not None
    assert weighed.low < weighed.high
    # 1 is no weight at all, and pairs of whole shares are then single ones
    if any((before - after) % 2 or before == 1 for _, before, after in rows):
        two, one = (compare(run(1, scale), run(2, scale), rate)["hits"] for scale in (2.0, 1.0))
        assert (two.difference.low, two.difference.high, two.p) == pytest.approx(
            (one.difference.low, one.difference.high, one.p)
        )


def test_a_judge_that_fails_more_does_not_look_better() -> None:
    before, after = hits([1] * 5 + [0] * 5), hits([1] * 5 + [0] * 5)
    after[5:] = [Failure("x", "judge", "1", about(n)) for n in range(5, 10)]
    difference = compare(before, after, rate)["hits"].difference
    assert difference.value == 0
    assert difference.bounds == (0, 0.5)


def test_what_has_no_pair_is_counted_and_named() -> None:
    found = compare(hits([1, 0, 1]), hits([1, 1, 1, 0, 0])[1:], rate)
    assert (found.only_before, found.only_after) == (("e0",), ("e3", "e4"))
    assert found["hits"].difference.left_out == {"only after": 2, "only before": 1}
    assert found["hits"].difference.n == 2
    assert "2 examples in the second run alone: e3, e4" in str(found)


def test_a_run_of_failures_alone_is_undefined_and_says_why() -> None:
    broken = [Failure("x", "judge", "1", about(n)) for n in range(3)]
    row = compare(hits([1, 0, 1]), broken, rate)["hits"]
    assert (row.difference.value, row.difference.status, row.p) == (None, "undefined", None)
    assert row.difference.left_out == {"failed after": 3}
    assert row.difference.bounds == pytest.approx((-2 / 3, 1 / 3))
    assert row.difference.reason == "nothing after counts, 3 failed: x (3)"
    assert "nothing after counts, 3 failed: x (3)" in str(compare(hits([1, 0, 1]), broken, rate).gate("hits > -5pp"))
    both = compare(broken, [], rate)["hits"].difference.reason
    assert both == "nothing before counts, 3 failed: x (3); nothing after counts"


def test_alike_pairs_never_have_an_interval_without_width() -> None:
    share = compare(hits([1] * 8), hits([1] * 8), rate)["hits"].difference
    assert share.low is not None
    assert share.high is not None
    assert share.low < 0 < share.high
    rating = compare(scores([3.0] * 8), scores([4.0] * 8), bounded)["rating"].difference
    assert rating.low is not None
    assert rating.high is not None
    assert rating.low < 1 < rating.high
    score = compare(scores([3.0] * 8), scores([4.0] * 8), mean)["score"].difference
    assert (score.value, score.low, score.status) == (1.0, None, "degenerate")


def test_a_result_left_out_for_a_reason_of_its_own_changes_no_bounds() -> None:
    summary = replace(rate, leaves_out=lambda v: "hit" if v.hit else None)
    row = compare(hits([1, 0, 0]), hits([1, 0, 0]), summary)["hits"]
    assert row.difference.left_out == {"hit after": 1, "hit before": 1}
    assert row.difference.bounds == (0, 0)


# Ratios, weights, folds


def test_a_ratio_goes_by_its_pooled_values() -> None:
    before = verdicts([Part(hits=h, total=t) for h, t in ((1, 10), (1, 1), (2, 4), (0, 3))])
    after = verdicts([Part(hits=h, total=t) for h, t in ((6, 10), (1, 1), (2, 2), (1, 4))])
    row = compare(before, after, ratio)["parts"]
    assert (row.before, row.after) == pytest.approx((4 / 18, 10 / 17))
    assert row.difference.value == pytest.approx(10 / 17 - 4 / 18)
    assert row.difference.low is not None
    assert row.difference.counts == {"total before": 18, "total after": 17}


def test_sampling_weights_count() -> None:
    before = [Verdict(Hit(hit=False), "judge", "1", about(n, weight=w)) for n, w in enumerate((1.0, 3.0))]
    after = [Verdict(Hit(hit=n == 1), "judge", "1", about(n, weight=w)) for n, w in enumerate((1.0, 3.0))]
    assert compare(before, after, rate)["hits"].difference.value == 0.75


def test_flips_can_be_compared() -> None:
    flips = Rate("flips", of=Hit, hits=lambda v: v.hit, per="id", fold="flip")

    def run(values: list[list[int]]) -> list[Any]:
        return [
            Verdict(Hit(hit=bool(value)), "judge", "1", about(n, repeat=k))
            for n, found in enumerate(values)
            for k, value in enumerate(found, start=1)
        ]

    row = compare(run([[0, 1], [1, 0], [1, 1]]), run([[0, 0], [1, 0], [1, 1]]), flips)["flips"]
    assert (row.before, row.after, row.lost) == (pytest.approx(2 / 3), pytest.approx(1 / 3), 1)


# What is refused


def test_other_versions_of_a_judge_are_refused_unless_asked_for() -> None:
    before, after = hits([1, 0]), hits([1, 1], None, "2")
    with pytest.raises(
        MixedVersionsError, match="before was judged by 'judge' version '1', after by 'judge' version '2'"
    ):
        compare(before, after, rate)
    row = compare(before, after, rate, mix_versions=True)["hits"]
    assert "mixed_versions" in row.difference.flags


def test_a_second_result_of_one_subject_is_an_error_unless_one_is_chosen() -> None:
    before, after = hits([1, 0]), hits([1, 1])
    with pytest.raises(DuplicateError, match="results 1 and 2"):
        compare([*before, before[1]], after, rate)
    assert compare([*before, hits([0, 1])[1]], after, rate, duplicates="first")["hits"].difference.value == 0.5
    assert compare([*before, hits([0, 1])[1]], after, rate, duplicates="latest")["hits"].difference.value == 0.0


@pytest.mark.parametrize(
    ("summaries", "options", "message"),
    [
        ([], {}, "at least one summary"),
        ([rate, rate], {}, "two summaries are named 'hits'"),
        (rate, {"correction": "bonferroni"}, "must be 'holm', 'bh' or None"),
        (completion_pass_k(2), {}, "fold it per='id'"),
        (rate, {"cluster": "team"}, "cluster='team': transcript 'e0' has none"),
        (rate, {"level": 1.5}, "level must lie between 0 and 1"),
        (TimeTo("wait", of=Score, after=lambda v: v.value, end=lambda v: "x", event="x"), {}, "rates and means"),
    ],
)
def test_what_cannot_be_compared_is_refused(summaries: Any, options: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        compare(hits([1, 0]), hits([1, 1]), summaries, **options)


def test_results_without_an_id_cannot_be_paired() -> None:
    with pytest.raises(InputError, match="about nothing with an id"):
        compare([Verdict(Hit(hit=True), "judge")], hits([1]), rate)


def test_sessions_of_two_users_with_one_id_are_two_pairs() -> None:
    def run(values: dict[str, bool]) -> list[Any]:
        return [Verdict(Hit(hit=hit), "judge", "1", About("session", "1", user)) for user, hit in values.items()]

    before, after = run({"ann": True, "bob": False}), run({"ann": True, "bob": True, "cy": True})
    found = compare(before, after, rate)
    assert (found["hits"].difference.n, found["hits"].gained, found.only_after) == (2, 1, ("1 of cy",))
    parts = [[Verdict(Hit(hit=True), "judge", "1", About("wait", "1", *of))] for of in (("ann", None), (None, "ann"))]
    assert compare(*parts, rate)["hits"].difference.n == 0
    with pytest.raises(InputError, match="session '1' of user 'ann' and session '1' of user 'bob' have one id"):
        compare(before, experiment_sync(dataset(2), None, FunctionEvaluator("judge", "1", bool, Transcript, Hit)), rate)


def test_results_of_several_evaluators_are_not_pooled() -> None:
    other = [replace(result, evaluator="other") for result in hits([1, 0])]
    with pytest.raises(InputError, match="verdicts by 'judge' and 'other'"):
        compare([*hits([1, 0]), *other], hits([1, 0]), rate)


# Experiments


def dataset(size: int = 40, label: bool = True, name: str = "some") -> Dataset[TaskCompletion]:
    return Dataset(
        name,
        [
            Example(
                Transcript(id=f"e{n}", user=f"u{n % 12}", request=f"q{n}"),
                expected=TaskCompletion(completed=label, quality=3),
            )
            for n in range(size)
        ],
    )


def run(share: float, whole: Dataset[TaskCompletion] | None = None, version: str = "1") -> Experiment:
    def look(given: Transcript) -> TaskCompletion:
        return TaskCompletion(completed=random.Random(f"{given.id}{share}").random() < share, quality=3)

    judge = FunctionEvaluator("completion", version, look, Transcript, TaskCompletion)
    return experiment_sync(whole or dataset(), None, judge, name=f"share {share}")


def test_experiments_are_compared_by_their_examples_over_their_groups() -> None:
    found = compare(run(0.5), run(0.9), completion_rate)
    row = found["completion"]
    assert (row.difference.n, row.difference.clusters) == (40, 12)
    assert str(found).startswith("share 0.5 → share 0.9\n  completion ")
    assert row.gained is not None
    assert row.lost is not None
    assert row.difference.value == pytest.approx((row.gained - row.lost) / 40)
    assert row.to_dict()["difference"] == row.difference.value


def test_different_datasets_are_refused_unless_asked_for_and_then_what_changed_is_left_out() -> None:
    first, second = dataset(), dataset(30).add(Example(Transcript(id="new", request="x")))
    second = second.add(Example(Transcript(id="e3", user="u3", request="other")), duplicates="latest")
    second = second.add(replace(second["e4"], reason="relabelled"), duplicates="latest")  # which no judge has seen
    runs = run(0.5, first), run(0.9, second)
    with pytest.raises(InputError, match=r"different datasets.*of which 29 are the same in both"):
        compare(*runs, completion_rate)
    found = compare(*runs, completion_rate, mix_datasets=True)
    assert found["completion"].difference.n == 29
    assert found.changed == ("e3",)
    assert (len(found.only_before), found.only_after) == (10, ("new",))
    assert found["completion"].difference.left_out == {"only before": 10, "changed": 1, "only after": 1}


def test_where_evaluators_read_labels_another_label_is_another_example() -> None:
    def found(whole: Dataset[TaskCompletion]) -> Experiment:
        judge = FunctionEvaluator("hit", "1", lambda trial: Hit(hit=trial.expected.completed), Trial, Hit)
        return experiment_sync(whole, None, judge)

    whole = dataset(20)
    other = whole.add(replace(whole["e3"], reason="relabelled"), duplicates="latest")
    assert compare(found(whole), found(other), rate, mix_datasets=True).changed == ("e3",)


def test_a_measure_that_a_run_lost_is_an_error_rather_than_left_out() -> None:
    with pytest.raises(InputError, match="summary 'hits' reads Hit, and no evaluator gives it"):
        compare(run(0.5), run(0.9), [completion_rate, rate])


def test_runs_of_one_name_are_told_apart_by_their_tasks_versions() -> None:
    judge = FunctionEvaluator("hit", "1", lambda trial: Hit(hit=True), Trial, Hit)
    runs = [experiment_sync(dataset(3), lambda _: "x", judge, task_version=version) for version in ("a", "b")]
    assert str(compare(*runs, rate)).startswith("task@a → task@b\n")


def test_an_experiment_is_compared_with_one_from_a_file(tmp_path: Any) -> None:
    before, after = run(0.5), run(0.9)
    before.save(tmp_path / "before.jsonl")
    read = Experiment.load(tmp_path / "before.jsonl")
    assert str(compare(read, after, completion_rate)) == str(compare(before, after, completion_rate))


# Gates


def gated(low: float, high: float) -> Comparison:
    """Of a share whose interval is about that wide."""
    found = compare(*changed(10, 3, 30), rate)
    row = found["hits"]
    return Comparison(
        [replace(row, difference=replace(row.difference, low=low, high=high))], names=("a", "b"), correction=None
    )


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("hits > -0.02", 0),
        ("hits>-2pp", 0),
        ("hits >= -1pp", 0),
        ("hits > -1pp", 1),
        ("hits > 0", 1),
        ("hits < 50pp", 0),
        ("hits < 0.3", 1),
    ],
)
def test_a_gate_goes_by_the_limit_that_counts_against_it(condition: str, code: int) -> None:
    gate = gated(-0.01, 0.4).gate(condition)
    assert (gate.code, gate.passed, bool(gate)) == (code, code == 0, code == 0)


def test_a_gate_over_no_pairs_fails() -> None:
    for runs in (([], []), (hits([1]), []), (hits([1, 1]), hits([1, 1, 1, 1])[2:])):
        gate = compare(*runs, rate).gate("hits > -1")
        assert (gate.code, gate.passed) == (2, False)
        assert "undefined" in str(gate)


def test_a_gate_without_an_interval_fails() -> None:
    gate = compare(scores([3.0] * 8), scores([4.0] * 8), mean).gate("score > -10")
    assert gate.code == 2


def test_all_conditions_must_pass_and_the_worst_says_the_code() -> None:
    found = gated(-0.01, 0.4)
    assert found.gate("hits > -2pp", "hits > 0").code == 1
    assert str(found.gate("hits > -2pp")).startswith(
        "passed       hits > -2pp  +23.3pp [-1.0, +40.0], lower limit -1.0pp"
    )


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ((), "at least one condition"),
        (("hit > 0",), "did you mean 'hits'"),
        (("hits",), "is not a condition"),
        (("hits > soon",), "'soon' is not a number"),
        (("hits > nan",), "'nan' is not a number"),
        (("hits > 2",), "from -1 to 1"),
        (("hits > -5%",), "write -5pp for points"),
        (("hits > -5%pp",), "is not a number"),
    ],
)
def test_a_gate_that_cannot_be_read_is_refused(conditions: tuple[str, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        gated(0, 1).gate(*conditions)


def test_a_score_has_a_plain_bar() -> None:
    found = compare(scores([3.0, 4.0, 2.0]), scores([3.5, 4.0, 2.5]), mean)
    assert found.gate("score > -1").passed
    with pytest.raises(InputError, match="not a share"):
        found.gate("score > -1%")


# Showing


def test_rows_say_what_they_counted() -> None:
    found = compare(*changed(10, 3, 30), rate)
    assert str(found) == (
        "before → after\n  hits 36.7% → 60.0% · +23.3pp [-0.6, +44.4] · p = 0.057 · 30 pairs · 10 gained, 3 lost"
    )


def test_frames_and_html() -> None:
    pytest.importorskip("pandas")
    name = "<b>\u202ehits"
    found = compare(*changed(10, 3, 30), [replace(rate, name=name), replace(rate, name="other")])
    frame = found.to_frame()
    assert list(frame["gained"]) == [10, 10]
    assert frame["difference"].iloc[0] == pytest.approx(7 / 30)
    shown = found._repr_html_()
    assert "<b>" not in shown
    assert html.escape("<b>") in shown
    assert "\u202e" not in shown + str(found)


def test_numbers_of_the_table_are_aligned_under_their_names() -> None:
    found = compare(*changed(10, 3, 30), [rate, replace(rate, name="other")])
    rows = [
        re.findall(r"<t[hd]([^>]*)>(.*?)</t[hd]>", row) for row in re.findall("<tr>(.*?)</tr>", found._repr_html_())
    ]
    heads = [text for _, text in rows[0]]
    assert heads == ["measure", "before", "after", "difference", "95% interval", "p", "counted"]
    for row in rows:
        assert ["right" in look for look, _ in row] == [False, True, True, True, True, True, False]
    first = dict(zip(heads, (text for _, text in rows[1]), strict=True))
    assert (first["p"], first["counted"]) == ("0.057 (adjusted 0.115)", "30 pairs · 10 gained, 3 lost")


def test_without_summaries_those_of_installed_measures_that_both_have_are_compared() -> None:
    found = compare(run(0.5), run(0.8))
    assert list(found) == ["completion", "completion_quality"]
    assert list(compare(run(0.5).results, run(0.8).results)) == list(found)
    with pytest.raises(InputError, match=r"share no rate or mean .*Hit and TaskCompletion.*Rate\("):
        compare(hits([1]), run(0.5))


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.sampled_from("abc")), max_size=15))
@settings(max_examples=60, deadline=None)
def test_swapping_the_runs_mirrors_the_difference(pairs: list[tuple[bool, bool, str]]) -> None:
    groups = [group for *_, group in pairs]
    first, second = (hits([pair[at] for pair in pairs], groups) for at in (0, 1))
    there, back = compare(first, second, rate)["hits"], compare(second, first, rate)["hits"]
    assert (there.gained, there.lost, there.p) == (back.lost, back.gained, pytest.approx(back.p))
    for one, other in ((there.difference.value, back.difference.value), (there.difference.low, back.difference.high)):
        assert (one is None) == (other is None)
        if one is not None and other is not None:
            assert one == pytest.approx(-other, abs=1e-9)
            assert -1 <= one <= 1

"""Lift: two arms compared, with what one has to know before believing the difference."""

from __future__ import annotations

import csv
import itertools
import json
import math
import random
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from evalr import (
    About,
    Assignment,
    Contest,
    Failure,
    InputError,
    Lift,
    Mean,
    MixedVersionsError,
    Rate,
    Result,
    TimeTo,
    Verdict,
    pass_k,
)

AT = datetime(2026, 9, 28, 9, 0, tzinfo=UTC)


class Answer(BaseModel):
    ok: bool = True
    score: float = 0.0
    after: float = 0.0
    end: str | None = None


completion = Rate("completion", of=Answer, hits=lambda v: v.ok)
quality = Mean("quality", of=Answer, value=lambda v: v.score)
rating = Mean("rating", of=Answer, value=lambda v: v.score, bounds=(1, 5))
back = TimeTo("back", of=Answer, after=lambda v: v.after, end=lambda v: v.end, event="back", within=10)
EVERY_KIND = (
    completion,
    quality,
    rating,
    back,
    TimeTo("lost", of=Answer, after=lambda v: v.after, end=lambda v: v.end, event="back", within=10, open=True),
)

ORACLES = {
    entry["id"]: entry
    for entry in json.loads((Path(__file__).parents[1] / "estimates" / "oracles_compare.json").read_text())["entries"]
}


class Maker:
    """Results with ids of their own."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(
        self, arm: str | None, user: str | None = None, at: datetime | None = None, **fields: Any
    ) -> Result[Answer]:
        self.count += 1
        about = About("session", id=str(self.count), user=user, arm=arm, at=at)
        return Verdict(Answer(**fields), "judge", about=about)

    def failed(self, arm: str | None, user: str | None = None) -> Result[Answer]:
        self.count += 1
        return Failure("timed out", "judge", "1", About("session", id=str(self.count), user=user, arm=arm))


@pytest.fixture
def made() -> Maker:
    return Maker()


def counted(made: Maker, hits: int, n: int, arm: str) -> list[Result[Answer]]:
    return [made(arm, ok=place < hits) for place in range(n)]


def by_user(made: Maker, arms: dict[str, Any]) -> list[Result[Answer]]:
    return [
        made(arm, user, ok=bool(hit))
        for arm in ("treatment", "control")
        for user, hits in arms[arm].items()
        for hit in hits
    ]


# ---------------------------------------------------------------------------------------------------------------------
# The numbers
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["630of900_vs_60of100", "45of60_vs_30of60"])
def test_independent_rows_have_newcombes_interval(made: Maker, name: str) -> None:
    given = ORACLES[f"reflexio_wald.{name}"]["inputs"]
    results = counted(made, given["k_t"], given["n_t"], "treatment") + counted(
        made, given["k_c"], given["n_c"], "control"
    )
    lift = completion.lift(results, randomised=True)
    assert lift.difference.value == pytest.approx(given["k_t"] / given["n_t"] - given["k_c"] / given["n_c"])
    assert lift.difference.method == "newcombe/1"
    assert lift.test == "score/1"
    assert lift.flags == ()
    assert (lift.treatment.n, lift.control.n, lift.untagged) == (given["n_t"], given["n_c"], None)


def test_users_with_several_sessions_have_the_interval_over_users(made: Maker) -> None:
    oracle = ORACLES["clustered_diff.newcombe_effective_n"]
    lift = completion.lift(by_user(made, oracle["inputs"]), interval="mover_cr1")
    assert [lift.difference.low, lift.difference.high] == pytest.approx(oracle["expected"]["ci"], abs=oracle["tol"])
    assert lift.difference.clusters == 9
    welch = ORACLES["clustered_diff.per_arm_cr1_welch"]["expected"]
    assert lift.difference.variance is not None
    assert math.sqrt(lift.difference.variance) == pytest.approx(welch["se"], abs=1e-9)


def test_the_past_of_one_row_a_user_is_taken_off_as_the_formula_says(made: Maker) -> None:
    oracle = ORACLES["cuped.pooled_theta"]
    arms, expected = oracle["inputs"], oracle["expected"]
    now, past = [], []
    for arm, letter in (("treatment", "t"), ("control", "c")):
        for place, (y, x) in enumerate(zip(arms[f"y_{letter}"], arms[f"x_{letter}"], strict=True)):
            now.append(made(arm, f"{letter}{place}", score=y))
            past.append(made(None, f"{letter}{place}", score=x))
    lift = quality.lift(now, before=past)
    assert lift.difference.value == pytest.approx(expected["raw"])
    assert lift.adjusted is not None
    assert lift.adjusted.value == pytest.approx(expected["adjusted"], abs=1e-9)
    assert [lift.adjusted.low, lift.adjusted.high] == pytest.approx(expected["ci"], abs=1e-9)
    assert lift.adjusted.counts["theta"] == pytest.approx(expected["theta"])
    assert lift.adjusted.counts["with_past"] == 11
    assert 0 < lift.adjusted.counts["variance_reduction"] < 1


@pytest.mark.parametrize("name", ["630of900_vs_60of100", "45of60_vs_30of60", "2of2_vs_1of2", "1of2_vs_1of2"])
def test_what_reflexio_shows_is_there_by_name(made: Maker, name: str) -> None:
    oracle = ORACLES[f"reflexio_wald.{name}"]
    given, expected = oracle["inputs"], oracle["expected"]
    results = counted(made, given["k_t"], given["n_t"], "treatment") + counted(
        made, given["k_c"], given["n_c"], "control"
    )
    found = completion.lift(results, interval="reflexio_sessions").difference
    assert found.value is not None
    assert found.high is not None
    assert 100 * found.value == pytest.approx(expected["lift_pp"])
    assert 100 * (found.high - found.value) == pytest.approx(expected["half_width_pp"])


def test_what_reflexio_shows_of_users_is_there_by_name(made: Maker) -> None:
    oracle = ORACLES["clustered_diff.reflexio_retrieval_experiment"]
    found = completion.lift(by_user(made, oracle["inputs"]), interval="reflexio_users").difference
    assert found.low is not None
    assert found.high is not None
    assert [100 * found.low, 100 * found.high] == pytest.approx(oracle["expected"]["ci_pp"], abs=1e-9)


def test_a_rule_that_gives_a_width_of_0_gives_no_interval(made: Maker) -> None:
    lift = completion.lift([made("treatment", ok=True), made("control", ok=False)], interval="reflexio_sessions")
    assert lift.difference.value == 1
    assert (lift.difference.low, lift.difference.status) == (None, "degenerate")
    assert "width of 0" in str(lift)


@pytest.mark.parametrize("interval", ["mover", "mover_cr1", "agresti_caffo", "miettinen_nurminen"])
def test_all_that_fail_or_succeed_still_leave_a_width(made: Maker, interval: str) -> None:
    results = counted(made, 50, 50, "treatment") + counted(made, 50, 50, "control")
    found = completion.lift(results, interval=interval).difference
    assert found.low is not None
    assert found.high is not None
    assert found.low < 0 == found.value < found.high


arms = st.sampled_from(["treatment", "control", "other", None])
users = st.sampled_from([None, *"abcdefgh"])
rows = st.lists(
    st.tuples(
        arms,
        users,
        st.booleans(),
        st.sampled_from([1.0, 2.5, 5.0]),
        st.sampled_from([0.0, 4.0, 12.0]),
        st.sampled_from([None, "back", "closed"]),
    ),
    max_size=40,
)


def results_of(drawn: Iterable[tuple[Any, ...]]) -> list[Result[Answer]]:
    made = Maker()
    return [made(arm, user, ok=ok, score=score, after=after, end=end) for arm, user, ok, score, after, end in drawn]


def lifts(results: list[Result[Answer]], **options: Any) -> Iterator[Lift]:
    named = [result for result in results if result.about is not None and result.about.arm != "other"]
    for summary in EVERY_KIND:
        yield summary.lift(named, treatment="treatment", control="control", **options)


@given(rows)
def test_a_difference_is_that_of_its_arms_and_its_interval_holds_it(drawn: list[tuple[Any, ...]]) -> None:
    for lift in lifts(results_of(drawn)):
        found = lift.difference
        if lift.treatment.value is None or lift.control.value is None:
            assert (found.value, found.status) == (None, "undefined")
            assert found.reason
            continue
        assert found.value == pytest.approx(lift.treatment.value - lift.control.value, abs=1e-12)
        if found.low is None:
            assert found.reason
            assert lift.p is None
        else:
            assert found.high is not None
            assert found.low < found.high
            assert found.low <= found.value <= found.high
            assert lift.p is not None
            # p and the interval never contradict each other, but for the score test of independent rows
            if lift.test != "score/1":
                assert (lift.p < 0.05) == (not found.low <= 0 <= found.high) or abs(lift.p - 0.05) < 1e-6
        assert found.n == lift.treatment.n + lift.control.n
        json.dumps(lift.to_dict(), allow_nan=False)


@given(rows)
def test_arms_that_are_swapped_give_the_difference_mirrored(drawn: list[tuple[Any, ...]]) -> None:
    results = [
        each for each in results_of(drawn) if each.about is not None and each.about.arm in ("treatment", "control")
    ]
    for summary in EVERY_KIND:
        one = summary.lift(results, treatment="treatment", control="control").difference
        other = summary.lift(results, treatment="control", control="treatment").difference
        for here, there in ((one.value, other.value), (one.low, other.high), (one.high, other.low)):
            assert (here is None) == (there is None)
            if here is not None and there is not None:
                assert here == pytest.approx(-there, abs=1e-9)


@given(rows, st.integers(0, 40))
def test_tallies_of_parts_give_the_lift_of_the_whole(drawn: list[tuple[Any, ...]], cut: int) -> None:
    results = [each for each in results_of(drawn) if each.about is not None and each.about.arm != "other"]
    for summary in EVERY_KIND:
        parts = [summary.tally(part, by="arm") for part in (results[:cut], results[cut:])]
        assert summary.lift(parts[0] + parts[1]).to_dict() == summary.lift(results).to_dict()


# ---------------------------------------------------------------------------------------------------------------------
# Users in both arms
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("summary", EVERY_KIND, ids=lambda summary: summary.name)
def test_users_in_both_arms_are_counted_as_such(made: Maker, summary: Any) -> None:
    draw = random.Random(7)
    apart, together = [], []
    for place in range(60):
        lazy = draw.random() < 0.5
        for arm in ("treatment", "control"):
            for _ in range(3):
                ok = draw.random() < (0.2 if lazy else 0.9)
                fields = {
                    "ok": ok,
                    "score": 2.0 + 2 * ok + draw.random() / 2,
                    "after": 1.0 if ok else 30.0,
                    "end": "back",
                }
                together.append(made(arm, f"user {place}", **fields))
                apart.append(made(arm, f"user {place} of {arm}", **fields))
    one, two = summary.lift(together), summary.lift(apart)
    assert (one.shared_clusters, two.shared_clusters) == (60, 0)
    assert (one.difference.clusters, two.difference.clusters) == (60, 120)
    assert one.difference.value == two.difference.value
    # what a user is like in one arm says what they are like in the other, and that much is known of the difference
    assert width(one) < 0.8 * width(two)
    assert "60 clusters in both arms" in str(one)


def width(lift: Lift) -> float:
    assert lift.difference.low is not None
    assert lift.difference.high is not None
    return lift.difference.high - lift.difference.low


@pytest.mark.parametrize("summary", [completion, rating, back], ids=lambda summary: summary.name)
def test_users_who_are_the_same_in_both_arms_still_leave_a_width(made: Maker, summary: Any) -> None:
    results = [
        made(arm, str(place), ok=place % 2 == 0, score=1 + place % 5, after=place % 20, end="back")
        for place in range(40)
        for arm in ("treatment", "control")
    ]
    found = summary.lift(results)
    assert found.difference.value == 0
    assert found.difference.low < 0 < found.difference.high


def test_two_users_who_are_the_same_in_both_arms_still_leave_a_width_of_a_share_at_a_time(made: Maker) -> None:
    results = [
        made(arm, user, ok=True, score=1, after=after, end=end)
        for user, after, end in (("ada", 0, "back"), ("bo", 9_999, None))
        for arm in ("treatment", "control")
    ]
    assert width(back.lift(results)) > 0.5


# ---------------------------------------------------------------------------------------------------------------------
# Arms
# ---------------------------------------------------------------------------------------------------------------------


def test_results_without_an_arm_are_shown_and_in_neither(made: Maker) -> None:
    results = counted(made, 6, 10, "treatment") + counted(made, 5, 10, "control") + [made(None, ok=True)] * 1
    lift = completion.lift(results)
    assert lift.untagged is not None
    assert lift.untagged.n == 1
    assert lift.difference.n == 20
    assert "1 result without an arm, in neither" in str(lift)


def test_a_holdout_is_the_control_under_its_own_name(made: Maker) -> None:
    lift = completion.lift(counted(made, 6, 10, "treatment") + counted(made, 5, 10, "holdout"))
    assert (lift.control_arm, lift.control.n) == ("holdout", 10)
    assert "holdout 50.0%" in str(lift)


def test_an_empty_arm_gives_no_estimate_rather_than_0(made: Maker) -> None:
    lift = completion.lift(counted(made, 9, 10, "treatment"))
    assert (lift.difference.value, lift.difference.status) == (None, "undefined")
    assert lift.difference.reason is not None
    assert lift.difference.reason.startswith("no estimate: control")
    assert (lift.p, lift.relative.value, lift.detectable(), lift.power(0.1), lift.always_valid.value) == (None,) * 5


def test_no_results_give_no_estimate() -> None:
    for summary in EVERY_KIND:
        lift = summary.lift([])
        assert lift.difference.value is None
        assert "—" in str(lift)


def test_an_arm_that_was_mistyped_is_an_error_that_names_those_there_are(made: Maker) -> None:
    with pytest.raises(InputError, match=r"no result is in the treatment arm 'treatmnt'.*did you mean 'treatment'"):
        completion.lift(counted(made, 1, 2, "treatment") + counted(made, 1, 2, "control"), treatment="treatmnt")


def test_any_key_says_the_arm(made: Maker) -> None:
    def month(about: About) -> str | None:
        return about.at.strftime("%B") if about.at else None

    days = [made("x", at=AT + timedelta(days=day), ok=day > 20) for day in range(34)]
    lift = completion.lift(days, by=month, treatment="October", control="September")
    assert (lift.treatment.n, lift.control.n) == (31, 3)
    assert lift.arms.by == "arm"


def test_one_arm_is_not_compared_with_itself(made: Maker) -> None:
    with pytest.raises(InputError, match="name two arms"):
        completion.lift([made("a")], treatment="a", control="a")


def test_results_in_several_groups_cannot_be_compared(made: Maker) -> None:
    about = About("session", id="1", attributes={"tags": ["a", "b"]})
    with pytest.raises(InputError, match="several groups"):
        completion.lift([Verdict(Answer(), "judge", about=about)], by="tags", treatment="a", control="b")


def test_other_arms_are_there_beside_the_two_and_a_million_of_them_are_not(made: Maker) -> None:
    results = [made(f"arm {place}", ok=bool(place % 2)) for place in range(50)]
    results += counted(made, 3, 5, "treatment") + counted(made, 3, 5, "control")
    lift = completion.lift(results)
    assert (len(lift.arms), lift.other_arms) == (22, 30)
    assert "30 further arms, not shown" in str(lift)


# ---------------------------------------------------------------------------------------------------------------------
# Whether to believe it
# ---------------------------------------------------------------------------------------------------------------------


def test_without_being_told_of_an_assignment_at_random_a_difference_is_observational(made: Maker) -> None:
    results = counted(made, 60, 100, "treatment") + counted(made, 50, 100, "control")
    assert completion.lift(results).flags == ("observational",)
    assert "observational: arms are not known" in str(completion.lift(results))
    assert completion.lift(results, randomised=True).flags == ()


def test_few_users_in_an_arm_are_said(made: Maker) -> None:
    results = counted(made, 80, 90, "treatment") + counted(made, 9, 10, "control")
    assert "low_confidence" in completion.lift(results, randomised=True).flags


def test_arms_judged_by_different_versions_are_refused(made: Maker) -> None:
    results = [
        Verdict(Answer(), "judge", version, About("session", id=f"{arm}{place}", arm=arm))
        for arm, version in (("treatment", "2"), ("control", "1"))
        for place in range(5)
    ]
    with pytest.raises(MixedVersionsError):
        completion.lift(results)
    assert "mixed_versions" in completion.lift(results, mix_versions=True).flags


def test_what_is_missing_widens_where_the_difference_could_lie(made: Maker) -> None:
    results = counted(made, 8, 10, "treatment") + counted(made, 5, 10, "control")
    assert completion.lift(results).difference.bounds == pytest.approx((0.3, 0.3))
    results += [made.failed("treatment") for _ in range(10)]
    lift = completion.lift(results)
    assert lift.difference.bounds == pytest.approx((0.4 - 0.5, 0.9 - 0.5))
    assert lift.difference.left_out == {"failed": 10}
    assert "left out of the two arms: 10 failed (-10.0pp to +40.0pp with them)" in str(lift)


def test_assignments_are_checked_against_the_split(made: Maker) -> None:
    assigned = [Assignment(user=f"t{place}", arm="treatment") for place in range(880)]
    assigned += [Assignment(user=f"c{place}", arm="control") for place in range(120)]
    results = [made(each.arm, each.user, ok=True) for each in assigned if each.user and not each.user.endswith("7")]
    lift = completion.lift(results, randomised=True, assignments=assigned, weights={"treatment": 0.9, "control": 0.1})
    found = lift.allocation
    assert found is not None
    assert found.sample_ratio is not None
    assert found.sample_ratio.p == pytest.approx(0.035, abs=0.0005)
    assert not found.sample_ratio.alarm
    assert found.assigned == {"treatment": 880, "control": 120}
    assert found.evaluated == {"treatment": 792, "control": 108}
    assert found.coverage is not None
    assert not found.coverage.alarm
    assert lift.flags == ()
    half = completion.lift(results, randomised=True, assignments=assigned, weights={"treatment": 1, "control": 1})
    assert half.flags == ("sample_ratio_mismatch",)
    assert "sample ratio mismatch" in str(half)


def test_an_arm_that_lost_more_of_its_users_is_said(made: Maker) -> None:
    assigned = [Assignment(user=f"{arm}{place}", arm=arm) for arm in ("treatment", "control") for place in range(200)]
    results = [made(each.arm, each.user) for each in assigned if each.arm == "control" or str(each.user)[-1] in "12345"]
    # who has a failure alone was not evaluated
    results += [made.failed(each.arm, each.user) for each in assigned if each.arm == "treatment"]
    lift = completion.lift(results, assignments=assigned, duplicates="first")
    assert lift.allocation is not None
    assert lift.allocation.evaluated == {"treatment": 100, "control": 200}
    assert "uneven_coverage" in lift.flags
    assert lift.allocation.sample_ratio is None
    assert "the arms lost unequal shares" in str(lift)


def test_users_who_are_not_where_they_were_assigned_are_counted(made: Maker) -> None:
    assigned = [
        Assignment(user="a", arm="treatment"),
        Assignment(user="b", arm="control"),
        Assignment(user="c", arm="treatment"),
        Assignment(user="c", arm="control"),
        Assignment(user="d"),
        Assignment(user="b", arm="control", at=AT),
    ]
    results = [made("treatment", "a"), made("treatment", "b"), made("control", "x"), made("control", "d")]
    found = completion.lift(results, assignments=assigned).allocation
    assert found is not None
    assert (found.assigned, found.in_several, found.without_arm) == ({"treatment": 1, "control": 1}, 1, 1)
    assert (found.crossed, found.unassigned) == (1, 2)


def test_sessions_may_be_what_was_assigned(made: Maker) -> None:
    assigned = [
        Assignment(user="a", session=str(place), arm="treatment" if place % 2 else "control") for place in range(1, 9)
    ]
    results = [made(each.arm, "a") for each in assigned[:6]]
    found = completion.lift(results, assignments=assigned).allocation
    assert found is not None
    assert found.evaluated == {"treatment": 3, "control": 3}
    assert (found.crossed, found.unassigned) == (0, 0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"weights": {"treatment": 1}}, "pass the assignments"),
        ({"assignments": [Assignment()]}, "neither a user nor a session"),
        ({"assignments": [Assignment(user="a"), Assignment(user="a", session="1")]}, "pass one kind"),
        ({"assignments": [Assignment(user="a", arm="third")], "weights": {"treatment": 1}}, "no arm 'third'"),
        ({"planned": 0}, "planned=0"),
        ({"planned": True}, "planned=True"),
        ({"planned": 10**400}, "planned=1000"),
        ({"treatment": None}, "treatment=None"),
        ({"control": ["control"]}, r"control=\['control'\]"),
        ({"interval": None}, "interval=None"),
        ({"randomised": "no"}, "randomised='no'"),
        ({"assignments": [("a", "treatment")]}, r"assignments are Assignment\(user="),
        ({"assignments": [], "weights": [1, 1]}, "a mapping from arm to weight"),
        ({"assignments": [], "weights": {"treatment": "1", "control": 1}}, "are numbers"),
        ({"interval": "wald"}, "interval='wald'"),
        ({"level": 0.9, "interval": "reflexio_users"}, "at the level 0.95"),
        ({"windw": 3}, "no setting 'windw'"),
    ],
)
def test_an_argument_that_cannot_be_used_is_an_error_that_says_why(
    made: Maker, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        completion.lift(counted(made, 1, 2, "treatment") + counted(made, 1, 2, "control"), **options)


@pytest.mark.parametrize("summary", [quality, back], ids=lambda summary: summary.name)
def test_intervals_for_rates_are_refused_for_what_is_none(made: Maker, summary: Any) -> None:
    with pytest.raises(InputError, match="is for rates"):
        summary.lift([made("treatment"), made("control")], interval="agresti_caffo")


# ---------------------------------------------------------------------------------------------------------------------
# The past, power, and looking every day
# ---------------------------------------------------------------------------------------------------------------------


def test_users_who_have_always_been_so_are_not_the_treatments_doing(made: Maker) -> None:
    draw = random.Random(3)
    now, past = [], []
    for place in range(400):
        skill, arm = draw.random(), "treatment" if place % 2 else "control"
        chance = 0.8 * skill + 0.1 * (arm == "treatment")
        now += [made(arm, str(place), AT, ok=draw.random() < chance) for _ in range(draw.randint(1, 5))]
        if place % 10:  # some are new
            past += [made(None, str(place), AT - timedelta(days=9), ok=draw.random() < skill) for _ in range(8)]
    lift = completion.lift(now, before=past, randomised=True)
    assert lift.adjusted is not None
    assert lift.adjusted.counts["with_past"] == 360
    assert lift.adjusted.counts["variance_reduction"] > 0.2
    assert lift.adjusted.low is not None
    assert lift.adjusted.high is not None
    assert lift.adjusted.high - lift.adjusted.low < width(lift)
    assert "adjusted by the past" in str(lift)
    tally = quality.tally(past)
    other = completion.lift(now, before=tally).adjusted  # another mean's past, in which all are alike
    assert other is not None
    assert other.reason == "all users were alike before, so there was nothing to take off"
    assert other.low is not None


def test_a_past_that_is_not_past_is_refused(made: Maker) -> None:
    now = [made(arm, arm, AT) for arm in ("treatment", "control")]
    with pytest.raises(InputError, match="pass results from before the assignment alone"):
        completion.lift(now, before=[made(None, "control", AT + timedelta(days=1))])


@pytest.mark.parametrize(
    ("arms", "past", "summary", "reason"),
    [
        ([("treatment", "a"), ("control", "a")], ["a"], completion, "in both arms"),
        ([("treatment", "a"), ("control", None)], ["a"], completion, "have no user"),
        ([("treatment", "a"), ("control", "b")], ["c"], completion, "no user here has a past"),
        ([("treatment", "a"), ("control", "b")], [], completion, "no user here has a past"),
        ([("treatment", "a"), ("control", "b")], ["a"], back, "no sum for each user"),
        ([("treatment", "a"), ("control", "b")], ["a", "b"], completion, "too few users"),
    ],
)
def test_a_past_that_cannot_be_taken_off_is_said(
    made: Maker, arms: list[tuple[str, str | None]], past: list[str], summary: Any, reason: str
) -> None:
    before = completion.tally([made(None, user) for user in past])
    lift = summary.lift([made(arm, user, end="back") for arm, user in arms], before=before)
    assert lift.adjusted is not None
    assert lift.adjusted.low is None
    assert reason in str(lift.adjusted.reason)


def test_looking_every_day_takes_a_wider_interval(made: Maker) -> None:
    results = counted(made, 600, 1000, "treatment") + counted(made, 540, 1000, "control")
    lift = completion.lift(results, planned=2000)
    assert lift.p is not None
    assert lift.always_valid_p is not None
    assert lift.p < 0.01 < lift.always_valid_p
    assert lift.always_valid.low is not None
    assert lift.difference.low is not None
    assert lift.always_valid.low < 0 < lift.difference.low
    early = completion.lift(results[590:610] + results[1530:1550])
    assert early.always_valid.low is None
    assert "too few clusters" in str(early.always_valid.reason)


@pytest.mark.parametrize("control", [15, 24, 27, 30])
@pytest.mark.parametrize("treatment", [135, 240, 262, 270])
def test_an_interval_for_all_looks_is_no_narrower_than_one_for_this_look(
    made: Maker, treatment: int, control: int
) -> None:
    lift = completion.lift(counted(made, treatment, 270, "treatment") + counted(made, control, 30, "control"))
    assert lift.difference.low is not None
    assert lift.difference.high is not None
    assert lift.always_valid.low is not None
    assert lift.always_valid.high is not None
    assert lift.always_valid.low < lift.difference.low
    assert lift.difference.high < lift.always_valid.high
    # also of an arm in which all succeed, whose variance as measured is 0
    assert (lift.detectable() or 0) > (lift.difference.high - lift.difference.low) / 2


def test_always_valid_intervals_hold_over_fourteen_looks(made: Maker) -> None:
    draw, fixed, valid = random.Random(11), 0, 0
    for _ in range(60):
        tally, seen = completion.tally([], by="arm"), [False, False]
        for _ in range(14):
            today = [made(arm, ok=draw.random() < 0.7) for arm in ("treatment", "control") for _ in range(50)]
            tally += completion.tally(today, by="arm")
            lift = completion.lift(tally, planned=1400)
            for place, found in enumerate((lift.difference, lift.always_valid)):
                seen[place] |= found.low is not None and found.high is not None and not found.low <= 0 <= found.high
        fixed, valid = fixed + seen[0], valid + seen[1]
    assert fixed >= 6  # a quarter or so
    assert valid <= 3


def test_no_power_is_promised_for_a_difference_that_cannot_be(made: Maker) -> None:
    lift = completion.lift(counted(made, 1, 1, "treatment") + counted(made, 0, 1, "control"))
    smallest = lift.detectable()
    assert smallest is not None
    assert smallest > 1
    assert "not even a true difference of 100.0pp is seen with 80% power" in str(lift)


def test_what_can_be_seen_is_said(made: Maker) -> None:
    lift = completion.lift(counted(made, 630, 900, "treatment") + counted(made, 70, 100, "control"))
    smallest = lift.detectable()
    assert smallest is not None
    assert smallest == pytest.approx((1.959964 + 0.841621) * math.sqrt(0.21 / 900 + 0.21 / 100), rel=0.06)
    assert lift.power(smallest) == pytest.approx(0.8, abs=0.001)
    assert lift.power(0.0) == pytest.approx(0.05)
    assert "a true difference of 14.3pp is seen with 80% power" in str(lift)
    with pytest.raises(InputError, match="power"):
        lift.detectable(power=0.02)


def test_folded_rates_and_means_are_compared_too(made: Maker) -> None:
    def trials(arm: str, task: str, hits: int) -> list[Result[Answer]]:
        return [
            Verdict(
                Answer(ok=place < hits, score=place),
                "judge",
                about=About("trial", id=f"{arm}{task}{place}", arm=arm, attributes={"task": f"{arm}{task}"}),
            )
            for place in range(4)
        ]

    results = [
        r
        for arm, hits in (("treatment", 3), ("control", 2))
        for task in range(40)
        for r in trials(arm, str(task), (hits + task) % 5)
    ]
    for fold in ("any", "all", "flip", "share", pass_k(2)):
        lift = completion.lift(results, per="task", fold=fold)
        assert lift.difference.n == 80
        assert lift.difference.low is not None
    assert quality.lift(results, per="task", fold="mean").difference.n == 80


def test_a_typical_time_is_not_subtracted(made: Maker) -> None:
    results = [made(arm, after=place, end="back") for arm in ("treatment", "control") for place in range(10)]
    lift = back.lift(results, within=None)
    assert lift.difference.value is None
    assert "with within=" in str(lift)
    assert lift.treatment.value is not None


def test_shares_still_open_are_compared_in_their_own_direction(made: Maker) -> None:
    slow = [made("treatment", after=place, end="back") for place in range(20)]
    fast = [made("control", after=place / 4, end="back") for place in range(20)]
    ended, left = (summary.lift(slow + fast) for summary in (back, EVERY_KIND[-1]))
    assert ended.difference.value == pytest.approx(-0.45)
    assert left.difference.value == pytest.approx(0.45)
    assert ended.difference.low == pytest.approx(-(left.difference.high or 0))
    assert left.p == ended.p
    assert left.relative.value is None
    assert ended.relative.value == pytest.approx(-0.45)
    assert ended.relative.low is not None
    assert ended.relative.low < -0.45


# ---------------------------------------------------------------------------------------------------------------------
# What a person sees
# ---------------------------------------------------------------------------------------------------------------------


def test_a_lift_is_one_line_to_paste(made: Maker) -> None:
    results = counted(made, 630, 900, "treatment") + counted(made, 60, 100, "control")
    assert str(completion.lift(results, randomised=True)) == (
        "completion lift +10.0pp [+0.4, +20.2] · treatment 70.0% (900 results) v control 60.0% (100 results) · "
        "p = 0.040 · relative +16.7% [+0.6, +40.0] · a true difference of 14.6pp is seen with 80% power"
    )
    assert " at 90%" in str(completion.lift(results, level=0.9))


def test_a_lift_makes_rows_for_frames(made: Maker) -> None:
    results = counted(made, 63, 90, "difference") + counted(made, 6, 10, "control") + [made(None)]
    lift = completion.lift(results, treatment="difference")
    rows = lift.to_dicts()
    assert [row["group"] for row in rows] == ["difference", "control", None, "(difference)", "relative", "always valid"]
    pytest.importorskip("pandas")
    frame = lift.to_frame()
    assert list(frame["value"])[:2] == [0.7, 0.6]


def test_texts_of_a_log_are_escaped(made: Maker) -> None:
    arm = '<script>alert("x")</script>\x1b[2J'
    lift = completion.lift(counted(made, 3, 5, arm) + counted(made, 2, 5, "control"), treatment=arm)
    html = lift._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "\x1b" not in str(lift)
    assert "\x1b" not in html


def test_a_turnout_experiment_comes_out_as_published(real_logs: Path) -> None:
    folder = real_logs / "ggl_turnout"
    truth = json.loads((folder / "truth.json").read_text())["dev_sample"]
    with (folder / "turnout_dev.csv").open() as file:
        people = list(csv.DictReader(file))

    def votes(column: str) -> list[Result[Answer]]:
        return [
            Verdict(
                Answer(ok=person[column] == "1"),
                "records",
                about=About("session", id=person["session"], user=person["user_id"], arm=person["arm"]),
            )
            for person in people
        ]

    now, before = votes("success"), completion.tally(votes("prior_success"))
    assignments = [Assignment(user=person["user_id"], arm=person["arm"]) for person in people]
    weights = {"control": 5 / 7, "self": 1 / 7, "neighbors": 1 / 7}
    for arm, expected in truth.items():
        lift = completion.lift(
            now, treatment=arm, randomised=True, before=before, assignments=assignments, weights=weights
        )
        assert lift.difference.value is not None
        assert lift.difference.variance is not None
        assert 100 * lift.difference.value == pytest.approx(expected["lift_pp"], abs=5e-5)
        assert 100 * math.sqrt(lift.difference.variance) == pytest.approx(expected["se_clustered_pp_stata"], abs=1e-4)
        limits = [100 * (limit or 0) for limit in (lift.difference.low, lift.difference.high)]
        assert limits == pytest.approx(expected["ci95_clustered_pp"], abs=0.01)
        assert (lift.treatment.n, lift.control.n) == (expected["n_treat"], expected["n_control"])
        assert (lift.treatment.clusters, lift.control.clusters) == (expected["users_treat"], expected["users_control"])
        naive = completion.lift(now, treatment=arm, interval="reflexio_sessions").difference
        assert naive.high is not None
        assert naive.value is not None
        assert 100 * (naive.high - naive.value) / 1.96 == pytest.approx(expected["se_naive_pp"], abs=1e-4)
        assert lift.adjusted is not None
        assert 0.02 < lift.adjusted.counts["variance_reduction"] < 0.05
        assert lift.allocation is not None
        assert lift.allocation.sample_ratio is not None
        assert not lift.allocation.sample_ratio.alarm
        assert lift.flags == ()


def test_means_below_what_floating_point_can_multiply_have_a_lift(made: Maker) -> None:
    smallest = 5e-324
    results = [made(arm, score=smallest * times) for arm in ("treatment", "control") for times in (1, 2, 4)]
    found = quality.lift(results)
    assert found.relative.value == 0
    assert found.difference.value == 0


def test_a_half_tie_rate_lies_within_its_limits_whatever_rounding_does() -> None:
    contest = Contest("shown", of=Answer, outcome=lambda v: v.end, view="half_tie")
    for wins, ties, losses in itertools.product(range(6), repeat=3):
        ended = ["win"] * wins + ["tie"] * ties + ["loss"] * losses
        for level in (0.001, 0.5, 0.95):
            found = contest.estimate([Answer(end=end) for end in ended], level=level)
            if found.value is not None and found.low is not None and found.high is not None:
                assert found.low <= found.value <= found.high
                assert found.low < found.high

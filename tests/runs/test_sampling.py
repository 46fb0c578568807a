"""Samples: the same in every process, nested, and with weights that keep rates those of the whole."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from math import sqrt
from random import Random
from statistics import fmean, stdev

import pytest
from hypothesis import given as forall
from hypothesis import strategies as st

from evalr.errors import DuplicateError, InputError
from evalr.inputs import Session, Transcript
from evalr.measures import TaskCompletion, completion_rate
from evalr.runs import sample, sampled, stratified_sample
from evalr.verdicts import Verdict

START = datetime(2026, 11, 2, tzinfo=UTC)
DAY = timedelta(days=1)

TEXTS = st.text(st.characters(), max_size=12)  # lone surrogates among them


def session(name: str, **fields: object) -> Session:
    return Session(id=name, **fields)  # type: ignore[arg-type]


def completed(given: Session, answer: bool) -> Verdict[TaskCompletion]:
    return Verdict(TaskCompletion(completed=answer, quality=3, reason=""), "completion", about=given.about())


# By key


def test_a_key_is_in_or_out_for_ever() -> None:
    """Written down once: another answer, in whatever version, would give people other samples halfway."""
    assert [key for key in "abcdefghijklmnopqrstuvwxyz" if sampled(key, 0.25)] == list(PINNED)
    assert [key for key in "abcdefghijklmnopqrstuvwxyz" if sampled(key, 0.25, seed="other")] == list(PINNED_OTHER)


PINNED = "acefjv"
PINNED_OTHER = "acejkpvw"


@forall(TEXTS, st.floats(0, 1), st.floats(0, 1), TEXTS)
def test_who_is_in_stays_in_at_every_higher_rate(key: str, one: float, other: float, seed: str) -> None:
    low, high = sorted((one, other))
    assert sampled(key, low, seed=seed) <= sampled(key, high, seed=seed)
    assert sampled(key, 1, seed=seed)
    assert not sampled(key, 0, seed=seed)


def test_the_rate_is_the_share_that_is_in() -> None:
    for rate in (0.01, 0.3, 0.9):
        count = sum(sampled(f"user-{n}", rate) for n in range(20_000))
        assert abs(count / 20_000 - rate) < 4 * sqrt(rate * (1 - rate) / 20_000)


def test_seeds_draw_independent_samples() -> None:
    both = sum(sampled(f"u{n}", 0.2, seed="a") and sampled(f"u{n}", 0.2, seed="b") for n in range(20_000))
    assert abs(both / 20_000 - 0.04) < 4 * sqrt(0.04 * 0.96 / 20_000)
    # A seed cannot run into the key behind it.
    pairs = [(sampled(f"b{n}", 0.5, seed="a"), sampled(f"{n}", 0.5, seed="ab")) for n in range(200)]
    assert 60 < sum(one == other for one, other in pairs) < 140


@pytest.mark.parametrize("rate", [-0.1, 1.1, float("nan"), "0.5", True, None])
def test_a_rate_that_is_none_is_refused(rate: float) -> None:
    with pytest.raises(InputError, match="rate="):
        sampled("a", rate)
    with pytest.raises(InputError, match="rate="):
        sample([], rate)  # at once, and not when it is read


def test_a_key_is_a_text() -> None:
    with pytest.raises(InputError, match="a key to sample by is a text, not 7"):
        sampled(7, 0.5)  # type: ignore[arg-type]


def test_inputs_carry_how_many_they_stand_for() -> None:
    given = [session(f"s{n}", weight=2.0 if n % 2 else None) for n in range(400)]
    found = list(sample(given, 0.25))
    assert {(int(each.id[1:]) % 2, each.weight) for each in found} == {(0, 4.0), (1, 8.0)}
    assert [each.id for each in found] == [each.id for each in given if each.id in {other.id for other in found}]
    assert list(sample(given, 1)) == given
    assert list(sample(given, 0)) == []


def test_people_are_in_with_all_their_sessions_or_with_none() -> None:
    given = [session(f"s{n}", user=f"u{n % 50}") for n in range(500)]
    counts = Counter(each.user for each in sample(given, 0.4, key="user"))
    assert set(counts.values()) == {10}
    assert 5 < len(counts) < 35


def test_a_session_id_that_two_people_share_is_two_keys() -> None:
    given = [session("chat", user=f"u{n}") for n in range(200)]
    assert 0 < len(list(sample(given, 0.5, key="session"))) < 200
    assert 0 < len(list(sample(given, 0.5))) < 200


def test_inputs_without_an_id_are_told_apart_by_content() -> None:
    given = [Transcript(request=f"question {n}") for n in range(200)]
    found = list(sample(given, 0.5))
    assert 60 < len(found) < 140
    assert [each.request for each in found] == [each.request for each in sample(given, 0.5)]


def test_an_input_without_the_key_is_named() -> None:
    with pytest.raises(InputError, match="key='user': session 's1' has none"):
        list(sample([session("s1")], 0.5, key="user"))
    with pytest.raises(InputError, match="the key function: session 's1' has several"):
        list(sample([session("s1")], 0.5, key=lambda about: ["a", "b"]))


# By stratum


def busy_and_quiet_days() -> list[Session]:
    """Ten days of 20, 40, ... 200 sessions; one in four is on the treatment, and the last of each day has no arm."""
    given = []
    for day in range(10):
        count = 20 * (day + 1)
        for n in range(count):
            arm = None if n == count - 1 else ("treatment" if n % 4 == 0 else "control")
            given.append(session(f"d{day}-{n}", user=f"u{n % 7}", at=START + day * DAY, arm=arm))
    return given


def test_at_most_n_of_each_stratum() -> None:
    given = busy_and_quiet_days()
    found = stratified_sample(given, ["day", "arm"], n=8)
    assert len(found.strata) == 30
    for stratum in found.strata:
        assert stratum.taken == min(8, stratum.seen)
    assert found.seen == sum(stratum.seen for stratum in found.strata) == len(given)
    assert len(found) == len(found.inputs) == sum(stratum.taken for stratum in found.strata)
    assert sum(each.weight or 1 for each in found) == pytest.approx(len(given))
    # Without an arm is a stratum like any other: counted, shown and never coerced.
    assert [stratum.name for stratum in found.strata[:3]] == [
        ("2026-11-02", "control"),
        ("2026-11-02", "treatment"),
        ("2026-11-02", None),
    ]
    # In the order given; what was taken whole is untouched.
    positions = [[each.id for each in given].index(each.id) for each in found]
    assert positions == sorted(positions)
    assert [each for each in found if each.arm is None] == [each for each in given if each.arm is None]


@forall(st.randoms(use_true_random=False), st.integers(1, 12))
def test_the_order_of_the_inputs_does_not_matter(random: Random, n: int) -> None:
    given = busy_and_quiet_days()[:300]
    shuffled = random.sample(given, len(given))
    one, other = stratified_sample(given, "day", n=n), stratified_sample(shuffled, "day", n=n)
    assert {each.id: each.weight for each in one} == {each.id: each.weight for each in other}
    assert one.strata == other.strata


def test_a_larger_sample_has_the_smaller_one_in_it() -> None:
    given = busy_and_quiet_days()
    samples = [{each.id for each in stratified_sample(given, "day", n=n)} for n in (1, 3, 10, 50)]
    assert all(small < large for small, large in pairwise(samples))


def test_a_stratum_that_grows_keeps_most_of_its_sample() -> None:
    given = [session(f"s{n}", at=START) for n in range(1100)]
    before, after = (stratified_sample(given[:size], "day", n=100) for size in (1000, 1100))
    kept = {each.id for each in before} & {each.id for each in after}
    assert len(kept) > 80


PROBE = """
import json, sys
from evalr.inputs import Session
from evalr.runs import stratified_sample
given = [Session(id=f"s{n}", user=f"u{n % 5}", arm="ab"[n % 2]) for n in range(200)]
print(json.dumps([each.id for each in stratified_sample(given, "arm", n=5)]))
"""


def test_another_process_draws_the_same_sample() -> None:
    runs = [
        subprocess.run(
            [sys.executable, "-c", PROBE], env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True, text=True, check=True, timeout=60,
        ).stdout
        for seed in ("1", "2")
    ]  # fmt: skip
    assert runs[0] == runs[1]
    assert json.loads(runs[0]) == PINNED_SESSIONS


PINNED_SESSIONS = ["s0", "s42", "s49", "s88", "s104", "s110", "s131", "s167", "s189", "s197"]


def test_a_function_names_the_stratum_and_none_leaves_out() -> None:
    given = busy_and_quiet_days()
    found = stratified_sample(given, lambda each: each.arm, n=4)
    assert [(stratum.name, stratum.taken) for stratum in found.strata] == [(("control",), 4), (("treatment",), 4)]
    assert found.left_out == {"no stratum": 10}
    assert found.seen + sum(found.left_out.values()) == len(given)
    named = stratified_sample(given, lambda each: (each.arm, each.user), n=1)
    assert len(named.strata) == 7 * 2 + len({each.user for each in given if each.arm is None})


def test_strata_of_a_time_zone_and_of_an_attribute() -> None:
    given = [
        session("a", at=datetime(2026, 11, 2, 15, 59, tzinfo=UTC), attributes={"agent": "atlas"}),
        session("b", at=datetime(2026, 11, 2, 16, 0, tzinfo=UTC)),
    ]
    days = stratified_sample(given, "day", n=1, tz="Asia/Shanghai")
    assert [stratum.name for stratum in days.strata] == [("2026-11-02",), ("2026-11-03",)]
    agents = stratified_sample(given, "agent", n=1)
    assert [stratum.name for stratum in agents.strata] == [("atlas",), (None,)]


def test_what_cannot_be_a_stratum_is_refused() -> None:
    several = session("s", attributes={"tool": ["a", "b"]})
    with pytest.raises(InputError, match=r"stratum 'tool': session 's' has several"):
        stratified_sample([several], "tool", n=1)
    with pytest.raises(InputError, match="the stratum function gave 3"):
        stratified_sample([several], lambda each: 3, n=1)  # type: ignore[arg-type, return-value]
    with pytest.raises(InputError, match="at least one key"):
        stratified_sample([several], [], n=1)
    with pytest.raises(InputError, match="names of keys, or is one function"):
        stratified_sample([several], ["day", lambda each: "a"], n=1)  # type: ignore[list-item]
    for n in (0, -1, True, 2.0):
        with pytest.raises(InputError, match="n="):
            stratified_sample([several], "day", n=n)  # type: ignore[arg-type]


def test_a_subject_that_would_be_taken_twice_is_refused_and_both_places_named() -> None:
    given = [session(name, user="u") for name in ("a", "b", "a")]
    with pytest.raises(DuplicateError, match="inputs 0 and 2 are both session 'a' of user 'u'"):
        stratified_sample(given, "user", n=3)
    # Two people's sessions of one id are two subjects, and equal inputs without an id are two inputs.
    assert len(stratified_sample([session("a", user="u"), session("a", user="v")], "kind", n=3)) == 2
    assert len(stratified_sample([Transcript(request="hi")] * 5, "kind", n=3)) == 3


def test_it_holds_n_of_each_stratum_in_one_pass() -> None:
    alive = Counter[str]()
    most = 0

    class Held(Session):
        def __del__(self) -> None:
            alive[self.id[0]] -= 1

    def stream():  # type: ignore[no-untyped-def]
        nonlocal most
        for n in range(5_000):
            alive["ab"[n % 2]] += 1
            most = max(most, sum(alive.values()))
            yield Held(id=f"{'ab'[n % 2]}{n}")

    found = stratified_sample(stream(), lambda each: each.id[0], n=10)
    assert [stratum.seen for stratum in found.strata] == [2500, 2500]
    assert most < 30


def test_the_account_says_what_was_done_and_is_json() -> None:
    given = [session(f"s{n}", arm="treatment" if n < 3 else "control") for n in range(1503)]
    found = stratified_sample(given, "arm", n=5, seed="x")
    assert str(found) == (
        "8 of 1,503 inputs, at most 5 of each of 2 strata\n"
        "  control: 5 of 1,500, each for 300\n"
        "  treatment: 3 of 3, each for 1"
    )
    assert json.loads(json.dumps(found.to_dict())) == {
        "n": 5,
        "seed": "x",
        "seen": 1503,
        "taken": 8,
        "left_out": {},
        "strata": [
            {"name": ["control"], "seen": 1500, "taken": 5, "weight": 300.0},
            {"name": ["treatment"], "seen": 3, "taken": 3, "weight": 1.0},
        ],
    }
    hostile = stratified_sample([session("s", arm="\x1b[2J{x}")], "arm", n=1)
    assert "\x1b" not in str(hostile)


# Rates of a sample are those of the whole


def population() -> list[tuple[Session, bool]]:
    """Busy days succeed less than quiet ones, and one arm more than the other: a plain mean of a sample is off."""
    random = Random(7)
    found = []
    for given in busy_and_quiet_days():
        day = (given.at - START).days if given.at is not None else 0
        rate = 0.9 - 0.07 * day + (0.1 if given.arm == "treatment" else 0.0)
        found.append((given, random.random() < rate))
    return found


def rates_of_samples(draw: object) -> list[float]:
    answers = population()
    truth = {given.id: answer for given, answer in answers}
    rates = []
    for seed in range(100):
        chosen = draw([given for given, _ in answers], str(seed))  # type: ignore[operator]
        rate = completion_rate([completed(each, truth[each.id]) for each in chosen])
        assert rate is not None
        rates.append(rate)
    return rates


def test_weighted_rates_of_stratified_samples_are_unbiased() -> None:
    true_rate = fmean(answer for _, answer in population())
    rates = rates_of_samples(lambda given, seed: stratified_sample(given, ["day", "arm"], n=6, seed=seed))
    error = stdev(rates) / sqrt(len(rates))
    assert abs(fmean(rates) - true_rate) < 4 * error
    # And the weights are what does it.
    plain = rates_of_samples(
        lambda given, seed: [
            each.model_copy(update={"weight": None})
            for each in stratified_sample(given, ["day", "arm"], n=6, seed=seed)
        ]
    )
    assert abs(fmean(plain) - true_rate) > 10 * error


def test_weighted_rates_of_samples_by_key_are_unbiased() -> None:
    """Half of those in the treatment and a tenth of the others, sampled apart and put together."""
    true_rate = fmean(answer for _, answer in population())

    def draw(given: list[Session], seed: str) -> list[Session]:
        treated = sample([each for each in given if each.arm == "treatment"], 0.5, seed=seed)
        return [*treated, *sample([each for each in given if each.arm != "treatment"], 0.1, seed=seed)]

    rates = rates_of_samples(draw)
    assert abs(fmean(rates) - true_rate) < 4 * stdev(rates) / sqrt(len(rates))


def test_a_sample_of_a_sample_stands_for_the_whole() -> None:
    given = [each for each, _ in population()]
    totals = [
        sum(each.weight or 0 for each in stratified_sample(sample(given, 0.5, seed=str(seed)), "day", n=10))
        for seed in range(100)
    ]
    assert abs(fmean(totals) - len(given)) < 4 * stdev(totals) / sqrt(len(totals))


def test_estimates_say_that_they_are_of_a_sample() -> None:
    given = [each for each, _ in population()]
    results = [completed(each, True) for each in stratified_sample(given, "day", n=5)]
    estimate = completion_rate.estimate(results)
    assert "sampled" in estimate.flags
    assert estimate.counts["total"] == pytest.approx(len(given))


def test_an_input_never_stands_for_infinitely_many() -> None:
    heavy = [session(f"s{n}", weight=1e308) for n in range(3)]
    with pytest.raises(InputError, match="would stand for more inputs than a number can count"):
        stratified_sample(heavy, "user", n=1)

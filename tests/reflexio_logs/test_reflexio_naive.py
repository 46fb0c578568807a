"""The answers beside a computation that shares nothing with them: a few plain lines each, over made-up logs."""

from __future__ import annotations

import json
import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from statistics import NormalDist, variance
from typing import Any

import pytest
from reflexio_writing import BEGIN, Writer
from scipy.stats import t as student

from evalr.estimates.estimate import Estimate
from evalr.reflexio import Impact, impact

NOW = datetime(2026, 12, 1, tzinfo=UTC)
SPLIT = "request-source:treatment=with;control=without"
SEEDS = range(6)
Rows = list[tuple[str, float]]
"""(user, 0 or 1, or any number) of each row that counts."""


@dataclass
class Made:
    """One session as it was made up."""

    user: str
    arm: str
    at: datetime
    success: bool
    corrections: int
    turns: int | None
    escalated: bool
    reported: str | None
    verdicts: list[list[tuple[str, bool | None, str | None]]] = field(default_factory=list)
    """Of each answer: (learning, relevant, impact)."""


def made_up(seed: int) -> list[Made]:
    chance = random.Random(seed)
    users = [f"u{number}" for number in range(chance.choice((9, 14, 40)))]
    arms = {user: "treatment" if chance.random() < 0.6 else "control" for user in users}
    good = {user: chance.betavariate(3, 1.5) for user in users}
    found = []
    for _ in range(chance.choice((60, 120))):
        user = chance.choice(users)
        success = chance.random() < good[user]
        session = Made(
            user,
            arms[user],
            BEGIN + timedelta(minutes=chance.randrange(30 * 24 * 60)),
            success,
            chance.choice((0, 0, 1, 3)),
            chance.choice((1, 1, 2, 3, 5)) if success else None,
            chance.random() < 0.2,
            chance.choice((None, "success" if chance.random() < (0.9 if success else 0.3) else "failure")),
        )
        for _ in range(chance.randrange(3)):
            learnings = chance.sample(["1", "2", "3", "4"], chance.randrange(4))
            session.verdicts.append(
                [
                    (
                        name,
                        chance.choice((True, True, False, None)),
                        chance.choice(("positive", "neutral", "negative", None)),
                    )
                    for name in learnings
                ]
            )
        found.append(session)
    return found


def answered(folder: Path, sessions: list[Made], **options: Any) -> Impact:
    writer = Writer(folder / "reflexio_made.db")
    for number, made in enumerate(sessions):
        name, user, at = f"s{number}", made.user, made.at
        request = writer.request(
            f"r{number}", user, name, at, source=made.arm.replace("treatment", "with").replace("control", "without")
        )
        writer.turn(request, at, "User")
        for place, verdicts in enumerate(made.verdicts):
            later = at + timedelta(minutes=1 + place)
            given = [{"kind": "user_playbook", "learning_id": learning} for learning, _, _ in verdicts]
            answer = writer.turn(request, later, "Agent", retrieved_learnings=json.dumps(given), citations="[]")
            for learning, relevant, what in verdicts:
                writer.add(
                    "retrieved_learning_evaluation", user_id=user, session_id=name, interaction_id=answer,
                    interaction_created_at=int(later.timestamp()), kind="user_playbook", learning_id=learning,
                    is_relevant=relevant, impact=what, created_at=int(at.timestamp()),
                )  # fmt: skip
        writer.outcome(
            name, user, at, success=int(made.success), number_of_correction_per_session=made.corrections,
            user_turns_to_resolution=made.turns, is_escalated=int(made.escalated),
        )  # fmt: skip
        if made.reported is not None:
            writer.add(
                "session_outcomes", outcome_id=name, user_id=user, session_id=name, outcome=made.reported,
                occurred_at=int(at.timestamp()),
            )  # fmt: skip
    return impact(writer.done(), now=NOW, **options)


# ---------------------------------------------------------------------------------------------------------------------
# The same, naively
# ---------------------------------------------------------------------------------------------------------------------


def share(rows: Iterable[tuple[str, float]]) -> float:
    values = [value for _, value in rows]
    return sum(values) / len(values)


def by_user(rows: Rows) -> list[list[float]]:
    users: dict[str, list[float]] = defaultdict(list)
    for user, value in rows:
        users[user].append(value)
    return list(users.values())


def cr1(rows: Rows) -> float:
    """The cluster-robust variance of a mean: users are drawn, and what a user does is drawn with it."""
    mean, users = share(rows), by_user(rows)
    off = [sum(value - mean for value in user) for user in users]
    return len(users) / (len(users) - 1) * sum(each * each for each in off) / len(rows) ** 2


def wilson(p: float, n: float, q: float) -> tuple[float, float]:
    """The roots of (p - x)² = q² x (1 - x) / n."""
    a, b, c = 1 + q * q / n, -(2 * p + q * q / n), p * p
    root = math.sqrt(max(0.0, b * b - 4 * a * c))
    return max(0.0, (-b - root) / (2 * a)), min(1.0, (-b + root) / (2 * a))


def limits(rows: Rows) -> tuple[float, float]:
    """Of a share: Wilson's, at as many trials as have the variance that users show once two made-up ones are added.

    One of them all hits and one all misses, both as large as the average user.
    """
    users, p = by_user(rows), share(rows)
    if len(users) == len(rows):
        return wilson(p, len(rows), NormalDist().inv_cdf(0.975))
    q = float(student.ppf(0.975, len(users) - 1))
    if cr1(rows) < 1e-18:
        kish = len(rows) ** 2 / sum(len(user) ** 2 for user in users)
        return wilson(p, kish, NormalDist().inv_cdf(0.975))
    size = len(rows) / len(users)
    all_of = [(sum(user), float(len(user))) for user in users] + [(size, size), (0.0, size)]
    padded = sum(hits for hits, _ in all_of) / sum(of for _, of in all_of)
    clusters, total = len(all_of), sum(of for _, of in all_of)
    squares = sum((hits - padded * of) ** 2 for hits, of in all_of)
    spread = clusters / (clusters - 1) * squares / total**2
    # The two were only there for the variance: of the trials that it stands for, theirs are taken away again.
    worth = padded * (1 - padded) / spread * len(users) / clusters
    return wilson(p, min(len(rows), worth), q)


def same(found: Estimate, rows: Rows) -> None:
    assert found.n == len(rows)
    if not rows:
        assert found.value is None
        return
    assert found.value == pytest.approx(share(rows), abs=1e-12)
    if len(by_user(rows)) == 1 < len(rows):  # how users vary, one user cannot tell
        assert found.low is None
        return
    low, high = limits(rows)
    assert (found.low, found.high) == (pytest.approx(low, abs=1e-9), pytest.approx(high, abs=1e-9))


# ---------------------------------------------------------------------------------------------------------------------
# Compared
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_shares_of_learnings_and_of_responses(tmp_path: Path, seed: int) -> None:
    sessions = made_up(seed)
    found = answered(tmp_path, sessions, listed=100).learnings
    assert found is not None
    each = [(made.user, *verdict) for made in sessions for answer in made.verdicts for verdict in answer]
    same(found.verdicts.relevant, [(user, relevant) for user, _, relevant, _ in each if relevant is not None])
    same(found.verdicts.helped, [(user, what == "positive") for user, _, _, what in each if what])
    same(found.verdicts.hurt, [(user, what == "negative") for user, _, _, what in each if what])

    relevant, helped, hurt, mixed, net = [], [], [], [], []
    for made in sessions:
        for answer in made.verdicts:
            known = {what for _, _, what in answer if what}
            if known:
                good, bad = "positive" in known, "negative" in known
                helped.append((made.user, good and not bad))
                hurt.append((made.user, bad and not good))
                mixed.append((made.user, good and bad))
                net.append((made.user, (good and not bad) - (bad and not good)))
            applies = [each for _, each, _ in answer if each is not None]
            if applies:
                relevant.append((made.user, any(applies)))
    same(found.responses.relevant, relevant)
    same(found.responses.helped, helped)
    same(found.responses.hurt, hurt)
    assert found.responses.mixed is not None
    same(found.responses.mixed, mixed)
    assert found.responses.net.value == pytest.approx(share(net), abs=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_said_of_each_learning(tmp_path: Path, seed: int) -> None:
    sessions = made_up(seed)
    found = answered(tmp_path, sessions, listed=100).learnings
    assert found is not None
    assert {record.id for record in found.given} == {"1", "2", "3", "4"}
    for record in found.given:
        of_it = [
            (place, verdict)
            for place, made in enumerate(sessions)
            for answer in made.verdicts
            for verdict in answer
            if verdict[0] == record.id
        ]
        impacts = Counter(what for _, (_, _, what) in of_it)
        assert (record.positive, record.neutral, record.negative) == (
            impacts["positive"],
            impacts["neutral"],
            impacts["negative"],
        )
        relevances = Counter(relevant for _, (_, relevant, _) in of_it)
        assert (record.relevant, record.irrelevant) == (relevances[True], relevances[False])
        assert record.positive_sessions == len({place for place, verdict in of_it if verdict[2] == "positive"})
        bad = {place for place, verdict in of_it if verdict[2] == "negative"}
        assert record.negative_sessions == record.qualifying_sessions == len(bad)  # none has a diagnosis
        given = {place for place, _ in of_it}
        assert (record.sessions, record.uses, record.judged) == (len(given), len(of_it), len(of_it))
        assert record.association is not None
        same(
            record.association.with_it,
            [(made.user, made.success) for place, made in enumerate(sessions) if place in given],
        )
        without = [(made.user, made.success) for place, made in enumerate(sessions) if place not in given]
        assert record.association.without_it.value == pytest.approx(share(without), abs=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_arms_and_how_sure_their_difference_is(tmp_path: Path, seed: int) -> None:
    """By Newcombe's square-and-add of the arms' own limits, as no user is in both."""
    sessions = made_up(seed)
    found = answered(tmp_path, sessions, arms=SPLIT).arms
    assert found is not None
    (pair,) = found.pairs
    reads = {
        "success": lambda made: float(made.success),
        "escalation": lambda made: float(made.escalated),
        "turns": lambda made: float(made.success and made.turns <= 3),
    }
    for name, value in reads.items():
        rows: dict[str, Rows] = {
            arm: [(made.user, value(made)) for made in sessions if made.arm == arm] for arm in ("treatment", "control")
        }
        difference = pair.lifts[name].difference
        p, q = share(rows["treatment"]), share(rows["control"])
        assert difference.value == pytest.approx(p - q, abs=1e-12)
        if name == "turns":
            continue  # its limits are those of a time
        for arm, of_arm in rows.items():
            same(found.by_arm[arm].measures[name], of_arm)
        (low, high), (lower, upper) = limits(rows["treatment"]), limits(rows["control"])
        assert difference.low == pytest.approx(p - q - math.hypot(p - low, upper - q), abs=1e-9)
        assert difference.high == pytest.approx(p - q + math.hypot(high - p, q - lower), abs=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_corrections_and_median_turns(tmp_path: Path, seed: int) -> None:
    sessions = made_up(seed)
    found = answered(tmp_path, sessions).everyone
    rows: Rows = [(made.user, float(made.corrections)) for made in sessions]
    mean = found.measures["corrections"]
    width = float(student.ppf(0.975, len(by_user(rows)) - 1)) * math.sqrt(cr1(rows))
    assert mean.value == pytest.approx(share(rows), abs=1e-12)
    assert mean.high == pytest.approx(share(rows) + width, abs=1e-9)
    assert mean.low == pytest.approx(max(0.0, share(rows) - width), abs=1e-9)
    # A failed session is never resolved: it is above all others, and not away.
    turns = sorted(math.inf if made.turns is None else made.turns for made in sessions)
    middle = turns[math.ceil(len(turns) / 2) - 1]
    assert found.turns_median.value == (None if math.isinf(middle) else middle)


@pytest.mark.parametrize("bucket", ["day", "week", "month"])
@pytest.mark.parametrize("seed", SEEDS)
def test_points_of_trends(tmp_path: Path, seed: int, bucket: Any) -> None:
    sessions = made_up(seed)
    found = answered(tmp_path, sessions, arms=SPLIT, bucket=bucket)
    assert found.arms is not None

    def name(at: datetime) -> str:
        day = at.date()
        if bucket == "week":
            day -= timedelta(days=day.isoweekday() - 1)
        return f"{day:%Y-%m}" if bucket == "month" else day.isoformat()

    curves = {None: found.trend, **{arm: found.arms.by_arm[arm].trend for arm in ("treatment", "control")}}
    for arm, curve in curves.items():
        expected: dict[str, Rows] = defaultdict(list)
        for made in sessions:
            if arm in (None, made.arm):
                expected[name(made.at)].append((made.user, float(made.success)))
        assert {point: estimate.n for point, estimate in curve.items() if estimate.n} == {
            point: len(rows) for point, rows in expected.items()
        }
        for point, rows in expected.items():
            same(curve[point], rows)
    assert list(found.trend) == sorted(found.trend)
    if bucket == "day":
        first, last = (date.fromisoformat(each) for each in (min(found.trend), max(found.trend)))
        assert len(found.trend) == (last - first).days + 1  # a day without a session is a point without a number


@pytest.mark.parametrize("seed", SEEDS)
def test_how_far_the_judge_agrees_with_customers(tmp_path: Path, seed: int) -> None:
    sessions = made_up(seed)
    found = answered(tmp_path, sessions).customers
    assert found is not None
    pairs = [(made.user, made.success, made.reported == "success") for made in sessions if made.reported]
    table = Counter((judged, reported) for _, judged, reported in pairs)
    n = len(pairs)
    agree = (table[True, True] + table[False, False]) / n
    judged, reported = (table[True, True] + table[True, False]) / n, (table[True, True] + table[False, True]) / n
    by_luck = judged * reported + (1 - judged) * (1 - reported)
    assert found.agreement is not None
    success = found.agreement["success"]
    assert success["kappa"].value == pytest.approx((agree - by_luck) / (1 - by_luck), abs=1e-12)
    same(success["accuracy"], [(user, float(one == other)) for user, one, other in pairs])
    same(success["tpr"], [(user, float(one)) for user, one, other in pairs if other])
    same(success["tnr"], [(user, float(not one)) for user, one, other in pairs if not other])
    assert (found.reported, found.compared) == (n, n)


def test_the_variance_is_the_textbooks_where_everybody_has_one_session() -> None:
    rows: Rows = [(f"u{number}", float(value)) for number, value in enumerate([0, 1, 1, 4, 0])]
    assert cr1(rows) == pytest.approx(variance([value for _, value in rows]) / len(rows))

"""The answers: each number is what its summary says of the verdicts that the reader yields, arm by arm."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from reflexio_writing import BEGIN, Writer

from evalr.bulk import report
from evalr.errors import InputError, LogError, RecordError
from evalr.estimates.estimate import Estimate
from evalr.estimates.words import interval_words, value_words
from evalr.inputs import About, Exchange, Session
from evalr.logs import Stored, read
from evalr.measures import (
    corrections,
    drop_off_evaluator,
    drop_off_share,
    escalation_rate,
    negative_rate,
    net_impact,
    positive_rate,
    recent_comparisons,
    relevance_rate,
    response_mixed_rate,
    response_negative_rate,
    response_net_impact,
    response_positive_rate,
    response_relevance_rate,
    shadow_decided,
    shadow_net,
    shadow_wins,
    success_rate,
    top_disagreements,
    turns_to_resolution,
)
from evalr.reflexio import Impact, comparison_texts, impact, open_store
from evalr.summaries import Summary
from evalr.verdicts import Verdict

NOW = datetime(2026, 11, 30, 9, tzinfo=UTC)
SPLITS = [
    "experiment:exp-a-stopped",
    "experiment:exp-b-active",
    "request-source:Reflexio=prod_with_reflexio;Control=prod_without_reflexio",
    "request-source:one=prod_with_reflexio;two=beta,;control=prod_without_reflexio",
]


def stored(path: Path, measure: str, evaluator: str, **settings: Any) -> list[Verdict[Any]]:
    return [
        item.result
        for item in read(path, **settings)
        if isinstance(item, Stored) and item.measure == measure and isinstance(item.result, Verdict)
        and item.result.evaluator == evaluator
    ]  # fmt: skip


def same(found: Estimate, expected: Estimate) -> bool:
    """Whether two estimates are alike in all but what they are called and how their rows are named."""
    return replace(found, name="", noun="") == replace(expected, name="", noun="")


# ---------------------------------------------------------------------------------------------------------------------
# Two ways, one truth
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("split", SPLITS)
def test_arms_have_what_summaries_say_of_the_readers_verdicts(newest_log: Path, split: str) -> None:
    found = impact(newest_log, arms=split, now=NOW)
    assert found.arms is not None
    verdicts = stored(newest_log, "outcome", "agent_success", arms=split)
    sessions = [item for item in read(newest_log, arms=split) if isinstance(item, Session)]
    evaluator = drop_off_evaluator(now=NOW)
    dropped = [evaluator.evaluate_inline(session) for session in sessions]
    compared: dict[str, tuple[Summary[Any], list[Any]]] = {
        "success": (success_rate, verdicts),
        "corrections": (corrections, verdicts),
        "turns": (replace(turns_to_resolution, within=3), verdicts),
        "escalation": (escalation_rate, verdicts),
        "drop_off": (drop_off_share, dropped),
    }
    for name, (summary, results) in compared.items():
        groups = summary.by(results, "arm")
        for arm, answer in found.arms.by_arm.items():
            expected = groups[arm] if arm in groups else summary.estimate([])
            assert same(answer.measures[name], expected), (name, arm)
        assert same(found.everyone.measures[name], summary.estimate(results)), name
        for pair in found.arms.pairs:
            expected = summary.lift(
                results, treatment=pair.treatment, control=pair.control, randomised=found.arms.randomised
            )
            lift = pair.lifts[name]
            assert (lift.p, lift.shared_clusters, lift.always_valid_p) == (
                expected.p,
                expected.shared_clusters,
                expected.always_valid_p,
            )
            for part in ("difference", "relative", "always_valid"):
                mine, theirs = getattr(lift, part), getattr(expected, part)
                kept = tuple(flag for flag in mine.flags if flag not in ("sample_ratio_mismatch", "uneven_coverage"))
                assert same(replace(mine, flags=kept), theirs), (name, part)
    by_arm = {arm: [each for each in verdicts if each.about and each.about.arm == arm] for arm in found.arms.by_arm}
    for arm, answer in found.arms.by_arm.items():
        assert dict(answer.trend) == dict(success_rate.trend(by_arm[arm])), arm
        assert answer.turns_median == turns_to_resolution.estimate(by_arm[arm])


@pytest.mark.parametrize("bucket", ["day", "week", "month"])
def test_trends_are_those_of_the_summary(newest_log: Path, bucket: Any) -> None:
    found = impact(newest_log, bucket=bucket, now=NOW)
    assert dict(found.trend) == dict(success_rate.trend(stored(newest_log, "outcome", "agent_success"), bucket))
    assert found.shadow is not None
    comparisons = stored(newest_log, "shadow", "shadow_comparison")
    assert dict(found.shadow.trend) == dict(shadow_wins.trend(comparisons, bucket))


@pytest.mark.parametrize("which", ["served", "shadow", "arm"])
def test_shadow_wins_are_those_of_the_summary(newest_log: Path, which: Any) -> None:
    split = "request-source:treatment=prod_with_reflexio;control=prod_without_reflexio"
    found = impact(newest_log, arms=split, shadow=which, now=NOW).shadow
    assert found is not None
    comparisons = stored(newest_log, "shadow", "shadow_comparison", arms=split, shadow=which)
    assert found.wins == shadow_wins.estimate(comparisons)
    assert found.net == shadow_net.estimate(comparisons)
    assert found.decided == shadow_decided.estimate(comparisons)
    assert found.test == shadow_wins.sign_test(comparisons)
    assert dict(found.arms) == dict(shadow_wins.by(comparisons, "arm"))


def test_learnings_are_those_of_the_summaries(newest_log: Path) -> None:
    found = impact(newest_log, now=NOW).learnings
    assert found is not None
    verdicts = stored(newest_log, "learning", "retrieved_learning")
    assert same(found.verdicts.relevant, relevance_rate.estimate(verdicts))
    assert same(found.verdicts.helped, positive_rate.estimate(verdicts))
    assert same(found.verdicts.hurt, negative_rate.estimate(verdicts))
    assert same(found.verdicts.net, net_impact.estimate(verdicts))
    of_responses = {
        "relevant": response_relevance_rate,
        "helped": response_positive_rate,
        "hurt": response_negative_rate,
        "net": response_net_impact,
        "mixed": response_mixed_rate,
    }
    for name, summary in of_responses.items():
        mine, theirs = getattr(found.responses, name), summary.estimate(verdicts)
        parts = ("value", "low", "high", "n", "clusters", "clustered_by", "variance")
        assert [getattr(mine, part) for part in parts] == [getattr(theirs, part) for part in parts], name
    uses: dict[str, list[Verdict[Any]]] = {}
    for verdict in verdicts:
        uses.setdefault(str((verdict.about or About("x")).attributes["use"]), []).append(verdict)
    assert set(found.by_use) == set(uses) == {"cited", "supplied only"}
    for use, of_use in uses.items():
        assert same(found.by_use[use].helped, positive_rate.estimate(of_use))
        assert found.responses_by_use[use].net.value == response_net_impact.estimate(of_use).value


def test_an_association_is_the_lift_of_sessions_with_a_learning_over_those_without(newest_log: Path) -> None:
    found = impact(newest_log, now=NOW, listed=1_000).learnings
    assert found is not None
    given: dict[tuple[str | None, str | None], set[tuple[str, str]]] = {}
    with open_store(newest_log) as store:
        for record in store.sessions(store.account()):
            attached = {(each.kind, each.id) for turn in record.interactions for each in turn.learnings or ()}
            given[record.user or None, record.session] = attached
    verdicts = stored(newest_log, "outcome", "agent_success")
    assert len(found.given) > 10
    for record in found.given:
        name = (record.kind, record.id)

        def side(about: About, name: tuple[str, str] = name) -> str:
            return "with" if name in given[about.user, about.id] else "without"

        if record.association is None:
            assert not any(side(each.about) == "with" for each in verdicts if each.about)
            continue
        expected = success_rate.lift(verdicts, treatment="with", control="without", by=side)
        difference, p = record.association.difference, record.association.p
        assert (difference.value, difference.low, difference.high, p) == (
            expected.difference.value,
            expected.difference.low,
            expected.difference.high,
            expected.p,
        )
        assert same(record.association.with_it, expected.treatment)
        without = record.association.without_it
        assert (without.value, without.low, without.n) == (
            expected.control.value,
            expected.control.low,
            expected.control.n,
        )
        assert "association" in difference.flags


# ---------------------------------------------------------------------------------------------------------------------
# Reflexio's own numbers, where they mean the same
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("experiment", "attributed", "users", "published", "ran"),
    [
        (
            "exp-a-stopped",
            1.0,
            {"treatment": 4, "holdout": 3},
            {"treatment": 10, "holdout": 8},
            "2026-11-05 00:00 to 2026-11-15 00:00 UTC",
        ),
        (
            "exp-b-active",
            0.9166666666666666,
            {"treatment": 7, "holdout": 5},
            {"treatment": 16, "holdout": 8},
            "active since 2026-11-16 00:00 UTC",
        ),
    ],
)
def test_coverages_and_assignments(
    newest_log: Path,
    experiment: str,
    attributed: float,
    users: dict[str, int],
    published: dict[str, int],
    ran: str,
) -> None:
    arms = impact(newest_log, arms=f"experiment:{experiment}", now=NOW).arms
    assert arms is not None
    assert arms.attributed.share == attributed
    allocation = arms.pairs[0].allocation
    assert allocation.assigned == users
    assert {arm: arms.by_arm[arm].coverage.whole for arm in published} == published
    assert {arm: arms.by_arm[arm].users for arm in users} == users
    assert allocation.sample_ratio is not None
    assert not allocation.sample_ratio.alarm
    # One session of either has its arm from a later request, and began before the experiment did.
    assert sum(arms.by_arm[arm].coverage.part for arm in published) - arms.attributed.part == 1
    (note,) = arms.notes
    assert note == (
        f"1 judged session of these arms began while the experiment did not run ({ran}): "
        "--since and --until leave such out"
    )
    assert arms.checked == sum(published.values())
    assert arms.disagreeing == 0


def test_tokens_are_those_of_the_agents_answers(newest_log: Path) -> None:
    """Of the treatment Reflexio's own number, as people and the agent speak alone; one of the holdout is unknown."""
    arms = impact(newest_log, arms="experiment:exp-b-active", now=NOW).arms
    assert arms is not None
    treatment, holdout = (arms.by_arm[arm].measures["output_tokens"] for arm in ("treatment", "holdout"))
    assert (treatment.value, treatment.n) == (15.3125, 16)
    assert holdout.n == 7
    assert holdout.left_out == {"unknown": 1}


def test_rules_are_attributed_as_reflexio_does(newest_log: Path) -> None:
    found = impact(newest_log, now=NOW).learnings
    assert found is not None
    nets = [(each.kind, each.id, each.successes_with, each.failures_with) for each in found.cited_rules[:5]]
    assert sorted(nets, key=lambda row: row[2] - row[3], reverse=True)[:2] == [
        ("agent_playbook", "1", 4, 1),
        ("playbook", "1", 3, 0),
    ]
    assert [each.net_sessions for each in found.cited_rules[:5]] == [3, 3, 2, 2, 1]


# ---------------------------------------------------------------------------------------------------------------------
# What is told beside the numbers
# ---------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def writer(tmp_path: Path) -> Writer:
    return Writer(tmp_path / "reflexio_acme.db", "0.2.32")


def judged(writer: Writer, sessions: Iterable[tuple[str, str, str, int]]) -> None:
    for number, (session, user, source, success) in enumerate(sessions):
        at = BEGIN + timedelta(hours=number)
        writer.session(session, user, at, source=source)
        writer.outcome(session, user, at, success=success)


SOURCES = "request-source:treatment=with;control=without"


def test_a_split_is_observational_until_somebody_says_otherwise(writer: Writer) -> None:
    judged(writer, [("s1", "u1", "with", 1), ("s2", "u2", "without", 0)])
    path = writer.done()
    found = impact(path, arms=SOURCES, now=NOW)
    assert found.arms is not None
    assert "observational" in found.arms.pairs[0].lifts["success"].flags
    assert "observational" in str(found)
    said = impact(path, arms=SOURCES, now=NOW, randomised=True)
    assert said.arms is not None
    assert "observational" not in said.arms.pairs[0].lifts["success"].flags
    assert "observational" not in str(said)


def test_arms_that_are_not_what_they_were_meant_to_be_raise_an_alarm(writer: Writer) -> None:
    judged(writer, [(f"s{n}", f"u{n}", "with" if n % 2 else "without", 1) for n in range(60)])
    path = writer.done()
    found = impact(path, arms=SOURCES, holdout=0.1, now=NOW).arms
    assert found is not None
    assert "sample_ratio_mismatch" in found.pairs[0].lifts["success"].flags
    assert found.pairs[0].lifts["success"].allocation == found.pairs[0].allocation
    even = impact(path, arms=SOURCES, holdout=0.5, now=NOW).arms
    assert even is not None
    assert "sample_ratio_mismatch" not in even.pairs[0].lifts["success"].flags


def test_an_empty_arm_gives_no_estimate(writer: Writer) -> None:
    judged(writer, [("s1", "u1", "with", 1), ("s2", "u2", "with", 0)])
    found = impact(writer.done(), arms=SOURCES, now=NOW)
    assert found.arms is not None
    assert found.arms.pairs[0].lifts["success"].difference.value is None
    assert "no estimate" in str(found)


def test_arms_that_nobody_is_in_or_that_have_no_other_say_so(writer: Writer) -> None:
    judged(writer, [("s1", "u1", "with", 1), ("s2", "u2", "with", 0)])
    path = writer.done()
    nobody = " ".join(str(impact(path, arms="request-source:treatment=wiht;control=wihtout", now=NOW)).split())
    assert "no session of this log is in any of these arms" in nobody
    assert "request source in no set 2 'with' (2)" in nobody
    assert "compared with nothing: name a second one" in str(impact(path, arms="request-source:A=with", now=NOW))
    both = str(impact(path, arms=SOURCES, now=NOW))
    assert "in any of these arms" not in both
    assert "compared with nothing" not in both


def test_the_untagged_are_shown_by_cause_with_a_curve_of_their_own(tagged_log: Path) -> None:
    arms = impact(tagged_log, arms="tag", now=NOW).arms
    assert arms is not None
    assert arms.untagged == {"another type": 6, "metadata is no map": 3, "key missing": 2, "no request": 1}
    assert arms.by_arm[None].coverage.whole == 11
    assert arms.by_arm[None].measures["success"].value == pytest.approx(0.9166666666666666)
    assert arms.by_arm["treatment"].measures["success"].value == pytest.approx(0.7777777777777778)
    assert arms.by_arm["control"].measures["success"].value == 0.5
    assert any(point.n for point in arms.by_arm[None].trend.values())


def test_a_period_takes_in_what_began_in_it(newest_log: Path) -> None:
    since, until = datetime(2026, 11, 10, tzinfo=UTC), datetime(2026, 11, 20, tzinfo=UTC)
    found = impact(newest_log, since=since, until=until, now=NOW)
    verdicts = stored(newest_log, "outcome", "agent_success")
    within = [each for each in verdicts if each.about and each.about.at and since <= each.about.at < until]
    assert found.success == success_rate.estimate(within)
    assert 0 < found.health.published < 44
    assert found.health.outside_the_period > 0
    comparisons = stored(newest_log, "shadow", "shadow_comparison")
    within = [each for each in comparisons if each.about and each.about.at and since <= each.about.at < until]
    assert found.shadow is not None
    assert found.shadow.wins == shadow_wins.estimate(within)


def test_a_report_that_names_no_arms_takes_those_that_ran_in_its_period(newest_log: Path) -> None:
    stopped, active = datetime(2026, 11, 15, tzinfo=UTC), datetime(2026, 11, 16, tzinfo=UTC)
    for since, until, name in (
        (None, None, "exp-b-active"),
        (active, None, "exp-b-active"),
        (None, stopped, "exp-a-stopped"),
        (datetime(2026, 11, 6, tzinfo=UTC), datetime(2026, 11, 10, tzinfo=UTC), "exp-a-stopped"),
    ):
        found = report(newest_log, since=since, until=until, now=NOW)
        (section,) = [each for each in found.further if each.name == "arms"]
        assert section.data["name"] == f"experiment:{name}", (since, until)


def test_where_nobody_is_in_an_arm_learnings_are_of_all_sessions(writer: Writer) -> None:
    """As in a report on a month after the experiment, which finds arms that none of its sessions has."""
    given = json.dumps([{"kind": "profile", "learning_id": "p1"}])
    later = BEGIN + timedelta(days=20)
    for number in range(60):
        stamp = {"retrieval_experiment_id": "e", "retrieval_experiment_arm": "treatment"} if number < 10 else {}
        at = (BEGIN if stamp else later) + timedelta(hours=number)
        session, user = f"s{number}", f"u{number % 25}"
        writer.session(session, user, at, **stamp)
        writer.turn(f"r-{user}-{session}", at, "Agent", retrieved_learnings=given if number % 2 else None)
        writer.outcome(session, user, at, success=int(number % 3 > 0))
    path = writer.done()
    plain, split = (impact(path, arms=arms, since=later, now=NOW).learnings for arms in (None, "experiment:e"))
    assert plain is not None
    assert plain.given[0].association is not None
    assert plain.given[0].association.difference.n == 50
    assert split == plain
    (section,) = [each for each in report(path, since=later, now=NOW).further if each.name == "learnings"]
    assert section.data == plain.to_dict()
    among = impact(path, arms="experiment:e", now=NOW).learnings
    assert among is not None
    assert among.given[0].association is not None
    assert among.given[0].association.difference.n == 10


def test_what_is_judged_is_never_more_than_what_could_be(writer: Writer) -> None:
    """An answer counts by when it was given, whether or not its session began in the period, and if it is there."""
    given = json.dumps([{"kind": "profile", "learning_id": "p1"}])
    late = BEGIN + timedelta(days=1)
    for session, user in (("s1", "u1"), ("s2", "u2")):
        writer.session(session, user)
        answer = writer.turn(f"r-{user}-{session}", late, "Agent", shadow_content="other", retrieved_learnings=given)
        writer.shadow(answer, session, late)
        writer.shadow(answer, session, late, judge_prompt_version="v1.0.0")
        at = int(late.timestamp())
        for learning in ("p1", "never given"):
            writer.add("retrieved_learning_evaluation", user_id=user, session_id=session, kind="profile", created_at=at,
                       learning_id=learning, interaction_id=answer, interaction_created_at=at,
                       impact="positive")  # fmt: skip
    writer.shadow(999, "s1", late)  # its answer is gone
    path = writer.done()
    for since, until, answers in ((None, None, 2), (late, None, 2), (None, late, 0)):
        found = impact(path, since=since, until=until, shadow_version="v1.1.0", now=NOW)
        health = found.health
        assert (health.shadow_judged, health.answers_with_shadow) == (answers, answers)
        assert (health.learnings_judged, health.learnings_attached) == (answers, answers)
        if answers:
            assert found.shadow is not None
            assert found.learnings is not None
            assert (found.shadow.wins.n, found.shadow.left_out) == (3, {"of another prompt version": 2})
            assert found.learnings.verdicts.helped.n == 4
        else:
            assert found.shadow is None


def test_what_comes_after_the_reading_time_does_not_exist_yet(newest_log: Path) -> None:
    now = datetime(2026, 11, 12, tzinfo=UTC)
    found = impact(newest_log, now=now)
    verdicts = stored(newest_log, "outcome", "agent_success")
    assert found.success.n == sum(bool(each.about and each.about.at and each.about.at <= now) for each in verdicts)


def test_one_judge_counts_and_the_others_are_named(newest_log: Path) -> None:
    found = impact(newest_log, now=NOW)
    assert found.evaluator == "agent_success"
    assert found.health.other_judges == {"old_named_evaluator": 1}
    assert found.health.judged_again == 1
    other = impact(newest_log, now=NOW, evaluator="old_named_evaluator")
    assert other.success.n == 1
    with pytest.raises(InputError, match="old_named_evaluator"):
        impact(newest_log, evaluator="nobody")


def test_the_newest_verdicts_are_of_one_user_each(writer: Writer) -> None:
    judged(writer, [("s1", "u1", "with", 1), ("s1", "u2", "without", 0), ("s2", "u1", "with", 0)])
    writer.outcome("s2", "u1", BEGIN + timedelta(hours=2), success=1)
    path = writer.done()
    found = impact(path, now=NOW)
    assert [each.key for each in found.recent] == [("u1", "s2"), ("u2", "s1"), ("u1", "s1")]
    assert found.recent[0].success  # as judged last
    assert {source: len(each) for source, each in found.recent_by_source().items()} == {"with": 2, "without": 1}
    fewer = impact(path, now=NOW, newest=2)
    assert [each.key for each in fewer.recent] == [("u1", "s2"), ("u2", "s1")]
    assert fewer.recent_of == 3


def test_customers_are_compared_with_the_judge_where_requests_are_gone(writer: Writer) -> None:
    for session, success, outcome in (("s1", 1, "success"), ("s2", 0, "success"), ("s3", None, "failure")):
        if success is not None:
            writer.outcome(session, "u1", success=success)
        writer.add(
            "session_outcomes",
            outcome_id=session,
            user_id="u1",
            session_id=session,
            outcome=outcome,
            occurred_at=int(BEGIN.timestamp()),
        )
    found = impact(writer.done(), now=NOW).customers
    assert found is not None
    assert (found.reported, found.compared, found.left_out) == (3, 2, {"without a verdict": 1})


def test_what_reflexio_inferred_is_no_customer(writer: Writer) -> None:
    judged(writer, [("s1", "u1", "with", 1), ("s2", "u2", "with", 0), ("s3", "u3", "with", 1)])
    reports = [("s1", "u1", "success", 0), ("s2", "u2", "success", 0), ("s3", "u3", "failure", 1)]
    reports.append(("s4", "u4", "failure", 0))
    writer.session("s4", "u4", BEGIN + timedelta(days=1))
    for session, user, outcome, inferred in reports:
        writer.add(
            "session_outcomes",
            outcome_id=session,
            user_id=user,
            session_id=session,
            outcome=outcome,
            occurred_at=int(BEGIN.timestamp()),
            is_inferred=inferred,
        )
    found = impact(writer.done(), now=NOW).customers
    assert found is not None
    assert found.agreement is not None
    assert found.agreement["success"]["accuracy"].value == 0.5
    assert (found.reported, found.compared) == (3, 2)
    assert found.left_out == {"inferred by Reflexio": 1, "without a verdict": 1}


# ---------------------------------------------------------------------------------------------------------------------
# Learnings: diagnoses and marks
# ---------------------------------------------------------------------------------------------------------------------


def learning(writer: Writer, number: int, impact_: str, *, playbook: str = "7", **row: Any) -> None:
    session, user, at = f"s{number}", f"u{number}", BEGIN + timedelta(hours=number)
    attached = json.dumps([{"kind": "user_playbook", "learning_id": playbook}])
    request = writer.request(f"r{number}", user, session, at)
    writer.turn(request, at, "User")
    answer = writer.turn(request, at, "Agent", retrieved_learnings=attached)
    writer.add(
        "retrieved_learning_evaluation",
        user_id=user,
        session_id=session,
        interaction_id=answer,
        interaction_created_at=int(at.timestamp()),
        kind="user_playbook",
        learning_id=playbook,
        is_relevant=1,
        impact=impact_,
        created_at=int(at.timestamp()),
        **row,
    )


def diagnosed(category: str, *, cites: tuple[int, ...] = (1,)) -> str:
    return json.dumps({"category": category, "reason": "why", "evidence_interaction_ids": list(cites)})


def test_a_diagnosis_counts_with_evidence_alone(writer: Writer) -> None:
    whole = {"diagnosis_evidence_complete": 1, "evaluated_playbook_digest": "abc"}
    rows = [
        {"diagnosis": diagnosed("content_defect"), **whole},
        {"diagnosis": diagnosed("external_failure"), **whole},
        {"diagnosis": diagnosed("content_defect", cites=()), **whole},
        {"diagnosis": diagnosed("content_defect"), **whole, "diagnosis_evidence_complete": 0},
        {"diagnosis": diagnosed("content_defect"), **whole, "evaluated_playbook_digest": ""},
        {},
    ]
    for number, row in enumerate(rows):
        learning(writer, number, "negative", **row)
    learning(writer, 6, "positive", diagnosis=diagnosed("no_issue"), **whole)
    found = impact(writer.done(), now=NOW).learnings
    assert found is not None
    assert found.diagnoses == {
        "content_defect": 1,
        "external_failure": 1,
        "no cited interactions": 1,
        "incomplete evidence": 1,
        "no recorded digest": 1,
        "no diagnosis": 1,
    }
    (record,) = found.harming
    assert record.diagnoses == found.diagnoses
    assert (record.negative_sessions, record.qualifying_sessions, record.positive_sessions) == (6, 5, 1)


def playbook(writer: Writer, name: int, content: str, trigger: str | None) -> None:
    columns = "user_playbook_id INTEGER PRIMARY KEY, content TEXT NOT NULL DEFAULT '', trigger TEXT"
    writer.connection.execute(f"CREATE TABLE IF NOT EXISTS user_playbooks ({columns})")
    writer.connection.execute("INSERT INTO user_playbooks VALUES (?, ?, ?)", (name, content, trigger))


@pytest.mark.parametrize(
    ("content", "trigger", "digest"),
    [
        ("Always confirm step 1", "when asked", "7aaff6b7a29fd1fae2e4f59a0e5ec039c674b3019a211127f51a2e5f04e94451"),
        (
            'Grüße "a"\n\u2028 \x01 😀 </b>',
            "wenn \\ é\t",
            "146a728c151b0dff131405489bc719292836ca668c9149fb5f43a0e5e12cbcb4",
        ),
        ("Shared rule 1", None, "cde2d71364691526cd20f90b26fb8d3594d75e94a8746a1f3d69732fd3a96644"),
        ("", "", "86282362dab6450b3eb089149bf9be0f3c10fdf9defc3fbf4c56d1b539dff891"),
    ],
)
def test_a_diagnosis_counts_for_the_text_that_was_judged(
    writer: Writer, content: str, trigger: str | None, digest: str
) -> None:
    """The digests are those that Reflexio 0.2.32 computed of these playbooks."""
    playbook(writer, 7, content, trigger)
    playbook(writer, 8, content + ".", trigger)
    playbook(writer, 9, content, (trigger or "") + ".")
    whole = {"diagnosis": diagnosed("external_failure"), "diagnosis_evidence_complete": 1}
    for number, name in enumerate(["7", "8", "9", "10"]):  # the last is no more in the log: nothing contradicts
        learning(writer, number, "negative", playbook=name, evaluated_playbook_digest=digest, **whole)
    path = writer.done()
    found = impact(path, now=NOW).learnings
    assert found is not None
    assert found.diagnoses == {"external_failure": 2, "digest of another text": 2}
    assert {each.id: each.qualifying_sessions for each in found.harming} == {"7": 0, "8": 1, "9": 1, "10": 0}
    attributes = [each.about.attributes for each in stored(path, "learning", "retrieved_learning") if each.about]
    assert {each["learning"]: each["diagnosis_evidence"] for each in attributes} == {
        "7": "complete", "8": "incomplete", "9": "incomplete", "10": "complete",
    }  # fmt: skip
    with open_store(path) as store:
        rows = list(store.learning_verdicts(store.account()))
    assert [row.diagnosis_lacks for row in rows] == [None, "digest of another text", "digest of another text", None]


def test_a_verdict_whose_session_is_gone_is_held_to_the_digest_too(writer: Writer) -> None:
    playbook(writer, 7, "Ask first", None)
    judged(writer, [("s1", "u1", "with", 1)])
    row = {"is_relevant": 1, "impact": "negative", "created_at": int(BEGIN.timestamp()), "kind": "user_playbook"}
    row |= {"diagnosis_evidence_complete": 1, "evaluated_playbook_digest": "f" * 64, "interaction_id": 999}
    writer.add(
        "retrieved_learning_evaluation",
        user_id="u9",
        session_id="gone",
        learning_id="7",
        diagnosis=diagnosed("no_issue"),
        **row,
    )
    found = impact(writer.done(), now=NOW).learnings
    assert found is not None
    assert found.diagnoses == {"digest of another text": 1}


@pytest.mark.parametrize(
    ("negative", "excused", "positive", "marked"),
    [(3, 0, 2, True), (2, 1, 2, False), (3, 0, 1, False), (4, 2, 3, True)],
)
def test_playbooks_to_be_revised_are_marked(
    writer: Writer, negative: int, excused: int, positive: int, marked: bool
) -> None:
    excuse = {
        "diagnosis": diagnosed("application_failure"),
        "diagnosis_evidence_complete": 1,
        "evaluated_playbook_digest": "abc",
    }
    rows: list[tuple[str, dict[str, Any]]] = [("negative", {})] * negative
    rows += [("negative", excuse)] * excused + [("positive", {})] * positive
    for number, (what, row) in enumerate(rows):
        learning(writer, number, what, **row)
    found = impact(writer.done(), now=NOW)
    assert found.learnings is not None
    assert [each.id for each in found.learnings.marked] == (["7"] if marked else [])
    assert ("to be revised" in str(found)) is marked
    assert [str(each).endswith("marked") for each in found.learnings.harming if each.id == "7"] == [marked]


# ---------------------------------------------------------------------------------------------------------------------
# Shown, and refused
# ---------------------------------------------------------------------------------------------------------------------


def test_everything_is_plain_data(newest_log: Path) -> None:
    found = impact(newest_log, arms="experiment:exp-b-active", now=NOW)
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["arms"]["pairs"][0]["lifts"]["success"]["difference"]["value"] is not None
    assert plain["shadow"]["disagreements"]
    assert any(each["association"] for each in plain["learnings"]["given"])
    assert plain["health"]["published"] == 44
    assert {"arms", "trend", "shadow", "learnings", "customers", "recent", "health"} == {
        each.name for each in found.sections()
    }


def test_texts_of_the_log_cannot_steer_a_terminal_or_a_page(writer: Writer) -> None:
    judged(writer, [("<script>\x1b[31m", "u\x1b]0;", "<b>with", 0)])
    writer.session("s-type", "u1", source="x")
    writer.outcome("s-type", "u1", success=0, failure_type="\x1b[31m<i>", failure_reason="\x1b[31m")
    found = impact(writer.done(), arms="request-source:<i>a=<b>with;b=x", now=NOW)
    assert "\x1b" not in str(found)
    assert "<script>" not in found._repr_html_()
    assert "<i>" not in found._repr_html_()


def test_the_interval_for_who_looks_every_day_is_printed_on_request(newest_log: Path) -> None:
    usual = impact(newest_log, arms=SPLITS[2], now=NOW)
    daily = impact(newest_log, arms=SPLITS[2], now=NOW, always_valid=True)
    assert str(usual) != str(daily)
    assert Impact.to_dict(usual)["arms"] == Impact.to_dict(daily)["arms"]
    assert [each.to_dict()["always_valid"] for each in (usual, daily)] == [False, True]


def test_who_looks_every_day_is_not_shown_what_holds_for_one_look(newest_log: Path) -> None:
    usual, daily = (impact(newest_log, arms=SPLITS[2], now=NOW, always_valid=daily) for daily in (False, True))
    assert usual.arms is not None
    relative = usual.arms.pairs[0].lifts["success"].relative
    of_one_look = (interval_words(relative.low, relative.high, relative.unit), "80% power")
    for text in of_one_look:
        assert text in " ".join(str(usual).split())
        assert text in usual._repr_html_()
        assert text not in " ".join(str(daily).split())
        assert text not in daily._repr_html_()
    assert f"relative {value_words(relative.value, relative.unit)}" in " ".join(str(daily).split())


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"bucket": "hour"}, "day"),
        ({"level": 1.5}, "level"),
        ({"turns": 0}, "turns"),
        ({"holdout": 10}, "0.1"),
        ({"since": datetime(2026, 1, 1)}, "time zone"),  # noqa: DTZ001  which is what is refused
        ({"shadow": "arm"}, "needs arms"),
        ({"arms": "request-source:a=x;b=y", "shadow": "arm"}, "labelled control"),
        ({"arms": "experiment:none"}, "no request carries"),
        ({"arms": {"treatment": ["prod"]}}, "tells no arms: give a text, such as 'tag', or SourceArms"),
        ({"holdout": "ten"}, "is no share: write 10% or 0.1"),
        ({"shadow_version": "v9"}, "no shadow verdict is of shadow_version='v9'; there are: 'v1.1.0', 'v1.0.0'"),
        ({"evaluator": "nobody"}, "no verdict is by evaluator='nobody'; there are: 'agent_success', 'old_named"),
    ],
)
def test_what_makes_no_sense_is_refused(newest_log: Path, wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        impact(newest_log, now=NOW, **wrong)


def test_a_share_is_written_as_the_command_takes_it(newest_log: Path) -> None:
    texts, numbers = (impact(newest_log, arms=SPLITS[2], holdout=share, now=NOW) for share in ("40%", 0.4))
    assert texts == numbers
    assert texts.arms is not None
    assert texts.arms.pairs[0].allocation.sample_ratio is not None


def test_a_configuration_that_grades_nothing_has_no_share_judged(newest_log: Path, tmp_path: Path) -> None:
    graded = impact(newest_log, now=NOW).health.sampling
    assert graded is not None
    assert graded["sessions"] > 0
    path = tmp_path / "config_my-org.json"
    path.write_text(json.dumps({"agent_success_config": None, "storage_config": {}}), encoding="utf-8")
    found = impact(newest_log, config=path, now=NOW).health.sampling
    assert found == {"sessions": 0.0, "evaluation_only": 0.0, "learnings": 0.0}


def test_a_log_without_records_is_an_error(writer: Writer) -> None:
    with pytest.raises(LogError, match="no records"):
        impact(writer.done(), now=NOW)


def test_sessions_whose_requests_disagree_are_counted_and_listed(writer: Writer) -> None:
    ways: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"source": "with"}, {"source": "without"}),
        ({"evaluation_only": 0}, {"evaluation_only": 1}),
        (
            {"retrieval_experiment_id": "e", "retrieval_experiment_arm": "treatment"},
            {"retrieval_experiment_id": "e", "retrieval_experiment_arm": "holdout"},
        ),
        ({"source": "with"}, {"source": "with"}),
    ]
    for number, rows in enumerate(ways):
        for place, row in enumerate(rows):
            writer.request(f"r{number}-{place}", f"u{number}", f"s{number}", BEGIN + timedelta(hours=place), **row)
    found = impact(writer.done(), arms="experiment:e", now=NOW)
    assert found.health.disagreeing == {
        "request sources differ between requests": 1,
        "evaluation_only differs between requests": 1,
        "experiment arms differ between requests": 1,
    }
    assert found.to_dict()["health"]["disagreeing_sessions"]["experiment arms differ between requests"] == [
        ["u2", "s2"]
    ]
    assert "sessions whose requests disagree" in str(found)
    assert "1 experiment arms differ between requests" in " ".join(str(found).split())
    assert found.arms is not None
    assert found.arms.by_arm["treatment"].coverage.whole == 1  # the first request decides


def test_bad_rows_are_counted_or_with_strict_an_error(writer: Writer) -> None:
    judged(writer, [("s1", "u1", "with", 1)])
    writer.outcome("s1", "u1", "sometime", success=1)
    path = writer.done()
    found = impact(path, now=NOW)
    assert found.health.skipped == {"unreadable time": 1}
    assert Counter(found.health.skipped).total() == 1
    with pytest.raises(RecordError, match="result 2"):
        impact(path, now=NOW, strict=True)


def test_sections_lead_the_report_of_a_split_and_follow_its_measures(newest_log: Path) -> None:
    from evalr.reports.report import report

    found = report(newest_log, now=NOW, arms="experiment:exp-b-active")
    lines = found.text().splitlines()
    leads = next(
        place for place, line in enumerate(lines) if line.startswith("impact of Reflexio: treatment v holdout")
    )
    measures = next(place for place, line in enumerate(lines) if "came back within" in line)
    learnings = lines.index("learnings")
    assert leads < measures < learnings
    assert found.to_dict()["further"]["arms"]["name"] == "experiment:exp-b-active"
    alone = impact(newest_log, arms="experiment:exp-b-active", now=NOW)
    assert {each.name: each.data for each in alone.sections()} == found.to_dict()["further"]


def test_the_texts_of_comparisons_are_looked_up_when_they_are_asked_for(newest_log: Path) -> None:
    split = "request-source:treatment=prod_with_reflexio;control=prod_without_reflexio"
    found = impact(newest_log, arms=split, shadow="arm", now=NOW).shadow
    assert found is not None
    assert len(found.disagreements) == min(20, found.lost_by_far) > 0
    texts = comparison_texts(newest_log, found.disagreements)
    assert [row.exchange.id for row in texts] == [str(each.interaction) for each in found.disagreements]
    assert {row.outcome for row in texts} == {"loss"}
    assert all(row.exchange.served and row.exchange.shadow for row in texts)
    assert [row.verdict.value.reason for row in texts] == [each.reason for each in found.disagreements]
    items = list(read(newest_log, arms=split, shadow="arm"))
    exchanges = [item for item in items if isinstance(item, Exchange)]
    verdicts = [item.result for item in items if isinstance(item, Stored) and item.measure == "shadow"]
    expected = top_disagreements(verdicts, exchanges)
    assert {row.exchange.id for row in texts} == {row.exchange.id for row in expected}
    newest = recent_comparisons(verdicts, exchanges, n=5)
    assert {each.interaction for each in found.recent[:5]} <= {
        int(row.exchange.id) for row in recent_comparisons(verdicts, exchanges, n=8)
    }
    assert len(newest) == 5
    gone = replace(found.recent[0], interaction=10**9)
    assert comparison_texts(newest_log, [gone]).left_out == {"without its exchange": 1}


def test_learnings_say_how_they_begin(newest_log: Path) -> None:
    found = impact(newest_log, now=NOW)
    assert found.learnings is not None
    harming = {(each.kind, each.id): each.text for each in found.learnings.harming}
    assert harming["user_playbook", "10"] == "When: when asked\nAlways confirm step 10"
    assert harming["profile", "prof-u11"] == "u11 prefers short answers"
    assert {each.text for each in found.learnings.given if each.id == "prof-deleted"} == {None}
    assert "'When: when asked Always confirm step 10'" in " ".join(str(found).split())
    assert found.to_dict()["learnings"]["harming"][0]["text"]

"""Logs that Reflexio itself wrote, read back: counts, arms, hashes and sums that its own functions gave on them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from reflexio_writing import HERE

from evalr.inputs import Exchange, LearningUse, Session, Transcript
from evalr.logs import Stored, read
from evalr.measures import SessionOutcome, corrections, success_rate
from evalr.reflexio import (
    ExperimentArms,
    SessionRecord,
    SourceArms,
    TagArms,
    assign_arm,
    assignments,
    config_for,
    open_store,
)
from evalr.verdicts import Verdict
from evalr_reflexio.assigning import experiment_arm, sampling_fraction

FUNCTIONS: dict[str, Any] = json.loads((HERE / "functions.json").read_text(encoding="utf-8"))
EXPERIMENTS = ("exp-a-stopped", "exp-b-active")


@pytest.fixture(scope="module")
def records(newest_log: Path) -> list[SessionRecord]:
    with open_store(newest_log) as store:
        account = store.account(strict=True)
        found = list(store.sessions(account))
    assert account.left_out.total == 0
    return found


def stored(items: Iterable[object], measure: str, evaluator: str) -> list[Verdict[Any]]:
    return [
        each.result
        for each in items
        if isinstance(each, Stored) and each.measure == measure and each.result.evaluator == evaluator
        if isinstance(each.result, Verdict)
    ]


def test_every_row_has_its_place(records: list[SessionRecord]) -> None:
    with_requests = [record for record in records if record.requests]
    assert (len(with_requests), len({record.user for record in with_requests})) == (44, 12)
    assert len({record.session for record in with_requests}) == 42
    assert sum(len(record.requests) for record in records) == 60
    assert sum(len(record.interactions) for record in records) == 123
    assert sum(len(record.outcomes) for record in records) == 44
    assert sum(len(record.shadow_verdicts) for record in records) == 44
    assert sum(len(record.learning_verdicts) for record in records) == 56
    assert sum(record.customer_outcome is not None for record in records) == 4
    assert Counter(request.source for record in records for request in record.requests) == {
        "prod_with_reflexio": 31,
        "prod_without_reflexio": 23,
        "": 4,
        "beta": 2,
    }
    assert sum(request.evaluation_only is True for record in records for request in record.requests) == 22


def test_verdicts_whose_session_is_gone_come_last_and_without_requests(records: list[SessionRecord]) -> None:
    assert [record.key for record in records if not record.requests] == [("u12", "s-orphan"), ("", "s-gone")]
    assert [record.key for record in records[-2:]] == [("u12", "s-orphan"), ("", "s-gone")]


def test_a_session_id_of_two_users_is_two_sessions(records: list[SessionRecord]) -> None:
    shared = {record.key: record for record in records if record.session in ("s-shared-1", "s-shared-2")}
    assert set(shared) == {("u01", "s-shared-1"), ("u05", "s-shared-1"), ("u02", "s-shared-2"), ("u03", "s-shared-2")}
    for (user, _), record in shared.items():
        assert {outcome.user for outcome in record.outcomes} <= {user}
        interactions = {turn.interaction_id for turn in record.interactions}
        assert {verdict.interaction for verdict in record.shadow_verdicts} <= interactions


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_arms_of_experiments_are_those_that_reflexio_attributes(
    experiment: str, records: list[SessionRecord], newest_log: Path
) -> None:
    with open_store(newest_log) as store:
        known = config_for(store).experiment(experiment)
    assert known is not None
    arms = ExperimentArms(known)
    found = {"/".join(record.key): arms.read(record).arm for record in records}
    assert {key: arm for key, arm in found.items() if arm is not None} == FUNCTIONS["assignments"][experiment]
    assert (arms.labels, arms.unit, arms.randomised) == (("treatment", "holdout"), "user", True)


@pytest.mark.parametrize(
    ("experiment", "users"),
    [("exp-a-stopped", {"treatment": 4, "holdout": 3}), ("exp-b-active", {"treatment": 7, "holdout": 5})],
)
def test_assignments_are_of_users(experiment: str, users: dict[str, int], records: list[SessionRecord]) -> None:
    from evalr.reflexio import Experiment

    found = list(assignments(records, ExperimentArms(Experiment(experiment))))
    assert Counter(each.arm for each in found) == users
    assert all(each.session is None for each in found)
    assert len({each.user for each in found}) == len(found)


@pytest.mark.parametrize(("experiment", "percentage"), [("exp-a-stopped", 40.0), ("exp-b-active", 50.0)])
def test_the_hash_is_reflexios_own(experiment: str, percentage: float) -> None:
    for user, arm in FUNCTIONS["arms"][experiment].items():
        assert experiment_arm("self-host-org", experiment, user, percentage) == arm
        assert assign_arm(user, holdout=percentage / 100, experiment=experiment) == (arm == "treatment")


def test_the_sampling_fraction_is_reflexios_own() -> None:
    for key, fraction in FUNCTIONS["sampling_fraction"].items():
        user, _, session = key.partition("/")
        assert sampling_fraction("self-host-org", user, session) == pytest.approx(fraction, abs=1e-15)


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_output_tokens_can_be_summed(experiment: str, records: list[SessionRecord]) -> None:
    """As Reflexio sums them: of the requests of the experiment, whatever is not a user's; none where one is missing."""
    found = {}
    for record in records:
        attributed = {each.request_id for each in record.requests if each.experiment == experiment}
        counts = [
            turn.tokens
            for turn in record.interactions
            if turn.request_id in attributed and turn.raw_role.strip().lower() != "user"
        ]
        if attributed and None not in counts:
            found["/".join(record.key)] = sum(count for count in counts if count is not None)
    assert found == FUNCTIONS["output_tokens"][experiment]


def test_request_source_sets_go_by_the_first_request(records: list[SessionRecord]) -> None:
    """By result row Reflexio counts 16 of Control, 22 of Reflexio, 4 without a source and 2 in no set.

    Of the 4, one has no request, and one no user, whose session the id alone tells: here they are where they belong.
    """
    arms = SourceArms({"Control": ["prod_without_reflexio"], "Reflexio": ["prod_with_reflexio"], "none": [""]})
    rows: Counter[str | None] = Counter()
    hits: Counter[str | None] = Counter()
    causes = Counter()
    for record in records:
        reading = arms.read(record)
        causes[reading.cause] += len(record.outcomes) if reading.arm is None else 0
        rows[reading.arm] += len(record.outcomes)
        hits[reading.arm] += sum(outcome.success for outcome in record.outcomes)
    assert rows == {"Control": 16, "Reflexio": 23, "none": 2, None: 3}
    assert hits["Control"] == 8
    assert causes == {None: 0, "request source in no set": 2, "no request": 1}


def test_tags_of_the_last_release_that_kept_them(tagged_log: Path) -> None:
    """18 treated at 7/9, 12 controls at 1/2, 12 untagged at 11/12: by user and session, not by session alone."""
    rows: Counter[str | None] = Counter()
    hits: Counter[str | None] = Counter()
    with open_store(tagged_log) as store:
        assert store.keeps_metadata
        for record in store.sessions(store.account()):
            arm = TagArms().read(record).arm
            rows[arm] += len(record.outcomes)
            hits[arm] += sum(outcome.success for outcome in record.outcomes)
    assert rows == {"treatment": 18, "control": 12, None: 12}
    assert hits == {"treatment": 14, "control": 6, None: 11}


def test_the_reader_gives_it_all(newest_log: Path) -> None:
    log = read(newest_log)
    items = list(log)
    counts = Counter(type(item).__name__ for item in items)
    assert counts == {"Transcript": 44, "Session": 44, "Exchange": 48, "LearningUse": 63, "Stored": 138}
    assert log.left_out.counts == {
        "learning whose text is gone": 6,
        "shadow verdict of another prompt version": 5,
        "duplicate verdict": 4,
        "learning verdict that names no answer": 1,
    }
    assert log.records == len(items) - log.derived + log.left_out.total
    text = "\n".join(log.notes)
    assert "its configuration is read from" in text
    assert "for evaluation only, often the control: 17 sessions" in text
    assert "request sources differ between requests: 1 session ('s40' of 'u08')" in text
    assert "--arms experiment:exp-b-active" in text
    sources = "'request-source:A=prod_with_reflexio;B=prod_without_reflexio'"
    assert f"--arms {sources}" in text  # as a shell takes it


def test_success_is_one_verdict_a_session_and_every_row_with_compat(newest_log: Path) -> None:
    """31 of 44 rows in Reflexio's own count."""
    single = stored(read(newest_log), "outcome", "agent_success")
    assert len({(each.about.user, each.about.id) for each in single if each.about}) == len(single) == 42
    log = read(newest_log, compat="reflexio")
    rows = [each for each in log if isinstance(each, Stored) and each.measure == "outcome"]
    verdicts = [each.result for each in rows if each.result.evaluator != "customer"]
    assert len(verdicts) == 44
    estimate = success_rate.estimate(verdicts, mix_versions=True, duplicates="error")
    assert estimate.value == pytest.approx(31 / 44)
    assert log.left_out.counts["duplicate verdict"] == 0


def test_shadow_verdicts_of_the_pinned_version(newest_log: Path) -> None:
    """20 wins, 11 losses, 8 ties of 39 rows; 3 of them are second opinions on one turn."""
    rows = stored(read(newest_log, compat="reflexio"), "shadow", "shadow_comparison")
    winners = Counter(each.value.winner for each in rows)
    assert winners == {"served": 20, "shadow": 11, "tie": 8}
    significant = Counter(each.value.winner for each in rows if each.value.significant)
    assert significant == {"served": 11, "shadow": 7}  # and a tie is never significant
    assert {each.version for each in rows} == {"v1.1.0"}
    assert len(stored(read(newest_log), "shadow", "shadow_comparison")) == 36
    every = stored(read(newest_log, shadow_version="all", compat="reflexio"), "shadow", "shadow_comparison")
    assert Counter(each.version for each in every) == {"v1.1.0": 39, "v1.0.0": 5}


def test_learning_verdicts(newest_log: Path) -> None:
    log = read(newest_log, compat="reflexio")
    verdicts = stored(log, "learning", "retrieved_learning")
    assert Counter(each.value.relevant for each in verdicts) == {True: 35, False: 10, None: 11}
    assert Counter(each.value.impact for each in verdicts) == {"positive": 25, "neutral": 16, "negative": 8, None: 7}
    responses = {(each.about.attributes or {}).get("response") for each in verdicts if each.about}
    assert len(responses - {None}) == 29
    # One is of a whole session, as older releases judged: it is of no answer, and left out where answers are counted.
    assert len(stored(read(newest_log), "learning", "retrieved_learning")) == len(verdicts) - 1
    assert {each.version for each in verdicts} == {"2"}
    unfinished = [each for each in verdicts if "partial" in each.flags]
    assert unfinished
    assert all((each.about.attributes or {})["grading"] != "complete" for each in unfinished if each.about)


def test_customers_outcomes(newest_log: Path) -> None:
    found = [
        each.result for each in read(newest_log) if isinstance(each, Stored) and each.result.evaluator == "customer"
    ]
    assert Counter(result.status for result in found) == {"verdict": 3, "skipped": 1}
    values = [each.value.success for each in found if isinstance(each, Verdict)]
    assert Counter(values) == {True: 1, False: 2}


def test_uses_of_learnings_say_whether_they_were_cited(newest_log: Path) -> None:
    items = list(read(newest_log))
    uses = [item for item in items if isinstance(item, LearningUse)]
    assert Counter(use.attributes["use"] for use in uses) == Counter(
        "cited" if use.cited else "supplied only" for use in uses
    )
    assert {use.cited for use in uses} == {True, False}
    judged = {each.about.subject for each in stored(items, "learning", "retrieved_learning") if each.about}
    attached = {use.about().subject for use in uses}
    assert len(judged & attached) == 55
    first = uses[0]
    assert first.response_id in {turn.id for turn in first.turns}


def test_exchanges_and_verdicts_on_them_are_of_one_subject(newest_log: Path) -> None:
    items = list(read(newest_log))
    exchanges = {item.about().subject for item in items if isinstance(item, Exchange)}
    verdicts = {each.about.subject for each in stored(items, "shadow", "shadow_comparison") if each.about}
    assert verdicts - exchanges == {("exchange", None, "s-gone", "999999")}  # its session is gone


def test_inputs_are_what_validation_would_make_of_them(newest_log: Path) -> None:
    """They are not validated for speed, and so must read back equal."""
    for item in read(newest_log, arms="experiment:exp-a-stopped"):
        if isinstance(item, Transcript | Session | Exchange | LearningUse):
            assert type(item).model_validate(item.model_dump()) == item
            assert type(item).model_validate_json(item.model_dump_json()) == item


def test_a_verdict_can_be_grouped_as_its_session(newest_log: Path) -> None:
    verdicts = stored(read(newest_log), "outcome", "agent_success")
    groups = success_rate.by(verdicts, "request_source")
    assert {"prod_with_reflexio", "prod_without_reflexio", "beta", "(none)"} <= set(groups)
    by_tag = success_rate.by(verdicts, "tags")
    # Of 41 sessions ten have both tags, ten one, eleven were tagged and have none, and the others are not tagged yet.
    assert {str(tag): estimate.n for tag, estimate in by_tag.items()} == {
        "billing": 20, "vip": 10, "(none)": 11, "None": 11,
    }  # fmt: skip
    assert set(success_rate.by(verdicts, "evaluation_only")) >= {"true", "false"}
    assert corrections.estimate(verdicts).value is not None
    assert all(isinstance(each.value, SessionOutcome) for each in verdicts)

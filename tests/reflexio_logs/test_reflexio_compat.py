"""Every number that Reflexio gave of its own logs, computed anew: each of its answers compared to the last leaf."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest
from reflexio_writing import HERE

from evalr.estimates.reflexio_rules import session_rule
from evalr.reflexio import (
    Store,
    arm_of_tag,
    get_agent_success_evaluation_results,
    get_all_interactions,
    get_dashboard_stats,
    get_interactions,
    get_requests,
    get_retrieved_learning_evaluation_results,
    get_session_outcomes,
    healthz_eval,
    learning_counts,
    lift_tile,
    metadata_groups,
    open_store,
    overview,
    overview_with_groups,
    read_config,
    recent_shadow_comparisons,
    regeneration_candidates,
    regeneration_sample,
    regeneration_strata,
    retrieval_experiment_results,
    retrieval_experiments,
    row_counts,
    session_outcome,
)
from evalr.tallies.moments import Moments

FROM, TO = 1793664000, 1795996799
SINCE, UNTIL = datetime(2026, 11, 3, tzinfo=UTC), datetime(2026, 11, 30, tzinfo=UTC)
NOW = datetime(2026, 11, 30, 13, 48, 20, tzinfo=UTC)
SETS = {"Control": ["prod_without_reflexio"], "Reflexio": ["prod_with_reflexio"]}


def given(name: str) -> Any:
    """What Reflexio answered."""
    folder = next(each for each in ("figures", "answers") if (HERE / each / f"{name}.json").exists())
    return json.loads((HERE / folder / f"{name}.json").read_text(encoding="utf-8"))


def differences(found: Any, wanted: Any, place: str = "") -> Iterator[str]:
    """Each leaf that differs, numbers by more than 1e-9."""
    if isinstance(found, dict) and isinstance(wanted, dict):
        for key in sorted({*found, *wanted}):
            if key not in found or key not in wanted:
                yield f"{place}.{key} is {'missing' if key not in found else 'too much'}"
            else:
                yield from differences(found[key], wanted[key], f"{place}.{key}")
    elif isinstance(found, list) and isinstance(wanted, list):
        if len(found) != len(wanted):
            yield f"{place} has {len(found)}, not {len(wanted)}"
        for number, (one, other) in enumerate(zip(found, wanted, strict=False)):
            yield from differences(one, other, f"{place}[{number}]")
    elif isinstance(found, bool) or isinstance(wanted, bool) or not isinstance(wanted, int | float):
        if found != wanted or type(found) is not type(wanted):
            yield f"{place} is {found!r}, not {wanted!r}"
    elif not isinstance(found, int | float) or not math.isclose(found, wanted, rel_tol=1e-9, abs_tol=1e-9):
        yield f"{place} is {found!r}, not {wanted!r}"


def equal(found: Any, wanted: Any) -> None:
    assert list(differences(found, wanted))[:5] == []


def take_rules(answer: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """Take rule attribution out of an overview: which of several equal rules are shown is chance in Reflexio."""
    sets = answer.get("source_set_comparison", {}).get("sets", [])
    return [part.pop("rule_attribution") for part in (answer, *sets)]


def rank(rule: dict[str, Any]) -> tuple[int, int]:
    return rule["net_sessions"], rule["successes_with"] + rule["failures_with"]


@pytest.fixture(scope="module")
def store(newest_log: Path) -> Iterator[Store]:
    with open_store(newest_log) as opened:
        yield opened


@pytest.fixture(scope="module")
def tagged(tagged_log: Path) -> Iterator[Store]:
    with open_store(tagged_log) as opened:
        yield opened


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("overview_week", {"since": FROM, "until": TO}),
        ("overview_week", {"since": SINCE, "until": UNTIL}),
        ("overview_noshadow", {"since": FROM, "until": TO, "bucket": "day", "include_shadow": False}),
        (
            "overview_day_sets",
            {"since": FROM, "until": TO, "bucket": "day", "source_sets": {**SETS, "Unlabelled": [""]}},
        ),
        ("overview_last_week", {"since": 1795305600, "until": TO, "bucket": "day", "source_sets": SETS}),
        ("overview_empty", {"since": 1, "until": 1000}),
    ],
)
def test_overviews(name: str, options: dict[str, Any], store: Store) -> None:
    account = store.account(strict=True)
    found, wanted = overview(store, **options, now=NOW, account=account), given(name)
    every = overview(store, since=FROM, until=TO, source_sets=SETS)
    known = {(rule["kind"], rule["rule_id"]) for rules in take_rules(every) for rule in rules}
    for ours, theirs in zip(take_rules(found), take_rules(wanted), strict=True):
        # Equals come in any order, and the last of them by chance: the others are the very same.
        assert [rank(rule) for rule in ours] == [rank(rule) for rule in theirs]
        last = rank(theirs[-1]) if theirs else None
        named = {(rule["kind"], rule["rule_id"]): rule for rule in theirs}
        for rule in ours:
            if rank(rule) != last or (rule["kind"], rule["rule_id"]) in named:
                equal(rule, named[rule["kind"], rule["rule_id"]])
    assert known
    equal(found, wanted)


def test_rules_that_reflexio_shows_have_the_numbers_that_it_shows(store: Store, monkeypatch: Any) -> None:
    """All of them, those too that chance put among its five."""
    monkeypatch.setattr("evalr_reflexio.compat.rules.TOP", 1000)
    for name, options in (
        ("overview_day_sets", {"since": FROM, "until": TO, "source_sets": {**SETS, "Unlabelled": [""]}}),
        ("overview_last_week", {"since": 1795305600, "until": TO, "source_sets": SETS}),
    ):
        for ours, theirs in zip(take_rules(overview(store, **options)), take_rules(given(name)), strict=True):
            every = {(rule["kind"], rule["rule_id"]): rule for rule in ours}
            for rule in theirs:
                equal(every[rule["kind"], rule["rule_id"]], rule)


@pytest.mark.parametrize("options", [{}, {"since": FROM, "until": TO, "source_sets": SETS}])
def test_rules_are_the_same_whichever_way_they_are_looked_up(
    store: Store, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    """Session by session, as where the period has few of them, or as interactions stand in the log."""
    monkeypatch.setattr("evalr_reflexio.compat.rules._FEW", 0)
    one_by_one = overview(store, **options, now=NOW)
    monkeypatch.setattr("evalr_reflexio.compat.rules._FEW", 10**9)
    assert one_by_one == overview(store, **options, now=NOW)
    assert one_by_one["rule_attribution"]


ANSWERS: dict[str, Callable[[Store], Any]] = {
    "experiments": retrieval_experiments,
    "experiment_exp-a-stopped": lambda store: retrieval_experiment_results(store, "exp-a-stopped", now=NOW),
    "experiment_exp-b-active": lambda store: retrieval_experiment_results(store, "exp-b-active", now=NOW),
    "experiment_missing": lambda store: retrieval_experiment_results(store, "missing", now=NOW),
    "shadow_recent_default": lambda store: recent_shadow_comparisons(store, now=NOW),
    "shadow_recent_100": lambda store: recent_shadow_comparisons(store, limit=1000, now=NOW),
    "dashboard_stats": lambda store: get_dashboard_stats(store, now=NOW),
    "success_results": lambda store: get_agent_success_evaluation_results(store, limit=1000),
    "success_results_v2": lambda store: get_agent_success_evaluation_results(
        store, agent_version="support-agent@2.1.0", limit=1000
    ),
    "learning_results": lambda store: get_retrieved_learning_evaluation_results(store, limit=1000),
    "learning_results_u01": lambda store: get_retrieved_learning_evaluation_results(store, user_id="u01"),
    "learning_results_window": lambda store: get_retrieved_learning_evaluation_results(
        store, since=datetime(2026, 11, 10, tzinfo=UTC), until=datetime(2026, 11, 20, tzinfo=UTC)
    ),
    "learning_counts": learning_counts,
    "session_outcomes": get_session_outcomes,
    "session_outcome_s-shared-1": lambda store: session_outcome(store, "s-shared-1"),
    "session_outcome_s02": lambda store: session_outcome(store, "s02"),
    "session_outcome_s03": lambda store: session_outcome(store, "s03"),
    "session_outcome_s22": lambda store: session_outcome(store, "s22"),
    "requests_page1": lambda store: get_requests(store, top_k=5),
    "requests_all": lambda store: get_requests(store, top_k=1000),
    "interactions_all": lambda store: get_all_interactions(store, limit=1000),
    "interactions_u01": lambda store: get_interactions(store, "u01"),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_answers(name: str, store: Store) -> None:
    equal(ANSWERS[name](store), given(name))


def test_every_answer_that_there_is_a_copy_of_is_compared() -> None:
    copies = {path.stem for path in (HERE / "figures").glob("*.json")}
    apart = {"healthz_eval", "row_counts", "config", "f2_0.2.25", "f2_user_scoped_expected"}
    assert copies - apart - {name for name in copies if name.startswith("overview_")} <= set(ANSWERS)


def test_row_counts(store: Store) -> None:
    """Reflexio counted before customers reported the four outcomes that it wrote later."""
    assert row_counts(store) == {**given("row_counts"), "session_outcomes": 4}


def test_health_says_what_the_file_knows_and_nothing_of_the_process(store: Store) -> None:
    found, wanted = healthz_eval(store), given("healthz_eval")
    assert set(found) == set(wanted)
    assert set(found["skip_counts"]) == set(wanted["skip_counts"])
    assert set(found["retrieved_learning"]) == set(wanted["retrieved_learning"])
    assert found["liveness"] is found["last_tick_monotonic"] is found["producer_failures_24h"] is None
    assert set(found["skip_counts"].values()) == {None}
    # Its own counts were 0, of a process that had just begun; the file has those of all gradings.
    assert found["retrieved_learning"] == {
        "outcome_counts": {"complete": 6, "degraded": 15},
        "invalid_ref_count": 0,
        "failed_relevance_chunks": 0,
        "failed_impact_chunks": 15,
    }


def test_the_configuration_is_the_same_over_http(tmp_path: Path, newest_log: Path) -> None:
    answer = HERE / "figures" / "config.json"
    over_http, of_file = read_config(answer), read_config(newest_log.with_name("config_self-host-org.json"))
    assert over_http.experiments == of_file.experiments
    assert over_http.shadow_prompt_version == of_file.shadow_prompt_version == "v1.1.0"
    assert over_http.sampling_rate == of_file.sampling_rate == 1.0


# -- the split by tag --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bucket", ["day", "week"])
def test_the_page_with_groups(bucket: Any, tagged: Store) -> None:
    account = tagged.account(strict=True)
    found = overview_with_groups(tagged, since=FROM, until=TO, bucket=bucket, now=NOW, account=account)
    equal(found, given("f2_0.2.25")[bucket])


def test_groups_are_joined_by_the_session_alone_as_there(tagged: Store) -> None:
    found, wanted = metadata_groups(tagged, since=FROM, until=TO), given("f2_0.2.25")
    equal(found["totals"], wanted["totals"])
    equal([found["lift"]["lift"], found["lift"]["half_width"]], wanted["lift"])
    assert found["lift"]["shown"] == "+25.0pp ±36.3pp"


def test_groups_can_be_joined_by_the_user_too(tagged: Store) -> None:
    found, wanted = metadata_groups(tagged, since=FROM, until=TO, join="user"), given("f2_user_scoped_expected")
    tile = found["lift"]
    equal({**found["totals"], "lift": tile["lift"], "half": tile["half_width"]}, wanted)


@pytest.mark.parametrize("case", given("f2_0.2.25")["lift_cases"], ids=str)
def test_lift_cases(case: dict[str, Any]) -> None:
    arms = [
        Moments(clusters=n, rows=n, y=Fraction(p) * n if p in (0.0, 0.5, 1.0) else round(p * n), m=n)
        for n, p in ((case["n_t"], case["p_t"]), (case["n_c"], case["p_c"]))
    ]
    rule = session_rule(*arms)
    equal([rule.lift, rule.half_width], case["out"])


@pytest.mark.parametrize(
    ("treatment", "control", "shown", "is_low"),
    [
        ((0, 0), (5, 2), "no estimate", None),
        ((5, 2), (0, 0), "no estimate", None),
        ((4, 2), (4, 2), "+0.0pp >±50pp", True),
        ((10, 10), (10, 0), "+100.0pp ±0.0pp", False),
        ((100, 80), (20, 12), "+20.0pp ±22.9pp", False),
    ],
)
def test_the_tile_of_the_lift(
    treatment: tuple[int, int], control: tuple[int, int], shown: str, is_low: bool | None
) -> None:
    tile = lift_tile(treatment, control)
    assert (tile["shown"], tile["low_confidence"]) == (shown, is_low)


def test_tags_are_assigned_as_there() -> None:
    cases = given("f2_0.2.25")["assign_cases"]
    assert len(cases) == 12
    for text, group in cases:
        assert (arm_of_tag(eval(text)).arm or "untagged") == group


# -- sessions to grade anew --------------------------------------------------------------------------------------------


def test_candidates_and_strata(store: Store) -> None:
    functions = json.loads((HERE / "functions.json").read_text(encoding="utf-8"))
    found = regeneration_strata(regeneration_candidates(store, since=FROM, until=TO))
    assert found == {"regen_candidates": functions["regen_candidates"], "strata": functions["strata"]}
    sample = regeneration_sample(regeneration_candidates(store, since=FROM, until=TO), size=1, rng=Random(1))
    named = [f"{each.user}/{each.session}/{each.agent_version}/{each.source}" for each in sample]
    assert Counter(named) == Counter(functions["sampled_n1_seed1"])
    whole = regeneration_sample(regeneration_candidates(store, since=FROM, until=TO))
    assert len(whole) == 45

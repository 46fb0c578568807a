"""Shadow judging: what a judge is shown, in which order, and what comes of its answers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from evalr import Failure, FunctionEvaluator, HandOff, InputError, MixedVersionsError, Skip, Verdict
from evalr.errors import DuplicateError
from evalr.inputs import Exchange, Pair, Transcript
from evalr.measures import (
    Preference,
    ShadowEvaluator,
    ShadowWin,
    TaskCompletion,
    each_order,
    first_slot_wins,
    longer_wins,
    recent_comparisons,
    shadow_adjusted,
    shadow_consistency,
    shadow_decided,
    shadow_evaluator,
    shadow_half_tie,
    shadow_net,
    shadow_wins,
    top_disagreements,
)
from evalr.measures.shadow import measure
from evalr.reports.report import report
from evalr.runs import evaluate_all_sync
from evalr.testing import EvaluatorContract

START = datetime(2026, 11, 1, tzinfo=UTC)
Judged = Callable[[Pair], Any]


def judge(function: Judged, *, name: str = "preference", version: str = "1") -> FunctionEvaluator[Pair, Preference]:
    return FunctionEvaluator(name, version, function, Pair, Preference, inline=True)


def exchange(number: int, **fields: Any) -> Exchange:
    texts = {"message": f"Question {number}", "served": "with context", "shadow": "without"}
    place = {"id": f"e{number}", "user": f"u{number % 40}", "session": f"s{number}"}
    return Exchange(**texts | place | {"at": START + timedelta(hours=number)} | fields)


def always_first(pair: Pair) -> Preference:
    return Preference(better="first", significant=True, reason="it comes first")


def prefers_context(pair: Pair) -> Preference:
    better = "first" if pair.first == "with context" else "second"
    return Preference(better=better, significant=True, reason="it used the context")


def evaluated(evaluator: ShadowEvaluator, exchanges: list[Exchange]) -> list[Any]:
    return [evaluator.evaluate_sync(each) for each in exchanges]


EXCHANGES = [exchange(number) for number in range(400)]


class TestContractInBothOrders(EvaluatorContract):
    evaluator = shadow_evaluator(judge(prefers_context), orders="both")
    inputs: ClassVar = EXCHANGES[:3]


class TestContractInRandomOrder(EvaluatorContract):
    evaluator = shadow_evaluator(judge(prefers_context))
    inputs: ClassVar = EXCHANGES[:3]


# -- what the judge is shown ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("orders", ["random", "both"])
def test_the_judge_sees_the_message_and_the_answers_alone(orders: Any) -> None:
    seen: list[Pair] = []

    def look(pair: Pair) -> Preference:
        seen.append(pair)
        return always_first(pair)

    telling = exchange(1, arm="treatment", attributes={"served": "with context"}, treatment="shadow")
    shadow_evaluator(judge(look), orders=orders).evaluate_sync(telling)
    assert len(seen) == {"random": 1, "both": 2}[orders]
    for pair in seen:
        told = pair.model_dump(exclude_defaults=True)
        assert told.keys() == {"message", "first", "second"}
        assert {told["first"], told["second"]} == {"with context", "without"}


def test_a_random_order_is_recorded_and_shows_each_answer_first_about_as_often() -> None:
    results = evaluated(shadow_evaluator(judge(always_first)), EXCHANGES)
    shown = Counter(result.value.shown_first for result in results)
    assert all(result.value.winner == result.value.shown_first for result in results)
    assert 160 < shown["served"] < 240  # four standard deviations of fair draws


def test_the_order_is_drawn_by_what_tells_exchanges_apart() -> None:
    def order(evaluator: ShadowEvaluator, exchanges: list[Exchange]) -> list[Any]:
        return [result.value.shown_first for result in evaluated(evaluator, exchanges)]

    random = shadow_evaluator(judge(always_first))
    first = order(random, EXCHANGES[:64])
    assert order(shadow_evaluator(judge(prefers_context)), EXCHANGES[:64]) == first
    assert order(shadow_evaluator(judge(always_first), seed="other"), EXCHANGES[:64]) != first
    nameless = [each.model_copy(update={"id": None}) for each in EXCHANGES[:64]]
    assert len(set(order(random, nameless))) == 2
    by_user = order(shadow_evaluator(judge(always_first), key="user"), EXCHANGES)
    assert by_user[:40] * 10 == by_user
    # A process drew these once: another one draws the same.
    assert [side[1] for side in first[:16]] == list("hhheeehhheheeeee")


def test_a_key_that_an_exchange_lacks_is_its_failure() -> None:
    failure = shadow_evaluator(judge(always_first), key="team").evaluate_sync(EXCHANGES[0])
    assert isinstance(failure, Failure)
    assert failure.error.endswith("key='team': an exchange needs exactly one text to draw its order by")


def test_ids_that_sessions_share_are_drawn_apart() -> None:
    same = [exchange(number, id="e1", user="ada") for number in range(40)]
    results = evaluated(shadow_evaluator(judge(always_first)), same)
    assert len({result.value.shown_first for result in results}) == 2
    by_session = [each.model_copy(update={"user": f"u{n}", "session": "s1"}) for n, each in enumerate(same)]
    results = evaluated(shadow_evaluator(judge(always_first), key="session"), by_session)
    assert len({result.value.shown_first for result in results}) == 2


# -- what comes of its answers ----------------------------------------------------------------------------------------


def test_a_judge_that_always_prefers_the_first_wins_nothing_in_both_orders() -> None:
    results = evaluated(shadow_evaluator(judge(always_first), orders="both"), EXCHANGES)
    estimate = shadow_decided.estimate(results)
    assert (estimate.value, estimate.n) == (None, 0)
    assert shadow_wins.estimate(results).counts == {"wins": 0, "ties": 400, "losses": 0}
    assert not any(result.value.significant for result in results)
    assert shadow_consistency(results) == 0
    slots = first_slot_wins.estimate(results)
    assert (slots.value, slots.counts["wins"]) == (1, 400)
    assert first_slot_wins.sign_test(results).p < 1e-6
    told = shadow_wins.consistency(each_order(results))
    assert (told.same.value, told.first_slot, told.second_slot) == (0, 400, 0)


def test_asked_in_one_order_the_same_judge_is_found_out_by_the_position() -> None:
    results = evaluated(shadow_evaluator(judge(always_first)), EXCHANGES)
    assert first_slot_wins(results) == 1
    assert shadow_adjusted(results) == pytest.approx(0.5)
    assert shadow_consistency.estimate(results).left_out == {"in one order only": 400}
    assert shadow_wins.position(results).first_slot.value == 1


@pytest.mark.parametrize("orders", ["random", "both"])
def test_a_judge_that_is_right_is_right_in_any_order(orders: Any) -> None:
    results = evaluated(shadow_evaluator(judge(prefers_context), orders=orders), EXCHANGES)
    assert shadow_wins(results) == 1
    assert all(result.value.significant for result in results)
    swapped = [each.model_copy(update={"treatment": "shadow"}) for each in EXCHANGES]
    assert shadow_net(evaluated(shadow_evaluator(judge(prefers_context), orders=orders), swapped)) == -1


ANSWERS = st.builds(
    Preference, better=st.sampled_from(["first", "second"]), significant=st.booleans(), reason=st.none()
) | st.just(Preference(better="tie"))


@given(st.tuples(ANSWERS, ANSWERS))
def test_a_winner_is_one_of_both_orders(answers: tuple[Preference, Preference]) -> None:
    said = iter(answers)
    verdict = shadow_evaluator(judge(lambda pair: next(said)), orders="both").evaluate_sync(EXCHANGES[0])
    assert isinstance(verdict, Verdict)
    served_first = {"first": "served", "second": "shadow", "tie": "tie"}[answers[0].better]
    shadow_first = {"first": "shadow", "second": "served", "tie": "tie"}[answers[1].better]
    value = verdict.value
    assert (value.when_served_first, value.when_shadow_first) == (served_first, shadow_first)
    assert value.consistent is (served_first == shadow_first)
    assert value.winner == (served_first if value.consistent else "tie")
    assert value.significant is bool(value.consistent and answers[0].significant and answers[1].significant)
    # Each order on its own is what one order alone would have said, and says the same of slots and consistency.
    parts = each_order([verdict])
    assert [part.value.shown_first for part in parts] == ["served", "shadow"]  # type: ignore[union-attr]
    pair = shadow_wins.consistency(parts)
    assert pair.same.value == shadow_consistency([verdict])
    slots = first_slot_wins.estimate([verdict]).counts
    assert (slots["wins"], slots["losses"]) == (pair.first_slot, pair.second_slot)
    assert shadow_wins.estimate(parts, per="id", fold="all").counts == shadow_wins.estimate([verdict]).counts


def test_reasons_say_of_which_order_they_are() -> None:
    value = shadow_evaluator(judge(always_first), orders="both").evaluate_sync(EXCHANGES[0]).value  # type: ignore[union-attr]
    assert value.reason == "served shown first: it comes first; shadow shown first: it comes first"


def test_what_both_calls_cost_adds_up() -> None:
    def priced(cost: float | None) -> Judged:
        return lambda pair: Verdict(
            always_first(pair), "x", cost=cost, confidence={"better": 0.75}, flags=("truncated",)
        )

    both = shadow_evaluator(judge(priced(0.25)), orders="both").evaluate_sync(EXCHANGES[0])
    assert isinstance(both, Verdict)
    assert (both.cost, both.flags, both.confidence) == (0.5, ("truncated",), {"winner": 0.75})
    assert both.latency is not None
    assert shadow_evaluator(judge(priced(0.25))).evaluate_sync(EXCHANGES[0]).cost == 0.25
    assert shadow_evaluator(judge(priced(None)), orders="both").evaluate_sync(EXCHANGES[0]).cost is None


@pytest.mark.parametrize("failing", [1, 2])
def test_where_one_call_fails_there_is_no_verdict(failing: int) -> None:
    calls: list[Pair] = []

    def sometimes(pair: Pair) -> Any:
        calls.append(pair)
        if len(calls) == failing:
            raise ConnectionError("cut")
        return Verdict(always_first(pair), "x", cost=0.25)

    failure = shadow_evaluator(judge(sometimes), orders="both").evaluate_sync(EXCHANGES[0])
    assert isinstance(failure, Failure)
    assert isinstance(failure.exception, ConnectionError)
    assert len(calls) == failing
    assert failure.about == EXCHANGES[0].about()
    assert ("with the shadow answer first: " in failure.error) is (failing == 2)
    estimate = shadow_wins.estimate(
        [failure, *evaluated(shadow_evaluator(judge(prefers_context), orders="both"), EXCHANGES[1:4])]
    )
    assert estimate.left_out == {"failed": 1}
    assert estimate.bounds == (0.75, 1)


@pytest.mark.parametrize(("answer", "kind"), [(Skip("empty"), Skip), (HandOff("unsure"), HandOff)])
@pytest.mark.parametrize("orders", ["random", "both"])
def test_skips_and_hand_offs_stay_what_they_are(answer: Any, kind: type, orders: Any) -> None:
    evaluator = shadow_evaluator(judge(lambda pair: answer), orders=orders)
    result = evaluator.evaluate_sync(EXCHANGES[0])
    assert isinstance(result, kind)
    assert (result.evaluator, result.version) == ("shadow", f"preference@1:{orders}")  # type: ignore[attr-defined]


def test_the_longer_answer_is_recorded() -> None:
    lengths = [("longer", "short"), ("short", "longer"), ("equal", "EQUAL")]
    exchanges = [exchange(n, served=served, shadow=shadow) for n, (served, shadow) in enumerate(lengths)]

    def by_length(pair: Pair) -> Preference:
        return Preference(better="first" if len(pair.first) > len(pair.second) else "second")

    for orders in ("random", "both"):
        results = evaluated(shadow_evaluator(judge(by_length), orders=orders), exchanges)  # type: ignore[arg-type]
        assert [result.value.longer for result in results] == ["served", "shadow", "neither"]
        estimate = longer_wins.estimate(results)
        assert (estimate.value, estimate.n, estimate.left_out) == (1, 2, {"of equal length": 1})
    assert longer_wins.estimate([ShadowWin(winner="served")]).left_out == {"unknown": 1}


# -- versions ---------------------------------------------------------------------------------------------------------


def test_versions_are_those_of_the_judge_and_the_order() -> None:
    versions = [
        shadow_evaluator(judge(always_first, version=version), **options).version  # type: ignore[arg-type]
        for version in ("1", "2")
        for options in ({}, {"orders": "both"}, {"seed": "other"}, {"key": "user"})
    ]
    assert versions[:4] == [
        "preference@1:random",
        "preference@1:both",
        "preference@1:random:seed=other",
        "preference@1:random:key=user",
    ]
    assert len(set(versions)) == 8
    parts = [{"key": "a:seed=b"}, {"key": "a", "seed": "b"}, {"key": 'a":seed="b'}, {"seed": "b\n"}]
    spelled = [shadow_evaluator(judge(always_first), **options).version for options in parts]  # type: ignore[arg-type]
    assert len(set(spelled)) == 4
    assert "\n" not in "".join(spelled)


def test_prompts_and_orders_are_never_pooled() -> None:
    one = evaluated(shadow_evaluator(judge(prefers_context)), EXCHANGES[:5])
    other = evaluated(shadow_evaluator(judge(prefers_context, version="2")), EXCHANGES[5:9])
    both = evaluated(shadow_evaluator(judge(prefers_context), orders="both"), EXCHANGES[5:9])
    for more in (other, both):
        for summary in measure.summaries():
            with pytest.raises(MixedVersionsError):
                summary.estimate(one + more)


def test_what_is_no_judge_of_pairs_is_refused() -> None:
    completion = FunctionEvaluator("x", "1", lambda t: None, Transcript, TaskCompletion)
    for wrong in (completion, always_first):
        with pytest.raises(InputError, match="a judge of pairs is an evaluator that reads a Pair"):
            shadow_evaluator(wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="orders='twice' must be 'random' or 'both'"):
        shadow_evaluator(judge(always_first), orders="twice")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="leaves nothing to chance"):
        shadow_evaluator(judge(always_first), orders="both", seed="1")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"winner": "served", "when_served_first": "served"}, "belong together"),
        ({"winner": "served", "when_served_first": "served", "when_shadow_first": "tie"}, "else there is a tie"),
        ({"winner": "tie", "when_served_first": "served", "when_shadow_first": "served"}, "else there is a tie"),
        (
            {"winner": "tie", "when_served_first": "tie", "when_shadow_first": "tie", "shown_first": "served"},
            "shown_first is of one order",
        ),
    ],
)
def test_what_contradicts_itself_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        ShadowWin(**fields)


# -- runs, reports ----------------------------------------------------------------------------------------------------


def test_a_run_with_a_journal_asks_for_what_is_missing(tmp_path: Path) -> None:
    calls: list[Pair] = []

    def counted(pair: Pair) -> Preference:
        calls.append(pair)
        return prefers_context(pair)

    evaluator = shadow_evaluator(judge(counted), orders="both")
    first = list(evaluate_all_sync(evaluator, EXCHANGES[:5], journal=tmp_path / "j.db"))
    again = list(evaluate_all_sync(evaluator, EXCHANGES[:7], journal=tmp_path / "j.db"))
    assert (len(first), len(again), len(calls)) == (5, 7, 14)
    assert shadow_wins.estimate(again).counts == {"wins": 7, "ties": 0, "losses": 0}


def test_the_headline_is_the_published_line() -> None:
    outcomes = ["served"] * 134 + ["tie"] * 52 + ["shadow"] * 14
    results = [
        Verdict(ShadowWin(winner=winner), "shadow", about=exchange(n, weight=2.5).about())  # type: ignore[arg-type]
        for n, winner in enumerate(outcomes)
    ]
    line = "67% win rate · 134 wins · 52 ties · 14 losses · n=200 sampled"
    assert str(shadow_wins.estimate(results)).startswith(line)
    views = [summary(results) for summary in (shadow_net, shadow_decided, shadow_half_tie)]
    assert views == pytest.approx([0.6, 134 / 148, 0.8])


def test_a_report_has_the_rows_with_why_some_are_empty() -> None:
    results = evaluated(shadow_evaluator(judge(prefers_context), orders="both"), EXCHANGES[:40])
    found = report([*EXCHANGES[:40], *results], measures=[measure], now=START + timedelta(days=30))
    assert found["shadow_consistent"].value == 1
    assert found["shadow"].n == 40
    assert "left out: 40 both orders asked" in " ".join(str(found).split())


# -- lists ------------------------------------------------------------------------------------------------------------


def won(number: int, winner: Any, **fields: Any) -> Any:
    return Verdict(ShadowWin(winner=winner, **fields), "shadow", "1", exchange(number).about())


def test_recent_comparisons_are_the_newest_first() -> None:
    results = [
        won(3, "served"),
        won(1, "tie"),
        won(7, "shadow"),
        won(5, "served"),
        Failure("cut", about=EXCHANGES[9].about()),
    ]
    found = recent_comparisons(results, [each for each in EXCHANGES if each.id != "e1"], n=2)
    assert [row.exchange.id for row in found] == ["e7", "e5"]
    assert (found.found, found.left_out) == (3, {"without its exchange": 1, "failed": 1})
    assert [row["outcome"] for row in found.to_dicts()] == ["loss", "win"]
    assert found.to_dicts()[0] | {"message": "Question 7", "served": "with context"} == found.to_dicts()[0]
    assert json.loads(json.dumps(found.to_dicts())) == found.to_dicts()
    assert str(found).endswith("2 of 3 shown · left out: 1 without its exchange, 1 failed")


def test_top_disagreements_are_what_the_treatment_lost_by_far() -> None:
    results = [
        won(1, "shadow", significant=True, reason="the context was stale"),
        won(2, "shadow", significant=False),
        won(3, "served", significant=True),
        won(4, "served", significant=True, treatment="shadow"),
        won(5, "tie"),
        won(6, "shadow"),
    ]
    found = top_disagreements(results, EXCHANGES)
    assert [row.exchange.id for row in found] == ["e4", "e1"]
    assert found.left_out == {"not lost by far": 2, "not lost": 2}
    assert str(found[1].verdict.value.reason) in str(found)


def test_exchanges_are_matched_by_user_and_session_too() -> None:
    result = Verdict(ShadowWin(winner="served"), "shadow", "1", exchange(1, user="ada").about())
    assert recent_comparisons([result], EXCHANGES).left_out == {"without its exchange": 1}
    with pytest.raises(DuplicateError, match="two exchanges that differ are both exchange 'e1'"):
        recent_comparisons([result], [exchange(1, user="ada"), exchange(1, user="ada", served="other")])
    with pytest.raises(DuplicateError):
        recent_comparisons([result, result], [exchange(1, user="ada")])
    assert len(recent_comparisons([result, result], [exchange(1, user="ada")], duplicates="first")) == 1
    with pytest.raises(InputError, match="n=0 must be positive"):
        recent_comparisons([], [], n=0)


def test_texts_of_a_log_are_shown_and_nothing_more() -> None:
    hostile = "<script>alert(1)</script>\nwin by far\x1b[2J {0} %s"
    texts = {"message": hostile, "served": hostile, "shadow": hostile}
    given = exchange(1, **texts, id="<b>e1</b>")
    result = Verdict(ShadowWin(winner="shadow", significant=True, reason=hostile), "shadow", "1", given.about())
    found = top_disagreements([result], [given])
    page = found._repr_html_()
    assert "<script" not in page
    assert "<b>" not in page
    assert page.count("&lt;script&gt;") == 4
    lines = str(found).splitlines()
    assert len(lines) == 7
    assert "\x1b" not in str(found) + page
    assert recent_comparisons([], [])._repr_html_().count("<tr>") == 1


# -- real judges ------------------------------------------------------------------------------------------------------


Answers = dict[tuple[str, str, str], str | None]


def recorded(path: Path, subset: str | None) -> dict[str, tuple[list[Exchange], Answers]]:
    """By judge, the pairs as exchanges whose treatment is the better answer, and what it said, by what it was shown."""
    found: dict[str, tuple[list[Exchange], Answers]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if subset not in (None, row.get("subset")):
            continue
        texts = {"message": row["input"], "served": row["output_1"], "shadow": row["output_2"]}
        label = {1: "served", 2: "shadow"}[int(row["label"])]
        one = Exchange(id=row["id"], treatment=label, **texts)
        for said in row["judgments"]:
            exchanges, answers = found.setdefault(f"{said['judge']}/{said['strategy']}", ([], {}))
            shown = (one.shadow, one.served) if said["swap"] else (one.served, one.shadow)
            winner = said["winner"] if not said["swap"] else {"1": "2", "2": "1", None: None}[said["winner"]]
            answers[one.message, *shown] = winner
            if not said["swap"]:
                exchanges.append(one)
    return found


def of_truth(text: str) -> tuple[int, int]:
    hits, total = text.split(" = ", maxsplit=1)[0].split(" / ")
    return int(hits), int(total)


@pytest.mark.parametrize(
    ("file", "subset", "truths", "prefix"),
    [
        ("llmbar_dev.jsonl", "Natural", "truth.json", "LLMBar/Natural/"),
        ("llmbar_dev.jsonl", "Neighbor", "truth.json", "LLMBar/Adversarial/Neighbor/"),
        ("llmbar_dev.jsonl", "Manual", "truth.json", "LLMBar/Adversarial/Manual/"),
        ("processed_MT-Bench.jsonl", None, "processed_MT-Bench_truth.json", ""),
    ],
)
def test_published_accuracy_and_consistency_of_judges(
    real_logs: Path, file: str, subset: str | None, truths: str, prefix: str
) -> None:
    folder = real_logs / "llmbar"
    truth = json.loads((folder / truths).read_text(encoding="utf-8"))
    judges = recorded(folder / file, subset)
    assert len(judges) >= 4
    for name, (exchanges, answers) in judges.items():
        said = {"1": "first", "2": "second", None: "tie"}  # the source counts no answer as a wrong one

        def looked_up(pair: Pair, answers: Any = answers, said: Any = said) -> Preference:
            return Preference(better=said[answers[pair.message, pair.first, pair.second]])

        results = evaluated(shadow_evaluator(judge(looked_up, name=name), orders="both"), exchanges)
        published = truth[prefix + name]
        both = shadow_wins.estimate(results).counts
        assert (both["wins"], len(results)) == of_truth(published["correct_both"])
        same = shadow_consistency.estimate(results).counts
        assert (same["hits"], same["total"]) == of_truth(published["equal"])
        parts = each_order(results)
        for first, key in (("served", "correct_False"), ("shadow", "correct_True")):
            alone = shadow_wins.estimate([part for part in parts if part.value.shown_first == first])  # type: ignore[union-attr]
            assert (alone.counts["wins"], alone.n) == of_truth(published[key])
        assert shadow_wins(parts) == pytest.approx(float(published["correct_average"].rstrip("%")) / 100)

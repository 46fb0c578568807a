"""Results: what they hold, how they become scores, and how one is chosen for each subject."""

from __future__ import annotations

import copy
import json
import math
import pickle
from dataclasses import FrozenInstanceError, fields, replace
from datetime import UTC, datetime, timedelta, timezone
from enum import Enum, IntEnum, StrEnum
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError, computed_field

from evalr import (
    About,
    DuplicateError,
    Failure,
    FieldTypeError,
    HandOff,
    InputError,
    Skip,
    Verdict,
    one_per_subject,
    scores,
    tag,
)
from evalr.inputs import Session, Transcript
from evalr.verdicts import NO_VERDICT, Result, about_of, describe

START = datetime(2026, 9, 28, 9, 0, tzinfo=UTC)
LONE = "\ud83d"


class Said(BaseModel):
    done: bool


class SaidMore(Said):
    why: str = ""


def about(id: str | None = "s", user: str | None = None, session: str | None = None, **fields: Any) -> About:  # noqa: A002
    return About("session", id, user, session, **fields)


def verdict(id: str | None = "s", *, done: bool = True, as_of: datetime | None = None, **whom: Any) -> Verdict[Said]:  # noqa: A002
    return Verdict(Said(done=done), "said", about=about(id, **whom), as_of=as_of)


EVERY_KIND = [Verdict(Said(done=True), "said"), Failure("broke"), Skip("not asked"), HandOff("unsure")]


# ---------------------------------------------------------------------------------------------------------------------
# Results
# ---------------------------------------------------------------------------------------------------------------------


def test_a_verdict_a_failure_a_skip_and_a_hand_off_are_four_things() -> None:
    assert [result.status for result in EVERY_KIND] == ["verdict", "failed", "skipped", "handed_off"]
    assert [isinstance(result, NO_VERDICT) for result in EVERY_KIND] == [False, True, True, True]
    for one in EVERY_KIND:
        assert sum(isinstance(one, type(other)) for other in EVERY_KIND) == 1
    assert Failure("same") != Skip("same") != HandOff("same") != Failure("same")


@pytest.mark.parametrize("result", EVERY_KIND, ids=lambda result: result.status)
def test_every_kind_of_result_is_stamped_alike(result: Result[Said]) -> None:
    stamp = {
        "evaluator": "other",
        "version": "2",
        "about": about(),
        "latency": 0.5,
        "cost": 0.25,
        "as_of": START,
    }
    stamped = replace(result, **stamp)
    assert {name: getattr(stamped, name) for name in stamp} == stamp
    assert about_of(stamped) == about()
    assert about_of(Said(done=True)) is None


@pytest.mark.parametrize("result", EVERY_KIND, ids=lambda result: result.status)
def test_results_pickle_copy_and_are_frozen(result: Result[Said]) -> None:
    stamped = replace(result, about=about("x", user="u", at=START, attributes={"a": ["b"]}), as_of=START, cost=0.5)
    assert pickle.loads(pickle.dumps(stamped)) == stamped
    assert copy.deepcopy(stamped) == stamped
    assert copy.copy(stamped) == stamped
    with pytest.raises(FrozenInstanceError):
        stamped.cost = 1.0  # type: ignore[misc]


def test_a_verdict_keeps_the_type_of_its_value_through_a_pickle() -> None:
    for value in (Said(done=True), SaidMore(done=False, why="because")):
        kept = pickle.loads(pickle.dumps(Verdict(value, "said", confidence={"done": 0.5}, flags=("truncated",))))
        assert type(kept.value) is type(value)
        assert (kept.value, kept.confidence, kept.flags) == (value, {"done": 0.5}, ("truncated",))


def test_a_verdict_says_its_type_for_the_reader_only() -> None:
    assert Verdict[Said](Said(done=True), "said") == Verdict(Said(done=True), "said")


class TwoPartError(Exception):
    def __init__(self, first: str, second: str) -> None:
        super().__init__(first)
        self.second = second


def validation_error() -> ValidationError:
    with pytest.raises(ValidationError) as caught:
        Said(done="perhaps")  # type: ignore[arg-type]
    return caught.value


@pytest.mark.parametrize("error", [ValueError("no"), TwoPartError("a", "b"), validation_error(), KeyError(lambda: 0)])
def test_a_failure_pickles_whatever_error_it_carries(error: Exception) -> None:
    failure = Failure("broke", "said", "1", about(), 0.5, 0.25, START, exception=error)
    assert failure.exception is error
    kept = pickle.loads(pickle.dumps(failure))
    assert kept == failure
    assert [getattr(kept, field.name) for field in fields(Failure)] == [
        "broke",
        "said",
        "1",
        about(),
        0.5,
        0.25,
        START,
        None,
    ]


@pytest.mark.parametrize("amount", [math.nan, math.inf, -math.inf, -0.01])
@pytest.mark.parametrize("name", ["cost", "latency"])
@pytest.mark.parametrize("result", EVERY_KIND, ids=lambda result: result.status)
def test_a_cost_or_latency_is_a_finite_amount_or_unknown(result: Result[Said], name: str, amount: float) -> None:
    with pytest.raises(InputError, match=rf"{name}=.* left out \(None\) where it is unknown"):
        replace(result, **{name: amount})
    for fine in (None, 0, 0.0, 3):
        assert getattr(replace(result, **{name: fine}), name) == fine


def test_an_unknown_cost_is_not_zero() -> None:
    assert Verdict(Said(done=True), "said").cost is None
    assert Verdict(Said(done=True), "said").cost != 0


@pytest.mark.parametrize("result", EVERY_KIND, ids=lambda result: result.status)
def test_a_naive_reading_time_is_refused_and_told_what_to_do(result: Result[Said]) -> None:
    with pytest.raises(InputError, match=r"as_of=2026-09-28T00:00:00 has no time zone: pass an aware datetime"):
        replace(result, as_of=datetime(2026, 9, 28))  # noqa: DTZ001


@pytest.mark.parametrize("result", EVERY_KIND, ids=lambda result: result.status)
def test_what_it_is_about_is_held_to_the_rules_of_inputs(result: Result[Said]) -> None:
    with pytest.raises(InputError, match=r"at=2026-09-28T00:00:00 has no time zone: pass an aware datetime"):
        replace(result, about=about(at=datetime(2026, 9, 28)))  # noqa: DTZ001
    for weight in (0, -1, math.nan, math.inf):
        with pytest.raises(InputError, match=rf"weight={weight} must be positive and finite"):
            replace(result, about=about(weight=weight))


@pytest.mark.parametrize("confidence", [math.nan, math.inf, -0.1, 1.1])
def test_a_confidence_is_from_0_to_1(confidence: float) -> None:
    with pytest.raises(InputError, match=r"confidence of 'done' is .* from 0 to 1"):
        Verdict(Said(done=True), "said", confidence={"done": confidence})
    assert Verdict(Said(done=True), "said", confidence={"done": 0, "why": 1}).confidence == {"done": 0, "why": 1}


# ---------------------------------------------------------------------------------------------------------------------
# Scores
# ---------------------------------------------------------------------------------------------------------------------


class Colour(Enum):
    RED = "red"


class Word(StrEnum):
    YES = "yes"


class Grade(IntEnum):
    GOOD = 2


class All(BaseModel):
    flag: bool = True
    side: Literal["left", 1, None] = "left"  # noqa: PYI061
    colour: Colour = Colour.RED
    word: Word = Word.YES
    grade: Grade = Grade.GOOD
    colours: list[Colour] = [Colour.RED, Colour.RED]
    words: list[Literal["a", "b"]] = []
    count: int = 3
    share: float = 0.5
    why: str | None = None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def double(self) -> int:
        return self.count * 2


def test_every_field_is_a_score_with_a_plain_value() -> None:
    found = {score.name: score.value for score in scores(Verdict(All(), "all"))}
    assert found == {
        "all.flag": True,
        "all.side": "left",
        "all.colour": "red",
        "all.word": "yes",
        "all.grade": 2,
        "all.colours": ["red", "red"],
        "all.words": [],
        "all.count": 3,
        "all.share": 0.5,
        "all.why": None,
        "all.double": 6,
    }
    assert {type(value) for value in found.values()} == {bool, str, int, list, float, type(None)}


def test_a_score_says_whose_it_is() -> None:
    who = about("s", user="u")
    [score] = scores(Verdict(Said(done=False), "said", "2:x", who, as_of=START))
    assert (score.name, score.value) == ("said.done", False)
    assert (score.about, score.evaluator, score.version, score.as_of) == (who, "said", "2:x", START)


def test_a_subclass_scores_the_fields_it_adds() -> None:
    value: Said = SaidMore(done=True, why="because")
    assert [score.name for score in scores(Verdict(value, "said"))] == ["said.done", "said.why"]


def test_what_is_no_verdict_type_has_no_scores() -> None:
    class Bad(BaseModel):
        when: datetime

    with pytest.raises(FieldTypeError, match=r"Bad\.when"):
        scores(Verdict(Bad(when=START), "bad"))


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_no_score_is_nan_or_a_text_that_cannot_be_stored(number: float) -> None:
    found = {score.name: score.value for score in scores(Verdict(All(share=number, why=f"a{LONE}b"), "all"))}
    assert found["all.share"] is None
    assert found["all.why"] == "a\ufffdb"
    json.dumps(found, allow_nan=False, ensure_ascii=False).encode()


def test_a_score_of_nothing_in_particular_has_no_id() -> None:
    for nobody in (None, about(None), about(None, user="u", session="s")):
        assert [score.id for score in scores(Verdict(Said(done=True), "said", about=nobody))] == [None]


def test_a_later_reading_of_one_subject_has_the_same_score_ids() -> None:
    first = verdict(user="u", as_of=START)
    later = replace(first, value=Said(done=False), as_of=START + timedelta(days=1), latency=1, cost=2)
    assert scores(first)[0].id is not None
    assert [score.id for score in scores(later)] == [score.id for score in scores(first)]


hostile = st.text(st.characters(exclude_categories=()) | st.sampled_from('"\\,[]:/.\0 ' + LONE), max_size=4)
parts = st.tuples(
    hostile, hostile, st.none() | hostile, st.none() | hostile, hostile, hostile
)  # kind, id, user, session, evaluator, version


@given(st.lists(parts, min_size=2, max_size=2, unique=True))
def test_two_subjects_evaluators_or_versions_never_share_a_score_id(two: list[tuple[Any, ...]]) -> None:
    ids: list[str | None] = []
    for kind, id_, user, session, evaluator, version in two:
        given_verdict = Verdict(All(), evaluator, version, About(kind, id_, user, session))
        found = scores(given_verdict)
        ids += [score.id for score in found]
        assert [score.id for score in scores(pickle.loads(pickle.dumps(given_verdict)))] == [s.id for s in found]
    assert None not in ids
    assert len(set(ids)) == len(ids)
    "".join(name or "" for name in ids).encode("ascii")


@pytest.mark.parametrize("part", range(6))
def test_whatever_part_differs_the_score_ids_differ(part: int) -> None:
    both = []
    for last in ("x", "y"):
        kind, id_, user, session, evaluator, version = (last if n == part else "x" for n in range(6))
        both.append(scores(Verdict(Said(done=True), evaluator, version, About(kind, id_, user, session)))[0].id)
    assert both[0] != both[1]


def test_parts_that_would_run_together_stay_apart() -> None:
    subjects = [
        about("a", "b", None),
        about("a", None, "b"),
        about("a:b"),
        about('a", "b'),
        about("a", "None"),
        about("a", "null"),
    ]
    ids = [scores(Verdict(Said(done=True), "said", about=each))[0].id for each in [*subjects, about("a")]]
    assert len(set(ids)) == len(ids)


# ---------------------------------------------------------------------------------------------------------------------
# One per subject
# ---------------------------------------------------------------------------------------------------------------------


def test_a_second_result_of_a_subject_is_an_error_that_names_it_and_both_positions() -> None:
    results = [verdict("a"), verdict("b", user="u", session="t"), Failure("broke"), verdict("b", user="u", session="t")]
    with pytest.raises(
        DuplicateError, match=r"results 1 and 3 are both about session 'b' of 't' of user 'u'.*duplicates="
    ):
        list(one_per_subject(results))
    assert list(one_per_subject(results[:3])) == results[:3]


def test_a_failure_and_a_verdict_of_one_subject_are_two_results_of_it() -> None:
    for other in (Failure("x", about=about("a")), Skip("x", about=about("a")), HandOff("x", about=about("a"))):
        with pytest.raises(DuplicateError, match="results 0 and 1"):
            list(one_per_subject([verdict("a"), other]))


def test_first_keeps_the_first_and_the_order() -> None:
    results = [verdict("a", done=True), verdict("b"), verdict("a", done=False), verdict("c"), verdict("b", done=False)]
    assert list(one_per_subject(results, duplicates="first")) == [results[0], results[1], results[3]]


def test_latest_keeps_the_latest_reading_in_the_place_of_the_first() -> None:
    day = [START + timedelta(days=n) for n in range(4)]
    results = [verdict("a", as_of=day[1]), verdict("b"), verdict("a", as_of=day[3]), verdict("a", as_of=day[2])]
    assert list(one_per_subject(results, duplicates="latest")) == [results[2], results[1]]


def test_latest_of_equals_is_the_last_given() -> None:
    for time in (None, START):
        results = [verdict("a", done=True, as_of=time), verdict("a", done=False, as_of=time)]
        assert list(one_per_subject(results, duplicates="latest")) == [results[1]]
    tokyo = START.astimezone(timezone(timedelta(hours=9)))
    results = [verdict("a", done=True, as_of=START), verdict("a", done=False, as_of=tokyo)]
    assert list(one_per_subject(results, duplicates="latest")) == [results[1]]


times = st.none() | st.integers(0, 3).map(lambda n: START + timedelta(days=n))


@given(st.lists(st.tuples(st.sampled_from("ab"), times)))
def test_the_latest_does_not_depend_on_what_was_given_between(readings: list[tuple[str, datetime | None]]) -> None:
    results = [verdict(name, as_of=time) for name, time in readings]
    kept = {result.about.id: result for result in one_per_subject(results, duplicates="latest") if result.about}
    for name in {name for name, _ in readings}:
        own = [result for result in results if result.about and result.about.id == name]
        timed = [result for result in own if result.as_of is not None] or own
        latest = max((result.as_of for result in timed if result.as_of is not None), default=None)
        expected = [result for result in timed if result.as_of == latest][-1]
        assert kept[name] is expected


@pytest.mark.parametrize("duplicates", ["error", "first", "latest"])
def test_what_is_about_nothing_in_particular_passes(duplicates: Literal["error", "first", "latest"]) -> None:
    plain: list[object] = [
        Said(done=True),
        Said(done=True),
        verdict(None),
        verdict(None),
        Failure("x"),
        Failure("x"),
        1,
        1,
    ]
    assert list(one_per_subject(plain, duplicates=duplicates)) == plain


@pytest.mark.parametrize("duplicates", ["error", "first", "latest"])
def test_a_session_id_that_two_users_share_is_no_duplicate(duplicates: Literal["error", "first", "latest"]) -> None:
    results = [verdict("a", user=user) for user in ("me", "you", None)]
    assert list(one_per_subject(results, duplicates=duplicates)) == results


def test_another_word_for_duplicates_is_refused_at_once() -> None:
    with pytest.raises(InputError, match="'error', 'first' or 'latest'"):
        one_per_subject([], duplicates="last")  # type: ignore[arg-type]


def test_an_error_names_a_hostile_id_in_quotes() -> None:
    assert describe(verdict("a'\n{x}")) == 'session "a\'\\n{x}"'
    assert describe(1) == describe(Failure("x")) == describe(verdict(None)) == "a value without an id"


# ---------------------------------------------------------------------------------------------------------------------
# Tagging one measure's results with another's reading
# ---------------------------------------------------------------------------------------------------------------------


class Ended(BaseModel):
    how: Literal["dropped", "continued"]


def ended(how: Literal["dropped", "continued"], who: About) -> Verdict[Ended]:
    return Verdict(Ended(how=how), "ended", about=who)


def attributes(results: list[Result[Said]]) -> list[Any]:
    return [None if result.about is None else result.about.attributes for result in results]


def test_one_measures_reading_becomes_anothers_attribute_by_user_and_session() -> None:
    session = Session(id="s", user="u", attributes={"agent": "a"})
    completions: list[Result[Said]] = [
        Verdict(Said(done=True), "said", about=Transcript(id="s", user="u", request="").about()),
        Failure("broke", about=session.about()),
        Verdict(Said(done=True), "said", about=Transcript(id="s", user="other", request="").about()),
        Verdict(Said(done=True), "said", about=about("part", "u", "s")),
        Verdict(Said(done=True), "said"),
    ]
    tagged = tag(completions, [ended("dropped", session.about())], "end", lambda v: v.how)
    assert attributes(tagged) == [{"end": "dropped"}, {"agent": "a", "end": "dropped"}, {}, {"end": "dropped"}, None]
    assert [replace(result, about=None) for result in tagged] == [replace(result, about=None) for result in completions]
    assert completions[1].about is not None
    assert completions[1].about.attributes == {"agent": "a"}


def test_several_readings_of_a_session_put_it_into_several_groups_once_each() -> None:
    parts = [ended(how, about(str(n), "u", "s")) for n, how in enumerate(["dropped", "continued", "dropped"])]  # type: ignore[arg-type]
    assert attributes(tag([verdict("s", user="u")], parts, "end", lambda v: v.how)) == [
        {"end": ["dropped", "continued"]}
    ]


def test_what_says_nothing_tags_nothing() -> None:
    silent: list[Result[Ended]] = [
        Failure("broke", about=about("s")),
        Skip("no", about=about("s")),
        HandOff("unsure", about=about("s"), verdict=ended("dropped", about("s"))),
        ended("dropped", about(None)),
        Verdict(Ended(how="dropped"), "ended"),
    ]
    results: list[Result[Said]] = [verdict("s")]
    assert tag(results, silent, "end", lambda v: v.how) == results
    assert tag(results, [ended("dropped", about("s"))], "end", lambda v: None) == results


def test_a_tag_is_a_text() -> None:
    with pytest.raises(
        InputError, match=r"tag 'done': read gave True, which is no text to group by; wrap it in str\(\)"
    ):
        tag([verdict("s")], [verdict("s")], "done", lambda v: v.done)

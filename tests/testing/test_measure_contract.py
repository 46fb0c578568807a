"""The contract of measures: ours hold to it, and each of its checks can fail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel

from evalr import Failure, FunctionEvaluator, HandOff, Mean, Rate, Result, Skip, Summary, Tally, Verdict
from evalr.estimates.estimate import Estimate
from evalr.inputs import About, Activity, History, Input, Revision, Session
from evalr.measures import Measure, SessionOutcome, TaskCompletion, installed_measures
from evalr.testing import MeasureContract

MEASURES = installed_measures().loaded
NINE = datetime(2026, 9, 28, 9, 0, tzinfo=UTC)
NOW = NINE + timedelta(days=20)


def session(number: int) -> Session:
    """Sessions that end in every way: dropped, proposed, returned late, closed, pending."""
    begun = NINE + timedelta(hours=number)
    asked = Activity(at=begun, role="person")
    said = Activity(at=begun + timedelta(minutes=2), role="agent", kind="proposal" if number % 5 == 1 else "message")
    back = Activity(at=begun + timedelta(minutes=30 * number), role="person")
    closed = Activity(at=begun + timedelta(minutes=5), role="agent", kind="closed")
    further = [[], [], [back], [closed], [back]][number % 5]
    return Session(id=f"s{number}", user=f"u{number % 4}", activities=[asked, said, *further])


def history(number: int) -> History:
    begun = NINE + timedelta(days=number)
    texts = ["a line that stands", "a line that stood, nearly", "all of it is new now"]
    later = Revision(at=begun + timedelta(days=number % 3), role="person", text=texts[number % 3])
    return History(
        id=f"h{number}", user=f"u{number % 3}", revisions=[Revision(at=begun, role="agent", text=texts[0]), later]
    )


def about(number: int) -> About:
    return About("transcript", f"t{number}", f"u{number % 3}", at=NINE + timedelta(hours=number))


def stored(name: str, values: Sequence[BaseModel]) -> list[Result[Any]]:
    verdicts = [Verdict(value, name, "1", about(number)) for number, value in enumerate(values)]
    others = [
        Failure("no answer", name, "1", about(100)),
        Skip("not asked", name, "1", about(101)),
        HandOff("to people", name, "1", about(102)),
    ]
    return [*verdicts, *others]


SESSIONS = [session(number) for number in range(15)]


# Ours


class TestDropOff(MeasureContract):
    measure = MEASURES["drop_off"]
    inputs = SESSIONS
    now = NINE + timedelta(hours=14, minutes=20)
    other_settings: ClassVar[dict[str, Any]] = {"window": timedelta(minutes=10)}


class TestWaits(MeasureContract):
    measure = MEASURES["waits"]
    inputs = SESSIONS
    now = NOW
    other_settings: ClassVar[dict[str, Any]] = {"window": timedelta(minutes=10)}


class TestRewrites(MeasureContract):
    measure = MEASURES["rewrites"]
    inputs: ClassVar[list[History]] = [history(number) for number in range(12)]
    now = NOW
    other_settings: ClassVar[dict[str, Any]] = {"window": timedelta(days=1), "threshold": 0.9}


class TestCompletion(MeasureContract):
    measure = MEASURES["completion"]
    results = stored("judge", [TaskCompletion(completed=n % 3 > 0, quality=1 + n % 5) for n in range(9)])


class TestOutcome(MeasureContract):
    measure = MEASURES["outcome"]
    results = stored(
        "judge",
        [
            SessionOutcome(success=n % 3 > 0, corrections=n % 4 or None, escalated=n % 2 > 0, user_turns=n)
            for n in range(9)
        ],
    )


def test_every_measure_of_the_core_is_held_to_the_contract() -> None:
    held = {suite.measure.name for suite in MeasureContract.__subclasses__() if suite.__module__ == __name__}
    assert {"completion", "outcome", "drop_off", "waits", "rewrites"} <= held


# Broken ones: each is one measure with one thing wrong, and the name of the check that must say so.


class Busy(BaseModel):
    """Whether a session was a busy one."""

    busy: bool
    acts: int


class Other(BaseModel):
    """What it did not promise."""

    busy: bool


class Empty(BaseModel):
    """Says nothing."""


def busy(*, now: Any, least: int, version: str | None = None, name: str = "busy") -> FunctionEvaluator[Any, Any]:
    def answer(given: Session) -> Busy:
        return Busy(busy=len(given.activities) >= least, acts=len(given.activities))

    return FunctionEvaluator(name, version or f"1:{least}", answer, Session, Busy, inline=True)


busy_rate = Rate("busy", of=Busy, hits=lambda v: v.busy)
busy_acts = Mean("busy_acts", of=Busy, value=lambda v: v.acts)
GOOD = Measure(
    name="busy",
    question="how often is it busy?",
    input=Session,
    verdict=Busy,
    summaries=lambda **_: [busy_rate, busy_acts],
    settings={"least": 3},
    evaluator=busy,
)


class Contract(MeasureContract):
    measure = GOOD
    inputs: ClassVar[Sequence[Input]] = SESSIONS
    now = NOW
    other_settings: ClassVar[dict[str, Any]] = {"least": 2}


class TestTheMeasureItself(Contract):
    """Without anything wrong it passes, so that what the broken ones fail by is what is wrong with them."""


class Zero(Rate[Any]):
    """Takes nothing for 0."""

    def estimate(self, results: Any, **asked: Any) -> Estimate:
        found = super().estimate(results, **asked)
        return replace(found, value=0.0, status="ok") if found.value is None else found


class Mute(Rate[Any]):
    """Does not say why it has no value."""

    def estimate(self, results: Any, **asked: Any) -> Estimate:
        found = super().estimate(results, **asked)
        return replace(found, reason=None) if found.value is None else found


class Grumpy(Rate[Any]):
    """Its tallies do not know their results until they are estimated."""

    def tally(self, results: Any, **asked: Any) -> Tally[Any]:
        return super().tally(list(results)[:3], **asked)


class Alone(Rate[Any]):
    """Says one thing to whoever asks, and another in a report."""

    def estimate(self, results: Any, **asked: Any) -> Estimate:
        found = super().estimate(results, **asked)
        return replace(found, noun="row") if isinstance(results, Tally) else found


def with_summaries(*summaries: Summary[Any]) -> Measure:
    return replace(GOOD, summaries=lambda **_: list(summaries))


def evaluated(**fixed: Any) -> Measure:
    return replace(GOOD, evaluator=lambda now, least: busy(now=now, least=least, **fixed))


def like(kind: type[Rate[Any]]) -> Rate[Any]:
    return kind("busy", of=Busy, hits=lambda v: v.busy)


class Unchecked(Measure):
    """Lets any verdict type in."""

    def __post_init__(self) -> None:
        pass


def without_fields() -> Measure:
    parts = {name: getattr(GOOD, name) for name in ("name", "question", "input", "summaries", "settings", "evaluator")}
    return Unchecked(**parts, verdict=Empty)


def renewed() -> Measure:
    versions = count()
    return replace(GOOD, evaluator=lambda now, least: busy(now=now, least=least, version=str(next(versions))))


def surprising() -> Measure:
    def make(*, now: Any, least: int) -> FunctionEvaluator[Any, Any]:
        return FunctionEvaluator("busy", f"1:{least}", lambda given: Other(busy=True), Session, Other, inline=True)

    return replace(GOOD, evaluator=make)


BROKEN: dict[str, tuple[str, Measure]] = {
    "no name": ("test_it_says_what_it_is", replace(GOOD, name="")),
    "a long question": ("test_it_says_what_it_is", replace(GOOD, question="is it?\nor not?")),
    "no field": ("test_its_verdicts_can_be_read", without_fields()),
    "another verdict": ("test_its_verdicts_can_be_read", surprising()),
    "another summary first": (
        "test_its_evaluator_and_first_summary_have_its_name",
        with_summaries(busy_acts, busy_rate),
    ),
    "no summary": ("test_its_evaluator_and_first_summary_have_its_name", with_summaries()),
    "another evaluator's name": ("test_its_evaluator_and_first_summary_have_its_name", evaluated(name="other")),
    "one name twice": ("test_its_summaries_have_names_of_their_own", with_summaries(busy_rate, busy_rate)),
    "nothing is 0": ("test_a_summary_of_nothing_is_undefined_and_says_why", with_summaries(like(Zero))),
    "nothing without a reason": ("test_a_summary_of_nothing_is_undefined_and_says_why", with_summaries(like(Mute))),
    "parts that do not add up": ("test_parts_add_up_to_the_whole", with_summaries(like(Grumpy))),
    "one version": ("test_a_setting_that_changes_answers_changes_the_version", evaluated(version="1")),
    "ever new versions": ("test_a_setting_that_changes_answers_changes_the_version", renewed()),
    "a setting not tried": (
        "test_a_setting_that_changes_answers_changes_the_version",
        replace(GOOD, settings={"least": 3, "more": 1}, evaluator=lambda now, least, more: busy(now=now, least=least)),
    ),
    "a default tried": (
        "test_a_setting_that_changes_answers_changes_the_version",
        replace(GOOD, settings={"least": 2}),
    ),
    "another report": ("test_a_report_says_what_its_summaries_say", with_summaries(like(Alone))),
}


@pytest.mark.parametrize(("check", "broken"), BROKEN.values(), ids=BROKEN)
def test_each_check_finds_what_it_is_for(check: str, broken: Measure) -> None:
    class Suite(Contract):
        measure = broken

    with pytest.raises(AssertionError):
        getattr(Suite(), check)()


def test_every_check_is_seen_to_fail() -> None:
    checks = {name for name in dir(MeasureContract) if name.startswith("test_")}
    assert checks == {check for check, _ in BROKEN.values()}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "at least two results, not 0"),
        (SESSIONS[:1], "at least two results, not 1"),
        ([history(1), history(2)], "it reads Session, not History"),
    ],
    ids=["nothing", "one", "others"],
)
def test_inputs_that_show_nothing_are_refused(given: Sequence[Input], message: str) -> None:
    class Suite(Contract):
        inputs = given

    with pytest.raises(AssertionError, match=message):
        Suite().test_parts_add_up_to_the_whole()


def test_results_without_a_verdict_are_refused() -> None:
    class Suite(MeasureContract):
        measure = MEASURES["completion"]
        results = stored("judge", [])

    with pytest.raises(AssertionError, match="none of the results has a verdict"):
        Suite().test_its_verdicts_can_be_read()

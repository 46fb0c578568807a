"""The contract of evaluators: ours hold to it, and each of its checks can fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel

from evalr import Evaluator, Failure, Fallback, FunctionEvaluator, HandOff, Skip, Verdict
from evalr.inputs import Activity, Draft, History, Input, Revision, Session, Transcript, Turn, Wait
from evalr.measures import drop_off_evaluator, rewrite_evaluator, wait_evaluator
from evalr.testing import EvaluatorContract
from evalr.testing.evaluators import Foreign, unreadable

NINE = datetime(2026, 9, 28, 9, 0, tzinfo=UTC)
NOW = NINE + timedelta(days=40)


def session(name: str, *roles: str) -> Session:
    activities = [Activity(at=NINE + timedelta(minutes=n), role=role) for n, role in enumerate(roles)]  # type: ignore[arg-type]
    return Session(id=name, user="u", arm="control", attributes={"agent": "a"}, weight=2.0, activities=activities)


SESSIONS = [session("s1", "person", "agent"), session("s2", "person", "agent", "person"), session("s3")]
HISTORY = History(
    id="h",
    user="u",
    revisions=[
        Revision(at=NINE, role="agent", text="one two three"),
        Revision(at=NINE + timedelta(hours=1), role="person", text="four five six"),
        Revision(at=NINE + timedelta(hours=2), role="agent", text="seven"),
    ],
)


class Said(BaseModel):
    """What a test's evaluator says."""

    done: bool


class Other(BaseModel):
    """What it did not promise."""

    done: bool


def judged(given: Session) -> Said | Skip | HandOff:
    if not given.activities:
        return Skip("nothing happened")
    if len(given.activities) == 2:
        return HandOff("too short to tell")
    return Said(done=True)


async def slowly(given: Session) -> Said | Skip | HandOff:
    return judged(given)


def judge(function: Callable[..., Any] = judged, name: str = "judge") -> FunctionEvaluator[Session, Said]:
    return FunctionEvaluator(name, "1", function, Session, Said)


# Ours


class TestDropOff(EvaluatorContract):
    evaluator = drop_off_evaluator(now=NOW)
    inputs = SESSIONS


class TestWaits(EvaluatorContract):
    evaluator = wait_evaluator(now=NOW)
    inputs: ClassVar[list[Wait]] = [wait for each in SESSIONS for wait in each.waits(now=NOW)]


class TestRewritesOfDrafts(EvaluatorContract):
    evaluator = rewrite_evaluator(now=NOW)
    inputs: ClassVar[list[Draft]] = HISTORY.drafts(now=NOW)


class TestRewritesOfHistories(EvaluatorContract):
    evaluator = rewrite_evaluator(now=NOW)
    inputs: ClassVar[list[History]] = [HISTORY]


class TestFunction(EvaluatorContract):
    evaluator = judge()
    inputs = SESSIONS


class TestAsyncFunction(EvaluatorContract):
    evaluator = judge(slowly)
    inputs = SESSIONS


class TestFallback(EvaluatorContract):
    evaluator = Fallback(judge(), judge(slowly, "second"), on_failure=True, below=0.5)
    inputs = SESSIONS


class TestOfEveryInput(EvaluatorContract):
    """One that reads every input says so, by what it does not read."""

    evaluator = FunctionEvaluator("named", "1", lambda given: Said(done=given.id is not None), Input, Said)
    inputs: ClassVar[list[Input]] = [*SESSIONS, Transcript(id="t", request="hello", turns=[Turn(role="person")])]
    foreign: ClassVar[Any] = "a text"


# Broken ones: each is a judge with one thing wrong, and the name of the check that must say so.


class Broken:
    """A judge, so far without anything wrong."""

    name = "judge"
    version = "1"
    verdict_type: type[BaseModel] = Said

    async def evaluate(self, given: Any, /) -> Any:
        return await judge().evaluate(given)


class TestTheWrapperItself(EvaluatorContract):
    """Without anything wrong it passes, so that what the broken ones fail by is what is wrong with them."""

    evaluator = Broken()
    inputs = SESSIONS


class Partial:
    name = "judge"
    version = "1"

    async def evaluate(self, given: Any, /) -> Any:
        return await judge().evaluate(given)


class Mapped(BaseModel):
    """Has a field that nothing can read."""

    found: dict[str, int]


class Unreadable(Broken):
    verdict_type = Mapped


class Restless(Broken):
    """Has another version after each answer."""

    async def evaluate(self, given: Any, /) -> Any:
        found = await super().evaluate(given)
        self.version = f"{self.version}+"
        return found


class Nameless(Broken):
    name = ""


class Numbered(Broken):
    version: Any = 1


class Silent(Broken):
    """Has nothing to say of some inputs."""

    async def evaluate(self, given: Any, /) -> Any:
        found = await super().evaluate(given)
        return found if isinstance(found, Verdict) else None


class Raising(Broken):
    async def evaluate(self, given: Any, /) -> Any:
        found = await super().evaluate(given)
        if isinstance(found, Failure) and found.exception is not None:
            raise found.exception
        return found


class Undecided(Broken):
    async def evaluate(self, given: Any, /) -> Any:
        found = await super().evaluate(given)
        return HandOff("ask somebody", self.name, self.version, found.about)


class Surprising(Broken):
    """Gives verdicts of a type that it did not promise."""

    async def evaluate(self, given: Any, /) -> Any:
        found = await super().evaluate(given)
        return replace(found, value=Other(done=True)) if isinstance(found, Verdict) else found


class Anonymous(Broken):
    """Does not say what its skips are about."""

    async def evaluate(self, given: Any, /) -> Any:
        found = await super().evaluate(given)
        return replace(found, about=None) if isinstance(found, Skip) else found


class Outdated(Broken):
    """Its verdicts name another version than it does."""

    version = "2"


class Guessing(Broken):
    """Takes what went wrong for a no."""

    async def evaluate(self, given: Any, /) -> Any:
        found = await super().evaluate(given)
        if isinstance(found, Failure):
            return Verdict(Said(done=False), self.name, self.version, found.about)
        return found


class Speechless(Broken):
    async def evaluate(self, given: Any, /) -> Any:
        found = await super().evaluate(given)
        return replace(found, error=" ") if isinstance(found, Failure) else found


class Obliging(Broken):
    """Skips an input of a type that it was not made for."""

    async def evaluate(self, given: Any, /) -> Any:
        if not isinstance(given, Session):
            return Skip("not a session", self.name, self.version, given.about())
        return await super().evaluate(given)


class Stuck(Broken):
    """Its results cannot leave the process."""

    async def evaluate(self, given: Any, /) -> Any:
        class Local(Said):
            pass

        found = await super().evaluate(given)
        return replace(found, value=Local(done=True)) if isinstance(found, Verdict) else found


class Forgetful(Said):
    """Comes back from another process as something else."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Said, (), {"__dict__": {"done": False}}


class Changing(Broken):
    async def evaluate(self, given: Any, /) -> Any:
        found = await super().evaluate(given)
        return replace(found, value=Forgetful(done=True)) if isinstance(found, Verdict) else found


class Renamed(Broken):
    def pinned(self) -> Any:
        return judge(name="other")


class Mistimed(Broken):
    def as_of(self, given: Any, /) -> datetime:
        return NOW


class Vague(Broken):
    def pending(self, value: Any, /) -> str:
        return "perhaps"


BROKEN: list[tuple[str, type[Any]]] = [
    ("test_it_is_an_evaluator", Partial),
    ("test_it_is_an_evaluator", Unreadable),
    ("test_its_name_and_version_are_texts_that_stay", Restless),
    ("test_its_name_and_version_are_texts_that_stay", Nameless),
    ("test_its_name_and_version_are_texts_that_stay", Numbered),
    ("test_each_input_has_one_result", Silent),
    ("test_each_input_has_one_result", Undecided),
    ("test_a_verdict_is_of_the_promised_type", Surprising),
    ("test_every_result_says_what_it_is_about_and_who_gave_it", Anonymous),
    ("test_every_result_says_what_it_is_about_and_who_gave_it", Outdated),
    ("test_what_goes_wrong_inside_is_a_result", Raising),
    ("test_what_goes_wrong_inside_is_a_result", Guessing),
    ("test_what_goes_wrong_inside_is_a_result", Speechless),
    ("test_another_type_of_input_is_an_error", Obliging),
    ("test_what_it_tells_runs_is_true", Renamed),
    ("test_what_it_tells_runs_is_true", Mistimed),
    ("test_what_it_tells_runs_is_true", Vague),
    ("test_its_results_pickle", Stuck),
    ("test_its_results_pickle", Changing),
]


@pytest.mark.parametrize(("check", "broken"), BROKEN, ids=[f"{broken.__name__}-{check}" for check, broken in BROKEN])
def test_each_check_finds_what_it_is_for(check: str, broken: type[Any]) -> None:
    class Suite(EvaluatorContract):
        evaluator: ClassVar[Evaluator[Any, Any]] = broken()
        inputs = SESSIONS

    with pytest.raises(AssertionError):
        getattr(Suite(), check)()


def test_every_check_is_seen_to_fail() -> None:
    checks = {name for name in dir(EvaluatorContract) if name.startswith("test_")}
    assert checks == {check for check, _ in BROKEN}


def test_an_unreadable_input_is_as_it_was_but_for_the_fields_of_its_type() -> None:
    given = SESSIONS[0]
    broken, touched = unreadable(given)
    assert isinstance(broken, Session)
    assert broken.about() == given.about()
    assert (broken.user, broken.arm, broken.weight) == ("u", "control", 2.0)
    assert touched == set()
    with pytest.raises(ValueError, match="activities cannot be read"):
        broken.until(NOW)
    assert touched == {"activities"}
    assert unreadable(Foreign(id="f"))[0].id == "f"

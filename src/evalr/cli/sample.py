"""A made-up log whose true rates are known: what `evalr demo` measures, and what tests hold intervals against.

People are of two kinds, quick and slow, so that a person's sessions resemble each other as they do in real logs.
Whatever is drawn is drawn with `Random.random` alone, whose numbers do not change between versions of Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import exp, log
from random import Random
from typing import NamedTuple, TypeVar

from evalr.inputs import Activity, History, Revision, Session, Transcript, Turn
from evalr.logs import Item, Stored, to_line
from evalr.measures import TaskCompletion
from evalr.verdicts import Failure, Skip, Verdict

NOW = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
PERIOD = timedelta(days=56)
WRITING_PERIOD = timedelta(days=112)
PEOPLE = 160
HOUR, DAY = 3_600.0, 86_400.0


class Kind(NamedTuple):
    """A kind of person: how many are, how long they take to come back, and how often they never do."""

    share: float
    mean_wait: float
    gives_up: float
    completes: float


QUICK = Kind(share=0.6, mean_wait=240, gives_up=0.03, completes=0.85)
SLOW = Kind(share=0.4, mean_wait=1_800, gives_up=0.09, completes=0.65)
KINDS = (QUICK, SLOW)

LENGTHS = (3, 4, 5, 6, 7)
"""How often an agent asks something of a person in a session; the last is followed by the person closing it."""

PROPOSES = 0.25
"""How often what it asks is a decision on a proposal."""

AGENTS = {"atlas": 0.2, "birch": 0.4}
"""Agents, and the share of their drafts that people rewrite. Each writes half of the documents."""

FIRST_REWRITE, LAST_REWRITE = HOUR, 13 * DAY
LIGHTLY_EDITED = 0.3
QUALITY = {True: (3, 4, 4, 5, 5), False: (1, 2, 2, 3)}
UNANSWERED, FAILED = 0.05, 0.02

PLAIN_WORDS = (
    "lomen",
    "tarvi",
    "seldo",
    "bruna",
    "ostel",
    "miral",
    "fendo",
    "kaspi",
    "duvar",
    "welin",
    "pogan",
    "hesti",
)
OTHER_WORDS = ("qyx", "zujubu", "ychy", "xuppuq", "juzz", "gyxu", "buqqy", "chyzu", "uxxu", "jychu")


def truth() -> Mapping[str, float]:
    """What is true of every sample, by the names of summaries: computed from the numbers above, not from a sample."""
    asked, returns = _expected(_asked), _expected(_returns)
    share_back = {kind: returns[kind] * kind.share / sum(asked[k] * k.share for k in KINDS) for kind in KINDS}

    def back_within(seconds: float) -> float:
        return sum(share_back[kind] * (1 - exp(-seconds / kind.mean_wait)) for kind in KINDS)

    rewritten = sum(AGENTS.values()) / len(AGENTS)
    completed = sum(kind.share * kind.completes for kind in KINDS)
    quality = {done: sum(marks) / len(marks) for done, marks in QUALITY.items()}
    return {
        "waits": back_within(HOUR),
        "waits_median": _where(back_within, 0.5),
        "drop_off": 1 - sum(kind.share * _mean(_stays(kind, length) for length in LENGTHS) for kind in KINDS),
        "rewrites": rewritten,
        "rewrites_time": FIRST_REWRITE + 0.1 / rewritten * (LAST_REWRITE - FIRST_REWRITE),
        "completion": completed,
        "completion_quality": completed * quality[True] + (1 - completed) * quality[False],
    }


def _expected(of: Callable[[Kind, int], float]) -> dict[Kind, float]:
    return {kind: _mean(of(kind, length) for length in LENGTHS) for kind in KINDS}


def _asked(kind: Kind, length: int) -> float:
    """How often the agent comes to wait in a session that was to ask `length` times."""
    return sum((1 - kind.gives_up) ** before for before in range(length))


def _returns(kind: Kind, length: int) -> float:
    """How often the person comes back. The last time, the session is closed instead."""
    return sum((1 - kind.gives_up) ** (before + 1) for before in range(length - 1))


def _stays(kind: Kind, length: int) -> float:
    """The chance that the person is there to the end."""
    return float((1 - kind.gives_up) ** (length - 1))


def _mean(numbers: Iterator[float]) -> float:
    found = list(numbers)
    return sum(found) / len(found)


def _where(rising: Callable[[float], float], level: float) -> float:
    low, high = 0.0, 30 * DAY
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) < level else (low, middle)
    return high


# ---------------------------------------------------------------------------------------------------------------------
# Drawing a sample
# ---------------------------------------------------------------------------------------------------------------------

T = TypeVar("T")


@dataclass(frozen=True)
class Dice:
    """Draws, all of them made of one stream of numbers from 0 to 1."""

    random: Random

    def chance(self, share: float) -> bool:
        """Whether something happens that does so in this share of all cases."""
        return self.random.random() < share

    def one_of(self, things: Sequence[T]) -> T:
        """One thing, each as likely as the others."""
        return things[int(self.random.random() * len(things))]

    def seconds(self, low: float, high: float) -> timedelta:
        """A whole number of seconds, all of them as likely."""
        return timedelta(seconds=round(low + self.random.random() * (high - low)))

    def wait(self, mean: float) -> timedelta:
        """A time that is as likely to end in one moment as in the next."""
        return timedelta(seconds=round(-mean * log(1 - self.random.random())))

    def sentence(self, words: Sequence[str], length: int = 8) -> str:
        """Words in a row."""
        return " ".join(self.one_of(words) for _ in range(length))


def sample(seed: int, *, people: int = PEOPLE) -> Iterator[Item]:
    """One sample: each person's sessions, perhaps a document, and conversations with the person's verdicts."""
    dice = Dice(Random(seed))
    for number in range(1, people + 1):
        kind = QUICK if dice.chance(QUICK.share) else SLOW
        user = f"u{number:03d}"
        for count in range(1, dice.one_of((1, 2, 3, 4, 5)) + 1):
            yield _session(dice, kind, user, f"{user}-s{count}")
        if dice.chance(0.6):
            yield _history(dice, user, f"{user}-notes.md")
        for count in range(1, dice.one_of((0, 1, 2)) + 1):
            yield from _judged(dice, kind, user, f"{user}-t{count}")


def _session(dice: Dice, kind: Kind, user: str, name: str) -> Session:
    at = NOW - dice.seconds(60, PERIOD.total_seconds())
    activities = [Activity(at=at, role="person")]
    length = dice.one_of(LENGTHS)
    for turn in range(1, length + 1):
        for _ in range(dice.one_of((1, 2, 3))):
            at += dice.seconds(3, 30)
            activities.append(Activity(at=at, role="agent", kind="message"))
        proposal = f"p{turn}" if dice.chance(PROPOSES) else None
        if proposal is not None:
            activities[-1] = Activity(at=at, role="agent", kind="proposal", ref=proposal)
        if turn == length:
            activities.append(Activity(at=at + dice.seconds(20, 120), role="person", kind="closed"))
        elif dice.chance(kind.gives_up):
            break
        else:
            at += dice.wait(kind.mean_wait)
            answer = "message" if proposal is None else "resolution"
            activities.append(Activity(at=at, role="person", kind=answer, ref=proposal))
    seen = [activity for activity in activities if activity.at <= NOW]
    agent = dice.one_of(tuple(AGENTS))
    return Session(id=name, user=user, activities=seen, attributes={"agent": agent})


def _history(dice: Dice, user: str, name: str) -> History:
    agent = dice.one_of(tuple(AGENTS))
    at = NOW - dice.seconds(DAY, WRITING_PERIOD.total_seconds())
    revisions = []
    for _ in range(dice.one_of((1, 2, 3))):
        lines = [dice.sentence(PLAIN_WORDS) for _ in range(6)]
        revisions.append(Revision(at=at, role="agent", text="\n".join(lines)))
        edited = at + dice.seconds(FIRST_REWRITE, LAST_REWRITE)
        if dice.chance(AGENTS[agent]):
            lines = [dice.sentence(OTHER_WORDS) for _ in range(6)]
            revisions.append(Revision(at=edited, role="person", text="\n".join(lines)))
        elif dice.chance(LIGHTLY_EDITED):
            lines[-1] += "."
            revisions.append(Revision(at=edited, role="person", text="\n".join(lines)))
        # The next draft comes when the window of this one is over, so that it decides nothing about it.
        at += dice.seconds(15 * DAY, 25 * DAY)
    seen = [revision for revision in revisions if revision.at <= NOW]
    return History(id=name, user=user, revisions=seen, attributes={"agent": agent})


def _judged(dice: Dice, kind: Kind, user: str, name: str) -> Iterator[Item]:
    asked = Turn(role="person", text=dice.sentence(PLAIN_WORDS, 6))
    answered = Turn(role="agent", text=dice.sentence(PLAIN_WORDS, 12))
    at = NOW - dice.seconds(60, PERIOD.total_seconds())
    agent = dice.one_of(tuple(AGENTS))
    given = Transcript(
        id=name,
        user=user,
        at=at,
        request=asked.text,
        turns=[asked, answered],
        result=answered.text,
        attributes={"agent": agent},
    )
    yield given
    completed = dice.chance(kind.completes)
    quality = dice.one_of(QUALITY[completed])
    about = given.about()
    if dice.chance(UNANSWERED):
        yield Stored("completion", Skip("the person did not answer", "people", "1", about))
    elif dice.chance(FAILED):
        yield Stored("completion", Failure("the form was closed half way", "people", "1", about))
    else:
        yield Stored("completion", Verdict(TaskCompletion(completed=completed, quality=quality), "people", "1", about))


def sample_lines(seed: int, *, people: int = PEOPLE) -> Iterator[str]:
    """The sample as the lines of a log, with a few bad ones among them, as in real logs."""
    bad = dict(zip((40, 90, 140, 190), BAD_LINES, strict=True))
    first = ""
    for number, item in enumerate(sample(seed, people=people), start=1):
        line = to_line(item)
        first = first or line
        yield line.replace('{"', '{"client":"demo","', 1) if number % 50 == 0 else line
        if number in bad:
            yield bad[number] or first


BAD_LINES = (
    '{"type": "session", "id": "clockless", "activities": [{"at": "2026-11-02T10:00:00", "role": "agent"}]}',
    "",  # stands for the first line once more
    '{"type": "session", "id": "cut off by a full disk", "activ',
    '{"type": "heartbeat", "at": "2026-11-20T00:00:00Z"}',
)

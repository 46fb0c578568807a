"""A measure that names what it is grouped by where nobody asks for another grouping."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from pydantic import BaseModel

from evalr import FunctionEvaluator, Rate, report
from evalr.measures import Activity, Measure, Session

NINE = datetime(2026, 9, 28, 9, tzinfo=UTC)


class Short(BaseModel):
    """Whether a session was short."""

    short: bool


def is_short(session: Session) -> Short:
    return Short(short=len(session.activities) < 2)


def measure_of(name: str, by: str | None) -> Measure:
    rate = Rate(name, of=Short, hits=lambda v: v.short)
    return Measure(
        name=name,
        question="how many sessions are short?",
        input=Session,
        verdict=Short,
        summaries=lambda: [rate],
        evaluator=lambda now: FunctionEvaluator(name, "1", is_short, Session, Short, inline=True),
        by=by,
    )


SESSIONS = [
    Session(
        id=f"s{number}",
        attributes={"agent": "a" if number % 2 else "b", "desk": "north"},
        activities=[Activity(at=NINE + timedelta(minutes=n), role="agent") for n in range(number % 3)],
    )
    for number in range(12)
]
MEASURES = [measure_of("own", "agent"), measure_of("plain", None)]


def test_its_rows_are_grouped_and_those_of_others_are_not() -> None:
    found = report(SESSIONS, measures=MEASURES)
    own, plain = found.rows
    assert own.groups is not None
    assert list(own.groups) == ["a", "b"]
    assert sum(each.n for each in own.groups.values()) == own.estimate.n == 12
    assert plain.groups is None
    assert found.by is None
    assert "    a " in found.text()
    assert [section["rows"][0]["grouped_by"] for section in found.to_dict()["sections"]] == ["agent", None]
    assert "(no agent)" not in found._repr_html_()


def test_what_is_asked_for_goes_before_it() -> None:
    found = report(SESSIONS, measures=MEASURES, by="desk")
    assert [list(row.groups or ()) for row in found.rows] == [["north"], ["north"]]
    assert {row["by"] for row in found.to_dicts() if row["group"]} == {"desk"}


def test_without_its_attribute_there_are_no_groups() -> None:
    bare = [session.model_copy(update={"attributes": {}}) for session in SESSIONS]
    (row,) = report(bare, measures=MEASURES[:1]).rows
    assert row.groups is None

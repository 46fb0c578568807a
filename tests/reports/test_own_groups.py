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


def measure_of(name: str, by: str | None, *more: str) -> Measure:
    rates = [Rate(each, of=Short, hits=lambda v: v.short, noun="session") for each in (name, *more)]
    return Measure(
        name=name,
        question="how many sessions are short?",
        input=Session,
        verdict=Short,
        summaries=lambda: rates,
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


def test_several_numbers_stand_side_by_side() -> None:
    measure = measure_of("own", "agent", "again")
    hostile = SESSIONS[0].model_copy(update={"id": "x", "attributes": {"agent": "\x1b[31m" + "long" * 30}})
    text = report([*SESSIONS, hostile], measures=[measure]).text(width=80)
    lines = text.splitlines()
    (head,) = [place for place, line in enumerate(lines) if line.startswith("  by agent")]
    assert lines[head].split() == ["by", "agent", "own", "again", "sessions"]
    assert lines[head + 2].split() == ["a", "66.7%", "[30,", "90]", "66.7%", "[30,", "90]", "6"]
    assert "\x1b" not in text
    assert max(map(len, lines)) <= 80
    assert sum(line.startswith("    a ") for line in lines) == 1


def test_where_they_do_not_fit_each_number_has_its_groups_below() -> None:
    measure = measure_of("own", "agent", "again", "and_again", "and_once_more")
    lines = report(SESSIONS, measures=[measure]).text(width=60).splitlines()
    assert not any(line.startswith("  by agent") for line in lines)
    assert sum(line.startswith("    a ") for line in lines) == 4


def test_groups_that_were_asked_for_stand_below_each_number() -> None:
    measure = measure_of("own", "agent", "again")
    lines = report(SESSIONS, measures=[measure], by="agent").text().splitlines()
    assert not any(line.startswith("  by agent") for line in lines)
    assert sum(line.startswith("    a ") for line in lines) == 2

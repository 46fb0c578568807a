"""Every installed measure keeps to its one name: the evaluator's, its scores' and its first summary's."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from inspect import signature
from typing import Any

import pytest

from evalr import InputError, report
from evalr.fields import verdict_fields
from evalr.measures import Measure, installed_measures
from evalr.measures.measure import REPORT_OPTIONS
from evalr.summaries import Rate, Summary

MEASURES = installed_measures()
NOW = datetime(2026, 9, 28, tzinfo=UTC)


def summaries(measure: Measure) -> list[Summary[Any]]:
    return list(measure.summaries(**measure.settled({})))


def test_the_measures_of_the_core_are_installed() -> None:
    assert {"completion", "outcome", "drop_off", "waits", "rewrites"} <= MEASURES.loaded.keys()
    assert MEASURES.broken == {}


@pytest.mark.parametrize("name", MEASURES.loaded)
def test_a_measure_has_one_name(name: str) -> None:
    measure = MEASURES.loaded[name]
    assert measure.name == name
    assert summaries(measure)[0].name == name
    if measure.evaluator is not None:
        evaluator = measure.evaluator(now=NOW, **measure.settled({}))
        assert evaluator.name == name
        assert evaluator.verdict_type is measure.verdict


@pytest.mark.parametrize("name", MEASURES.loaded)
def test_its_summaries_read_its_verdicts_and_say_what_they_count(name: str) -> None:
    measure = MEASURES.loaded[name]
    for summary in summaries(measure):
        assert summary.of is measure.verdict
        assert summary.title
        assert summary.noun != "result"
        assert summary.estimate([]).status == "undefined"
    assert verdict_fields(measure.verdict)


def test_no_two_summaries_share_a_name() -> None:
    names = [summary.name for measure in MEASURES.loaded.values() for summary in summaries(measure)]
    assert sorted(names) == sorted(set(names))


def test_a_measure_takes_the_settings_that_are_its_own() -> None:
    drop_off = MEASURES.loaded["drop_off"]
    window = drop_off.settings["window"] * 2
    assert drop_off.settled({"window": window, "threshold": 0.5}) == {"window": window}
    assert drop_off.settled({}) == {"window": drop_off.settings["window"]}
    assert drop_off.reads is drop_off.input
    waits = MEASURES.loaded["waits"]
    assert waits.reads is waits.whole is not waits.input


def test_a_verdict_type_that_no_score_could_read_is_refused_at_once() -> None:
    from pydantic import BaseModel

    from evalr import FieldTypeError

    class Odd(BaseModel):
        found: dict[str, int]

    with pytest.raises(FieldTypeError, match="found"):
        Measure(
            name="odd",
            question="is it odd?",
            input=MEASURES.loaded["drop_off"].input,
            verdict=Odd,
            summaries=lambda: [Rate("odd", of=Odd, hits=lambda v: 1)],
        )


def test_no_setting_is_named_like_an_option_of_the_report() -> None:
    options = {name for name, each in signature(report).parameters.items() if each.kind is not each.VAR_KEYWORD}
    assert options - {"window"} == REPORT_OPTIONS
    waits = MEASURES.loaded["waits"]
    with pytest.raises(InputError, match="options of its own named level"):
        replace(waits, settings={"level": 1})

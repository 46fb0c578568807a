"""Learning impact: relevance and impact by learning and by response; what is unknown is no 0."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from evalr import Verdict
from evalr.inputs import LearningUse
from evalr.measures import LearningImpact, negative_rate, net_impact, positive_rate, relevance_rate
from evalr.measures.learning import measure
from evalr.testing import MeasureContract


def judged(response: str, learning: str, **value: Any) -> Verdict[LearningImpact]:
    given = LearningUse(
        id=f"{response}/{learning}",
        user="ada",
        message="Ship it?",
        response="On Monday.",
        learning="Legal signs off first.",
        learning_id=learning,
        response_id=response,
    )
    return Verdict(LearningImpact(**value), "learning", about=given.about())


RESULTS = [
    judged("r1", "l1", relevant=True, impact="positive"),
    judged("r1", "l2", relevant=False, impact="neutral"),
    judged("r2", "l1", relevant=True, impact="negative", diagnosis="content_defect"),
    judged("r2", "l3", relevant=True, impact=None),
    judged("r3", "l1", relevant=None, impact="positive"),
]


def test_rates_are_of_what_is_known() -> None:
    assert relevance_rate(RESULTS) == 0.75
    assert relevance_rate.estimate(RESULTS).left_out == {"unknown": 1}
    assert (positive_rate(RESULTS), negative_rate(RESULTS)) == (0.5, 0.25)
    assert net_impact(RESULTS) == 0.25
    assert net_impact.estimate(RESULTS).left_out == {"unknown": 1}


def test_a_response_counts_once() -> None:
    assert positive_rate.estimate(RESULTS, per="response", fold="any").counts == {"hits": 2, "total": 3}
    assert net_impact.estimate(RESULTS, per="response", fold="majority").n == 3


def test_a_reason_for_no_diagnosis_is_refused() -> None:
    with pytest.raises(ValidationError, match="a diagnosis_reason needs a diagnosis"):
        LearningImpact(diagnosis_reason="unclear")


class TestContract(MeasureContract):
    measure = measure
    results = RESULTS

"""Agreement on choices without an order: the same as on verdicts where there are two, and by definition where not."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalr import InputError
from evalr.estimates.agreement import choice_agreement, verdict_agreement

CHOICES = ("a", "b", "c")
ROWS = st.lists(
    st.tuples(st.none() | st.integers(0, 4), st.sampled_from(CHOICES), st.sampled_from(CHOICES)), max_size=30
)


@given(st.lists(st.tuples(st.none() | st.integers(0, 4), st.booleans(), st.booleans()), max_size=30))
def test_two_choices_are_yes_and_no(rows: list[tuple[int | None, bool, bool]]) -> None:
    verdicts, choices = verdict_agreement(rows), choice_agreement(rows, choices=(False, True))
    assert (choices.accuracy, choices.kappa, choices.ac1) == (verdicts.accuracy, verdicts.kappa, verdicts.ac1)
    assert (choices.tpr[True], choices.tnr[True]) == (verdicts.tpr, verdicts.tnr)
    assert (choices.tpr[False], choices.tnr[False]) == (verdicts.tnr, verdicts.tpr)


@given(ROWS)
def test_kappa_and_shares_are_by_definition(rows: list[tuple[int | None, str, str]]) -> None:
    found = choice_agreement(rows, choices=CHOICES)
    n = len(rows)
    judge, people = Counter(row[1] for row in rows), Counter(row[2] for row in rows)
    assert sum(found.confusion.values()) == n
    if n:
        alike = sum(row[1] == row[2] for row in rows) / n
        assert found.accuracy.value == pytest.approx(alike)
        chance = sum(judge[choice] * people[choice] for choice in CHOICES) / n**2
        if len(judge) > 1 and len(people) > 1:
            assert found.kappa.value == pytest.approx((alike - chance) / (1 - chance))
        else:
            assert found.kappa.value is None
    for choice in CHOICES:
        hits = sum(row[1:] == (choice, choice) for row in rows)
        expected = hits / people[choice] if people[choice] else None
        assert found.tpr[choice].value == (None if expected is None else pytest.approx(expected))


def test_rows_without_one_of_the_two_are_counted_and_other_choices_refused() -> None:
    found = choice_agreement([(None, "a", None), (None, None, "b"), (None, "a", "a")])
    assert (found.unlabelled, found.unjudged, found.accuracy.value) == (1, 1, 1.0)
    with pytest.raises(InputError, match="not on the scale"):
        choice_agreement([(None, "d", "a")], choices=CHOICES)

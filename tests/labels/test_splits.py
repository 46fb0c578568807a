"""Splits: the same in every process, with groups on one side and labels in proportion."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalr import InputError
from evalr.labels import Dataset, Example, split
from evalr.measures import TaskCompletion, Transcript

SOURCE = str(Path(__file__).resolve().parents[2] / "src")
HALVES = {"train": 0.5, "test": 0.5}


def dataset(size: int, users: int = 10, failing: int = 4) -> Dataset[TaskCompletion]:
    return Dataset(
        "some",
        [
            Example(
                Transcript(id=f"e{n}", user=f"u{n % users}", request="x"),
                expected=TaskCompletion(completed=n % failing > 0, quality=3),
                attributes={"topic": f"t{n % 3}"},
            )
            for n in range(size)
        ],
    )


def test_a_group_stays_on_one_side_and_all_examples_are_somewhere() -> None:
    parts = split(dataset(200, users=40), {"train": 0.6, "dev": 0.2, "test": 0.2})
    users = [{each.group for each in part} for part in parts.values()]
    assert sum(map(len, users)) == len(set.union(*users)) == 40
    assert sum(parts.counts.values()) == 200
    assert parts.shared == 0
    assert parts.groups == {name: len(found) for name, found in zip(parts, users, strict=True)}


def test_a_split_by_id_says_that_groups_are_in_several_parts() -> None:
    parts = split(dataset(200), HALVES, by="id")
    assert parts.shared == 10
    assert "10 groups in several parts" in str(parts)


@pytest.mark.parametrize("by", ["id", "group"])
def test_examples_that_are_added_move_none_of_those_before(by: Any) -> None:
    small, large = split(dataset(100), HALVES, by=by), split(dataset(300), HALVES, by=by)
    for name in HALVES:
        assert {each.id for each in small[name]} <= {each.id for each in large[name]}


def test_sizes_are_about_those_asked_for() -> None:
    parts = split(dataset(4000), {"train": 0.7, "test": 0.3}, by="id")
    assert abs(parts.counts["train"] / 4000 - 0.7) < 0.03


def test_another_seed_is_another_split() -> None:
    first, second = (split(dataset(200), HALVES, by="id", seed=seed) for seed in (0, 1))
    assert {each.id for each in first["train"]} != {each.id for each in second["train"]}


PROBE = """
from evalr.labels import Dataset, Example, split
from evalr.measures import TaskCompletion, Transcript
found = Dataset("some", [Example(Transcript(id=f"e{n}", user=f"u{n % 9}", request="x"),
                expected=TaskCompletion(completed=n % 3 > 0, quality=3)) for n in range(60)])
for options in ({"by": "id"}, {"by": "group"}, {"stratify": "completed"}):
    print([each.id for each in split(found, {"a": 0.5, "b": 0.5}, **options)["a"]])
"""


def test_every_process_splits_alike() -> None:
    found = {
        subprocess.run(
            [sys.executable, "-c", PROBE],
            env={**os.environ, "PYTHONPATH": SOURCE, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1


@given(
    st.integers(1, 200),
    st.integers(2, 7),
    st.sampled_from([{"a": 0.5, "b": 0.5}, {"a": 0.7, "b": 0.2, "c": 0.1}]),
)
@settings(max_examples=40, deadline=None)
def test_a_stratified_split_by_id_keeps_every_proportion_within_one(
    size: int, failing: int, parts: dict[str, float]
) -> None:
    whole = dataset(size, failing=failing)
    found = split(whole, parts, by="id", stratify="completed")
    totals = Counter(str(each.expected.completed) for each in whole if each.expected)
    for name, share in parts.items():
        for stratum, total in totals.items():
            assert abs(found.strata[name].get(stratum, 0) - share * total) < len(parts)


def test_a_stratified_split_by_group_keeps_groups_whole_and_proportions_near() -> None:
    found = split(dataset(400, users=67), {"train": 0.6, "test": 0.4}, stratify="completed")
    assert found.shared == 0
    shares = [found.strata[name]["True"] / found.counts[name] for name in found]
    assert all(abs(share - 0.75) < 0.05 for share in shares)
    assert abs(found.counts["train"] / 400 - 0.6) < 0.05


def test_an_attribute_or_a_function_can_be_stratified_and_examples_without_are_a_stratum() -> None:
    whole = dataset(30).add(Example(Transcript(id="more", request="x")))
    by_topic = split(whole, HALVES, by="id", stratify="topic")
    assert {*by_topic.strata["train"], *by_topic.strata["test"]} == {"t0", "t1", "t2", "(none)"}
    by_function = split(whole, HALVES, by="id", stratify=lambda each: each.id[:1])
    assert {*by_function.strata["train"]} <= {"e", "m"}


def test_a_function_says_what_stays_together() -> None:
    found = split(dataset(60), HALVES, by=lambda each: str(each.attributes["topic"]))
    for name in ("t0", "t1", "t2"):
        assert sum(any(each.attributes["topic"] == name for each in part) for part in found.values()) == 1


def test_a_part_that_nothing_fell_into_says_so() -> None:
    found = split(dataset(3, users=1), {"train": 0.9, "test": 0.1})
    assert len(found.empty) == 1
    assert f"{found.empty[0]}: empty" in str(found)
    assert found[found.empty[0]].verdict_type is TaskCompletion


@pytest.mark.parametrize(
    ("parts", "options", "message"),
    [
        ({"train": 0.6, "test": 0.3}, {}, r"train=0.6, test=0.3 sum to 0.9"),
        ({"train": 1.5, "test": -0.5}, {}, "share of part 'train' is 1.5"),
        ({"train": float("nan")}, {}, "share of part 'train' is nan"),
        ({}, {}, "needs parts"),
        (HALVES, {"by": "user"}, "by='user' must be 'id', 'group' or a function"),
        (HALVES, {"by": lambda each: None}, "by gave None for example 'e0'"),
        (HALVES, {"stratify": "complete"}, "did you mean 'completed'"),
        (HALVES, {"stratify": lambda each: 3}, "stratify gave 3 for example 'e0'"),
    ],
)
def test_a_split_that_cannot_be_made_is_refused(parts: dict[str, float], options: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        split(dataset(5), parts, **options)


def test_a_list_is_no_dataset() -> None:
    with pytest.raises(InputError, match=r"not a list: pass Dataset\(name, examples\)"):
        split(list(dataset(5)), HALVES)  # type: ignore[arg-type]

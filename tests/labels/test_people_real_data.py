"""Judges whose agreement with people was published come out as published, and so do people among themselves."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from evalr import About, Contest, Failure, Verdict
from evalr.labels import Agreement, agreement, feedback


class Winner(BaseModel):
    winner: Literal["1", "2", "tie"]


class Shown(Winner):
    first: Literal["1", "2"] = "1"


NAMES = {"0": "tie", "1": "1", "2": "2", "Tie": "tie"}

# PandaLM's test set (github.com/WeOpenML/PandaLM, Apache-2.0): 999 items, by what GPT-3.5 said, and most of three
# people. Of 25 items, what it said could not be read.
GPT_35 = {
    ("1", "2"): 86, ("1", "1"): 332, ("2", "2"): 360, ("2", "1"): 71, ("0", "1"): 13, ("2", "0"): 45, ("0", "2"): 20,
    ("garbage", "1"): 6, ("0", "0"): 5, ("1", "0"): 42, ("garbage", "2"): 6, ("garbage", "0"): 13,
}  # fmt: skip


# The same of PandaLM-7B, of which all could be read; its agreement was published as 66.77%.
PANDALM_7B = {
    ("2", "2"): 337, ("1", "1"): 298, ("0", "1"): 40, ("1", "2"): 100, ("0", "2"): 35, ("2", "1"): 84,
    ("0", "0"): 32, ("1", "0"): 35, ("2", "0"): 38,
}  # fmt: skip


def about(name: str, repeat: int | None = None) -> About:
    return About("exchange", name, repeat=repeat)


def said(name: str, winner: str, author: str | None = None) -> Verdict[Winner]:
    return feedback(about(name), Winner(winner=NAMES[winner]), author=author)  # type: ignore[arg-type]


def judged(name: str, winner: str | None, judge: str, repeat: int | None = None) -> Any:
    if winner not in NAMES:
        return Failure("no winner in what it said", judge, "1", about(name, repeat))
    value = Shown(winner=NAMES[winner], first="2" if repeat == 2 else "1")  # type: ignore[arg-type]
    return Verdict(value, judge, "1", about(name, repeat))


def counts(found: Agreement, name: str) -> tuple[float, float]:
    of = found["winner"][name].counts
    return of["hits"], of["total"]


def test_three_figures_of_one_judge_by_what_becomes_of_answers_that_cannot_be_read() -> None:
    """697 of 999, 697 of 974 and 710 of 999 (71.07%, as published) are all in use: each has a name of its own here."""
    pairs = [pair for pair, n in GPT_35.items() for _ in range(n)]
    labels = [said(str(n), people) for n, (_, people) in enumerate(pairs)]
    found = agreement([judged(str(n), judge, "gpt-3.5") for n, (judge, _) in enumerate(pairs)], labels)
    assert counts(found, "answered alike") == (697, 999)
    assert counts(found, "accuracy") == (697, 974)
    assert found["winner"]["accuracy"].left_out == {"failed": 25}
    assert found["winner"]["accuracy"].bounds == (pytest.approx(697 / 999), pytest.approx(722 / 999))
    as_ties = [judged(str(n), "0" if judge == "garbage" else judge, "gpt-3.5") for n, (judge, _) in enumerate(pairs)]
    assert counts(agreement(as_ties, labels), "accuracy") == (710, 999)
    assert round(100 * 710 / 999, 2) == 71.07


def test_a_judge_of_which_all_could_be_read_agrees_as_published() -> None:
    pairs = [pair for pair, n in PANDALM_7B.items() for _ in range(n)]
    assert Counter(people for _, people in pairs) == Counter({"0": 105, "1": 422, "2": 472})
    assert Counter(people for (_, people), n in GPT_35.items() for _ in range(n)) == Counter(
        {"0": 105, "1": 422, "2": 472}
    )
    labels = [said(str(n), people) for n, (_, people) in enumerate(pairs)]
    found = agreement([judged(str(n), judge, "pandalm-7b") for n, (judge, _) in enumerate(pairs)], labels)
    assert counts(found, "answered alike") == counts(found, "accuracy") == (667, 999)
    assert round(100 * 667 / 999, 2) == 66.77


@pytest.fixture(scope="module")
def pandalm(real_logs: Path) -> list[dict[str, Any]]:
    return lines(real_logs / "pandalm" / "pandalm_dev.jsonl")


@pytest.fixture(scope="module")
def llmbar(real_logs: Path) -> list[dict[str, Any]]:
    return lines(real_logs / "llmbar" / "llmbar_dev.jsonl")


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(("one", "other", "published"), [(0, 1, 0.85), (0, 2, 0.88), (1, 2, 0.86)])
def test_people_of_pandalm_agree_as_published(
    pandalm: list[dict[str, Any]], one: int, other: int, published: float
) -> None:
    """Half of the published set, so near to the kappas of the whole, whose interval over that half holds them."""
    first, second = (
        [said(str(row["id"]), str(row["people"][person]), f"p{person}") for row in pandalm] for person in (one, other)
    )
    found = agreement(first, second)["winner"]
    by_hand = kappa([(row["people"][one], row["people"][other]) for row in pandalm])
    assert found["kappa"].value == pytest.approx(by_hand, abs=1e-12)
    assert found["kappa"].value == pytest.approx(published, abs=0.015)
    assert found["kappa"].low < published < found["kappa"].high  # type: ignore[operator]


def kappa(pairs: list[tuple[object, object]]) -> float:
    n, one, other = len(pairs), Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    alike, chance = sum(a == b for a, b in pairs) / n, sum(one[each] * other[each] for each in one) / n**2
    return (alike - chance) / (1 - chance)


@pytest.mark.parametrize(("judge", "hits", "unread"), [("gpt35", 346, 15), ("pandalm7b", 332, 0)])
def test_judges_of_pandalm_agree_as_known_and_less_than_people(
    pandalm: list[dict[str, Any]], judge: str, hits: int, unread: int
) -> None:
    labels = [said(str(row["id"]), str(row["people"][k]), f"p{k}") for row in pandalm for k in range(3)]
    found = agreement([judged(str(row["id"]), str(row[judge]), judge) for row in pandalm], labels)
    field = found["winner"]
    assert counts(found, "answered alike") == (hits, 500)
    assert counts(found, "accuracy") == (hits, 500 - unread)
    assert (field.tied, found.labellers) == (0, {"p0": 500, "p1": 500, "p2": 500})
    assert field["people"].value > 0.9  # type: ignore[operator]
    assert field["judge - people"].high < -0.15  # type: ignore[operator]


def test_most_of_three_people_of_pandalm_say_what_is_known(pandalm: list[dict[str, Any]]) -> None:
    assert Counter(str(row["majority"]) for row in pandalm) == Counter({"0": 57, "1": 206, "2": 237})
    labels = [said(str(row["id"]), str(row["people"][k]), f"p{k}") for row in pandalm for k in range(3)]
    most = [judged(str(row["id"]), str(row["majority"]), "most") for row in pandalm]
    assert counts(agreement(most, labels), "accuracy") == (500, 500)


PARTS = {"Natural": "LLMBar/Natural", "Neighbor": "LLMBar/Adversarial/Neighbor", "Manual": "LLMBar/Adversarial/Manual"}
JUDGES = [
    f"{part}/{judge}/{strategy}"
    for part in PARTS.values()
    for judge in ("GPT-4", "ChatGPT", "LLaMA2", "PaLM2", "Falcon")
    for strategy in ("Vanilla_NoRules", "CoT")
]

first_wins = Contest(
    "first_wins",
    of=Shown,
    outcome=lambda v: {"1": "win", "2": "loss", "tie": "tie"}[v.winner],
    first=lambda v: v.first == "1",
)


@pytest.mark.parametrize("name", JUDGES)
def test_judges_of_llmbar_are_as_right_and_as_consistent_as_known(
    real_logs: Path, llmbar: list[dict[str, Any]], name: str
) -> None:
    """In both orders of each pair: right on average, the same in both, and the kappa of the two orders."""
    known = json.loads((real_logs / "llmbar" / "truth.json").read_text(encoding="utf-8"))[name]
    part, judge, strategy = name.rsplit("/", 2)
    orders: dict[bool, list[Any]] = {False: [], True: []}
    labels = []
    for row in llmbar:
        if PARTS[row["subset"]] != part:
            continue
        labels.append(said(row["id"], str(row["label"])))
        for each in row["judgments"]:
            if (each["judge"], each["strategy"]) == (judge, strategy):
                orders[each["swap"]].append(judged(row["id"], each["winner"], judge, repeat=1 + each["swap"]))
    for swapped, results in orders.items():
        hits, total = map(int, known[f"correct_{swapped}"].partition(" = ")[0].split(" / "))
        assert counts(agreement(results, labels), "answered alike") == (hits, total)
    both = agreement([*orders[False], *orders[True]], labels)["winner"]["answered alike"]
    assert both.value == pytest.approx(float(known["correct_average"].rstrip("%")) / 100)
    assert both.clusters == len(labels)
    same, total = map(int, known["equal"].partition(" = ")[0].split(" / "))
    found = first_wins.consistency([*orders[False], *orders[True]])
    unread = sum(isinstance(each, Failure) for each in (*orders[False], *orders[True]))
    if not unread:
        assert found.same.counts == {"hits": same, "total": total}
        of_orders = agreement(orders[False], orders[True])["winner"]["kappa"]
        assert of_orders.value == pytest.approx(known["kappa_agreement"])
    else:
        assert found.same.n < total

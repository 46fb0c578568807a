"""A judge beside people: what is paired, what is not, and what each field of a verdict type says."""

from __future__ import annotations

from enum import Enum
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from evalr import About, DuplicateError, Failure, HandOff, InputError, MixedVersionsError, Skip, Verdict
from evalr.estimates.agreement import rating_agreement, verdict_agreement
from evalr.labels import Dataset, Example, agreement, feedback
from evalr.measures import TaskCompletion, Transcript


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Everything(BaseModel):
    ok: bool
    kind: Literal["a", "b", "<b>c</b>"]
    color: Color = Color.RED
    cause: Literal["slow", "wrong"] | None = None
    tags: list[Literal["x", "y"]] = Field(default_factory=list)
    quality: int = Field(default=3, ge=1, le=5)
    share: float = Field(default=0.5, ge=0, le=1)
    turns: int = 0
    note: str = ""
    diagnosis: str | None = None


def about(n: int | str, user: str | None = None) -> About:
    return About("exchange", str(n), user=user)


def judged(n: int | str, user: str | None = None, **fields: Any) -> Verdict[Everything]:
    return Verdict(Everything(**{"ok": True, "kind": "a", **fields}), "judge", "7", about(n, user))


def said(n: int | str, user: str | None = None, author: str | None = None, **fields: Any) -> Verdict[Everything]:
    return feedback(about(n, user), Everything(**{"ok": True, "kind": "a", **fields}), author=author)


# What is paired


def test_what_has_no_counterpart_is_counted_on_both_sides() -> None:
    results = [judged(1), judged(2), Skip("not this", "judge", "7", about(3)), judged(9, user="u")]
    labels = [said(1), said(3), said(4), said(9, user="v"), Skip("no time", "people", "1", about(5))]
    found = agreement(results, labels)
    assert (found.pairs, found.unlabelled, found.unjudged, found.near) == (1, 2, 2, 1)
    assert found.no_verdict == {"skipped": 1}
    assert found.unanswered == {"skipped": 1}
    printed = str(found)
    for words in (
        "judge@7 beside people · 1 pair",
        "1 labelled, and skipped by the judge",
        "2 results without a label",
        "2 labelled items without a result; 1 with the id of one, of another kind, user or session",
        "1 skipped by people",
    ):
        assert words in printed


def test_a_judge_that_fails_does_not_agree() -> None:
    """opik#8134: a judge that crashed on five of ten looked like another than it was."""
    results = [judged(n) for n in range(5)] + [Failure("crashed", "judge", "7", about(n)) for n in range(5, 10)]
    found = agreement(results, [said(n) for n in range(10)])["ok"]
    accuracy, whole = found["accuracy"], found["answered alike"]
    assert (accuracy.value, accuracy.n, accuracy.left_out, accuracy.bounds) == (1.0, 5, {"failed": 5}, (0.5, 1.0))
    assert (whole.value, whole.counts) == (0.5, {"hits": 5, "total": 10})


def test_hand_offs_and_failures_are_told_apart() -> None:
    results = [Failure("x", "judge", "7", about(1)), HandOff("unsure", "judge", "7", about(2)), judged(3)]
    found = agreement(results, [said(n) for n in (1, 2, 3)])
    assert found.no_verdict == {"failed": 1, "handed off": 1}
    assert found["ok"]["accuracy"].bounds == (pytest.approx(1 / 3), 1.0)


def test_what_a_judge_was_made_with_is_in_no_number() -> None:
    results = [judged(n, ok=n != 5) for n in range(6)]
    labels = [said(n) for n in range(6)]
    train = [about(0), results[1], labels[2], "3"]
    found = agreement(results, labels, exclude=train)
    assert (found.pairs, found.excluded, found.unlabelled, found.unjudged) == (2, 4, 0, 0)
    assert found["ok"]["accuracy"].value == 0.5
    assert "4 results excluded, which the judge was made with" in str(found)
    assert "1 named to be excluded are in neither" in str(agreement(results, labels, exclude=["other"]))


def test_a_training_split_is_excluded_whole() -> None:
    done = TaskCompletion(completed=True, quality=4)
    examples = [Example(Transcript(id=f"q{n}", user="u", request="x"), expected=done) for n in range(4)]
    results = [Verdict(done, "judge", about=each.about()) for each in examples]
    found = agreement(results, Dataset("all", examples), exclude=Dataset("train", examples[:3]))
    assert (found.pairs, found.excluded) == (1, 3)
    with pytest.raises(InputError, match="exclude= is one text"):
        agreement(results, Dataset("all", examples), exclude="train")
    with pytest.raises(InputError, match="has no id"):
        agreement(results, Dataset("all", examples), exclude=[Transcript(request="x")])


def test_a_second_result_or_label_is_an_error_unless_asked_for() -> None:
    with pytest.raises(DuplicateError, match="results 0 and 1"):
        agreement([judged(1), judged(1)], [said(1)])
    with pytest.raises(DuplicateError, match="labels 0 and 1 by 'ann' are both about exchange '1'"):
        agreement([judged(1)], [said(1, author="ann"), said(1, author="ann")])
    assert agreement([judged(1), judged(1, ok=False)], [said(1)], duplicates="first")["ok"]["accuracy"].value == 1.0


def test_versions_are_pooled_only_where_asked() -> None:
    other = Verdict(Everything(ok=True, kind="a"), "judge", "8", about(2))
    with pytest.raises(MixedVersionsError, match="versions '7', '8' of 'judge'"):
        agreement([judged(1), other], [said(1), said(2)])
    found = agreement([judged(1), other], [said(1), said(2)], mix_versions=True)
    assert "mixed_versions" in found["ok"]["accuracy"].flags
    asked_anew = feedback(about(2), Everything(ok=True, kind="a"), version="2")
    with pytest.raises(MixedVersionsError, match="of 'people'"):
        agreement([judged(1), judged(2)], [said(1), asked_anew])


def test_results_are_of_one_judge_and_of_one_verdict_type() -> None:
    with pytest.raises(InputError, match="several evaluators: 'judge', 'other'"):
        agreement([judged(1), Failure("x", "other", "1", about(2))], [said(1)])
    wrong = feedback(about(1), TaskCompletion(completed=True, quality=1))
    with pytest.raises(InputError, match="different verdict types, Everything and TaskCompletion"):
        agreement([judged(1)], [wrong])
    with pytest.raises(InputError, match="results 0 is a Everything"):
        agreement([judged(1).value], [said(1)])  # type: ignore[list-item]
    with pytest.raises(InputError, match="about nothing with an id"):
        agreement([judged(1)], [Verdict(Everything(ok=True, kind="a"), "people")])


def test_a_subclass_is_compared_by_what_both_have() -> None:
    class More(TaskCompletion):
        extra: bool = False

    of_judge = Verdict(More(completed=True, quality=4), "judge", about=about(1))
    found = agreement([of_judge], [feedback(about(1), TaskCompletion(completed=True, quality=4))])
    assert list(found) == ["completed", "quality"]


def test_nothing_at_all_is_said_and_not_computed() -> None:
    found = agreement([], [])
    assert (found.pairs, len(found), str(found)) == (0, 0, "nobody beside people · 0 pairs")
    empty = agreement([judged(1)], [])["ok"]["accuracy"]
    assert (empty.value, empty.status, empty.reason) == (None, "undefined", "nothing was counted")


# Fields by their kinds


def test_every_field_is_compared_by_its_kind_and_texts_only_by_name() -> None:
    results, labels = [judged(n) for n in range(3)], [said(n) for n in range(3)]
    found = agreement(results, labels)
    assert {name: field.reading for name, field in found.items()} == {
        "ok": "yes or no",
        "kind": "choice",
        "color": "choice",
        "cause": "choice",
        "tags: x": "yes or no",
        "tags: y": "yes or no",
        "quality": "rating",
        "share": "rating",
        "turns": "rating",
    }
    assert set(found.not_compared) == {"note", "diagnosis"}
    assert "not compared: note (a text; name it in fields=" in str(found)
    assert {"ac2", "exact", "within one"} <= set(found["quality"])
    assert set(found["share"]) == {"kappa", "alpha", "leniency"}
    assert "ac2" not in found["turns"]
    named = agreement(results, labels, fields=["note", "ok"])
    assert list(named) == ["ok", "note"]
    assert not named.not_compared
    with pytest.raises(InputError, match=r"there is no field 'okay'; .*did you mean 'ok'"):
        agreement(results, labels, fields=["okay"])


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans(), st.booleans()), min_size=1, max_size=25))
def test_yes_or_no_has_the_numbers_of_the_statistics(rows: list[tuple[int, bool, bool]]) -> None:
    results = [judged(n, f"u{user}", ok=judge) for n, (user, judge, _) in enumerate(rows)]
    labels = [said(n, f"u{user}", ok=people) for n, (user, _, people) in enumerate(rows)]
    found = agreement(results, labels, fields=["ok"])["ok"]
    pure = verdict_agreement(rows)
    for name in ("accuracy", "kappa", "ac1", "mcc", "tpr", "tnr"):
        part = getattr(pure, name)
        estimate = found[name]
        assert (estimate.value, estimate.low, estimate.high) == (part.value, part.interval.low, part.interval.high)
    assert found["tpr"].n == sum(people for _, _, people in rows)
    assert found["accuracy"].clustered_by == {"user": len({user for user, _, _ in rows})}


def test_ratings_have_those_of_the_statistics_and_how_many_are_near() -> None:
    pairs = [(4, 5), (3, 3), (1, 3), (5, 5), (2, 1), (4, 4), (2, 3), (5, 4)]
    results = [judged(n, quality=judge) for n, (judge, _) in enumerate(pairs)]
    labels = [said(n, quality=people) for n, (_, people) in enumerate(pairs)]
    found = agreement(results, labels, fields=["quality"])["quality"]
    pure = rating_agreement([(None, *each) for each in pairs], scale=range(1, 6))
    assert found["within one"].counts == {"hits": 7, "total": 8}
    for name in ("exact", "kappa", "ac2", "alpha"):
        assert found[name].value == getattr(pure, name).value
    assert found["leniency"].value == pytest.approx(-2 / 8)
    assert "low_confidence" in found["exact"].flags


def test_choices_have_rates_by_class_and_enums_their_values() -> None:
    pairs = [("a", "a"), ("a", "b"), ("b", "b"), ("<b>c</b>", "b"), ("a", "a")]
    colors = [(Color.RED, Color.RED), (Color.RED, Color.BLUE)] * 2 + [(Color.BLUE, Color.BLUE)]
    results = [judged(n, kind=pairs[n][0], color=colors[n][0]) for n in range(5)]
    labels = [said(n, kind=pairs[n][1], color=colors[n][1]) for n in range(5)]
    found = agreement(results, labels, fields=["kind", "color"])
    assert found["kind"]["tpr: b"].value == pytest.approx(1 / 3)
    assert found["kind"]["tnr: b"].value == 1.0
    assert found["kind"].confusion[("a", "b")] == 1
    assert found["color"]["tpr: blue"].value == pytest.approx(1 / 3)
    assert {"judge": "red", "people": "blue", "n": 2} in found["color"].to_dict()["confusion"]
    assert "<b>c" not in found._repr_html_()


def test_a_list_of_choices_is_compared_choice_by_choice() -> None:
    results = [judged(1, tags=["x"]), judged(2, tags=["x", "y"])]
    found = agreement(results, [said(1, tags=["x"]), said(2, tags=["x"])], fields=["tags"])
    assert (found["tags: x"]["accuracy"].value, found["tags: y"]["accuracy"].value) == (1.0, 0.5)


def test_what_is_filled_where_people_left_it_empty_counts_against_the_judge() -> None:
    cases = [("slow", "slow"), ("slow", None), ("wrong", None), (None, "slow"), (None, None), ("slow", "wrong")]
    results = [judged(n, cause=judge, diagnosis=judge) for n, (judge, _) in enumerate(cases)]
    labels = [said(n, cause=people, diagnosis=people) for n, (_, people) in enumerate(cases)]
    found = agreement(results, labels, fields=["cause", "diagnosis"])
    for name in ("cause", "diagnosis"):
        alike = found[name]["filled alike"]
        assert alike.value == pytest.approx(2 / 6)
        assert alike.counts == {"same": 1, "different": 1, "judge_only": 2, "people_only": 1, "both_empty": 1}
        assert found[name]["filled precision"].value == pytest.approx(1 / 4)
        assert found[name]["filled recall"].value == pytest.approx(1 / 3)
        assert found[name]["accuracy"].counts == {"hits": 1, "total": 2}
    assert found["cause"].confusion[("slow", None)] == 1


def test_a_text_is_compared_as_written_but_for_spaces() -> None:
    results = [judged(1, note="too  slow\n"), judged(2, note="fine")]
    found = agreement(results, [said(1, note="too slow"), said(2, note="Fine")], fields=["note"])
    assert found["note"]["accuracy"].value == 0.5


def test_numbers_of_very_many_values_are_named_and_not_computed() -> None:
    results = [judged(n, share=n / 300) for n in range(300)]
    found = agreement(results, [said(n) for n in range(300)])
    assert found.not_compared["share"].startswith("300 different values make no scale")


# Several people


def test_several_people_are_compared_with_each_other_and_most_of_them_with_the_judge() -> None:
    votes = [(True, True, False), (True, False), (False, False, False), (True, True)]
    results = [judged(n) for n in range(4)]
    labels = [said(n, author=f"p{k}", ok=vote) for n, each in enumerate(votes) for k, vote in enumerate(each)]
    found = agreement(results, labels, fields=["ok"])
    field = found["ok"]
    assert (field.pairs, field.tied) == (3, 1)
    assert field["accuracy"].value == pytest.approx(2 / 3)
    assert field["people"].value == pytest.approx((1 / 3 + 0 + 1 + 1) / 4)
    assert field["judge"].value == pytest.approx((2 / 3 + 1 / 2 + 0 + 1) / 4)
    assert field["judge - people"].value == pytest.approx(field["judge"].value - field["people"].value)
    assert found.labellers == {"p0": 4, "p1": 4, "p2": 2}
    assert "judge@7 beside 3 people" in str(found)
    assert "ok · 1 tie between people, not compared" in str(found)


def test_ratings_by_several_people_are_their_median() -> None:
    ratings = [(5, 1, 4), (2, 3), (3, 3)]
    labels = [said(n, author=f"p{k}", quality=each) for n, of in enumerate(ratings) for k, each in enumerate(of)]
    field = agreement([judged(n, quality=4) for n in range(3)], labels, fields=["quality"])["quality"]
    assert (field.pairs, field.tied, field["exact"].counts) == (2, 1, {"hits": 1, "total": 2})
    assert field["people alpha"].n == 3


def test_people_who_left_a_field_empty_have_a_majority_too() -> None:
    labels = [said(1, author=f"p{k}", cause=cause) for k, cause in enumerate((None, None, "slow"))]
    field = agreement([judged(1, cause="slow")], labels, fields=["cause"])["cause"]
    assert field["filled alike"].counts["judge_only"] == 1


def test_two_people_are_compared_like_a_judge_and_people() -> None:
    ann = [said(n, author="ann", ok=n % 2 == 0) for n in range(6)]
    bob = [said(n, author="bob", ok=n % 3 == 0) for n in range(6)]
    assert agreement(ann, bob)["ok"]["accuracy"].value == pytest.approx(3 / 6)


# Clusters


def test_clusters_are_users_groups_or_what_is_named() -> None:
    results = [judged(n, f"u{n % 4}", ok=n % 3 > 0) for n in range(40)]
    labels = [said(n, f"u{n % 4}") for n in range(40)]
    by_user = agreement(results, labels)["ok"]["accuracy"]
    assert (by_user.clustered_by, by_user.clusters) == ({"user": 4}, 4)
    by_item = agreement(results, labels, cluster="id")["ok"]["accuracy"]
    assert by_item.clusters == 40
    with pytest.raises(InputError, match="cluster='team'"):
        agreement(results, labels, cluster="team")
    done = TaskCompletion(completed=True, quality=4)
    examples = [Example(Transcript(id=f"q{n}", request="x"), expected=done, group=f"g{n % 5}") for n in range(20)]
    plain = [Verdict(done, "judge", about=each.given().about()) for each in examples]
    assert agreement(plain, Dataset("d", examples))["completed"]["accuracy"].clustered_by == {"group": 5}


def test_repeats_of_an_item_are_one_cluster_and_each_is_compared() -> None:
    repeats = [
        Verdict(Everything(ok=k == 0, kind="a"), "judge", "7", about(n)._replace(repeat=k + 1))
        for n in range(10)
        for k in range(2)
    ]
    accuracy = agreement(repeats, [said(n) for n in range(10)])["ok"]["accuracy"]
    assert (accuracy.value, accuracy.n, accuracy.clusters) == (0.5, 20, 10)


# How it shows


def test_it_prints_as_a_table_and_shows_hostile_names_as_text() -> None:
    results = [Verdict(judged(n).value, "<script>\x1b[2J", "7", about(n)) for n in range(3)]
    found = agreement(results, [said(n, author="<img>") for n in range(3)])
    assert "\x1b" not in str(found)
    page = found._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    rows = found.to_dicts()
    assert len(rows) == sum(map(len, found.values()))
    assert {"name", "group", "value", "low", "high", "left_out"} <= set(rows[0])
    assert found.to_dict()["fields"]["ok"]["estimates"]["accuracy"]["value"] == 1.0


def test_a_number_or_field_that_is_not_there_is_named_with_those_that_are() -> None:
    found = agreement([judged(1)], [said(1)], fields=["ok"])
    with pytest.raises(KeyError, match=r"no number is named 'kapa'; .* did you mean 'kappa'"):
        found["ok"]["kapa"]
    with pytest.raises(KeyError, match="no field that was compared is named 'done'; there are: ok"):
        found["done"]
    assert ("kapa" in found["ok"], found.get("done")) == (False, None)


def test_it_is_a_frame() -> None:
    pytest.importorskip("pandas")
    frame = agreement([judged(1)], [said(1)], fields=["ok"]).to_frame()
    assert list(frame["name"][:2]) == ["accuracy", "kappa"]
    assert set(frame["group"]) == {"ok"}


def test_another_level_is_said() -> None:
    results, labels = [judged(n, ok=n > 2) for n in range(9)], [said(n) for n in range(9)]
    narrow, wide = (agreement(results, labels, level=level)["ok"]["accuracy"] for level in (0.8, 0.99))
    assert narrow.low is not None
    assert wide.low is not None
    assert wide.low < narrow.low
    assert "at 80%" in str(agreement(results, labels, level=0.8))
    with pytest.raises(InputError, match="level"):
        agreement(results, labels, level=1.0)

"""Histories read from git: who wrote what, renames, branches, and the order of it all."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from repositories import (
    AGENT,
    BOT,
    DEVIN,
    HOUR,
    OTHER,
    PERSON,
    START,
    TRAILER,
    Program,
    Story,
    git,
    histories,
    init,
    read,
    told,
)

from evalr.errors import InputError
from evalr.inputs import History
from evalr.logs import read as read_log
from evalr.logs.git import changes, reader
from evalr.logs.git.lines import times_in_order

LONG = "".join(f"line {number} of the first text, {number * 7}\n" for number in range(40))
LONGER = LONG + "one line more\n"
DIFFERENT = "".join(f"{number * 3} is what another text says\n" for number in range(40))

A, P, S = "agent", "person", "system"


def paths(found: list[History]) -> list[str]:
    return [str(history.attributes["path"]) for history in found]


# Who wrote it


@pytest.mark.parametrize(
    ("by", "trailers", "agent"),
    [
        (AGENT, (), "claude"),
        (DEVIN, (), "devin"),
        (PERSON, (TRAILER,), "claude"),
        (PERSON, ("Signed-off-by: Alice <alice@example.com>", TRAILER), "claude"),
        (PERSON, (TRAILER, "", "and a line after the trailers"), None),
        (PERSON, (), None),
    ],
)
def test_an_agent_is_known_by_author_or_trailer(
    tmp_path: Path, by: str, trailers: tuple[str, ...], agent: str | None
) -> None:
    story = Story()
    story.commit({"a.py": "one\n"}, by=by, trailers=trailers)
    found = histories(story.write(tmp_path / "repo").log())
    assert [history.attributes["agent"] for history in found] == ([] if agent is None else [[agent]])


def test_a_trailer_counts_beside_lines_that_are_none(tmp_path: Path) -> None:
    story = Story()
    story.commit({"a.py": "one\n"}, trailers=("Some last words", "in two lines", TRAILER))
    assert [history.attributes["agent"] for history in histories(story.write(tmp_path / "repo").log())] == [["claude"]]


def test_the_committer_does_not_count(tmp_path: Path) -> None:
    story = Story()
    story.commit({"a.py": "one\n"}, committer=AGENT)
    log = story.write(tmp_path / "repo").log()
    assert histories(log) == []
    assert any("its only commit is not by an agent that is known here" in note for note in log.notes)


def test_a_history_names_all_its_agents_and_each_revision_its_own(tmp_path: Path) -> None:
    story = Story()
    story.commit({"a.py": "one\n"}, by=DEVIN)
    story.commit({"a.py": "two\n"}, by=OTHER)
    story.commit({"a.py": "three\n"}, by=AGENT)
    [history] = histories(story.write(tmp_path / "repo").log())
    assert history.attributes["agent"] == ["claude", "devin"]
    assert [revision.attributes for revision in history.revisions] == [
        {"agent": "devin", "commit": history.revisions[0].id},
        {},
        {"agent": "claude", "commit": history.revisions[2].id},
    ]


def test_what_a_tag_leads_to_is_followed_until_then_and_a_branch_to_this_day(tmp_path: Path) -> None:
    story = Story()
    first = story.commit({"a.py": "one\n"}, by=AGENT)
    story.commit({"a.py": ""}, at=START + timedelta(days=2))
    repo = story.write(tmp_path / "repo")
    [history] = histories(repo.log(rev=repo.hashes[first]))
    assert (len(history.revisions), history.read_at) == (1, history.revisions[0].at)
    assert histories(repo.log())[0].read_at is None
    repo.git("checkout", "--detach", "HEAD")
    assert histories(repo.log())[0].read_at == START + timedelta(days=2)


def test_of_a_commit_with_too_many_renames_nothing_is_said(tmp_path: Path) -> None:
    many = range(1_010)
    before = {f"old/{n % 7}/{n}/index.py": f"def f{n}():\n    return {n}\n" * 5 for n in many}
    after = {f"new/{n % 7}/{n}/index.py": text + "# moved\n" for n, text in enumerate(before.values())}
    story = Story()
    story.commit(before, by=AGENT)
    story.commit(dict.fromkeys(before) | after)
    log = story.write(tmp_path / "repo").log()
    found = histories(log)
    assert log.left_out.counts["deletion among too many to find renames"] == 1_010
    assert all(len(history.revisions) == 1 and history.read_at is not None for history in found)


def test_agents_of_a_house_come_from_a_file(tmp_path: Path) -> None:
    table = tmp_path / "agents.toml"
    table.write_text('[[agent]]\nname = "acme"\nemails = ["bob@example.com"]\n')
    story = Story()
    story.commit({"a.py": "one\n"}, by=OTHER)
    repo = story.write(tmp_path / "repo")
    assert histories(repo.log()) == []
    assert [history.attributes["agent"] for history in histories(repo.log(agents=str(table)))] == [["acme"]]


def test_only_agents(tmp_path: Path) -> None:
    story = Story()
    for text in "one", "two", "three":
        story.commit({"a.py": text}, by=AGENT)
    assert read(story, tmp_path) == ({"a.py": [(A, "one"), (A, "two"), (A, "three")]}, {})


def test_no_agent_at_all(tmp_path: Path) -> None:
    story = Story()
    story.commit({"a.py": "one\n"})
    story.commit({"a.py": "two\n"})
    log = story.write(tmp_path / "repo").log()
    assert histories(log) == []
    assert log.records == 0
    assert any("none of its 2 commits" in note for note in log.notes)


# One file


def test_the_text_before_an_agents_first_is_the_systems(tmp_path: Path) -> None:
    story = Story()
    story.commit({"a.py": "one\n"})
    story.commit({"a.py": "two\n"}, by=AGENT)
    story.commit({"a.py": "three\n"})
    assert read(story, tmp_path) == ({"a.py": [(S, "one\n"), (A, "two\n"), (P, "three\n")]}, {})


def test_only_the_person_right_before_an_agent_is_kept(tmp_path: Path) -> None:
    story = Story()
    story.commit({"other.py": "one\n"}, by=AGENT)
    for text in "one", "two", "three":
        story.commit({"a.py": text})
    story.commit({"a.py": "four"}, by=AGENT)
    found, left_out = read(story, tmp_path)
    assert found["a.py"] == [(P, "three"), (A, "four")]
    assert left_out == {"where no agent's text is followed": 2}


def test_a_draft_at_the_tip_is_followed_to_this_day(tmp_path: Path) -> None:
    story = Story()
    story.commit({"a.py": "one\n"})
    story.commit({"a.py": "two\n"}, by=AGENT)
    [history] = histories(story.write(tmp_path / "repo").log())
    assert history.read_at is None
    [draft] = history.drafts()
    assert (draft.before, draft.text, draft.people, draft.superseded) == ("one\n", "two\n", [], None)


@pytest.mark.parametrize("deleted_by", [PERSON, AGENT])
def test_a_deleted_file_has_no_text_and_may_be_put_back(tmp_path: Path, deleted_by: str) -> None:
    story = Story()
    story.commit({"a.py": "one\n", "b.py": "b\n"}, by=AGENT)
    story.commit({"a.py": None}, by=deleted_by)
    story.commit({"a.py": "one\n"})
    story.commit({"a.py": "two\n"})
    [history, _] = histories(story.write(tmp_path / "repo").log())
    who = A if deleted_by == AGENT else P
    assert told(history) == [(A, "one\n"), (who, ""), (P, "one\n"), (P, "two\n")]
    assert history.read_at is None


def test_what_comes_after_a_deleted_file_is_another(tmp_path: Path) -> None:
    story = Story()
    story.commit({"a.py": "one\n"}, by=AGENT)
    story.commit({"a.py": None})
    story.commit({"a.py": "something else\n"}, by=AGENT)
    story.commit({"a.py": "something else again\n"})
    repo = story.write(tmp_path / "repo")
    log = repo.log()
    first, second = histories(log)
    assert told(first) == [(A, "one\n"), (P, "")]
    assert told(second) == [(A, "something else\n"), (P, "something else again\n")]
    assert (first.read_at, second.read_at) == (None, None)
    assert log.left_out.total == 0


def test_a_file_that_became_a_directory_and_back(tmp_path: Path) -> None:
    story = Story()
    story.commit({"a": "one\n"}, by=AGENT)
    story.commit({"a": None, "a/b": DIFFERENT})
    story.commit({"a/b": None, "a": "one\n"})
    story.commit({"a": "two\n"})
    found, _ = read(story, tmp_path)
    assert found == {"a": [(A, "one\n"), (P, ""), (P, "one\n"), (P, "two\n")]}


def test_a_mode_is_no_text(tmp_path: Path) -> None:
    story = Story()
    story.commit({"a.sh": "one\n"}, by=AGENT)
    story.commit({"a.sh": Program("one\n")}, by=AGENT)
    story.commit({"a.sh": Program("two\n")})
    assert read(story, tmp_path) == ({"a.sh": [(A, "one\n"), (P, "two\n")]}, {})


def test_empty_files_and_empty_commits(tmp_path: Path) -> None:
    story = Story()
    story.commit({})
    story.commit({}, by=AGENT)
    story.commit({"a/__init__.py": "", "b/__init__.py": ""}, by=AGENT)
    story.commit({"a/__init__.py": "x = 1\n"})
    story.commit({})
    assert read(story, tmp_path) == ({"a/__init__.py": [(A, ""), (P, "x = 1\n")], "b/__init__.py": [(A, "")]}, {})


def test_an_agent_may_make_the_first_commit(tmp_path: Path) -> None:
    story = Story()
    story.commit({"a.py": "one\n"}, by=AGENT)
    story.commit({"a.py": "two\n"})
    assert read(story, tmp_path) == ({"a.py": [(A, "one\n"), (P, "two\n")]}, {})


def test_ids_name_path_and_commit_and_stay_unique(tmp_path: Path) -> None:
    story = Story()
    first = story.commit({"d/a.py": LONG, "d/b.py": DIFFERENT}, by=AGENT)
    story.commit({"d/a.py": None, "c.py": LONG})
    story.commit({"c.py": None})
    last = story.commit({"d/b.py": None, "c.py": DIFFERENT})
    repo = story.write(tmp_path / "repo")
    found = histories(repo.log())
    assert [history.id for history in found] == [f"c.py@{repo.short(first)}", f"c.py@{repo.short(first)}:2"]
    assert found[0].revisions[0].id == repo.short(first)
    assert repo.short(last) not in {revision.id for history in found for revision in history.revisions}


def test_a_directory_is_named_as_git_names_it(tmp_path: Path) -> None:
    story = Story()
    story.commit({"a.py": "one\n", "src/deep/b.py": "two\n"}, by=AGENT)
    found = histories(story.write(tmp_path / "repo").log())
    assert [(h.attributes["path"], h.attributes["directory"]) for h in found] == [
        ("a.py", "."),
        ("src/deep/b.py", "src/deep"),
    ]


# Renames


def test_a_pure_rename_is_no_revision(tmp_path: Path) -> None:
    story = Story()
    story.commit({"a.py": LONG}, by=AGENT)
    story.commit({"a.py": None, "src/b.py": LONG})
    story.commit({"src/b.py": LONGER})
    assert read(story, tmp_path) == ({"src/b.py": [(A, LONG), (P, LONGER)]}, {})


def test_a_rename_with_edits_is_one(tmp_path: Path) -> None:
    story = Story()
    story.commit({"a.py": LONG}, by=AGENT)
    story.commit({"a.py": None, "b.py": LONGER})
    assert read(story, tmp_path) == ({"b.py": [(A, LONG), (P, LONGER)]}, {})


def test_renames_over_several_commits(tmp_path: Path) -> None:
    story = Story()
    story.commit({"a.py": LONG}, by=AGENT)
    story.commit({"a.py": None, "b.py": LONGER})
    story.commit({"b.py": None, "c.py": LONGER})
    story.commit({"c.py": None, "d/e.py": LONGER + "and more\n"}, by=DEVIN)
    story.commit({"d/e.py": LONG})
    expected = [(A, LONG), (P, LONGER), (A, LONGER + "and more\n"), (P, LONG)]
    assert read(story, tmp_path) == ({"d/e.py": expected}, {})


def test_two_files_swap_their_names(tmp_path: Path) -> None:
    story = Story()
    story.commit({"a.py": LONG, "b.py": DIFFERENT}, by=AGENT)
    story.commit({"a.py": DIFFERENT, "b.py": LONG})
    story.commit({"b.py": LONGER})
    found, left_out = read(story, tmp_path)
    assert found == {"a.py": [(A, DIFFERENT)], "b.py": [(A, LONG), (P, LONGER)]}
    assert left_out == {}


def test_two_files_swap_their_names_over_three_commits(tmp_path: Path) -> None:
    story = Story()
    story.commit({"a.py": LONG, "b.py": DIFFERENT}, by=AGENT)
    story.commit({"a.py": None, "tmp.py": LONG})
    story.commit({"b.py": None, "a.py": DIFFERENT})
    story.commit({"tmp.py": None, "b.py": LONG})
    story.commit({"b.py": LONGER})
    assert read(story, tmp_path)[0] == {"a.py": [(A, DIFFERENT)], "b.py": [(A, LONG), (P, LONGER)]}


def test_a_new_file_takes_the_old_name_at_once(tmp_path: Path) -> None:
    story = Story()
    story.commit({"a.py": LONG}, by=AGENT)
    story.commit({"a.py": "from b import *\n", "b.py": LONG})
    story.commit({"b.py": LONGER})
    found, left_out = read(story, tmp_path)
    assert found == {"b.py": [(A, LONG), (P, LONGER)]}
    assert left_out == {"where no agent's text is followed": 1}


def test_a_new_file_takes_the_old_name_later(tmp_path: Path) -> None:
    story = Story()
    story.commit({"a.py": LONG}, by=AGENT)
    story.commit({"a.py": None, "b.py": LONG})
    story.commit({"a.py": DIFFERENT}, by=DEVIN)
    story.commit({"b.py": LONGER})
    assert read(story, tmp_path)[0] == {"a.py": [(A, DIFFERENT)], "b.py": [(A, LONG), (P, LONGER)]}


def test_a_copy_that_is_edited_little_is_no_rename(tmp_path: Path) -> None:
    story = Story()
    story.commit({"a.py": LONG}, by=AGENT)
    story.commit({"a.py": LONGER, "copy.py": LONG})
    found, left_out = read(story, tmp_path)
    assert found == {"a.py": [(A, LONG), (P, LONGER)]}
    assert left_out == {"where no agent's text is followed": 1}


def test_names_move_on_in_a_ring(tmp_path: Path) -> None:
    third = "".join(f"the third has {number * 11} here\n" for number in range(40))
    story = Story()
    story.commit({"a.py": LONG, "b.py": DIFFERENT, "c.py": third}, by=AGENT)
    story.commit({"a.py": None, "b.py": LONG, "c.py": DIFFERENT, "d.py": third})
    story.commit({"b.py": LONGER})
    found, _ = read(story, tmp_path)
    assert found == {"b.py": [(A, LONG), (P, LONGER)], "c.py": [(A, DIFFERENT)], "d.py": [(A, third)]}


def test_a_directory_is_renamed(tmp_path: Path) -> None:
    texts = {f"{number}.py": LONG.replace("text", f"text {number}") for number in range(12)}
    story = Story()
    story.commit({f"old/{name}": text for name, text in texts.items()}, by=AGENT)
    story.commit({f"old/{name}": None for name in texts} | {f"new/deep/{name}": text for name, text in texts.items()})
    story.commit({"new/deep/3.py": LONGER})
    found, left_out = read(story, tmp_path)
    assert sorted(found) == sorted(f"new/deep/{name}" for name in texts)
    assert found["new/deep/3.py"] == [(A, texts["3.py"]), (P, LONGER)]
    assert left_out == {}


# Branches


def test_a_revision_counts_once_though_branches_fork(tmp_path: Path) -> None:
    story = Story()
    base = story.commit({"a.py": "0\n"}, by=AGENT)
    left = story.commit({"a.py": "left\n"}, by=AGENT, after=[base])
    right = story.commit({"a.py": "right\n"}, after=[base])
    story.commit({"a.py": "both\n"}, after=[left, right])
    story.commit({"a.py": "last\n"}, by=AGENT)
    log = story.write(tmp_path / "repo").log()
    found = histories(log)
    agents = [revision.text for history in found for revision in history.revisions if revision.role == A]
    assert sorted(agents) == ["0\n", "last\n", "left\n"]
    assert log.left_out.counts["merge commit"] == 1


def test_a_history_goes_on_along_the_branch_that_lasts(tmp_path: Path) -> None:
    for lasting in "left", "right":
        story = Story()
        base = story.commit({"a.py": "0\n"}, by=AGENT)
        left = story.commit({"a.py": "left\n"}, after=[base])
        right = story.commit({"a.py": "right\n"}, after=[base])
        story.commit({"a.py": f"{lasting}\n"}, after=[left, right])
        story.commit({"a.py": "last\n"})
        found, left_out = read(story, tmp_path / lasting)
        assert found == {"a.py": [(A, "0\n"), (P, f"{lasting}\n"), (P, "last\n")]}
        assert left_out == {"merge commit": 1, "edit of the same text on another branch": 1}


def test_an_edit_that_was_given_up_on_a_branch_is_not_followed(tmp_path: Path) -> None:
    story = Story()
    base = story.commit({"a.py": "0\n"}, by=AGENT)
    main = story.commit({"b.py": "1\n"}, after=[base])
    release = story.commit({"a.py": "release\n"}, after=[base])
    story.commit({}, after=[main, release])
    log = story.write(tmp_path / "repo").log()
    [history] = histories(log)
    assert told(history) == [(A, "0\n")]
    assert history.read_at is None
    assert log.left_out.counts["edit of the same text on another branch"] == 1


def test_a_merge_that_changed_nothing_is_gone_through(tmp_path: Path) -> None:
    story = Story()
    base = story.commit({"a.py": "0\n", "b.py": "0\n"})
    left = story.commit({"a.py": "1\n"}, by=AGENT, after=[base])
    right = story.commit({"b.py": "1\n"}, by=DEVIN, after=[base])
    story.commit({"b.py": "1\n"}, after=[left, right])
    story.commit({"a.py": "2\n", "b.py": "2\n"})
    found, left_out = read(story, tmp_path)
    assert found == {"a.py": [(S, "0\n"), (A, "1\n"), (P, "2\n")], "b.py": [(S, "0\n"), (A, "1\n"), (P, "2\n")]}
    assert left_out == {"merge commit": 1}


def test_an_octopus_merge_counts_each_once(tmp_path: Path) -> None:
    story = Story()
    base = story.commit({f"{name}.py": "0\n" for name in "abcd"}, by=AGENT)
    sides = [story.commit({f"{name}.py": "1\n"}, by=AGENT, after=[base]) for name in "abcd"]
    story.commit({f"{name}.py": "1\n" for name in "abcd"}, after=sides)
    story.commit({"c.py": "2\n"})
    found, left_out = read(story, tmp_path)
    assert found["c.py"] == [(A, "0\n"), (A, "1\n"), (P, "2\n")]
    assert all(found[f"{name}.py"] == [(A, "0\n"), (A, "1\n")] for name in "abd")
    assert left_out == {"merge commit": 1}


def test_a_conflict_resolved_in_a_merge_ends_both_lines(tmp_path: Path) -> None:
    story = Story()
    base = story.commit({"a.py": "0\n"}, by=AGENT)
    left = story.commit({"a.py": "left\n"}, by=AGENT, after=[base])
    right = story.commit({"a.py": "right\n"}, by=DEVIN, after=[base])
    story.commit({"a.py": "resolved\n"}, after=[left, right])
    merged = story.at
    story.commit({"a.py": "last\n"})
    log = story.write(tmp_path / "repo").log()
    found = histories(log)
    assert {tuple(told(history)[1:]) for history in found} == {((A, "left\n"),), ((A, "right\n"),)}
    assert [history.read_at for history in found] == [merged, merged]
    assert log.left_out.counts == {"merge commit": 1, "text of a merge": 2, "where no agent's text is followed": 1}


@pytest.mark.parametrize("name", [b"a.py", b":(glob)*", b"*", b"caf\xe9", b"-m", b"d/two\nlines"])
@pytest.mark.parametrize("most", [0, 2_000])
def test_a_text_of_any_name_is_followed_until_a_merge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: bytes, most: int
) -> None:
    monkeypatch.setattr(changes, "MOST_NAMED", most)
    story = Story()
    base = story.commit({name: "0\n", b"other": "0\n"})
    left = story.commit({name: "left\n"}, by=AGENT, after=[base])
    right = story.commit({name: "right\n", b"other": "1\n"}, after=[base])
    story.commit({name: "both\n", b"other": "2\n"}, after=[left, right])
    merged = story.at
    again = story.commit({name: "last\n"})
    story.commit({name: "last\n"}, after=[again, left])
    [history] = histories(story.write(tmp_path / "repo").log())
    assert told(history) == [(S, "0\n"), (A, "left\n")]
    assert history.read_at == merged


def test_an_evil_merge_is_no_ones_writing(tmp_path: Path) -> None:
    story = Story()
    base = story.commit({"a.py": "0\n", "b.py": "0\n"}, by=AGENT)
    left = story.commit({"b.py": "1\n"}, after=[base])
    right = story.commit({"c.py": "0\n"}, after=[base])
    story.commit({"a.py": "smuggled in\n", "c.py": "0\n"}, by=AGENT, after=[left, right])
    merged = story.at
    story.commit({"a.py": "mended\n"})
    log = story.write(tmp_path / "repo").log()
    found = {str(history.attributes["path"]): history for history in histories(log)}
    assert told(found["a.py"]) == [(A, "0\n")]
    assert found["a.py"].read_at == merged
    assert told(found["b.py"]) == [(A, "0\n"), (P, "1\n")]
    assert log.left_out.counts["text of a merge"] == 1


def test_a_branch_that_was_merged_away_is_not_followed_to_this_day(tmp_path: Path) -> None:
    story = Story()
    base = story.commit({"a.py": "0\n"})
    ours = story.commit({"a.py": "ours\n"}, after=[base])
    theirs = story.commit({"a.py": "theirs\n"}, by=AGENT, after=[base])
    story.commit({}, after=[ours, theirs])
    log = story.write(tmp_path / "repo").log()
    [history] = histories(log)
    assert told(history) == [(S, "0\n"), (A, "theirs\n")]
    assert history.read_at == story.at
    assert log.left_out.counts["text of a merge"] == 1


def test_a_change_picked_onto_another_branch_counts_once(tmp_path: Path) -> None:
    story = Story()
    base = story.commit({"a.py": "0\n"}, by=AGENT)
    first = story.commit({"a.py": "1\n"}, by=AGENT, after=[base])
    again = story.commit({"a.py": "1\n"}, by=AGENT, after=[base], at=story.at, committed=story.at + 9 * HOUR)
    story.commit({}, after=[first, again])
    story.commit({"a.py": "2\n"})
    found, left_out = read(story, tmp_path)
    assert found == {"a.py": [(A, "0\n"), (A, "1\n"), (P, "2\n")]}
    assert left_out == {"merge commit": 1, "change picked again": 1}


def test_a_change_picked_onto_another_text_counts_where_it_lasts(tmp_path: Path) -> None:
    for lasting in 0, 1:
        story = Story()
        base = story.commit({"a.py": "0\n"}, by=AGENT)
        more = story.commit({"a.py": "0\n1\n"}, after=[base])
        at = story.at + HOUR
        sides = [
            story.commit({"a.py": "agent\n1\n"}, by=AGENT, after=[more], at=at, message="as it was written"),
            story.commit({"a.py": "agent\n"}, by=AGENT, after=[base], at=at, committed=at + HOUR, message="backport"),
        ]
        text = ("agent\n1\n", "agent\n")[lasting]
        story.commit({"a.py": text}, after=sides)
        story.commit({"a.py": "last\n"})
        log = story.write(tmp_path / str(lasting) / "repo").log()
        drafts = [draft for history in histories(log) for draft in history.drafts()]
        assert [draft.text for draft in drafts] == ["0\n", text]
        assert [revision.text for revision in drafts[-1].people] == ["last\n"]
        assert log.left_out.counts["change picked again"] == 1


def test_two_changes_in_one_second_are_two(tmp_path: Path) -> None:
    story = Story()
    for text in "one\n", "two\n", "three\n":
        story.commit({"a.py": text}, by=AGENT, at=START)
    assert read(story, tmp_path) == ({"a.py": [(A, "one\n"), (A, "two\n"), (A, "three\n")]}, {})


def test_a_change_undone_and_picked_again_counts_once(tmp_path: Path) -> None:
    story = Story()
    story.commit({"a.py": "0\n"})
    story.commit({"a.py": "1\n"}, by=AGENT)
    at = story.at
    story.commit({"a.py": "0\n"})
    story.commit({"a.py": "1\n"}, by=AGENT, at=at, committed=at + 5 * HOUR)
    found, left_out = read(story, tmp_path)
    assert found == {"a.py": [(S, "0\n"), (A, "1\n"), (P, "0\n")]}
    assert left_out == {"change picked again": 1}


def test_histories_that_have_nothing_in_common_are_merged(tmp_path: Path) -> None:
    story = Story()
    one = story.commit({"a.py": "0\n"}, by=AGENT)
    other = story.commit({"b.py": "0\n"}, by=AGENT, after=[])
    story.commit({"b.py": "0\n"}, after=[one, other])
    story.commit({"a.py": "1\n", "b.py": "1\n"})
    found, left_out = read(story, tmp_path)
    assert found == {"a.py": [(A, "0\n"), (P, "1\n")], "b.py": [(A, "0\n"), (P, "1\n")]}
    assert left_out == {"merge commit": 1}


def test_a_subtree_that_a_merge_moved_keeps_its_drafts(tmp_path: Path) -> None:
    story = Story()
    one = story.commit({"a.py": "0\n"})
    other = story.commit({"b.py": "0\n"}, by=AGENT, after=[])
    story.commit({"vendor-free/b.py": "0\n"}, after=[one, other])
    merged = story.at
    story.commit({"vendor-free/b.py": "1\n"})
    log = story.write(tmp_path / "repo").log()
    [history] = histories(log)
    assert told(history) == [(A, "0\n")]
    assert history.read_at == merged
    assert log.left_out.counts["text of a merge"] == 1


def test_an_orphan_branch_is_not_read_unless_named(tmp_path: Path) -> None:
    story = Story()
    main = story.commit({"a.py": "0\n"}, by=AGENT)
    orphan = story.commit({"b.py": "0\n"}, by=AGENT, after=[])
    repo = story.write(tmp_path / "repo", head=main)
    repo.git("branch", "pages", repo.hashes[orphan])
    assert paths(histories(repo.log())) == ["a.py"]
    assert paths(histories(repo.log(rev="pages"))) == ["b.py"]


def test_real_merges_picks_and_reverts(tmp_path: Path) -> None:
    """The same by git's own commands, in a work tree."""
    where = init(tmp_path / "repo", "--initial-branch=trunk")
    seconds = iter(range(1_772_442_000, 1_772_542_000, 60))

    def run(*arguments: str, by: str = PERSON) -> None:
        name, _, email = by.partition(" <")
        date = f"{next(seconds)} +0200"
        git(
            where,
            *arguments,
            GIT_AUTHOR_NAME=name,
            GIT_AUTHOR_EMAIL=email.rstrip(">"),
            GIT_AUTHOR_DATE=date,
            GIT_COMMITTER_DATE=date,
        )

    def save(text: str, *, by: str = PERSON) -> None:
        (where / "a.py").write_text(text)
        run("add", "--all")
        run("commit", "--message", "Change it", by=by)

    save(LONG)
    save(LONGER, by=AGENT)
    run("checkout", "-b", "release", "HEAD~1")
    run("cherry-pick", "-x", "trunk")
    run("checkout", "trunk")
    run("mv", "a.py", "b.py")
    run("commit", "--message", "Move it")
    run("merge", "--no-ff", "--message", "Merge it", "release")
    run("revert", "--no-edit", "HEAD~2")
    log = reader.open(where)
    [history] = histories(log)
    assert told(history) == [(S, LONG), (A, LONGER), (P, LONG)]
    assert history.attributes["path"] == "b.py"
    assert log.left_out.counts == {"merge commit": 1, "change picked again": 1}


# Times


def test_author_time_unless_told_otherwise(tmp_path: Path) -> None:
    story = Story()
    story.commit({"a.py": "0\n"}, by=AGENT, at=START, committed=START + 3 * HOUR)
    story.commit({"a.py": "1\n"}, at=START + HOUR, committed=START + 9 * HOUR)
    repo = story.write(tmp_path / "repo")
    [history] = histories(repo.log())
    assert [revision.at for revision in history.revisions] == [START, START + HOUR]
    [history] = histories(repo.log(time="commit"))
    assert [revision.at for revision in history.revisions] == [START + 3 * HOUR, START + 9 * HOUR]
    with pytest.raises(InputError, match="must be 'author' or 'commit'"):
        read_log(repo.path, time="wall")


def test_a_zone_does_not_move_a_time(tmp_path: Path) -> None:
    story = Story()
    story.commit({"a.py": "0\n"}, by=AGENT, at="1772442000 +1400")
    story.commit({"a.py": "1\n"}, at="1772442060 -1200")
    [history] = histories(story.write(tmp_path / "repo").log())
    at = datetime.fromtimestamp(1_772_442_000, UTC)
    assert [revision.at for revision in history.revisions] == [at, at + timedelta(minutes=1)]


def test_order_is_that_of_parents_at_equal_seconds(tmp_path: Path) -> None:
    story = Story()
    texts = [f"{number}\n" for number in range(30)]
    for number, text in enumerate(texts):
        story.commit({"a.py": text}, by=PERSON if number % 3 else AGENT, at=START)
    log = story.write(tmp_path / "repo").log()
    [history] = histories(log)
    assert [revision.text for revision in history.revisions] == texts
    assert log.repaired == {}


def test_clocks_that_go_back_are_mended_and_counted(tmp_path: Path) -> None:
    story = Story()
    for hours, text in ((0, "0\n"), (5, "1\n"), (2, "2\n"), (6, "3\n")):
        story.commit({"a.py": text}, by=AGENT if hours == 0 else PERSON, at=START + hours * HOUR)
    log = story.write(tmp_path / "repo").log()
    [history] = histories(log)
    assert [revision.text for revision in history.revisions] == ["0\n", "1\n", "2\n", "3\n"]
    assert log.repaired == {"clocks that go back": 1}
    assert history.revisions[0].at == START
    assert history.revisions[-1].at == START + 6 * HOUR


def test_one_clock_far_ahead_does_not_carry_the_others_away(tmp_path: Path) -> None:
    story = Story()
    for number in range(6):
        at = datetime(2150, 1, 1, tzinfo=UTC) if number == 2 else START + number * HOUR
        story.commit({"a.py": f"{number}\n"}, by=PERSON if number else AGENT, at=at)
    log = story.write(tmp_path / "repo").log()
    [history] = histories(log)
    assert [revision.at - START for revision in history.revisions] == [h * HOUR for h in (0, 1, 1, 3, 4, 5)]
    assert log.repaired == {"clocks that go back": 1}


def test_an_agents_clock_far_ahead_is_that_of_who_followed(tmp_path: Path) -> None:
    story = Story()
    story.commit({"a.py": "0\n"}, by=AGENT, at=datetime(2150, 1, 1, tzinfo=UTC))
    story.commit({"a.py": "1\n"}, at=START)
    [history] = histories(story.write(tmp_path / "repo").log())
    assert [revision.at for revision in history.revisions] == [START, START]


def test_a_commit_that_was_rebased_is_not_before_what_it_was_made_of(tmp_path: Path) -> None:
    story = Story()
    story.commit({"a.py": "0\n"}, by=AGENT, at=START)
    story.commit({"a.py": "1\n"}, at=START - timedelta(days=15))
    story.commit({"a.py": ""}, at=START + timedelta(days=5))
    log = story.write(tmp_path / "repo").log()
    [history] = histories(log)
    assert [revision.at for revision in history.revisions] == [START, START, START + timedelta(days=5)]
    assert log.repaired == {"clocks that go back": 1}


@pytest.mark.parametrize(
    "seconds", [-62_135_596_800, -2_300_000_000, 10_413_792_000, 99_999_999_999, 10**18, 2**63 - 1]
)
def test_an_absurd_time_is_left_out_and_cuts(tmp_path: Path, seconds: int) -> None:
    story = Story()
    story.commit({"a.py": "0\n"}, by=AGENT)
    story.commit({"a.py": "1\n"}, at=seconds)
    story.commit({"a.py": "2\n"})
    log = story.write(tmp_path / "repo").log()
    [history] = histories(log)
    assert told(history) == [(A, "0\n")]
    assert history.read_at == history.revisions[-1].at
    assert log.left_out.counts == {"absurd time": 1, "where no agent's text is followed": 1}


def test_times_before_1970_are_times(tmp_path: Path) -> None:
    story = Story()
    story.commit({"a.py": "0\n"}, by=AGENT, at=-86_400)
    found = histories(story.write(tmp_path / "repo").log())
    # Versions of git differ in whether they can tell a time before 1970.
    assert [revision.at for history in found for revision in history.revisions] in (
        [],
        [datetime(1969, 12, 31, tzinfo=UTC)],
    )


@given(st.lists(st.integers(0, 12), min_size=1, max_size=12))
def test_of_times_that_go_back_as_few_as_can_be_are_changed(hours: list[int]) -> None:
    times = [START + hour * HOUR for hour in hours]
    ordered, changed = times_in_order(times, now=max(times))
    assert ordered == sorted(ordered)
    assert sum(one != other for one, other in zip(times, ordered, strict=True)) <= changed
    assert set(ordered) <= set(times)
    longest = [1] * len(hours)
    for later, hour in enumerate(hours):
        longest[later] += max((longest[n] for n in range(later) if hours[n] <= hour), default=0)
    assert changed == len(hours) - max(longest)


# What cuts


def test_a_cut_follows_drafts_until_then(tmp_path: Path) -> None:
    story = Story()
    story.commit({"a.py": "0\n"}, by=AGENT)
    story.commit({"a.py": "1\n"})
    story.commit({"a.py": "2\n"}, by=BOT)
    cut = story.at
    story.commit({"a.py": "3\n"})
    story.commit({"a.py": "4\n"}, by=AGENT)
    log = story.write(tmp_path / "repo").log()
    first, second = histories(log)
    assert told(first) == [(A, "0\n"), (P, "1\n")]
    assert first.read_at == cut
    assert told(second) == [(P, "3\n"), (A, "4\n")]
    assert second.read_at is None
    assert log.left_out.counts == {"bot": 1}

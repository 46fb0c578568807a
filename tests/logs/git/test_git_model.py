"""Random repositories, read by the reader and by a slow model that asks git about one commit at a time."""

from __future__ import annotations

import hashlib
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from repositories import AGENT, BOT, DEVIN, HOUR, OTHER, PERSON, START, Content, Repo, Story, histories

AUTHORS = (PERSON, PERSON, OTHER, AGENT, AGENT, DEVIN, BOT)
ROLES = {PERSON: "person", OTHER: "person", AGENT: "agent", DEVIN: "agent", BOT: None}
PATHS = ("a.py", "b.py", "d/c.py", "d/e.py")

Tree = dict[str, str]
Line = list[tuple[str | None, str, str]]
"""Each revision's id, role and text."""


@dataclass
class Told:
    """A story with the files of each commit, and every text that was ever at a path."""

    story: Story = field(default_factory=Story)
    trees: list[Tree] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    authors: list[str] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    parents: list[list[int]] = field(default_factory=list)
    past: dict[str, list[str]] = field(default_factory=dict)
    texts: int = 0

    def new_text(self) -> str:
        self.texts += 1
        return "".join(f"text {self.texts}, line {line}, {self.texts * line}\n" for line in range(12))

    def edited(self, text: str) -> str:
        self.texts += 1
        return text + f"edited {self.texts}\n"

    def commit(self, tree: Tree, parents: list[int], author: str, hours: int, picked: int | None = None) -> None:
        before = self.trees[parents[0]] if parents else {}
        files: dict[str, Content] = {path: text for path, text in tree.items() if before.get(path) != text}
        files |= {path: None for path in before if path not in tree}
        at = int((START + hours * HOUR).timestamp())
        while picked is None and (author, at) in zip(self.authors, self.times, strict=True):
            at += 1
        if picked is not None:
            author, at = self.authors[picked], self.times[picked]
        after = [self.numbers[parent] for parent in parents]
        self.numbers.append(self.story.commit(files, by=author, after=after, at=at))
        self.trees.append(dict(tree))
        self.authors.append(author)
        self.times.append(at)
        self.parents.append(parents)
        for path, text in tree.items():
            versions = self.past.setdefault(path, [])
            if text not in versions:
                versions.append(text)


@st.composite
def told_stories(draw: st.DrawFn, *, picks: bool = False) -> Told:
    told = Told()
    told.commit({path: told.new_text() for path in PATHS[:3]}, [], draw(st.sampled_from(AUTHORS)), 0)
    tips = {0}
    for number in range(1, draw(st.integers(3, 14))):
        kinds = ["change"] * 6 + ["merge"] * (2 * (len(tips) > 1)) + ["pick"] * (2 * picks)
        kind = draw(st.sampled_from(kinds))
        hours = draw(st.sampled_from([number, number, number - 5, 3, number + 5000]))
        author = draw(st.sampled_from(AUTHORS))
        if kind == "merge":
            parents = draw(st.permutations(sorted(tips)))[: draw(st.integers(2, 3))]
            tree = _merged(draw, told, parents)
            told.commit(tree, parents, author, hours)
        elif kind == "pick":
            parents = [draw(st.sampled_from(sorted(tips)))]
            source = draw(st.sampled_from([n for n in range(number) if len(told.parents[n]) <= 1]))
            before = told.trees[told.parents[source][0]] if told.parents[source] else {}
            tree = dict(told.trees[parents[0]])
            tree |= {path: text for path, text in told.trees[source].items() if before.get(path) != text}
            told.commit(tree, parents, author, hours, picked=source)
        else:
            parents = [draw(st.one_of(st.sampled_from(sorted(tips)), st.integers(0, number - 1)))]
            tree = dict(told.trees[parents[0]])
            for _ in range(draw(st.integers(1, 2))):
                _change(draw, told, tree)
            told.commit(tree, parents, author, hours)
        tips = (tips - set(parents)) | {number}
    if len(tips) > 1 and draw(st.booleans()):
        parents = sorted(tips)
        told.commit(_merged(draw, told, parents), parents, PERSON, 50)
    return told


def _merged(draw: st.DrawFn, told: Told, parents: list[int]) -> Tree:
    trees = [told.trees[parent] for parent in parents]
    tree: Tree = {}
    for path in sorted({path for tree in trees for path in tree}):
        choices = [found[path] for found in trees if path in found]
        choice = draw(st.sampled_from([*choices, *choices, None, "both"]))
        if choice == "both":
            tree[path] = told.new_text()
        elif choice is not None:
            tree[path] = choice
    return tree


def _change(draw: st.DrawFn, told: Told, tree: Tree) -> None:
    there = sorted(tree)
    free = [path for path in PATHS if path not in tree]
    kind = draw(st.sampled_from(["edit", "edit", "rewrite", "delete", "create", "move", "move and edit", "put back"]))
    if kind in ("edit", "rewrite", "delete", "move", "move and edit") and not there:
        return
    path = draw(st.sampled_from(there or PATHS))
    if kind == "edit":
        tree[path] = told.edited(tree[path])
    elif kind == "rewrite":
        tree[path] = told.new_text()
    elif kind == "delete":
        del tree[path]
    elif kind == "create" and free:
        tree[draw(st.sampled_from(free))] = told.new_text()
    elif kind.startswith("move") and free:
        text = tree.pop(path)
        tree[draw(st.sampled_from(free))] = told.edited(text) if "edit" in kind else text
    elif kind == "put back":
        path = draw(st.sampled_from(sorted(told.past)))
        text = draw(st.sampled_from(told.past[path]))
        if text not in tree.values():
            tree[path] = text


# The slow model


def blob(text: str) -> str:
    """The name that git gives a text."""
    content = text.encode()
    return hashlib.sha1(b"blob %d\0%s" % (len(content), content)).hexdigest()


@dataclass(frozen=True)
class Edit:
    """One file of one commit; `pure` is a rename alone."""

    commit: str
    role: str | None
    old_path: str
    path: str
    old: str | None
    new: str | None

    @property
    def pure(self) -> bool:
        return self.old == self.new


@dataclass
class Asked:
    """What git says of a repository, commit by commit."""

    edits: list[Edit]
    merges: int
    tip: Mapping[str, str]


def ask(repo: Repo, told: Told) -> Asked:
    texts = {blob(text): text for tree in told.trees for text in tree.values()}
    who = {repo.hashes[number]: author for number, author in zip(told.numbers, told.authors, strict=True)}
    edits: list[Edit] = []
    merges, begun = 0, False
    for name in repo.git("rev-list", "--topo-order", "--reverse", "HEAD").decode().split():
        role = ROLES[who[name]]
        begun = begun or role == "agent"
        if not begun:
            continue
        if len(repo.git("rev-list", "--parents", "-n1", name).split()) > 2:
            merges += 1
            continue
        shown = repo.git("show", "--format=", "--raw", "--no-abbrev", "-M", name).decode()
        for line in shown.splitlines():
            head, *paths = line.split("\t")
            old, new = (texts.get(found) for found in head.split()[2:4])
            edits.append(Edit(name[:12], role, paths[0], paths[-1], old, new))
    listed = [line.split("\t") for line in repo.git("ls-tree", "-r", "HEAD").decode().splitlines()]
    return Asked(edits, merges, {path: texts[head.split()[2]] for head, path in listed})


def model(asked: Asked) -> list[Line]:
    """The lines with an agent's edit, found by looking through all that came before, for every edit anew."""
    edits, tip = asked.edits, asked.tip
    befores: dict[int, int] = {}

    def maker(path: str, text: str, before: int) -> int | None:
        for number in range(before - 1, -1, -1):
            edit = edits[number]
            if edit.path == path and edit.new == text:
                return maker(edit.old_path, text, number) if edit.pure else number
        return None

    for number, edit in enumerate(edits):
        found = None
        if edit.pure:
            continue
        if edit.old is not None:
            found = maker(edit.old_path, edit.old, number)
        else:
            gone = (n for n in range(number - 1, -1, -1) if edits[n].new is None and edits[n].path == edit.path)
            found = next((n for n in gone if edits[n].old == edit.new), None)
        if found is not None:
            befores[number] = found

    def stands_itself(number: int) -> bool:
        return any(maker(path, text, len(edits)) == number for path, text in tip.items())

    def stands(number: int) -> bool:
        if any(befores.get(later) == number and stands(later) for later in range(number + 1, len(edits))):
            return True
        edit = edits[number]
        if edit.new is not None:
            return stands_itself(number)
        came = (later for later in edits[number + 1 :] if later.path == edit.path)
        return edit.path not in tip or any(later.old is None or later.old_path != later.path for later in came)

    def goes_on(number: int) -> int | None:
        after = [later for later in befores if befores[later] == number]
        given_up = None if stands_itself(number) or not after else after[0]
        return next((later for later in after if stands(later)), given_up)

    found_lines: list[Line] = []
    for number, edit in enumerate(edits):
        before = befores.get(number)
        if edit.pure or edit.role is None:
            continue
        if before is not None and goes_on(before) == number and edits[before].role is not None:
            continue
        steps, after = [number], goes_on(number)
        while after is not None and edits[after].role is not None:
            steps.append(after)
            after = goes_on(after)
        agents = [place for place, step in enumerate(steps) if edits[step].role == "agent"]
        if not agents:
            continue
        kept = [edits[step] for step in steps[max(0, agents[0] - 1) :]]
        line: Line = [(step.commit, step.role or "", step.new or "") for step in kept]
        old = kept[0].old
        if kept[0].role == "agent" and old is not None:
            line.insert(0, (None, "system", old))
        found_lines.append(line)
    return found_lines


# What must hold


@settings(max_examples=40)
@given(told_stories())
def test_the_reader_finds_what_the_slow_model_finds(told: Told) -> None:
    with tempfile.TemporaryDirectory() as folder:
        repo = told.story.write(Path(folder) / "repo")
        log = repo.log()
        found = histories(log)
        asked = ask(repo, told)
        expected = model(asked)
        lines = [[(r.id, r.role, r.text) for r in history.revisions] for history in found]
        assert sorted(lines, key=repr) == sorted(expected, key=repr)
        merged = {at for at, parents in zip(told.times, told.parents, strict=True) if len(parents) > 1}
        cut = {at for at, author in zip(told.times, told.authors, strict=True) if author == BOT}
        for history in found:
            last = history.revisions[-1]
            if history.read_at is None:
                assert last.text in ("", *asked.tip.values())
            else:
                assert history.read_at >= last.at
                assert history.read_at == last.at or history.read_at.timestamp() in merged | cut
        edits = [edit for edit in asked.edits if not edit.pure]
        assert log.records == len(edits) + asked.merges + log.left_out.counts["text of a merge"]
        assert log.left_out.counts["bot"] == sum(edit.role is None for edit in edits)
        drafts = [draft for history in found for draft in history.drafts()]
        assert len(drafts) == sum(edit.role == "agent" for edit in edits)
        for draft in drafts:
            assert [edit for edit in edits if (edit.commit, edit.new or "") == (draft.id, draft.text)]
            for person in draft.people:
                assert timedelta(0) <= person.at - draft.written


@settings(max_examples=40)
@given(told_stories(picks=True))
def test_each_revision_counts_at_most_once_and_follows_its_parents_text(told: Told) -> None:
    with tempfile.TemporaryDirectory() as folder:
        repo = told.story.write(Path(folder) / "repo")
        log = repo.log()
        found = histories(log)
        edits = Counter((e.commit, e.role, e.old or "", e.new or "") for e in ask(repo, told).edits if not e.pure)
        for history in found:
            before = ""
            for place, revision in enumerate(history.revisions):
                if revision.id is not None:
                    if place == 0:
                        # The text before a history's first revision is not part of it.
                        [before, *_] = [
                            old
                            for (commit, role, old, new), left in edits.items()
                            if (commit, role, new) == (revision.id, revision.role, revision.text) and left
                        ]
                    edits[revision.id, revision.role, before, revision.text] -= 1
                before = revision.text
        assert min(edits.values(), default=0) >= 0
        left = sum(count for (_, role, _, _), count in edits.items() if role == "agent" and count)
        assert left <= log.left_out.counts["change picked again"]

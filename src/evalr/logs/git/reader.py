"""The reader of git repositories: histories of the files that coding agents wrote, and what people made of them.

What was decided about the odder things that a repository may hold stands in docs/repositories.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import groupby
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any

from evalr.errors import InputError, LogError
from evalr.estimates.words import count_words
from evalr.input_fields import Attributes
from evalr.inputs import History, Revision, Role, StoredRevision, utc_now
from evalr.logs.further import Further, ReportTerms
from evalr.logs.git.agents import NO_AUTHOR, load_agents
from evalr.logs.git.attributes import Said, kinds_by_attribute
from evalr.logs.git.blobs import LARGEST, Blobs
from evalr.logs.git.changes import FILE, SUBMODULE, SYMLINK, Changes, Text, merged_away, read_changes
from evalr.logs.git.commits import ABSURD_TIME, Commit, Commits, TimeOf, read_commits
from evalr.logs.git.kinds import kind_by_text, kinds_by_name
from evalr.logs.git.lines import Line, lines, link, times_in_order
from evalr.logs.git.reformatting import IGNORE_LIST, listed, only_reformats, sample
from evalr.logs.git.repository import Repository, find_places
from evalr.logs.git.section import Lines
from evalr.logs.log import Item, Log
from evalr.quoting import quoted

SHORT = 12
"""How much of a commit's hash names it."""

MERGE, MERGED, EDGE = "merge commit", "text of a merge", "commit at the edge of a shallow clone"
PICKED, REFORMATTED = "change picked again", "mass reformatting"
PEOPLES, ASIDE = "where no agent's text is followed", "edit of the same text on another branch"
CROWDED = "deletion among too many to find renames"
MISSING, TOO_LARGE = "missing object", "file over 1 MiB"

MODES = {SYMLINK: "symlink", SUBMODULE: "submodule"}

FAULTS = {ABSURD_TIME, MISSING, NO_AUTHOR}
"""What a sound and whole repository has none of: with `strict`, an error."""


@dataclass(frozen=True)
class GitReader:
    """Reads the repository that a directory is."""

    name: str = "git"
    describes: str = "a git repository: histories of the files that coding agents wrote"
    settings: Mapping[str, Any] = field(
        default_factory=lambda: MappingProxyType({"time": "author", "rev": "HEAD", "agents": None})
    )

    def claim(self, path: Path, head: bytes) -> float:
        """Sure of what holds a repository's HEAD and objects."""
        return float(path.is_dir() and find_places(path) is not None)

    def open(
        self,
        path: Path,
        *,
        strict: bool = False,
        time: TimeOf = "author",
        rev: str = "HEAD",
        agents: str | PathLike[str] | None = None,
    ) -> Log:
        """The log; nothing is read before it is iterated over.

        Args:
            path: the root of a work tree, or a bare repository.
            strict: see `Log`.
            time: "author" for the clock of who wrote a commit, "commit" for that of who put it where it is.
            rev: the newest commit to read: a branch, a tag or a hash.
            agents: a TOML file of agents, bots and people of your own, in the form of the packaged table; it wins.

        Raises:
            InputError: `time` is neither.
        """
        if time not in ("author", "commit"):
            raise InputError(f"time={time!r} must be 'author' or 'commit'")
        if not isinstance(rev, str):
            raise InputError(f"rev={rev!r} must be a text: a branch, a tag or a commit's hash")
        if not isinstance(agents, str | PathLike | None):
            raise InputError(f"agents={agents!r} must be the path of a file")
        items = partial(_items, path, time, rev, agents)
        return GitLog(str(path), self.name, items, strict=strict, cluster="path", holds_results=False)


@dataclass
class GitLog(Log):
    """A repository as a log, which adds a section on agents' lines where a page is asked for."""

    lines: Lines | None = field(default=None, init=False, repr=False)

    def prepare(self, terms: ReportTerms) -> None:
        """See `Log.prepare`."""
        self.lines = Lines(terms) if terms.details else None

    def further(self) -> Sequence[Further]:
        """See `Log.further`."""
        return () if self.lines is None else self.lines.section()


reader = GitReader()


def _items(path: Path, time: TimeOf, rev: str, agents: str | PathLike[str] | None, log: Log) -> Iterator[Item]:
    table = load_agents(agents)
    repository = Repository(path)
    tip = repository.commit(rev)
    commits = read_commits(repository, tip, agents=table, time=time)
    _take_note(commits, log)
    changes = read_changes(repository, commits.read)
    _take_note_of_missing(changes, commits, log)
    blobs = Blobs(repository)
    walk = _Walk(changes, commits.read, _newest_files(repository, tip, log) if changes.read else {})
    # A branch goes on to this day. What else is read, such as a tag, was followed until its newest commit.
    walk.known_until = None if rev == "HEAD" and repository.on_branch else commits.last
    walk.stop_at_missing_texts(blobs)
    walk.stop_at_reformatting(blobs)
    walk.see_merges(repository, commits.merges)
    lines = log.lines if isinstance(log, GitLog) else None
    for history in _histories(walk, _attributes(repository, walk, log), blobs, log):
        if lines is not None:
            lines.add(history)
        yield history


def _take_note(commits: Commits, log: Log) -> None:
    """Tell what of the commits is read, and count those that are not."""
    if commits.last is not None:
        log.notes.append(f"followed to its last commit, of {commits.last:%Y-%m-%d %H:%M} UTC")
    if commits.shallow:
        whole = "git fetch --unshallow has them, or fetch-depth: 0 in a workflow"
        log.notes.append(f"the clone is shallow: the commits before its {commits.total:,} are not here; {whole}")
    if not (commits.read or commits.merges or commits.cut):
        who = "its only commit is not" if commits.total == 1 else f"none of its {commits.total:,} commits is"
        yours = "name agents of your own in a file: --set agents=FILE, or agents= in Python"
        log.notes.append(f"{who} by an agent that is known here; {yours}")
    elif commits.before:
        log.notes.append(f"commits before any agent's, which are not read: {commits.before:,} of {commits.total:,}")
    agents = Counter(commit.wrote.agent for commit in commits.read if commit.wrote.agent is not None)
    if agents:
        words = ", ".join(f"{name} {count:,}" for name, count in agents.most_common())
        log.notes.append(f"commits by agents: {words}")
    for reason, names in ((MERGE, [merge.hash for merge in commits.merges]), (EDGE, commits.cut)):
        log.records += len(names)
        for name in names:
            log.leave_out(reason, name[:SHORT])


def _take_note_of_missing(changes: Changes, commits: Commits, log: Log) -> None:
    if changes.unsure:
        log.notes.append("objects are missing, so not all renames are followed where the text changed as well")
    log.records += len(changes.unread)
    for place in changes.unread:
        log.skip(MISSING, commits.read[place].hash[:SHORT])


def _newest_files(repository: Repository, tip: str, log: Log) -> dict[bytes, bytes] | None:
    try:
        return repository.files(tip)
    except LogError:
        log.notes.append("directories of the newest commit are missing, so nothing is known to stand to this day")
        return None


def _attributes(repository: Repository, walk: _Walk, log: Log) -> dict[bytes, Said]:
    try:
        return kinds_by_attribute(repository, walk.files, [line.path for line in walk.lines])
    except LogError as error:
        log.notes.append(f"its .gitattributes are not heeded ({error})")
        return {}


class _Walk:
    """The changes that count, on lines of which each has an agent's.

    Attributes:
        files: those of the newest commit, each with its blob; none where `knows_newest` is False.
        links: how the changes follow each other.
        stops: the places of changes that do not count, and why.
        lines: those with an agent's change.
        merged: when a merge put something else in the place of the text that a line ends with.
        known_until: until when it is known what became of the files; None for this day.
    """

    def __init__(self, changes: Changes, commits: Sequence[Commit], files: Mapping[bytes, bytes] | None) -> None:
        self.changes, self.commits, self.files = changes.read, commits, files or {}
        self.knows_newest = files is not None
        self.links = link(changes.read, [commits[change.commit].origin for change in changes.read], self.files)
        self.stops: dict[int, str] = dict.fromkeys(changes.perhaps_renamed(changes.crowded()), CROWDED)
        self.stops |= dict.fromkeys(changes.perhaps_renamed(changes.unsure), MISSING)
        for place, change in enumerate(changes.read):
            commit = commits[change.commit]
            reason = commit.wrote.left_out or (ABSURD_TIME if commit.at is None else MODES.get(change.mode))
            if reason is None and place in self.links.picked:
                reason = PICKED
            if reason is not None:
                self.stops[place] = reason
        self.lines = self._lines()
        self.merged: dict[Text, datetime] = {}
        self.known_until: datetime | None = None

    def _lines(self) -> list[Line]:
        found = lines(self.changes, self.links, self.stops)
        return [line for line in found if self.first_agents(line) is not None]

    def commit_of(self, place: int) -> Commit:
        """The commit that made a change."""
        return self.commits[self.changes[place].commit]

    def first_agents(self, line: Line) -> int | None:
        """Where on a line the first change by an agent is."""
        roles = (self.commit_of(place).wrote.role for place in line.steps)
        return next((index for index, role in enumerate(roles) if role == "agent"), None)

    def stop_at(self, stops: Mapping[int, str]) -> None:
        """Take changes off the lines, which end there."""
        if stops:
            self.stops |= stops
            self.lines = self._lines()

    def stop_at_missing_texts(self, blobs: Blobs) -> None:
        """Take off changes whose text is not there or too large, and an agent's also where the one before is."""
        changes = [(place, self.changes[place]) for line in self.lines for place in line.steps]
        sizes = blobs.sizes(name for _, change in changes for name in (change.old, change.new) if name)

        def reason(name: bytes | None) -> str | None:
            size = 0 if name is None else sizes.get(name)
            return MISSING if size is None else TOO_LARGE if size > LARGEST else None

        found = {}
        for place, change in changes:
            needs_old = self.commit_of(place).wrote.role == "agent"
            why = reason(change.new) or (reason(change.old) if needs_old else None)
            if why is not None:
                found[place] = why
        self.stop_at(found)

    def stop_at_reformatting(self, blobs: Blobs) -> None:
        """Take off what commits changed that only reformatted many files, by their texts or the repository's list."""
        named = _listed(self.files.get(IGNORE_LIST), blobs)
        found: dict[int, str] = {}
        asked = {self.changes[place].commit for line in self.lines for place in line.steps}
        by_commit = groupby(enumerate(self.changes), key=lambda item: item[1].commit)
        places = {number: [place for place, _ in group] for number, group in by_commit if number in asked}
        samples = {number: sample(self.changes[place] for place in changed) for number, changed in places.items()}
        sizes = blobs.sizes(name for edits in samples.values() for edit in edits for name in edit)
        for number, edits in samples.items():
            if self.commits[number].hash in named or only_reformats(edits, sizes, blobs):
                found |= dict.fromkeys((place for place in places[number] if place not in self.stops), REFORMATTED)
        self.stop_at(found)

    def see_merges(self, repository: Repository, merges: Sequence[Commit]) -> None:
        """Find out when texts that a line ends with were merged away."""
        texts = {text for line in self.lines if line.is_lost and (text := self.last_text(line)) is not None}
        if texts and merges:
            found = merged_away(repository, merges, texts)
            self.merged = {text: merge.at for text, merge in found.items() if merge.at is not None}

    def last_text(self, line: Line) -> Text | None:
        """Where the text is that a line ends with; None where it was deleted."""
        blob = self.changes[line.steps[-1]].new
        return None if blob is None else (line.path, blob)


def _listed(name: bytes | None, blobs: Blobs) -> set[str]:
    try:
        known = name is not None and blobs.sizes([name]).get(name, LARGEST + 1) <= LARGEST
        return set(listed(blobs.text(name))) if name is not None and known else set()
    except LogError:
        return set()  # a partial clone may lack the list, and what is on it is judged by its texts


def _histories(walk: _Walk, attributes: Mapping[bytes, Said], blobs: Blobs, log: Log) -> Iterator[History]:
    """The history of each line, and the account of every change, on a line or not."""
    unseen = {place for place, change in enumerate(walk.changes) if change.old != change.new or change.mode != FILE}
    log.records += len(unseen)
    taken: Counter[str] = Counter()
    cut = 0
    agents: set[int] = set()  # changes that an agent made, and those of what it left

    def leave_out(place: int, reason: str) -> None:
        where = f"{quoted(_text(walk.changes[place].path))} at {walk.commit_of(place).hash[:SHORT]}"
        _leave_out(log, reason, where)
        unseen.discard(place)

    for place, reason in walk.stops.items():
        if place in unseen:
            leave_out(place, reason)
    for line in walk.lines:
        kind = _kind(line, attributes.get(line.path, Said()), walk, blobs)
        if kind is not None:
            for place in line.steps:
                leave_out(place, kind)
            continue
        first = walk.first_agents(line) or 0
        kept = line.steps[max(0, first - 1) :]
        unseen.difference_update(kept)
        agents.update(line.steps[first:])
        cut += not line.whole
        if line.is_lost:
            log.records += 1
            where = f"{quoted(_text(line.path))} after {walk.commit_of(kept[-1]).hash[:SHORT]}"
            _leave_out(log, MERGED if walk.knows_newest else MISSING, where)
        yield _history(line, kept, walk, blobs, log, taken)
    if cut:
        histories = count_words(cut, "history")
        log.notes.append(f"followed only until something that is left out changed the file: {histories}")
    for place in sorted(unseen):
        aside = walk.links.befores[place] in agents
        if aside:
            agents.add(place)
        leave_out(place, ASIDE if aside else PEOPLES)


def _leave_out(log: Log, reason: str, where: str) -> None:
    (log.skip if reason in FAULTS else log.leave_out)(reason, where)


def _kind(line: Line, said: Said, walk: _Walk, blobs: Blobs) -> str | None:
    """What kind of file a line is of, where it is one that nobody writes by hand; what is said of it goes first."""
    named = (kind for kind in kinds_by_name(_text(line.path)) if kind not in said.denied)
    kind = said.kind or next(named, None) or _kind_by_text(line, walk, blobs)
    return None if kind in said.denied else kind


def _kind_by_text(line: Line, walk: _Walk, blobs: Blobs) -> str | None:
    """The same by the first text that an agent wrote of it."""
    texts = (walk.changes[place].new for place in line.steps if walk.commit_of(place).wrote.role == "agent")
    name = next((name for name in texts if name is not None), None)
    try:
        return None if name is None else kind_by_text(blobs.text(name))
    except LogError:
        return MISSING  # it was there, but is damaged


def _history(line: Line, kept: Sequence[int], walk: _Walk, blobs: Blobs, log: Log, taken: Counter[str]) -> History:
    commits = [walk.commit_of(place) for place in kept]
    times, turned = times_in_order([commit.at for commit in commits if commit.at is not None], now=utc_now())
    if turned:
        log.repaired["clocks that go back"] += turned
    revisions: list[Revision] = []
    before = walk.changes[kept[0]].old
    if commits[0].wrote.role == "agent" and before is not None:
        revisions.append(_revision("system", times[0], None, before, {}, blobs))
    for place, commit, at in zip(kept, commits, times, strict=True):
        name, agent = commit.hash[:SHORT], commit.wrote.agent
        attributes: Attributes = {} if agent is None else {"agent": agent, "commit": name}
        role = commit.wrote.role or "system"
        revisions.append(_revision(role, at, name, walk.changes[place].new, attributes, blobs))
    path = _text(line.path)
    agents = sorted({commit.wrote.agent for commit in commits if commit.wrote.agent is not None})
    name = f"{path}@{commits[0].hash[:SHORT]}"
    taken[name] += 1
    return History.model_construct(
        id=name if taken[name] == 1 else f"{name}:{taken[name]}",
        user=None,
        arm=None,
        at=None,
        read_at=_followed_until(line, walk, times[-1]),
        attributes={"path": path, "directory": path.rpartition("/")[0] or ".", "agent": agents},
        weight=None,
        revisions=revisions,
    )


def _followed_until(line: Line, walk: _Walk, last: datetime) -> datetime | None:
    """Until when it is known what became of a file; None where that is known to this day."""
    if line.whole:
        return None if walk.known_until is None else max(last, walk.known_until)
    text = walk.last_text(line) if line.is_lost else None
    merged = None if text is None else walk.merged.get(text)
    cut = merged if line.cut is None else walk.commit_of(line.cut).at
    return last if cut is None else max(last, cut)


def _revision(
    role: Role, at: datetime, name: str | None, blob: bytes | None, attributes: Attributes, blobs: Blobs
) -> StoredRevision:
    read = str if blob is None else partial(blobs.text, blob)
    return StoredRevision.of(read, id=name, at=at, role=role, attributes=attributes)


def _text(path: bytes) -> str:
    """A path that is not UTF-8 shows its other bytes as escapes."""
    return path.decode(errors="backslashreplace")

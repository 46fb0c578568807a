"""What a log holds, as it was read last: enough of each conversation for lists, and its text while it is there.

Texts are held in memory alone, packed, and shown only while the file that they were read from is as it was.
"""

from __future__ import annotations

import hashlib
import pickle
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from evalr.inputs import Transcript
from evalr_tracepass.records import Filters
from evalr_tracepass.sources import Source
from evalr_tracepass.traces import Trace, trace_of

MOST_HELD = 512_000_000
"""Bytes of packed texts that are held; what is beyond is read from its file again."""

REMEMBERED = 16
"""Searches whose conversations are known."""

OPENING = 160
"""Characters of a conversation's first message, for lists."""

MOST_TOKENS = 10**15
"""Of one turn; a log that says more counts something else, or nothing."""

DUPLICATE = "duplicate conversation"
NO_ID = "no id"


class Entry(NamedTuple):
    """One conversation, as lists show it.

    Attributes:
        key: names it in addresses; made of its user and its id.
        convo_id: its id.
        user: its end user, "" where unknown.
        began: when, None where the log does not say.
        turns: of people and agents.
        input_tokens: None where no turn says.
        output_tokens: the same.
        has_error: whether a turn or a tool call failed.
        opening: how its first message begins.
        file: the place of its file among the snapshot's.
        place: its place among the conversations of that file.
    """

    key: str
    convo_id: str
    user: str
    began: datetime | None
    turns: int
    input_tokens: int | None
    output_tokens: int | None
    has_error: bool
    opening: str
    file: int
    place: int


class Signature(NamedTuple):
    """By which a file that was changed is told from what it was."""

    modified: int
    size: int
    node: int


@dataclass
class Part:
    """One file of a log, or a log that is no file."""

    source: Source
    path: Path | None
    signature: Signature | None

    @property
    def is_there(self) -> bool:
        """Whether it is as it was when it was read."""
        return self.path is None or signature_of(self.path) == self.signature


class Files(NamedTuple):
    """What a log is made of: its files, and the folders in which there may be others later."""

    parts: list[Part]
    folders: list[tuple[Path, Signature | None]]


@dataclass
class Snapshot:
    """A log as it was read.

    Attributes:
        parts: its files.
        folders: those that they are in, and what these were like.
        entries: its conversations, the latest first.
        left_out: what is not among them, by reason.
        has_tokens: whether any of them says how many tokens it took.
        number: tells it from every other of the process.
    """

    parts: list[Part] = field(default_factory=list)
    folders: list[tuple[Path, Signature | None]] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    by_key: dict[str, Entry] = field(default_factory=dict)
    held: dict[str, bytes] = field(default_factory=dict, repr=False)
    said: dict[str, bytes] = field(default_factory=dict, repr=False)
    has_tokens: bool = False
    number: int = field(default_factory=count().__next__)
    _found: dict[str, list[Entry]] = field(default_factory=dict, repr=False)

    @property
    def is_there(self) -> bool:
        """Whether every file is as it was, and there is no other."""
        return all(signature_of(path) == was for path, was in self.folders) and all(
            part.is_there for part in self.parts
        )

    def transcript(self, entry: Entry) -> Transcript | None:
        """The conversation with its text; None where its file is gone, or is not what it was."""
        part = self.parts[entry.file]
        if not part.is_there:
            return None
        packed = self.held.get(entry.key)
        if packed is not None:
            return _unpacked(packed)
        for place, transcript in enumerate(part.source):
            if place == entry.place:
                return transcript
        return None

    def transcripts(self, entries: Iterable[Entry]) -> Iterator[Transcript]:
        """These conversations as the log has them now, file by file; what is not in it any more is not among them."""
        wanted: dict[int, dict[str, Entry]] = {}
        for entry in entries:
            wanted.setdefault(entry.file, {})[entry.key] = entry
        # In the log's order, in which a pass that is resumed finds the same rows again.
        for file, of in sorted(wanted.items()):
            part = self.parts[file]
            if part.is_there and all(key in self.held for key in of):
                yield from (_unpacked(self.held[each.key]) for each in sorted(of.values(), key=_place))
                continue
            for transcript in part.source:
                if of.pop(key_of(transcript.id or "", transcript.user or ""), None) is not None:
                    yield transcript

    def matching(self, filters: Filters) -> list[Entry]:
        """The conversations that match, the latest first. What was searched for last is known."""
        known = self._found.get(filters.model_dump_json())
        if known is None:
            folded = filters.search.casefold() if filters.search else None
            known = [entry for entry in self.entries if self._matches(entry, filters, folded)]
            while len(self._found) >= REMEMBERED:
                self._found.pop(next(iter(self._found)), None)
            self._found[filters.model_dump_json()] = known
        return known

    def _matches(self, entry: Entry, filters: Filters, folded: str | None) -> bool:
        if filters.user is not None and entry.user != filters.user:
            return False
        if filters.errors_only and not entry.has_error:
            return False
        if filters.since is not None and (entry.began is None or entry.began < filters.since):
            return False
        if filters.until is not None and (entry.began is None or entry.began >= filters.until):
            return False
        return folded is None or folded in self._said(entry)

    def _said(self, entry: Entry) -> str:
        packed = self.said.get(entry.key)
        if packed is None:
            found = self.transcript(entry)
            return "" if found is None else _said_in(trace_of(found))
        return zlib.decompress(packed).decode("utf-8", "surrogatepass")


def read_snapshot(files: Files, *, progress: Callable[[int], object]) -> Snapshot:
    """Read a log's files.

    Args:
        files: of the log.
        progress: told how many conversations have been read.

    Raises:
        LogError: one cannot be read.
    """
    found = Snapshot(files.parts, files.folders)
    held = 0
    for file, part in enumerate(found.parts):
        for place, transcript in enumerate(part.source):
            trace = trace_of(transcript)
            key = key_of(trace.convo_id, trace.user)
            if not trace.convo_id or key in found.by_key:
                found.left_out[NO_ID if not trace.convo_id else DUPLICATE] += 1
                continue
            entry = _entry(key, trace, transcript, file, place)
            found.by_key[key] = entry
            found.has_tokens |= entry.input_tokens is not None or entry.output_tokens is not None
            if held < MOST_HELD:
                found.held[key] = zlib.compress(pickle.dumps(transcript), 1)
                found.said[key] = zlib.compress(_said_in(trace).encode("utf-8", "surrogatepass"), 1)
                held += len(found.held[key]) + len(found.said[key])
            if not len(found.by_key) % 50:
                progress(len(found.by_key))
        found.left_out.update(part.source.left_out)
    dated = sorted((each for each in found.by_key.values() if each.began is not None), key=_began, reverse=True)
    found.entries = [*dated, *(each for each in found.by_key.values() if each.began is None)]
    return found


def key_of(convo_id: str, user: str) -> str:
    """A name for a conversation that an address can hold, whatever its id is made of."""
    spelled = f"{len(user)}:{user}{convo_id}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(spelled, digest_size=9).hexdigest()


def signature_of(path: Path) -> Signature | None:
    """What a file is known by now, None where it cannot be looked at."""
    try:
        found = path.stat()
    except OSError:
        return None
    return Signature(found.st_mtime_ns, found.st_size, found.st_ino)


def tokens_of(metadata: dict[str, Any], name: str) -> int | None:
    """A turn's tokens of a kind, where its log says."""
    found = metadata.get(name)
    return found if isinstance(found, int) and not isinstance(found, bool) and 0 <= found <= MOST_TOKENS else None


def _entry(key: str, trace: Trace, transcript: Transcript, file: int, place: int) -> Entry:
    read, written = (
        [spent for turn in transcript.turns if (spent := tokens_of(turn.metadata, name)) is not None]
        for name in ("input_tokens", "output_tokens")
    )
    said = (step.text for step in trace.steps if step.text.strip() and not step.hidden)
    return Entry(
        key,
        trace.convo_id,
        trace.user,
        trace.began,
        len(trace.steps),
        sum(read) if read else None,
        sum(written) if written else None,
        trace.has_error,
        " ".join(next(said, "")[: OPENING * 4].split())[:OPENING],
        file,
        place,
    )


def _said_in(trace: Trace) -> str:
    return "\0".join(step.text.casefold() for step in trace.steps if step.text and not step.hidden)


def _unpacked(packed: bytes) -> Transcript:
    found: Transcript = pickle.loads(zlib.decompress(packed))  # of this process's own memory
    return found


def _place(entry: Entry) -> int:
    return entry.place


def _began(entry: Entry) -> float:
    return 0.0 if entry.began is None else entry.began.timestamp()

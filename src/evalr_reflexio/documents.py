"""Answers of Reflexio's HTTP API, saved as JSON: put into a temporary database, and read as any other log is.

So one session may be spread over many files, and no more than one file is in memory.
"""

from __future__ import annotations

import json
import re
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pydantic_core import from_json

from evalr.errors import LogError
from evalr.estimates.words import count_words
from evalr.input_fields import without_lone_surrogates
from evalr.logs.finding import unreadable
from evalr.logs.lines import BYTE_ORDER_MARK
from evalr.logs.reasons import without_lone_escapes
from evalr.logs.sqlite import Database
from evalr.quoting import quoted
from evalr_reflexio.config import Experiment, experiment_of
from evalr_reflexio.tables import CUSTOMERS, FIELDS, INTERACTIONS, LEARNINGS, NOUNS, OUTCOMES, REQUESTS, SHADOWS

MANIFEST = "evalr-fetch.json"
"""What a fetch writes of itself beside the answers."""

EXPERIMENTS_ROUTE = "/api/retrieval_experiments"
"""Servers have it from 0.2.30 on, and from there on corrections are what they are called."""

CANNOT_GIVE: Final = (
    "over HTTP Reflexio gives no counts of tokens, no citations and no texts of learnings; not which verdicts are on a "
    "part of a session, and which gradings of learnings did not finish; and of shadow verdicts only "
    "the newest hundred of the last thirty days, of the pinned prompt version"
)

LARGEST = 256 * 1024 * 1024
"""Bytes of one file: a larger one is no page of answers."""

_LISTS: Final[Mapping[str, str]] = {
    "agent_success_evaluation_results": OUTCOMES,
    "verdicts": SHADOWS,
    "results": LEARNINGS,
    "session_outcomes": CUSTOMERS,
    "interactions": INTERACTIONS,
}
_SIGNS: Final[Sequence[tuple[bytes, bytes]]] = (
    # A list, and what its first ones have; some lists are told by their name alone.
    (b"sessions", b'"requests"'),
    (b"requests", b'"session_id"'),
    (b"agent_success_evaluation_results", b""),
    (b"verdicts", b'"reflexio_is_request_1"'),
    (b"results", b'"learning_id"'),
    (b"session_outcomes", b""),
    (b"interactions", b'"interaction_id"'),
)
_KEYS: Final[Mapping[str, str]] = {
    REQUESTS: "request_id",
    INTERACTIONS: "interaction_id",
    OUTCOMES: "result_id",
    SHADOWS: "verdict_id",
    LEARNINGS: "result_id",
    CUSTOMERS: "outcome_id",
}
_VERDICTS: Final = frozenset((OUTCOMES, SHADOWS, LEARNINGS, CUSTOMERS))
_INDEXED: Final = {
    REQUESTS: "session_id",
    INTERACTIONS: "request_id",
    OUTCOMES: "session_id",
    SHADOWS: "session_id",
    LEARNINGS: "session_id",
    CUSTOMERS: "session_id",
}


_NAMES_OF_LISTS: Final = re.compile(rb'"(\w+)"\s*:\s*\[')
"""Names of lists in JSON."""


def looks_like_answers(head: bytes) -> bool:
    """Whether a file that begins so is an answer of Reflexio's HTTP API."""
    head = head.removeprefix(BYTE_ORDER_MARK).lstrip()
    if not head.startswith(b"{"):
        return False
    lists = set(_NAMES_OF_LISTS.findall(head))
    return any(name in lists and inside in head for name, inside in _SIGNS)


@dataclass
class Answers:
    """The temporary database that answers were put into, and what else they said.

    Attributes:
        database: of what could be used.
        experiments: the retrieval experiments, newest first.
        refused: (reason, place) of what could not.
        unknown_routes: what the server had not, as far as a fetch says.
    """

    database: Database
    experiments: list[Experiment] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)
    unknown_routes: set[str] = field(default_factory=set)


def read_answers(path: Path) -> Answers:
    """The answers in a file, or in all files of a folder.

    Raises:
        LogError: a file cannot be opened or is no JSON, or none holds an answer.
    """
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    folder = tempfile.TemporaryDirectory(prefix="evalr-", ignore_cleanup_errors=True)
    connection = sqlite3.connect(Path(folder.name) / "answers.db", isolation_level=None, check_same_thread=False)
    answers = Answers(Database(connection, path, 0, [CANNOT_GIVE], _folder=folder))
    try:
        answers.database.size = sum(each.stat().st_size for each in files)
        _fill(connection, files, answers)
    except OSError as error:
        answers.database.close()
        raise unreadable(path, error) from error
    except BaseException:
        answers.database.close()
        raise
    return answers


def _fill(connection: sqlite3.Connection, files: Sequence[Path], answers: Answers) -> None:
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("PRAGMA journal_mode = OFF")
    connection.execute("BEGIN")
    for table, columns in FIELDS.items():
        # Without types, so that numbers stay numbers.
        names = ", ".join(
            f"{name} PRIMARY KEY" if name == _KEYS[table] else name for name in columns if name != "rowid"
        )
        connection.execute(f"CREATE TABLE {table} ({names})")
    found, has_metadata = 0, False
    for file in files:
        document = _document(file, answers)
        if file.name == MANIFEST:
            _take_note(document, answers)
            continue
        known = False
        for table, rows in _tables(document, file, answers):
            known = True
            found += len(rows)
            has_metadata |= table == REQUESTS and any("metadata" in row for row in rows)
            _insert(connection, table, _with_ids(rows, table, file, answers))
        if not known:
            answers.database.notes.append(f"{quoted(file.name)} is no answer that is known, and is not read")
    for table, column in _INDEXED.items():
        connection.execute(f"CREATE INDEX {table}_{column} ON {table} ({column})")
    if not has_metadata:
        connection.execute(f"ALTER TABLE {REQUESTS} DROP COLUMN metadata")
    if EXPERIMENTS_ROUTE in answers.unknown_routes:
        # As in its database: a release without tags counts playbooks where later ones count corrections.
        connection.execute(f"ALTER TABLE {OUTCOMES} DROP COLUMN tags")
    connection.execute("COMMIT")
    connection.execute("BEGIN")
    if not found and not answers.refused:
        raise LogError(f"{answers.database.path}: there are no records in it, as answers of Reflexio's HTTP API")


def _document(file: Path, answers: Answers) -> Any:
    if file.stat().st_size > LARGEST:
        raise LogError(f"{file} is over 256 MiB, which is no page of answers: fetch it in shorter periods")
    data = file.read_bytes().removeprefix(BYTE_ORDER_MARK)
    try:
        return from_json(data)
    except ValueError:
        mended, count = without_lone_escapes(data)
    try:
        document = from_json(mended)
    except ValueError as error:
        raise LogError(f"{file} is not JSON, or cut off ({error})") from error
    answers.database.notes.append(f"{quoted(file.name)} has {count_words(count, 'lone surrogate')}, read as U+FFFD")
    return document


def _take_note(manifest: Any, answers: Answers) -> None:
    if not isinstance(manifest, dict):
        return
    if manifest.get("complete") is not True:
        answers.database.notes.append("the fetch of these answers did not come to its end")
    unknown = manifest.get("unknown_routes")
    answers.unknown_routes.update(str(route) for route in (unknown if isinstance(unknown, list) else []))
    notes = manifest.get("notes")
    answers.database.notes += [
        quoted(str(note), longest=200)[1:-1] for note in (notes if isinstance(notes, list) else [])
    ]


def _tables(document: Any, file: Path, answers: Answers) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    if not isinstance(document, dict):
        return
    if isinstance(document.get("sessions"), list):
        sessions = _maps(document["sessions"], "sessions", file, answers)
        requests = [each for session in sessions for each in _list_in(session, "requests", file, answers)]
        yield from _requests(requests, file, answers)
    if isinstance(document.get("requests"), list):
        yield from _requests(_maps(document["requests"], "requests", file, answers), file, answers)
    for name, table in _LISTS.items():
        if isinstance(document.get(name), list):
            rows = _maps(document[name], name, file, answers)
            yield table, [_flat_shadow(row) for row in rows] if table == SHADOWS else rows
    if isinstance(document.get("experiments"), list):
        answers.experiments += [experiment_of(each, file) for each in document["experiments"]]
        yield REQUESTS, []


def _requests(
    found: Sequence[dict[str, Any]], file: Path, answers: Answers
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Requests as the API nests them, with their interactions beside them, or as plain rows."""
    requests: list[dict[str, Any]] = []
    interactions: list[dict[str, Any]] = []
    for each in found:
        inner = each.get("request")
        request = inner if isinstance(inner, dict) else each
        requests.append(request)
        of_request = {"request_id": request.get("request_id")}
        interactions += [{**of_request, **turn} for turn in _list_in(each, "interactions", file, answers)]
    yield REQUESTS, requests
    yield INTERACTIONS, interactions


def _flat_shadow(row: dict[str, Any]) -> dict[str, Any]:
    output = row.get("output")
    return {**row, **output} if isinstance(output, dict) else row


def _list_in(row: Mapping[str, Any], name: str, file: Path, answers: Answers) -> list[dict[str, Any]]:
    found = row.get(name)
    if found is None:
        return []
    if not isinstance(found, list):
        answers.refused.append((f"wrong type in {quoted(name)}", f"file {quoted(file.name)}"))
        return []
    return _maps(found, name, file, answers)


def _maps(rows: Sequence[Any], name: str, file: Path, answers: Answers) -> list[dict[str, Any]]:
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, dict):
            answers.refused.append(("not a JSON object", f"{quoted(file.name)}, number {number} of {name}"))
    return [row for row in rows if isinstance(row, dict)]


def _with_ids(rows: Sequence[dict[str, Any]], table: str, file: Path, answers: Answers) -> Iterator[Mapping[str, Any]]:
    """Rows that can be told apart: verdicts without an id would be taken for one and the same."""
    key = _KEYS[table]
    for number, row in enumerate(rows, start=1):
        if table not in _VERDICTS or row.get(key) not in (None, ""):
            yield row
        else:
            answers.refused.append((f"no {key}", f"{quoted(file.name)}, {NOUNS[table]} number {number}"))


def _insert(connection: sqlite3.Connection, table: str, rows: Iterable[Mapping[str, Any]]) -> None:
    columns = [name for name in FIELDS[table] if name != "rowid"]
    marks = ", ".join("?" * len(columns))
    # Pages of answers overlap, so that the same row may come twice; and a file may have some of its columns alone.
    newest = ", ".join(f"{name} = coalesce(excluded.{name}, {name})" for name in columns)
    adding = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})"
    query = f"{adding} ON CONFLICT ({_KEYS[table]}) DO UPDATE SET {newest}"
    connection.executemany(query, ([_cell(row.get(name), name) for name in columns] for row in rows))


_NAMES: Final = frozenset(("request_id", "user_id", "session_id", "learning_id", "outcome_id"))


def _cell(value: Any, name: str) -> Any:
    if name in _NAMES and isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if name == "metadata" and value is not None:
        # As JSON again, whatever it is: a text that looks like a map is a text, and no tag.
        return json.dumps(value)
    if isinstance(value, str):
        return without_lone_surrogates(value)
    if isinstance(value, bool) or value is None or isinstance(value, float):
        return value
    if isinstance(value, int):
        return value if -(1 << 63) <= value < 1 << 63 else str(value)
    return json.dumps(value)


DISK_LAYOUT = re.compile(r"disk_.+")


def is_disk_layout(path: Path) -> bool:
    """Whether a folder is the store of files that releases up to 0.2.23 could keep."""
    folders = [path, *(each for each in path.iterdir() if DISK_LAYOUT.fullmatch(each.name))] if path.is_dir() else []
    return any(
        (each / "requests").is_dir() and ((each / "interactions").is_dir() or (each / "evaluations").is_dir())
        for each in folders
    )

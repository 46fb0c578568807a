"""The reader holds to the contract of readers, with each kind of record that a Reflexio log has."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import ClassVar

from reflexio_writing import BEGIN, Writer

from evalr.inputs import Transcript
from evalr.logs import Item, Reader, Stored
from evalr.testing import ReaderContract
from evalr_reflexio.reader import reader

HOSTILE_ROLE = "\x1b[31m<b>{}\u2028" * 40


class TestVerdicts(ReaderContract):
    """A record is a verdict on a session; a second one on the same session is a duplicate."""

    reader: ClassVar[Reader] = reader
    stands_alone = False
    records_for_memory = 4_000
    cuts = 30

    def write(self, folder: Path, ids: Iterable[str]) -> Path:
        writer = Writer(folder / "reflexio_org.db")
        begun: set[str] = set()
        for number, name in enumerate(ids):
            if name not in begun:
                writer.session(name, at=BEGIN + timedelta(hours=number), roles=["User"])
                begun.add(name)
            writer.outcome(name, at=BEGIN + timedelta(hours=number))
        return writer.done()

    def write_with_a_bad_record(self, folder: Path) -> Path:
        writer = Writer(folder / "reflexio_org.db")
        writer.outcome("a")
        writer.outcome("b", number_of_correction_per_session=-1, failure_type=HOSTILE_ROLE)
        writer.outcome("c")
        return writer.done()

    def id_of(self, item: Item) -> str | None:
        return item.result.about.id if isinstance(item, Stored) and item.result.about is not None else None


class TestSessions(ReaderContract):
    """A record is a session; requests of one id are parts of it, so that there are no duplicates."""

    reader: ClassVar[Reader] = reader
    stands_alone = False
    records_for_memory = 4_000
    cuts = 30

    def write(self, folder: Path, ids: Iterable[str]) -> Path:
        writer = Writer(folder / "reflexio_org.db")
        for number, name in enumerate(ids):
            request = writer.request(f"r{number}", "u1", name, BEGIN + timedelta(hours=number))
            writer.turn(request, BEGIN + timedelta(hours=number), "User")
            writer.turn(request, BEGIN + timedelta(hours=number, minutes=1), "Agent")
        return writer.done()

    def write_with_a_bad_record(self, folder: Path) -> Path:
        writer = Writer(folder / "reflexio_org.db")
        writer.session("a")
        writer.request(HOSTILE_ROLE, "u1", "b", "no time at all")
        writer.session("c")
        return writer.done()

    def write_out_of_order(self, folder: Path) -> tuple[Path, Path]:
        paths = []
        for name, order in (("one", (0, 1, 2)), ("two", (2, 0, 1))):
            writer = Writer(folder / f"{name}.db")
            request = writer.request("r", "u1", "a")
            for number in order:
                role = ("User", "Agent", "User")[number]
                writer.turn(request, BEGIN + timedelta(minutes=number), role, str(number), interaction_id=number + 1)
            paths.append(writer.done())
        return paths[0], paths[1]

    def id_of(self, item: Item) -> str | None:
        return item.id if isinstance(item, Transcript) else None

    def test_the_first_of_one_subject_is_kept(self, tmp_path: Path) -> None:
        """Requests of one session make one session, wherever they stand."""
        log = reader.open(self.write(tmp_path, ["a", "b", "a", "c", "a"]))
        items = list(log)
        assert self._ids(items) == ["a", "b", "c"]
        assert [len(item.turns) for item in items if isinstance(item, Transcript)] == [6, 2, 2]
        assert log.left_out.total == 0
        self._adds_up(log, items)


class TestAnswers(ReaderContract):
    """A record is a session in an answer of the HTTP API."""

    reader: ClassVar[Reader] = reader
    stands_alone = False
    records_for_memory = 2_000
    cuts = 30
    bytes_a_record = 4_000  # one file is read whole; a fetch writes many

    def write(self, folder: Path, ids: Iterable[str]) -> Path:
        begin = int(BEGIN.timestamp())
        sessions = [
            {"session_id": name, "requests": [self.request(f"r{number}", name, begin + 3600 * number, number)]}
            for number, name in enumerate(ids)
        ]
        return self.put(folder, {"success": True, "sessions": sessions, "has_more": False})

    def request(self, name: str, session: str, at: object, number: int) -> dict[str, object]:
        turn = {"interaction_id": number + 1, "role": "User", "content": "hello", "created_at": at}
        request = {"request_id": name, "user_id": "u1", "session_id": session, "created_at": at}
        return {"request": request, "interactions": [turn]}

    def put(self, folder: Path, document: object) -> Path:
        path = folder / "requests.json"
        path.write_text(json.dumps(document), encoding="utf-8")
        return path

    def write_with_a_bad_record(self, folder: Path) -> Path:
        begin = int(BEGIN.timestamp())
        requests = [self.request("r1", "a", begin, 0), self.request("r2", "c", begin, 2)]
        bad = self.request(HOSTILE_ROLE, "b", HOSTILE_ROLE, 1) | {"interactions": []}
        return self.put(folder, {"sessions": [{"session_id": "a", "requests": [*requests, bad]}]})

    def id_of(self, item: Item) -> str | None:
        return item.id if isinstance(item, Transcript) else None

    def test_the_first_of_one_subject_is_kept(self, tmp_path: Path) -> None:
        """Requests of one session make one session, wherever they stand."""
        log = reader.open(self.write(tmp_path, ["a", "b", "a", "c", "a"]))
        items = list(log)
        assert self._ids(items) == ["a", "b", "c"]
        self._adds_up(log, items)

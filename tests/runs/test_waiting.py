"""Inputs that wait, held against a model of what should: in memory and in a file, through any order of events."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given as forall
from hypothesis import settings
from hypothesis import strategies as st

from evalr.errors import SpoolError
from evalr.inputs import Activity, Session
from evalr.runs import input_hash, waiting
from evalr.runs.waiting import Entry, Reading, Waiting

T = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def reading(name: str, minutes: int) -> Reading:
    given = Session(id=name, activities=[Activity(at=T + minutes * MINUTE, role="agent")])
    return Reading(given, name.encode(), input_hash(given), T + minutes * MINUTE, T + (minutes + 10) * MINUTE)


def minutes_of(entry: Entry) -> int:
    assert isinstance(entry.given, Session)
    return int((entry.given.activities[-1].at - T) / MINUTE)


@contextmanager
def opened(kind: str) -> Iterator[Waiting]:
    if kind == "memory":
        store = Waiting()
        yield store
        store.close()
        return
    with tempfile.TemporaryDirectory() as folder:
        store = Waiting(Path(folder) / "spool.db")
        yield store
        store.close()


names = st.sampled_from("abc")
steps = st.lists(
    st.tuples(st.just("put"), names, st.integers(0, 60))
    | st.tuples(st.just("take"), st.integers(0, 80), st.integers(1, 3))
    | st.tuples(st.sampled_from(["done", "back", "pending"]), st.integers(0, 5), st.just(0)),
    max_size=40,
)


@pytest.mark.parametrize("kind", ["memory", "spool"])
@settings(max_examples=60, deadline=None)
@forall(steps)
def test_whatever_happens_the_latest_reading_of_each_subject_is_judged_last(
    kind: str, steps: list[tuple[str, str | int, int]]
) -> None:
    latest: dict[str, int] = {}
    judged: dict[str, list[int]] = {}
    in_work: list[Entry] = []
    with opened(kind) as store:
        for what, which, amount in steps:
            if what == "put":
                name = str(which)
                answer = store.put(reading(name, amount))
                known = latest.get(name)
                assert (answer in ("added", "replaced")) == (known is None or amount > known)
                latest[name] = max(amount, latest.get(name, -1))
            elif what == "take":
                now = T + int(which) * MINUTE
                taken = store.take(now, amount)
                assert len(taken) <= amount
                in_work += taken
                keys = [entry.key for entry in in_work]
                assert len(set(keys)) == len(keys), "no two of one subject are in work"
                for entry in taken:
                    assert entry.supersedes == bool(judged.get(str(entry.given.id)))
            elif in_work:
                entry = in_work.pop(int(which) % len(in_work))
                if what != "back":
                    judged.setdefault(str(entry.given.id), []).append(minutes_of(entry))
                if what == "done":
                    store.done([entry])
                else:
                    store.give_back(entry, T + 70 * MINUTE, judged=what == "pending")
        for entry in in_work:
            store.give_back(entry, T, judged=False)
        while left := store.take(T + 100 * MINUTE, 2):
            for entry in left:
                judged.setdefault(str(entry.given.id), []).append(minutes_of(entry))
            store.done(left)
        assert store.next_ready() is None
        assert store.count() == 0
        assert store._objects == {}
    assert {name: minutes[-1] for name, minutes in judged.items()} == latest
    assert all(minutes == sorted(minutes) for minutes in judged.values()), "an older reading never comes after"


def test_what_a_dead_process_had_in_work_is_taken_over_with_a_warning_to_readers(tmp_path: Path) -> None:
    first = Waiting(tmp_path / "spool.db")
    first.put(reading("a", 0))
    first.put(reading("b", 0))
    (taken,) = first.take(T + 20 * MINUTE, 1)
    second = Waiting(first.path)
    assert [entry.given.id for entry in second.take(T + 20 * MINUTE, 5)] == ["b"], "what is in work is not taken"
    assert first._alive is not None
    first._alive.release()  # as when its process has died
    second.take_over()
    (again,) = second.take(T + 20 * MINUTE, 5)
    assert (again.given.id, again.supersedes) == (taken.given.id, True), "a sink may have its results already"
    second.close()
    assert not list(tmp_path.glob("spool.db-locks/*"))
    first._connection.close()


def test_only_so_many_of_the_judged_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "REMEMBERED", 10)
    store = Waiting()
    for n in range(25):
        store.put(reading(f"s{n}", 0))
        store.done(store.take(T + 20 * MINUTE, 1))
    assert store._connection.execute("SELECT count(*) FROM judged").fetchone()[0] == 10
    assert store.put(reading("s24", 0)) == "unchanged"
    assert store.put(reading("s0", 0)) == "added"
    store.close()


def test_a_spool_of_a_later_version_is_left_alone(tmp_path: Path) -> None:
    store = Waiting(tmp_path / "spool.db")
    store._connection.execute("PRAGMA user_version = 9")
    store.close()
    with pytest.raises(SpoolError, match="schema version 9, and this evalr reads version 1"):
        Waiting(tmp_path / "spool.db")

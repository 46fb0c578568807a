"""Stores that are broken, removed or replaced while they are used, and names that none can hold."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from reflex_service import FakeReflex, a_signal, talks

from evalr.errors import InputError, StoreError
from evalr.tracepass import Account, BatchTransport, Pass, Passes, open_store, plan

ME = Account("ann")


def run(path: Path, progress: Callable[[Pass], object] | None = None, account: Account = ME) -> Pass:
    store = open_store(path)
    try:
        passes = Passes(account, store, BatchTransport(FakeReflex().service()), progress=progress)
        return passes.run_sync(plan([a_signal("m1")]), talks(2))
    finally:
        store.close()


@pytest.mark.skipif(os.name == "nt", reason="an open file cannot be removed there")
@pytest.mark.parametrize("replaced", [False, True])
def test_a_store_that_is_removed_during_a_run_is_an_error_and_no_pass_complete(tmp_path: Path, replaced: bool) -> None:
    path = tmp_path / "passes.db"

    def remove(_: Pass) -> None:
        for each in tmp_path.iterdir():
            each.unlink()
        if replaced:
            path.touch()

    with pytest.raises(StoreError, match="removed, or replaced"):
        run(path, remove)


@pytest.mark.parametrize("column", ["scope_json", "selected_signals_json", "estimate_json"])
def test_a_pass_that_somebody_changed_by_hand_is_an_error_of_its_store(tmp_path: Path, column: str) -> None:
    path = tmp_path / "passes.db"
    found = run(path)
    connection = sqlite3.connect(path)
    connection.execute(f"UPDATE reflex_trace_passes SET {column} = '{{'")
    connection.commit()
    connection.close()
    store = open_store(path)
    for call in (lambda: store.get_pass(ME, found.id), lambda: store.passes(ME)):
        with pytest.raises(StoreError, match="changed by hand"):
            call()
    store.close()


@pytest.mark.parametrize("name", ["nul\0.db", "half\ud800.db", ":memory:"])
def test_a_name_that_no_file_can_have_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError):
        open_store(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["half\ud800", "nul\0"])
@pytest.mark.parametrize("part", ["user", "org"])
def test_b18_an_account_whose_name_no_store_can_hold_is_refused(tmp_path: Path, name: str, part: str) -> None:
    with pytest.raises(InputError, match="account"):
        run(tmp_path / "passes.db", account=ME._replace(**{part: name}))

"""What SQLite counts of plain rows, or reads with what is between them, is what reading them one by one comes to."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from reflexio_odd import odd_log
from reflexio_writing import BEGIN, Writer, columns_of

from evalr import report
from evalr.reflexio import (
    Config,
    Experiment,
    Store,
    compat_figures,
    impact,
    open_store,
    regeneration_candidates,
    regeneration_strata,
    significant_shadow_comparisons,
)
from evalr_reflexio.compat import dashboard, regenerating, results, shadows
from evalr_reflexio.tables import INTERACTIONS, OUTCOMES, REQUESTS, SHADOWS

NOW = BEGIN + timedelta(days=12)
PERIODS: list[dict[str, Any]] = [{}, {"since": BEGIN + timedelta(hours=5), "until": BEGIN + timedelta(days=2)}]


def figures(path: Path, **period: Any) -> dict[str, Any]:
    """All of them; of what was skipped, how many and not which come first."""
    config = Config(experiments=[Experiment("exp", 50.0, BEGIN)])
    with open_store(path) as store:
        found = compat_figures(store, config=config, source_sets={"a": ["prod"], "b": [""]}, now=NOW, **period)
    for reasons in found["skipped"].values():
        for each in reasons.values():
            each["places"] = len(each["places"])
    return found


def nothing_is_plain(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(results, "_PLAIN", {"created_at": "0"})
    patch.setattr(dashboard, "_IS_USUAL", "0")
    patch.setattr(shadows, "IS_USUAL", "0")
    patch.setattr(regenerating, "IS_USUAL", "0")


@pytest.mark.parametrize("period", PERIODS, ids=["all of it", "a period"])
@pytest.mark.parametrize(
    ("seed", "odd", "release"),
    [(1, 0, "0.2.32"), (2, 0.02, "0.2.32"), (3, 0.05, "0.2.30"), (4, 0.02, "0.2.25"), (5, 0.15, "0.2.32")],
)
def test_rows_that_sqlite_counts_are_those_that_are_counted_one_by_one(
    seed: int, odd: float, release: str, period: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = odd_log(tmp_path / "reflexio_x.db", seed, odd=odd, release=release, sessions=60)
    found = figures(path, **period)
    nothing_is_plain(monkeypatch)
    assert found == figures(path, **period)
    with open_store(path) as store:
        assert found["regenerate"] == regeneration_strata(regeneration_candidates(store, now=NOW, **period))


TAGS = [
    None, "", "[]", '["a"]', ' [ "a" , "b"]', '["é"]', '["\\u0061"]', '["a\nb"]', '["\\ud800"]', '["a"', '["a", 1]',
    '[["a"]]', '{"a": 1}', "null", "1", "[", b'["a"]', "[" * 5000 + "]" * 5000, '["a"]\0x',
]  # fmt: skip
FAILURES = [
    None, "", "system_error", " System_Error ", "SYSTEM_ERROR", "\u00a0system_error\n", "system_errors", b"x",
]  # fmt: skip
COUNTS = [None, 0, 3, -1, 2.0, 2.5, "2", "many", b"2"]
TIMES = [
    "2026-09-02T10:00:00+00:00", "2026-02-30T10:00:00+00:00", "2026-09-02T24:00:00+00:00", "2026-09-02T10:00:60+00:00",
    "0999-09-02T10:00:00+00:00", "2026-09-02T10:00:00Z", "2026-09-02T10:00:00.5+00:00", "2026-09-02", "", "2460000",
    "2026-09-02T10:00:00+00:00\0x",
]  # fmt: skip


def test_each_odd_cell_of_a_result_is_read_as_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = Writer(tmp_path / "reflexio_x.db")
    rows: list[dict[str, Any]] = [{"tags": tags} for tags in TAGS]
    rows += [{"failure_type": failure, "success": 0} for failure in FAILURES]
    rows += [{"user_turns_to_resolution": count} for count in COUNTS]
    rows += [{"number_of_correction_per_session": count} for count in COUNTS if count is not None]
    rows += [{"is_escalated": count} for count in COUNTS if count is not None]
    rows += [{"success": success} for success in (0, 1, 2, 0.5, "", "no", b"")]
    rows += [{"at": at} for at in TIMES]
    for number, row in enumerate(rows):
        log.session(f"s{number}", "ada")
        log.outcome(f"s{number}", "ada", **{"at": BEGIN + timedelta(days=8), **row})
    path = log.done()
    found = figures(path)
    nothing_is_plain(monkeypatch)
    assert found == figures(path)
    assert found["get_evaluation_overview"]["week"]["context_tiles"]["behavior_success"]["excluded_system_errors"] > 0


def test_sessions_of_several_versions_sources_or_users_are_counted_as_candidates(tmp_path: Path) -> None:
    log = Writer(tmp_path / "reflexio_x.db")
    for name, row in {
        "a": {"source": "prod", "agent_version": "1"},
        "b": {"source": "prod", "agent_version": "2"},
        "c": {"source": "beta", "agent_version": "2"},
        "d": {"source": "prod", "agent_version": "1"},
    }.items():
        log.request(name, "ada", "s1", BEGIN + timedelta(minutes=ord(name)), **row)
    log.request("e", "bo", "s1", BEGIN + timedelta(days=1), source="beta")
    log.request("f", "bo", "s2", BEGIN, source="beta")
    log.request("g", "bo", "s2", BEGIN + timedelta(days=3), source="beta")
    path = log.done()
    for period in [{}, {"since": BEGIN + timedelta(minutes=98)}, {"until": BEGIN + timedelta(minutes=98)}]:
        with open_store(path) as store:
            wanted = regeneration_strata(regeneration_candidates(store, now=NOW, **period))
            assert regenerating.regeneration_counts(store, now=NOW, **period) == wanted
    assert wanted["regen_candidates"] == 2


# -- columns of other types than Reflexio's ----------------------------------------------------------------------------


def declare(log: Writer, table: str, *, without: str = "", **kinds: str) -> None:
    """Have columns of a table be of these types; "" is none, and keeps whatever is put there as it is."""
    columns = ", ".join(f"{name} {kind}" for name, kind in (columns_of(table, "0.2.32") | kinds).items())
    log.connection.execute(f"DROP TABLE {table}")
    log.connection.execute(f"CREATE TABLE {table} ({columns}) {without}")


def declared(path: Path, table: str, **kinds: str) -> Writer:
    """A log of which one table has columns of these types."""
    log = Writer(path, indexes=False)
    declare(log, table, **kinds)
    return log


def test_a_session_with_anything_that_is_no_text_is_no_plain_candidate(tmp_path: Path) -> None:
    names = ("user_id", "session_id", "source", "agent_version", "created_at")
    log = declared(tmp_path / "reflexio_x.db", REQUESTS, **dict.fromkeys(names, ""))
    odd: Any = ("ada", 5, b"s", None)
    for number, (user, session) in enumerate((user, session) for user in (*odd, "5") for session in (*odd, "5")):
        log.request(f"a{number}", user, session, BEGIN + timedelta(hours=number), source="", agent_version="")
    for name, session, row in [("b", "s1", {"source": 5}), ("c", "s2", {"agent_version": 1}), ("d", "s3", {})]:
        log.request(name, "bo", session, **{"source": "5", "agent_version": "1"} | row)
        log.request(f"{name}2", "bo", session, source="5", agent_version="1")
    log.request("e", "bo", "s4", 1788220800)
    path = log.done()
    with open_store(path) as store:
        slow, fast = store.account(), store.account()
        wanted = regeneration_strata(regeneration_candidates(store, now=NOW, account=slow))
        assert regenerating.regeneration_counts(store, now=NOW, account=fast) == wanted
    assert fast.left_out.counts == slow.left_out.counts
    assert fast.records == slow.records
    assert wanted["regen_candidates"] == 4 + 2 + 2 + 1


def test_results_without_an_id_of_their_own_are_counted(tmp_path: Path) -> None:
    log = declared(tmp_path / "reflexio_x.db", OUTCOMES, result_id="")
    odd = {"tags": '["\\u0061"]'}
    for number, row in enumerate([{"result_id": 1}, {"result_id": "2", **odd}, {"result_id": 3, **odd}, odd, {}]):
        log.outcome(f"s{number}", "ada", NOW - timedelta(hours=1), **row)
    tile = figures(log.done())["get_evaluation_overview"]["week"]["context_tiles"]["behavior_success"]
    assert tile["eligible_sessions"] == 5


@pytest.mark.parametrize("kind", ["TIMESTAMP", "TEXT COLLATE RTRIM", "TEXT COLLATE NOCASE", ""])
@pytest.mark.parametrize("table", [OUTCOMES, SHADOWS, INTERACTIONS, REQUESTS])
def test_times_are_read_as_they_are_written_whatever_their_column_is(
    table: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = declared(tmp_path / "reflexio_x.db", table, created_at=kind)
    for number, at in enumerate(
        [*TIMES, "2026-09-02T10:00:00+00:00 ", "2026-09-02t10:00:00+00:00", "0000-01-01T00:00:00+00:00"]
    ):
        usual = BEGIN + timedelta(days=1)
        request = log.request(f"r{number}", "ada", f"s{number}", at if table == REQUESTS else usual)
        log.turn(request, at if table == INTERACTIONS else usual, "User")
        log.outcome(f"s{number}", "ada", at if table == OUTCOMES else usual)
        log.shadow(number, f"s{number}", at if table == SHADOWS else usual)
    path = log.done()
    found = figures(path)
    nothing_is_plain(monkeypatch)
    assert found == figures(path)


@pytest.mark.parametrize("kind", ["INTEGER", "TEXT COLLATE NOCASE", ""])
def test_a_winner_that_is_none_is_skipped_whatever_its_column_is(kind: str, tmp_path: Path) -> None:
    log = declared(tmp_path / "reflexio_x.db", SHADOWS, better_request=kind)
    for better in ("tie", "TIE", 1):
        log.shadow(1, "s1", better_request=better, is_significantly_better=1)
    found = figures(log.done())
    name = significant_shadow_comparisons.__name__
    is_text = kind.startswith("TEXT")
    assert found[name] == {"wins": int(is_text), "losses": 0, "ties": 1}
    assert found["skipped"][name]["wrong value in 'better_request'"]["count"] == 2 - is_text


def test_names_that_are_no_utf_8_are_mended_before_they_are_compared(tmp_path: Path) -> None:
    log = Writer(tmp_path / "reflexio_x.db")
    for number, source in enumerate([b"prod\xff", b"prod\xfe", "caf\u00e9".encode()]):
        log.session(f"s{number}", "ada", BEGIN + timedelta(days=8), source=source)
        log.outcome(f"s{number}", "ada", BEGIN + timedelta(days=8))
    log.connection.execute("UPDATE requests SET source = CAST(source AS TEXT)")
    with open_store(log.done()) as store:
        sources = {"mended": ["prod\ufffd"], "whole": ["caf\u00e9"]}
        found = compat_figures(store, source_sets=sources, config=Config(), now=NOW)
    sets = found["get_evaluation_overview"]["week"]["source_set_comparison"]["sets"]
    assert [each["session_count"] for each in sets] == [2, 1]


def test_a_shadow_verdict_of_a_session_that_is_a_number_is_counted(tmp_path: Path) -> None:
    log = declared(tmp_path / "reflexio_x.db", REQUESTS, session_id="")
    declare(log, SHADOWS, session_id="")
    number: Any = 5
    log.session(number)
    log.shadow("none", number)
    found = impact(log.done(), now=NOW)
    assert found.shadow is not None
    assert found.shadow.wins.n == 1


# -- rows that stand together ------------------------------------------------------------------------------------------


def asked(store: Store, keys: list[str]) -> tuple[list[Any], list[str]]:
    """The ids of the interactions of some requests, and the queries that it took."""
    told: list[str] = []
    connection = store.queries._connection
    connection.set_trace_callback(told.append)
    try:
        rows = [row[0] for rows in store.queries.keyed(INTERACTIONS, "request_id", keys) for row in rows]
    finally:
        connection.set_trace_callback(None)
    return sorted(rows), told


@pytest.mark.parametrize("indexes", [True, False])
def test_rows_that_stand_together_are_read_together_and_others_looked_up(indexes: bool, tmp_path: Path) -> None:
    log = Writer(tmp_path / "reflexio_x.db", indexes=indexes)
    names = [log.request(f"r{number}", "ada", f"s{number}") for number in range(40)]
    for name in [*names, *names[:10]]:
        log.turn(name, BEGIN, "User")
    with open_store(log.done()) as store:
        asked(store, [])
        assert asked(store, ["none"])[0] == []
        rows, told = asked(store, names[10:20])
        assert rows == list(range(11, 21))
        assert "BETWEEN 11 AND 20" in told[-1].replace("?", "")
        rows, told = asked(store, [name for name in names[10:20] if name != "r15"])
        assert rows == [11, 12, 13, 14, 15, 17, 18, 19, 20]
        assert "BETWEEN" in told[-1]
        rows, told = asked(store, names[:10])  # of which some stand far from the others
        assert rows == [*range(1, 11), *range(41, 51)]
        assert "BETWEEN" not in told[-1]
        assert len(asked(store, names[20:30])[1]) == 1  # and nobody asks again for a while where they stand


def test_keys_that_the_database_takes_for_one_are_looked_up(tmp_path: Path) -> None:
    log = Writer(tmp_path / "reflexio_x.db", indexes=False)
    columns = ", ".join(f"{name} {kind}" for name, kind in columns_of(INTERACTIONS, "0.2.32").items())
    log.connection.execute(f"DROP TABLE {INTERACTIONS}")
    log.connection.execute(
        f"CREATE TABLE {INTERACTIONS} ({columns.replace('request_id TEXT NOT NULL', 'request_id TEXT COLLATE NOCASE')})"
    )
    log.connection.execute(f"CREATE INDEX of_any_case ON {INTERACTIONS}(request_id)")
    for name in ("a", "b", "C", "d"):
        log.turn(log.request(name, "ada", name), BEGIN, "User")
    with open_store(log.done()) as store:
        rows, told = asked(store, ["c", "d", "a"])
        assert rows == [1, 3, 4]
        assert "BETWEEN" in told[-2]


def test_a_text_that_is_no_utf_8_between_them_is_not_read(tmp_path: Path) -> None:
    log = Writer(tmp_path / "reflexio_x.db")
    names = [log.request(f"r{number}", "ada", f"s{number}") for number in range(5)]
    for name in names:
        log.turn(name, BEGIN, "User")
    log.connection.execute("UPDATE interactions SET content = CAST(x'ff' AS TEXT) WHERE interaction_id = 3")
    with open_store(log.done()) as store:
        assert asked(store, [*names[:2], *names[3:]])[0] == [1, 2, 4, 5]
        assert not store.queries.mended_texts
        assert asked(store, names)[0] == [1, 2, 3, 4, 5]
        assert len(store.queries.mended_texts) == 1


def test_sessions_of_a_source_that_is_no_utf_8_are_listed(tmp_path: Path) -> None:
    log = Writer(tmp_path / "reflexio_x.db")
    for session in ("s1", "s2"):
        log.session(session, "ada", source="prod")
        log.outcome(session, "ada")
    log.connection.execute("UPDATE requests SET source = CAST(x'70ff' AS TEXT) WHERE session_id = 's2'")
    found = figures(log.done())["get_evaluation_overview"]["week"]["source_set_comparison"]
    assert found["source_sessions"] == [
        {"source": source, "session_ids": [session], "sessions": [{"user_id": "ada", "session_id": session}]}
        for source, session in (("prod", "s1"), ("p\ufffd", "s2"))
    ]


def test_names_that_are_no_texts_are_read_as_texts(tmp_path: Path) -> None:
    log = Writer(tmp_path / "reflexio_x.db")
    log.connection.execute("DROP TABLE requests")
    columns = ", ".join(columns_of("requests", "0.2.32"))
    log.connection.execute(f"CREATE TABLE requests ({columns})")
    log.connection.execute("DROP TABLE shadow_comparison_verdicts")
    verdicts = ", ".join(
        f"{name} {kind} COLLATE NOCASE" if name == "session_id" else f"{name} {kind}"
        for name, kind in columns_of("shadow_comparison_verdicts", "0.2.32").items()
    )
    log.connection.execute(f"CREATE TABLE shadow_comparison_verdicts ({verdicts})")
    log.request("r1", b"ada", 7)  # type: ignore[arg-type]
    log.turn("r1", BEGIN, "Agent")
    log.session("s2", "bo")
    log.shadow(99, "S2")
    found = report(log.done(), kind="reflexio", now=NOW)
    assert found.users == 2
    assert found.results == 1


def test_rows_without_places_are_looked_up(tmp_path: Path) -> None:
    log = Writer(tmp_path / "reflexio_x.db")
    declare(log, INTERACTIONS, interaction_id="INTEGER PRIMARY KEY", without="WITHOUT ROWID")
    log.connection.execute(f"CREATE INDEX of_requests ON {INTERACTIONS}(request_id)")
    for number in range(3):
        log.turn(log.request(f"r{number}", "ada", f"s{number}"), BEGIN, "User", interaction_id=number + 1)
    with open_store(log.done()) as store:
        assert asked(store, ["r0", "r2"])[0] == [1, 3]
        assert asked(store, ["r1"])[0] == [2]


def test_texts_of_rows_that_nobody_wants_are_not_mended(tmp_path: Path) -> None:
    log = Writer(tmp_path / "reflexio_x.db")
    for name in "abcdef":
        log.turn(log.request(name, "ada", name), BEGIN, "User", b"\xff" + name.encode())
    log.connection.execute(f"UPDATE {INTERACTIONS} SET content = CAST(content AS TEXT)")
    with open_store(log.done()) as store:
        asked(store, [])
        assert asked(store, ["a", "b", "d", "e"])[0] == [1, 2, 4, 5]
        assert len(store.queries.mended_texts) == 4
        assert asked(store, ["a", "b", "c", "e", "f"])[0] == [1, 2, 3, 5, 6]
        assert len(store.queries.mended_texts) == 6

"""Answers of Reflexio's HTTP API: as files, and fetched from a server on loopback."""

from __future__ import annotations

import asyncio
import inspect
import json
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from reflexio_server import Reflexio, running
from reflexio_writing import HERE, answer

from evalr.errors import InputError, LogError, MissingExtraError
from evalr.inputs import Exchange, Transcript
from evalr.logs import Stored, read
from evalr.reflexio import SessionRecord, TagArms, fetch, fetch_sync, impact, open_store, reader
from evalr.verdicts import Verdict

SINCE, UNTIL = datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC)


@pytest.fixture
def server() -> Iterator[Reflexio]:
    pytest.importorskip("httpx", reason="the extra reflexio is not installed")
    with running(Reflexio()) as found:
        yield found


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    return Path(shutil.copytree(HERE / "answers", tmp_path / "answers"))


def records_of(path: Path) -> dict[tuple[str, str], SessionRecord]:
    with open_store(path) as store:
        records = {record.key: record for record in store.sessions(store.account())}
    for record in records.values():
        record.requests = [request._replace(position=0) for request in record.requests]
    return records


# Files


def test_answers_say_what_the_database_says_but_for_what_http_cannot_give(answers: Path, newest_log: Path) -> None:
    over_http, database = records_of(answers), records_of(newest_log)
    assert {*database} == {*over_http}
    for key, record in over_http.items():
        other = database[key]
        assert [request._replace(position=0, metadata=None) for request in record.requests] == [
            request._replace(position=0, metadata=None) for request in other.requests
        ]
        assert record.interactions == [turn._replace(tokens=None, citations=None) for turn in other.interactions]
        assert [row.result_id for row in record.outcomes] == [row.result_id for row in other.outcomes]
        assert [(row.success, row.failure_type, row.corrections, row.turns) for row in record.outcomes] == [
            (row.success, row.failure_type, row.corrections, row.turns) for row in other.outcomes
        ]
        assert record.learning_verdicts == other.learning_verdicts
        assert record.customer_outcome == other.customer_outcome
        pinned = [row for row in other.shadow_verdicts if row.prompt_version == "v1.1.0"]
        assert [row.winner for row in record.shadow_verdicts] == [row.winner for row in pinned]


def test_a_folder_and_each_file_of_it_are_logs(answers: Path) -> None:
    log = read(answers)
    counts = Counter(type(item).__name__ for item in log)
    assert (counts["Transcript"], counts["Exchange"]) == (44, 48)
    assert "over HTTP Reflexio gives no counts of tokens, no citations" in "\n".join(log.notes)
    assert "which gradings of learnings did not finish" in "\n".join(log.notes)
    for file, count in (("requests_all", 44), ("success_results", 0)):
        items = list(read(answers / f"{file}.json"))
        assert sum(isinstance(item, Transcript) for item in items) == count
        assert items


def test_experiments_come_from_their_answer(answers: Path) -> None:
    log: Any = read(answers, arms="experiment:exp-a-stopped")
    list(log)
    assert log.arms.sessions == {"treatment": 10, "holdout": 8}
    assert [each.id for each in log.config.experiments] == ["exp-b-active", "exp-a-stopped"]


def test_requests_that_carry_metadata_feed_the_tags(tmp_path: Path) -> None:
    requests = [
        {
            "request_id": f"r{number}",
            "user_id": "u1",
            "session_id": f"s{number}",
            "created_at": 1_788_220_800 + number,
            "metadata": {"reflexio_retrieval_enabled": value},
            "interactions": [{"interaction_id": number + 1, "created_at": 1_788_220_800, "content": "hello"}],
        }
        for number, value in enumerate([True, False, "true", None])
    ]
    path = tmp_path / "requests.json"
    path.write_text(json.dumps({"requests": requests}))
    assert [TagArms().read(record).arm for record in records_of(path).values()] == ["treatment", "control", None, None]
    log = read(path, arms="tag", strict=True)
    assert Counter(item.arm for item in log if isinstance(item, Transcript)) == {"treatment": 1, "control": 1, None: 2}


STAMPS = [{"request_id": "r-u01-s01-0", "metadata": {"reflexio_retrieval_enabled": True}}]


@pytest.mark.parametrize("name", ["a-stamps.json", "z-stamps.json"])
def test_a_file_with_the_metadata_alone_feeds_the_tags_of_what_was_fetched(name: str, answers: Path) -> None:
    before = records_of(answers)
    (answers / name).write_text(json.dumps({"requests": STAMPS}))
    arms = {key: TagArms().read(record).arm for key, record in records_of(answers).items()}
    assert {key: arm for key, arm in arms.items() if arm} == {("u01", "s01"): "treatment"}
    assert arms.keys() == before.keys()


def test_metadata_of_ones_own_log_tags_sessions_of_any_release(newest_log: Path) -> None:
    arms = TagArms(metadata={each["request_id"]: each["metadata"] for each in STAMPS})
    found = impact(newest_log, arms=arms).arms
    assert found is not None
    assert found.by_arm["treatment"].coverage.whole == 1
    assert {*found.untagged} == {"no metadata is kept", "no request"}
    log = read(newest_log, arms=arms)
    assert [item.id for item in log if isinstance(item, Transcript) and item.arm] == ["s01"]


def test_a_session_may_be_spread_over_files_which_may_overlap(answers: Path) -> None:
    whole = answer("requests_all")["sessions"]
    session = next(each for each in whole if len(each["requests"]) > 1)
    (answers / "requests_all.json").unlink()
    for number, requests in enumerate([session["requests"][:1], session["requests"], session["requests"][1:]]):
        part = {"sessions": [{"session_id": session["session_id"], "requests": requests}]}
        (answers / f"part{number}.json").write_text(json.dumps(part))
    found = [record for record in records_of(answers).values() if record.requests]
    assert sum(len(record.requests) for record in found) == len(session["requests"])
    turns = sum(len(each["interactions"]) for each in session["requests"])
    assert sum(len(record.interactions) for record in found) == turns


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({"sessions": [{"session_id": "s", "requests": "none"}]}, "wrong type in 'requests'"),
        ({"sessions": [7], "requests": []}, "not a JSON object"),
        (
            {"sessions": [{"requests": [{"request": {"request_id": "r"}, "interactions": 5}]}]},
            "wrong type in 'interactions'",
        ),
    ],
)
def test_what_is_no_row_is_counted(document: dict[str, Any], reason: str, answers: Path) -> None:
    (answers / "odd.json").write_text(json.dumps(document))
    log = read(answers)
    items = list(log)
    assert log.left_out.counts[reason] == 1
    assert log.records == len(items) - log.derived + log.left_out.total
    assert sum(isinstance(item, Transcript) for item in items) == 44


@pytest.mark.parametrize(
    ("name", "route", "key", "noun"),
    [
        ("success_results", "agent_success_evaluation_results", "result_id", "result"),
        ("shadow_recent_100", "verdicts", "verdict_id", "shadow verdict"),
        ("learning_results", "results", "result_id", "learning result"),
        ("session_outcomes", "session_outcomes", "outcome_id", "customer outcome"),
    ],
)
def test_each_verdict_without_an_id_is_counted(name: str, route: str, key: str, noun: str, answers: Path) -> None:
    document = answer(name)
    for row in document[route][1:3]:
        row.pop(key)
    (answers / f"{name}.json").write_text(json.dumps(document))
    found = read(answers)
    list(found)
    assert found.left_out.counts[f"no {key}"] == 2
    assert found.left_out.places[f"no {key}"] == [f"'{name}.json', {noun} number {number}" for number in (2, 3)]


def test_a_file_that_is_cut_off_is_an_error_that_names_it(answers: Path) -> None:
    text = (answers / "requests_all.json").read_text()
    (answers / "requests_all.json").write_text(text[: len(text) // 2])
    with pytest.raises(LogError, match=r"requests_all\.json is not JSON, or cut off"):
        list(read(answers))


def test_a_file_that_is_no_answer_is_told_of(answers: Path) -> None:
    (answers / "package.json").write_text('{"name": "x"}')
    log = read(answers)
    list(log)
    assert "'package.json' is no answer that is known, and is not read" in log.notes


def test_numbers_beyond_sqlite_and_lone_surrogates_are_kept_as_texts(tmp_path: Path) -> None:
    turn = {"interaction_id": 1, "created_at": 1_788_220_800, "content": "\ud83d", "token_count": 2**70}
    request = {"request_id": 7, "user_id": "u1", "session_id": 9, "created_at": 1_788_220_800}
    path = tmp_path / "requests.json"
    path.write_text(json.dumps({"sessions": [{"requests": [{"request": request, "interactions": [turn]}]}]}))
    ((key, record),) = records_of(path).items()
    assert (key, record.interactions[0].content) == (("u1", "9"), "\ufffd")
    with open_store(path) as store:
        assert "'requests.json' has 1 lone surrogate, read as U+FFFD" in store.notes


@pytest.mark.parametrize(
    ("metadata", "cause", "seen"),
    [
        ('{"reflexio_retrieval_enabled": true}', "metadata is no map", r'"{\\"reflexio_retrieval_enabled\\": true}"'),
        (True, "metadata is no map", "true"),
        ("", "metadata is no map", '""'),
        (None, "metadata is no map", "null"),
        ({"reflexio_retrieval_enabled": 1}, "another type", "1"),
    ],
)
def test_metadata_that_only_looks_like_a_map_is_no_tag(metadata: Any, cause: str, seen: str, tmp_path: Path) -> None:
    request = {"request_id": "r", "user_id": "u", "session_id": "s", "created_at": 1_788_220_800, "metadata": metadata}
    path = tmp_path / "requests.json"
    path.write_text(json.dumps({"sessions": [{"requests": [{"request": request}]}]}))
    (record,) = records_of(path).values()
    assert TagArms().read(record) == (None, cause, seen)


def test_ids_of_turns_that_are_no_numbers_are_counted(tmp_path: Path) -> None:
    turns = [{"interaction_id": each, "created_at": 1_788_220_800} for each in (3, "2", "abc", None, 2.5, [1])]
    request = {"request_id": "r", "user_id": "u", "session_id": "s", "created_at": 1_788_220_800}
    path = tmp_path / "requests.json"
    path.write_text(json.dumps({"sessions": [{"requests": [{"request": request, "interactions": turns}]}]}))
    with open_store(path) as store:
        account = store.account()
        (record,) = store.sessions(account)
    assert [turn.interaction_id for turn in record.interactions] == [2, 3]
    assert account.left_out.counts["wrong type in 'interaction_id'"] == 4


# Fetching


def test_what_is_fetched_is_what_the_answers_hold(server: Reflexio, tmp_path: Path, answers: Path) -> None:
    heard: list[tuple[str, int]] = []
    fetched = fetch_sync(
        server.url, tmp_path / "got", since=SINCE, until=UNTIL, page=1, progress=lambda *said: heard.append(said)
    )
    got, expected = records_of(fetched.folder), records_of(answers)
    for record in expected.values():
        # Asked by time, Reflexio gives no verdict that names no answer.
        record.learning_verdicts = [row for row in record.learning_verdicts if row.interaction is not None]
    assert got == expected
    assert fetched.notes == []
    assert fetched.rows["/api/get_session_outcomes"] == 4
    assert heard[-1][0] == "/api/retrieval_experiments"
    log = read(fetched.folder, arms="experiment:exp-b-active")
    assert sum(isinstance(item, Exchange) for item in log) == 48
    spans = [body for body in server.bodies if body["route"] == "/api/get_requests"]
    assert max(body["offset"] for body in spans) > 0  # pages
    assert len({body["start_time"] for body in spans}) == 30  # of days


def test_an_answer_as_long_as_its_limit_is_asked_for_again_in_halves(
    server: Reflexio, tmp_path: Path, answers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evalr_reflexio.fetching.LIMIT", 2)
    fetched = fetch_sync(server.url, tmp_path / "got", since=SINCE, until=UNTIL, period=timedelta(days=40))
    got, all_of_it = records_of(fetched.folder), records_of(answers)
    for attribute in ("outcomes", "customer_outcome"):
        assert {key: getattr(record, attribute) for key, record in got.items()} == {
            key: getattr(record, attribute) for key, record in all_of_it.items()
        }
    # More verdicts than that on one answer: of one second there are no halves, and that is said.
    assert any("and may have more" in note for note in fetched.notes)
    assert "and may have more" in "\n".join(_notes(fetched.folder))


def _notes(path: Path) -> list[str]:
    log = read(path)
    list(log)
    return log.notes


def test_a_busy_server_is_asked_again(server: Reflexio, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalr_reflexio.fetching._pause", lambda attempt, said: 0.0)
    server.busy = 3
    fetched = fetch_sync(server.url, tmp_path / "got", since=SINCE, until=UNTIL, period=timedelta(days=40))
    assert len(records_of(fetched.folder)) == 46


def test_a_fetch_that_ended_early_is_told_by_its_folder(
    server: Reflexio, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evalr_reflexio.fetching._pause", lambda attempt, said: 0.0)

    def busy(route: str, rows: int) -> None:
        server.busy = 100

    with pytest.raises(LogError, match="asked 6 times, last status 429"):
        fetch_sync(server.url, tmp_path / "again", since=SINCE, until=UNTIL, progress=busy)
    assert "the fetch of these answers did not come to its end" in _manifest_notes(tmp_path / "again")


def _manifest_notes(folder: Path) -> str:
    (folder / "one.json").write_text((HERE / "answers" / "requests_all.json").read_text())
    return "\n".join(_notes(folder))


def test_the_key_comes_from_the_environment_and_stands_nowhere(
    server: Reflexio, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.key = "secret-key"
    monkeypatch.delenv("REFLEXIO_API_KEY", raising=False)
    with pytest.raises(LogError, match=r"refuses the key.*REFLEXIO_API_KEY"):
        fetch_sync(server.url, tmp_path / "one", since=SINCE, until=UNTIL)
    monkeypatch.setenv("REFLEXIO_API_KEY", "secret-key")
    fetched = fetch_sync(server.url, tmp_path / "two", since=SINCE, until=UNTIL, period=timedelta(days=40))
    assert all(b"secret-key" not in each.read_bytes() for each in fetched.folder.iterdir())
    monkeypatch.setenv("REFLEXIO_API_KEY", "another")
    with pytest.raises(LogError) as caught:
        fetch_sync(server.url, tmp_path / "three", since=SINCE, until=UNTIL)
    assert "another" not in str(caught.value)


@pytest.mark.parametrize("where", ["status", "msg", "text"])
def test_a_key_that_a_server_repeats_stands_in_no_error(where: str, server: Reflexio, tmp_path: Path) -> None:
    key = server.key = "sk-not-to-be-seen"
    if where == "status":
        server.status, server.garbage = 418, f"no teapot for Bearer {key}".encode()
    elif where == "msg":
        server.refusal = {"success": False, "msg": f"no teapot for {key}"}
    else:
        server.garbage = f"<html>{key}".encode()
    with pytest.raises(LogError, match=r"\(key\)") as raised:
        fetch_sync(server.url, tmp_path / "log", since=SINCE, until=UNTIL, key=key)
    assert key not in str(raised.value)


def test_a_key_is_taken_without_the_end_of_its_line(server: Reflexio, tmp_path: Path) -> None:
    server.key = "sk-1"
    assert fetch_sync(server.url, tmp_path / "log", since=SINCE, until=UNTIL, key="sk-1\n").rows
    for key in ("sk-1\0", "sk-\n1", "ключ"):
        with pytest.raises(InputError, match="the key has characters that no key has") as raised:
            fetch_sync(server.url, tmp_path / "other", since=SINCE, until=UNTIL, key=key)
        assert key not in str(raised.value)


@pytest.mark.parametrize("route", ["requests", "outcomes", "customers"])
def test_a_server_that_repeats_itself_for_ever_is_left(route: str, server: Reflexio, tmp_path: Path) -> None:
    server.forever = route
    server.outcomes = [dict(server.outcomes[0], result_id=number) for number in range(1000)]
    server.customers = [dict(server.customers[0], outcome_id=str(number)) for number in range(1000)]
    with pytest.raises(LogError, match=r"gives [\d,]+ rows again, for another (page|period) than before"):
        fetch_sync(server.url, tmp_path / "log", since=SINCE, until=UNTIL)
    assert sum(server.asked.values()) < 200


def test_an_answer_nested_without_end_is_an_error(server: Reflexio, tmp_path: Path) -> None:
    server.garbage = b'{"sessions":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    with pytest.raises(LogError, match="answers no JSON"):
        fetch_sync(server.url, tmp_path / "log", since=SINCE, until=UNTIL)


def test_an_older_server_lacks_some_routes(server: Reflexio, tmp_path: Path) -> None:
    server.missing = frozenset(["/api/retrieval_experiments", "/api/get_session_outcomes"])
    fetched = fetch_sync(server.url, tmp_path / "got", since=SINCE, until=UNTIL, period=timedelta(days=40))
    assert fetched.notes == [
        "this server has no /api/get_session_outcomes",
        "this server has no /api/retrieval_experiments",
    ]
    assert "this server has no /api/retrieval_experiments" in _notes(fetched.folder)


def test_corrections_of_an_older_server_are_not_taken_for_what_later_ones_count(
    server: Reflexio, tmp_path: Path
) -> None:
    """Before 0.2.30, which brought experiments, that number was one of playbooks."""
    known = []
    for name, missing in (("new", []), ("old", ["/api/retrieval_experiments"])):
        server.missing = frozenset(missing)
        folder = fetch_sync(server.url, tmp_path / name, since=SINCE, until=UNTIL, period=timedelta(days=40)).folder
        found = impact(folder, now=UNTIL)
        assert found.success.n > 30
        known.append(found.everyone.measures["corrections"].n)
        verdicts = [each.result for each in read(folder) if isinstance(each, Stored) and each.measure == "outcome"]
        values = {
            each.value.corrections for each in verdicts if isinstance(each, Verdict) and "agent" in each.evaluator
        }
        assert (values == {None}) is (name == "old")
    assert (known[0] > 30, known[1]) == (True, 0)


def test_both_ways_to_fetch_take_the_same() -> None:
    assert inspect.signature(fetch_sync).parameters == inspect.signature(fetch).parameters


def test_an_address_with_none_of_the_routes_is_an_error(server: Reflexio, tmp_path: Path) -> None:
    with pytest.raises(LogError, match="has none of the routes"):
        fetch_sync(f"{server.url}/elsewhere", tmp_path / "got", since=SINCE, until=UNTIL)


def test_a_report_on_an_address_says_how_it_is_fetched() -> None:
    with pytest.raises(LogError, match="fetch_sync") as caught:
        list(read("https://me:secret@www.reflexio.ai"))
    assert "secret" not in str(caught.value)


def test_what_is_no_answer_of_reflexios(server: Reflexio, tmp_path: Path) -> None:
    server.garbage = b"<html>\x1b[31m"
    with pytest.raises(LogError, match="answers no JSON") as caught:
        fetch_sync(server.url, tmp_path / "one", since=SINCE, until=UNTIL)
    assert "\x1b" not in str(caught.value)
    server.garbage = b"[]"
    with pytest.raises(LogError, match="answers no JSON object"):
        fetch_sync(server.url, tmp_path / "two", since=SINCE, until=UNTIL)
    server.garbage, server.refusal = None, {"success": False, "msg": "no {0}"}
    with pytest.raises(LogError, match=r"did not succeed: 'no \{0\}'"):
        fetch_sync(server.url, tmp_path / "three", since=SINCE, until=UNTIL)


def test_nobody_listens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("httpx", reason="the extra reflexio is not installed")
    monkeypatch.setattr("evalr_reflexio.fetching._pause", lambda attempt, said: 0.0)
    with pytest.raises(LogError, match="asked 6 times, last ConnectError"):
        fetch_sync("http://127.0.0.1:9", tmp_path / "got", since=SINCE, until=UNTIL)


def test_it_is_awaited_or_not_inside_a_running_loop(server: Reflexio, tmp_path: Path) -> None:
    async def both() -> list[int]:
        first = await fetch(server.url, tmp_path / "one", since=SINCE, until=UNTIL, period=timedelta(days=40))
        second = fetch_sync(server.url, tmp_path / "two", since=SINCE, until=UNTIL, period=timedelta(days=40))
        return [len(records_of(each.folder)) for each in (first, second)]

    assert asyncio.run(both()) == [46, 46]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"since": datetime(2026, 11, 1)}, "since=.* has no time zone"),  # noqa: DTZ001  that is what is refused
        ({"until": datetime(2026, 12, 1)}, "until=.* has no time zone"),  # noqa: DTZ001
        ({"since": UNTIL}, "is not before"),
        ({"period": timedelta(0)}, "must be a second or more"),
        ({"page": 0}, "must be a number of sessions"),
        ({"url": "reflexio.ai"}, "must be an address"),
        ({"url": "https://me:secret@reflexio.ai"}, "a key is not given in the address"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    given = {"url": "https://localhost", "since": SINCE, "until": UNTIL, **options}
    pytest.importorskip("httpx", reason="the extra reflexio is not installed")
    with pytest.raises(InputError, match=message) as caught:
        fetch_sync(given.pop("url"), tmp_path / "got", **given)
    assert "secret" not in str(caught.value)


def test_nothing_is_put_into_a_folder_that_holds_something(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match=r"is not empty: .* if it is left of a fetch that ended early"):
        fetch_sync("https://localhost", tmp_path, since=SINCE, until=UNTIL)


def test_a_fetch_that_got_nothing_leaves_its_folder_to_the_next(
    server: Reflexio, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REFLEXIO_API_KEY", raising=False)
    server.key = "right"
    with pytest.raises(LogError, match="refuses the key"):
        fetch_sync(server.url, tmp_path / "got", since=SINCE, until=UNTIL, period=timedelta(days=40))
    fetched = fetch_sync(server.url, tmp_path / "got", since=SINCE, until=UNTIL, period=timedelta(days=40), key="right")
    assert len(records_of(fetched.folder)) == 46


def test_without_httpx_fetching_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'evalr\[reflexio\]'"):
        fetch_sync("https://localhost", tmp_path / "got", since=SINCE, until=UNTIL)


@pytest.mark.parametrize(
    ("document", "claimed"),
    [
        ({"success": True, "session_outcomes": []}, True),
        ({"dev": {"session_outcomes": {"completed": 12}}}, False),
        ({"agent_success_evaluation_results": {"of": 3}}, False),
        (["session_outcomes"], False),
    ],
)
def test_a_folder_is_taken_for_answers_where_it_has_their_lists(document: Any, claimed: bool, tmp_path: Path) -> None:
    (tmp_path / "truth.json").write_text(json.dumps(document, indent=1), encoding="utf-8")
    assert (reader.claim(tmp_path, b"") > 0) == claimed

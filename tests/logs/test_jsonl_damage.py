"""Whatever a log holds, reading it ends with an account that adds up, or with an error that says it is no log."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from evalr.errors import LogError, RecordError
from evalr.logs import Log
from evalr.logs.jsonl import reader

AT = "2026-09-28T09:00:00Z"
LINES = [
    {"id": "s", "user": "u", "activities": [{"at": AT, "role": "agent", "kind": "proposal", "ref": "p"}], "weight": 2},
    {"type": "history", "id": "h", "revisions": [{"at": AT, "role": "person", "text": "caf\u00e9 \U0001f642"}]},
    {"id": "t", "request": "r", "turns": [{"role": "agent", "at": AT, "tool_calls": [{"name": "grep"}]}], "new": [{}]},
    {"evaluator": "completion", "value": {"completed": True, "quality": 4}, "about": {"kind": "transcript", "id": "t"}},
    {"status": "skipped", "evaluator": "completion", "reason": "none", "attributes": None},
]
GOOD = "".join(json.dumps(line, ensure_ascii=position % 2 == 0) + "\n" for position, line in enumerate(LINES)).encode()
SIGNS = list(b'{}[]:,"\\\n\r\0 0-.eEuNt\xff\xc3\xed')


def account(content: bytes) -> Log | None:
    """The account of a log that was read to its end; None where it was refused."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "log.jsonl"
        path.write_bytes(content)
        log = reader.open(path)
        try:
            items = list(log)
        except RecordError as error:
            raise AssertionError("not asked to be strict") from error
        except LogError:
            return None
        assert log.records == len(items) - log.derived + log.left_out.total
        assert log.left_out.words().isprintable()
        assert all(name.isprintable() for name in log.unknown_fields)
        assert all(places for places in log.left_out.places.values())
        return log


edits = st.lists(
    st.tuples(st.integers(0, len(GOOD)), st.sampled_from(SIGNS), st.sampled_from("rid")), min_size=1, max_size=6
)


@settings(max_examples=300)
@given(edits)
def test_a_damaged_log_is_accounted_for(edits: list[tuple[int, int, str]]) -> None:
    damaged = bytearray(GOOD)
    for place, byte, how in edits:
        damaged[place : place + (how != "i")] = b"" if how == "d" else bytes([byte])
    log = account(bytes(damaged))
    assert log is None or log.records >= 1


@given(st.binary(max_size=300))
def test_noise_is_refused_or_accounted_for(noise: bytes) -> None:
    account(noise)
    account(b"{" + noise)
    account(GOOD + noise)


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.just(AT)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["type", "id", "activities", "turns", "request", "at", "role", "value", "evaluator", "x"]),
            inner,
        ),
    ),
    max_leaves=8,
)


@settings(max_examples=300)
@given(st.sampled_from(LINES), st.data())
def test_fields_of_any_kind_are_read_or_named(line: dict[str, object], data: st.DataObject) -> None:
    changed = {**line, data.draw(st.sampled_from([*line, "type", "extra"])): data.draw(json_values)}
    log = account(GOOD + json.dumps(changed).encode() + b"\n")
    assert log is not None
    assert log.records == len(LINES) + 1


def test_a_compressed_log_with_any_bit_turned_is_accounted_for() -> None:
    packed = gzip.compress(GOOD * 20, mtime=0)
    whole = account(packed)
    assert whole is not None
    assert whole.records == 20 * len(LINES)
    dice = random.Random(2026)
    for _ in range(300):
        damaged = bytearray(packed)
        damaged[dice.randrange(len(packed))] ^= 1 << dice.randrange(8)
        account(bytes(damaged))

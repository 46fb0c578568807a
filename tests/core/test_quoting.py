"""Text from a log, as terminals and messages may show it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalr import logs
from evalr.inputs import About
from evalr.quoting import quoted, safe_text
from evalr.verdicts import Failure, describe

any_text = st.text(alphabet=st.characters(exclude_categories=()))


@given(any_text, st.integers(1, 90))
def test_a_text_from_a_log_is_printable_and_short(text: str, longest: int) -> None:
    shown = safe_text(text, longest=longest)
    assert shown.isprintable()
    assert len(shown) <= 10 * longest


def test_a_text_that_is_harmless_is_shown_as_it_is() -> None:
    assert safe_text("plain " * 3) == "plain " * 3
    assert safe_text("s1 é 🙂") == "s1 é 🙂"
    assert quoted("s1 é 🙂") == "'s1 é 🙂'"


def test_a_text_from_a_log_cannot_steer_a_terminal() -> None:
    assert safe_text("red\x1b[31m\nnext") == "red\\x1b[31m\\nnext"
    assert safe_text("a\u202eb\u200bc\u2028d") == "a\\u202eb\\u200bc\\u2028d"
    assert quoted("\x1b[31m\u2028\u202e\ud83d") == r"'\x1b[31m\u2028\u202e\ud83d'"


@given(any_text, st.integers(1, 90))
def test_quoted_text_is_printable_short_and_in_quotes(text: str, longest: int) -> None:
    shown = quoted(text, longest=longest)
    assert shown.isprintable()
    assert len(shown) <= 10 * longest + 2
    assert shown[0] == shown[-1]


@pytest.mark.parametrize("longest", [1, 2, 40])
def test_what_is_cut_says_so(longest: int) -> None:
    assert safe_text("x" * longest, longest=longest) == "x" * longest
    assert safe_text("x" * (longest + 1), longest=longest) == "x" * (longest - 1) + "…"
    assert quoted("x" * (longest + 1), longest=longest) == "'" + "x" * (longest - 1) + "…'"


def test_readers_quote_as_messages_do() -> None:
    assert logs.quoted is quoted


def test_a_subject_of_a_megabyte_makes_a_short_message() -> None:
    huge = "\x1b" * 1_000_000
    shown = describe(Failure("no", about=About(huge, huge, huge, huge)))
    assert shown.isprintable()
    assert len(shown) < 2_000
    assert describe(Failure("no", about=About("wait", "w1", "u1", "s1"))) == "wait 'w1' of 's1' of user 'u1'"

"""The snippets of the page that evalr is built from run as they were published and print what it shows.

The page's first snippet takes a language model; it runs where judges are tested.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
from typing import Any

import pytest

from evalr import Verdict, scores

PEOPLE = """
from evalr.measures import TaskCompletion, completion_rate

people = [
    TaskCompletion(completed=True, quality=4),
    TaskCompletion(completed=False, quality=2, reason="The risks were missing"),
]
print(completion_rate(people))
"""

DROP_OFF = """
from datetime import UTC, datetime, timedelta

from evalr.measures import Activity, Session, measure_drop_off

start = datetime(2026, 9, 28, 9, 0, tzinfo=UTC)
session = Session(
    id="thr_1",
    activities=[
        Activity(at=start, role="person"),
        Activity(at=start + timedelta(minutes=1), role="agent"),
        Activity(at=start + timedelta(minutes=2), role="agent", kind="proposal", ref="prop_1"),
    ],
)
print(measure_drop_off(session, window=timedelta(hours=1), now=start + timedelta(hours=3)))
"""

REWRITES = """
from evalr.measures import History, Revision, measure_rewrites

history = History(
    id="brief",
    revisions=[
        Revision(at=start, role="agent", text="We ship the new billing page on Friday."),
        Revision(
            at=start + timedelta(minutes=10),
            role="person",
            text="We ship the billing page on Monday, once legal has signed off.",
        ),
        Revision(
            at=start + timedelta(hours=1),
            role="agent",
            text="We ship the billing page on Monday, once legal has signed off. Risks: none.",
        ),
    ],
)
print(measure_rewrites(history, window=timedelta(hours=1)))
"""

EVALUATOR = """
from evalr.measures import drop_off_evaluator, drop_off_rate

drop_off = drop_off_evaluator(window=timedelta(hours=1), now=start + timedelta(hours=3))
verdicts = [await drop_off.evaluate(session)]
print(drop_off_rate(verdicts))
"""

PAGE = [
    (PEOPLE, "0.5\n"),
    (DROP_OFF, "outcome='dropped' cause='unresolved_proposal'\n"),
    (REWRITES, "agent_revisions=2 rewritten=1 rate=0.5\n"),
    (EVALUATOR, "1.0\n"),  # the page leaves this one to the reader: one session, and it dropped
]


def run(snippet: str, names: dict[str, Any]) -> None:
    """Run a snippet as a notebook would, with `await` outside of functions."""
    answer = eval(compile(snippet, "<the page>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
    if inspect.iscoroutine(answer):
        asyncio.run(answer)


@pytest.fixture
def page(capsys: pytest.CaptureFixture[str]) -> tuple[dict[str, Any], list[str]]:
    """The names that the snippets left behind, and what each printed."""
    names: dict[str, Any] = {}
    printed = []
    for snippet, _ in PAGE:
        run(snippet, names)
        printed.append(capsys.readouterr().out)
    return names, printed


def test_every_snippet_prints_what_the_page_shows(page: tuple[dict[str, Any], list[str]]) -> None:
    _, printed = page
    assert printed == [shown for _, shown in PAGE]


def test_the_evaluators_have_the_versions_and_scores_of_the_page(page: tuple[dict[str, Any], list[str]]) -> None:
    from evalr.measures import rewrite_evaluator

    names, _ = page
    (verdict,) = names["verdicts"]
    assert isinstance(verdict, Verdict)
    rewrite = rewrite_evaluator(window=names["timedelta"](hours=1), threshold=0.2)
    assert (names["drop_off"].version, verdict.version, rewrite.version) == ("1:3600s", "1:3600s", "2:3600s:0.2")
    rewritten = rewrite.evaluate_inline(names["history"])
    assert isinstance(rewritten, Verdict)
    assert "drop_off.outcome" in {score.name for score in scores(verdict)}
    assert "rewrites.rate" in {score.name for score in scores(rewritten)}


def test_the_page_names_what_measures_offers() -> None:
    import evalr.measures

    fixed = (
        "Transcript Turn Session Activity History Revision TaskCompletion completion_rate DropOff measure_drop_off "
        "drop_off_rate drop_off_evaluator Rewrites measure_rewrites rewrite_rate rewrite_evaluator share_changed"
    )
    assert set(fixed.split()) <= set(evalr.measures.__all__)

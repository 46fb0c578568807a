"""The published page's first snippet runs verbatim, with a scripted model in the place of the paid one."""

from __future__ import annotations

import ast
import asyncio
from typing import Any

import dspy
import pytest
from model_server import ModelServer

from evalr import Verdict

COMPLETION = """
import dspy

from evalr.dspy import DspyJudge
from evalr.measures import TaskCompletion, Transcript, Turn, completion_rate

completion = DspyJudge(TaskCompletion, inputs=Transcript, lm=dspy.LM("openai/gpt-5-mini"))

transcript = Transcript(
    request="Draft the launch brief and list its risks",
    turns=[
        Turn(role="person", text="Draft the launch brief and list its risks"),
        Turn(role="agent", text="Here is the brief, with a risks section."),
    ],
    result="# Launch\\n\\nWe ship on Monday.\\n\\n## Risks\\n\\n- Legal review may slip.",
)
verdict = await completion.evaluate(transcript)
print(completion_rate([verdict]))
"""


def test_the_snippet_runs_as_it_was_published(
    model_server: ModelServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scripted = model_server.lm("openai/gpt-5-mini")
    monkeypatch.setattr(dspy, "LM", lambda model: {scripted.model: scripted}[model])
    names: dict[str, Any] = {}

    async def page() -> None:
        await eval(compile(COMPLETION, "<the page>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
        await names["completion"].lm.aclose()

    asyncio.run(page())
    assert capsys.readouterr().out == "1.0\n"
    assert isinstance(names["verdict"], Verdict)
    assert names["verdict"].version.startswith("openai/gpt-5-mini#")
    (asked,) = model_server.asked
    assert asked.body["model"] == "gpt-5-mini"
    assert asked.data["result"] == names["transcript"].result

"""What the ready judges judge by: each rubric is a text of its own, beside this file."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files

from evalr.errors import InputError


def _text(name: str) -> str:
    return files(__name__).joinpath(f"{name}.md").read_text(encoding="utf-8").strip()


SUCCESS_DEFINITION = _text("success")
"""What makes a session a success, where a team does not say so itself: four conditions."""


def completion_rubric() -> str:
    """Task completion: did the session achieve what the person asked for?"""
    return _text("completion")


def pairwise_rubric() -> str:
    """Pairs of answers: which is better, by the message alone?"""
    return _text("pairwise")


def outcome_rubric(success_definition: str = SUCCESS_DEFINITION, tools: Mapping[str, str] | None = None) -> str:
    """Session outcome: did it succeed, what had the person to correct, was it handed to people?

    Args:
        success_definition: what makes a session a success.
        tools: the agent's tools, each with a description.
    """
    return _joined(_text("outcome"), _success(success_definition), _tools(tools or {}))


def learning_rubric(success_definition: str = SUCCESS_DEFINITION, tools: Mapping[str, str] | None = None) -> str:
    """Learnings: did what an agent was given to know apply to its response, and what did it do for it?

    Args:
        success_definition: what makes a session a success.
        tools: the agent's tools, each with a description.
    """
    return _joined(_text("learning"), _success(success_definition), _tools(tools or {}))


def tagging_rubric(definition: str) -> str:
    """Tags of an outcome, by its stored summary alone.

    Args:
        definition: what each tag means.
    """
    if not definition.strip():
        raise InputError("definition is empty: say what each tag means")
    return _joined(_text("tagging"), f"# What the tags mean\n{definition.strip()}")


def _success(definition: str) -> str:
    if not definition.strip():
        raise InputError("success_definition is empty: say what makes a session a success, or leave it out")
    return f"# What success is\n{definition.strip()}"


def _tools(tools: Mapping[str, str]) -> str | None:
    if not isinstance(tools, Mapping):
        raise InputError(
            f'tools is a {type(tools).__name__}: pass names and descriptions, {{"search": "Finds orders"}}'
        )
    if not tools:
        return None
    lines = [f"- {name}: {description}" for name, description in tools.items()]
    rule = "Judge the choice of tools by this list: whether the agent called what the task needed, and nothing else."
    return "\n".join(["# The agent's tools", *lines, rule])


def _joined(*parts: str | None) -> str:
    return "\n\n".join(part for part in parts if part is not None)

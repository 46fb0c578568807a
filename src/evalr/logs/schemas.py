"""What each type of line looks like, as JSON Schema: for those who write logs, and for tools that check them."""

from __future__ import annotations

from typing import Any

from evalr.logs.forms import FORMS

DRAFT = "https://json-schema.org/draft/2020-12/schema"

_INPUT = {
    "id": "Its name, unique together with its type and user; of two lines with one, the first counts.",
    "user": "The person it belongs to. Intervals are computed over users.",
    "arm": "The side of an A/B test it was on, such as treatment or control.",
    "at": "When it happened; by default the time of its first event.",
    "read_at": "When this was read off the application, where the log is older than the reading of it.",
    "attributes": "Texts to group by, such as agent, version or directory; a list puts it into several groups.",
    "weight": "How many such inputs it stands for in a sample.",
}
_PART = {
    **_INPUT,
    "id": "Its name, unique together with its type, user and session; of two lines with one, the first counts.",
    "at": "When it happened.",
    "session": "The session that it was in.",
}
_TIME = "When, with a zone: 2026-09-28T09:00:00Z."
_ROLE = "Who: a person, an agent, a tool or the system."
_KIND = "What it was, as the log has it; proposal, resolution and closed have a meaning."
_REF = "What ties a resolution to its proposal."

DESCRIPTIONS: dict[str, dict[str, str]] = {
    "Session": {**_INPUT, "activities": "What happened; in any order, and put in that of time."},
    "Activity": {"at": _TIME, "role": _ROLE, "kind": _KIND, "ref": _REF},
    "History": {**_INPUT, "revisions": "Its versions; in any order, and put in that of time."},
    "Revision": {
        "at": _TIME,
        "role": _ROLE,
        "text": "The whole text of this version.",
        "id": "Its name within the history.",
        "attributes": "Texts to group by, where they differ between revisions.",
    },
    "Exchange": {
        **_PART,
        "message": "What the person said, alone: what was said before is no part of it.",
        "served": "The answer that the person saw.",
        "shadow": "The answer that nobody saw.",
        "treatment": "Which of the two comes from what is being tried.",
    },
    "LearningUse": {
        **_PART,
        "id": "Its name; by default the response, the kind and the id of the learning, which count once together.",
        "message": "What the person had said.",
        "response": "What the agent answered.",
        "learning": "The text of the learning; null where it is gone.",
        "learning_kind": "Such as profile or user_playbook; also read from a field named kind.",
        "learning_id": "The name of the learning.",
        "response_id": "The name of the response; in turns, that of its turn.",
        "cited": "Whether the agent said that it used the learning; null where nobody recorded it.",
        "turns": "The conversation around the response, in order.",
    },
    "Transcript": {
        **_INPUT,
        "request": "What the person asked for.",
        "turns": "The conversation, in order.",
        "result": "What came of it, where that is more than the last turn.",
    },
    "Turn": {
        "role": _ROLE,
        "text": "What was said; null where an agent only called tools.",
        "id": "Its name within the conversation.",
        "at": f"{_TIME} Where all turns have one, the conversation is also read as a session.",
        "kind": _KIND,
        "ref": _REF,
        "tool_calls": "The tools that were called in it.",
        "metadata": "What else the log says: model, tokens, latency, finish reason, spans.",
    },
    "ToolCall": {
        "name": "The tool.",
        "id": "The call's name within the conversation.",
        "arguments": "What it was called with.",
        "status": "The log's own word for how it went, such as ok or error.",
        "error": "What went wrong.",
        "result": "What it returned.",
    },
}
"""By model and field. The line of a result has its descriptions in its model."""


def schemas() -> dict[str, dict[str, Any]]:
    """The JSON Schema of each type of line, by its name, such as session or result.

    Fields that a schema does not have are ignored by the reader, and counted.
    """
    return {form.name: _schema(form.name, form.model.model_json_schema(by_alias=False)) for form in FORMS}


def _schema(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    for model in (schema, *schema.get("$defs", {}).values()):
        if "properties" not in model:
            continue
        model.pop("additionalProperties", None)
        for field, words in DESCRIPTIONS.get(model["title"], {}).items():
            model["properties"][field].setdefault("description", words)
    root = schema
    if "$ref" in schema:  # a model that holds itself
        root = schema["$defs"][schema["$ref"].rsplit("/", 1)[-1]]
    root["properties"].setdefault(
        "type", {"const": name, "description": "Names the type of line; without it the fields decide."}
    )
    return {"$schema": DRAFT, **schema}

"""Does a message to a person hold the tags in which models put what nobody is meant to read?

Tags alone: reasoning that is leaked in prose needs a model to be seen.
"""

from __future__ import annotations

import re

from evalr_tracepass.heuristics.heuristic import Heuristic

_NAMES = "think|thinking|thought|thoughts|scratchpad|reasoning|inner_monologue|antml:thinking"
_CODE = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1|\Z)|`[^`\n]+`", re.DOTALL | re.MULTILINE)
_LEAKED = re.compile(
    # Where a line or a sentence begins, or a line ends: a tag in the midst of a sentence is one that is talked about.
    rf"(?:^[ \t]*|[.!?:][ \t]+)<(?:{_NAMES})(?:\s[^<>]*)?>|^[ \t]*</(?:{_NAMES})\s*>|</(?:{_NAMES})\s*>[ \t]*$"
    r"|<\|channel\|>\s*(?:analysis|commentary)|<\|(?:begin|start)_of_thought\|>|^[ \t]*\[/?THINK\]",
    re.IGNORECASE | re.MULTILINE,
)


def leaked_tag(text: str) -> str | None:
    """The first tag outside of code; None where there is none."""
    if "<" not in text and "[" not in text:
        return None
    found = _LEAKED.search(_CODE.sub(" ", text))
    return None if found is None else found[0]


def _score(text: str) -> tuple[float]:
    return (0.0 if leaked_tag(text) is None else 1.0,)


heuristic = Heuristic("heuristic-thinking-tags", "1", ("clean", "thinking_tags"), _score)

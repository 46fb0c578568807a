"""Is a person's message negative in tone? A short list of English words, capitals and marks: a baseline, no more.

Tone is not frustration: a person may be frustrated politely, or curse at a bug. That takes a model, and labels.
"""

from __future__ import annotations

import re

from evalr_tracepass.heuristics.heuristic import Heuristic, saturating

_STRONG = (
    "useless|ridiculous|terrible|horrible|awful|pathetic|garbage|stupid|idiotic|nonsense|unacceptable|infuriating|"
    "frustrat(?:ed|ing)|annoy(?:ed|ing)|fed up|sick of|waste of time|wasting my time|give up|hate (?:this|it|you)|wtf|"
    "what the (?:hell|heck)|damn|are you kidding|i (?:already|just) (?:said|told you)|i told you|how many times"
)
_WEAK = (
    "still (?:not|wrong|broken|fails?|failing|doesn't)|that's (?:wrong|not what)|not what i (?:asked|wanted|said)|"
    "wrong again|why did you|you (?:broke|deleted|ignored|forgot)|stop (?:it|doing|that)|bad|worse|disappointed|"
    "doesn't work|no[,.!] no"
)
_WORDS = re.compile(rf"\b(?:(?P<strong>{_STRONG})|(?P<weak>{_WEAK}))\b", re.IGNORECASE)
_NEGATED = re.compile(r"(?:\bnot|\bno|\bnever|n't|\bwithout)(?:\s+\w+)?\s+$", re.IGNORECASE)
_SHOUTED = re.compile(r"\b[A-Z]{4,}\b(?:\W+[A-Z]{2,}\b){2,}")
_MARKS = re.compile(r"[!?]*!!+[!?]*|\?\?+")
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|^\s*>.*$", re.DOTALL | re.MULTILINE)

READ = 4_000
"""Characters that are read: a person's own words come before what they paste."""


def negativity(text: str) -> float:
    """How much there is of what sounds negative, outside of code and quotations. "Not bad" is nothing.

    A strong word is 1; a weaker one, shouting, and `!!` or `??` are half of that each.
    """
    own = _CODE.sub(" ", text[:READ].replace("\u2019", "'"))
    found = 0.0
    for word in _WORDS.finditer(own):
        if not _NEGATED.search(own, max(0, word.start() - 24), word.start()):
            found += 1.0 if word["strong"] else 0.5
    return found + 0.5 * (_SHOUTED.search(own) is not None) + 0.5 * (_MARKS.search(own) is not None)


def _score(text: str) -> tuple[float]:
    return (saturating(negativity(text), 1.0),)


heuristic = Heuristic("heuristic-negative-tone", "1", ("other", "negative"), _score)

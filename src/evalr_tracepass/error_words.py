"""What is kept of another program's error: its type, and only such words as errors are made of.

A service, or a classifier, may quote the very text that it could not read, and no text may come into a store.
"""

from __future__ import annotations

import re

from evalr_tracepass.records import ErrorInfo

LONGEST = 160

_WORDS = frozenset(
    """
    a an and any are argument array at attempt authentication bad be been before body busy by call calls can
    canceled cancelled cannot capacity character characters class classes classifier closed cold column connection
    constraint content context could credit database deadline decode denied did different disk does due duplicate
    each empty encoding error exceeded exceeds expected expired failed failure few field file filter for forbidden
    format found from full gateway get given had has have id in inference input inputs integer internal invalid is
    it item json key label labels large later length less limit loaded loading locked long longer malformed many match
    max maximum memory message minimum missing mode model models more must name no not null number object of on
    only openable or out output over overloaded parse payload per permission policy prediction predictions
    processing quota range rate readonly ready refused rejected reply request requests required resource response
    retry row rows schema score server service set shape short size supported syntax table temporarily text than
    the this timed timeout to token tokens too try type unable unauthorized unavailable unexpected unknown
    unprocessable unsupported upstream value was window with without wrong zero
    """.split()  # noqa: SIM905  a list of so many words is read best as text
)
"""Words that errors use. A text that someone wrote is never told by them alone."""

_PIECE = re.compile(r"[A-Za-z]+|[^\sA-Za-z]+")
_KIND = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")


def kept_type(found: object) -> str:
    """The type of an error: one word as programs use it, or "error" where it is anything else."""
    if isinstance(found, str) and _KIND.fullmatch(found):
        return found
    return "error"


def kept_message(found: object) -> str:
    """Of a message, the words that errors are made of, with `…` for everything else."""
    if not isinstance(found, str):
        return ""
    kept: list[str] = []
    for piece in _PIECE.findall(found[:2_000]):
        if piece.isalpha():
            word = piece if piece.lower() in _WORDS else "…"
        elif piece in (",", ".", ":", ";", "(", ")"):
            continue
        else:
            word = "…"
        if word != "…" or not kept or kept[-1] != "…":
            kept.append(word)
    said = " ".join(kept)
    return said if len(said) <= LONGEST else said[: LONGEST - 1] + "…"


def kept_error(kind: object, message: object) -> ErrorInfo:
    """An error as a store may have it."""
    return ErrorInfo(kept_type(kind), kept_message(message))

"""How numbers are told on a page: what each is of, and how its interval was computed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from evalr.estimates.estimate import Estimate
from evalr.estimates.stating import denominator_words, method_sentence

LONGEST_SHOWN = 600
"""Characters of a text from the log that stands in a row or on a card."""
LONGEST_EXCERPT = 90
LONGEST_NAME = 100
"""Characters of an id, a request source or a type."""
FEW_BUCKETS = 12


def account_words(estimate: Estimate) -> str:
    """The denominator and the method."""
    return f"{denominator_words(estimate)}. {method_sentence(estimate)}"


def arm_words(arm: str | None) -> str:
    """As a page names it; sessions in no arm are taken for neither."""
    return "untagged (no arm)" if arm is None else arm


def moment(at: datetime) -> str:
    """In UTC, to the minute."""
    return f"{at:%Y-%m-%d %H:%M}"


def shortened(text: str, longest: int = LONGEST_SHOWN) -> str:
    """A text from the log, no longer than a row can take."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def excerpt(text: str) -> str:
    """How a text begins, in one line."""
    return shortened(" ".join(text[: 4 * LONGEST_EXCERPT].split()), LONGEST_EXCERPT)


def chart_width(buckets: int) -> int | None:
    """Of a plot over time, so that many points do not stand too close to each other; few need no more than they do."""
    return None if buckets <= FEW_BUCKETS else min(900, 24 * buckets)


def counts_words(counts: Mapping[str, int]) -> str:
    """`3 wrong_answer, 1 no type`."""
    return ", ".join(f"{count:,} {name or 'no type'}" for name, count in counts.items())


def of_user(session: str, user: str | None) -> str:
    """A session by its id and whose it is: ids are used again by other users."""
    return session if user is None else f"{session} of {user}"

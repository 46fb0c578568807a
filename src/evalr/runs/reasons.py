"""Why results are no verdicts: the commonest reasons, each with its count."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

from evalr.estimates.words import count_words
from evalr.quoting import safe_text
from evalr.verdicts import Failure, Result, Verdict

_SHOWN = 3
_LONGEST = 120


def reason_of(result: Result[Any]) -> str | None:
    """Why a result is no verdict; None where it is one."""
    if isinstance(result, Verdict):
        return None
    return result.error if isinstance(result, Failure) else result.reason


def reason_lines(results: Iterable[Result[Any]]) -> list[str]:
    """`80 failed: ValueError: no answer (79), TimeoutError (1)`: a line each for failures, skips and hand-offs."""
    by_status: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for result in results:
        reason = reason_of(result)
        if reason is not None:
            by_status[result.status][reason] += 1
    return [
        f"{counts.total():,} {status.replace('_', ' ')}: {_counted(counts)}" for status, counts in by_status.items()
    ]


def _counted(counts: Counter[str]) -> str:
    shown = counts.most_common(_SHOWN)
    words = [f"{safe_text(reason, longest=_LONGEST) or 'no reason given'} ({count:,})" for reason, count in shown]
    others = len(counts) - len(shown)
    if others:
        rest = counts.total() - sum(count for _, count in shown)
        words.append(f"{count_words(others, 'other reason')} ({rest:,})")
    return ", ".join(words)

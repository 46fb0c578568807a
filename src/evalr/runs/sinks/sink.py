"""What takes results, and the one that keeps them in memory."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Protocol, runtime_checkable

from evalr.verdicts import Result


@runtime_checkable
class Sink(Protocol):
    """Takes results. Two calls of one sink are never made at once."""

    async def write(self, results: Sequence[Result[Any]], /, *, superseding: bool = False) -> None:
        """Take these results, all or, with an error, none.

        After an error, or a crash, the same results may come once more.

        Args:
            results: of any status, with the input's subject in `about`.
            superseding: whether each takes the place of an earlier one of its subject, evaluator and version.
        """

    async def close(self) -> None:
        """No more results come."""


class MemorySink:
    """Keeps results in memory, one of each subject and evaluator: the latest.

    Attributes:
        superseded: how many results gave way to a later one.
    """

    def __init__(self) -> None:
        self._kept: dict[Hashable, Result[Any]] = {}
        self.superseded = 0

    async def write(self, results: Sequence[Result[Any]], /, *, superseding: bool = False) -> None:
        """As every sink."""
        for result in results:
            subject = None if result.about is None else result.about.subject
            # A result about nothing that has a name takes nobody's place.
            key = object() if subject is None else (subject, result.evaluator, result.version)
            self.superseded += key in self._kept
            self._kept.pop(key, None)
            self._kept[key] = result

    async def close(self) -> None:
        """As every sink; what is kept stays."""

    @property
    def results(self) -> list[Result[Any]]:
        """What it keeps, the latest last."""
        return list(self._kept.values())

"""The trends of several arms side by side, with that of results that have none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from evalr.estimates import display
from evalr.estimates.estimate import USUAL_LEVEL, Estimate, Trend, frame
from evalr.estimates.plot import Plotted
from evalr.quoting import safe_text

if TYPE_CHECKING:
    from pandas import DataFrame


class Trends(Plotted, Mapping[str | None, Trend]):
    """One trend for each arm (or other group), over the same buckets; results without one come last, under None.

    A bucket in which an arm has no results is in its trend, undefined.
    """

    def __init__(self, by: str, bucket: str, trends: Mapping[str | None, Trend]) -> None:
        self.by = by
        self.bucket = bucket
        self._trends = dict(trends)

    def __getitem__(self, arm: str | None) -> Trend:
        return self._trends[arm]

    def __iter__(self) -> Iterator[str | None]:
        return iter(self._trends)

    def __len__(self) -> int:
        return len(self._trends)

    def __repr__(self) -> str:
        return f"Trends(by={self.by!r}, bucket={self.bucket!r}, {len(self)} groups)"

    def group_words(self, group: str | None) -> str:
        """The arm's name; the group None is of results without one, which no arm takes."""
        return f"untagged (no {safe_text(self.by)})" if group is None else safe_text(group)

    def estimates(self) -> list[Estimate]:
        """All of them."""
        return [estimate for trend in self.values() for estimate in trend.values()]

    def __str__(self) -> str:
        return "\n".join(
            f"{self.group_words(group)}, {trend.group_words(bucket)}: {estimate}"
            for group, trend in self.items()
            for bucket, estimate in trend.items()
        )

    def to_dicts(self) -> list[dict[str, Any]]:
        """One plain dict for each arm and bucket: `name`, `arm`, `group` (the bucket), and every other field."""
        return [
            {"name": row["name"], "arm": group, **{name: row[name] for name in row if name != "name"}}
            for group, trend in self.items()
            for row in trend.to_dicts()
        ]

    def to_frame(self) -> DataFrame:
        """A pandas frame with one row for each arm and bucket. Needs pandas."""
        return frame(self.to_dicts())

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    def _repr_html_(self) -> str:
        level = next((estimate.level for estimate in self.estimates()), USUAL_LEVEL)
        name = next((estimate.name for estimate in self.estimates()), "")
        rows: list[display.Line | str] = []
        for group, trend in self.items():
            rows.append(display.Line(self.group_words(group)))
            shown, notes = trend.shown("to_frame() has them all")
            rows += [display.line(bucket, estimate, within=True) for bucket, estimate in shown]
            rows += notes
        return display.shown(display.table(self.bucket, level, rows, caption=f"{name} by {self.by}"))

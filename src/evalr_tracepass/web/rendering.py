"""Pages: the report's templates and style, with those of this page before them."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from evalr.estimates.words import count_words
from evalr.reports.pages import rendering as reports
from evalr_tracepass.command.words import percent

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).with_name("templates")


class File(NamedTuple):
    """A file that every page uses."""

    content: bytes
    media_type: str


def page(name: str, **values: Any) -> str:
    """A template, filled."""
    return environment().get_template(name).render(**values)


@cache
def environment() -> Environment:
    """Templates that escape every text, and fail where one of their values is missing."""
    made = reports.environment(TEMPLATES)
    made.filters |= {"percent": percent, "when": when, "short": short, "count": count_words, "number": _number}
    made.globals |= {"files": {name: f"/static/{name}?{_digest(file)}" for name, file in files().items()}}
    return made


@cache
def files() -> dict[str, File]:
    """Style, script and picture, by their names: these and no others are served."""
    style = reports.style() + (TEMPLATES / "traces.css").read_text(encoding="utf-8")
    return {
        "traces.css": File(style.encode(), "text/css; charset=utf-8"),
        "noscript.css": File((TEMPLATES / "noscript.css").read_bytes(), "text/css; charset=utf-8"),
        "traces.js": File((TEMPLATES / "traces.js").read_bytes(), "text/javascript; charset=utf-8"),
        "icon.svg": File((TEMPLATES / "icon.svg").read_bytes(), "image/svg+xml"),
    }


def when(at: datetime | None) -> str:
    """A time to the minute, in UTC."""
    return "" if at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M}"


def short(count: int) -> str:
    """`940`, `8.2k`, `1.3M`."""
    if count < 1_000:
        return str(count)
    if count < 999_500:
        return f"{count / 1_000:.1f}k" if count < 99_950 else f"{count / 1_000:.0f}k"
    return f"{count / 1_000_000:.1f}M"


def _number(count: float) -> str:
    return f"{count:,}"


def _digest(file: File) -> str:
    return hashlib.sha256(file.content).hexdigest()[:12]

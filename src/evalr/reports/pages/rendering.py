"""Templates, and the one way by which a text gets into a page."""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalr.errors import MissingExtraError
from evalr.quoting import safe_text

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).with_name("templates")
LONGEST = 1_000
"""Characters of any one text, but for those that a reader of the page opens."""
LONGEST_OPENED = 4_000


def check_installed() -> None:
    """See that what pages need is there, before a long log is read for one.

    Raises:
        MissingExtraError: something is not.
    """
    environment()
    for module in ("markupsafe", "vl_convert"):
        try:
            import_module(module)
        except ModuleNotFoundError as error:
            raise MissingExtraError(
                f"pages need {error.name!r}, which is not installed: pip install 'evalr[report]'"
            ) from error


def rendered(name: str, **values: Any) -> str:
    """A template, filled. Needs jinja2.

    Raises:
        MissingExtraError: it is not installed.
    """
    return environment().get_template(name).render(**values)


@cache
def environment(*folders: Path) -> Environment:
    """Templates that escape every text, and fail where one of their values is missing.

    Args:
        folders: of templates beside those of reports, and before them.
    """
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    except ModuleNotFoundError as error:
        if error.name != "jinja2":
            raise
        raise MissingExtraError("pages need 'jinja2', which is not installed: pip install 'evalr[report]'") from error
    made = Environment(
        loader=FileSystemLoader([*folders, TEMPLATES]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_seen,
    )
    made.filters["lines"] = _lines
    return made


def style() -> str:
    """The style of a page."""
    return (TEMPLATES / "style.css").read_text(encoding="utf-8")


def policy(css: str) -> str:
    """The content security policy of a page that has this style and nothing else: what is not named may not be."""
    digest = b64encode(sha256(css.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def _seen(value: Any) -> Any:
    """What a template puts into a page: of a text only what can be seen."""
    if value is None or hasattr(value, "__html__") or isinstance(value, int):
        return value
    return safe_text(str(value), longest=LONGEST)


def _lines(text: str, longest: int = LONGEST_OPENED) -> Any:
    """A longer text with its line ends."""
    from markupsafe import Markup, escape

    cut = text if len(text) <= longest else text[: longest - 1] + "…"
    return Markup("<br>").join(escape(safe_text(line, longest=longest)) for line in cut.splitlines())

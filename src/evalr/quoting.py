"""How text from a log is shown: cut, and with escapes for whatever could hide, or steer a terminal."""

from __future__ import annotations

import unicodedata


def safe_text(text: str, *, longest: int = 80) -> str:
    r"""A text from a log as a terminal may show it: nothing in it moves the cursor, turns the line around or hides.

    Control, format (zero-width and bidirectional), private and unassigned characters and line ends become escapes such
    as `\x1b`; a text over `longest` characters is cut with `…`.
    """
    text = _cut(text, longest)
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(character) for character in text)


def quoted(text: str, *, longest: int = 40) -> str:
    """Text from a log as a message may show it: in quotes, cut, and with escapes for what cannot be seen."""
    return repr(_cut(text, longest))


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _shown(character: str) -> str:
    category = unicodedata.category(character)
    if category[0] == "C" or category in ("Zl", "Zp"):
        return character.encode("unicode_escape").decode("ascii")
    return " " if category == "Zs" else character

"""Forms, as a browser sends them: short, and of one kind."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

if TYPE_CHECKING:
    from starlette.requests import Request

LARGEST = 1_000_000
"""Bytes of a form."""
MOST_FIELDS = 5_000


class Fields(dict[str, list[str]]):
    """Fields by their names; each may stand several times."""

    def get(self, name: str, default: str = "") -> str:  # type: ignore[override]  # a text, as an address has it
        """A field's text, the last one where there are several."""
        found = super().get(name)
        return found[-1] if found else default

    def getlist(self, name: str) -> list[str]:
        """All of a field's texts."""
        return list(super().get(name) or ())


class FormError(ValueError):
    """What was sent is no form, or too large for one."""


async def read_form(request: Request) -> Fields:
    """The fields of a form.

    Raises:
        FormError: it is none, or too large.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise FormError("This page takes only its own forms.")
    from starlette.requests import ClientDisconnect

    body = bytearray()
    try:
        async for part in request.stream():
            body += part
            if len(body) > LARGEST:
                raise FormError("This form is too large.")
    except ClientDisconnect as error:
        raise FormError("This form did not come whole.") from error
    return fields_of(body.decode("utf-8", "replace"))


def fields_of(text: str) -> Fields:
    """The fields of a form or a query.

    Raises:
        FormError: there are too many.
    """
    try:
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="replace")
    except ValueError as error:
        raise FormError("This form has too many fields, or cannot be read.") from error
    found = Fields()
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return found

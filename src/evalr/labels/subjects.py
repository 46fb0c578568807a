"""Whatever is about a subject, as the subject that it is about."""

from __future__ import annotations

from typing import Any

from evalr.inputs import About, Input, Subject
from evalr.labels.examples import Example
from evalr.verdicts import Result, about_of

OfSubject = Example[Any] | Input | Result[Any] | About | Subject
"""What names a subject: an example (under its own id), an input, a result, what one is about, or the subject itself."""

_PARTS = 4


def subject_of(given: object) -> Subject | None:
    """The subject (kind, user, session, id) that something is about; None where it has no id, or is about none."""
    if isinstance(given, Example | Input):
        return given.about().subject
    if isinstance(given, About):
        return given.subject
    if isinstance(given, tuple):
        return given if _is_subject(given) else None
    about = about_of(given)
    return None if about is None else about.subject


def _is_subject(given: tuple[Any, ...]) -> bool:
    if len(given) != _PARTS or not all(isinstance(part, str | None) for part in given):
        return False
    return given[0] is not None and given[3] is not None

"""Examples: an input by a name of its own, and what a person says of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic

from pydantic import TypeAdapter, ValidationError

from evalr.errors import InputError
from evalr.input_fields import Attributes, Name, Text
from evalr.inputs import About, Input
from evalr.quoting import safe_text
from evalr.verdicts import LABELLED_BY, PEOPLE, V_co, Verdict

GROUP = "group"
"""The attribute that holds an example's group in what its results are about."""

_name: TypeAdapter[str] = TypeAdapter(Name)
_text: TypeAdapter[str | None] = TypeAdapter(Text | None)
_maybe_name: TypeAdapter[str | None] = TypeAdapter(Name | None)
_attributes: TypeAdapter[dict[str, str | list[str]]] = TypeAdapter(Attributes)


# Without slots, which would break `Example[T](...)` of a frozen dataclass in Python 3.11.
@dataclass(frozen=True)
class Example(Generic[V_co]):
    """One example of a dataset: an input, and what a person expects of it, where someone has said.

    Args:
        input: what is judged, or what a task is given.
        id: its name, unique in a dataset; by default that of the input.
        expected: the label: the verdict that a person would give, of the dataset's verdict type.
        reason: why, in that person's words.
        author: who labelled it.
        group: what it belongs together with: examples of one group stay on one side of a split, and a comparison
            takes them for one cluster. By default the input's user.
        attributes: texts to group results by, beside those of the input.

    Raises:
        InputError: it has no id, or a field cannot be used.
    """

    input: Input
    id: str = ""
    expected: V_co | None = field(default=None, kw_only=True)
    reason: str | None = field(default=None, kw_only=True)
    author: str | None = field(default=None, kw_only=True)
    group: str | None = field(default=None, kw_only=True)
    attributes: Mapping[str, str | list[str]] = field(default_factory=dict, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.input, Input):
            raise InputError(
                f"an example's input is a {safe_text(type(self.input).__name__)}: pass an input, such as a Transcript "
                "or a Session"
            )
        name = self.input.id if self.id in ("", None) else self.id
        if name is None:
            raise InputError(f"an example needs an id: pass id=, or a {self.input.kind} that has one")
        group = self.input.user if self.group is None else self.group
        checked = (
            ("id", _name, name),
            ("reason", _text, self.reason),
            ("author", _maybe_name, self.author),
            ("group", _maybe_name, group),
            ("attributes", _attributes, dict(self.attributes)),
        )
        for field_name, adapter, given in checked:
            try:
                object.__setattr__(self, field_name, adapter.validate_python(given))
            except ValidationError as error:
                what = safe_text(error.errors(include_url=False, include_input=False)[0]["msg"])
                raise InputError(f"example {safe_text(str(name))!r}: {field_name} {what}") from None

    @property
    def labelled(self) -> bool:
        """Whether a person has said what is expected."""
        return self.expected is not None

    def given(self) -> Input:
        """The input under the example's own id."""
        return self.input if self.input.id == self.id else self.input.model_copy(update={"id": self.id})

    def about(self) -> About:
        """What a result made of it is about: the input under the example's id, with the example's attributes."""
        about = self.given().about()
        attributes = {**(about.attributes or {}), **self.attributes}
        if self.group is not None:
            attributes[GROUP] = self.group
        return about._replace(attributes=attributes)

    def label(self) -> Verdict[V_co] | None:
        """What a person expects, as a verdict by `people`; None where nobody has said."""
        if self.expected is None:
            return None
        about = self.about()
        if self.author is not None:
            about = about._replace(attributes={**(about.attributes or {}), LABELLED_BY: self.author})
        return Verdict(self.expected, PEOPLE, about=about)

"""Verdict fields: which types are read, as what, and which are refused by name."""

from __future__ import annotations

import sys
from datetime import datetime, timedelta
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from typing import Annotated, Any, Generic, Literal, Optional, TypeVar, Union

import pytest
from annotated_types import Ge, Gt, Interval, Le, Lt, MultipleOf
from hypothesis import given
from hypothesis import strategies as st
from pydantic import (
    BaseModel,
    ConfigDict,
    FiniteFloat,
    NonNegativeFloat,
    PositiveInt,
    PrivateAttr,
    StrictBool,
    TypeAdapter,
    ValidationError,
    computed_field,
    confloat,
    conint,
    constr,
    create_model,
)
from pydantic import Field as Declared
from typing_extensions import TypeAliasType

from evalr import EvalrError, Field, FieldTypeError, verdict_fields


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Word(StrEnum):
    YES = "yes"
    NO = "no"


class Grade(IntEnum):
    POOR = 1
    GOOD = 2


class Tagged(Enum):
    PAIR = (1, "x")


class Empty(Enum):
    pass


class EmptyNumbers(IntEnum):
    pass


class Nested(BaseModel):
    x: int


T = TypeVar("T")


class Of(BaseModel, Generic[T]):
    value: T


Rating = TypeAliasType("Rating", Annotated[int, Declared(ge=1, le=5)])
Answer = TypeAliasType("Answer", Literal["yes", "no"])


def read(annotation: Any, **given: Any) -> Field:
    """The one field of a verdict type that declares it so."""
    [field] = verdict_fields(create_model("Said", it=(annotation, Declared(**given))))
    return field


# ---------------------------------------------------------------------------------------------------------------------
# What is read
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (bool, Field("it", "bool")),
        (StrictBool, Field("it", "bool")),
        (int, Field("it", "integer")),
        (float, Field("it", "number")),
        (FiniteFloat, Field("it", "number")),
        (str, Field("it", "text")),
        (constr(max_length=9), Field("it", "text")),
        (Literal["a", "b"], Field("it", "choice", choices=("a", "b"))),
        (Literal["a", 1, True], Field("it", "choice", choices=("a", 1, True))),
        (Literal[Colour.RED, "x"], Field("it", "choice", choices=(Colour.RED, "x"))),
        (Colour, Field("it", "choice", choices=(Colour.RED, Colour.BLUE))),
        (Word, Field("it", "choice", choices=(Word.YES, Word.NO))),
        (Grade, Field("it", "choice", choices=(Grade.POOR, Grade.GOOD))),
        (list[Literal["a", "b"]], Field("it", "choices", choices=("a", "b"))),
        (list[Colour], Field("it", "choices", choices=(Colour.RED, Colour.BLUE))),
        (list[Grade], Field("it", "choices", choices=(Grade.POOR, Grade.GOOD))),
        (list[Annotated[Answer, "a note"]], Field("it", "choices", choices=("yes", "no"))),
        (Answer, Field("it", "choice", choices=("yes", "no"))),
        (Rating, Field("it", "integer", low=1, high=5)),
    ],
    ids=str,
)
def test_a_field_is_read_by_its_type_and_may_be_none(annotation: Any, expected: Field) -> None:
    assert read(annotation) == expected
    optional = Field(
        expected.name, expected.kind, optional=True, choices=expected.choices, low=expected.low, high=expected.high
    )
    for spelt in (Optional[annotation], Union[None, annotation], Annotated[Optional[annotation], "a note"]):  # noqa: UP007, UP045
        assert read(spelt) == optional


def test_none_among_the_values_of_a_literal_is_none() -> None:
    assert read(Literal["a", None]) == Field("it", "choice", optional=True, choices=("a",))  # noqa: PYI061


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the type statement came with Python 3.12")
def test_a_type_statement_is_seen_through() -> None:
    scope: dict[str, Any] = {"Annotated": Annotated, "Literal": Literal, "Ge": Ge}
    exec("type Stars = Annotated[int, Ge(1)]\ntype Side = Literal['left', 'right']\ntype Maybe = Stars | None", scope)
    assert read(scope["Stars"]) == Field("it", "integer", low=1)
    assert read(scope["Maybe"]) == Field("it", "integer", optional=True, low=1)
    assert read(list.__class_getitem__(scope["Side"])) == Field("it", "choices", choices=("left", "right"))


@pytest.mark.parametrize(
    ("annotation", "low", "high"),
    [
        (Annotated[int, Ge(1), Le(5)], 1, 5),
        (Annotated[int, Gt(0), Lt(6)], 1, 5),
        (Annotated[int, Interval(ge=1, lt=6)], 1, 5),
        (conint(gt=0, le=5), 1, 5),
        (PositiveInt, 1, None),
        (Annotated[int, MultipleOf(5), Ge(0), Le(100)], 0, 100),
        (Annotated[float, Ge(0), Le(1)], 0, 1),
        (Annotated[float, Gt(0), Lt(1)], 0, 1),
        (confloat(ge=0, le=0.5), 0, 0.5),
        (NonNegativeFloat, 0, None),
        (Annotated[float, Le(1)], None, 1),
        (Annotated[int, Declared(ge=1)], 1, None),
        (Optional[Annotated[int, Declared(ge=1, le=5)]], 1, 5),  # noqa: UP045
        (Annotated[PositiveInt, Ge(0), Le(9), Le(5)], 1, 5),
        (Annotated[int, Ge(2), Ge(1), Le(5), Lt(5)], 1, 4),
        (Annotated[float, Ge(-float("inf")), Le(float("inf"))], None, None),
    ],
    ids=str,
)
def test_a_number_has_the_bounds_that_pydantic_holds_it_to(
    annotation: Any, low: float | None, high: float | None
) -> None:
    field = read(annotation)
    assert (field.low, field.high) == (low, high)
    assert field.bounded == (low is not None and high is not None)


def test_bounds_beside_the_type_are_bounds() -> None:
    assert read(int, ge=1, le=5) == Field("it", "integer", low=1, high=5)
    assert read(int | None, gt=0, lt=6, default=None) == Field(
        "it", "integer", optional=True, required=False, low=1, high=5
    )
    assert read(float, gt=0, multiple_of=0.5) == Field("it", "number", low=0)


@given(
    st.lists(st.sampled_from([Ge, Gt, Le, Lt]).flatmap(lambda kind: st.builds(kind, st.integers(-3, 3))), max_size=4)
)
def test_the_bounds_of_a_whole_number_are_the_least_and_most_that_validate(constraints: list[Any]) -> None:
    annotation = Annotated[(int, *constraints)] if constraints else int
    field = read(annotation)
    adapter = TypeAdapter(annotation)

    def validates(value: int) -> bool:
        try:
            adapter.validate_python(value)
        except ValidationError:
            return False
        return True

    low, high = (-9 if field.low is None else field.low), (9 if field.high is None else field.high)
    assert [n for n in range(-9, 10) if validates(n)] == [n for n in range(-9, 10) if low <= n <= high]


def test_a_field_says_whether_it_must_be_given_and_what_it_means() -> None:
    assert read(str, description="Why") == Field("it", "text", description="Why")
    assert read(str, default="", description="Why") == Field("it", "text", required=False, description="Why")
    assert not read(list[Word], default_factory=list).required
    assert read(bool | None).required


class Parent(BaseModel):
    model_config = ConfigDict(validate_by_name=True)

    done: bool = Declared(alias="isDone", description="It was done")
    _secret: int = PrivateAttr(default=0)


class Child(Parent):
    stars: Rating | None = None

    @computed_field(description="Done, and well")  # type: ignore[prop-decorator]
    @property
    def well(self) -> bool | None:
        return None if self.stars is None else self.done and self.stars > 3

    @computed_field  # type: ignore[prop-decorator]
    @property
    def side(self) -> Annotated[int, Ge(0)]:
        return 0


def test_inherited_aliased_and_computed_fields_are_read_in_order() -> None:
    assert verdict_fields(Child) == (
        Field("done", "bool", description="It was done"),
        Field("stars", "integer", optional=True, required=False, low=1, high=5),
        Field("well", "bool", optional=True, required=False, description="Done, and well"),
        Field("side", "integer", required=False, low=0),
    )
    assert verdict_fields(Parent) == verdict_fields(Child)[:1]


def test_a_generic_type_is_read_once_it_says_of_what() -> None:
    assert verdict_fields(Of[bool]) == (Field("value", "bool"),)
    with pytest.raises(FieldTypeError, match=r"Of\.value"):
        verdict_fields(Of)


class Early(BaseModel):
    choice: Late


class Late(Enum):
    YES = "yes"


def test_a_type_may_name_what_is_defined_after_it() -> None:
    assert verdict_fields(Early) == (Field("choice", "choice", choices=(Late.YES,)),)


# ---------------------------------------------------------------------------------------------------------------------
# What is refused
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "annotation",
    [
        dict,
        dict[str, int],
        Nested,
        Nested | None,
        datetime,
        timedelta,
        Decimal,
        complex,
        bytes,
        object,
        Any,
        None,
        int | str,
        int | float,
        int | str | None,
        list,
        list[str],
        list[int],
        list[Colour | None],
        list[Literal["a", None]],  # noqa: PYI061
        list[list[Colour]],
        set[Colour],
        frozenset[Colour],
        tuple[Colour, ...],
        tuple[int, int],
        Literal[b"a"],
        Literal[None],  # noqa: PYI061
        Tagged,
        list[Tagged],
        Empty,
        EmptyNumbers,
    ],
    ids=str,
)
def test_any_other_type_is_refused_by_the_name_of_its_field(annotation: Any) -> None:
    verdict_type = create_model("Said", fine=(bool, ...), it=(annotation, ...))
    with pytest.raises(FieldTypeError, match=r"^Said\.it: .* cannot be read as a verdict field; use bool, a Literal"):
        verdict_fields(verdict_type)


@pytest.mark.parametrize("given", [int, str, dict, {}, [], None, "Said", Nested(x=1)], ids=repr)
def test_only_a_pydantic_model_is_a_verdict_type(given: Any) -> None:
    with pytest.raises(FieldTypeError, match="not a verdict type: declare it as a pydantic model"):
        verdict_fields(given)


def test_a_verdict_type_has_a_field() -> None:
    for empty in (BaseModel, create_model("Nothing")):
        with pytest.raises(FieldTypeError, match="has no fields"):
            verdict_fields(empty)


class Unknown(BaseModel):
    choice: Nowhere  # type: ignore[name-defined]  # noqa: F821


def test_a_type_that_names_what_is_nowhere_is_refused_by_the_name_of_its_field() -> None:
    with pytest.raises(FieldTypeError, match=r"Unknown\.choice: .*Nowhere"):
        verdict_fields(Unknown)


def test_the_error_is_of_the_tree_and_a_value_error() -> None:
    assert issubclass(FieldTypeError, EvalrError)
    assert issubclass(FieldTypeError, ValueError)

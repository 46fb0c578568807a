"""Options that several commands share: the fields of a dataclass, taken as one argument."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from evalr.cli.option_groups import with_groups

SEEN: list[tuple[Any, ...]] = []


@dataclass(frozen=True, kw_only=True)
class Where:
    place: Annotated[str, typer.Option("--place", help="Where.")] = "here"
    floor: Annotated[int, typer.Option("--floor", min=0)] = 0


@dataclass(frozen=True, kw_only=True)
class Who:
    names: Annotated[list[str] | None, typer.Option("--name")] = None
    key: Annotated[str, typer.Option("--key")]


@pytest.fixture
def app() -> typer.Typer:
    SEEN.clear()
    made = typer.Typer(add_completion=False)

    @made.command()
    @with_groups
    def go(what: Annotated[str, typer.Argument()], where: Where, who: Who, loud: bool = False) -> None:
        """Go there."""
        SEEN.append((what, where, who, loud))

    return made


def test_fields_are_options_and_come_back_as_groups(app: typer.Typer) -> None:
    arguments = ["x", "--floor", "3", "--name", "a", "--name", "b", "--key", "k", "--loud"]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    assert [("x", Where(floor=3), Who(names=["a", "b"], key="k"), True)] == SEEN


def test_what_is_not_given_is_as_the_group_says(app: typer.Typer) -> None:
    assert CliRunner().invoke(app, ["x", "--key", "k"]).exit_code == 0
    assert [("x", Where(), Who(key="k"), False)] == SEEN


def test_a_field_without_a_default_has_to_be_given(app: typer.Typer) -> None:
    done = CliRunner().invoke(app, ["x"])
    assert (done.exit_code, SEEN) == (2, [])
    assert "--key" in done.output


def test_options_are_listed_where_their_group_stands(app: typer.Typer) -> None:
    shown = CliRunner().invoke(app, ["--help"]).output
    assert "Go there." in shown
    places = [shown.index(name) for name in ("--place", "--floor", "--name", "--key", "--loud")]
    assert places == sorted(places)

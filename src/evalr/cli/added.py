"""Commands that other packages add, `evalr.commands` entry points: the command knows none of them by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from evalr.errors import PluginError
from evalr.plugins import load_plugins, plugin_names

GROUP = "evalr.commands"


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command that a package adds under the entry point group `evalr.commands`, by its name.

    The module that it is in is imported for `evalr --help`, too: what is heavy is imported where it is used.

    Args:
        name: as after `evalr`.
        app: what it does, made by `new_app`.
    """

    name: str
    app: typer.Typer


def new_app(help_text: str) -> typer.Typer:
    """An app that looks and ends as `evalr` does, for a `Command`.

    With one command in it, that one is the subcommand; with several, each is one of the subcommand's.

    Args:
        help_text: what it does, in one short line.
    """
    return typer.Typer(
        help=help_text,
        add_completion=False,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )


class OpenGroup(TyperGroup):
    """A group with its own commands, and those that are installed: each is imported when it is asked for.

    All of them are where somebody asks what there is, or for a command that there is not. Ours stand where a name is
    taken twice.
    """

    def list_commands(self, ctx: Any) -> list[str]:
        """Our commands in our order, then those of other packages by name."""
        for name in plugin_names(GROUP):
            self._add(name)
        return super().list_commands(ctx)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of that name, or None."""
        if cmd_name not in self.commands:
            names = plugin_names(GROUP)
            for name in [cmd_name] if cmd_name in names else names:
                self._add(name)
        return super().get_command(ctx, cmd_name)

    def _add(self, name: str) -> None:
        if name not in self.commands:
            loaded, broken = load_plugins(GROUP, Command, only=name)
            if name in loaded and loaded[name].name != name:
                broken[name] = f"it is {loaded[name].name!r}, as it says itself"
            found = _broken(name, "; ".join(broken.values())) if name in broken else get_command(loaded[name].app)
            self.add_command(found, name)


def _broken(name: str, why: str) -> TyperCommand:
    """Stands for a command that could not be loaded, so that its help and its use say what is missing."""

    def refuse() -> NoReturn:
        raise PluginError(f"the command {name!r} cannot be used: {why}")

    return TyperCommand(
        name=name,
        callback=refuse,
        help=f"Cannot be used: {why}",
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
        rich_markup_mode=None,
    )

"""Settings of measures and readers on the command line: as `--set NAME=VALUE`, or as options of their own names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from typer.core import TyperCommand

from evalr.cli.texts import read_setting
from evalr.errors import InputError


def setting_defaults() -> dict[str, Any]:
    """What can be set of any installed reader or measure, with the defaults."""
    from evalr.logs import installed_readers
    from evalr.logs.log import reader_settings
    from evalr.measures.measure import installed_measures

    defaults: dict[str, Any] = {}
    for reader in installed_readers().loaded.values():
        defaults |= reader_settings(reader)
    for measure in installed_measures().loaded.values():
        defaults |= measure.settings
    return defaults


def read_settings(texts: Iterable[str], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """`NAME=VALUE`s as settings. One that takes several values is given once for each; of another the last counts."""
    given: dict[str, Any] = {}
    for text in texts:
        name, value = read_setting(text, defaults)
        given[name] = (*given.get(name, ()), *value) if isinstance(value, tuple) else value
    return given


class SettingCommand(TyperCommand):
    """A command that takes each setting under its own name: `--tenant acme` for `--set tenant=acme`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments, the settings among them put as `--set` has them."""
        own = {name for parameter in self.params for name in parameter.opts}
        return super().parse_args(ctx, _with_sets(args, own | {"--help"}))


def _with_sets(args: list[str], own: set[str]) -> list[str]:
    found: list[str] = []
    defaults: dict[str, Any] | None = None
    given = iter(args)
    for arg in given:
        option, equals, value = arg.partition("=")
        if arg == "--":
            return [*found, arg, *given]
        if not option.startswith("--") or option in own:
            found.append(arg)
            continue
        defaults = setting_defaults() if defaults is None else defaults
        name = option[2:].replace("-", "_")
        if name not in defaults:
            found.append(arg)
            continue
        if not equals and (value := next(given, "")) == "":
            raise InputError(f"{option} needs a value, as in {option} VALUE; `evalr measures` lists what can be set")
        found += ["--set", f"{name}={value}"]
    return found

"""What other packages add: readers and measures, found by entry points."""

from __future__ import annotations

import re
from collections import Counter
from importlib.metadata import EntryPoint, entry_points
from typing import Generic, NamedTuple, TypeVar

from evalr.errors import error_words

P = TypeVar("P")


class Plugins(NamedTuple, Generic[P]):
    """What was found: by name, and why the others could not be loaded."""

    loaded: dict[str, P]
    broken: dict[str, str]


def plugin_names(group: str) -> list[str]:
    """The names in an entry point group, each once and in order. Nothing is loaded: not all of them may work."""
    return sorted(entry_points(group=group).names)


def load_plugins(group: str, kind: type[P], *, only: str | None = None) -> Plugins[P]:
    """Every object of `kind` in an entry point group, ours and those of other packages, in the order of their names.

    One that cannot be loaded is listed with the reason and never stops the others. Of several with one name the first
    stands, ours before any other package's. With `only`, those of that one name, so that no other package is imported.
    """
    loaded: dict[str, P] = {}
    broken: dict[str, str] = {}
    points = entry_points(group=group) if only is None else entry_points(group=group, name=only)
    for point in sorted(points, key=_order):
        name = f"{point.name} ({point.value})" if point.name in {*loaded, *broken} else point.name
        if point.name in loaded:
            broken[name] = f"the name {point.name!r} is taken by another package"
            continue
        try:
            found = point.load()
            fits = isinstance(found, kind)  # for a protocol, this runs the code of its properties
        except (Exception, SystemExit) as error:  # noqa: BLE001  an import may raise anything; it is listed with its cause
            broken[name] = _why(point, error)
            continue
        if fits:
            loaded[point.name] = found
        else:
            broken[name] = f"{point.value} is not a {kind.__name__}"
    return Plugins(loaded, broken)


def _order(point: EntryPoint) -> tuple[str, bool, str, str]:
    package = point.dist.name if point.dist is not None else ""
    return point.name, package != "evalr", package, point.value


def _why(point: EntryPoint, error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name:
        return f"needs {error.name!r}, which is not installed{_install_words(point, error.name)}"
    return f"{point.value} cannot be loaded: {error_words(error)}"


def _install_words(point: EntryPoint, module: str) -> str:
    """`: pip install 'evalr[dspy]'`, where the package has an extra for what is missing: the smallest one."""
    if point.dist is None:
        return ""
    extras = Counter[str]()
    fitting = set()
    for required in point.dist.requires or ():
        name, _, marker = required.partition(";")
        extra = re.search(r"""\bextra\s*==\s*['"]([\w.-]+)['"]""", marker)
        if extra is not None:
            extras[extra[1]] += 1
            if re.match(rf"{re.escape(module.partition('.')[0])}(?![\w.-])", name):
                fitting.add(extra[1])
    smallest = min(sorted(fitting), key=extras.__getitem__, default=None)
    return "" if smallest is None else f": pip install '{point.dist.name}[{smallest}]'"

"""Plugins: what other packages add is found, and one that is broken is listed and harms nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from evalr.plugins import load_plugins

GROUP = "evalr.only_in_tests"
Install = Callable[..., None]


class Thing:
    """What the group's plugins must be."""

    def __init__(self, name: str) -> None:
        self.name = name


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Put a package with entry points on the path, its modules given as source by name."""
    made: set[str] = set()

    def put(package: str, entries: dict[str, str], **modules: str) -> None:
        site = tmp_path / package
        info = site / f"{package.replace('-', '_')}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n", encoding="utf-8")
        lines = "".join(f"{name} = {target}\n" for name, target in entries.items())
        (info / "entry_points.txt").write_text(f"[{GROUP}]\n{lines}", encoding="utf-8")
        for module, source in modules.items():
            (site / f"{module}.py").write_text(source, encoding="utf-8")
            made.add(module)
        monkeypatch.syspath_prepend(str(site))

    monkeypatch.setitem(sys.modules, "thing_of_the_tests", sys.modules[__name__])
    yield put
    for module in made:
        sys.modules.pop(module, None)


def thing(name: str) -> str:
    return f"from thing_of_the_tests import Thing\nthing = Thing({name!r})\n"


def names(loaded: dict[str, Thing]) -> dict[str, str]:
    return {name: found.name for name, found in loaded.items()}


def test_the_plugins_of_every_package_are_found_in_the_order_of_their_names(install: Install) -> None:
    install("stranger-one", {"zebra": "plug_z:thing", "apple": "plug_a:thing"}, plug_z=thing("z"), plug_a=thing("a"))
    install("stranger-two", {"mango": "plug_m:thing"}, plug_m=thing("m"))
    found = load_plugins(GROUP, Thing)
    assert list(names(found.loaded).items()) == [("apple", "a"), ("mango", "m"), ("zebra", "z")]
    assert found.broken == {}


def test_a_group_that_nobody_adds_to_is_empty() -> None:
    assert load_plugins(GROUP, Thing) == ({}, {})


@pytest.mark.parametrize(
    ("target", "source", "why"),
    [
        ("plug_b:thing", "import no_such_dependency\n", "needs 'no_such_dependency', which is not installed"),
        ("plug_gone:thing", "", "needs 'plug_gone', which is not installed"),
        ("plug_b:thing", "", "plug_b:thing cannot be loaded: AttributeError: module 'plug_b' has no attribute 'thing'"),
        ("plug_b:thing", "raise RuntimeError('no {x}')", "plug_b:thing cannot be loaded: RuntimeError: no {x}"),
        ("plug_b:thing", "from json import nothing", "plug_b:thing cannot be loaded: ImportError: cannot import name"),
        ("plug_b:thing", "raise SystemExit('no licence')", "plug_b:thing cannot be loaded: SystemExit: no licence"),
        (
            "plug_b:thing",
            "class Mute(Exception):\n    def __str__(self): raise ValueError\nraise Mute",
            "plug_b:thing cannot be loaded: Mute, which cannot be printed",
        ),
        (
            "plug_b:thing",
            "class Thing:\n    @property\n    def __class__(self): raise RuntimeError('hidden')\nthing = Thing()",
            "plug_b:thing cannot be loaded: RuntimeError: hidden",
        ),
        ("plug_b:thing", "this is no Python", "plug_b:thing cannot be loaded: SyntaxError: "),
        ("plug_b:thing", "thing = 'a text'", "plug_b:thing is not a Thing"),
        ("plug_b:thing", "from thing_of_the_tests import Thing as thing", "plug_b:thing is not a Thing"),
    ],
)
def test_a_broken_plugin_is_listed_with_the_reason_and_the_others_load(
    install: Install, target: str, source: str, why: str
) -> None:
    install("stranger", {"bad": target, "good": "plug_g:thing"}, plug_b=source, plug_g=thing("good"))
    found = load_plugins(GROUP, Thing)
    assert names(found.loaded) == {"good": "good"}
    assert list(found.broken) == ["bad"]
    assert found.broken["bad"].startswith(why)


def test_a_missing_extra_says_what_to_install(install: Install) -> None:
    source = "from evalr import MissingExtraError\nraise MissingExtraError('install evalr[pandas]')\n"
    install("stranger", {"bad": "plug_b:thing"}, plug_b=source)
    assert "install evalr[pandas]" in load_plugins(GROUP, Thing).broken["bad"]


@pytest.mark.parametrize("order", [("evalr", "a-stranger"), ("a-stranger", "evalr")])
def test_no_other_package_takes_the_name_of_one_of_ours(install: Install, order: tuple[str, str]) -> None:
    for package in order:
        module = f"plug_{package[0]}"
        install(package, {"waits": f"{module}:thing"}, **{module: thing(package)})
    found = load_plugins(GROUP, Thing)
    assert names(found.loaded) == {"waits": "evalr"}
    assert found.broken == {"waits (plug_a:thing)": "the name 'waits' is taken by another package"}


def test_several_broken_plugins_of_one_name_are_all_listed_and_one_that_works_still_loads(install: Install) -> None:
    install("stranger-one", {"same": "plug_1:thing"}, plug_1="raise RuntimeError('one')")
    install("stranger-two", {"same": "plug_2:thing"}, plug_2="raise RuntimeError('two')")
    install("stranger-zero", {"same": "plug_0:thing"}, plug_0=thing("works"))
    found = load_plugins(GROUP, Thing)
    assert {name: why[-3:] for name, why in found.broken.items()} == {"same": "one", "same (plug_2:thing)": "two"}
    assert names(found.loaded) == {"same": "works"}

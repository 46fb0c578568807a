"""What every test shares: reproducible properties, real logs where they are given, a server and a browser."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from postgres_server import Server, started

# A busy machine must not turn a slow example into a failure; in CI the examples are few and the same on every run.
IN_CI = bool(os.environ.get("CI"))
settings.register_profile(
    "evalr",
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=IN_CI,
    max_examples=20 if IN_CI else 100,
)
settings.load_profile("evalr")


def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: many a test waits for a process, a server or a clock."""
    return (os.cpu_count() or 1) + 1


@pytest.fixture(scope="session")
def real_logs() -> Path:
    """The folder of real logs that the variable EVALR_DATA names; the test is skipped where it names none."""
    folder = os.environ.get("EVALR_DATA")
    if not folder:
        pytest.skip("EVALR_DATA names no folder of real logs")
    return Path(folder)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A real server of PostgreSQL, started here and stopped at the end: each test makes a database of its own."""
    with started() as server:
        yield server


BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
QUIET = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """The machine's own browser, run without a window; the test is skipped where there is none.

    Of a module alone: as long as it is there, its thread has a running event loop, which other tests could not do with.
    """
    sync_api = pytest.importorskip("playwright.sync_api", reason="no playwright to drive a browser with")
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip(f"no browser is installed: none of {', '.join(BROWSERS)}")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=QUIET)
        yield browser
        browser.close()


@pytest.fixture
def watched(chromium: Any) -> Iterator[Callable[..., Any]]:
    """Opens pages of which it is noted whatever no page of evalr may do: `page.noted` has it, and must stay empty."""
    contexts = []

    def opened(url: str, *, width: int = 1280, scheme: str = "light") -> Any:
        context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.noted = []
        own = url.partition("#")[0]
        page.on("dialog", lambda dialog: (page.noted.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("pageerror", lambda error: page.noted.append(f"script error: {error}"))
        page.on("console", lambda said: page.noted.append(f"console: {said.text}"))
        page.on("request", lambda asked: asked.url == own or page.noted.append(f"request: {asked.url}"))
        page.on("popup", lambda other: page.noted.append(f"window: {other.url}"))
        page.goto(url)
        return page

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture
def barriers() -> Callable[[Any], list[tuple[str, list[str]]]]:
    """What axe finds wrong with a page for people who cannot see it well, or use no mouse; skipped without axe."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="no axe to check accessibility with")

    def found(page: Any) -> list[tuple[str, list[str]]]:
        # What is right is not told of element by element, which takes long on a long page.
        violations = axe.Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
        return [(each["id"], [node["html"][:200] for node in each["nodes"][:3]]) for each in violations]

    return found

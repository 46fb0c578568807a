"""The traces page in a browser: each page looked at, a pass run by clicking, and a log full of attacks."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from traces_desk import ME, desk_lines, run_pass, write_log

from evalr.tracepass import LocalTransport, heuristics, open_store
from evalr_tracepass.web.snapshot import key_of

pytest.importorskip("starlette", reason="the traces page needs the extra evalr[web]")
pytest.importorskip("uvicorn", reason="the traces page needs the extra evalr[web]")

ATTACKS = [
    "<script>alert(1)</script>",
    "</title></textarea></style><script>alert(2)</script>",
    '"><svg onload=alert(3)><animate onbegin=alert(4)>',
    "' onmouseover='alert(5)' autofocus onfocus='alert(6)",
    "javascript:alert(7)",
    "{{ 7*7 }}{% for x in [1] %}x{% endfor %}{# gone #}${alert(8)}{{ form_key }}",
    "\u202egnp.exe\u2066\u200bhidden\ufeff",
    "\x07\x1b[2J\x1b]0;title\x07\r\n\x85\u2028",
    "<iframe srcdoc='<script>parent.alert(9)</script>'></iframe><base href='http://example.invalid/'>",
    "<img src=http://example.invalid/x onerror=alert(10)><link rel=stylesheet href=http://example.invalid/y>",
    "<form action='http://example.invalid/'><button formaction='javascript:alert(11)'>x</form>",
    "<meta http-equiv=refresh content='0;url=http://example.invalid/'>",
    "../../../etc/passwd%00\\..\\",
    "&lt;b&gt;&#x3c;script&#x3e;alert(12)",
    "<math><mtext><table><mglyph><style><img src=x onerror=alert(13)>",
]


def hostile_lines() -> list[dict[str, Any]]:
    """Every text of a log that its writer chooses."""
    lines = []
    for number, attack in enumerate(ATTACKS):
        other = ATTACKS[(number + 1) % len(ATTACKS)]
        call = {"name": attack, "arguments": {other: attack}, "status": "error", "error": other, "result": attack}
        facts = {"model": attack, "finish_reason": other, "span_id": attack, "input_tokens": 5, "reasoning": attack}
        at = "2026-11-30T10:0"
        turns = [
            {"id": attack, "role": "person", "text": f"worst useless annoyed {attack}", "at": at + "0:00Z"},
            {"role": "agent", "text": attack * 3, "at": at + "1:00Z", "tool_calls": [call], "metadata": facts},
        ]
        lines.append({"id": attack, "user": other, "request": attack, "turns": turns})
    return lines


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of the page: sixty conversations that were read once, and attacks."""
    import uvicorn

    from evalr_tracepass.web.app import make_app
    from evalr_tracepass.web.desk import Desk
    from evalr_tracepass.web.guard import Guard
    from evalr_tracepass.web.kept import Kept
    from evalr_tracepass.web.reading import read_log

    folder: Path = tmp_path_factory.mktemp("traces")
    log = write_log(folder / "desk.jsonl", [*desk_lines(60), *hostile_lines()])
    store = open_store(folder / "passes.db")
    run_pass(store, log)
    reading = read_log(str(log))
    reading.begin()
    rules = heuristics()
    desk = Desk(reading, Kept(store, store, ME), Guard(), LocalTransport(rules), rules, rate=0.00003)
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(make_app(desk), log_level="error", lifespan="off", access_log=False))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    reading.wait(30)
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    server.should_exit = True
    thread.join(10)
    listening.close()
    store.close()


Opened = Callable[..., Any]


@pytest.fixture
def opened(chromium: Any, base: str) -> Iterator[Opened]:
    """Opens pages of which it is noted whatever none may do: `page.noted` has it, and must stay empty."""
    contexts = []

    def made(path: str = "/", *, width: int = 1280, scheme: str = "light", **options: Any) -> Any:
        size = {"width": width, "height": 900}
        context = chromium.new_context(viewport=size, color_scheme=scheme, base_url=base, **options)
        contexts.append(context)
        page = context.new_page()
        page.noted = []
        page.on("dialog", lambda dialog: (page.noted.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("pageerror", lambda error: page.noted.append(f"script error: {error}"))
        page.on("console", lambda said: page.noted.append(f"console: {said.text}"))
        page.on("request", lambda asked: asked.url.startswith(base) or page.noted.append(f"request: {asked.url}"))
        page.on("popup", lambda other: page.noted.append(f"window: {other.url}"))
        page.goto(path)
        return page

    yield made
    for context in contexts:
        context.close()


def tick(page: Any, *names: str) -> None:
    for name in names:
        page.get_by_label(f"Select {name}", exact=True).check()


ACTIVE = """[
    document.scripts.length,
    document.images.length,
    document.querySelectorAll("iframe, svg, base, object, embed").length,
]"""
MOVED = """() => new Promise((done) => {
    let sum = 0;
    const look = new PerformanceObserver((list) => list.getEntries().forEach((each) => { sum += each.value; }));
    look.observe({ type: "layout-shift", buffered: true });
    setTimeout(() => done(sum), 150);
})"""
HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]")


def wait_for_end(page: Any) -> None:
    page.get_by_role("heading", name="Pass complete").wait_for(timeout=20_000)


CONVO = f"/c/{key_of('convo_0', 'user_0')}"


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_every_page_fits_and_is_accessible(opened: Opened, barriers: Any, width: int, scheme: str) -> None:
    shown = opened(width=width, scheme=scheme)
    link = shown.goto("/passes") and shown.locator("table a").first.get_attribute("href")
    asked = f"/run?set=1&s=heuristic-negative-tone&preview=1&c={key_of('convo_0', 'user_0')}"
    for path in ("/", CONVO, asked, link, f"{link}/failed", "/passes", "/signals", "/signals/edit", "/none"):
        shown.goto(path)
        assert shown.evaluate("document.documentElement.scrollWidth") <= width, path
        assert barriers(shown) == [], path
    background = shown.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(20, 20, 20)") is (scheme == "dark")
    assert [each for each in shown.noted if "404" not in each] == []


def test_a_pass_is_run_by_clicking_and_a_chip_leads_to_its_turn(opened: Opened) -> None:
    page = opened("/?user=user_3")
    assert page.locator("#picked").inner_text() == "0 selected"
    tick(page, "convo_3", "convo_24")
    assert page.locator("#picked").inner_text() == "2 selected"
    page.get_by_role("button", name="Run selected").click()
    assert page.get_by_role("radio", name="Selected (2)").is_checked()
    page.get_by_text("Estimated cost").wait_for()
    page.get_by_role("checkbox", name="Repeated steps").uncheck()
    assert "Changed since: update the estimate." in page.locator("#estimate").inner_text()
    page.get_by_role("button", name="Update estimate").click()
    page.get_by_text("Estimated cost").wait_for()
    assert "already have labels" in page.locator("#estimate").inner_text()
    page.get_by_role("button", name="Run pass").click()
    # Both have labels, so that it is asked first.
    dialog = page.get_by_role("alertdialog")
    assert "2 of 2 selected conversations already have labels." in dialog.inner_text()
    assert page.evaluate("document.activeElement.textContent") == "Run only new"
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('header, .beside')") is None
    page.keyboard.press("Escape")
    assert not dialog.is_visible()
    assert page.get_by_role("radio", name="Selected (2)").is_checked()
    page.get_by_role("button", name="Run pass").click()
    page.get_by_role("button", name="Rerun all").click()
    wait_for_end(page)
    page.get_by_role("link", name="View flagged conversations").click()
    row = page.locator("tbody tr", has_text="convo_24")
    assert re.search(r"negative\s67%", row.inner_text())
    row.get_by_role("link", name="negative").click()
    assert "negative" in page.locator("article:target header .chips").inner_text()
    page.locator(".rail").get_by_role("link", name="Turn 6").click()
    turn = page.locator("article:target")
    assert "negative" in turn.locator("header .chips").inner_text()
    assert turn.bounding_box()["y"] < 900
    assert page.noted == []


def test_select_visible_ticks_what_can_be_seen(opened: Opened) -> None:
    page = opened("/?user=user_1")
    box = page.get_by_label("Select visible")
    box.check()
    boxes = page.locator(".convos input")
    assert page.locator("#picked").inner_text() == f"{boxes.count()} selected"
    boxes.first.uncheck()
    assert box.evaluate("box => box.indeterminate")
    assert page.noted == []


def test_it_works_without_a_script(opened: Opened) -> None:
    page = opened("/?user=user_2", java_script_enabled=False)
    assert not page.get_by_label("Select visible").is_visible()
    page.get_by_role("link", name="Select visible").click()
    page.wait_for_url("**visible=1")  # and until all of it is there
    assert page.locator(".convos input:checked").count() == page.locator(".convos input").count() > 1
    page.get_by_role("button", name="Run selected").click()
    page.get_by_role("button", name="Run pass").click()
    page.get_by_role("button", name="Run only new").click()
    wait_for_end(page)
    assert page.noted == []


def test_progress_is_shown_as_it_comes(opened: Opened) -> None:
    page = opened("/signals/edit")
    page.get_by_label("Name").fill("Whole of it")
    page.get_by_label("Full trace", exact=False).first.check()
    page.get_by_label("Reflex").select_option("heuristic-negative-tone")
    page.get_by_label("Fires on").fill("negative")
    page.get_by_role("button", name="Save signal").click()
    page.get_by_role("link", name="Preview transformed inputs").click()
    page.get_by_text("Full conversation:").first.wait_for()
    page.get_by_role("radio", name="Current filters").check()
    page.get_by_role("button", name="Run pass").click()
    page.get_by_role("button", name="Rerun all").click()
    wait_for_end(page)
    assert page.noted == []


def test_nothing_of_a_log_runs_or_is_fetched(opened: Opened) -> None:
    page = opened("/?q=worst+useless+annoyed", width=390)
    hostile = [key_of(each["id"], each["user"]) for each in hostile_lines()]
    assert page.locator("tbody tr").count() == len(hostile)
    paths = [f"/c/{key}" for key in hostile[::3]]
    paths.append("/run?preview=1&set=1&s=heuristic-negative-tone&" + "&".join(f"c={key}" for key in hostile))
    paths += [f"/?q={attack}" for attack in ("<script>alert(1)</script>", '"><svg onload=alert(3)>')]
    for path in paths:
        page.goto(path)
        for summary in page.locator("summary:visible").all()[:12]:
            summary.click()
        assert page.evaluate(ACTIVE) == [1, 0, 0]
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
        assert page.evaluate("[...document.forms].every(each => new URL(each.action).origin === location.origin)")
        assert not HIDDEN.search(page.content()), path
    page.goto(f"/c/{hostile[5]}")
    assert "{{ 7*7 }}" in page.inner_text("main")
    assert page.noted == []


def test_a_page_can_be_used_with_the_keyboard_alone(opened: Opened) -> None:
    page = opened(CONVO)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Run on this conversation"
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Run Reflex Pass").wait_for()
    assert page.get_by_role("radio", name="This conversation").is_checked()
    assert page.noted == []


def test_on_a_phone_the_rail_is_a_section_that_opens(opened: Opened) -> None:
    page = opened(CONVO)
    assert page.locator(".railbody").is_visible()
    assert not page.locator(".rail summary").is_visible()
    page.set_viewport_size({"width": 390, "height": 800})
    assert not page.locator(".railbody").is_visible()
    page.locator(".rail summary").click()
    assert page.locator(".railbody").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.noted == []


def test_a_page_prints(opened: Opened) -> None:
    page = opened(CONVO, scheme="dark")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not page.locator("nav").first.is_visible()
    assert page.locator(".railbody").is_visible()
    assert page.pdf().startswith(b"%PDF")
    assert page.noted == []


def test_nothing_jumps_as_a_page_loads(opened: Opened) -> None:
    page = opened()
    for path in ("/", CONVO, "/run", "/passes"):
        page.goto(path)
        assert page.evaluate(MOVED) < 0.01, path

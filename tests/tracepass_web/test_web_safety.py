"""Who is answered, and what a page may do."""

from __future__ import annotations

from typing import Any

import pytest

from evalr import InputError
from evalr.background import run_sync
from evalr_tracepass.web.guard import COOKIE, Guard, is_loopback

TOKEN = "a-token-of-these-tests-1"


def test_every_answer_has_the_headers_that_keep_a_page_to_itself(site) -> None:
    made = site()
    for path in ("/", "/none", "/static/traces.css", "/static/traces.js", "/static/icon.svg"):
        headers = made.ask(path).headers
        policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
        assert policy["default-src"] == "'none'"
        assert policy["frame-ancestors"] == "'none'"
        assert {policy[name] for name in ("script-src", "style-src", "form-action", "connect-src")} == {"'self'"}
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "same-origin"
    assert made.ask("/").headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("host", "answered"),
    [
        ("127.0.0.1:8765", True),
        ("localhost:9000", True),
        ("LOCALHOST", True),
        ("[::1]:8765", True),
        ("evil.example:8765", False),
        ("127.0.0.1.evil.example", False),
        ("10.0.0.5:8765", False),
        ("user@127.0.0.1", False),
        ("127.0.0.1:8765/x", False),
        ("127.0.0.1:notaport", False),
        ("", False),
    ],
)
def test_only_names_of_this_machine_are_answered_to(site, host: str, answered: bool) -> None:
    made = site()
    answer = made.ask("/", headers={"host": host})
    assert answer.status_code == (200 if answered else 421)
    assert answered is ("convo_0" in answer.text)


def test_other_machines_reach_it_by_numbers_and_by_the_names_that_were_given(site) -> None:
    made = site(token=TOKEN, local=False, names=["traces.example"])
    known = {"authorization": f"Bearer {TOKEN}"}
    assert made.ask("/", headers={"host": "10.0.0.5:8765", **known}).status_code == 200
    assert made.ask("/", headers={"host": "traces.example", **known}).status_code == 200
    assert made.ask("/", headers={"host": "evil.example", **known}).status_code == 421


def test_with_a_token_nothing_is_shown_without_it(site) -> None:
    made = site(token=TOKEN)
    for headers in (
        {},
        {"authorization": "Bearer wrong"},
        {"authorization": f"Basic {TOKEN}"},
        {"cookie": f"{COOKIE}={TOKEN}"},
    ):
        answer = made.ask("/", headers=headers)
        assert answer.status_code == 401
        assert "convo_0" not in answer.text
        assert made.log.name not in answer.text
    assert made.ask(f"/?token={TOKEN}").status_code == 401
    for method, path in (("GET", "/login"), ("PUT", "/"), ("POST", "/run"), ("GET", "/static/none")):
        assert made.log.name not in made.ask(path, method=method).text
    for fields in ({"form_key": "wrong"}, {"token": "wrong"}):
        assert made.log.name not in made.send("/login", fields, status=403 if "form_key" in fields else 401).text
    sent = made.ask("/login", method="POST", json={}, headers={"origin": "http://127.0.0.1:8765"})
    assert (sent.status_code, made.log.name in sent.text) == (400, False)
    cookie = made.send("/login", {"token": TOKEN}).headers["set-cookie"]
    assert TOKEN not in cookie
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert "convo_0" in made.ask("/", headers={"cookie": cookie.partition(";")[0]}).text
    assert "convo_0" in made.ask("/", headers={"authorization": f"bearer {TOKEN}"}).text


@pytest.mark.parametrize("others", ['_xsrf={"a":1}; ', "a b=c;", ";;=;", f"{COOKIE}=old; "])
def test_cookies_of_other_programs_of_this_machine_do_no_harm(site, others: str) -> None:
    made = site(token=TOKEN)
    own = f"{COOKIE}={made.desk.guard.cookie}"
    for sent in (others + own, f"{own}; {others}"):
        assert made.ask("/", headers={"cookie": sent}).status_code == 200
    assert made.ask("/", headers={"cookie": others}).status_code == 401


def test_a_form_that_does_not_come_whole_is_no_error_of_the_server() -> None:
    from starlette.requests import Request

    from evalr_tracepass.web.forms import FormError, read_form

    async def gone() -> Any:
        return {"type": "http.disconnect"}

    kind = [(b"content-type", b"application/x-www-form-urlencoded")]
    with pytest.raises(FormError, match="did not come whole"):
        run_sync(read_form(Request({"type": "http", "method": "POST", "headers": kind}, gone)))


def test_a_token_must_be_long(site) -> None:
    with pytest.raises(InputError, match="at least 16 characters"):
        Guard(token="short")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 303),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": ""}, 403),
        ({"origin": "http://127.0.0.1:9999"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"form_key": "wrong"}, 403),
    ],
)
def test_a_form_of_another_page_is_not_taken(site, headers: dict[str, str], status: int) -> None:
    made = site(token=TOKEN)
    fields: dict[str, Any] = {"token": TOKEN}
    if "form_key" in headers:
        fields["form_key"] = headers["form_key"]
        headers = {}
    made.send("/login", fields, status=status, **headers)


def test_only_short_forms_of_the_one_kind_are_read(site) -> None:
    made = site(token=TOKEN)
    own = {"origin": "http://127.0.0.1:8765"}
    assert made.ask("/login", method="POST", json={"token": TOKEN}, headers=own).status_code == 400
    kind = {"content-type": "application/x-www-form-urlencoded"}
    assert made.ask("/login", method="POST", content=b"a=" + b"x" * 1_000_001, headers=own | kind).status_code == 400
    assert made.ask("/login", method="POST", content=b"a=1&" * 6_000, headers=own | kind).status_code == 400
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        assert made.ask("/", method=method).status_code == 405


def test_a_link_out_of_the_folder_is_not_followed(tmp_path, site) -> None:
    from evalr_tracepass.web.reading import read_log

    made = site()
    inside = tmp_path / "traces"
    inside.mkdir()
    (inside / "own.jsonl").write_text(made.log.read_text())
    secret = tmp_path / "secret.jsonl"
    secret.write_text(made.log.read_text().replace("convo_", "secret_"))
    try:
        (inside / "link.jsonl").symlink_to(secret)
    except OSError:
        pytest.skip("this system makes no links")
    reading = read_log(str(inside))
    reading.begin()
    found = reading.wait(10)
    assert {entry.convo_id.partition("_")[0] for entry in found.entries} == {"convo"}
    assert found.left_out["link that leads out of the folder"] == 1


def test_another_site_can_link_to_it_and_not_use_it(site) -> None:
    made = site()
    linked = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    assert made.ask("/", headers=linked).status_code == 200
    for mode in ("no-cors", "cors", "websocket"):
        assert made.ask("/run", headers={"sec-fetch-site": "cross-site", "sec-fetch-mode": mode}).status_code == 403
    fetched = {"sec-fetch-site": "same-origin", "sec-fetch-mode": "cors"}
    assert made.ask("/", headers=fetched).status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "/?q=%ff&user=%ed%a0%80&show=%00&pass=%00%0d%0aSet-Cookie:x",
        "/?q=%E2%80%AE&page=%D9%A3",
        "/c/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "/passes/%00",
        "/passes/..%2f..%2fx/failed",
        "/signals/edit?id=%ff",
        "/run?c=%ff&s=%00&t.x=%00&since=%00&scope=%ed%a0%80&set=1",
        "/?" + "&".join(f"c={n}" for n in range(4_000)),
    ],
)
def test_whatever_an_address_holds_is_answered(site, path: str) -> None:
    answer = site(passes=1).ask(path)
    assert answer.status_code in (200, 404, 422)
    assert "set-cookie" not in answer.headers
    assert not set("\x00\r\u202e\u0663") & set(answer.text)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "localhost", "::1", "[::1]"])
def test_loopback_is_this_machine(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.com", "", "localhost.evil.example"])
def test_anything_else_is_not(host: str) -> None:
    assert not is_loopback(host)

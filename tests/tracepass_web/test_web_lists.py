"""The list and the conversations of the traces page."""

from __future__ import annotations

import html
import re
from collections.abc import Callable

from evalr_tracepass.web.snapshot import key_of

SiteOf = Callable[..., object]


def rows(page: str) -> list[str]:
    body = page.partition("<tbody>")[2].partition("</tbody>")[0]
    return [html.unescape(re.sub(r"<[^>]+>", " ", row)) for row in body.split("<tr>")[1:]]


def names(page: str) -> list[str]:
    return [next(word for word in row.split() if word.startswith("convo_")) for row in rows(page)]


def test_a_list_shows_turns_tokens_and_at_most_three_chips_of_what_fired(site) -> None:
    made = site(passes=1)
    found = {row.split()[0]: " ".join(row.split()) for row in rows(made.page("/"))}
    assert len(found) == 12
    assert "7 turns | 600 input | 40 output" in found["convo_0"]
    assert re.search(r"negative 67% looping \d+%$", found["convo_0"])
    assert "%" not in found["convo_1"]
    assert "clean" not in " ".join(found.values())
    assert "error" in found["convo_5"]


def test_filters_are_those_of_the_list(site) -> None:
    made = site(passes=1)
    assert names(made.page("/?q=ORDER+a-7%3F")) == ["convo_7"]
    assert names(made.page("/?user=user_3")) == ["convo_10", "convo_3"]
    assert names(made.page("/?errors=1")) == ["convo_10", "convo_5", "convo_0"]
    assert set(names(made.page("/?show=flagged"))) == {f"convo_{n}" for n in (0, 3, 4, 6, 8, 9)}
    assert set(names(made.page("/?show=heuristic-loop"))) == {"convo_0", "convo_4", "convo_8"}
    assert set(names(made.page("/?show=heuristic-loop&user=user_4"))) == {"convo_4"}
    assert "No conversation matches." in made.page("/?q=nothing+like+it")


def test_one_pass_the_latest_or_all(site) -> None:
    made = site(passes=1)
    first = made.store.passes(made.desk.kept.account)[0].id
    assert len(names(made.page(f"/?show=flagged&pass={first}"))) == 6
    assert len(names(made.page("/?show=flagged&pass=all"))) == 6
    assert names(made.page("/?show=flagged&pass=none-such")) == []


def test_without_a_pass_the_seed_says_what_to_do(site) -> None:
    page = site().page("/")
    assert "No Reflex passes yet" in page
    assert "Run a semantic pass over these traces to find frustration, loops, jailbreaks, and custom product" in page


def test_a_conversation_has_its_chips_at_its_turns_and_a_rail(site) -> None:
    made = site(passes=1)
    page = made.page(f"/c/{key_of('convo_0', 'user_0')}")
    turn = page.partition('id="turn-6"')[2].partition("</article>")[0]
    assert "negative</bdi> 67%" in turn
    rail = page.partition('<aside class="rail">')[2].partition("</aside>")[0]
    assert "heuristic-negative-tone</bdi> 0.67" in rail
    assert 'href="#turn-6"' in rail
    assert "Where is my order A-0?" in page
    assert "small-1" in page
    assert "the database is away" in page


def test_text_is_shown_while_the_log_has_it_and_results_after(site) -> None:
    made = site(passes=1)
    address = f"/c/{key_of('convo_0', 'user_0')}"
    kept = [line for line in made.log.read_text().splitlines() if '"convo_0"' not in line]
    made.log.write_text("".join(line + "\n" for line in kept))
    page = made.page(address)
    assert "Where is my order" not in page
    assert "heuristic-negative-tone" in page
    made.desk.reading.wait(5)
    made.desk.reading._thread.join(10)
    page = made.page(address)
    assert "This conversation is not in the log any more" in page
    assert "heuristic-negative-tone" in page
    assert "not in this log any more" in made.page("/?show=flagged")


def test_what_is_not_there_is_said(site) -> None:
    made = site()
    made.page("/c/0123456789abcdef01", status=404)
    made.page("/no/such/page", status=404)
    made.page("/static/..%2f..%2fpyproject.toml", status=404)

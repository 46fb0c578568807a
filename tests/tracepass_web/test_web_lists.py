"""The list and the conversations of the traces page."""

from __future__ import annotations

import html
import re

from traces_desk import desk_lines, write_log

from evalr_tracepass.web.snapshot import key_of


def rows(page: str) -> list[str]:
    body = page.partition("<tbody")[2].partition("</tbody>")[0]
    return [html.unescape(re.sub(r"<[^>]+>", " ", row.partition(">")[2])) for row in body.split("<tr")[1:]]


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
    address = f"/c/{key_of('convo_0', 'user_0')}"
    page = made.page(address)
    turn = page.partition('id="turn-6"')[2].partition("</article>")[0]
    assert "negative</bdi> 67%" in turn
    rail = page.partition('<aside class="rail"')[2].partition("</aside>")[0]
    assert "heuristic-negative-tone</bdi> 0.67" in rail
    assert f'href="{address}#turn-6"' in rail
    assert made.ask(f"{address}?to=heuristic-negative-tone").headers["location"] == f"{address}#turn-6"
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


def test_long_conversations_and_lists_come_in_pages(site) -> None:
    turns = [{"role": "person", "text": "useless, worst, annoyed" if n == 450 else f"turn {n}"} for n in range(500)]
    made = site([{"id": f"convo_{n}", "request": "r", "turns": turns[:1]} for n in range(120)])
    page = made.page("/")
    assert len(rows(page)) == 50
    assert "1–50 of 120 conversations" in page
    assert "101–120 of 120 conversations" in made.page("/?page=3")
    assert made.page("/?page=99") == made.page("/?page=3")
    for page in ("0", "-1", "x", "1e9", "٣", "99999999999"):
        assert len(rows(made.page(f"/?page={page}"))) in (50, 20)


def test_ten_thousand_conversations_come_fifty_at_a_time(site) -> None:
    turns = [{"role": "person", "text": "Where is my order?"}]
    made = site([{"id": f"convo_{n}", "request": "r", "turns": turns} for n in range(10_000)])
    for path in ("/", "/?page=200", "/?q=where+is"):
        page = made.page(path)
        assert len(rows(page)) == 50
        assert "of 10,000 conversations" in page
        assert len(page) < 60_000


def test_a_turn_beyond_the_first_page_is_found(site) -> None:
    turns = [{"role": "person", "text": "useless, worst, annoyed" if n == 450 else f"turn {n}"} for n in range(500)]
    made = site([{"id": "convo_0", "request": "r", "turns": turns}], passes=1)
    address = f"/c/{key_of('convo_0', '')}"
    page = made.page(address)
    assert f'href="{address}?page=3#turn-450"' in page
    assert page.count("<article") == 200
    assert "useless, worst, annoyed" not in page
    assert "useless, worst, annoyed" in made.page(f"{address}?page=3")
    assert f'href="{address}#turn-' not in made.page(f"{address}?page=3")


def test_users_may_share_an_id(site) -> None:
    turns = [{"role": "person", "text": "This is useless. I am so annoyed, it is the worst answer ever!"}]
    calm = [{"role": "person", "text": "Thanks."}]
    lines = [
        {"id": "convo_1", "user": "ann", "request": "r", "turns": turns},
        {"id": "convo_1", "user": "bob", "request": "r", "turns": calm},
    ]
    made = site(lines, passes=1)
    found = {row.split()[1]: row for row in rows(made.page("/"))}
    assert "negative" in found["ann"]
    assert "negative" not in found["bob"]
    assert len(rows(made.page("/?show=flagged"))) == 1
    assert "0 fired" in made.page(f"/c/{key_of('convo_1', 'bob')}")


def test_a_log_that_is_gone_is_said_and_found_again(site) -> None:
    made = site(passes=1)
    text, address = made.log.read_text(), f"/c/{key_of('convo_0', 'user_0')}"
    made.log.unlink()
    for path in (address, "/", "/?show=flagged", "/run?scope=filters"):
        made.ask(path)
        made.desk.reading._thread.join(10)
        page = made.ask(path).text
        assert "The log cannot be read" in page
        assert "Where is my order" not in page
    assert len(rows(made.page("/?show=flagged"))) == 6
    assert "heuristic-negative-tone" in made.page(address)
    made.log.write_text(text)
    made.desk.reading._looked = 0
    made.ask("/")
    made.desk.reading._thread.join(10)
    assert len(rows(made.page("/"))) == 12


def test_a_conversation_that_goes_on_is_read_again(site) -> None:
    made = site()
    lines = desk_lines(12)
    lines[0]["turns"].append({"role": "agent", "text": "And one more thing."})
    write_log(made.log, lines)
    assert "And one more thing." in made.page(f"/c/{key_of('convo_0', 'user_0')}")


def test_new_files_of_a_folder_are_seen(site, tmp_path) -> None:
    from evalr_tracepass.web.reading import read_log

    made = site()
    folder = tmp_path / "many"
    (folder / "in").mkdir(parents=True)
    (folder / "a.jsonl").write_text(made.log.read_text())
    (folder / "notes.txt").write_text("no log")
    reading = read_log(str(folder))
    reading.begin()
    assert len(reading.wait(10).entries) == 12
    (folder / "in" / "b.jsonl").write_text(made.log.read_text().replace("convo_", "other_"))
    reading._looked = 0
    reading.look()
    reading._thread.join(10)
    assert len(reading.snapshot.entries) == 24
    assert reading.snapshot.left_out["file of a kind that no reader knows"] == 1


def test_numbers_of_a_log_that_count_nothing_are_not_shown(site) -> None:
    lines = desk_lines(3)
    for count in (10**400, 9 * 10**4299, -1, True, 0.5):
        spent = {"input_tokens": count, "output_tokens": count, "latency": count if count != 0.5 else -0.5}
        lines[0]["turns"].append({"role": "agent", "text": "Done.", "metadata": spent})
    made = site(lines, passes=1)
    found = {row.split()[0]: " ".join(row.split()) for row in rows(made.page("/"))}
    assert "12 turns | 600 input | 40 output" in found["convo_0"]
    page = made.page(f"/c/{key_of('convo_0', 'user_0')}")
    assert "12 turns | 600 input | 40 output" in page
    assert " s</bdi>" not in page


def test_however_many_rows_the_store_has_all_of_them_make_the_chips(site, monkeypatch) -> None:
    made = site(passes=2)
    whole = made.page("/?pass=all")
    monkeypatch.setattr("evalr_tracepass.web.kept._TOGETHER", 1)
    assert rows(made.page("/?pass=all")) == rows(whole)

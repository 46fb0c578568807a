"""The run panel, the dialog before a rerun, passes as they go, and signals of one's own."""

from __future__ import annotations

import html
import re
import threading
import time
from typing import Any

import pytest
from reflex_service import KEY, FakeReflex

from evalr.errors import StoreError
from evalr.tracepass import BatchTransport, LabelScore, LivePreview, Prediction, Preset, Signal
from evalr_tracepass.web.snapshot import key_of

TONE, LOOP = "heuristic-negative-tone", "heuristic-loop"


def key(number: int) -> str:
    return key_of(f"convo_{number}", f"user_{number % 7}")


def told(page: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def ended(made: Any, address: str) -> str:
    """The page of a pass, once it has ended."""
    for _ in range(200):
        page = made.page(address)
        if not re.search('data-state="(waiting|running)"', page):
            return page
        time.sleep(0.05)
    raise AssertionError(page)


def panel(made: Any, query: str) -> str:
    for _ in range(100):
        page = made.page(query)
        if "Counting trace inputs..." not in page:
            return page
        time.sleep(0.05)
    raise AssertionError(page)


# The panel


def test_the_panel_has_the_scopes_the_signals_and_the_estimate_of_the_seed(site) -> None:
    page = panel(site(rate=0.00003), f"/run?c={key(0)}&c={key(1)}")
    said = told(page)
    for text in (
        "Run Reflex Pass",
        "Turn traces into classifier inputs, then run semantic signals in batch.",
        "Selected (2)",
        "Current filters",
        "This conversation",
        "Last 24h",
        "Custom range",
        "Built-in signals",
        "Custom signals",
        "Each signal runs on the input shape it was trained for.",
        "Estimated cost: under $0.01",
        "Inputs are transformed trace snippets. Predictions are inputs multiplied by selected models.",
    ):
        assert text in said, text
    assert re.search(r"\d+ trace inputs \d+ predictions Estimated cost", said), "what is read here is sent nowhere"
    assert re.search("Jailbreak User chat unavailable", said)
    assert re.search("Stuck-in-a-loop Agent chat unavailable", said)
    assert "Negative tone User chat" in said
    assert "No answer Full trace" in said
    assert 'value="jailbreak" disabled' in page
    assert 'value="heuristic-loop" checked' in page


@pytest.mark.parametrize(
    ("query", "conversations"),
    [
        (f"c={key(0)}&c={key(5)}", 2),
        ("scope=filters", 12),
        ("scope=filters&errors=1", 3),
        ("scope=filters&q=annoyed", 4),
        (f"convo={key(3)}", 1),
        ("scope=24h", 0),
        ("scope=range&since=2026-11-03&until=2026-11-05", 3),
        ("scope=range&until=2026-11-02", 2),
        ("scope=range&until=9999-12-31", 12),
    ],
)
def test_an_estimate_is_of_the_scope(site, query: str, conversations: int) -> None:
    said = told(panel(site(), f"/run?set=1&s={TONE}&{query}"))
    noun = "conversation" if conversations == 1 else "conversations"
    assert f"of {conversations} {noun}" in said
    assert f"{2 * conversations} trace inputs" in said


@pytest.mark.parametrize(
    ("query", "refusal"),
    [
        ("set=1", "Choose at least one signal."),
        ("scope=selected", "Select at least one conversation."),
        ("c=0123", "1 of the selected conversations are not in the log any more."),
        ("scope=range", "A custom range needs a first day"),
        ("scope=range&since=yesterday", "write a day as 2026-11-30"),
        ("scope=range&since=2026-11-05&until=2026-11-03", "The range ends before it begins."),
        ("set=1&s=jailbreak", "Choose at least one signal."),
    ],
)
def test_what_cannot_be_run_is_said(site, query: str, refusal: str) -> None:
    made = site()
    page = made.page(f"/run?{query}", status=422)
    assert refusal in told(page)
    fields: dict[str, list[str]] = {}
    for name, _, value in (part.partition("=") for part in query.split("&")):
        fields.setdefault(name, []).append(value)
    assert refusal in told(made.send("/run", fields, status=422).text)
    assert made.store.passes(made.desk.kept.account) == []


def test_a_signal_can_read_something_else_and_what_it_reads_is_shown(site) -> None:
    page = panel(site(), f"/run?set=1&s={TONE}&t.{TONE}=full_conversation&t.{LOOP}=user_message&preview=1&c={key(0)}")
    said = told(page)
    assert "1 trace input " in said
    assert "Full conversation:" in said
    assert "Full trace: can be expensive; may exceed context window; not appropriate for per-turn labeling" in said
    assert '<option value="full_conversation" selected>' in page


def test_a_preset_ticks_its_signals(site) -> None:
    made = site()
    made.store.save_preset(made.desk.kept.account, Preset(name="Mood & loops", signals=(TONE, LOOP)))
    page = panel(made, f"/run?c={key(0)}")
    link = html.unescape(re.search(r'href="([^"]+)"><bdi>Mood &amp; loops', page)[1])
    page = panel(made, link)
    assert re.findall(r'name="s" value="([^"]+)" checked', page) == [LOOP, TONE]
    assert "Selected (1)" in told(page)


# Running


def test_a_pass_is_run_and_its_flagged_conversations_are_a_click_away(site) -> None:
    made = site()
    address = made.send("/run", {"set": "1", "s": [TONE, LOOP], "scope": "filters"}).headers["location"]
    page = ended(made, address)
    said = told(page)
    assert "Pass complete 6 conversations flagged" in said
    assert "selected labels" in said
    assert "Flagged conversations are ready." in said
    link = html.unescape(re.search('<a class="button primary" href="([^"]+)">View flagged', page)[1])
    assert {f"convo_{n}" for n in (0, 3, 4, 6, 8, 9)} == set(re.findall(r"convo_\d+(?=</bdi>)", made.page(link)))
    history = told(made.page("/passes"))
    assert "complete All conversations Repeated steps" in history
    scope = made.store.passes(made.desk.kept.account)[0].scope
    assert scope.chosen == "all"


def test_a_selection_is_kept_as_one(site) -> None:
    made = site()
    ended(made, made.send("/run", {"set": "1", "s": TONE, "c": [key(0), key(1)]}).headers["location"])
    (found,) = made.store.passes(made.desk.kept.account)
    assert found.scope.kind == "selection"
    assert set(found.scope.convo_ids) == {"convo_0", "convo_1"}
    assert found.total_inputs == 4


def test_before_a_rerun_it_is_asked_and_said_how_many_have_labels(site) -> None:
    made = site()
    fields = {"set": "1", "s": TONE, "c": [key(0), key(1), key(2)]}
    ended(made, made.send("/run", fields).headers["location"])
    fields["c"] = [key(n) for n in range(9)]
    page = made.send("/run", fields, status=200).text
    said = told(page)
    assert "Rerun existing Reflex results? 3 of 9 selected conversations already have labels." in said
    assert "Cancel Run only new Rerun all" in said
    assert len(made.store.passes(made.desk.kept.account)) == 1
    cancel = html.unescape(re.search('href="([^"]+)" id="cancel"', page)[1])
    assert "Selected (9)" in told(panel(made, cancel))
    ended(made, made.send("/run", {**fields, "rerun": "new"}).headers["location"])
    ended(made, made.send("/run", {**fields, "rerun": "all"}).headers["location"])
    everything, new, _ = made.store.passes(made.desk.kept.account)
    assert (new.total_inputs, new.answered) == (12, 6)
    assert everything.total_inputs == 18


class Slow:
    """A classifier that waits, and then fails on some texts."""

    name, version, labels = "heuristic-negative-tone", "1", ("neutral", "negative")

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.fails = True

    def predict(self, texts: Any) -> list[Prediction]:
        self.go_on.wait(10)
        if self.fails and any("annoyed" in text for text in texts):
            raise RuntimeError("no")
        return [Prediction(self.name, "single_label", (LabelScore("negative", 0.9, True),), version="1") for _ in texts]


def test_a_running_pass_says_how_far_it_is_and_what_failed_is_sent_again(site) -> None:
    from evalr.tracepass import LocalTransport

    slow = Slow()
    made = site(reflexes={slow.name: slow}, transport=LocalTransport({slow.name: slow}, largest=4, together=1))
    address = made.send("/run", {"set": "1", "s": TONE, "scope": "filters"}).headers["location"]
    for _ in range(100):
        page = made.page(address)
        if 'data-state="running"' in page:
            break
        time.sleep(0.05)
    said = told(page)
    assert "0 / 24 inputs complete 0.0%" in said
    assert '<noscript><meta http-equiv="refresh" content="2"></noscript>' in page
    assert "running" in told(made.page("/passes"))
    slow.go_on.set()
    page = ended(made, address)
    said = told(page)
    assert "Pass complete with failed rows 20 completed 4 failed" in said, said
    for text in ("View failed inputs", "Retry failed", "View flagged conversations"):
        assert text in said
    assert page.count('class="button primary"') + page.count('class="primary"') == 1
    failed = told(made.page(f"{address}/failed"))
    assert "4 inputs failed" in failed
    assert "convo_3" in failed
    slow.fails = False
    made.send(f"{address}/retry", {})
    assert "Pass complete 12 conversations flagged" in told(ended(made, address))
    assert "Nothing of this pass has failed." in told(made.page(f"{address}/failed"))


def test_a_pass_that_is_asked_for_twice_is_run_and_paid_for_once(site) -> None:
    from evalr.tracepass import LocalTransport

    slow = Slow()
    made = site(reflexes={slow.name: slow}, transport=LocalTransport({slow.name: slow}, largest=4, together=1))
    fields = {"set": "1", "s": TONE, "c": [key(1), key(2)]}
    first, again = (made.send("/run", fields).headers["location"] for _ in range(2))
    other = made.send("/run", {**fields, "c": [key(1)]}).headers["location"]
    slow.go_on.set()
    assert first == again != other
    for address in (first, other):
        assert "Pass complete" in told(ended(made, address))
    assert len(made.store.passes(made.desk.kept.account)) == 2
    later = made.send("/run", {**fields, "rerun": "all"}).headers["location"]
    assert later != first
    ended(made, later)


def test_a_store_that_cannot_be_read_is_not_one_without_the_pass(site, monkeypatch: pytest.MonkeyPatch) -> None:
    made = site(passes=1)
    account = made.desk.kept.account
    (found,) = made.store.passes(account)

    def locked(*args: Any, **options: Any) -> Any:
        raise StoreError("passes.db: database is locked")

    monkeypatch.setattr(made.store, "get_pass", locked)
    monkeypatch.setattr(made.store, "passes", locked)
    for path in (f"/passes/{found.id}", "/passes", "/"):
        assert "database is locked" in told(made.page(path, status=503))


def test_a_pass_that_was_cut_short_can_be_resumed(site) -> None:
    made = site()
    address = made.send("/run", {"set": "1", "s": TONE, "scope": "filters"}).headers["location"]
    ended(made, address)
    account = made.desk.kept.account
    (found,) = made.store.passes(account)
    other = found._replace(id="cut-short", status="running", completed_at=None, planned=False, completed_inputs=0)
    made.store.add_pass(account, other)
    page = made.page("/passes/cut-short")
    assert "Pass cut short" in page
    assert "Resume" in page
    made.send("/passes/cut-short/resume", {})
    assert "Pass complete 4 conversations flagged" in told(ended(made, "/passes/cut-short"))


def test_a_pass_that_ends_while_its_page_is_made_was_not_cut_short(site, monkeypatch: pytest.MonkeyPatch) -> None:
    made = site(passes=1)
    account = made.desk.kept.account
    (found,) = made.store.passes(account)
    job = made.desk.runner.start("ending", lambda _: found)
    while not job.has_ended:
        time.sleep(0.01)
    job.has_ended = False
    made.store.add_pass(account, found._replace(id="ending", status="running", completed_at=None))
    get_pass = made.store.get_pass

    def ending(*arguments: Any) -> Any:
        was = get_pass(*arguments)
        job.has_ended = True
        return was

    monkeypatch.setattr(made.store, "get_pass", ending)
    assert 'data-state="running"' in made.page("/passes/ending")
    assert 'data-state="cut"' in made.page("/passes/ending")


def test_a_pass_of_models_that_are_not_here_says_so(site) -> None:
    made = site()
    address = made.send("/run", {"set": "1", "s": TONE, "scope": "filters"}).headers["location"]
    ended(made, address)
    account = made.desk.kept.account
    (found,) = made.store.passes(account)
    signal = {**found.selected_signals[0], "model": "away", "labels": []}
    made.store.add_pass(account, found._replace(id="away", status="failed", planned=False, selected_signals=(signal,)))
    made.send("/passes/away/resume", {})
    page = ended(made, "/passes/away")
    assert "away" in told(page.partition('role="alert"')[2])


def test_a_pass_of_a_service_shows_its_batch_and_what_failed_is_sent_again(site) -> None:
    turns = ["good", "bad", "very bad", "good"]
    lines = [
        {"id": f"convo_{n}", "request": "r", "turns": [{"role": "person", "text": text}]}
        for n, text in enumerate(turns)
    ]
    fake = FakeReflex(delay=1_000_000, fail_row=lambda text: text == "very bad")
    made = site(lines, reflexes={}, transport=BatchTransport(fake.service()), rate=0.5)
    own = Signal(signal_id="tone", model="tone", display_name="Tone", labels=("good", "bad"), fires_on=("bad",))
    made.store.save_signal(made.desk.kept.account, own)
    page = panel(made, "/run?set=1&s=tone")
    assert "4 trace inputs 4 predictions Batch mode Estimated cost: $2.00" in told(page)
    address = made.send("/run", {"set": "1", "s": "tone"}).headers["location"]
    for _ in range(200):
        page = made.page(address)
        if "rbatch-" in page:
            break
        time.sleep(0.02)
    assert re.search(r"rbatch-\S+ 0 / 4 inputs complete 0\.0%", told(page))
    fake.delay = 0
    said = told(ended(made, address))
    assert "Pass complete with failed rows 3 completed 1 failed" in said
    assert "1 failed, overloaded" in told(made.page(f"{address}/failed"))
    fake.fail_row = lambda _: False
    made.send(f"{address}/retry", {})
    assert "Pass complete 2 conversations flagged" in told(ended(made, address))
    assert fake.billed.total() == 5  # four, and one of them again
    assert KEY not in made.page(address)


def test_a_service_that_is_away_leaves_a_pass_that_can_be_resumed(site) -> None:
    fake = FakeReflex(key="another")
    made = site(reflexes={}, transport=BatchTransport(fake.service(key=KEY)))
    address = made.send("/run", {"set": "1", "s": "jailbreak", "scope": "filters"}).headers["location"]
    page = ended(made, address)
    assert "Pass cut short" in page
    assert "401" in told(page) or "key" in told(page)
    assert KEY not in page
    fake.key = KEY
    made.send(f"{address}/resume", {})
    assert "Pass complete" in told(ended(made, address))


def test_a_live_preview_says_how_little_it_sends(site) -> None:
    made = site(reflexes={}, transport=LivePreview(FakeReflex().service()), rate=None)
    said = told(panel(made, "/run"))
    assert "Live preview: at most 25 conversations, 200 inputs of each transform, 1,000 predictions" in said
    assert "Estimated cost: unknown" in said


# Read-only


def test_read_only_shows_results_and_has_nothing_to_press(site) -> None:
    made = site(passes=1, read_only=True)
    found = made.store.passes(made.desk.kept.account)[0].id
    for path in ("/", f"/c/{key(0)}", "/passes", f"/passes/{found}", f"/passes/{found}/failed", "/signals"):
        page = made.page(path)
        assert 'method="post"' not in page
        assert "/run" not in page
        assert 'name="c"' not in page
        assert "read-only" in page
    assert "heuristic-negative-tone" in made.page(f"/c/{key(0)}")
    made.page("/run", status=403)
    made.page("/signals/edit", status=403)
    for path in ("/run", f"/passes/{found}/retry", f"/passes/{found}/resume", "/signals/save", "/signals/delete"):
        made.send(path, {"set": "1", "s": TONE, "name": "x", "model": TONE}, status=403)
    assert len(made.store.passes(made.desk.kept.account)) == 1
    assert made.store.signals(made.desk.kept.account) == {}


def test_every_change_needs_a_form_of_this_page(site) -> None:
    made = site(passes=1)
    found = made.store.passes(made.desk.kept.account)[0].id
    for path in ("/run", f"/passes/{found}/retry", f"/passes/{found}/resume", "/signals/save", "/signals/delete"):
        made.send(path, {"set": "1", "s": TONE, "form_key": ""}, status=403)
        made.send(path, {"set": "1", "s": TONE}, status=403, origin="http://evil.example")
        assert made.ask(path).status_code in (404, 405) or path == "/run"
    assert len(made.store.passes(made.desk.kept.account)) == 1


# Signals


def test_a_signal_of_ones_own_is_kept_with_what_it_inspects(site) -> None:
    made = site()
    page = told(made.page("/signals/edit"))
    assert "What should this signal inspect?" in page
    for text in ("User chat", "Agent chat", "Full trace", "Maximum tokens", "Include tool context"):
        assert text in page
    form = {"name": "Bad handoff", "model": TONE, "inspects": "full_trace", "fires_on": "negative", "ticked": "1"}
    form |= {"max_tokens": "900", "tools": "1", "threshold": "0.4"}
    address = made.send("/signals/save", form).headers["location"]
    assert address == "/signals/edit?id=bad-handoff"
    own = made.store.signals(made.desk.kept.account)["bad-handoff"]
    assert (own.transform.kind, own.transform.max_tokens, own.transform.version) == ("full_conversation", 900, 1)
    assert own.transform.include_tool_calls
    assert own.thresholds == {"negative": 0.4}
    assert own.created is not None
    made.send("/signals/save", {**form, "signal_id": "bad-handoff", "max_tokens": "500"})
    again = made.store.signals(made.desk.kept.account)["bad-handoff"]
    assert (again.transform.max_tokens, again.transform.version, again.created) == (500, 2, own.created)
    made.send("/signals/save", {**form, "signal_id": "bad-handoff", "max_tokens": "500"})
    assert made.store.signals(made.desk.kept.account)["bad-handoff"].transform.version == 2
    assert "Custom signals Bad handoff Full trace" in told(panel(made, "/run"))
    assert 'value="500"' in made.page(address)
    assert "Pass complete" in told(ended(made, made.send("/run", {"set": "1", "s": "bad-handoff"}).headers["location"]))
    made.send("/signals/delete", {"signal_id": "bad-handoff"})
    assert made.store.signals(made.desk.kept.account) == {}
    made.page(address, status=404)


@pytest.mark.parametrize(
    ("changed", "refusal"),
    [
        ({"name": ""}, "Name:"),
        ({"name": "Jailbreak"}, "there is a signal 'jailbreak' already"),
        ({"name": "日本"}, "Latin"),
        ({"inspects": "everything"}, "Choose one of the three"),
        ({"max_tokens": "many"}, "Maximum tokens"),
        ({"max_tokens": "3"}, "max_tokens"),
        ({"tools": "1"}, "Tool context"),
        ({"threshold": "2"}, "Threshold"),
        ({"fires_on": "no such label"}, "not among its labels"),
        ({"model": ""}, "model"),
    ],
)
def test_what_is_no_signal_is_not_kept(site, changed: dict[str, str], refusal: str) -> None:
    made = site()
    form = {"name": "Mine", "model": TONE, "inspects": "user_chat", "fires_on": "negative", **changed}
    page = made.send("/signals/save", form, status=422).text
    assert refusal in told(page)
    assert made.store.signals(made.desk.kept.account) == {}

"""The page of a Reflexio log: its impact row, comparisons, learnings and sessions, as who was mailed it opens it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from made_up_log import made_up_log
from reflexio_writing import BEGIN, Writer

from evalr.logs import Card, Cards, Cell, Figure, Notice, Numbers, Table, Tile, Tiles
from evalr.logs.blocks import Block
from evalr.reports.report import Report, report

pytest.importorskip("jinja2", reason="pages need the extra evalr[report]")
pytest.importorskip("vl_convert", reason="pages need the extra evalr[report]")

NOW = datetime(2026, 12, 1, tzinfo=UTC)
ATTACKS = (
    "<script>alert(1)</script>",
    '"><svg onload=alert(2)><animate onbegin=alert(3)>',
    "</title></style><img src=x onerror=alert(4)>",
    "{{ 7*7 }}${alert(5)}",
    "\u202egnp.exe\u2066\u200bhidden\x1b[31m",
    "<iframe srcdoc='<script>parent.alert(6)</script>'>" * 300,
)


def asked(path: Path, **settings: Any) -> Report:
    return report(path, now=NOW, details=True, **settings)


def own_page(found: Report) -> str:
    """Without what pages show of any log, which takes long to draw and is tested with them."""
    return replace(found, sections=()).to_html()


def blocks(found: Report, name: str) -> list[Block]:
    return [block for each in found.further if each.name == name for block in each.blocks]


def tiles(found: Report) -> list[Tile]:
    return [tile for block in blocks(found, "arms") if isinstance(block, Tiles) for tile in block.tiles]


def texts(block: Block) -> str:
    """Every text of a block."""
    return " ".join(_texts(block))


def _texts(part: Any) -> Iterator[str]:
    if isinstance(part, str):
        yield part
    elif isinstance(part, tuple):
        for each in part:
            yield from _texts(each)
    elif isinstance(part, Notice | Tiles | Tile | Table | Cards | Card):
        for name in part.__slots__:
            yield from _texts(getattr(part, name))
    elif isinstance(part, Figure):
        yield from _texts((part.title, part.says, part.footnote))


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_up_log(tmp_path_factory.mktemp("page") / "reflexio.db", sessions=240, users=60)


@pytest.fixture(scope="module")
def tagged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "reflexio.db"
    return made_up_log(path, sessions=240, users=60, release="0.2.25")


@pytest.fixture(scope="module")
def found(log: Path) -> Report:
    return asked(log)


@pytest.fixture(scope="module")
def page(found: Report) -> str:
    return own_page(found)


# The impact row


def test_the_impact_row_is_there_whenever_a_session_has_an_arm(found: Report, tagged: Path) -> None:
    assert found.further[0].name == "arms"
    assert found.further[0].leads
    assert found.further[0].title == "impact of Reflexio: treatment v holdout · experiment:autumn-2026"
    assert asked(tagged).further[0].title == "impact of Reflexio: treatment v control · tag"


def test_the_summary_begins_with_the_tiles_of_the_row(page: str) -> None:
    summary, row = page.split('<section class="box" id="summary">')[1].split('<section class="box" id="first1">')
    assert re.findall('<a href="#first1">(.*?)</a>', summary) == ["lift in success", "per-turn win rate"]
    assert "impact of Reflexio" in row


def test_numbers_that_are_no_headlines_are_folded_so_that_what_leads_is_near(newest_log: Path) -> None:
    found = asked(newest_log)
    undrawn = [
        replace(section, rows=[replace(row, details=None) for row in section.rows]) for section in found.sections
    ]
    page = replace(found, sections=undrawn).to_html()
    summary = page.split('<section class="box" id="summary">')[1].split('<section class="box" id="first1">')[0]
    open_, folded = summary.split("<details")
    assert {*re.findall('<a href="#m[0-9]+-([0-9]+)">', open_)} == {"0"}
    others = re.findall('<a href="#(m[0-9]+-[0-9]+)">', folded)
    assert f"{len(others)} more numbers" in folded
    assert len(others) > 20
    assert all(f'id="{anchor}"' in page for anchor in others)


def test_without_an_arm_in_the_period_there_is_none_and_the_page_says_why(tmp_path: Path) -> None:
    path = made_up_log(tmp_path / "reflexio.db", sessions=40, users=20, experiment=None)
    before = asked(path)
    assert "arms" not in [each.name for each in before.further]
    assert "no session has an arm" in texts(blocks(before, "health")[-1])
    assert "impact of Reflexio" not in own_page(before)


def test_a_tag_of_another_period_makes_no_row(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "reflexio.db", "0.2.25")
    writer.session("old", at=BEGIN, metadata='{"reflexio_retrieval_enabled": true}')
    writer.session("new", at=BEGIN + timedelta(days=9))
    path = writer.done()
    later = asked(path, since=BEGIN + timedelta(days=2))
    assert "arms" not in [each.name for each in later.further]
    assert "arms" in [each.name for each in asked(path).further]


def test_arms_that_are_not_known_to_be_random_are_called_observational_on_chart_and_tile(tagged: Path) -> None:
    plain, randomised = asked(tagged), asked(tagged, randomised=True)
    notice, *_ = blocks(plain, "arms")
    assert isinstance(notice, Notice)
    assert (notice.tone, notice.text.partition(":")[0]) == ("warning", "observational")
    assert "observational, not causal" in tiles(plain)[0].lines
    (chart,) = [block for block in blocks(plain, "arms") if isinstance(block, Figure)]
    assert "observational" in str(chart.title)
    assert "untagged" in str(chart.footnote).casefold()
    assert "treatment" in chart.says
    assert "control" in chart.says
    assert not [block for block in blocks(randomised, "arms") if "observational" in texts(block).casefold()]


def test_the_lift_tile_has_the_n_of_both_arms_its_interval_and_how_it_was_computed(found: Report) -> None:
    lift, _ = tiles(found)
    (section,) = [each for each in found.further if each.name == "arms"]
    difference = section.data["pairs"][0]["lifts"]["success"]["difference"]
    assert lift.value == f"{100 * difference['value']:+.1f}pp"
    assert re.fullmatch(r"±\d+\.\dpp \[[-+]\d+\.\d, [-+]\d+\.\d\]", lift.interval)
    assert [re.sub(r"\d+\.\d%", "x", line) for line in lift.lines[:2]] == [
        f"{arm}: x · n={n}" for arm, n in (("treatment", 192), ("holdout", 24))
    ]
    footnote = str(lift.footnote)
    assert "95% interval" in footnote
    assert "192 sessions of 48 users" in footnote
    # Its page shows no such tile of an experiment, and counts rows: this is its rule, on these sessions.
    assert "By the rule of Reflexio's own tile" in footnote
    assert "own page" not in footnote


@pytest.mark.parametrize(
    ("outcomes", "value", "interval", "warning"),
    [
        ([(True, 1), (True, 0)], "no estimate", "", None),
        ([(True, 1), (False, 0)], "+100.0pp", ">±50pp", "low confidence"),
    ],
)
def test_a_lift_of_too_little_is_no_estimate_or_says_how_little(
    tmp_path: Path, outcomes: list[tuple[bool, int]], value: str, interval: str, warning: str | None
) -> None:
    writer = Writer(tmp_path / "reflexio.db", "0.2.25")
    for number, (treated, success) in enumerate(outcomes):
        tag = f'{{"reflexio_retrieval_enabled": {str(treated).lower()}}}'
        writer.session(f"s{number}", at=BEGIN + timedelta(hours=number), metadata=tag)
        writer.outcome(f"s{number}", at=BEGIN + timedelta(hours=number), success=success)
    lift = tiles(asked(writer.done()))[0]
    assert lift.value == value
    assert lift.interval.startswith(interval)
    assert (lift.warning or "").startswith(warning or "")
    assert bool(lift.warning) is (warning is not None)


def test_the_tile_of_turns_has_wins_ties_losses_and_a_spark(found: Report) -> None:
    _, turns = tiles(found)
    (section,) = [each for each in found.further if each.name == "shadow"]
    counts = section.data["wins"]["counts"]
    assert turns.lines[0] == f"{counts['wins']} wins · {counts['ties']} ties · {counts['losses']} losses"
    assert turns.lines[1] == "n=80 · 80 of 80 answers with a shadow judged"
    assert len([each for each in turns.spark if each is not None]) > 10
    assert "a tie is not won" in str(turns.footnote)


def test_every_number_that_arms_are_compared_in_has_its_denominator_and_its_method(found: Report, page: str) -> None:
    (table,) = [block for block in blocks(found, "arms") if isinstance(block, Table) and block.columns[0] == "measure"]
    assert [row[0] for row in table.rows][:2] == ["success", "corrections a session"]
    for row in table.rows:
        for cell in row[1:4]:
            assert isinstance(cell, Cell)
            assert cell.tip
            assert cell.method
            assert f'title="{cell.tip.replace(chr(39), "&#39;")}"' in page
            assert cell.method.replace("'", "&#39;") in page


# Comparisons


def test_comparisons_show_both_answers_beside_each_other_and_why_the_judge_chose(found: Report) -> None:
    worst, recent = (block for block in blocks(found, "shadow") if isinstance(block, Cards))
    assert "top disagreements" in str(worst.title)
    assert {"with Reflexio lost", "by far"} <= set.intersection(*(set(card.chips) for card in worst.cards))
    assert recent.total == 80
    assert len(recent.cards) == 20
    for card in (*worst.cards, *recent.cards):
        told = dict(card.texts)
        assert card.beside == ("with Reflexio (served)", "without Reflexio (shadow)")
        assert all(told[name] for name in card.beside)
        assert told["message"]
        assert told["the judge's reason"] == "It names the order, so that one word is enough."


def test_the_side_of_reflexio_follows_the_arm_where_that_is_asked_for(log: Path) -> None:
    cards = [
        block
        for block in blocks(asked(log, shadow="arm", arms="experiment:autumn-2026"), "shadow")
        if isinstance(block, Cards)
    ]
    sides = {(card.chips[-1], card.beside[0]) for block in cards for card in block.cards}
    assert sides == {("treatment", "with Reflexio (served)"), ("holdout", "with Reflexio (shadow)")}


# Learnings


def test_a_response_opens_to_its_learnings_with_both_reasons_the_diagnosis_and_what_it_cites(found: Report) -> None:
    numbers, *_ = (block for block in blocks(found, "learnings") if isinstance(block, Numbers))
    assert numbers.title == "responses, each counted once"
    assert dict(numbers.rows)["helped"].noun == "response"
    (cards,) = [block for block in blocks(found, "learnings") if isinstance(block, Cards)]
    assert cards.total == 96
    assert len(cards.cards) == 96
    inside = [each for card in cards.cards for each in card.inside]
    assert {len(card.inside) for card in cards.cards} == {2}
    for each in inside:
        told = dict(each.texts)
        assert told["why relevant or not"] == "It is about the document that was asked for."
        assert told["why it helped or not"] == "The answer names the menu that it says."
    diagnosed = [dict(each.texts) for each in inside if "content_defect" in each.chips]
    assert diagnosed
    for told in diagnosed:
        assert told["diagnosis"] == "content_defect: The rule names a menu that is gone."
        assert re.fullmatch(r"\d+, person: .+\n\d+, agent: .+", told["cited interactions"])


def test_learnings_are_an_association_and_never_an_effect(found: Report) -> None:
    notice, *_ = blocks(found, "learnings")
    assert "do not show that Reflexio improves outcomes" in texts(notice)
    tables = [block for block in blocks(found, "learnings") if isinstance(block, Table)]
    of_learnings = [table for table in tables if table.columns[0] == "learning"]
    assert of_learnings
    assert all("association" in str(table.footnote) for table in of_learnings)


# Sessions, sources, experiments


def test_the_newest_sessions_are_in_a_table_that_is_filtered_by_request_source(found: Report) -> None:
    (table,) = blocks(found, "recent")
    assert isinstance(table, Table)
    assert len(table.rows) == 100
    assert table.total == 216
    assert table.filtered_by == "request source"
    place = {name: index for index, name in enumerate(table.columns)}
    failures = [row for row in table.rows if row[place["outcome"]] == "failure"]
    types = {"wrong_answer", "missing_tool", "insufficient_info_from_tool", ""}
    assert {row[place["failure type"]] for row in failures} <= types
    assert {row[place["reason"]] for row in failures} == {"It did not say where the document is found."}
    assert {row[place["tags"]] for row in table.rows} == {"pending", "none matched", "billing, vip"}
    assert {row[place["escalated"]] for row in table.rows} == {"yes", "no"}
    assert {row[place["turns"]] for row in failures} == {"—"}


def test_request_sources_have_a_row_each(found: Report) -> None:
    (table,) = blocks(found, "request_sources")
    assert isinstance(table, Table)
    assert {row[0] for row in table.rows} == {"web", "mobile", "mail", "partner api"}
    published = [int(str(row[1])) for row in table.rows]
    assert sum(published) == 240


@pytest.fixture(scope="module")
def newest(newest_log: Path) -> Report:
    return asked(newest_log)


def test_the_texts_of_learnings_are_shown_as_far_as_the_log_has_them(newest: Report, found: Report) -> None:
    (cards,) = [block for block in blocks(newest, "learnings") if isinstance(block, Cards)]
    texts = {each.title: dict(each.texts)["learning"] for card in cards.cards for each in card.inside}
    assert texts["profile prof-u03"] == "u03 prefers short answers"
    assert "Always confirm step 3" in texts["user playbook 3"]
    tables = {block.title: block for block in blocks(newest, "learnings") if isinstance(block, Table)}
    columns = tables["learnings that hurt most"].columns
    assert columns[:2] == ("learning", "text")
    (without,) = {block.columns[1] for block in blocks(found, "learnings") if texts_are_gone(block)}
    assert without == "helped"
    numbers = [row[-1] for row in tables["learnings that hurt most"].rows if row[-1]]
    assert all(isinstance(each, Cell) and "with it" in str(each.tip) and each.method for each in numbers)


def texts_are_gone(block: Block) -> bool:
    return isinstance(block, Table) and block.columns[-1] == "success with it"


def test_earlier_experiments_are_shown_beside_the_active_one(newest: Report, newest_log: Path) -> None:
    found = newest
    assert found.further[0].title.endswith("experiment:exp-b-active")
    (table,) = blocks(found, "experiments")
    assert isinstance(table, Table)
    assert "exp-a-stopped" in str(table.title)
    success = table.rows[0]
    assert isinstance(success[1], Cell)
    assert success[1].text.startswith("75.0%")
    (of_it,) = [each for each in asked(newest_log, arms="experiment:exp-a-stopped").further if each.name == "arms"]
    both = {arm["arm"]: arm for arm in of_it.data["by_arm"]}
    assert both["treatment"]["measures"]["success"]["value"] == 0.75


def test_a_page_alone_has_what_a_screen_does_not(found: Report, log: Path) -> None:
    screen = report(log, now=NOW)
    assert all(not each.blocks for each in screen.further)
    alone = {"request_sources"}
    assert {each.name for each in found.further} - {each.name for each in screen.further} == alone
    assert found.text() == screen.text()


def unjudged(writer: Writer) -> None:
    request = writer.request("r1", "u1", "s1")
    writer.turn(request, BEGIN, "User", "hello")
    answer = writer.turn(request, BEGIN, "Agent", "a", shadow_content="b", retrieved_learnings="[]")
    writer.shadow(answer, "s1", judge_prompt_version="v1.1.0")
    writer.connection.execute("DELETE FROM shadow_comparison_verdicts")


@pytest.mark.parametrize(
    ("written", "shown", "said"),
    [
        (lambda writer: writer.session("s1"), ["trend", "recent", "health"], "no session of the period has a verdict"),
        (unjudged, ["trend", "shadow", "recent", "health"], "no answer with a shadow has a verdict that counts"),
        (lambda writer: writer.outcome("gone"), ["trend", "recent", "health"], "all verdicts are of one day"),
    ],
)
def test_what_the_log_does_not_say_is_said_to_be_missing(
    tmp_path: Path, written: Callable[[Writer], object], shown: list[str], said: str
) -> None:
    writer = Writer(tmp_path / "reflexio.db")
    written(writer)
    found = asked(writer.done())
    assert [each.name for each in found.further] == shown
    assert not [block for each in found.further for block in each.blocks if isinstance(block, Cards)]
    assert said in own_page(found)
    missing = texts(blocks(found, "health")[-1])
    assert "no session has an arm" in missing
    assert ("no answer in the log has a shadow answer" in missing) is ("shadow" not in shown)
    assert "which learnings it was given" in missing


# Hostile texts


@pytest.fixture(scope="module")
def hostile_page(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("hostile") / "reflexio.db"
    return own_page(asked(made_up_log(path, sessions=120, users=20, texts=ATTACKS)))


class Reader(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs


def test_no_text_of_the_log_becomes_part_of_the_page(hostile_page: str) -> None:
    read = Reader(hostile_page)
    assert not read.tags & {"script", "img", "iframe", "animate", "a b", "form", "object", "embed", "link", "base"}
    assert not [name for name, _ in read.attributes if name.startswith("on") or name in ("src", "srcdoc", "style")]
    assert all(str(value).startswith("#") for name, value in read.attributes if name == "href")
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in hostile_page
    assert "{{ 7*7 }}" in hostile_page
    assert "\\u202egnp.exe\\u2066\\u200bhidden\\x1b" in hostile_page
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]", hostile_page)
    assert len(hostile_page) < 2_000_000


# In a browser


def test_attacks_do_nothing_in_a_browser(watched: Any, hostile_page: str, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(hostile_page, encoding="utf-8")
    shown = watched(path.as_uri())
    for card in shown.locator("details.card > summary").all()[:12]:
        card.click(force=True)
    shown.wait_for_timeout(100)
    assert shown.noted == []
    assert shown.evaluate("document.scripts.length + document.images.length + document.forms.length") == 0
    assert shown.evaluate("document.documentElement.scrollWidth") <= 1280


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_the_page_is_used_without_a_script(watched: Any, page: str, tmp_path: Path, width: int, scheme: str) -> None:
    path = tmp_path / "report.html"
    path.write_text(page, encoding="utf-8")
    shown = watched(path.as_uri(), width=width, scheme=scheme)
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    table = shown.get_by_role("group", name="the newest sessions that were judged")
    assert table.locator("tbody tr:visible").count() == 100
    shown.get_by_label("mobile").check()
    rows = table.locator("tbody tr:visible")
    assert 0 < rows.count() < 100
    assert all("mobile" in row for row in rows.all_inner_texts())
    response = shown.locator("details.card", has=shown.locator("details.card")).first
    response.locator("summary").first.click()
    learning = response.locator("details.card").first
    assert learning.is_visible()
    assert not learning.get_by_text("why it helped or not").is_visible()
    learning.locator("summary").click()
    assert learning.get_by_text("why it helped or not").is_visible()
    assert shown.noted == []


def test_the_page_is_accessible(watched: Any, barriers: Any, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    log = made_up_log(tmp_path / "reflexio.db", sessions=24, users=12, release="0.2.32")
    path.write_text(own_page(asked(log)), encoding="utf-8")
    assert barriers(watched(path.as_uri(), width=390, scheme="dark")) == []

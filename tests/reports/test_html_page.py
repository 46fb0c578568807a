"""The page of a report: all that the log supports, each number with its account, and nothing that runs or fetches."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from base64 import b64encode
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import evalr
from evalr import EvalrError, MissingExtraError, Report, Verdict
from evalr.estimates.plot import Plot
from evalr.inputs import About, Activity, Session
from evalr.logs import Card, Cards, Cell, Figure, Further, FurtherLine, Log, Notice, Numbers, Table, Tile, Tiles
from evalr.measures import SessionOutcome, ShadowWin, TaskCompletion
from evalr.measures.session_outcome import success_rate
from evalr.reports.pages import pictures
from evalr.reports.pages.pictures import cleaned, spark
from evalr.reports.pages.rendering import environment, rendered

pytest.importorskip("jinja2", reason="pages need the extra evalr[report]")
pytest.importorskip("vl_convert", reason="pages need the extra evalr[report]")

START = datetime(2026, 9, 1, tzinfo=UTC)
NOW = datetime(2026, 12, 1, tzinfo=UTC)
ATTACKS = [
    "<script>alert(1)</script>",
    "</style><script>alert(2)</script>",
    "</title></text></svg><img src=x onerror=alert(3)>",
    '"><svg onload=alert(4)><animate onbegin=alert(5)>',
    "' onmouseover='alert(6)",
    "javascript:alert(7)",
    "{{ 7*7 }}{% for x in [1] %}x{% endfor %}{# gone #}${alert(8)}",
    "\u202egnp.exe\u2066\u200bhidden",
    "\x00\x07\x1b[2J\x1b]0;title\x07\r\n\x85\u2028",
    "&lt;b&gt;&#x3c;script&#x3e;",
    "]]><!--<!DOCTYPE x [<!ENTITY a 'b'>]>&a;",
    "%s%n{0}{self.__class__}",
    "<iframe srcdoc='<script>parent.alert(9)</script>'>",
    "<a href='http://example.invalid/'>x</a><form action='http://example.invalid/'>",
    "\U0001f600\ud7ff\ufdd0",
    "<" * 10_000,
]


def sessions(n: int, *, attributes: list[str] | None = None, arms: list[str | None] | None = None) -> list[Session]:
    chosen, made = random.Random(5), []
    for number in range(n):
        at = START + timedelta(days=chosen.randrange(14), minutes=chosen.randrange(1_000))
        activities = [Activity(at=at, role="agent")]
        if chosen.random() < 0.8:
            at += timedelta(seconds=1 + chosen.expovariate(1 / 900))
            activities.append(Activity(at=at, role="person"))
        arm = chosen.choice(arms or ["treatment", "control", None])
        agent = chosen.choice(attributes or ["support", "mail"])
        made.append(
            Session(
                id=f"s{number}", user=f"u{number % 40}", arm=arm, attributes={"agent": agent}, activities=activities
            )
        )
    return made


def judged(given: list[Session]) -> list[Verdict[Any]]:
    chosen, results = random.Random(6), []
    for each in given:
        success = chosen.random() < (0.8 if each.arm == "treatment" else 0.6)
        results.append(Verdict(SessionOutcome(success=success, corrections=1), "judge", "3", about=each.about()))
        winner = chosen.choice(["served", "served", "shadow", "tie"])
        won = ShadowWin(winner=winner, significant=False, shown_first=chosen.choice(["served", "shadow"]), reason="r")
        about = About("exchange", f"e{each.id}", each.user, each.id, each.about().at, None, each.arm)
        results.append(Verdict(won, "judge", "2", about=about))
    return results


@pytest.fixture(scope="module")
def found() -> Report:
    given = sessions(240)
    return evalr.report([*given, *judged(given)], now=NOW, details=True, by="agent")


@pytest.fixture(scope="module")
def page(found: Report) -> str:
    return found.to_html()


@pytest.fixture(scope="module")
def short_page(found: Report) -> str:
    """Of each measure two numbers: every kind of part is there, and a browser need not read more of the same."""
    return replace(found, sections=tuple(replace(each, rows=each.rows[:2]) for each in found.sections)).to_html()


class Reader(HTMLParser):
    """Tags, attributes, ids, and texts with what they stand in."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str, str | None]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.open.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if data.strip() and "style" not in self.open:
            self.texts.append(data.strip())

    def values(self, name: str) -> list[str | None]:
        return [value for _, attribute, value in self.attributes if attribute == name]


TAGS = {
    *("html", "head", "meta", "title", "style", "body", "header", "h1", "h2", "h3", "h4", "p", "nav", "ul", "ol", "li"),
    *("a", "main", "section", "div", "span", "bdi", "table", "caption", "thead", "tbody", "tr", "th", "td", "abbr"),
    *("sup", "svg", "g", "path", "line", "rect", "circle", "text", "tspan", "figure", "figcaption", "details"),
    *("summary", "dl", "dt", "dd", "footer", "code", "fieldset", "legend", "label", "input", "br"),
}


def check_inert(page: str) -> Reader:
    """Nothing in a page runs, is fetched, or goes anywhere but to a place in it."""
    read = Reader(page)
    assert read.tags <= TAGS
    assert not [name for _, name, _ in read.attributes if name.startswith("on") or name in ("style", "src", "srcdoc")]
    assert all(str(value).startswith("#") for value in read.values("href"))
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u200b-\u200f\u202a-\u202e\u2066-\u2069]", page)
    ids = read.values("id")
    assert len(ids) == len(set(ids))
    assert {str(value)[1:] for value in read.values("href")} <= set(ids)
    return read


def test_a_page_is_one_inert_file_whose_policy_allows_its_style_alone(page: str) -> None:
    check_inert(page)
    (css,) = re.findall("<style>(.*?)</style>", page, flags=re.DOTALL)
    (policy,) = re.findall(r'Content-Security-Policy" content="(.*?)"', page)
    digest = b64encode(sha256(css.encode()).digest()).decode()
    assert policy.replace("&#39;", "'") == (
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
    assert "url(" not in css
    assert "@import" not in css


def test_every_number_of_the_report_is_on_it_with_its_interval_and_its_denominator(found: Report, page: str) -> None:
    read = Reader(page)
    body = " ".join(read.texts)
    tips = [str(value) for value in read.values("title")]
    for row in found.rows:
        estimate = row.estimate
        assert row.title in body
        assert not estimate.n or estimate.counted_words() in body
        if estimate.low is not None:
            assert f"({estimate.method})" in body  # among the methods
            assert any(f"({estimate.method})" in tip for tip in tips)
    assert "159 of" in " ".join(tips) or any(re.search(r"\d+ of 240; 240 sessions", tip) for tip in tips)
    assert "observational: arms are not known to be assigned at random" in body
    assert "untagged (no arm)" in body
    for title in ("Summary", "Arms", "Groups, by agent", "What was left out, and what is not shown", "Methods"):
        assert title in read.texts
    assert page.count('class="spark"') >= 8


def test_what_is_not_there_is_said_with_its_reason() -> None:
    one_day = [Session(id="s", activities=[Activity(at=START, role="agent")])]
    read = Reader(evalr.report(one_day, now=NOW, details=True).to_html())
    body = " ".join(read.texts)
    assert "all that has a time is of one day" in body
    assert "nothing that was read has an arm" in body
    assert "no verdicts in this log" in body
    assert "Arms" not in read.texts
    assert "Groups" not in read.texts


def test_without_details_the_page_says_how_to_have_them() -> None:
    body = " ".join(Reader(evalr.report(sessions(20), now=NOW).to_html()).texts)
    assert "report(..., details=True)" in body


def test_of_nothing_there_is_a_page_too() -> None:
    read = check_inert(evalr.report([], now=NOW, details=True).to_html())
    assert "Nothing in this log could be measured." in read.texts


def test_arms_of_other_names_are_compared_as_asked_for() -> None:
    given = sessions(120, arms=["new", "old"])
    found = evalr.report(given, now=NOW, details=True, lift=("new", "old"), randomised=True)
    read = Reader(found.to_html())
    assert "new v old" in read.texts
    assert "observational" not in " ".join(read.texts)


def test_details_are_what_asking_for_them_one_by_one_gives(found: Report) -> None:
    given = sessions(240)
    over = evalr.report([*given, *judged(given)], now=NOW, by="day")
    arms = evalr.report([*given, *judged(given)], now=NOW, by="arm", lift=("treatment", "control"))
    for row, by_day, by_arm in zip(found.rows, over.rows, arms.rows, strict=True):
        assert row.details is not None
        assert row.details.trend == by_day.groups
        assert row.details.arms == by_arm.groups
        if by_arm.lift is None:
            assert row.details.lift is None
        else:
            assert row.details.lift is not None
            assert row.details.lift.difference == by_arm.lift.difference
    plain = found.to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    (first, *_) = plain["sections"][0]["rows"]
    assert set(first["details"]) == {"trend", "arms", "arm_trends", "lift", "curve", "missing"}


# Texts of a log


def hostile_report() -> Report:
    given = sessions(90, attributes=ATTACKS, arms=[*(attack[:200].replace("\x00", "") for attack in ATTACKS[:4]), None])
    given = [
        each.model_copy(update={"id": f"{ATTACKS[n % len(ATTACKS)]}{n}", "user": ATTACKS[n % 9][:60]})
        for n, each in enumerate(given)
    ]
    judges = [(ATTACKS[n][:50], ATTACKS[n + 5][:20]) for n in range(5)]
    named = [
        Verdict(TaskCompletion(completed=n % 2 > 0, quality=3), *judges[n % 5], about=each.about())
        for n, each in enumerate(given)
    ]
    found = evalr.report(
        [*given, *named], now=NOW, details=True, by="agent", lift=None, measures=["waits", "completion"]
    )
    further = Further(
        name="x",
        title=ATTACKS[0],
        lines=[*ATTACKS, *(FurtherLine(attack, attack, attack, [attack]) for attack in ATTACKS)],
        data={},
        leads=True,
    )
    return replace(
        found,
        path="".join(ATTACKS[:3]),
        further=(further, replace(further, blocks=blocks(ATTACKS))),
        notes=tuple(ATTACKS),
    )


def blocks(texts: list[str]) -> tuple[Any, ...]:
    first = texts[0]
    tile = Tile(
        title=first,
        value=first,
        interval=first,
        lines=tuple(texts),
        warning=first,
        spark=(0.1, None, 0.3, 0.2),
        footnote=first,
    )
    inner = Card(title=first, texts=(("why", "\n".join(texts)),))
    card = Card(
        title=first,
        chips=tuple(texts),
        texts=(("served", "\n".join(texts)), ("shadow", texts[-1]), ("judge", first)),
        beside=("served", "shadow"),
        inside=(inner,),
    )
    some = success_rate.estimate([SessionOutcome(success=True), SessionOutcome(success=False)])
    spec = {"mark": "point", "data": {"values": [{"x": text} for text in texts]}}
    spec |= {"encoding": {"y": {"field": "x", "type": "nominal"}}}
    return (
        Notice(text=first, tone="warning"),
        Tiles(tiles=(tile, tile), title=first),
        Table(
            columns=("a", "b"),
            rows=tuple((text, Cell(str(place), tip=text, method=text)) for place, text in enumerate(texts)),
            title=first,
            numbers=("b",),
            filtered_by="a",
            grouped_by="a",
            total=1_000,
            footnote=first,
        ),
        Numbers(rows=((first, success_rate.estimate([])), (texts[-1], some)), title=first, footnote=first),
        Figure(spec=spec, says=first, title=first, footnote=first),
        Cards(cards=(card,), title=first, total=9, footnote=first),
    )


@pytest.fixture(scope="module")
def hostile_page() -> str:
    return hostile_report().to_html()


def test_no_text_of_a_log_is_markup_or_a_template(hostile_page: str) -> None:
    read = check_inert(hostile_page)
    body = " ".join(read.texts)
    assert "<script>alert(1)</script>" in body
    assert "{{ 7*7 }}" in body
    assert "\\u202egnp.exe" in body
    assert "<" * 4_001 not in body
    assert len(hostile_page) < 2_000_000


def test_a_template_fails_where_a_value_is_missing_and_escapes_what_it_gets() -> None:
    with pytest.raises(Exception, match="is undefined"):
        rendered("report.html")
    made = environment().from_string("<i title='{{ x }}'>{{ x }}</i>{{ y }}")
    assert made.render(x="'<b>\x1b", y=None) == "<i title='&#39;&lt;b&gt;\\x1b'>&#39;&lt;b&gt;\\x1b</i>None"


@pytest.mark.parametrize(
    "svg",
    [
        '<!DOCTYPE svg [<!ENTITY a "b">]><svg xmlns="http://www.w3.org/2000/svg">&a;</svg>',
        "<html/>",
        "no svg at all",
        '<svg xmlns="http://www.w3.org/2000/svg"><!-- a --></svg>',
    ],
)
def test_what_is_no_plain_svg_is_not_put_into_a_page(svg: str) -> None:
    with pytest.raises(EvalrError):
        cleaned(svg, "says")


def test_of_an_svg_only_what_draws_is_left() -> None:
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" onload="a()" width="10">'
        '<script>alert(1)</script><foreignObject><b/></foreignObject><image href="http://example.invalid/x"/>'
        '<a href="javascript:alert(1)"><text>in a link</text></a><style>*{}</style>'
        '<g fill="url(#x)" style="fill: red" id="x" class="evil"><path d="M1.23456,2" stroke="#0072B2"/></g>'
        '<text fill="#222222" xlink:href="x">a &lt;b&gt;</text></svg>'
    )
    made = cleaned(svg, 'says "<this>"')
    assert made == (
        '<svg width="10" role="img" aria-label="says &quot;&lt;this&gt;&quot;">'
        '<g><path d="M1.2,2" class="s-c0" /></g><text class="f-ink">a &lt;b&gt;</text></svg>'
    )


# Blocks


def test_blocks_are_laid_out() -> None:
    further = Further(
        name="x", title="Impact", lines=["as lines"], data={}, leads=True, blocks=blocks(["alpha", "beta"])
    )
    page = replace(evalr.report(sessions(10), now=NOW), further=(further,)).to_html()
    read = check_inert(page)
    assert "as lines" not in read.texts
    for text in ("Impact", "alpha", "beta", "(2 of 1000)", "served", "shadow", "why:"):
        assert text in read.texts
    assert page.index("Impact</h2>") < page.index("came back within 1h</h2>")
    assert page.count('type="radio"') == 3
    assert "50.0%" in read.texts
    assert "1 of 2; 2 sessions" in " ".join(map(str, read.values("title")))
    assert page.count(">alpha</li>") == 1  # the method of a cell, once


def test_many_texts_to_choose_rows_by_are_the_most_frequent_and_the_others() -> None:
    rows = tuple((f"source {number}", "x") for number in range(12) for _ in range(13 - number))
    table = Table(columns=("source", "n"), rows=rows, filtered_by="source")
    further = Further(name="x", title="T", lines=(), data={}, blocks=(table,))
    page = replace(evalr.report([], now=NOW), further=(further,)).to_html()
    assert page.count('type="radio"') == 11
    assert "source 8" in Reader(page).texts
    assert "3 others" in Reader(page).texts
    assert page.count('<tr role="row" class="is9 ') == 4 + 3 + 2


def test_lines_of_a_reader_are_shown_where_it_has_no_blocks() -> None:
    lines = ["a note", FurtherLine("lift", "+3.1pp", "[-1.0, +7.2]", ["n 10 v 12"], within=True)]
    page = replace(evalr.report([], now=NOW), further=(Further(name="x", title="Own", lines=lines, data={}),)).to_html()
    assert {"Own", "a note", "lift", "+3.1pp", "[-1.0, +7.2]", "n 10 v 12"} <= set(check_inert(page).texts)


def test_a_plot_that_would_fetch_something_is_not_drawn() -> None:
    spec = {"mark": "point", "data": {"url": "http://127.0.0.1:9/x.json"}, "encoding": {}}
    further = Further(name="x", title="T", lines=(), data={}, blocks=(Figure(spec=spec, says="says this"),))
    page = replace(evalr.report([], now=NOW), further=(further,)).to_html()
    assert "127.0.0.1" not in Reader(page).values("href")
    assert any("says this" in text for text in Reader(page).texts)


def test_sparks_break_where_nothing_is_known() -> None:
    assert spark([]) is None
    assert spark([1.0]) is None
    assert spark([None, 1.0, None]) is None
    made = str(spark([1.0, 2.0, None, 3.0], [0.5, 1.5, None, 2.5], [1.5, 2.5, None, 3.5]))
    assert made.count("<path") == 3
    assert "nan" not in made.lower()
    assert str(spark([1.0, 1.0])).count("<path") == 1


# Where it goes


def test_a_page_is_written_where_it_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "out.html"
    page = evalr.report([], now=NOW).to_html(path)
    assert path.read_text(encoding="utf-8") == page


@pytest.mark.parametrize("module", ["jinja2", "vl_convert"])
def test_without_the_extra_the_page_says_what_to_install(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    environment.cache_clear()
    monkeypatch.setitem(sys.modules, module, None)
    try:
        with pytest.raises(MissingExtraError, match=r"pip install 'evalr\[report\]'"):
            evalr.report(sessions(20), now=NOW, details=True).to_html()
    finally:
        environment.cache_clear()


def command(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    program = "import sys; sys.argv[0] = 'evalr'; from evalr.cli import main; sys.exit(main())"
    return subprocess.run(
        [sys.executable, "-c", program, *arguments], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )


def write_log(path: Path, given: list[Session]) -> None:
    path.write_text("".join(each.model_dump_json(exclude_none=True) + "\n" for each in given), encoding="utf-8")


def test_the_command_writes_a_page_beside_what_it_prints(tmp_path: Path) -> None:
    write_log(tmp_path / "log.jsonl", sessions(40))
    done = command("report", "log.jsonl", "--html", "out.html", "--now", "2026-12-01", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == "evalr: the page is in out.html\n"
    assert "came back within 1h" in done.stdout
    read = check_inert((tmp_path / "out.html").read_text(encoding="utf-8"))
    assert "log.jsonl" in read.texts
    assert "untagged (no arm)" in " ".join(read.texts)


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("log.jsonl", "is the log itself, which is only read"),
        ("missing/out.html", "there is no such folder"),
        (".", "there is no such folder, or it is one itself"),
    ],
)
def test_a_page_that_cannot_be_written_is_refused_before_the_log_is_read(tmp_path: Path, file: str, said: str) -> None:
    write_log(tmp_path / "log.jsonl", sessions(3))
    before = (tmp_path / "log.jsonl").read_bytes()
    done = command("report", "log.jsonl", "--html", file, folder=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stdout == ""
    assert (tmp_path / "log.jsonl").read_bytes() == before


def test_a_page_has_room_for_so_many_plots_and_tells_the_others_in_numbers(
    found: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evalr.reports.pages.report.MOST_DRAWN", 20_000)
    read = check_inert(found.to_html())
    assert "left out, so that the page stays small" in " ".join(read.texts)


def test_where_there_is_little_room_headlines_are_drawn_first(found: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalr.reports.pages.report.MOST_DRAWN", 250_000)
    rows = found.to_html().split('<div class="row')[1:]
    drawn = {re.findall('id="(m[0-9-]+)"', row)[0]: "<svg" in row for row in rows if 'id="m' in row}
    headlines = [is_drawn for anchor, is_drawn in drawn.items() if anchor.endswith("-0")]
    assert headlines == [True] * len(headlines)
    assert not all(drawn.values())


def test_a_page_of_many_sessions_is_small() -> None:
    chosen = random.Random(1)
    results = [
        Verdict(
            TaskCompletion(completed=chosen.random() < 0.7, quality=chosen.randrange(1, 6)),
            "judge",
            "1",
            about=About(
                "transcript",
                f"t{number}",
                f"u{number % 9_000}",
                None,
                START + timedelta(minutes=chosen.randrange(90 * 1_440)),
                None,
                chosen.choice(["treatment", "control", None]),
                None,
                {"agent": f"agent {number % 200}"},
            ),
        )
        for number in range(100_000)
    ]
    page = evalr.report(results, now=NOW, details=True, by="agent", measures=["completion"]).to_html()
    assert "100,000 transcripts" in page or "100,000 " in page
    assert len(page.encode()) < 2_000_000


def test_the_log_of_a_reader_with_sections_comes_first(tmp_path: Path) -> None:
    class Own(Log):
        def further(self) -> list[Further]:
            return [Further(name="own", title="First of all", lines=["said"], data={}, leads=True)]

    log = Own(path="own.log", kind="own", items=lambda log: iter(sessions(5)))
    page = evalr.report(log, now=NOW).to_html()
    assert page.index("First of all</h2>") < page.index("came back within 1h</h2>")
    assert Reader(page).texts[0] == "evalr: own.log"
    assert pictures.picture(Plot(spec=plot_spec(), says="x"))


def plot_spec() -> dict[str, Any]:
    return {"mark": "point", "data": {"values": [{"x": 1}]}, "encoding": {"x": {"field": "x", "type": "quantitative"}}}


# In a browser


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_opens_fits_and_is_accessible(
    watched: Any, barriers: Any, short_page: str, tmp_path: Path, width: int, scheme: str
) -> None:
    path = tmp_path / "report.html"
    path.write_text(short_page, encoding="utf-8")
    shown = watched(path.as_uri(), width=width, scheme=scheme)
    assert shown.noted == []
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    background = shown.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(20, 20, 20)") is (scheme == "dark")
    assert barriers(shown) == []


def test_attacks_do_nothing(watched: Any, hostile_page: str, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(hostile_page, encoding="utf-8")
    shown = watched(path.as_uri())
    clicked = "all => all.map(each => each.click()).length"
    assert shown.locator("summary").evaluate_all(clicked) > 10
    assert shown.locator("input").evaluate_all(clicked) > 3
    shown.wait_for_timeout(200)
    assert shown.noted == []
    assert shown.evaluate("document.scripts.length + document.images.length + document.forms.length") == 0
    assert shown.evaluate("document.documentElement.scrollWidth") <= 1280


def test_rows_are_chosen_without_a_script(watched: Any, tmp_path: Path) -> None:
    rows = (("web", "1"), ("mail", "2"), ("web", "3"))
    table = Table(columns=("source", "n"), rows=rows, title="sessions", filtered_by="source")
    further = Further(name="x", title="T", lines=(), data={}, blocks=(table,))
    path = tmp_path / "report.html"
    replace(evalr.report([], now=NOW), further=(further,)).to_html(path)
    shown = watched(path.as_uri())
    assert shown.locator("tbody tr:visible").count() == 3
    shown.get_by_label("mail").check()
    assert shown.locator("tbody tr:visible").all_inner_texts() == ["mail\t2"]
    shown.get_by_label("all").check()
    assert shown.locator("tbody tr:visible").count() == 3
    assert shown.noted == []


def test_a_page_prints(watched: Any, page: str, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(page, encoding="utf-8")
    shown = watched(path.as_uri(), scheme="dark")
    shown.emulate_media(media="print")
    assert shown.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not shown.locator("nav").is_visible()
    pdf = shown.pdf()
    assert pdf.startswith(b"%PDF")
    assert shown.noted == []


def test_a_wide_table_fits_paper_and_a_phone_shows_each_row_by_itself(watched: Any, tmp_path: Path) -> None:
    columns = tuple(f"a number that is called {name}" for name in "abcdefg")
    wide = Table(columns=columns, rows=((*["39.1% [34.3, 44.2]"] * 7,),) * 2, numbers=columns[1:])
    section = Further(name="wide", title="Wide", lines=(), data={}, blocks=[wide])
    path = tmp_path / "report.html"
    path.write_text(replace(evalr.report(sessions(3), now=NOW), further=(section,)).to_html(), encoding="utf-8")
    shown = watched(path.as_uri(), width=390)
    cells = shown.locator("table.records tbody tr").first.locator("td")
    boxes = [cells.nth(place).bounding_box() for place in range(7)]
    assert all(above["y"] + above["height"] <= below["y"] + 0.5 for above, below in pairwise(boxes))
    shown.set_viewport_size({"width": 720, "height": 900})
    shown.emulate_media(media="print")
    assert shown.evaluate("document.documentElement.scrollWidth") <= 720


def test_groups_of_a_measures_own_are_one_table_with_what_each_number_is_of(tmp_path: Path) -> None:
    rate = evalr.Rate("told", of=SessionOutcome, hits=lambda v: v.success, noun="session")
    other = evalr.Rate("told_more", of=SessionOutcome, hits=lambda v: not v.success, noun="session")
    measure = evalr.measures.Measure(
        name="told",
        question="was it told?",
        input=Session,
        verdict=SessionOutcome,
        summaries=lambda: (rate, other),
        by="agent",
    )
    given = sessions(60)
    results = [each for each in judged(given) if isinstance(each.value, SessionOutcome)]
    page = evalr.report(results, now=NOW, measures=[measure], details=True).to_html()
    read = check_inert(page)
    assert read.texts.count("by agent") == 3
    assert "Each number is of the sessions of its group that were counted." in read.texts
    assert any(re.fullmatch(r"\d+ of \d+; \d+ sessions of \d+ users", str(title)) for title in read.values("title"))
    asked = evalr.report(results, now=NOW, measures=[measure], details=True, by="agent").to_html()
    assert "that were counted." not in asked


def test_arms_of_typical_times_are_drawn_and_so_is_it_said_that_they_are_not_subtracted(page: str) -> None:
    (alone,) = re.findall("without a difference, and with their arms in their own sections: (.*?)<", page)
    assert "typical wait (median)" in alone.split(", ")
    assert "escalated" not in alone.split(", ")
    assert "typical times are not subtracted" in page


def test_every_number_says_what_it_is_of_and_how_it_was_computed(found: Report, page: str) -> None:
    values = re.findall(r'<td [^>]*class="number value">(.*?)</td>', page)
    assert len(values) > 100
    for value in values:
        (tip,) = re.findall('<abbr title="(.*?)">', value)
        assert re.search("[0-9]+ (of|session|comparison|wait)", tip), tip
        assert "interval" in tip, tip

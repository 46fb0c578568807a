"""`evalr tracepass`, as people type it."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tracepass_command import parsed, ran, write_lines
from typer.main import get_command

from evalr.tracepass import Signal, matching, save_signals, transform
from evalr_tracepass.command.app import command
from evalr_tracepass.command.choosing import choose, scope_of
from evalr_tracepass.command.words import chips_words, complete_lines, percent, progress_words

LOOP = [
    {"role": "agent", "text": "", "tool_calls": [{"name": "search", "arguments": {"q": "x"}, "result": "nothing"}]}
] * 4


def turns(*texts: str, at: str = "2026-11-01T09:00:00Z") -> list[dict[str, Any]]:
    return [
        {"role": "person" if place % 2 == 0 else "agent", "text": text, "at": at, "id": f"e{place}"}
        for place, text in enumerate(texts)
    ]


CALM = {"id": "calm", "request": "Find my order", "user": "ada", "turns": turns("Where is my order?", "It left today.")}
ANGRY = {
    "id": "angry",
    "request": "Find my order",
    "user": "bob",
    "turns": turns("Where is it?", "On its way.", "This is useless, awful and terrible!!", at="2026-11-02T09:00:00Z"),
}
STUCK = {"id": "stuck", "request": "Find x", "user": "ada", "turns": [{"role": "person", "text": "Find x"}, *LOOP]}


def write(folder: Path, name: str, *lines: dict[str, Any]) -> None:
    write_lines(folder / name, *lines)


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    write(tmp_path / "traces", "one.jsonl", CALM, ANGRY)
    write(tmp_path / "traces", "two.jsonl", STUCK)
    return tmp_path


def test_B20_grep_prints_a_line_for_each_fired_turn(traces: Path) -> None:
    code, out, err = ran(traces, "grep", "negative|looping", "traces")
    rows = [line.split("\t") for line in out.splitlines()]
    assert code == 0
    assert rows[0][:4] == ["traces/one.jsonl", "angry", "2", "negative"]
    assert {(row[0], row[1], row[3]) for row in rows[1:]} == {("traces/two.jsonl", "stuck", "looping")}
    assert all(row[5] == f"[{row[3]} {percent(float(row[4]))}]" for row in rows)
    # A signal that matches and has no classifier is told, and not passed over.
    assert "stuck-in-a-loop cannot run: no classifier named 'stuck-in-a-loop' is configured" in err


def test_B16_signals_that_fire_on_one_turn_share_its_line_the_surest_first(traces: Path) -> None:
    both = turns("Stop it, awful and useless!!", "I cannot help with that.", "Awful, terrible, useless, useless!!")
    write(traces / "traces", "three.jsonl", {"id": "both", "request": "x", "user": "cy", "turns": both})
    again = [turn | {"id": f"{turn['id']}b"} for turn in both]
    write(traces / "traces", "three.jsonl", {"id": "again", "request": "x", "user": "cy", "turns": again})
    code, out, _ = ran(traces, "grep", "negative|answer", "traces", "--where", "user=cy", "--json")
    assert code == 0
    found = [json.loads(line) for line in out.splitlines()]
    assert [(each["convo_id"], each["turn"]) for each in found] == [
        (name, turn) for name in ("both", "again") for turn in sorted({each["turn"] for each in found})
    ]
    for each in found:
        scores = [one["score"] for one in each["fired"]]
        assert scores == sorted(scores, reverse=True)
        assert (each["label"], each["score"]) == (each["fired"][0]["label"], scores[0])
    assert any(len(each["fired"]) > 1 for each in found)


def test_B16_at_most_three_chips_the_highest_first() -> None:
    shown = chips_words([("a", 0.5), ("b", 0.9), ("c", 0.7), ("d", 0.6), ("e", 0.1)], color=False)
    assert shown == "[b 90%] [c 70%] [d 60%] and 2 more"


def test_B9_grep_only_new_leaves_out_what_a_pass_has_read(traces: Path) -> None:
    arguments = ["grep", "negative|looping", "traces", "--only-new"]
    code, _, err = ran(traces, *arguments)
    assert (code, "there is no store tracepass.db" in err) == (2, True)
    ran(traces, "run", "traces/one.jsonl", "--signal", "heuristic-negative-tone")
    code, out, err = ran(traces, *arguments)
    # What another signal or another file has is new; the messages of people in the first were read.
    assert code == 0
    assert {line.split("\t")[3] for line in out.splitlines()} == {"looping"}
    assert "evalr: 3 predictions spared: earlier passes have them" in err
    assert not list(traces.glob("traces/*.db"))
    write(traces / "traces", "one.jsonl", {**ANGRY, "id": "late"})
    new = ran(traces, "grep", "negative", "traces", "--only-new")[1].splitlines()
    assert [line.split("\t")[1] for line in new] == ["late"]
    ran(traces, "run", "traces", "--signal", "heuristic-negative-tone", "--only-new")
    assert ran(traces, "grep", "negative", "traces", "--only-new")[0] == 1


def test_B20_grep_says_where_no_conversation_was_read(traces: Path) -> None:
    code, _, err = ran(traces, "grep", "negative", "traces", "--where", "user=nobody")
    assert (code, err) == (1, "evalr: no conversation was read: 3 not in the scope\n")


def test_B20_grep_exits_with_1_when_nothing_fired(traces: Path) -> None:
    code, out, _ = ran(traces, "grep", "negative", "traces", "--where", "user=ada")
    assert (code, out) == (1, "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["grep", "(", "traces"], "no regular expression"),
        (["grep", "unheard-of", "traces"], "no signal has a name or a label like"),
        (["grep", "jailbreak", "traces"], "no classifier named 'jailbreak' is configured"),
        (["grep", "negative", "nowhere"], "nowhere"),
        (["estimate", "traces", "--signal", "jailbreak"], "no classifier named 'jailbreak' is configured"),
        (["estimate", "traces", "--signal", "heuristic-lop"], "heuristic-loop"),
        (["estimate", "traces", "--sample", "lots"], "write a share of conversations"),
        (["estimate", "traces", "--sample", "10%", "--convo", "calm"], "pass one of the two"),
        (["estimate", "traces", "--where", "a", "--where", "b"], "said already"),
        (["estimate", "traces", "--where", "user=a", "--where", "user=b"], "'user=b': that is said already"),
        (["estimate", "traces", "--where", "since=2026-11-01", "--since", "2026-11-01"], "said already"),
        (["estimate", "traces", "--where", "last=24h", "--last", "24h"], "said already"),
        (["estimate", "traces", "--where", " "], "--where is given nothing; write --where as"),
        (["estimate", "traces", "--where", "user="], "--where 'user=': there is nothing after the ="),
        (["estimate", "traces", "--where", "search= "], "there is nothing after the ="),
        (["estimate", "traces", "--where", "usr=ada"], "did you mean 'user=ada'?"),
        (["estimate", "traces", "--where", "end-user=ada"], "did you mean 'user=ada'?"),
        (["estimate", "traces", "--where", "after=2026-11-01"], "did you mean 'since=2026-11-01'?"),
        (["estimate", "traces", "--where", "error=true"], "did you mean 'errors'?"),
        (["estimate", "traces", "--where", "model=x"], "may be user, since, until, last and search; for a text that"),
        (["estimate", "traces", "--where", "gen_ai.model=x"], "holds a =, write 'search=gen_ai.model=x'"),
        (["estimate", "traces", "--by", "post"], "local, batch, live"),
        (["estimate", "traces", "--where", "since=yesterday"], "--where 'since=yesterday': 'yesterday' is not a time"),
        (["estimate", "traces", "--where", "until=2026-11-01T09:00"], "has no time zone"),
        (["estimate", "traces", "--where", "last=1 day"], "--where 'last=1 day': '1 day' is not a length of time"),
        (["estimate", "traces", "--since", "2026-11-03", "--until", "2026-11-01"], "the wrong way round"),
        (["estimate", "traces", "--last", "24h", "--until", "2020-01-01"], "the wrong way round"),
        (["estimate", "traces", "--last", "24 hours"], "length of time"),
        (["estimate", "traces", "--since", "2026-11-01", "--last", "24h"], "pass one of them"),
        (["estimate", "traces", "--preset", "mine"], "no preset 'mine'"),
    ],
)
def test_B20_misuse_exits_with_2_and_one_line(traces: Path, arguments: list[str], message: str) -> None:
    code, out, err = ran(traces, *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1


def test_B20_grep_as_json_lines(traces: Path) -> None:
    code, out, _ = ran(traces, "grep", "negative", "traces", "--json")
    assert code == 0
    (line,) = map(json.loads, out.splitlines())
    score = line["score"]
    assert 0 < score <= 1
    assert line == {
        "log": "traces/one.jsonl",
        "convo_id": "angry",
        "event_id": "e2",
        "turn": 2,
        "user": "bob",
        "signal": "heuristic-negative-tone",
        "label": "negative",
        "score": score,
        "percent": percent(score),
        "truncated": False,
        "fired": [
            {
                "signal": "heuristic-negative-tone",
                "label": "negative",
                "score": score,
                "percent": percent(score),
            }
        ],
    }


@pytest.mark.parametrize(
    ("options", "conversations"),
    [
        ([], 3),
        (["--where", "useless"], 1),
        (["--where", "user=ada"], 2),
        (["--where", "user=ada", "--where", "order"], 1),
        (["--where", "errors"], 0),
        (["--where", "search=ORDER"], 1),
        (["--where", "Errors only"], 0),
        (["--where", "search=x=y"], 0),
        (["--where", "search=total=5"], 0),
        (["--where", "the total = 5"], 0),
        (["--where", "a/b=5"], 0),
        (["--where", "since=2026-11-01T10:00:00+01:00", "--where", "until=2026-11-02"], 1),
        (["--where", "last=24h", "--now", "2026-11-02T12:00:00Z"], 1),
        (["--last", "1d12h", "--now", "2026-11-02T12:00:00Z"], 2),
        (["--since", "2026-11-02"], 1),
        (["--where", "until=2026-11-02"], 1),
        (["--last", "24h", "--now", "2026-11-02T12:00:00Z"], 1),
        (["--convo", "calm", "--convo", "stuck"], 2),
        (["--sample", "100%:7"], 3),
    ],
)
def test_R13_where_says_which_traces(traces: Path, options: list[str], conversations: int) -> None:
    assert parsed(traces, "estimate", "traces", *options)["conversations"] == conversations


def test_B3_the_estimate_in_the_words_of_the_panel(traces: Path) -> None:
    code, out, err = ran(traces, "estimate", "traces")
    assert code == 0
    lines = out.splitlines()
    # Six steps of agents, which two signals read, two of their messages, and four messages of people for two signals.
    assert lines[:3] == ["16 trace inputs", "22 predictions", "Estimated cost: $0.00"]
    assert "3 conversations · all of them" in lines
    assert "jailbreak, guardrail" in err
    assert "rules written by hand" in err


def test_B3_a_rate_is_the_price_of_what_a_service_reads(traces: Path) -> None:
    rate = ("--rate", "0.00003")
    lines = ran(traces, "estimate", "traces", *rate, "--by", "batch")[1].splitlines()
    assert lines[2:4] == ["Batch mode", "Estimated cost: under $0.01"]
    lines = ran(traces, "estimate", "traces", *rate, "--by", "live")[1].splitlines()
    assert lines[2].startswith("Live preview: at most ")
    for asked in (["estimate", "traces"], ["run", "traces", "--rerun-all"], ["grep", "negative", "traces"]):
        _, out, err = ran(traces, *asked, *rate)
        assert "--rate is the price of what a service reads: what runs here says itself what it costs" in err
        assert "under $0.01" not in out + err


def test_B3_an_unknown_price_is_said(traces: Path) -> None:
    assert "Estimated cost: unknown" in ran(traces, "estimate", "traces", "--by", "batch")[1]


def test_B11_content_that_was_not_retained_is_counted(traces: Path) -> None:
    write(traces / "traces", "three.jsonl", {"id": "gone", "request": "", "turns": turns("", "")})
    found = parsed(traces, "estimate", "traces", "--signal", "heuristic-negative-tone")
    assert found["not_retained"] == 1
    assert "1 content not retained" in ran(traces, "estimate", "traces", "--signal", "heuristic-negative-tone")[1]


def test_B11_a_record_that_cannot_be_read_is_counted(traces: Path) -> None:
    write(traces / "traces", "three.jsonl", CALM | {"id": "other"}, {"id": "broken", "turns": turns("Hello")})
    out = ran(traces, "estimate", "traces")[1]
    assert "left out: 1 missing field 'request'" in out


def test_a_search_that_found_nothing_says_what_it_read(traces: Path) -> None:
    code, out, err = ran(traces, "grep", "thinking_tags", "traces")
    assert (code, out) == (1, "")
    assert err.splitlines()[-1] == "evalr: nothing fired in 3 conversations, read by heuristic-thinking-tags"


def test_a_search_of_nothing_that_runs_here_names_what_does(traces: Path) -> None:
    code, _, err = ran(traces, "grep", "frustrated", "traces")
    assert (code, "--by live, or run --by batch" in err) == (2, True)
    assert "rules written by hand run here, such as heuristic-loop" in err


def test_an_empty_folder_says_that_it_is_empty(traces: Path) -> None:
    (traces / "none").mkdir()
    assert ran(traces, "grep", "negative", "none")[::2] == (2, "evalr: none: there is no file in this folder\n")


def test_a_sample_of_more_than_all_names_its_option(traces: Path) -> None:
    code, _, err = ran(traces, "estimate", "traces", "--sample", "200%")
    assert (code, "--sample '200%' is not above 0% and at most 100%" in err) == (2, True)


def test_R14_the_preview_shows_the_very_texts(traces: Path) -> None:
    out = ran(traces, "preview", "traces", "--signal", "heuristic-negative-tone", "-n", "1")[1]
    assert out == "User chat -> heuristic-negative-tone\n  calm, turn 0\n    | Where is my order?\n\n"


def test_R14_a_terminal_is_safe_from_what_a_trace_says(traces: Path) -> None:
    write(
        traces / "traces",
        "evil.jsonl",
        {"id": "evil\x1b[2J", "request": "x", "turns": turns("\x1b[31mterrible awful useless!!")},
    )
    for arguments in (["preview", "traces"], ["grep", "negative", "traces"]):
        assert "\x1b" not in ran(traces, *arguments)[1]


def test_R3_own_signals_and_presets_come_from_a_file(traces: Path) -> None:
    own = Signal(
        signal_id="grumpy",
        model="heuristic-negative-tone",
        display_name="Grumpy",
        labels=("negative", "other"),
        fires_on=("negative",),
        thresholds={"negative": 0.99},
        transform=transform("user_message"),
    )
    save_signals(traces / "mine.json", [own])
    assert "grumpy" in ran(traces, "signals", "--signals", "mine.json")[1]
    assert ran(traces, "grep", "grumpy", "traces", "--signals", "mine.json")[0] == 1


def test_R7_the_list_of_signals_says_which_start_ticked_and_which_cannot_run(traces: Path) -> None:
    lines = ran(traces, "signals")[1].splitlines()
    ticked = [line.split()[1] for line in lines if line.startswith("[x]")]
    assert ticked == ["jailbreak", "guardrail", "user-frustration", "leaked-thinking", "stuck-in-a-loop"]
    assert sum("unavailable: no classifier" in line for line in lines) == 9


def test_R13_errors_are_of_turns_and_of_calls(traces: Path) -> None:
    failed = {"role": "agent", "text": "", "tool_calls": [{"name": "search", "status": "error", "error": "timeout"}]}
    write(traces / "traces", "three.jsonl", {"id": "failed", "request": "x", "turns": [*turns("Find x"), failed]})
    found = parsed(traces, "estimate", "traces", "--where", "errors", "--where", "user=nobody")
    assert found["conversations"] == 0
    found = parsed(traces, "estimate", "traces", "--where", "errors")
    assert (found["conversations"], found["scope"]["filters"]["errors_only"]) == (1, True)


def test_R13_a_scope_keeps_how_it_was_chosen() -> None:
    assert scope_of(where=["errors"]) == matching(errors_only=True)
    assert scope_of(convo=["a"]).chosen == "selected"
    assert scope_of(sample="10%:7").chosen == "random"
    assert scope_of().chosen == "all"


def test_R7_without_a_service_the_heuristics_run_and_say_so() -> None:
    found = choose()
    assert all(each.signal_id.startswith("heuristic-") for each in found.signals)
    assert "user-frustration" in found.notes[0]
    ticked = choose(service=True)
    assert [each.signal_id for each in ticked.signals] == [
        "jailbreak",
        "guardrail",
        "user-frustration",
        "leaked-thinking",
        "stuck-in-a-loop",
    ]


def test_B15_the_words_of_the_panel() -> None:
    assert complete_lines(317, 1_204) == ["Pass complete", "317 conversations flagged", "1,204 selected labels"]
    assert complete_lines(1, 2, failed=492, completed=8_920)[:3] == [
        "Pass complete with failed rows",
        "8,920 completed",
        "492 failed",
    ]
    assert progress_words(4_120, 9_412) == "4,120 / 9,412 inputs complete 43.8%"
    assert (percent(0.97), percent(0.999), percent(1.0)) == ("97%", "99%", "100%")


@pytest.mark.skipif(sys.platform == "win32", reason="there is no pseudo-terminal")
def test_B15_a_terminal_shows_chips(traces: Path) -> None:
    ours, theirs = pty.openpty()
    program = "import sys; from evalr.cli import main; sys.exit(main(sys.argv[1:]))"
    arguments = ["tracepass", "grep", "negative", "traces"]
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=traces,
        stdout=theirs,
        env={**os.environ, "TERM": "xterm"},
        timeout=60,
        check=False,
    )
    shown = os.read(ours, 4_096).decode()
    os.close(theirs)
    os.close(ours)
    assert done.returncode == 0
    assert shown.startswith("traces/one.jsonl  angry  turn 2  \x1b[31m[negative ")
    assert "%]" in shown


def test_B20_an_option_means_the_same_in_every_subcommand() -> None:
    said: dict[str, set[str]] = {}
    commands = [get_command(command.app)]
    while commands:
        found: Any = commands.pop()
        commands += getattr(found, "commands", {}).values()
        for option in found.params:
            for name in option.opts:
                if name.startswith("--") and name != "--help":
                    said.setdefault(name, set()).add(str(option.help))
    # How a pass was begun is known; a file is read from, or changed; monitors and servers have names of their own.
    several = {name for name, texts in said.items() if len(texts) > 1}
    assert several == {"--by", "--name", "--signal", "--signals"}


def test_grep_in_what_cannot_be_read_is_not_a_search_for_nothing(traces: Path) -> None:
    (traces / "broken.jsonl").write_text(
        '{"id": "a", "turns": [{"role": "person", "text": "hello"}]}\n', encoding="utf-8"
    )
    status, _, said = ran(traces, "grep", "negative", "broken.jsonl")
    assert status == 2
    assert "left out: 1 " in said

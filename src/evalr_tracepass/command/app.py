"""`evalr tracepass`: passes over traces, and grep for what they mean.

What its commands do is imported where it is done, so that --help is quick.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from evalr.cli.added import Command, new_app
from evalr.cli.output import has_color, print_lines
from evalr.cli.texts import read_length, read_time

if TYPE_CHECKING:
    from evalr_tracepass.command.choosing import Choice
    from evalr_tracepass.planning import Plan
    from evalr_tracepass.sources import Source

app = new_app("Grep for meaning over agent traces: choose signals, see the estimate, run, see what was flagged.")
command = Command(name="tracepass", app=app)

NOTHING_FIRED = 1

LogPath = Annotated[
    str, typer.Argument(metavar="LOG", help="A log of conversations, or a folder of logs.", show_default=False)
]
Kind = Annotated[
    str | None,
    typer.Option("--log", metavar="KIND", help="The reader to use, where it should not be found by looking."),
]
SignalNames = Annotated[
    list[str] | None,
    typer.Option("--signal", metavar="NAME", help="What to look for; may be given several times. [default: ticked]"),
]
SignalFile = Annotated[str | None, typer.Option("--signals", metavar="FILE", help="A file of your own signals.")]
Preset = Annotated[str | None, typer.Option(metavar="NAME", help="One of the file's presets: signals run together.")]
Where = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FILTER", help="A text that some turn holds, user=ID, or errors; all of several must be true."
    ),
]
Convo = Annotated[list[str] | None, typer.Option(metavar="ID", help="Only this conversation; may be several.")]
Since = Annotated[str | None, typer.Option(metavar="TIME", help="Only what began at this time or later.")]
Until = Annotated[str | None, typer.Option(metavar="TIME", help="Only what began before this time.")]
Last = Annotated[str | None, typer.Option(metavar="LENGTH", help="Only what began in the last 24h, 7d, 2w.")]
Sample = Annotated[
    str | None,
    typer.Option(metavar="SHARE", help="A random part of the conversations: 10%, or 10%:7 for the seed 7."),
]
Now = Annotated[str | None, typer.Option(metavar="TIME", help="What --last counts from. [default: now]")]
Rate = Annotated[float | None, typer.Option(metavar="USD", min=0, help="The price of one prediction.")]
Strict = Annotated[bool, typer.Option("--strict", help="Stop at the first record that cannot be used.")]
Json = Annotated[bool, typer.Option("--json", help="Print it as JSON.")]

GREP_ENDINGS = "Exit codes: 0 something fired, 1 nothing did, 2 misuse or a log that cannot be used, 130 stopped."


@app.command()
def signals(
    file: SignalFile = None,
    json: Json = False,
) -> None:
    """List the signals: what each reads, whether it starts ticked, and why one cannot run."""
    from evalr_tracepass.catalogue import SIGNALS, availability, heuristics
    from evalr_tracepass.command.choosing import own_signals
    from evalr_tracepass.command.words import signal_lines

    known = [*SIGNALS.values(), *own_signals(file).signals.values()]
    found = availability(known, heuristics())
    ticked = [each.signal_id for each in known if each.enabled_by_default]
    fields = {"signals": [{**each.signal.to_dict(), "unavailable": each.reason} for each in found]}
    print_lines(signal_lines(found, ticked), fields, json=json)


@app.command()
def estimate(
    log: LogPath,
    signal: SignalNames = None,
    file: SignalFile = None,
    preset: Preset = None,
    where: Where = None,
    convo: Convo = None,
    since: Since = None,
    until: Until = None,
    last: Last = None,
    sample: Sample = None,
    now: Now = None,
    rate: Rate = None,
    kind: Kind = None,
    strict: Strict = False,
    json: Json = False,
) -> None:
    """Say what a pass would send and cost. No classifier is asked."""
    from evalr_tracepass.command.words import COUNTING, estimate_lines

    choice = _choice(signal, file, preset)
    made = _plan(choice, where, convo, since, until, last, sample, now)
    if sys.stderr.isatty():
        print(COUNTING, file=sys.stderr)
    source = _source(log, kind, strict)
    found = made.estimate(source, rate=rate)
    found = found.model_copy(update={"left_out": {**found.left_out, **source.left_out}})
    fields = {**found.model_dump(mode="json"), "scope": made.scope.model_dump(mode="json"), "notes": list(choice.notes)}
    _say(choice)
    print_lines(estimate_lines(made, found), fields, json=json)


@app.command()
def preview(
    log: LogPath,
    number: Annotated[int, typer.Option("--number", "-n", min=1, metavar="N", help="Texts of each transform.")] = 5,
    signal: SignalNames = None,
    file: SignalFile = None,
    preset: Preset = None,
    where: Where = None,
    convo: Convo = None,
    since: Since = None,
    until: Until = None,
    last: Last = None,
    sample: Sample = None,
    now: Now = None,
    kind: Kind = None,
    strict: Strict = False,
    json: Json = False,
) -> None:
    """Show the very texts that classifiers would be given. None is asked."""
    from evalr_tracepass.command.words import preview_lines

    choice = _choice(signal, file, preset)
    made = _plan(choice, where, convo, since, until, last, sample, now)
    rows = made.preview(_source(log, kind, strict), n=number)
    fields = {
        "rows": [
            {**row.item._asdict(), "source_start_time": str(row.item.source_start_time or ""), "text": row.text}
            for row in rows
        ]
    }
    _say(choice)
    print_lines(preview_lines(made, rows), fields, json=json)


@app.command(epilog=GREP_ENDINGS)
def grep(
    pattern: Annotated[
        str,
        typer.Argument(
            metavar="PATTERN", help="For names and labels of signals: 'frustrated|looping'.", show_default=False
        ),
    ],
    log: LogPath,
    signal: SignalNames = None,
    file: SignalFile = None,
    where: Where = None,
    convo: Convo = None,
    since: Since = None,
    until: Until = None,
    last: Last = None,
    sample: Sample = None,
    now: Now = None,
    kind: Kind = None,
    strict: Strict = False,
    json: Json = False,
) -> None:
    """Print the turns on which a signal fires: log, conversation, turn, label, score.

    Signals whose name, or a label that they fire on, matches the pattern are run, if they can be.
    """
    from evalr_tracepass.command.choosing import choose, own_signals
    from evalr_tracepass.command.grepping import Found, hit_fields, hit_line, json_line, search

    choice = choose(signal or (), pattern=pattern, own=own_signals(file))
    made = _plan(choice, where, convo, since, until, last, sample, now)
    _say(choice)
    found = Found()
    color, chips = has_color(), sys.stdout.isatty()
    for name, answer in search(made, log, choice.reflexes, found, kind=kind, strict=strict):
        print(json_line(hit_fields(name, answer)) if json else hit_line(name, answer, color=color, chips=chips))
    for note in found.notes():
        print(f"evalr: {note}", file=sys.stderr)
    if not found.fired:
        raise typer.Exit(NOTHING_FIRED)


# ---------------------------------------------------------------------------------------------------------------------
# What several of them do
# ---------------------------------------------------------------------------------------------------------------------


def _choice(signal: list[str] | None, file: str | None, preset: str | None) -> Choice:
    from evalr_tracepass.command.choosing import choose, own_signals

    return choose(signal or (), preset=preset, own=own_signals(file))


def _plan(
    choice: Choice,
    where: list[str] | None,
    convo: list[str] | None,
    since: str | None,
    until: str | None,
    last: str | None,
    sample: str | None,
    now: str | None,
) -> Plan:
    from evalr_tracepass.command.choosing import scope_of
    from evalr_tracepass.planning import plan

    scope = scope_of(
        where=where or (),
        convo=convo or (),
        since=None if since is None else read_time(since),
        until=None if until is None else read_time(until),
        last=None if last is None else read_length(last),
        sample=sample,
        now=None if now is None else read_time(now),
    )
    return plan(choice.signals, scope=scope, reflexes=choice.reflexes)


def _source(log: str, kind: str | None, strict: bool) -> Source:
    from evalr_tracepass.sources import log_traces

    return log_traces(log, kind=kind, strict=strict)


def _say(choice: Choice) -> None:
    for note in choice.notes:
        print(f"evalr: {note}", file=sys.stderr)

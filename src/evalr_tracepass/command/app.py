"""`evalr tracepass`: passes over traces, and grep for what they mean.

What its commands do is imported where it is done, so that --help is quick.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from evalr.cli.added import Command, new_app
from evalr.cli.endings import STOPPED
from evalr.cli.output import has_color, print_lines
from evalr.cli.texts import read_length, read_time

if TYPE_CHECKING:
    from evalr_tracepass.command.choosing import Choice
    from evalr_tracepass.planning import Plan
    from evalr_tracepass.records import Rerun
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

StorePlace = Annotated[
    str, typer.Option("--store", metavar="PLACE", help="Where passes are kept: a file, or postgresql://host/database.")
]
AccountId = Annotated[str, typer.Option("--account", metavar="ID", help="Whose traces and results.")]
OrgId = Annotated[str, typer.Option("--org", metavar="ID", help="The organisation, where they are one's.")]
PassId = Annotated[str, typer.Argument(metavar="PASS", help="Of the pass; its first letters will do.")]
OptionalPassId = Annotated[
    str, typer.Argument(metavar="[PASS]", help="latest, all, or the id of one; its first letters will do.")
]
By = Annotated[
    str,
    typer.Option("--by", metavar="WAY", help="local: classifiers that run here; batch: a service; live: it, capped."),
]
Url = Annotated[
    str | None,
    typer.Option("--url", metavar="URL", help="The service's. Its key is in MORPH_API_KEY. [default: MORPH_BASE_URL]"),
]
DEFAULT_STORE = "tracepass.db"
DEFAULT_ACCOUNT = "local"

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
    by: By = "local",
    rate: Rate = None,
    kind: Kind = None,
    strict: Strict = False,
    json: Json = False,
) -> None:
    """Say what a pass would send and cost. No classifier is asked."""
    from evalr_tracepass.command.words import COUNTING, estimate_lines

    choice = _choice(signal, file, preset, by)
    made = _plan(choice, where, convo, since, until, last, sample, now)
    if sys.stderr.isatty():
        print(COUNTING, file=sys.stderr)
    source = _source(log, kind, strict)
    found = made.estimate(source, rate=_rate(rate, choice))
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
    by: By = "local",
    kind: Kind = None,
    strict: Strict = False,
    json: Json = False,
) -> None:
    """Show the very texts that classifiers would be given. None is asked."""
    from evalr_tracepass.command.words import preview_lines

    choice = _choice(signal, file, preset, by)
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
# Running
# ---------------------------------------------------------------------------------------------------------------------


@app.command(epilog=GREP_ENDINGS)
def run(
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
    only_new: Annotated[bool, typer.Option("--only-new", help="Only what no pass has read.")] = False,
    rerun_all: Annotated[bool, typer.Option("--rerun-all", help="Also what passes have read, without asking.")] = False,
    by: By = "local",
    url: Url = None,
    rate: Rate = None,
    budget: Annotated[float | None, typer.Option(metavar="USD", help="Do not begin what would cost more.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before it costs anything.")] = False,
    detach: Annotated[bool, typer.Option("--detach", help="Upload, and leave the rest to `sync`.")] = False,
    store: StorePlace = DEFAULT_STORE,
    account: AccountId = DEFAULT_ACCOUNT,
    org: OrgId = "",
    kind: Kind = None,
    strict: Strict = False,
    json: Json = False,
) -> None:
    """Run signals over traces, and keep what they say.

    Says first what that comes to. A pass that is cut short goes on with `evalr tracepass resume`.
    """
    from evalr.errors import InputError
    from evalr_tracepass.command.passing import LOCAL, allowed, passes_of, rerun_of, told, transport_of
    from evalr_tracepass.command.stored import ENDED, opened
    from evalr_tracepass.command.words import COUNTING, estimate_lines

    if only_new and rerun_all:
        raise InputError("--only-new and --rerun-all say different things: pass one of them")
    if detach and by == LOCAL:
        raise InputError("--detach leaves a batch to a service; classifiers that run here end with the command")
    choice = _choice(signal, file, preset, by)
    transport = transport_of(by, url, choice.reflexes)
    made = _plan(choice, where, convo, since, until, last, sample, now)
    source = _source(log, kind, strict)
    _say(choice)
    if sys.stderr.isatty():
        print(COUNTING, file=sys.stderr)
    ahead = made.estimate(source, rate=_rate(rate, choice), batch=transport.largest)
    if not json:
        print("\n".join(estimate_lines(made, ahead)), file=sys.stderr)
    with opened(store, account, org) as kept:
        asked: Rerun | None = "new" if only_new else "all" if rerun_all else None
        rerun = rerun_of(kept, made, source, asked=asked)
        if rerun is None or not allowed(ahead, by=by, budget=budget, yes=yes):
            raise typer.Exit(STOPPED)
        options: dict[str, Any] = {"patience": 0.0} if detach else {}
        passes, shown = passes_of(kept, transport, total=ahead.inputs, **options)
        found = passes.run_sync(made, source, rerun=rerun, estimate=ahead)
        shown.clear()
        lines, fields = told(kept, found)
    print_lines(lines, fields, json=json)
    if found.status in ENDED and not fields["flagged"]:
        raise typer.Exit(NOTHING_FIRED)


@app.command()
def resume(
    pass_id: PassId,
    log: LogPath,
    by: By = "local",
    url: Url = None,
    store: StorePlace = DEFAULT_STORE,
    account: AccountId = DEFAULT_ACCOUNT,
    org: OrgId = "",
    kind: Kind = None,
    strict: Strict = False,
    json: Json = False,
) -> None:
    """Go on with a pass that was cut short, over the traces that it was begun with."""
    from evalr_tracepass.catalogue import heuristics
    from evalr_tracepass.command.passing import passes_of, told, transport_of
    from evalr_tracepass.command.stored import opened

    with opened(store, account, org) as kept:
        begun = kept.get_pass(pass_id)
        passes, shown = passes_of(kept, transport_of(by, url, heuristics()), total=begun.estimate.inputs)
        found = passes.resume_sync(begun.id, _source(log, kind, strict))
        shown.clear()
        lines, fields = told(kept, found)
    print_lines(lines, fields, json=json)


@app.command()
def sync(
    pass_id: PassId,
    give_up: Annotated[
        bool, typer.Option("--give-up", help="Record what has not come back as failed, and end the pass.")
    ] = False,
    by: By = "batch",
    url: Url = None,
    store: StorePlace = DEFAULT_STORE,
    account: AccountId = DEFAULT_ACCOUNT,
    org: OrgId = "",
    json: Json = False,
) -> None:
    """Take what a service has for a pass by now. Done twice, it changes nothing."""
    from evalr_tracepass.catalogue import heuristics
    from evalr_tracepass.command.passing import passes_of, told, transport_of
    from evalr_tracepass.command.stored import ENDED, opened

    with opened(store, account, org) as kept:
        begun = kept.get_pass(pass_id)
        if begun.status in ENDED:
            lines, fields = told(kept, begun)
        else:
            passes, shown = passes_of(kept, transport_of(by, url, heuristics()), total=begun.total_inputs)
            found = passes.sync_sync(begun.id, give_up=give_up)
            shown.clear()
            lines, fields = told(kept, found)
    print_lines(lines, fields, json=json)


@app.command()
def retry(
    pass_id: PassId,
    log: LogPath,
    by: By = "local",
    url: Url = None,
    store: StorePlace = DEFAULT_STORE,
    account: AccountId = DEFAULT_ACCOUNT,
    org: OrgId = "",
    kind: Kind = None,
    strict: Strict = False,
    json: Json = False,
) -> None:
    """Send the failed inputs of a pass again, in the same pass, each to the models that failed."""
    from evalr_tracepass.catalogue import heuristics
    from evalr_tracepass.command.passing import passes_of, told, transport_of
    from evalr_tracepass.command.stored import opened

    with opened(store, account, org) as kept:
        begun = kept.get_pass(pass_id)
        passes, shown = passes_of(kept, transport_of(by, url, heuristics()), total=begun.failed_inputs)
        found = passes.retry_sync(begun.id, _source(log, kind, strict))
        shown.clear()
        lines, fields = told(kept, found)
    print_lines(lines, fields, json=json)


# ---------------------------------------------------------------------------------------------------------------------
# Passes that are kept
# ---------------------------------------------------------------------------------------------------------------------


@app.command()
def passes(
    store: StorePlace = DEFAULT_STORE, account: AccountId = DEFAULT_ACCOUNT, org: OrgId = "", json: Json = False
) -> None:
    """List the passes of an account, the latest first."""
    from evalr_tracepass.command.stored import opened, pass_fields, passes_lines

    with opened(store, account, org) as kept:
        found = kept.store.passes(kept.account)
        totals = {each.id: kept.store.totals(kept.account, each.id) for each in found}
    fields = {"passes": [pass_fields(each, totals[each.id]) for each in found]}
    print_lines(passes_lines(found, totals), fields, json=json)


@app.command()
def status(
    pass_id: PassId,
    store: StorePlace = DEFAULT_STORE,
    account: AccountId = DEFAULT_ACCOUNT,
    org: OrgId = "",
    json: Json = False,
) -> None:
    """Say where a pass stands, as far as its store knows. `sync` asks the service."""
    from evalr_tracepass.command.stored import opened, pass_fields, status_lines

    with opened(store, account, org) as kept:
        found = kept.get_pass(pass_id)
        totals = kept.store.totals(kept.account, found.id)
        counts = kept.store.counts(kept.account, found.id)
        batches = kept.store.batches(kept.account, found.id)
    fields = {**pass_fields(found, totals), "rows": dict(counts), "batches": [each.batch_id for each in batches]}
    print_lines(status_lines(found, totals, counts, batches), fields, json=json)


@app.command()
def results(
    pass_id: OptionalPassId = "latest",
    failed: Annotated[bool, typer.Option("--failed", help="Only the inputs that failed, with why.")] = False,
    all_of: Annotated[bool, typer.Option("--all", help="Also what did not fire.")] = False,
    rates: Annotated[bool, typer.Option("--rates", help="How often each signal fired, with its interval.")] = False,
    signal: SignalNames = None,
    convo: Convo = None,
    store: StorePlace = DEFAULT_STORE,
    account: AccountId = DEFAULT_ACCOUNT,
    org: OrgId = "",
    json: Json = False,
) -> None:
    """Show the flagged conversations, with up to three labels each; of one conversation, its turns.

    By default of each conversation the latest completed pass that read it.
    """
    from evalr_tracepass.command.stored import asked_results, opened

    with opened(store, account, org) as kept:
        lines, fields = asked_results(
            kept,
            pass_id,
            failed=failed,
            clean=all_of,
            rates=rates,
            signals=signal or (),
            convos=convo or (),
            color=has_color(),
        )
    print_lines(lines, fields, json=json)


@app.command()
def export(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Ends in .jsonl, .csv or .parquet.", show_default=False)],
    pass_id: Annotated[str, typer.Option("--pass", metavar="PASS", help="latest, all, or the id of one.")] = "latest",
    store: StorePlace = DEFAULT_STORE,
    account: AccountId = DEFAULT_ACCOUNT,
    org: OrgId = "",
    json: Json = False,
) -> None:
    """Write results to a file, which `evalr report` reads. It holds no text of a trace."""
    from evalr.estimates.words import count_words
    from evalr.quoting import safe_text
    from evalr_tracepass.command.stored import opened
    from evalr_tracepass.record_files import write_records

    with opened(store, account, org) as kept:
        count = write_records(file, kept.results(pass_id))
    print_lines([f"{count_words(count, 'result')} in {safe_text(file)}"], {"results": count, "file": file}, json=json)


@app.command()
def monitor(
    log: LogPath,
    signal: SignalNames = None,
    file: SignalFile = None,
    preset: Preset = None,
    where: Where = None,
    name: Annotated[
        str, typer.Option(metavar="NAME", help="Of the monitor, which knows what it has read.")
    ] = "monitor",
    settle: Annotated[str, typer.Option(metavar="LENGTH", help="How long ago a conversation must have ended.")] = "30m",
    webhook: Annotated[
        list[str] | None,
        typer.Option(metavar="URL", help="Told what fired; signed with the secret in EVALR_WEBHOOK_SECRET."),
    ] = None,
    by: By = "local",
    url: Url = None,
    now: Now = None,
    store: StorePlace = DEFAULT_STORE,
    account: AccountId = DEFAULT_ACCOUNT,
    org: OrgId = "",
    kind: Kind = None,
    strict: Strict = False,
    json: Json = False,
) -> None:
    """Run signals over what is new since the last run; to be called on a schedule.

    Without --signal or --preset: the file's signals whose monitor is on, else those that start ticked.
    """
    from evalr_tracepass.command.passing import monitored

    lines, fields = monitored(
        log,
        signals=signal or (),
        file=file,
        preset=preset,
        where=where or (),
        name=name,
        settle=read_length(settle),
        webhooks=webhook or (),
        by=by,
        url=url,
        now=None if now is None else read_time(now),
        place=(store, account, org),
        kind=kind,
        strict=strict,
        say=_say,
    )
    print_lines(lines, fields, json=json)


@app.command("schema")
def print_schema(
    engine: Annotated[
        Literal["sqlite", "postgresql", "clickhouse"], typer.Argument(help="Which.", show_default=True)
    ] = "clickhouse",
) -> None:
    """Print the tables of a store, as it makes them. None of them holds a text of a trace."""
    from evalr_tracepass.stores.schemas import schema

    print(schema(engine), end="")


@app.command()
def prune(
    store: StorePlace = DEFAULT_STORE,
    account: AccountId = DEFAULT_ACCOUNT,
    org: OrgId = "",
    now: Now = None,
    json: Json = False,
) -> None:
    """Remove results that are older than 365 days."""
    from evalr.estimates.words import count_words
    from evalr_tracepass.command.stored import opened

    with opened(store, account, org) as kept:
        count = kept.store.prune(kept.account, now=None if now is None else read_time(now))
    print_lines([f"{count_words(count, 'result')} removed"], {"removed": count}, json=json)


@app.command()
def serve(
    log: LogPath,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where to listen; one that other machines reach needs --token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="PORT", min=0, max=65_535, help="0 takes one that is free.")] = 8765,
    token: Annotated[
        str | None,
        typer.Option(metavar="TEXT", envvar="EVALR_TRACES_TOKEN", help="What a browser must know to be answered."),
    ] = None,
    name: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A name by which it may be called; may be several.")
    ] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Show results; run and change nothing.")] = False,
    file: SignalFile = None,
    by: By = "local",
    url: Url = None,
    rate: Rate = None,
    store: StorePlace = DEFAULT_STORE,
    account: AccountId = DEFAULT_ACCOUNT,
    org: OrgId = "",
    kind: Kind = None,
    strict: Strict = False,
) -> None:
    """Serve the traces page: look at conversations, run signals over them, and open what was flagged.

    It is for this machine, at an address that no other reaches. Needs evalr[web].
    """
    from evalr_tracepass.web.serving import serve as serve_page

    serve_page(
        log,
        kind=kind,
        strict=strict,
        place=(store, account, org),
        signals=file,
        by=by,
        url=url,
        rate=rate,
        host=host,
        port=port,
        token=token,
        names=name or (),
        read_only=read_only,
        say=lambda address: print(f"Traces at {address}  (Ctrl-C stops it)", flush=True),
    )


# ---------------------------------------------------------------------------------------------------------------------
# What several of them do
# ---------------------------------------------------------------------------------------------------------------------


def _choice(signal: list[str] | None, file: str | None, preset: str | None, by: str = "local") -> Choice:
    from evalr_tracepass.command.choosing import choose, own_signals

    return choose(signal or (), preset=preset, own=own_signals(file), service=by != "local")


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


def _rate(rate: float | None, choice: Choice) -> float | dict[str, float] | None:
    """The price of a prediction: as given, else nothing for rules that run here; of others it is not known."""
    if rate is not None:
        return rate
    if not choice.reflexes:
        return None
    return {name: 0.0 for name, each in choice.reflexes.items() if getattr(each, "kind", None) == "heuristic"}


def _source(log: str, kind: str | None, strict: bool) -> Source:
    from evalr_tracepass.sources import log_traces

    return log_traces(log, kind=kind, strict=strict)


def _say(choice: Choice) -> None:
    for note in choice.notes:
        print(f"evalr: {note}", file=sys.stderr)

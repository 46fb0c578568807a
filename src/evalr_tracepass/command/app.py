"""`evalr tracepass`: passes over traces, and grep for what they mean.

What its commands do is imported where it is done, so that --help is quick.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from evalr.cli.added import Command, new_app
from evalr.cli.endings import STOPPED, UNUSABLE
from evalr.cli.option_groups import with_groups
from evalr.cli.output import has_color, print_lines
from evalr.cli.texts import read_length, read_time
from evalr_tracepass.command.options import (
    Begun,
    By,
    Convo,
    Json,
    LatestPassId,
    LogPath,
    Now,
    OnlyNew,
    OptionalPassId,
    Own,
    Paid,
    PassId,
    Place,
    Rate,
    Reading,
    SignalNames,
    Url,
    Wanted,
    Where,
    Which,
)
from evalr_tracepass.command.own_app import presets_app, signals_app

if TYPE_CHECKING:
    from evalr_tracepass.command.choosing import Choice, OwnThings
    from evalr_tracepass.command.places import Kept
    from evalr_tracepass.passes import Passes
    from evalr_tracepass.records import Pass, Rerun
    from evalr_tracepass.sources import Source

app = new_app("Grep for meaning over agent traces: choose signals, see the estimate, run, see what was flagged.")
app.add_typer(signals_app, name="signals")
app.add_typer(presets_app, name="presets")
command = Command(name="tracepass", app=app)

NOTHING_FIRED = 1

GREP_ENDINGS = "Exit codes: 0 something fired, 1 nothing did, 2 misuse or a log that cannot be used, 130 stopped."


@app.command()
@with_groups
def estimate(
    log: LogPath,
    wanted: Wanted,
    own: Own,
    which: Which,
    reading: Reading,
    place: Place,
    by: By = "local",
    rate: Rate = None,
    json: Json = False,
) -> None:
    """Say what a pass would send and cost. No classifier is asked."""
    from evalr_tracepass.command.choosing import planned
    from evalr_tracepass.command.passing import sent_of, transport_of
    from evalr_tracepass.command.words import estimate_lines

    choice = _choice(wanted, own, place, by)
    transport, prices = transport_of(by, None, choice.reflexes), choice.prices(rate)
    made, source = planned(choice, which), _source(log, reading)
    notes = _say(choice, rate)
    _say_counting()
    found = made.estimate(source, rate=prices, batch=transport.largest)
    found = found.model_copy(update={"left_out": {**found.left_out, **source.left_out}})
    found = found.model_copy(update={"cost": sent_of(made, source, found, prices, transport.caps).cost})
    fields = {**found.model_dump(mode="json"), "scope": made.scope.model_dump(mode="json"), "notes": notes}
    print_lines(estimate_lines(made, found, transport), fields, json=json)


@app.command()
@with_groups
def preview(
    log: LogPath,
    wanted: Wanted,
    own: Own,
    which: Which,
    reading: Reading,
    place: Place,
    number: Annotated[int, typer.Option("--number", "-n", min=1, metavar="N", help="Texts of each transform.")] = 5,
    by: By = "local",
    json: Json = False,
) -> None:
    """Show the very texts that classifiers would be given. None is asked."""
    from evalr_tracepass.command.choosing import planned
    from evalr_tracepass.command.words import preview_lines

    choice = _choice(wanted, own, place, by)
    made = planned(choice, which)
    _say(choice)
    rows = made.preview(_source(log, reading), n=number)
    fields = {
        "rows": [
            {**row.item._asdict(), "source_start_time": str(row.item.source_start_time or ""), "text": row.text}
            for row in rows
        ]
    }
    print_lines(preview_lines(made, rows), fields, json=json)


@app.command(epilog=GREP_ENDINGS)
@with_groups
def grep(
    pattern: Annotated[
        str,
        typer.Argument(
            metavar="PATTERN", help="For names and labels of signals: 'frustrated|looping'.", show_default=False
        ),
    ],
    log: LogPath,
    own: Own,
    which: Which,
    reading: Reading,
    place: Place,
    paid: Paid,
    signal: SignalNames = None,
    only_new: OnlyNew = False,
    by: Annotated[
        str,
        typer.Option(
            "--by", metavar="WAY", help="local: classifiers that run here; live: beside them a service, text by text."
        ),
    ] = "local",
    json: Json = False,
) -> None:
    """Print the turns on which signals fire: log, conversation, turn, label, score, and all that fired there.

    Signals whose name, or a label that they fire on, matches the pattern are run, if they can be. Nothing is kept.
    """
    from contextlib import ExitStack
    from functools import partial

    from evalr_tracepass.command.choosing import choose, own_things, planned
    from evalr_tracepass.command.grepping import Found, hit_fields, hit_line, json_line, search
    from evalr_tracepass.command.passing import allowed, hosted_by, may_cost
    from evalr_tracepass.command.places import account_of, opened
    from evalr_tracepass.rerunning import only_new as unread

    hosted = hosted_by(by, paid.url, account_of(place))
    choice = choose(signal or (), pattern=pattern, own=own_things(own, place), hosted=hosted)
    made = planned(choice, which)
    _say(choice, paid.rate)
    found = Found()
    color, chips = has_color(), sys.stdout.isatty()
    with ExitStack() as stack:
        new = None
        if only_new:
            kept = stack.enter_context(opened(place))
            new = partial(unread, results=kept.results, account=kept.account)
        if may_cost(choice.reflexes[each.model] for each in choice.signals):
            ahead = made.estimate(_source(log, reading), rate=choice.prices(paid.rate))
            if not allowed(ahead, by=by, budget=paid.budget, yes=paid.yes):
                raise typer.Exit(STOPPED)
        for hit in search(made, log, choice.reflexes, found, kind=reading.kind, strict=reading.strict, new=new):
            print(json_line(hit_fields(hit)) if json else hit_line(hit, color=color, chips=chips))
    for note in found.notes(each.signal_id for each in choice.signals):
        print(f"evalr: {note}", file=sys.stderr)
    if not found.fired:
        raise typer.Exit(UNUSABLE if found.left_out and not found.conversations else NOTHING_FIRED)


# ---------------------------------------------------------------------------------------------------------------------
# Running
# ---------------------------------------------------------------------------------------------------------------------


@app.command(epilog=GREP_ENDINGS)
@with_groups
def run(
    log: LogPath,
    wanted: Wanted,
    own: Own,
    which: Which,
    reading: Reading,
    place: Place,
    paid: Paid,
    only_new: OnlyNew = False,
    rerun_all: Annotated[bool, typer.Option("--rerun-all", help="Also what passes have read, without asking.")] = False,
    by: By = "local",
    detach: Annotated[bool, typer.Option("--detach", help="Upload, and leave the rest to `sync`.")] = False,
    json: Json = False,
) -> None:
    """Run signals over traces, and keep what they say.

    Says first what that comes to. A pass that is cut short goes on with `evalr tracepass resume`.
    """
    from evalr.errors import InputError
    from evalr_tracepass.command.choosing import planned
    from evalr_tracepass.command.passing import (
        LOCAL,
        allowed,
        check_key,
        going_on,
        left_of,
        passes_of,
        rerun_of,
        sent_of,
        told,
        transport_of,
    )
    from evalr_tracepass.command.places import account_of, opened
    from evalr_tracepass.command.stored import ENDED
    from evalr_tracepass.command.words import counted_lines, estimate_lines

    if only_new and rerun_all:
        raise InputError("--only-new and --rerun-all say different things: pass one of them")
    if detach and by == LOCAL:
        raise InputError("--detach leaves a batch to a service; classifiers that run here end with the command")
    choice = _choice(wanted, own, place, by)
    transport, prices = transport_of(by, paid.url, choice.reflexes), choice.prices(paid.rate)
    check_key(by, account_of(place))
    made, source = planned(choice, which), _source(log, reading)
    _say(choice, paid.rate)
    _say_counting()
    ahead = made.estimate(source, rate=prices, batch=transport.largest)
    sent = sent_of(made, source, ahead, prices, transport.caps)
    if not json:
        told_ahead = ahead.model_copy(update={"cost": sent.cost})
        print("\n".join(estimate_lines(made, told_ahead, transport)), file=sys.stderr)
    with opened(place, new=True) as kept:
        asked: Rerun | None = "new" if only_new else "all" if rerun_all else None
        rerun = rerun_of(kept, made, source, asked=asked)
        if rerun is None:
            raise typer.Exit(STOPPED)
        left = sent
        if rerun == "new":
            left = left_of(kept, made, source, ahead, prices, caps=transport.caps)
            if not json:
                print(f"of these new: {', '.join(counted_lines(left))}", file=sys.stderr)
        if not allowed(left, by=by, budget=paid.budget, yes=paid.yes):
            raise typer.Exit(STOPPED)
        options: dict[str, Any] = {"patience": 0.0} if detach else {}
        passes, shown = passes_of(kept, transport, total=left.inputs, **options)
        with going_on(kept, log, by) as pass_id:
            found = passes.run_sync(made, source, rerun=rerun, estimate=ahead, pass_id=pass_id)
        shown.clear()
        lines, fields = told(kept, found, log)
    print_lines(lines, fields, json=json)
    if found.status in ENDED and not fields["flagged"]:
        raise typer.Exit(NOTHING_FIRED)


@app.command()
@with_groups
def resume(
    pass_id: PassId, log: LogPath, own: Own, reading: Reading, place: Place, begun: Begun, json: Json = False
) -> None:
    """Go on with a pass that was cut short, over the traces that it was begun with."""
    from evalr_tracepass.command.passing import told
    from evalr_tracepass.command.places import opened

    things = _own_things(own, place)
    with opened(place) as kept:
        before = kept.get_pass(pass_id)
        with _again(kept, before, things, begun, total=before.estimate.inputs) as passes:
            found = passes.resume_sync(before.id, _source(log, reading))
        lines, fields = told(kept, found, log)
    print_lines(lines, fields, json=json)


@app.command()
@with_groups
def sync(
    own: Own,
    place: Place,
    begun: Begun,
    pass_id: LatestPassId = "latest",
    give_up: Annotated[
        bool, typer.Option("--give-up", help="Record what has not come back as failed, and end the pass.")
    ] = False,
    json: Json = False,
) -> None:
    """Take what a service has for a pass by now. Done twice, it changes nothing."""
    from evalr_tracepass.command.passing import told
    from evalr_tracepass.command.places import opened
    from evalr_tracepass.command.stored import ENDED

    things = _own_things(own, place)
    with opened(place) as kept:
        found = kept.get_pass(pass_id)
        if found.status not in ENDED:
            with _again(kept, found, things, begun, total=found.total_inputs) as passes:
                found = passes.sync_sync(found.id, give_up=give_up)
        lines, fields = told(kept, found)
    print_lines(lines, fields, json=json)


@app.command()
@with_groups
def retry(
    pass_id: PassId, log: LogPath, own: Own, reading: Reading, place: Place, begun: Begun, json: Json = False
) -> None:
    """Send the failed inputs of a pass again, in the same pass, each to the models that failed."""
    from evalr_tracepass.command.passing import told
    from evalr_tracepass.command.places import opened

    things = _own_things(own, place)
    with opened(place) as kept:
        before = kept.get_pass(pass_id)
        with _again(kept, before, things, begun, total=before.failed_inputs) as passes:
            found = passes.retry_sync(before.id, _source(log, reading))
        lines, fields = told(kept, found, log)
    if before.status == "complete":
        lines = [f"pass {before.id} has no failed inputs"]
    print_lines(lines, fields, json=json)


@app.command()
@with_groups
def monitor(
    log: LogPath,
    wanted: Wanted,
    own: Own,
    reading: Reading,
    place: Place,
    paid: Paid,
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
    now: Now = None,
    json: Json = False,
) -> None:
    """Run signals over what is new since the last run; to be called on a schedule.

    What may cost something is asked about, so that a schedule needs --yes, and may have a --budget for each run.
    Without --signal or --preset: your own signals and presets whose monitor is on, else those that start ticked.
    """
    from evalr_tracepass.command.choosing import choose, scope_of, watched
    from evalr_tracepass.command.passing import LOCAL, check_key, monitored, transport_of
    from evalr_tracepass.command.places import account_of, opened

    things = _own_things(own, place)
    at = None if now is None else read_time(now)
    names = wanted.signal or ([] if wanted.preset else watched(things))
    choice = choose(names, preset=wanted.preset, own=things, service=by != LOCAL)
    transport = transport_of(by, paid.url, choice.reflexes)
    check_key(by, account_of(place))
    _say(choice, paid.rate)
    with opened(place, new=True) as kept:
        lines, fields = monitored(
            kept,
            choice,
            _source(log, reading),
            transport,
            name=name,
            filters=scope_of(where=where or (), now=at).filters,
            settle=read_length(settle),
            webhooks=webhook or (),
            now=at,
            by=by,
            prices=choice.prices(paid.rate),
            budget=paid.budget,
            yes=paid.yes,
        )
    print_lines(lines, fields, json=json)


# ---------------------------------------------------------------------------------------------------------------------
# Passes that are kept
# ---------------------------------------------------------------------------------------------------------------------


@app.command()
@with_groups
def passes(place: Place, json: Json = False) -> None:
    """List the passes of an account, the latest first."""
    from evalr_tracepass.command.places import is_there, opened
    from evalr_tracepass.command.stored import pass_fields, passes_lines

    found, totals = [], {}
    if is_there(place):
        with opened(place) as kept:
            found = kept.store.passes(kept.account)
            totals = {each.id: kept.results.totals(kept.account, each.id) for each in found}
    fields = {"passes": [pass_fields(each, totals[each.id]) for each in found]}
    print_lines(passes_lines(found, totals), fields, json=json)


@app.command()
@with_groups
def status(place: Place, pass_id: LatestPassId = "latest", json: Json = False) -> None:
    """Say where a pass stands, as far as its store knows. `sync` asks the service."""
    from evalr_tracepass.command.places import opened
    from evalr_tracepass.command.stored import pass_fields, status_lines

    with opened(place) as kept:
        found = kept.get_pass(pass_id)
        totals = kept.results.totals(kept.account, found.id)
        counts = kept.store.counts(kept.account, found.id)
        batches = kept.store.batches(kept.account, found.id)
        lines = list(status_lines(kept, found, totals, counts, batches))
    fields = {**pass_fields(found, totals), "rows": dict(counts), "batches": [each.batch_id for each in batches]}
    print_lines(lines, fields, json=json)


@app.command()
@with_groups
def results(
    place: Place,
    pass_id: OptionalPassId = "latest",
    failed: Annotated[bool, typer.Option("--failed", help="Only the inputs that failed, with why.")] = False,
    all_of: Annotated[bool, typer.Option("--all", help="Also what did not fire.")] = False,
    rates: Annotated[bool, typer.Option("--rates", help="How often each signal fired, with its interval.")] = False,
    signal: SignalNames = None,
    convo: Convo = None,
    json: Json = False,
) -> None:
    """Show the flagged conversations, with up to three labels each; of one conversation, its turns.

    By default of each conversation the latest completed pass that read it.
    """
    from evalr_tracepass.command.places import is_there, opened
    from evalr_tracepass.command.stored import asked_results
    from evalr_tracepass.command.words import NO_PASSES

    if pass_id == "latest" and not is_there(place):
        print_lines(NO_PASSES, {"results": []}, json=json)
        return
    with opened(place) as kept:
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
@with_groups
def export(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Ends in .jsonl, .csv or .parquet.", show_default=False)],
    place: Place,
    pass_id: Annotated[str, typer.Option("--pass", metavar="PASS", help="latest, all, or the id of one.")] = "latest",
    json: Json = False,
) -> None:
    """Write results to a file, which `evalr report` reads. It holds no text of a trace."""
    from evalr.estimates.words import count_words
    from evalr.quoting import safe_text
    from evalr_tracepass.command.places import opened
    from evalr_tracepass.record_files import write_records

    with opened(place) as kept:
        count = write_records(file, kept.results_of(pass_id))
    print_lines([f"{count_words(count, 'result')} in {safe_text(file)}"], {"results": count, "file": file}, json=json)


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
@with_groups
def prune(place: Place, now: Now = None, json: Json = False) -> None:
    """Remove results that are older than 365 days."""
    from evalr.estimates.words import count_words
    from evalr_tracepass.command.places import opened

    with opened(place) as kept:
        count = kept.results.prune(kept.account, now=None if now is None else read_time(now))
    print_lines([f"{count_words(count, 'result')} removed"], {"removed": count}, json=json)


@app.command()
@with_groups
def serve(
    log: LogPath,
    own: Own,
    reading: Reading,
    place: Place,
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
    by: By = "local",
    url: Url = None,
    rate: Rate = None,
) -> None:
    """Serve the traces page: look at conversations, run signals over them, and open what was flagged.

    It is for this machine, at an address that no other reaches. Needs evalr[web].
    """
    from evalr_tracepass.web.serving import serve as serve_page

    serve_page(
        log,
        reading=reading,
        place=place,
        own=own,
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


def _own_things(own: Own, place: Place) -> OwnThings:
    from evalr_tracepass.command.choosing import own_things

    return own_things(own, place)


def _choice(wanted: Wanted, own: Own, place: Place, by: str) -> Choice:
    from evalr_tracepass.command.choosing import choose

    return choose(wanted.signal or (), preset=wanted.preset, own=_own_things(own, place), service=by != "local")


@contextmanager
def _again(kept: Kept, before: Pass, own: OwnThings, begun: Begun, *, total: int) -> Iterator[Passes]:
    """Passes by the way in which one was begun, with its progress shown."""
    from evalr_tracepass.command.passing import LOCAL, begun_by, check_key, passes_of, transport_of

    way = begun.by or begun_by(kept, before, own)
    check_key(way, kept.account)
    models = {str(each["model"]) for each in before.selected_signals}
    transport = transport_of(way, begun.url, own.reflexes(models) if way == LOCAL else {})
    made, shown = passes_of(kept, transport, total=total)
    yield made
    shown.clear()


def _source(log: str, reading: Reading) -> Source:
    from evalr_tracepass.sources import log_traces

    return log_traces(log, kind=reading.kind, strict=reading.strict)


def _say(choice: Choice, rate: float | None = None) -> list[str]:
    notes = [*choice.notes, *choice.rate_notes(rate)]
    for note in notes:
        print(f"evalr: {note}", file=sys.stderr)
    return notes


def _say_counting() -> None:
    from evalr_tracepass.command.words import COUNTING

    if sys.stderr.isatty():
        print(COUNTING, file=sys.stderr)

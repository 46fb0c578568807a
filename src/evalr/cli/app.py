"""The subcommands and their options. What they do is imported where it is done, so that --help is quick."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evalr.cli.endings import UNUSABLE, QuietGroup
from evalr.cli.texts import read_length, read_setting, read_time
from evalr.errors import InputError
from evalr.estimates.words import choice_words, count_words
from evalr.quoting import safe_text

if TYPE_CHECKING:
    from evalr.reports.report import Report

ENDINGS = "Exit codes: 0 fine, 1 a gate was not cleared, 2 misuse or a log that cannot be used, 130 stopped."

app = typer.Typer(
    cls=QuietGroup,
    help=f"Measure what AI agents achieve for people, from the logs that applications already keep.\n\n{ENDINGS}",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

LogPath = Annotated[str, typer.Argument(metavar="LOG", help="A log: a file or a directory.", show_default=False)]
Kind = Annotated[
    str | None,
    typer.Option("--log", metavar="KIND", help="The reader to use, where it should not be found by looking."),
]
Window = Annotated[
    str | None,
    typer.Option(
        metavar="LENGTH", help="How long a person has to act: 90s, 10m, 1h, 1h30m, 2d, 2w. [default: each measure's]"
    ),
]
Now = Annotated[
    str | None, typer.Option(metavar="TIME", help="The reading time: what is later does not exist yet. [default: now]")
]
Since = Annotated[
    str | None, typer.Option(metavar="TIME", help="Only what began at this time or later. A date is midnight UTC.")
]
Until = Annotated[str | None, typer.Option(metavar="TIME", help="Only what began before this time.")]
Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="KEY",
        help="What intervals are computed over. [default: the reader's, or users where known]",
    ),
]
Level = Annotated[float, typer.Option(metavar="SHARE", help="Of the two-sided intervals.")]
Processes = Annotated[
    int, typer.Option(metavar="NUMBER", min=1, help="Read evalr's own log in so many processes at once.")
]
Strict = Annotated[bool, typer.Option("--strict", help="Stop at the first record that cannot be used.")]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME=VALUE", help="Another setting of a measure or a reader; `evalr measures` lists them."
    ),
]


@app.callback(invoke_without_command=True)
def evalr(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    """Options of the command itself."""
    if version:
        from importlib import metadata

        print(f"evalr {metadata.version('evalr')}")
        raise typer.Exit


@app.command(epilog=ENDINGS)
def report(
    log: LogPath,
    kind: Kind = None,
    window: Window = None,
    now: Now = None,
    since: Since = None,
    until: Until = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="KEY", help="Group by user, session, arm, kind, an attribute, or hour, day, week or month."
        ),
    ] = None,
    cluster: Cluster = None,
    level: Level = 0.95,
    measure: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this measure; may be given several times.")
    ] = None,
    settings: Settings = None,
    json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    processes: Processes = 1,
    strict: Strict = False,
) -> None:
    """Measure a log: every number with its interval and account."""
    from evalr.reports.wording import ungrouped_words

    found = _report(
        log,
        measures=measure,
        settings=settings,
        kind=kind,
        window=window,
        now=now,
        since=since,
        until=until,
        by=by,
        cluster=cluster,
        level=level,
        strict=strict,
        processes=processes,
    )
    _print_report(found, json=json)
    ungrouped = ungrouped_words(found)
    if ungrouped is not None:
        print(f"evalr: {ungrouped}", file=sys.stderr)
        raise typer.Exit(UNUSABLE)
    if found.left_out.faults and found.left_out.total == found.records:
        count = count_words(found.records, found.noun)
        print(
            f"evalr: {safe_text(log, longest=1_000)}: nothing could be counted, all of its {count} left out",
            file=sys.stderr,
        )
        raise typer.Exit(UNUSABLE)


@app.command(epilog=ENDINGS)
def gate(
    *,
    conditions: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CONDITION",
            help="At least one NAME<NUMBER, with <, <=, > or >=: 'drop_off<20%', 'waits_median<5m', 'completion>=0.9'. "
            "Quote it.",
            show_default=False,
        ),
    ] = None,
    log: LogPath,
    kind: Kind = None,
    window: Window = None,
    now: Now = None,
    since: Since = None,
    until: Until = None,
    by: Annotated[str | None, typer.Option(metavar="KEY", hidden=True)] = None,
    cluster: Cluster = None,
    level: Level = 0.95,
    settings: Settings = None,
    processes: Processes = 1,
    strict: Strict = False,
) -> None:
    """Pass or fail a log, such as 'drop_off<20%'.

    A condition passes where the limit of the printed interval clears the bar: the upper limit for < and <=, the lower
    for > and >=. Nothing passes on an undefined number. `evalr measures` lists the names.
    """
    from evalr.cli.gates import is_condition, read_bar, read_condition, rule
    from evalr.cli.listing import summaries_by_name

    if by is not None:
        raise InputError(
            "a gate holds the whole log against its conditions: leave --by out, or use `evalr report --by`"
        )
    if not conditions:
        # With one argument alone, that one is taken for the log.
        lacks = f"a LOG after {log!r}" if is_condition(log) else f"a CONDITION before {log!r}, such as 'drop_off<20%'"
        raise InputError(f"a gate needs {lacks}: evalr gate CONDITION... LOG")
    asked = [read_condition(text) for text in conditions]
    known = summaries_by_name()
    for condition in asked:
        if condition.name not in known:
            raise InputError(f"no summary is named {condition.name!r}; {choice_words(condition.name, known)}")
        read_bar(condition.bar, known[condition.name].summary.estimate([]))
    found = _report(
        log,
        measures=[known[condition.name].measure for condition in asked],
        settings=settings,
        kind=kind,
        window=window,
        now=now,
        since=since,
        until=until,
        cluster=cluster,
        level=level,
        strict=strict,
        processes=processes,
    )
    rulings = [rule(condition, found[condition.name]) for condition in asked]
    width = max(len(ruling.asked) for ruling in rulings)
    for ruling in rulings:
        print(f"{ruling.verdict:<11}  {ruling.asked:<{width}}  {safe_text(ruling.found, longest=300)}")
    raise typer.Exit(max(ruling.code for ruling in rulings))


@app.command()
def measures() -> None:
    """List measures, names to gate on, settings and readers."""
    from evalr.cli.listing import listing

    print(listing())


@app.command()
def schema(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="TYPE",
            help="session, history, transcript or result; or a measure, for the value that its results hold.",
        ),
    ] = None,
) -> None:
    """Print the JSON Schemas of evalr's own log, JSON Lines."""
    from json import dumps

    from evalr.cli.listing import value_schemas
    from evalr.logs import schemas

    lines = schemas()
    found = lines if name is None or name in lines else value_schemas()
    if name is not None and name not in found:
        choices = choice_words(name, [*lines, *found])
        raise InputError(f"no type of line and no measure is named {name!r}; {choices}")
    print(dumps(found if name is None else found[name], indent=2))


@app.command()
def demo(
    write: Annotated[str | None, typer.Option(metavar="FILE", help="Keep the sample log in this file.")] = None,
    repository: Annotated[
        str | None, typer.Option(metavar="DIRECTORY", help="Keep the sample repository in this directory.")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="NUMBER", help="Another sample.", min=0)] = 7,
) -> None:
    """Measure a sample log and a sample repository of which the truth is known."""
    from evalr.cli.demo import show_demo

    show_demo(write, repository, seed, color=_color(), width=_width())


def _report(
    log: str,
    *,
    measures: list[Any] | None,
    settings: list[str] | None,
    window: str | None,
    now: str | None,
    since: str | None,
    until: str | None,
    **options: Any,
) -> Report:
    from evalr.bulk import report
    from evalr.cli.progress import shown_progress
    from evalr.logs import installed_readers
    from evalr.logs.log import reader_settings
    from evalr.measures.measure import installed_measures

    defaults: dict[str, Any] = {}
    for reader in installed_readers().loaded.values():
        defaults |= reader_settings(reader)
    for measure in installed_measures().loaded.values():
        defaults |= measure.settings
    given = dict(read_setting(text, defaults) for text in settings or ())
    if window is not None:
        if "window" in given:
            raise InputError("--window and --set window=... set the same: leave one of them out")
        given["window"] = read_length(window)
    with shown_progress(log) as progress:
        return report(
            log,
            measures=measures or None,
            now=_time(now),
            since=_time(since),
            until=_time(until),
            progress=progress,
            **options,
            **given,
        )


def _time(text: str | None) -> datetime | None:
    return None if text is None else read_time(text)


def _print_report(found: Report, *, json: bool) -> None:
    if json:
        from json import dumps

        print(dumps(found.to_dict(), indent=2, allow_nan=False))
    else:
        print(found.text(width=_width(), color=_color()))


def _width() -> int:
    """Of the terminal, between what a table needs and what an eye follows; 100 where there is none."""
    if not sys.stdout.isatty():
        return 100
    from shutil import get_terminal_size

    return min(max(get_terminal_size().columns, 60), 120)


def _color() -> bool:
    """Whether stdout shows bold and dim, and nobody said not to (no-color.org)."""
    from os import environ

    return sys.stdout.isatty() and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"

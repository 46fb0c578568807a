"""The subcommands and their options. What they do is imported where it is done, so that --help is quick."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evalr.cli.endings import STOPPED, UNUSABLE, QuietGroup
from evalr.cli.output import has_color, print_lines, screen_width
from evalr.cli.settings import SettingCommand, read_settings, setting_defaults
from evalr.cli.texts import read_arms, read_length, read_time
from evalr.errors import InputError
from evalr.estimates.words import choice_words, count_words
from evalr.quoting import safe_text

if TYPE_CHECKING:
    from pathlib import Path

    from evalr.cli.judging import Asked
    from evalr.reports.report import Report

ENDINGS = "Exit codes: 0 fine, 1 a gate was not cleared, 2 misuse or a log that cannot be used, 130 stopped."

DEFAULT_LIMIT = 8
"""Calls at once, where nobody says."""

app = typer.Typer(
    cls=QuietGroup,
    help=f"Measure what AI agents achieve for people, from the logs that applications already keep.\n\n{ENDINGS}",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

LogPath = Annotated[
    str, typer.Argument(metavar="LOG", help="A log: a file, a directory, or an address.", show_default=False)
]
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
    int | None,
    typer.Option(
        metavar="NUMBER",
        min=1,
        help="Read the log in so many processes at once, where its reader can. [default: the reader's]",
    ),
]
Strict = Annotated[bool, typer.Option("--strict", help="Stop at the first record that cannot be used.")]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Another setting of a measure or a reader, also as --NAME VALUE; `evalr measures` lists them.",
    ),
]


@app.callback(invoke_without_command=True)
def evalr(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    """Options of the command itself."""
    if version:
        from importlib import metadata

        print(f"evalr {metadata.version('evalr')}")
        raise typer.Exit


@app.command(epilog=ENDINGS, cls=SettingCommand)
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
    lift: Annotated[
        str | None,
        typer.Option(metavar="ARM:ARM", help="Compare two groups, by arm or as --by says: treatment:control."),
    ] = None,
    randomised: Annotated[
        bool, typer.Option("--randomised", help="Say that arms were assigned at random; else a lift is observational.")
    ] = False,
    cluster: Cluster = None,
    level: Level = 0.95,
    measure: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this measure; may be given several times.")
    ] = None,
    settings: Settings = None,
    html: Annotated[
        str | None,
        typer.Option("--html", metavar="FILE", help="Write a page, too: everything over time, by arm, and as plots."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    processes: Processes = None,
    strict: Strict = False,
) -> None:
    """Measure a log: every number with its interval and account."""
    from evalr.cli.pages import check_page, write_page
    from evalr.reports.wording import uncompared_words, ungrouped_words

    if html is not None:
        check_page(html, log)
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
        lift=None if lift is None else read_arms(lift),
        randomised=randomised,
        cluster=cluster,
        level=level,
        strict=strict,
        processes=processes,
        details=html is not None,
    )
    _print_report(found, json=json)
    if html is not None:
        write_page(found, html)
    for missing in (ungrouped_words(found), uncompared_words(found)):
        if missing is not None:
            print(f"evalr: {missing}", file=sys.stderr)
            raise typer.Exit(UNUSABLE)
    if found.left_out.faults and found.left_out.total == found.records:
        count = count_words(found.records, found.noun)
        name = safe_text(found.path or log, longest=1_000)
        print(f"evalr: {name}: nothing could be counted, all of its {count} left out{_way_out(found)}", file=sys.stderr)
        raise typer.Exit(UNUSABLE)


def _way_out(found: Report) -> str:
    lacking = any(reason.startswith("missing field ") for reason in found.left_out.counts)
    return "; `evalr schema` says what a line of JSON has to have" if lacking else ""


@app.command(epilog=ENDINGS, cls=SettingCommand)
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
    processes: Processes = None,
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


@app.command(epilog=ENDINGS, cls=SettingCommand)
def judge(
    log: LogPath,
    measure: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="What is judged: completion, outcome, …. Without it, all that the settings of the log's owners say.",
        ),
    ] = None,
    lm: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="The model, by its client's name: openai/gpt-5-mini. Its key is read from the environment.",
            show_default=False,
        ),
    ] = None,
    saved: Annotated[
        str | None,
        typer.Option(
            "--judge", metavar="FILE", help="A judge that was saved, with its own model unless --lm names another."
        ),
    ] = None,
    api_base: Annotated[
        str | None,
        typer.Option("--api-base", "--base-url", metavar="URL", help="Of a server that speaks as the model's own."),
    ] = None,
    sample: Annotated[
        str | None,
        typer.Option(metavar="NUMBER", help="Judge so many, or such a share (10%), drawn by their ids; rates hold."),
    ] = None,
    budget: Annotated[float | None, typer.Option(metavar="USD", help="Stop when so many US dollars are spent.")] = None,
    calls: Annotated[int | None, typer.Option(metavar="NUMBER", help="Make no more calls than this.", min=1)] = None,
    concurrency: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER", help="Calls at once, at most. [default: what the log says, or 8]", min=1, max=10_000
        ),
    ] = None,
    session: Annotated[
        str | None, typer.Option(metavar="ID", help="Judge this session now, by the settings of the log.")
    ] = None,
    user: Annotated[
        str | None, typer.Option(metavar="ID", help="Whose session, where several users have one of this id.")
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Without --measure: ask again what the journal has an answer to.")
    ] = False,
    journal: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Where each answer is kept, so that none is asked twice. [default: NAME.judged.db]"
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Where the results go, as a log of lines. [default: NAME.MEASURE.jsonl]"),
    ] = None,
    kind: Kind = None,
    now: Now = None,
    since: Since = None,
    until: Until = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="A setting of the judge, such as success_definition, or of the reader."
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before it costs anything.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    strict: Strict = False,
) -> None:
    """Have a model judge a log, once you have seen the price.

    It says how many calls that takes and what they cost, and asks. What was judged is in the journal: after a crash, or
    Ctrl-C, the same command asks only the rest. The log is only read.
    """
    from evalr.cli.judging import Asked, account_lines, agreed, judged, judged_dict, planned, report_of

    asked = Asked(
        log=log,
        measure=measure or "",
        lm=lm,
        judge=saved,
        api_base=api_base,
        kind=kind,
        now=_time(now),
        since=_time(since),
        until=_time(until),
        sample=sample,
        journal=journal,
        out=out,
        budget=budget,
        calls=calls,
        settings=settings or (),
        strict=strict,
        session=session,
        user=user,
        limit=concurrency,
        again=again,
    )
    if measure is None or session is not None or again:
        _judge_by_its_settings(asked, yes=yes, json=json)
        return
    plan = planned(asked)
    if plan.outlook.left and not yes and not agreed(plan.question()):
        raise typer.Exit(STOPPED)
    try:
        summary = judged(plan, limit=DEFAULT_LIMIT if concurrency is None else concurrency)
    except KeyboardInterrupt:
        _say_stopped(plan.journal)
        raise
    lines = account_lines(plan, summary, screen_width())
    fields: dict[str, Any] = {"judged": judged_dict(plan, summary), "report": None}
    if summary.results:
        found = report_of(plan)
        lines = [found.text(width=screen_width(), color=has_color()), "", *lines]
        fields["report"] = found.to_dict()
    print_lines(lines, fields, json=json)


@app.command(epilog=ENDINGS)
def compare(
    before: Annotated[str, typer.Argument(metavar="BEFORE", help="An experiment's file.", show_default=False)],
    after: Annotated[str, typer.Argument(metavar="AFTER", help="A later experiment's.", show_default=False)],
    gates: Annotated[
        list[str] | None,
        typer.Option(
            "--gate",
            metavar="CONDITION",
            help="On a difference: 'completion>-2pp'; may be given several times. Quote it.",
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="What intervals are computed over; id for each example. [default: groups]"),
    ] = None,
    level: Level = 0.95,
    correction: Annotated[
        str, typer.Option(metavar="NAME", help="How p is adjusted for several measures: holm, bh or none.")
    ] = "holm",
    mix_versions: Annotated[
        bool, typer.Option("--mix-versions", help="Although different versions of a judge judged them.")
    ] = False,
    mix_datasets: Annotated[
        bool, typer.Option("--mix-datasets", help="Although their datasets differ, by the examples that do not.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Compare two experiments, example by example.

    A gate passes where the limit of the printed interval clears the bar, and never on an undefined difference.
    """
    from evalr.cli.comparing import compared, comparison_dict, comparison_lines

    found = compared(
        before,
        after,
        correction=correction,
        cluster=cluster,
        level=level,
        mix_versions=mix_versions,
        mix_datasets=mix_datasets,
    )
    gate = found.gate(*gates) if gates else None
    print_lines(comparison_lines(found, gate), comparison_dict(found, gate), json=json)
    if gate is not None:
        raise typer.Exit(gate.code)


@app.command(epilog=ENDINGS)
def power(
    rate: Annotated[str | None, typer.Option(metavar="SHARE", help="Of the control arm: 70% or 0.7.")] = None,
    lift: Annotated[
        str | None,
        typer.Option(
            metavar="LIFT",
            help="What is to be seen: 5pp or -5pp for percentage points, x1.1 for 1.1 times the rate.",
        ),
    ] = None,
    users: Annotated[
        str | None,
        typer.Option(metavar="USERS", help="Those that there are, treatment first: 900:100. Or 1000, by --split."),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(metavar="SPLIT", help="Of users, treatment first: 90:10 for a holdout of 10%. [default: 50:50]"),
    ] = None,
    per_user: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="Rows (sessions, tasks) a user, on average. [default: 1]")
    ] = None,
    icc: Annotated[
        str | None,
        typer.Option(metavar="SHARE", help="How alike the rows of one user are: 0 no more than others', 1 entirely."),
    ] = None,
    cv: Annotated[
        str | None,
        typer.Option(metavar="NUMBER", help="Standard deviation of the rows a user, over their mean. [default: 0]"),
    ] = None,
    log: Annotated[
        str | None,
        typer.Option("--from", metavar="LOG", help="Take the rate, the rows a user and their likeness from a log."),
    ] = None,
    measure: Annotated[
        str | None, typer.Option(metavar="NAME", help="The rate to take from it, by the name that gates use.")
    ] = None,
    window: Window = None,
    now: Now = None,
    wanted: Annotated[str, typer.Option("--power", metavar="SHARE", help="The chance to see it.")] = "80%",
    level: Annotated[str, typer.Option(metavar="SHARE", help="Of the two-sided test.")] = "95%",
    json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Plan an A/B test: users needed, or what is seen.

    With --lift, how many users it takes to see it. With --users, the smallest increase and decrease that they show, and
    with both, the power.
    """
    from evalr.cli.planning import plan_dict, plan_lines, rate_named, read_plan

    measured = None
    if log is not None:
        named = rate_named(measure)
        found = _report(log, measures=[named.measure], settings=None, window=window, now=now, since=None, until=None)
        measured = found[named.summary.name]
    elif not (measure is window is now is None):
        raise InputError("--measure, --window and --now are of a log: name it with --from")
    plan = read_plan(
        rate=rate,
        lift=lift,
        users=users,
        split=split,
        power=wanted,
        level=level,
        per_user=per_user,
        icc=icc,
        cv=cv,
        measured=measured,
    )
    print_lines(plan_lines(plan, screen_width()), plan_dict(plan), json=json)


@app.command(epilog="Exit codes: 0 no mismatch, 1 a mismatch, 2 misuse or nothing that can be checked.")
def srm(
    given: Annotated[
        list[str],
        typer.Argument(
            metavar="ARM=USERS... | FILE",
            help="Users assigned to each arm, as in treatment=880 control=120; or a file of assignments, CSV or JSON "
            "Lines, with a column of users and one of arms.",
            show_default=False,
        ),
    ],
    weights: Annotated[
        str | None,
        typer.Option(
            metavar="SPLIT",
            help="As declared, in the order of the arms: 90:10, of a file treatment first. By name: "
            "treatment=90,control=10. [default: equal]",
        ),
    ] = None,
    sequential: Annotated[
        bool, typer.Option("--sequential", "--daily", help="For a look that is one of many: p holds at all of them.")
    ] = False,
    evaluated: Annotated[
        str | None,
        typer.Option(metavar="USERS", help="Of those assigned, the ones evaluated: treatment=850,control=110."),
    ] = None,
    user_column: Annotated[str, typer.Option(metavar="NAME", help="Who was assigned, in a file.")] = "user",
    arm_column: Annotated[str, typer.Option(metavar="NAME", help="The arm, in a file.")] = "arm",
    json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Check that the arms of an A/B test are as large as they should be (sample ratio mismatch)."""
    from evalr.cli.arms import check, checked_dict, checked_lines

    checked = check(
        given,
        weights=weights,
        evaluated=evaluated,
        sequential=sequential,
        user_column=user_column,
        arm_column=arm_column,
    )
    print_lines(checked_lines(checked, screen_width()), checked_dict(checked), json=json)
    raise typer.Exit(checked.code)


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
            help="session, history, exchange, learning, transcript or result; or a measure, for the value that its "
            "results hold.",
        ),
    ] = None,
    value: Annotated[
        bool, typer.Option("--value", help="Of the measure, where a type of line has the same name: learning.")
    ] = False,
) -> None:
    """Print the JSON Schemas of evalr's own log, JSON Lines."""
    from json import dumps

    from evalr.cli.listing import value_schemas
    from evalr.logs import schemas

    lines = schemas()
    found = value_schemas() if value or (name is not None and name not in lines) else lines
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

    show_demo(write, repository, seed, color=has_color(), width=screen_width())


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
    from evalr.logs.finding import scheme_of

    given = read_settings(settings, setting_defaults()) if settings else {}
    if window is not None:
        if "window" in given:
            raise InputError("--window and --set window=... set the same: leave one of them out")
        given["window"] = read_length(window)
    with shown_progress(scheme_of(log) or log) as progress:
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


def _judge_by_its_settings(asked: Asked, *, yes: bool, json: bool) -> None:
    from evalr.cli import graded
    from evalr.cli.judging import agreed
    from evalr.cli.kept import refuse_failures

    plan = graded.planned_grading(asked)
    if plan.left and not yes and not agreed(plan.question()):
        raise typer.Exit(STOPPED)
    if plan.what == "session":
        grades = graded.graded_session(plan)
        lines = [*graded.grade_lines(grades), "", *graded.account_lines(plan, None, screen_width())]
        print_lines(lines, {"grades": grades.to_dict(), "judged": graded.grading_dict(plan, None)}, json=json)
        refuse_failures(grades.results)
        return
    try:
        status = graded.graded_log(plan)
    except KeyboardInterrupt:
        _say_stopped(plan.journal)
        raise
    lines = graded.account_lines(plan, status, screen_width())
    fields: dict[str, Any] = {"judged": graded.grading_dict(plan, status), "report": None}
    if status.done:
        found = graded.graded_report(plan)
        lines = [found.text(width=screen_width(), color=has_color()), "", *lines]
        fields["report"] = found.to_dict()
    print_lines(lines, fields, json=json)


def _say_stopped(journal: Path) -> None:
    kept = safe_text(str(journal), longest=1_000)
    print(f"evalr: stopped; what was judged is in {kept}, and the same command asks only the rest", file=sys.stderr)


def _time(text: str | None) -> datetime | None:
    return None if text is None else read_time(text)


def _print_report(found: Report, *, json: bool) -> None:
    if json:
        from json import dumps

        print(dumps(found.to_dict(), indent=2, allow_nan=False))
    else:
        print(found.text(width=screen_width(), color=has_color()))

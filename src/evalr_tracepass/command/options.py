"""What the subcommands of `evalr tracepass` can be asked for: each option once, in groups that go together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

DEFAULT_STORE = "tracepass.db"
DEFAULT_ACCOUNT = "local"

LogPath = Annotated[
    str, typer.Argument(metavar="LOG", help="A log of conversations, or a folder of logs.", show_default=False)
]
PassId = Annotated[
    str, typer.Argument(metavar="PASS", help="latest, or the id of one; its first letters will do.", show_default=False)
]
LatestPassId = Annotated[
    str, typer.Argument(metavar="[PASS]", help="latest, or the id of one; its first letters will do.")
]
OptionalPassId = Annotated[
    str, typer.Argument(metavar="[PASS]", help="latest, all, or the id of one; its first letters will do.")
]
SignalNames = Annotated[
    list[str] | None,
    typer.Option("--signal", metavar="NAME", help="A signal; may be given several times."),
]
WantedSignals = Annotated[
    list[str] | None,
    typer.Option(
        "--signal",
        metavar="NAME",
        help="A signal to run; may be given several times. [default: those ticked in `evalr tracepass signals`, or the "
        "rules that run here]",
    ),
]
SignalFile = Annotated[
    str | None,
    typer.Option("--signals", metavar="FILE", help="A file of your own signals, presets and classifiers."),
]
Where = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FILTER",
        help="A text that some turn holds, user=ID, errors, since=TIME, until=TIME or last=24h; all of several must be "
        "true.",
    ),
]
Convo = Annotated[list[str] | None, typer.Option(metavar="ID", help="Only this conversation; may be several.")]
Now = Annotated[str | None, typer.Option(metavar="TIME", help="What lengths of time count from. [default: now]")]
By = Annotated[
    str,
    typer.Option("--by", metavar="WAY", help="local: classifiers that run here; batch: a service; live: it, capped."),
]
BegunBy = Annotated[
    str | None,
    typer.Option("--by", metavar="WAY", help="local, batch or live. [default: as it was begun]"),
]
Url = Annotated[
    str | None,
    typer.Option("--url", metavar="URL", help="The service's. Its key is in MORPH_API_KEY. [default: MORPH_BASE_URL]"),
]
Rate = Annotated[
    float | None,
    typer.Option(metavar="USD", min=0, help="What a service, or a judge's model, asks for one prediction."),
]
Budget = Annotated[float | None, typer.Option(metavar="USD", help="Do not begin what would cost more.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before it costs anything.")]
OnlyNew = Annotated[bool, typer.Option("--only-new", help="Only what no pass in the store has read.")]
Json = Annotated[bool, typer.Option("--json", help="Print it as JSON.")]


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What to look for."""

    signal: WantedSignals = None
    preset: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Signals that were saved together: see `evalr tracepass presets`."),
    ] = None


@dataclass(frozen=True, kw_only=True)
class Own:
    """Signals, presets and classifiers of one's own, and the model that judges."""

    file: SignalFile = None
    reflex: Annotated[
        list[str] | None,
        typer.Option(
            "--reflex",
            metavar="NAME=FILE",
            help="A classifier of your own: one that was trained, or a judge's question.",
        ),
    ] = None
    lm: Annotated[
        str | None, typer.Option(metavar="MODEL", help="The model that judges answer with, such as openai/gpt-5-mini.")
    ] = None
    api_base: Annotated[str | None, typer.Option(metavar="URL", help="Where that model is served.")] = None


@dataclass(frozen=True, kw_only=True)
class Which:
    """Which conversations of a log."""

    where: Where = None
    convo: Convo = None
    since: Annotated[str | None, typer.Option(metavar="TIME", help="Only what began at this time or later.")] = None
    until: Annotated[str | None, typer.Option(metavar="TIME", help="Only what began before this time.")] = None
    last: Annotated[str | None, typer.Option(metavar="LENGTH", help="Only what began in the last 24h, 7d, 2w.")] = None
    sample: Annotated[
        str | None,
        typer.Option(metavar="SHARE", help="A random part of the conversations: 10%, or 10%:7 for the seed 7."),
    ] = None
    now: Now = None


@dataclass(frozen=True, kw_only=True)
class Paid:
    """Where a service is, what it asks, and how much it may come to."""

    url: Url = None
    rate: Rate = None
    budget: Budget = None
    yes: Yes = False


@dataclass(frozen=True, kw_only=True)
class Begun:
    """How a pass goes on that was begun before."""

    by: BegunBy = None
    url: Url = None


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How a log is read."""

    kind: Annotated[
        str | None,
        typer.Option("--log", metavar="KIND", help="The reader to use, where it should not be found by looking."),
    ] = None
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first record that cannot be used.")] = False


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where passes and results are kept, and whose they are."""

    store: Annotated[
        str,
        typer.Option(
            "--store",
            metavar="PLACE",
            envvar="EVALR_TRACEPASS_STORE",
            help="Where passes are kept: a file, or postgresql://host/database.",
        ),
    ] = DEFAULT_STORE
    results_in: Annotated[
        str | None,
        typer.Option(
            "--results",
            metavar="PLACE",
            envvar="EVALR_TRACEPASS_RESULTS",
            help="Where results are kept: clickhouse://host/database. [default: the store]",
        ),
    ] = None
    account: Annotated[str, typer.Option("--account", metavar="ID", help="Whose traces and results.")] = DEFAULT_ACCOUNT
    org: Annotated[str, typer.Option("--org", metavar="ID", help="The organisation, where they are one's.")] = ""

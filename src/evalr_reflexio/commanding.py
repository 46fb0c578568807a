"""`evalr experiment`: retrieval experiments of teams without Reflexio's server.

What its commands do is imported where it is done, so that --help is quick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from evalr.cli.added import Command, new_app
from evalr.cli.output import has_color, print_lines, screen_width
from evalr.cli.texts import read_time
from evalr.errors import ExperimentConflictError, InputError

if TYPE_CHECKING:
    from evalr.inputs import Now
    from evalr_reflexio.registry import ExperimentRegistry

app = new_app("Hold Reflexio out for a share of users, and see what it does.")
command = Command(name="experiment", app=app)

Id = Annotated[str, typer.Argument(metavar="ID", help="Of the experiment.", show_default=False)]
File = Annotated[str, typer.Option("--registry", metavar="FILE", help="Where the experiments are kept.")]
Org = Annotated[str | None, typer.Option(metavar="NAME", help="The organisation. [default: self-host-org]")]
At = Annotated[str | None, typer.Option("--now", metavar="TIME", help="When. [default: now]")]
REGISTRY = "experiments.db"
Json = Annotated[bool, typer.Option("--json", help="Print it as JSON.")]


@app.command()
def start(
    experiment: Id,
    holdout: Annotated[
        str, typer.Option(metavar="PERCENT", help="Of users, held out: above 0 and below 100.", show_default=False)
    ],
    registry: File = REGISTRY,
    org: Org = None,
    now: At = None,
    json: Json = False,
) -> None:
    """Begin an experiment: from now on, users are assigned to it.

    Only one can be active, and an id is never used again.
    """
    from evalr_reflexio.experiment_words import experiment_line, read_percentage
    from evalr_reflexio.registry import experiment_fields

    begun = _registry(registry, org).start(experiment, holdout_percentage=read_percentage(holdout), now=_now(now))
    print_lines([experiment_line(begun)], dict(experiment_fields(begun)), json=json)


@app.command()
def stop(experiment: Id, registry: File = REGISTRY, org: Org = None, now: At = None, json: Json = False) -> None:
    """End an experiment: nobody is assigned to it any more. Its results stay."""
    from evalr_reflexio.experiment_words import experiment_line
    from evalr_reflexio.registry import experiment_fields

    ended = _registry(registry, org).stop(experiment, now=_now(now))
    print_lines([experiment_line(ended)], dict(experiment_fields(ended)), json=json)


@app.command("list")
def list_all(registry: File = REGISTRY, org: Org = None, json: Json = False) -> None:
    """List the active experiment, and all that there were, newest first."""
    from evalr_reflexio.experiment_words import list_fields, list_lines

    kept = _registry(registry, org)
    found = kept.experiments
    print_lines(list_lines(found, kept.organisations), list_fields(found), json=json)


@app.command()
def assign(
    user: Annotated[str, typer.Argument(metavar="USER", help="The id of a user.", show_default=False)],
    experiment: Annotated[
        str | None, typer.Option(metavar="ID", help="It must be the active one. [default: whichever is]")
    ] = None,
    registry: File = REGISTRY,
    org: Org = None,
    json: Json = False,
) -> None:
    """Print the arm of a user in the active experiment: treatment or holdout.

    Where none is active, that is an error: there is no arm.
    """
    from evalr_reflexio.experiment_words import arm_fields, none_active

    kept = _registry(registry, org)
    arm = kept.assign(user, experiment=experiment)
    if arm is None:
        raise ExperimentConflictError(none_active(kept.org, kept.active_organisations))
    print_lines([arm.arm], arm_fields(arm), json=json)


@app.command()
def results(
    experiment: Id,
    log: Annotated[
        str, typer.Argument(metavar="LOG", help="A Reflexio log: its database, or HTTP answers.", show_default=False)
    ],
    registry: File = REGISTRY,
    org: Org = None,
    now: Annotated[str | None, typer.Option(metavar="TIME", help="The reading time. [default: now]")] = None,
    config: Annotated[
        str | None, typer.Option(metavar="FILE", help="Reflexio's configuration. [default: the log's own]")
    ] = None,
    level: Annotated[float, typer.Option(metavar="SHARE", help="Of the two-sided intervals.")] = 0.95,
    always_valid: Annotated[
        bool, typer.Option("--always-valid", help="Intervals that hold however often one looks.")
    ] = False,
    json: Json = False,
) -> None:
    """Print what a log says of an experiment: the arms compared, and what was evaluated."""
    from evalr_reflexio.experiment_words import result_fields, result_lines

    kept = _registry(registry, org)
    try:
        begun = kept.get(experiment)
    except InputError as error:
        raise InputError(f"{error}. One that Reflexio keeps: evalr report LOG --arms experiment:ID") from error
    found = kept.results(log, experiment, config=config, now=_now(now), level=level, always_valid=always_valid)
    lines = result_lines(begun, found, width=screen_width(), color=has_color())
    print_lines(lines, result_fields(begun, found), json=json)


def _registry(path: str, org: str | None) -> ExperimentRegistry:
    from evalr_reflexio.config import DEFAULT_ORG
    from evalr_reflexio.registry import ExperimentRegistry

    return ExperimentRegistry(path, org=DEFAULT_ORG if org is None else org)


def _now(text: str | None) -> Now:
    from evalr.inputs import utc_now

    return utc_now if text is None else read_time(text)

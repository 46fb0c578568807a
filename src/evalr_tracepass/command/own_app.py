"""`evalr tracepass signals` and `presets`: what there is to look for, and what an account or a team has made of it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Annotated

import typer

from evalr.cli.added import new_app
from evalr.cli.option_groups import with_groups
from evalr.cli.output import print_lines
from evalr_tracepass.command.options import Json, Own, Place, SignalFile

signals_app = new_app("List the signals; save, change and remove your own.")
presets_app = new_app("List the presets, which are signals that are run together; save and remove them.")

Name = Annotated[str, typer.Argument(metavar="NAME", show_default=False)]
InFile = Annotated[
    str | None, typer.Option("--signals", metavar="FILE", help="Do it in this file, and not in the store.")
]
Monitor = Annotated[
    bool | None, typer.Option("--monitor/--no-monitor", help="Whether a monitor runs it.", show_default=False)
]


@dataclass(frozen=True, kw_only=True)
class SignalParts:
    """What a signal is made of; what is not given stays as it was, or is what it is by default."""

    model: Annotated[str | None, typer.Option(metavar="ALIAS", help="The classifier that reads. [default: NAME]")] = (
        None
    )
    transform: Annotated[
        str | None,
        typer.Option(metavar="ID", help="What it reads, such as assistant_message. [default: user_message]"),
    ] = None
    fires_on: Annotated[
        list[str] | None,
        typer.Option("--fires-on", metavar="LABEL", help="A label at which it fires; may be several."),
    ] = None
    threshold: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LABEL=SCORE", help="The score from which on a label counts, whatever its classifier says."
        ),
    ] = None
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="What people call it. [default: NAME]")] = None
    ticked: Annotated[
        bool | None,
        typer.Option("--ticked/--no-ticked", help="Whether it runs where nobody chose.", show_default=False),
    ] = None
    monitor: Monitor = None


@signals_app.callback(invoke_without_command=True, no_args_is_help=False)
@with_groups
def list_signals(context: typer.Context, own: Own, place: Place, json: Json = False) -> None:
    """List the signals: what each reads, whether it starts ticked, and which cannot run here.

    `save`, `remove`, `load` and `write` are for your own.
    """
    if context.invoked_subcommand is not None:
        return
    from evalr_tracepass.catalogue import SIGNALS, availability, heuristics
    from evalr_tracepass.command.choosing import own_things
    from evalr_tracepass.command.words import signal_lines

    things = own_things(own, place)
    found = availability([*SIGNALS.values(), *things.signals.values()], {*heuristics(), *things.files})
    fields = {"signals": [{**each.signal.to_dict(), "unavailable": each.reason} for each in found]}
    print_lines(signal_lines(found), fields, json=json)


@signals_app.command("save")
@with_groups
def save_signal(name: Name, parts: SignalParts, place: Place, file: InFile = None) -> None:
    """Save a signal of your own, or change one."""
    from evalr_tracepass.command.owning import changed_signal, edited

    edited(file, place, lambda known: changed_signal(known, name, parts))
    print(f"saved signal {name}")


@signals_app.command("remove")
@with_groups
def remove_signal(name: Name, place: Place, file: InFile = None) -> None:
    """Forget a signal of your own. What it said stays in the results."""
    from evalr_tracepass.command.owning import edited, without_signal

    edited(file, place, lambda known: without_signal(known, name))
    print(f"removed signal {name}")


@signals_app.command("load")
@with_groups
def load_file(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Of signals and presets.", show_default=False)],
    place: Place,
) -> None:
    """Save the signals and presets of a file in the store, in place of those of the same names."""
    from evalr.estimates.words import count_words
    from evalr.quoting import safe_text
    from evalr_tracepass.command.owning import edited, with_all_of
    from evalr_tracepass.signal_files import load_signals

    loaded = load_signals(file)
    edited(None, place, lambda known: with_all_of(known, loaded))
    print(f"saved {count_words(len(loaded.signals), 'signal')} and {count_words(len(loaded.presets), 'preset')}")
    if loaded.reflexes:
        named = ", ".join(safe_text(name, longest=60) for name in loaded.reflexes)
        print(f"evalr: a store keeps no classifiers: name those of {named} with --reflex", file=sys.stderr)


@signals_app.command("write")
@with_groups
def write_file(
    file: Annotated[str, typer.Argument(metavar="FILE", help="To be written, or replaced.", show_default=False)],
    place: Place,
) -> None:
    """Write the store's signals and presets to a file, which a team can review and keep with its code."""
    from evalr.estimates.words import count_words
    from evalr_tracepass.command.places import opened
    from evalr_tracepass.signal_files import save_signals

    with opened(place, results=False) as kept:
        signals, presets = kept.store.signals(kept.account), kept.store.presets(kept.account)
    save_signals(file, signals.values(), presets.values())
    print(f"wrote {count_words(len(signals), 'signal')} and {count_words(len(presets), 'preset')}")


@presets_app.callback(invoke_without_command=True, no_args_is_help=False)
@with_groups
def list_presets(context: typer.Context, place: Place, file: SignalFile = None, json: Json = False) -> None:
    """List the presets: signals that are run together. `save` and `remove` change them."""
    if context.invoked_subcommand is not None:
        return
    from evalr_tracepass.command.choosing import own_things
    from evalr_tracepass.command.words import preset_lines

    found = list(own_things(Own(file=file), place).presets.values())
    fields = {"presets": [each.model_dump(mode="json") for each in found]}
    print_lines(preset_lines(found), fields, json=json)


@presets_app.command("save")
@with_groups
def save_preset(
    name: Name,
    place: Place,
    signal: Annotated[
        list[str] | None, typer.Option("--signal", metavar="NAME", help="One of its signals; may be several.")
    ] = None,
    monitor: Monitor = None,
    file: InFile = None,
) -> None:
    """Save signals under a name, to be run together, or change which they are."""
    from evalr_tracepass.command.owning import changed_preset, edited

    edited(file, place, lambda known: changed_preset(known, name, signal or (), monitor=monitor))
    print(f"saved preset {name}")


@presets_app.command("remove")
@with_groups
def remove_preset(name: Name, place: Place, file: InFile = None) -> None:
    """Forget a preset. Its signals stay."""
    from evalr_tracepass.command.owning import edited, without_preset

    edited(file, place, lambda known: without_preset(known, name))
    print(f"removed preset {name}")

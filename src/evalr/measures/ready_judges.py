"""Judges that the command can make by itself: of a measure, a model's name and a few settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from evalr.errors import InputError, PluginError
from evalr.estimates.words import choice_words
from evalr.evaluators import Evaluator
from evalr.plugins import load_plugins, plugin_names
from evalr.quoting import quoted

GROUP = "evalr.judges"


@dataclass(frozen=True, kw_only=True)
class ReadyJudge:
    """What makes the judge of one measure for `evalr judge`.

    A package adds one under the entry point group `evalr.judges`, by the name of the measure whose verdicts it gives.

    Args:
        name: the measure's.
        make: given `lm` (the model's name, as the command was given it), `api_base` (the address of another server than
            the model's own, or None) and the settings as keywords, the evaluator. Keys are for it to find, in the
            environment. Where the evaluator has `expected_cost` and `expected_tokens`, the command says what a run
            comes to before it asks for a yes.
        settings: what else can be set, with the defaults. One of which the default is a tuple may be set several times.
        load: given `path` (of a file that holds a judge) and otherwise what `make` is given but for `of_file`, the
            evaluator; `lm` is None where the file's own model is meant. None where no files hold such judges.
        of_file: the settings that such a file says itself.
    """

    name: str
    make: Callable[..., Evaluator[Any, Any]]
    settings: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    load: Callable[..., Evaluator[Any, Any]] | None = None
    of_file: Sequence[str] = ()


def judged_measures() -> list[str]:
    """The names of the measures that a judge is installed for. None is loaded, so that not all of them may work."""
    return plugin_names(GROUP)


def ready_judge(measure: str) -> ReadyJudge:
    """What makes the judge of a measure.

    Raises:
        PluginError: it cannot be loaded; the message says what to install.
        InputError: none is installed.
    """
    loaded, broken = load_plugins(GROUP, ReadyJudge, only=measure)
    if measure in loaded and loaded[measure].name != measure:
        broken[measure] = f"it is of {loaded[measure].name!r}, as it says itself"
    elif measure in loaded:
        return loaded[measure]
    if broken:
        raise PluginError(f"the judge of {measure!r} cannot be used: {'; '.join(broken.values())}")
    choices = choice_words(measure, judged_measures())
    raise InputError(f"no judge is installed for a measure named {quoted(measure)}; {choices}")

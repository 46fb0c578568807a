"""What the owners of a log have set of its judges, where the log's reader knows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evalr.errors import PluginError
from evalr.runs.graded_logs import GradedLog

HOOKED = "success_definition"
"""A setting of judges that also says that there is something to judge."""


def owned_log(reader: Any, path: str, given: Mapping[str, Any], own: Mapping[str, Any]) -> GradedLog | None:
    """How the log's owners judge it; None where the reader does not know.

    Args:
        reader: of the log.
        path: of the log.
        given: what the command was given to set.
        own: the reader's settings.

    Raises:
        PluginError: the reader says it in a way that cannot be used.
    """
    hook = getattr(reader, "grading", None)
    if hook is None:
        return None
    log = hook(Path(path), **{name: each for name, each in given.items() if name in own or name == HOOKED})
    if not isinstance(log, GradedLog):
        raise PluginError(f"the reader {reader.name!r} says how its logs are judged in a way that cannot be used")
    return log

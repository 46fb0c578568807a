"""Every error that evalr raises, in one tree: catch `EvalrError` for all of them."""

from __future__ import annotations


class EvalrError(Exception):
    """The root of every error that evalr raises on purpose."""


class InputError(EvalrError, ValueError):
    """A value handed to evalr cannot be used; the message says which, and what to do."""


class DuplicateError(InputError):
    """Two results are about one subject, so counting both would count one thing twice."""


class MixedVersionsError(InputError):
    """Verdicts of several versions of one evaluator would be pooled into one number."""


class FieldTypeError(InputError):
    """A verdict type has a field of a type that no score, judge or report could read."""


class ExperimentConflictError(InputError):
    """A retrieval experiment cannot be started, stopped or assigned to: another one, or its own past, is in the way."""


class RegistryError(EvalrError):
    """The file that retrieval experiments are kept in is missing, is another file, or cannot be read or written."""


class JournalError(EvalrError):
    """A journal of a run cannot be opened, read or written; what was acknowledged before is still in it.

    `unsaved` holds the results that could not be written, so that nothing that was paid for is lost with the error.
    """

    def __init__(self, message: str, *, unsaved: tuple[object, ...] = ()) -> None:
        super().__init__(message)
        self.unsaved = unsaved


class DatasetError(EvalrError):
    """A file of a dataset, or of an experiment, cannot be read or written; the message names the file and the line."""


class SpoolError(EvalrError):
    """The file in which inputs wait to be judged cannot be opened, read or written; what is in it still is."""


class SinkError(EvalrError):
    """Results could not be handed to where they were to go.

    `unsaved` holds them, so that nothing that was paid for is lost with the error.
    """

    def __init__(self, message: str, *, unsaved: tuple[object, ...] = ()) -> None:
        super().__init__(message)
        self.unsaved = unsaved


class TransportError(EvalrError):
    """A service that texts are sent to cannot be reached, refuses, or answers what it should not. It can be resumed."""


class StoreError(EvalrError):
    """A store of passes or results cannot be opened, read or written, or does not have what was asked for."""


class LogError(EvalrError):
    """A log cannot be read at all: missing, empty, not a log, cut off."""


class RecordError(LogError):
    """A record of a log cannot be used, and the caller asked to stop at the first one."""


class UnknownLogError(LogError):
    """No reader knows this kind of log."""


class AmbiguousLogError(LogError):
    """Several readers claim a log with equal confidence."""


class PluginError(EvalrError):
    """A reader or a measure was asked for by name, and cannot be loaded or set up."""


class MissingExtraError(EvalrError, ImportError):
    """A feature needs an optional dependency; the message says what to install."""


def error_words(error: BaseException) -> str:
    """`ValueError: what it says`, or its type alone: an error of another package may fail to say anything."""
    name = type(error).__name__
    try:
        return f"{name}: {error}"
    except Exception:  # noqa: BLE001  its own code runs here, and may raise anything
        return f"{name}, which cannot be printed"

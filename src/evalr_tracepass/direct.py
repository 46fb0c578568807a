"""Reading rows here and now: in this process, without a store, as `evalr tracepass grep` does."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from evalr.background import run_sync
from evalr.errors import InputError, TransportError
from evalr_tracepass.error_words import kept_error
from evalr_tracepass.outcomes import why_unread
from evalr_tracepass.planning import Plan
from evalr_tracepass.records import ErrorInfo, Prediction, Reflex, Row
from evalr_tracepass.signals import Reading, Signal, reading

BATCH = 256

NO_PREDICTION = ErrorInfo("no_prediction", "the classifier gave none for this text")


class Answer(NamedTuple):
    """What one signal says of one row: a reading, or why there is none."""

    row: Row
    signal: Signal
    prediction: Prediction
    reading: Reading | None
    error: ErrorInfo | None


def answers(made: Plan, rows: Iterable[Row], reflexes: Mapping[str, Reflex], *, batch: int = BATCH) -> Iterator[Answer]:
    """What the signals of a plan say of its rows, in order; at most `batch` rows are held.

    Args:
        made: the plan.
        rows: its rows over some traces.
        reflexes: the classifiers of its signals, by their aliases.
        batch: how many texts a classifier is given at once.

    Raises:
        InputError: a signal has no classifier here.
    """
    missing = sorted({signal.model for signal in made.signals} - reflexes.keys())
    if missing:
        raise InputError(f"no classifier named {', '.join(map(repr, missing))} is configured")
    stream = iter(rows)
    while part := list(islice(stream, batch)):
        yield from _of_batch(made, part, reflexes)


def _of_batch(made: Plan, rows: Sequence[Row], reflexes: Mapping[str, Reflex]) -> Iterator[Answer]:
    asked: dict[str, list[int]] = {}
    for place, row in enumerate(rows):
        if row.error is None:
            for model in row.models:
                asked.setdefault(model, []).append(place)
    found: dict[tuple[int, str], Prediction] = {}
    for model, places in asked.items():
        predictions = _predicted(reflexes[model], [rows[place].text for place in places])
        found |= {(place, model): each for place, each in zip(places, predictions, strict=True)}
    for place, row in enumerate(rows):
        for model in row.models:
            prediction = found.get((place, model)) or Prediction(model, error=row.error or NO_PREDICTION)
            signal = made.signal_by[row.item.transform_id, model]
            error = row.error or why_unread(prediction)
            yield Answer(row, signal, prediction, reading(signal, prediction) if error is None else None, error)


def _predicted(reflex: Reflex, texts: Sequence[str]) -> Sequence[Prediction]:
    try:
        found: Any = reflex.predict(texts)
        predictions: list[Prediction] = list(run_sync(found) if inspect.isawaitable(found) else found)
    except TransportError:
        raise  # a service that cannot be asked cannot be asked about any text
    except Exception as error:  # noqa: BLE001  whatever a classifier raises is its failure
        if len(texts) == 1:
            return [Prediction(reflex.name, error=kept_error(type(error).__name__, str(error)))]
        # One text that cannot be read must not fail the others that were given with it.
        return [each for text in texts for each in _predicted(reflex, [text])]
    if len(predictions) != len(texts):
        raise InputError(f"{reflex.name!r} was given {len(texts)} texts and made {len(predictions)} predictions")
    return predictions

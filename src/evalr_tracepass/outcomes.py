"""Outcomes: what came back for a row, and the results that it makes, one for each model that was to read it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import Literal, NamedTuple

from evalr_tracepass.error_words import kept_error
from evalr_tracepass.records import ErrorInfo, Item, LabelScore, Prediction, Result
from evalr_tracepass.signals import Reading, Signal, reading
from evalr_tracepass.storable import is_storable

NO_PREDICTION = ErrorInfo("no_prediction", "the row came back without a prediction of this model")
NO_CLASSES = ErrorInfo("no_classes", "the prediction has no label")
UNREADABLE = ErrorInfo("invalid_prediction", "the prediction is not in a format that is supported")
BAD_SCORE = ErrorInfo("invalid_score", "a score is not a number from 0 to 1")
BAD_LABEL = ErrorInfo("invalid_label", "a label is too long, or no text")

LONGEST_LABEL = 200

NOTHING = Reading("", 0.0, (), False, None, ())
"""What a failure means to a signal."""

_BOOL = ("false", "true")
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class Outcome(NamedTuple):
    """What came back for one row.

    Attributes:
        request_id: of the row.
        status: whether it was read. A pending one is not kept.
        predictions: of a completed row, one for each model.
        error: of a failed row.
    """

    request_id: str
    status: Literal["completed", "failed", "pending"]
    predictions: tuple[Prediction, ...] = ()
    error: ErrorInfo | None = None


def explode(
    item: Item,
    outcome: Outcome,
    signals: Mapping[tuple[str, str], Signal],
    *,
    run_id: str,
    batch_id: str,
    created_at: datetime,
    attempt: int = 0,
) -> list[Result]:
    """The results of one row: one for each model that was to read it, completed or failed; none while it is pending.

    A failed row is a failure of every model that was to read it; a model's own error, inside a completed row, is a
    failure of that model; a model that says nothing has failed, and one that was not asked is not heard. It is a pure
    function: the same outcome makes the same results, however often it is read.

    Args:
        item: the row, with the models that were to read it.
        outcome: what came back for it.
        signals: by the id of a transform and the alias of a model, as `Plan.signal_by` has them.
        run_id: the pass.
        batch_id: the batch.
        created_at: when the batch was sent.
        attempt: how often the row had been sent before.
    """
    if outcome.status == "pending":
        return []
    by_model: dict[str, Prediction] = {}
    for each in outcome.predictions:
        by_model.setdefault(each.model, each)
    results = []
    for model in item.selected_models:
        signal = signals[item.transform_id, model]
        prediction = by_model.get(model)
        failed = _error_of(outcome, prediction)
        said = NOTHING if failed is not None or prediction is None else reading(signal, prediction)
        results.append(
            Result(
                run_id,
                batch_id,
                item.request_id,
                item.convo_id,
                item.event_id,
                item.span_id,
                item.turn_index,
                item.user,
                item.release,
                item.input_kind,
                item.transform_id,
                item.transform_version,
                signal.signal_id,
                model,
                "" if prediction is None else prediction.version,
                "completed" if failed is None else "failed",
                "" if failed is not None or prediction is None else prediction.mode,
                said.top_label,
                said.top_score,
                said.selected_labels,
                said.fired,
                said.threshold,
                item.truncated,
                "" if failed is not None or prediction is None else classes_json(tuple(prediction.classes)),
                "" if failed is None else failed.type,
                "" if failed is None else failed.message,
                item.source_start_time,
                created_at,
                item.input_hash,
                attempt,
            )
        )
    return results


def _error_of(outcome: Outcome, prediction: Prediction | None) -> ErrorInfo | None:
    """Why a model has said nothing of a row, without any words of the row; None where it has."""
    if outcome.status == "failed":
        return kept_error(*(outcome.error or ErrorInfo("error", "")))
    return NO_PREDICTION if prediction is None else why_unread(prediction)


def why_unread(prediction: Prediction) -> ErrorInfo | None:
    """Why a prediction says nothing, without any words of its text; None where it does.

    It may be by a classifier of one's own, which gives whatever it gives.
    """
    try:
        if prediction.error is not None:
            return kept_error(*prediction.error)
        if not prediction.classes:
            return NO_CLASSES
        for each in prediction.classes:
            if not 0 <= each.score <= 1:
                return BAD_SCORE
            if len(each.label) > LONGEST_LABEL or not is_storable(each.label):
                return BAD_LABEL
    except (TypeError, ValueError, AttributeError):
        return UNREADABLE
    return None


@lru_cache(maxsize=1_000)
def classes_json(classes: tuple[LabelScore, ...]) -> str:
    """Every label with its score and whether the model selected it, as the column `classes_json` has them."""
    # Written out, since it is done for every prediction, and encoding a list of dicts takes three times as long.
    written = [
        f'{{"label":{_label_json(label)},"score":{float(score)!r},"selected":{_BOOL[bool(selected)]}}}'
        for label, score, selected in classes
    ]
    return f"[{','.join(written)}]"


@lru_cache(maxsize=1_000)
def _label_json(label: str) -> str:
    return _encode(label)

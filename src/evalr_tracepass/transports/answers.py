"""What a service answers, read leniently: what cannot be understood is said so for its row, and never lost."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any, Literal

from evalr_tracepass.error_words import kept_error
from evalr_tracepass.outcomes import UNREADABLE, Outcome
from evalr_tracepass.records import ErrorInfo, LabelScore, Mode, Prediction
from evalr_tracepass.storable import storable
from evalr_tracepass.transports.transport import BatchState

ENDED = frozenset(
    {
        "completed",
        "complete",
        "succeeded",
        "success",
        "done",
        "finished",
        "ended",
        "partial",
        "partially_completed",
        "partial_failure",
        "completed_with_errors",
        "failed",
        "error",
        "errored",
        "cancelled",
        "canceled",
        "expired",
        "aborted",
    }
)
"""Words for a batch that will bring no more."""

GOES_ON = frozenset(
    {
        "queued",
        "pending",
        "validating",
        "running",
        "in_progress",
        "processing",
        "started",
        "submitted",
        "accepted",
        "finalizing",
        "cancelling",
    }
)
"""Words for one that will. Of any other word, its counts decide."""

_COMPLETED = frozenset({"completed", "complete", "succeeded", "success", "done", "ok"})
_FAILED = frozenset({"failed", "failure", "error", "errored", "cancelled", "canceled", "expired", "rejected"})

MOST_SCORE = 1e9
"""Beyond it a score is no number that means anything: it fails as one that is not from 0 to 1."""

LONGEST_ID = 200
"""Characters of a batch's id, which is part of an address."""


def state_of(answer: Mapping[str, Any], retry_after: float | None = None) -> BatchState | None:
    """Where a batch stands; None where the answer is not about one."""
    batch_id = answer.get("id")
    if not isinstance(batch_id, str) or not 0 < len(batch_id) <= LONGEST_ID or batch_id in (".", ".."):
        return None
    if not (batch_id.isascii() and batch_id.isprintable()):
        return None
    counts = answer.get("request_counts")
    counts = counts if isinstance(counts, Mapping) else {}
    total, completed, failed = (_count(counts.get(name)) for name in ("total", "completed", "failed"))
    said = answer.get("status")
    status = said.lower() if isinstance(said, str) else ""
    ended = status in ENDED or (status not in GOES_ON and 0 < total <= completed + failed)
    return BatchState(batch_id, storable(status[:64]), ended, total, completed, failed, retry_after)


def outcome_of(found: object) -> Outcome | None:
    """What came back for a row; None where it does not say for which."""
    if not isinstance(found, Mapping):
        return None
    request_id = found.get("id", found.get("custom_id"))
    if not isinstance(request_id, str) or not request_id:
        return None
    predictions, error = found.get("predictions"), found.get("error")
    status = _status(found.get("status"), predictions, error)
    if status == "completed":
        return Outcome(request_id, status, predictions_of(found))
    return Outcome(request_id, status, error=_error(error) if status == "failed" else None)


def predictions_of(found: Mapping[str, Any]) -> tuple[Prediction, ...]:
    """The predictions of an answer: of several models, or of one, which then stands for itself."""
    listed = found.get("predictions")
    if not isinstance(listed, list):
        listed = [found] if isinstance(found.get("model"), str) else []
    return tuple(each for each in map(_prediction, listed) if each is not None)


def _status(said: object, predictions: object, error: object) -> Literal["completed", "failed", "pending"]:
    word = said.lower() if isinstance(said, str) else ""
    if word in _COMPLETED or (not word and isinstance(predictions, list) and predictions):
        return "completed"
    if word in _FAILED or (not word and error):
        return "failed"
    return "pending"


def _prediction(found: object) -> Prediction | None:
    if not isinstance(found, Mapping):
        return None
    model = found.get("model")
    if not isinstance(model, str) or not model:
        return None
    said = found.get("model_version", found.get("version"))
    version = storable(said[:100]) if isinstance(said, str) else ""
    if found.get("error"):
        return Prediction(model, error=_error(found["error"]), version=version)
    listed = found.get("classes")
    classes = [_class(each) for each in listed] if isinstance(listed, list) else []
    mode: Mode | Literal[""] = found["mode"] if found.get("mode") in ("single_label", "multi_label") else ""
    kept = tuple(each for each in classes if each is not None)
    if len(kept) < len(classes):
        return Prediction(model, error=UNREADABLE, version=version)
    return Prediction(model, mode, kept, version=version)


def _class(found: object) -> LabelScore | None:
    if not isinstance(found, Mapping):
        return None
    label, score, selected = found.get("label"), found.get("score"), found.get("selected", False)
    if not isinstance(label, str) or isinstance(score, bool) or not isinstance(score, int | float):
        return None
    # A whole number in JSON may be larger than any float.
    return LabelScore(label, float(score) if abs(score) <= MOST_SCORE else inf, selected is True)


def _error(found: object) -> ErrorInfo:
    if isinstance(found, Mapping):
        return kept_error(found.get("type", found.get("code")), found.get("message"))
    return kept_error("error", found)


def _count(found: object) -> int:
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else 0

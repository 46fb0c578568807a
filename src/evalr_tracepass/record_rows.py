"""Rows of records: what a store or an export has of one result, whichever of the columns it has."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple, get_args

from evalr.errors import InputError
from evalr.logs.reasons import Reason
from evalr.quoting import quoted
from evalr_tracepass.catalogue import SIGNALS
from evalr_tracepass.records import Account, InputKind, LabelScore, Prediction, Result
from evalr_tracepass.signals import reading

COLUMNS: tuple[str, ...] = Result._fields
NEEDED = ("convo_id", "reflex_model", "status", "transform_id")
"""Without these a row is no record of a pass."""

SIGNS = frozenset(("convo_id", "reflex_model", "transform_id", "status"))

NO_FIRING_LABEL = "no label of its model is known to fire: name it with fires_on, as in fires_on=model=label"

_KINDS: tuple[str, ...] = get_args(InputKind)


class Read(NamedTuple):
    """One record, and whose it is where the row says so."""

    record: Result
    account: Account | None


FiresOn = Mapping[str, frozenset[str]]
"""By model, the labels at which it counts as fired."""


def fires_on_of(texts: tuple[str, ...]) -> FiresOn:
    """`bad-handoff=dropped` as what it stands for; those of the signals that come with evalr are known."""
    found = {each.model: frozenset(each.fires_on) for each in SIGNALS.values() if each.fires_on}
    own: dict[str, set[str]] = {}
    for text in texts:
        model, equals, label = text.partition("=")
        if not (model and equals and label):
            raise InputError(f"fires_on={text!r}: write MODEL=LABEL, the label at which the model counts as fired")
        own.setdefault(model, set()).add(label)
    return found | {model: frozenset(labels) for model, labels in own.items()}


def read_row(row: Mapping[str, Any], fires_on: FiresOn) -> Read:
    """A row of columns as a record.

    Columns that the row does not have are what they are where nobody said: a signal is named as its model, and whether
    it fired is worked out from its labels.

    Raises:
        Reason: it cannot be used.
    """
    missing = next((name for name in NEEDED if not row.get(name)), None)
    if missing is not None:
        raise Reason(f"missing field {quoted(missing)}")
    status = row["status"]
    if status not in ("completed", "failed"):
        raise Reason("pending" if status == "pending" else "status that is neither completed nor failed")
    model = str(row["reflex_model"])
    selected = tuple(map(str, _list(row.get("selected_labels"))))
    classes = str(row.get("classes_json") or "")
    kind = str(row.get("input_kind") or "user_chat")
    if kind not in _KINDS:
        raise Reason(f"input kind {quoted(kind)}")
    created = _time(row.get("created_at"))
    record = Result(
        run_id=str(row.get("run_id") or ""),
        batch_id=str(row.get("batch_id") or ""),
        request_id=str(row.get("request_id") or "") or _made_id(row, kind),
        convo_id=str(row["convo_id"]),
        event_id=str(row.get("event_id") or ""),
        span_id=str(row.get("span_id") or ""),
        turn_index=_whole(row.get("turn_index")),
        user=str(row.get("user") or row.get("end_user_id") or ""),
        release=str(row.get("release") or ""),
        input_kind=kind,  # type: ignore[arg-type]  # it is one of them
        transform_id=str(row["transform_id"]),
        transform_version=_whole(row.get("transform_version")) or 1,
        signal_id=str(row.get("signal_id") or model),
        reflex_model=model,
        model_version=str(row.get("model_version") or ""),
        status=status,
        mode=row.get("mode") or "",
        top_label=str(row.get("top_label") or ""),
        top_score=_score(row.get("top_score")),
        selected_labels=selected,
        fired=status == "completed" and _fired(row.get("fired"), model, selected, classes, fires_on),
        threshold=None if row.get("threshold") in (None, "") else _score(row["threshold"]),
        truncated=_yes(row.get("truncated")),
        classes_json=classes,
        error_type=str(row.get("error_type") or ""),
        error_message=str(row.get("error_message") or ""),
        source_start_time=_time(row.get("source_start_time")),
        created_at=created or datetime(1970, 1, 1, tzinfo=UTC),
        input_hash=str(row.get("input_hash") or ""),
        attempt=_whole(row.get("attempt")) or 0,
    )
    user, org = row.get("account_user_id"), row.get("account_org_id")
    return Read(record, Account(str(user or ""), str(org or "")) if user or org else None)


def to_row(record: Result) -> dict[str, Any]:
    """A record as JSON holds it: times with their zone, labels as a list."""
    row = record._asdict()
    row["selected_labels"] = list(record.selected_labels)
    for name in ("source_start_time", "created_at"):
        at = row[name]
        row[name] = None if at is None else at.astimezone(UTC).isoformat(timespec="milliseconds")
    return row


def _made_id(row: Mapping[str, Any], kind: str) -> str:
    parts = (kind, row["convo_id"], row.get("event_id"), row.get("span_id"), row["transform_id"])
    return ":".join(str(part or "") for part in parts)


def _fired(said: Any, model: str, selected: tuple[str, ...], classes: str, fires_on: FiresOn) -> bool:
    if said not in (None, ""):
        return _yes(said)
    labels = fires_on.get(model)
    if labels is None:
        raise Reason(NO_FIRING_LABEL)
    known = SIGNALS.get(model)
    if classes and known is not None and frozenset(known.fires_on) == labels:
        return reading(known, Prediction(model, classes=_classes(classes))).fired
    return not labels.isdisjoint(selected)


def _classes(text: str) -> tuple[LabelScore, ...]:
    try:
        found = json.loads(text)
        return tuple(
            LabelScore(str(each["label"]), float(each["score"]), bool(each.get("selected", False))) for each in found
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        raise Reason("classes_json that cannot be read") from None


def _list(value: Any) -> list[Any]:
    """A list, or the text of one: JSON, or as ClickHouse writes arrays into CSV."""
    if value is None or value == "":
        return []
    if isinstance(value, str):
        for read in (json.loads, ast.literal_eval):
            try:
                found = read(value)
            except (ValueError, SyntaxError):
                continue
            if isinstance(found, list):
                return found
        raise Reason("selected_labels that are no list")
    return list(value)


def _yes(value: Any) -> bool:
    return value in (True, 1, "1", "true", "True", "TRUE", "t")


def _whole(value: Any) -> int | None:
    if value in (None, "") or value != value:  # noqa: PLR0124  a frame's missing number
        return None
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        raise Reason("number that cannot be read") from None


def _score(value: Any) -> float:
    try:
        found = float(value or 0)
    except (TypeError, ValueError, OverflowError):
        raise Reason("score that cannot be read") from None
    # A column of short floats has a score of 1 as 1.0000001.
    if not -1e-6 <= found <= 1 + 1e-6:
        raise Reason("score that is not from 0 to 1")
    return min(max(found, 0.0), 1.0)


def _time(value: Any) -> datetime | None:
    """A time; one without a zone is in UTC, as ClickHouse writes it."""
    if value in (None, ""):
        return None
    if isinstance(value, int | float):
        # Seconds, or thousandths of them: no record is of the year 5138.
        try:
            value = datetime.fromtimestamp(value / 1000 if value > 1e11 else value, UTC)
        except (ValueError, OverflowError, OSError):
            raise Reason("time that cannot be read") from None
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise Reason("time that cannot be read") from None
    if not isinstance(value, datetime):
        raise Reason("time that cannot be read")
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value

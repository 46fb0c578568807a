"""Records of passes as tests need them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from evalr.tracepass import Account, Pass, PlanEstimate, Result, Scope, Signal, TransformEstimate, transform

AT = datetime(2026, 11, 1, 9, tzinfo=UTC)

LOUD = Signal(
    signal_id="loud",
    model="loud-model",
    display_name="Loud",
    labels=("quiet", "loud"),
    fires_on=("loud",),
    thresholds={"loud": 0.7},
    transform=transform("user_message"),
)


def record(convo: str, turn: int, score: float = 0.0, **other: Any) -> Result:
    """What LOUD said of a turn; one that failed with `error_type`."""
    failed = "error_type" in other
    fields: dict[str, Any] = {
        "run_id": "pass-1",
        "batch_id": "local",
        "request_id": f"user_turn:{convo}:{turn}::user_message:0",
        "convo_id": convo,
        "event_id": str(turn),
        "span_id": "",
        "turn_index": turn,
        "user": f"user of {convo}",
        "release": "",
        "input_kind": "user_chat",
        "transform_id": "user_message",
        "transform_version": 1,
        "signal_id": "loud",
        "reflex_model": "loud-model",
        "model_version": "" if failed else "1",
        "status": "failed" if failed else "completed",
        "mode": "" if failed else "single_label",
        "top_label": "" if failed else "loud" if score >= 0.5 else "quiet",
        "top_score": 0.0 if failed else max(score, 1 - score),
        "selected_labels": ("loud",) if score >= 0.7 else () if failed else ("quiet",),
        "fired": score >= 0.7,
        "threshold": None if failed else 0.7,
        "truncated": False,
        "classes_json": "",
        "error_type": "",
        "error_message": "",
        "source_start_time": AT + timedelta(minutes=turn),
        "created_at": AT + timedelta(days=1),
    }
    return Result(**{**fields, **other})


def pass_of(*, inputs: int, not_retained: int = 0, too_long: int = 0, scope: Scope | None = None) -> Pass:
    """A pass with LOUD alone."""
    part = TransformEstimate(
        transform_id="user_message",
        transform_version=1,
        models=("loud-model",),
        inputs=inputs,
        predictions=inputs,
        not_retained=not_retained,
        too_long=too_long,
    )
    return Pass(
        id="pass-1",
        account=Account("u"),
        status="complete",
        scope=scope or Scope(),
        selected_signals=(LOUD.to_dict(),),
        transform_plan=(),
        estimate=PlanEstimate(inputs=inputs, predictions=inputs, not_retained=not_retained, transforms=(part,)),
        total_inputs=inputs + too_long,
        total_predictions=inputs,
        completed_inputs=inputs,
        failed_inputs=0,
        error_message=None,
        created_at=AT,
    )

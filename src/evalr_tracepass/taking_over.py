"""Taking over: a pass that reads only what is new of a conversation has what earlier passes read of it, too.

Otherwise a conversation that was flagged, and has gone on, would not be flagged in the latest pass that read it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from evalr_tracepass.planning import Plan
from evalr_tracepass.records import INPUT_TOO_LONG, Account, LabelScore, Pass, Prediction, Result
from evalr_tracepass.signals import Signal, reading
from evalr_tracepass.stores.store import ALL, ResultStore

TOGETHER = 400
"""Conversations that are looked up together."""

NO_BATCH = ""
"""The batch of what was taken over: none of this pass."""


def taken_over(results: ResultStore, account: Account, found: Pass, made: Plan) -> Iterator[Result]:
    """What earlier passes read of the conversations of a pass, and the pass was spared, as results of its own.

    That is what they answered, and what was too long for them, which is missing from the conversation now as then.

    Each keeps the time at which it was read, and has no batch; what it means is worked out anew by the signal of this
    pass, whose thresholds may be others.
    """
    read: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for each in results.results(account, passes=found.id):
        read.setdefault((each.convo_id, each.user), set()).add((each.request_id, each.reflex_model))
    versions = {group.transform.id: group.transform.version for group in made.groups}
    models = {signal.model for signal in made.signals}
    ids = sorted({convo_id for convo_id, _ in read})
    for start in range(0, len(ids), TOGETHER):
        known = results.answered(account, ids[start : start + TOGETHER])
        spared = {
            each.convo_id
            for each in known
            if each.model in models
            and (each.request_id, each.model)
            not in read.get((each.convo_id, each.user), {(each.request_id, each.model)})
        }
        for convo_id in sorted(spared):
            latest: dict[tuple[str, str, str], Result] = {}
            for each in results.results(account, passes=ALL, convo_id=convo_id):
                what = each.request_id, each.reflex_model
                mine = read.get((convo_id, each.user))
                if (
                    mine is None
                    or what in mine
                    or (each.status == "failed" and each.error_type != INPUT_TOO_LONG)
                    or (each.transform_id, each.reflex_model) not in made.signal_by
                    or versions[each.transform_id] != each.transform_version
                ):
                    continue
                before = latest.get((each.user, *what))
                if before is None or each.created_at > before.created_at:
                    latest[each.user, *what] = each
            for each in latest.values():
                yield _as_of(each, found, made.signal_by[each.transform_id, each.reflex_model])


def is_taken_over(record: Result, found: Pass) -> bool:
    """Whether a result of a pass is of an earlier one: its own have a batch, or failed before they were sent."""
    return not record.batch_id and (record.status == "completed" or record.created_at < found.created_at)


def _as_of(record: Result, found: Pass, signal: Signal) -> Result:
    own = record._replace(run_id=found.id, batch_id=NO_BATCH, signal_id=signal.signal_id, attempt=0)
    if not record.classes_json:
        return own
    classes = tuple(
        LabelScore(each["label"], each["score"], each["selected"]) for each in json.loads(record.classes_json)
    )
    said = reading(signal, Prediction(record.reflex_model, record.mode, classes))
    return own._replace(
        top_label=said.top_label,
        top_score=said.top_score,
        selected_labels=said.selected_labels,
        fired=said.fired,
        threshold=said.threshold,
    )

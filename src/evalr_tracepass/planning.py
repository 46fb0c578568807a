"""Plans: which models read which texts, as rows that stream, and what that comes to before anything is paid for."""

from __future__ import annotations

import hmac
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from itertools import islice
from math import ceil, isfinite
from typing import Any

from evalr.errors import InputError
from evalr.inputs import Transcript
from evalr.logs.seen import Seen
from evalr.quoting import safe_text
from evalr_tracepass.projecting import project
from evalr_tracepass.records import (
    LARGEST_BATCH,
    InputKind,
    Item,
    PlanEstimate,
    Reflex,
    Row,
    Scope,
    TransformEstimate,
)
from evalr_tracepass.scopes import refusal_of
from evalr_tracepass.signals import Signal
from evalr_tracepass.traces import Trace, trace_of
from evalr_tracepass.transforms import Transform

DUPLICATE = "duplicate conversation"

ROW_KINDS: dict[InputKind, str] = {
    "user_chat": "user_turn",
    "agent_chat": "assistant_turn",
    "full_trace": "full_trace",
}
"""How a row's id begins, by what its text shows."""

Traces = Iterable[Transcript]


@dataclass(frozen=True)
class Group:
    """One transform and the models that read what it makes. No other model ever does."""

    transform: Transform
    signals: tuple[Signal, ...]

    @property
    def models(self) -> tuple[str, ...]:
        """The aliases of its models, each once."""
        return tuple(dict.fromkeys(signal.model for signal in self.signals))

    def to_dict(self) -> dict[str, Any]:
        """As a pass keeps it."""
        return {"transform": self.transform.model_dump(mode="json"), "models": list(self.models)}


@dataclass(frozen=True)
class Plan:
    """Which models read which texts of which traces. Made by `plan`.

    Attributes:
        groups: signals by their transform.
        scope: which traces, and how they were chosen.
        hash_key: of the HMAC by which a text can be told again. Without one, none is made.
    """

    groups: tuple[Group, ...]
    scope: Scope
    hash_key: bytes | None = field(default=None, repr=False)

    @property
    def signals(self) -> tuple[Signal, ...]:
        """Every signal of it."""
        return tuple(signal for group in self.groups for signal in group.signals)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to know of its transforms before it is run."""
        return tuple(
            f"{each.transform.name}: {each.transform.warning}" for each in self.groups if each.transform.warning
        )

    @cached_property
    def signal_by(self) -> dict[tuple[str, str], Signal]:
        """The signal that a result belongs to, by the id of its transform and the alias of its model."""
        return {(signal.transform.id, signal.model): signal for signal in self.signals}

    def rows(self, traces: Traces) -> Rows:
        """The rows of traces, as a stream that is read once."""
        return Rows(self, traces)

    def preview(self, traces: Traces, n: int = 5) -> list[Row]:
        """The first `n` rows of each transform, with the texts that would be sent. No model is asked.

        It reads no further than it has to.
        """
        found: dict[str, list[Row]] = {group.transform.id: [] for group in self.groups}
        for row in self.rows(traces):
            of = found[row.item.transform_id]
            if len(of) < n:
                of.append(row)
            if all(len(each) >= n for each in found.values()):
                break
        return [row for of in found.values() for row in of]

    def estimate(
        self,
        traces: Traces,
        *,
        rate: float | Mapping[str, float] | None = None,
        batch: int = LARGEST_BATCH,
        most: int | None = None,
    ) -> PlanEstimate:
        """What the plan comes to over traces, which are read, and not kept.

        Args:
            traces: to count in.
            rate: US dollars for one prediction, or by model. Without it, or for a model without one, no cost is known.
            batch: rows of one upload.
            most: stop after so many conversations.
        """
        rows = self.rows(traces if most is None else islice(traces, most))
        for _ in rows:
            pass
        return rows.estimate(rate=rate, batch=batch)


def plan(
    signals: Iterable[Signal],
    *,
    scope: Scope | None = None,
    reflexes: Mapping[str, Reflex] | None = None,
    hash_key: bytes | None = None,
) -> Plan:
    """A plan for signals over the traces of a scope.

    Signals are grouped by their transform, so that one text is read by every model that was trained on such texts, and
    by no other.

    Args:
        signals: what to look for; each transform may have one signal of a model.
        scope: which traces; by default all.
        reflexes: the classifiers that run here, by their aliases: each signal's labels must be among its model's.
        hash_key: a secret by which texts can be told again across passes, without keeping them.

    Raises:
        InputError: there is no signal, two of one model read the same texts, transforms of one id differ, or a signal
            names labels that its classifier does not have.
    """
    chosen = list(signals)
    if not chosen:
        raise InputError("a plan needs at least one signal")
    by_id: dict[str, Transform] = {}
    groups: dict[str, list[Signal]] = {}
    for signal in chosen:
        made = signal.transform
        if by_id.setdefault(made.id, made) != made:
            raise InputError(
                f"two signals have a transform {safe_text(made.id)!r} that is not the same in both: give the changed "
                "one an id of its own"
            )
        group = groups.setdefault(made.id, [])
        twin = next((each for each in group if each.model == signal.model), None)
        if twin is not None:
            raise InputError(
                f"signals {safe_text(twin.signal_id)!r} and {safe_text(signal.signal_id)!r} have one model read the "
                "same texts, so that neither result would say whose it is: run them in two passes"
            )
        _check_labels(signal, (reflexes or {}).get(signal.model))
        group.append(signal)
    return Plan(tuple(Group(by_id[name], tuple(of)) for name, of in groups.items()), scope or Scope(), hash_key)


def _check_labels(signal: Signal, reflex: Reflex | None) -> None:
    if reflex is None:
        return
    labels = list(reflex.labels)
    unknown = sorted({*signal.fires_on, *signal.thresholds} - set(labels))
    if unknown:
        raise InputError(
            f"signal {safe_text(signal.signal_id)!r} fires on, or has a threshold for, {safe_text(str(unknown))}; the "
            f"labels of {safe_text(signal.model)!r} are {safe_text(str(labels), longest=400)}"
        )


# ---------------------------------------------------------------------------------------------------------------------
# Rows
# ---------------------------------------------------------------------------------------------------------------------


class _Tally:
    __slots__ = ("inputs", "not_retained", "too_long", "truncated")

    def __init__(self) -> None:
        self.inputs = self.not_retained = self.truncated = self.too_long = 0


class Rows(Iterable[Row]):
    """The rows of a plan over traces: a stream that can be iterated over once, and holds one conversation at a time.

    What it takes to know which conversations came before is 28 to 56 bytes each.

    Attributes:
        conversations: that the scope let through so far.
        left_out: those that it did not, and others that were not read, by reason.
        latest: the latest time of any turn of a trace that was read: a monitor goes on from there.
    """

    def __init__(self, made: Plan, traces: Traces) -> None:
        self.conversations = 0
        self.left_out: Counter[str] = Counter()
        self.latest: datetime | None = None
        self._plan = made
        self._tallies = [_Tally() for _ in made.groups]
        self._rows = self._stream(traces)

    def __iter__(self) -> Iterator[Row]:
        return self._rows

    def estimate(self, *, rate: float | Mapping[str, float] | None = None, batch: int = LARGEST_BATCH) -> PlanEstimate:
        """What has come by so far; of the whole, when the stream has ended."""
        parts = tuple(
            TransformEstimate(
                transform_id=group.transform.id,
                transform_version=group.transform.version,
                models=group.models,
                inputs=tally.inputs,
                predictions=tally.inputs * len(group.models),
                not_retained=tally.not_retained,
                truncated=tally.truncated,
                too_long=tally.too_long,
            )
            for group, tally in zip(self._plan.groups, self._tallies, strict=True)
        )
        inputs, predictions = sum(part.inputs for part in parts), sum(part.predictions for part in parts)
        cost = _cost(parts, rate)
        return PlanEstimate(
            conversations=self.conversations,
            inputs=inputs,
            predictions=predictions,
            cost=cost,
            rate=rate
            if isinstance(rate, int | float)
            else cost / predictions
            if cost is not None and predictions
            else None,
            batches=ceil(inputs / batch),
            not_retained=sum(part.not_retained for part in parts),
            truncated=sum(part.truncated for part in parts),
            too_long=sum(part.too_long for part in parts),
            left_out=dict(self.left_out),
            transforms=parts,
        )

    def _stream(self, traces: Traces) -> Iterator[Row]:
        made = self._plan
        refusal, since = refusal_of(made.scope), made.scope.since
        ids, subjects = Seen(), Seen()
        digest = _digest_of(made.hash_key)
        for transcript in traces:
            trace = trace_of(transcript)
            reason = refusal(trace)
            if reason is None and not subjects.add((trace.user, trace.convo_id)):
                reason = DUPLICATE
            if reason is not None:
                self.left_out[reason] += 1
                continue
            self.conversations += 1
            if trace.ended is not None and (self.latest is None or trace.ended > self.latest):
                self.latest = trace.ended
            # An id that several users have is told apart by the user, from the second on.
            convo = _escaped(trace.convo_id)
            if not ids.add((trace.convo_id,)):
                convo = f"{convo}%40{_escaped(trace.user)}"
            for group, tally in zip(made.groups, self._tallies, strict=True):
                yield from self._rows_of(group, tally, trace, convo, since, digest)

    def _rows_of(
        self,
        group: Group,
        tally: _Tally,
        trace: Trace,
        convo: str,
        since: datetime | None,
        digest: Callable[[str], str],
    ) -> Iterator[Row]:
        made, models = group.transform, group.models
        begin, end = f"{ROW_KINDS[made.input_kind]}:{convo}:", f":{_escaped(made.id)}:"
        ordinals: Counter[str] = Counter()
        for found in project(made, trace):
            step = found.step
            at = trace.began if step is None else step.at
            # What was there at the last run is no news. A turn without a time may be as new as the last.
            if since is not None and step is not None and at is not None and at < since:
                continue
            if not found.retained:
                tally.not_retained += 1
                continue
            event, span = ("", "") if step is None else (step.event_id, step.span_id)
            place = f"{_escaped(event)}:{_escaped(span)}"
            ordinal = ordinals[place]
            ordinals[place] += 1
            item = Item(
                f"{begin}{place}{end}{ordinal}",
                trace.convo_id,
                event,
                span,
                None if step is None else step.turn_index,
                trace.user,
                trace.release,
                made.input_kind,
                made.id,
                made.version,
                trace.began if at is None else at,
                models,
                found.truncated,
                digest(found.text) if found.error is None else "",
            )
            if found.error is None:
                tally.inputs += 1
                tally.truncated += found.truncated
            else:
                tally.too_long += 1
            yield Row(item, found.text, found.error)


def _escaped(part: str) -> str:
    """A part of a row's id, so that different parts never spell the same id: most ids stand as they are."""
    if ":" in part or "%" in part:
        return part.replace("%", "%25").replace(":", "%3A")
    return part


def _digest_of(key: bytes | None) -> Callable[[str], str]:
    if key is None:
        return lambda _: ""
    if len(key) < 16:
        raise InputError("hash_key must be a secret of 16 bytes or more, such as secrets.token_bytes(32)")
    secret = key
    return lambda text: hmac.digest(secret, text.encode("utf-8", "surrogatepass"), "sha256").hex()[:32]


def _cost(parts: Sequence[TransformEstimate], rate: float | Mapping[str, float] | None) -> float | None:
    if rate is None:
        return None
    total = 0.0
    for part in parts:
        for model in part.models:
            price = rate.get(model) if isinstance(rate, Mapping) else rate
            if price is None:
                return None
            if isinstance(price, bool) or not (isfinite(price) and price >= 0):
                raise InputError(f"rate={price!r} must be US dollars for one prediction, 0 or more")
            total += price * part.inputs
    return total

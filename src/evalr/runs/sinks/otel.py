"""Results as telemetry, by OpenTelemetry's conventions for generative AI.

The event is `gen_ai.evaluation.result`, with the attributes that the conventions give it:
https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/gen-ai-events.md
They say nothing yet of a span for the evaluation itself; what it has beyond them is under `evalr.`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from evalr.errors import MissingExtraError, SinkError
from evalr.fields import verdict_fields
from evalr.input_fields import without_lone_surrogates
from evalr.inputs import About
from evalr.verdicts import Failure, Result, Score, Verdict, scores

if TYPE_CHECKING:
    from opentelemetry._logs import Logger, LoggerProvider
    from opentelemetry.trace import SpanContext, Tracer, TracerProvider

EVENT = "gen_ai.evaluation.result"
SCOPE = "evalr"

Attributes = dict[str, str | bool | int | float | Sequence[str]]


class OtelSink:
    """Sends each result as a span, and each of its scores as a `gen_ai.evaluation.result` event.

    The span, `evaluate NAME`, says who judged what, how long it took and what came of it. A verdict's choices, numbers
    and yes-or-no fields are its scores: numbers are `gen_ai.evaluation.score.value` (yes is 1), choices
    `gen_ai.evaluation.score.label`. Its texts are the `gen_ai.evaluation.explanation`. A field that is None has no
    event. A failure has one with `error.type`.

    Where the input's attributes have the `trace_id` and `span_id` of what was judged (32 and 16 hexadecimal digits),
    the events belong to that span, and the evaluation's span has a link to it. A `gen_ai.response.id` among them goes
    along.

    `evalr.score.id` is the same for a later verdict on the same subject, which also has `evalr.supersedes`: a store
    that keeps one event for each id counts none twice.

    Args:
        tracer_provider: where spans go; the application's own by default.
        logger_provider: where events go; the application's own by default.
        explanations: whether texts of a verdict, which may quote what was judged, go along.

    Raises:
        MissingExtraError: OpenTelemetry is not installed.
    """

    def __init__(
        self,
        tracer_provider: TracerProvider | None = None,
        logger_provider: LoggerProvider | None = None,
        *,
        explanations: bool = True,
    ) -> None:
        try:
            import opentelemetry._logs
            import opentelemetry.trace  # noqa: F401
        except ModuleNotFoundError as error:
            if not (error.name or "").startswith("opentelemetry"):
                raise
            raise MissingExtraError(
                "OtelSink needs OpenTelemetry, which is not installed: pip install 'evalr[otel]'"
            ) from error
        self._tracer_provider = tracer_provider
        self._logger_provider = logger_provider
        self._explanations = explanations

    async def write(self, results: Sequence[Result[Any]], /, *, superseding: bool = False) -> None:
        """As every sink. Whether a batching exporter could send what it was given, only the exporter knows.

        Raises:
            SinkError: no OpenTelemetry SDK is set up, and the results would go nowhere.
        """
        tracer, logger = self._tracer(), self._logger()
        for result in results:
            self._send(tracer, logger, result, superseding)

    async def close(self) -> None:
        """As every sink: what was sent so far is flushed."""
        from anyio import to_thread

        for provider in (self._tracer_provider, self._logger_provider):
            flush = getattr(provider, "force_flush", None)
            if flush is not None:
                await to_thread.run_sync(flush)

    def _tracer(self) -> Tracer:
        from opentelemetry.trace import NoOpTracerProvider, ProxyTracerProvider, get_tracer_provider

        provider = self._tracer_provider or get_tracer_provider()
        if isinstance(provider, NoOpTracerProvider | ProxyTracerProvider):
            raise SinkError("spans would go nowhere: set OpenTelemetry's tracer provider, or pass tracer_provider=")
        return provider.get_tracer(SCOPE)

    def _logger(self) -> Logger:
        from opentelemetry._logs import NoOpLogger, get_logger_provider

        logger = (self._logger_provider or get_logger_provider()).get_logger(SCOPE)
        # The provider of before one is set is of a class without a public name; its logger tells.
        if isinstance(logger, NoOpLogger) or type(logger).__name__ == "ProxyLogger":
            raise SinkError("events would go nowhere: set OpenTelemetry's logger provider, or pass logger_provider=")
        return logger

    def _send(self, tracer: Tracer, logger: Logger, result: Result[Any], superseding: bool) -> None:
        from opentelemetry._logs import LogRecord, SeverityNumber
        from opentelemetry.context import Context
        from opentelemetry.trace import Link, NonRecordingSpan, Status, StatusCode, set_span_in_context

        end = time.time_ns()
        judged = _judged_span(result.about)
        shared = _shared(result, superseding)
        span = tracer.start_span(
            f"evaluate {result.evaluator}",
            # A trace of its own: the one who judges is not within what is judged.
            context=Context(),
            links=[] if judged is None else [Link(judged)],
            attributes={**shared, **_of_the_call(result), **_error(result)},
            start_time=end - int((result.latency or 0.0) * 1e9),
            record_exception=False,
        )
        if isinstance(result, Failure):
            span.set_status(Status(StatusCode.ERROR, result.error if self._explanations else None))
        span.end(end)
        parent = NonRecordingSpan(judged) if judged is not None else span
        for attributes in self._events(result):
            logger.emit(
                LogRecord(
                    timestamp=end,
                    observed_timestamp=end,
                    context=set_span_in_context(parent, Context()),
                    severity_number=SeverityNumber.ERROR if isinstance(result, Failure) else SeverityNumber.INFO,
                    event_name=EVENT,
                    attributes={**shared, **_error(result), **attributes},
                )
            )

    def _events(self, result: Result[Any]) -> list[Attributes]:
        name = {"gen_ai.evaluation.name": str(result.evaluator)}
        if not isinstance(result, Verdict):
            words = result.error if isinstance(result, Failure) else result.reason
            return [{**name, **self._explained([words])}]
        kinds = {field.name: field.kind for field in verdict_fields(type(result.value))}
        found = [(kinds[score.name.removeprefix(f"{score.evaluator}.")], score) for score in scores(result)]
        explained = self._explained([str(score.value) for kind, score in found if kind == "text" and score.value])
        return [
            {**_score(score), **explained} for kind, score in found if kind != "text" and score.value not in (None, [])
        ]

    def _explained(self, texts: list[str]) -> Attributes:
        if not texts or not self._explanations:
            return {}
        return {"gen_ai.evaluation.explanation": without_lone_surrogates("\n".join(texts))}


def _score(score: Score) -> Attributes:
    attributes: Attributes = {"gen_ai.evaluation.name": score.name}
    value = score.value
    if score.id is not None:
        # A hash of it, since it names the user.
        attributes["evalr.score.id"] = blake2b(score.id.encode(), digest_size=16).hexdigest()
    if isinstance(value, bool):
        attributes |= {
            "gen_ai.evaluation.score.value": float(value),
            "gen_ai.evaluation.score.label": str(value).lower(),
        }
    elif isinstance(value, int | float):
        attributes["gen_ai.evaluation.score.value"] = float(value)
    elif isinstance(value, list):
        attributes["gen_ai.evaluation.score.label"] = ", ".join(map(str, value))
    else:
        attributes["gen_ai.evaluation.score.label"] = str(value)
    return attributes


def _shared(result: Result[Any], superseding: bool) -> Attributes:
    """What span and events have alike: who said it, and of what. Not the user, whom telemetry need not know."""
    about = result.about
    found: dict[str, Any] = {
        "evalr.evaluator": result.evaluator,
        "evalr.version": result.version,
        "evalr.status": result.status,
        "evalr.supersedes": True if superseding else None,
        "evalr.as_of": None if result.as_of is None else result.as_of.isoformat(),
        "evalr.flags": result.flags if isinstance(result, Verdict) and result.flags else None,
        "evalr.given_by": result.given_by if isinstance(result, Verdict) else None,
    }
    if about is not None:
        attributes = about.attributes or {}
        found |= {
            "evalr.input.kind": about.kind,
            "evalr.input.id": about.id,
            "evalr.arm": about.arm,
            "evalr.weight": about.weight,
            "gen_ai.conversation.id": about.session or (about.id if about.kind in ("session", "transcript") else None),
            "gen_ai.response.id": _one(attributes.get("gen_ai.response.id")),
        }
    return {name: value for name, value in found.items() if value is not None}


def _of_the_call(result: Result[Any]) -> Attributes:
    found = {"evalr.latency": result.latency, "evalr.cost": result.cost}
    return {name: value for name, value in found.items() if value is not None}


def _error(result: Result[Any]) -> Attributes:
    if not isinstance(result, Failure):
        return {}
    return {"error.type": "_OTHER" if result.exception is None else type(result.exception).__qualname__}


def _judged_span(about: About | None) -> SpanContext | None:
    """The span that was judged, where the input's attributes name it."""
    from opentelemetry.trace import SpanContext, TraceFlags

    attributes = (about.attributes if about is not None else None) or {}
    trace, span = _one(attributes.get("trace_id")), _one(attributes.get("span_id"))
    if trace is None or span is None or not (_TRACE.fullmatch(trace) and _SPAN.fullmatch(span)):
        return None
    context = SpanContext(int(trace, 16), int(span, 16), is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))
    return context if context.is_valid else None


_TRACE = re.compile(r"[0-9a-fA-F]{32}", re.ASCII)
_SPAN = re.compile(r"[0-9a-fA-F]{16}", re.ASCII)


def _one(texts: str | list[str] | None) -> str | None:
    return texts if isinstance(texts, str) else None

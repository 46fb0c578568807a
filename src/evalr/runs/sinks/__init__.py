"""Where results of online evaluation go: memory, a log, telemetry."""

from evalr.runs.sinks.jsonl import JsonlSink
from evalr.runs.sinks.otel import OtelSink
from evalr.runs.sinks.sink import MemorySink, Sink

__all__ = ["JsonlSink", "MemorySink", "OtelSink", "Sink"]

"""A request is a span of the caller's trace, once the process knows where traces go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from omnigraph_core.server.telemetry import request_span

if TYPE_CHECKING:
    import pytest

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
SCOPE = {
    "method": "POST",
    "headers": [(b"traceparent", PARENT.encode())],
    "state": {"request_id": "r-1"},
}


def test_without_a_place_for_traces_nothing_is_made() -> None:
    with request_span(SCOPE) as span:
        span.end("/read", 200)
        assert not trace.get_current_span().is_recording()


def test_a_span_of_the_callers_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    with request_span(SCOPE) as span:
        span.end("/read", 200)
    (made,) = exporter.get_finished_spans()
    assert made.name == "POST /read"
    assert made.context is not None
    assert f"{made.context.trace_id:032x}" == PARENT.split("-")[1]
    assert dict(made.attributes or {}) == {
        "http.request.method": "POST",
        "omnigraph.request_id": "r-1",
        "http.route": "/read",
        "http.response.status_code": 200,
    }
    provider.shutdown()

"""Traces for OpenTelemetry, if it is installed: one span per request, a child of the caller's."""

from __future__ import annotations

import importlib
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.types import Scope


class RequestSpan:
    """The span of a request; without OpenTelemetry it does nothing."""

    def __init__(self, method: str, span: Any = None) -> None:
        self._method = method
        self._span = span

    def end(self, route: str, status: int) -> None:
        if self._span is None:
            return
        self._span.update_name(f"{self._method} {route}")
        self._span.set_attribute("http.route", route)
        self._span.set_attribute("http.response.status_code", status)


@contextmanager
def request_span(scope: Scope) -> Iterator[RequestSpan]:
    """Trace the block as the handling of a request."""
    opentelemetry = _opentelemetry()
    # Unless the process has been told where traces go, making them is for nothing.
    if opentelemetry is None or _is_idle(opentelemetry[0]):
        yield RequestSpan(scope["method"])
        return
    trace, propagate = opentelemetry
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    attributes = {
        "http.request.method": scope["method"],
        "omnigraph.request_id": scope["state"]["request_id"],
    }
    with trace.get_tracer("omnigraph.server").start_as_current_span(
        scope["method"],
        context=propagate.extract(headers),
        kind=trace.SpanKind.SERVER,
        attributes=attributes,
    ) as span:
        yield RequestSpan(scope["method"], span)


def _is_idle(trace: Any) -> bool:
    return isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


@cache
def _opentelemetry() -> tuple[Any, Any] | None:
    try:
        return (
            importlib.import_module("opentelemetry.trace"),
            importlib.import_module("opentelemetry.propagate"),
        )
    except ModuleNotFoundError:
        return None

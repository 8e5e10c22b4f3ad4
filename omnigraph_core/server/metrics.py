"""Figures of a server for Prometheus: requests, their time, and the time reads take in the engine.

Routes are told by their template, so that names of branches make no series of their own. Several
worker processes share their figures through a directory.
"""

from __future__ import annotations

import os
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
    multiprocess,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from omnigraph_core import settings as environment
from omnigraph_core.server.settings import MULTIPROCESS_DIRECTORY

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST

_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Metrics:
    """The figures of one process."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "omnigraph_http_requests",
            "Requests answered.",
            ("method", "route", "status"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "omnigraph_http_request_seconds",
            "Seconds from a request to the end of its answer.",
            ("method", "route"),
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._in_flight = Gauge(
            "omnigraph_http_requests_in_flight",
            "Requests under way.",
            multiprocess_mode="livesum",
            registry=self._registry,
        )
        self._engine = Histogram(
            "omnigraph_read_engine_seconds",
            "Seconds a read takes in the engine.",
            buckets=_SECONDS,
            registry=self._registry,
        )

    def began(self) -> None:
        self._in_flight.inc()

    def ended(self, method: str, route: str, status: int, seconds: float) -> None:
        self._in_flight.dec()
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)

    def read(self, seconds: float) -> None:
        self._engine.observe(seconds)

    def close(self) -> None:
        """Take the requests of this process out of the sum of those under way."""
        if environment.text(MULTIPROCESS_DIRECTORY) is not None:
            multiprocess.mark_process_dead(os.getpid())  # type: ignore[no-untyped-call]

    def text(self) -> bytes:
        """All figures, of all workers."""
        if environment.text(MULTIPROCESS_DIRECTORY) is None:
            return generate_latest(self._registry)
        whole = CollectorRegistry()
        multiprocess.MultiProcessCollector(whole)  # type: ignore[no-untyped-call]
        return generate_latest(whole)

"""The way from the engine to maintenance on Spark."""

from __future__ import annotations

from omnigraph_core.spark.maintain.workers import Executors
from omnigraph_core.spark.runner import SparkRunner
from omnigraph_core.spark.session import open_session


def workers() -> Executors:
    """Workers on the session of this process, which is opened if there is none.

    Raises:
        ConfigError: Spark cannot be started or reached.
    """
    return Executors(SparkRunner(open_session()))

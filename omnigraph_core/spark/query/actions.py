"""Everything that makes Spark work for a query: it can be stopped, and fails with our errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from omnigraph_core.spark.jobs import run

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")


class Actions:
    """What a query has Spark do, one thing after another."""

    def __init__(self, session: SparkSession, name: str) -> None:
        self.session = session
        self._name = f"query {name}"

    def act(self, work: Callable[[], T]) -> T:
        """What some calls of Spark return; stopped with whoever waits for them.

        Raises:
            OmnigraphError: what a task raised, or JobFailed.
        """
        return run(self.session, work, name=self._name)

    def held(self, frame: DataFrame) -> DataFrame:
        """The same rows, made once however often they are read.

        They stay with the executors, beyond whose loss they last if Spark has a directory for it.
        """
        if self.session.conf.get("spark.checkpoint.dir", None) is not None:
            return self.act(lambda: frame.checkpoint(eager=False))
        return self.act(lambda: frame.localCheckpoint(eager=False))

"""Spark as a resource of Dagster: the project's session, made when somebody first asks for it."""

from typing import Any

from dagster_pyspark import LazyPySparkResource
from pydantic import Field

from omnigraph_core.spark.session import open_session

REMOTE = "spark.remote"
MASTER = "spark.master"


class SparkResource(LazyPySparkResource):
    """The session of a run: at `spark.remote` or on `spark.master`, else where the variables say.

    The session is never stopped: processes that attach to a Connect server share it.
    """

    spark_config: dict[str, Any] = Field(default_factory=dict)

    def _init_session(self) -> None:
        """
        Raises:
            ConfigError: Spark cannot be started or reached.
        """
        given = dict(self.spark_config)
        remote, master = given.pop(REMOTE, None), given.pop(MASTER, None)
        # Asked each time: a session that its server has closed is replaced by another.
        self._spark_session = open_session(remote=remote, master=master, conf=given)

"""Where a merge or a diff runs: in this process, or on Spark if it is asked for or large enough."""

from __future__ import annotations

import importlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from omnigraph_core.engine.beyond import (
    AUTO,
    LOCAL,
    SPARK,
    check_engine,
    import_spark,
    is_installed,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.merge.workers import MergeWorkers

_MODULE: Final = "omnigraph_core.spark.merge.entry"
_SETTINGS: Final = "omnigraph_core.spark.settings"


@contextmanager
def workers_for(engine: str, context: GraphContext) -> Iterator[MergeWorkers | None]:
    """Who compares, decides about and writes rows; None: this process.

    With `auto` that is Spark where it runs on other machines, for tables of which many rows have
    changed. It is started when the first rows come.

    Raises:
        ConfigError: there is no such engine, or Spark is not installed.
    """
    check_engine(engine)
    if engine == LOCAL or (engine == AUTO and not _is_elsewhere()):
        yield None
        return
    spark: Any = import_spark(_MODULE)
    with spark.workers(context.store, is_asked=engine == SPARK) as workers:
        yield workers


def _is_elsewhere() -> bool:
    settings: Any = importlib.import_module(_SETTINGS)
    return is_installed() and bool(settings.is_elsewhere())

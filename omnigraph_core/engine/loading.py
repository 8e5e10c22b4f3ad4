"""Where a load runs: in this process, or on Spark if it is asked for or large enough."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from omnigraph_core.engine.beyond import (
    AUTO,
    LOCAL,
    SPARK,
    check_engine,
    import_spark,
    is_installed,
)
from omnigraph_core.write.load import load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from omnigraph_core.embedding.embedder import Embedder
    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.write.load_model import LoadOptions, LoadResult
    from omnigraph_core.write.sources import Source

_MODULE: Final = "omnigraph_core.spark.ingest.entry"
_WORTH_ASKING: Final = 64 << 20
"""Bytes of input below which nobody thinks of Spark."""


def load_with(
    engine: str,
    context: GraphContext,
    sources: Sequence[Source],
    options: LoadOptions,
    embedder: Embedder,
) -> LoadResult:
    """Load with an engine; what it does, and what it raises, is that of `write.load`.

    Raises:
        ConfigError: there is no such engine, or Spark is not installed.
    """
    check_engine(engine)
    if engine == AUTO:
        engine = SPARK if _is_for_spark(sources) else LOCAL
    if engine == LOCAL:
        return load(context, sources, options, embedder)
    spark: Any = import_spark(_MODULE)
    loaded: LoadResult = spark.load_on_spark(context, sources, options)
    return loaded


def _is_for_spark(sources: Sequence[Source]) -> bool:
    if sum(source.size for source in sources) < _WORTH_ASKING or not is_installed():
        return False
    return bool(import_spark(_MODULE).is_worth_it(sources))

"""Where a load runs: in this process, or on Spark if it is asked for or large enough; in one call,
or in steps that run apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from omnigraph_core.engine.beyond import (
    AUTO,
    LOCAL,
    SPARK,
    check_engine,
    is_installed,
    spark_module,
)
from omnigraph_core.write.load import load
from omnigraph_core.write.sources import open_sources

if TYPE_CHECKING:
    from collections.abc import Sequence

    from omnigraph_core.embedding.embedder import Embedder
    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.write.load_model import LoadOptions, LoadResult
    from omnigraph_core.write.progress import Listener
    from omnigraph_core.write.sources import Source

_MODULE: Final = "ingest.entry"
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
    loaded: LoadResult = spark_module(_MODULE).load_on_spark(context, sources, options)
    return loaded


class LoadSteps:
    """A load in steps: each may run in a process of its own, again, and after a crash.

    What a step finds lies beside the graph under the name of the run. Steps that were left out, or
    whose tables have moved since, are made up for by `commit`.
    """

    def __init__(self, context: GraphContext, branch: str, run: str, engine: str) -> None:
        check_engine(engine)
        is_local = engine == LOCAL
        entry = spark_module(_MODULE, is_local=is_local)
        self._steps = entry.load_steps(context, branch, run, is_local=is_local)

    def plan(self, sources: Sequence[Source], options: LoadOptions) -> None:
        """Say what the run loads where. The same plan again is nothing new.

        Raises:
            ConflictError: the run has another plan.
            ConfigError: an option does not go with steps.
        """
        self._steps.plan(sources, options)

    def read(self, progress: Listener | None = None) -> dict[str, int]:
        """Read, check and write every record, by itself; by table key the rows that go on.

        Args:
            progress: told how many rows have passed, as it goes on.
        """
        return dict(self._steps.read(progress))

    def written_bytes(self) -> dict[str, int]:
        """By table key the size of the files that `read` has written; none before it has."""
        return dict(self._steps.written_bytes())

    def problem_count(self) -> int:
        """How many problems `read` has found; with any, there is nothing to stage."""
        return int(self._steps.problem_count())

    def inspect(self, table_key: str) -> int:
        """Compare the keys of one table with the newest rows; how many rows are suspected."""
        return int(self._steps.inspect(table_key))

    def stage(self, table_key: str) -> int:
        """Stage a version of one table that nobody sees; its rows, 0 if nothing changes."""
        return int(self._steps.stage(table_key))

    def audit(self) -> None:
        """Check all tables together; what was checked before is not read again.

        Raises:
            DataError: records are malformed or break a rule; carries all of them.
        """
        self._steps.audit()

    def commit(self) -> LoadResult:
        """Publish all tables with one commit; repeated, the result of the first time.

        Raises:
            DataError: records are malformed or break a rule; carries all of them.
            ConflictError: others changed the branch meanwhile.
        """
        loaded: LoadResult = self._steps.commit()
        return loaded

    def clear(self) -> None:
        """Remove what the steps have left, when there is to be no commit."""
        self._steps.clear()


def is_audited(context: GraphContext, run: str) -> bool:
    """Whether the steps of a run came as far as `audit`, and found nothing wrong."""
    return bool(spark_module("ingest.kept", is_local=True).Kept(context.store, run).audited())


def is_read(context: GraphContext, run: str) -> bool:
    """Whether what the steps of a run have read may still be published, and is not read anew."""
    return spark_module("ingest.kept", is_local=True).Kept(context.store, run).read() is not None


def content_digests(addresses: Sequence[str], *, engine: str) -> list[str]:
    """By address of a file a digest of its content; large files are hashed by tasks.

    Raises:
        ConfigError: there is no such file, or Spark cannot be started or reached.
    """
    is_local = engine == LOCAL
    sources = open_sources(list(addresses))
    digests = spark_module("ingest.digests", is_local=is_local)
    return list(digests.content_digests(sources, is_local=is_local))


def _is_for_spark(sources: Sequence[Source]) -> bool:
    if sum(source.size for source in sources) < _WORTH_ASKING or not is_installed():
        return False
    return bool(spark_module(_MODULE).is_worth_it(sources))

"""An IO manager for graphs: assets return data frames, each of one node or edge type.

Dagster hands over one output after another and never says which is the last. So an output is only
staged, and an asset made by `publish_graph_asset` publishes all that its run has staged, with one
commit.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import dagster as dg
import pyarrow as pa
from pydantic import Field

from omnigraph_assets.config import ACTOR
from omnigraph_assets.metadata import failures
from omnigraph_assets.resources.frames import FrameKind, from_arrow, kind_of, to_storable
from omnigraph_assets.resources.spark import SparkResource
from omnigraph_assets.resources.staged_outputs import (
    FRAME,
    STAGED,
    STAGING,
    staged_outputs,
    staging_of,
)
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.engine.staged_frames import (
    make_spark_frame,
    pin_commit,
    read_frame,
    read_spark_frame,
    read_staged,
    stage_frame,
)
from omnigraph_core.errors import ConfigError

TYPE: Final = "omnigraph/type"
BRANCH: Final = "omnigraph/branch"
BRANCHES: Final = "branches"
"""What the name of dynamic partitions ends with if they are branches."""
_DIMENSION: Final = "branch"
"""The dimension of partitions of several that stands for branches."""


class GraphIOManager(dg.ConfigurableIOManager):
    """Stages data frames for a graph, and reads types of it as data frames.

    An asset's metadata `omnigraph/type` names its type, `Person` or `edge:Knows`; by default that
    is the last part of its key. Its branch is its metadata `omnigraph/branch`, or the key of its
    partition if it is partitioned by branches, or else `branch`.
    """

    uri: str
    branch: str = "main"
    mode: str = Field(default="merge", description="`merge`, `append` or `overwrite`")
    embed: str = Field(default="now", description="`now`, `defer` or `off`")
    engine: str = Field(default="auto", description="`local`, `spark` or `auto`, by the size")
    actor: str = ACTOR
    spark_config: dict[str, Any] = Field(
        default_factory=dict, description="as of `SparkResource`; for inputs that Spark reads"
    )

    def open(self) -> Omnigraph:
        """
        Raises:
            GraphNotFound: there is none at its address.
        """
        return Omnigraph.open(self.uri, actor=self.actor)

    def handle_output(self, context: dg.OutputContext, obj: Any) -> None:
        """Stage the frame that an asset returned.

        Raises:
            dg.Failure: no such branch or type, or columns that do not fit; names all problems.
        """
        with failures():
            if not context.has_asset_key:
                raise ConfigError(f"the output `{context.name}` belongs to no asset")
            branch = self._branch(context)
            frame = to_storable(obj)
            staging = staging_of(context.step_context.dagster_run)
            with self.open() as graph:
                staged = stage_frame(
                    graph,
                    staging,
                    _type_of(context),
                    frame,
                    label=_label_of(context),
                    branch=branch,
                    mode=self.mode,
                )
        context.add_output_metadata(
            {
                STAGED: True,
                "dagster/row_count": staged.row_count,
                "table": staged.table_key,
                "branch": branch,
                FRAME: staged.name,
                STAGING: staging,
            }
        )

    def load_input(self, context: dg.InputContext) -> Any:
        """A type as the kind of frame that the input is annotated with.

        All inputs of a run are read at one commit of a branch. An output that this run has staged
        and not yet published is read as it was returned. Without a run, as by `load_asset_value`,
        the newest commit is read.

        Raises:
            dg.Failure: no such branch or type, or the annotation is no data frame.
        """
        upstream = context.upstream_output
        with failures():
            if upstream is None or not context.has_asset_key:
                raise ConfigError(f"the input `{context.name}` belongs to no asset")
            kind = kind_of(context.dagster_type.typing_type)
            run = _run_of(context)
            with self.open() as graph:
                staged = None if run is None else _staged_rows(graph, context, run)
                if staged is not None:
                    return self._frame(staged, kind)
                branch = self._branch(context)
                commit = _commit_of(graph, run, branch)
                name = _type_of(upstream)
                context.log.info("Reading %s of %s at the commit %s", name, branch, commit)
                if kind is FrameKind.SPARK:
                    return read_spark_frame(graph, self._session(), name, commit=commit)
                return self._frame(read_frame(graph, name, commit=commit), kind)

    def branch_for(
        self,
        metadata: Mapping[str, Any],
        partitions: dg.PartitionsDefinition[Any] | None,
        keys: Iterable[str],
    ) -> str:
        """The branch of an asset: by its metadata, the keys of its partitions, or the setting.

        Raises:
            ConfigError: the keys are those of several branches.
        """
        if BRANCH in metadata:
            return str(_plain(metadata[BRANCH]))
        branches = sorted({_branch_key(partitions, key) or self.branch for key in keys})
        if len(branches) > 1:
            raise ConfigError(
                f"one run writes one branch, not {', '.join(branches)}",
                hint="leave `backfill_policy` unset: a backfill runs each partition alone then",
            )
        return branches[0] if branches else self.branch

    def _branch(self, context: dg.OutputContext | dg.InputContext) -> str:
        metadata = context.definition_metadata
        if isinstance(context, dg.InputContext) and context.upstream_output is not None:
            metadata = {**context.upstream_output.definition_metadata, **metadata}
        if not context.has_asset_partitions:
            return self.branch_for(metadata, None, ())
        keys = context.asset_partition_keys
        return self.branch_for(metadata, context.asset_partitions_def, keys)

    def _session(self) -> Any:
        return SparkResource(spark_config=self.spark_config).spark_session

    def _frame(self, rows: pa.Table, kind: FrameKind) -> Any:
        if kind is FrameKind.SPARK:
            return make_spark_frame(self._session(), rows)
        return from_arrow(rows, kind)


def _run_of(context: dg.InputContext) -> dg.DagsterRun | None:
    """The run that reads; None if an asset is loaded outside of one."""
    try:
        return context.step_context.dagster_run
    except dg.DagsterInvariantViolationError:
        return None


def _commit_of(graph: Omnigraph, run: dg.DagsterRun | None, branch: str) -> str:
    if run is None:
        return graph.snapshot(branch).commit.graph_commit_id
    return pin_commit(graph, staging_of(run), run.run_id, branch=branch)


def _staged_rows(graph: Omnigraph, context: dg.InputContext, run: dg.DagsterRun) -> pa.Table | None:
    """What the runs of one root have staged as the input and not published yet."""
    wanted = set(context.asset_partition_keys) if context.has_asset_partitions else {None}
    frames = {
        output.frame
        for output in staged_outputs(context.instance, run)
        if output.asset_key == context.asset_key and output.partition in wanted
    }
    found = [read_staged(graph, staging_of(run), frame) for frame in sorted(frames)]
    tables = [rows for rows in found if rows is not None]
    return pa.concat_tables(tables, promote_options="permissive") if tables else None


def _branch_key(partitions: dg.PartitionsDefinition[Any] | None, key: str) -> str | None:
    """The branch that a partition stands for, if partitions are branches or have them as a part."""
    if isinstance(partitions, dg.DynamicPartitionsDefinition):
        is_branches = (partitions.name or "").endswith(BRANCHES)
        return key if is_branches else None
    if isinstance(partitions, dg.MultiPartitionsDefinition):
        parts = partitions.get_partition_key_from_str(key).keys_by_dimension
        return parts.get(_DIMENSION)
    return None


def _type_of(context: dg.OutputContext) -> str:
    return str(_plain(context.definition_metadata.get(TYPE, context.asset_key.path[-1])))


def _label_of(context: dg.OutputContext) -> str:
    key = context.asset_key.to_user_string()
    if not context.has_asset_partitions:
        return key
    return f"{key}[{', '.join(context.asset_partition_keys)}]"


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, dg.MetadataValue) else value

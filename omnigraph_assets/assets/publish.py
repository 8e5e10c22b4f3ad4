"""The asset that publishes what the other assets of its run have staged, with one commit."""

from collections.abc import Sequence
from typing import Any, Final

import dagster as dg

from omnigraph_assets.metadata import failures, spark_metadata
from omnigraph_assets.resources.io_manager import GraphIOManager
from omnigraph_assets.resources.staged_outputs import STAGED, staged_outputs, staging_of
from omnigraph_core.engine.published_frames import PublishedFrames
from omnigraph_core.engine.staged_frames import publish_frames
from omnigraph_core.errors import ConfigError

_RETRY: Final = dg.RetryPolicy(max_retries=2, delay=1)


def publish_graph_asset(
    assets: Sequence[dg.AssetsDefinition | dg.AssetSpec | dg.AssetKey | str],
    *,
    key: dg.AssetKey | str = "graph_publish",
    io_manager_key: str = "graph_io",
    partitions_def: dg.PartitionsDefinition[Any] | None = None,
    metadata: dict[str, Any] | None = None,
    group_name: str | None = None,
) -> dg.AssetsDefinition:
    """An asset that publishes the outputs of other assets with one commit.

    It publishes those of `assets` that its own run has materialised, or the runs that this run
    re-executes. Materialise it together with them.

    Args:
        assets: those that a `GraphIOManager` stages.
        io_manager_key: of that IO manager; each graph has one, and a publish of its own.
        partitions_def: as that of the assets.
        metadata: `omnigraph/branch` names the branch, as for the assets.
    """
    known = dict(metadata or {})

    @dg.asset(
        key=dg.AssetKey.from_coercible(key),
        deps=list(assets),
        required_resource_keys={io_manager_key},
        partitions_def=partitions_def,
        metadata=known,
        group_name=group_name,
        kinds={"lance"},
        retry_policy=_RETRY,
        description="Publishes what its run has staged, all types with one commit.",
    )
    def publish(context: dg.AssetExecutionContext) -> dg.MaterializeResult[Any]:
        graph_io = getattr(context.resources, io_manager_key)
        assert isinstance(graph_io, GraphIOManager)
        # The key as it is here: a project may have loaded this asset with a prefix.
        feeding = context.assets_def.asset_deps[context.asset_key]
        outputs = [
            output
            for output in staged_outputs(context.instance, context.run)
            if output.asset_key in feeding
        ]
        keys = context.partition_keys if context.has_partition_key else ()
        with failures():
            branch = graph_io.branch_for(known, partitions_def, keys)
            if not outputs:
                names = ", ".join(sorted(one.to_user_string() for one in feeding))
                raise ConfigError(
                    "this run has staged nothing",
                    hint=f"materialise this asset in one run with those that feed it: {names}",
                )
            with graph_io.open() as graph:
                published = publish_frames(
                    graph,
                    staging_of(context.run),
                    {output.frame: output.label for output in outputs},
                    branch=branch,
                    mode=graph_io.mode,
                    embed=graph_io.embed,
                    engine=graph_io.engine,
                    reader=context.run.run_id,
                )
        metadata = _metadata(published)
        for output in outputs:
            context.log_event(
                dg.AssetObservation(
                    output.asset_key,
                    partition=output.partition,
                    metadata={STAGED: False, **_commit(published)},
                )
            )
        return dg.MaterializeResult(metadata=metadata)

    return publish


def _metadata(published: PublishedFrames) -> dict[str, Any]:
    return {
        **_commit(published),
        "branch": published.branch,
        "rows": sum(published.rows.values()),
        "rows_by_type": dg.MetadataValue.json(dict(published.rows)),
        "repeated": published.is_repeat,
        **spark_metadata(published.spark),
    }


def _commit(published: PublishedFrames) -> dict[str, Any]:
    if published.commit_id is None:
        return {}
    return {"commit_id": published.commit_id, "manifest_version": published.manifest_version}

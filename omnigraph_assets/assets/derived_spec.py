"""The specification that all assets share that are derived from tables."""

from collections.abc import Iterable

import dagster as dg

from omnigraph_assets.config import GraphConfig
from omnigraph_assets.names import Names


def derived_spec(
    config: GraphConfig,
    key: dg.AssetKey,
    *,
    deps: Iterable[dg.AssetKey],
    group: str,
    description: str,
) -> dg.AssetSpec:
    """An asset of each branch that the platform makes from tables."""
    names = Names(config.name)
    return dg.AssetSpec(
        key,
        deps=list(deps),
        description=description,
        group_name=names.group(group),
        owners=list(config.owners),
        kinds=config.kinds,
        partitions_def=names.branches,
    )

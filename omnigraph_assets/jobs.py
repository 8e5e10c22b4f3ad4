"""Jobs of whole assets."""

import dagster as dg
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

from omnigraph_assets.names import Names


def load_job(names: Names, load: dg.AssetsDefinition) -> UnresolvedAssetJobDefinition:
    """The load of one branch."""
    return dg.define_asset_job(
        names.named("load_job"),
        selection=dg.AssetSelection.assets(*load.keys),
        description="Load the files that wait for a branch, and publish them together.",
    )

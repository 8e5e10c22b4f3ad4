"""Jobs of whole assets, and of checks."""

from collections.abc import Iterable
from typing import Any

import dagster as dg

from omnigraph_assets.names import Names


def load_job(names: Names, load: dg.AssetsDefinition) -> Any:
    """The load of one branch."""
    return dg.define_asset_job(
        names.named("load_job"),
        # Its own checks alone: those of what is published have a job of theirs.
        selection=dg.AssetSelection.assets(*load.keys).without_checks()
        | dg.AssetSelection.checks(*load.check_keys),
        description="Load the files that wait for a branch, and publish them together.",
    )


def enrich_jobs(names: Names, derived: Iterable[dg.AssetsDefinition]) -> list[Any]:
    """A job for each group of derived assets, for those who do not wait for automation."""
    return [
        dg.define_asset_job(
            f"{assets.node_def.name}_job", selection=dg.AssetSelection.assets(*assets.keys)
        )
        for assets in derived
    ]


def check_job(names: Names, checks: Iterable[dg.AssetChecksDefinition]) -> Any:
    """All checks of what is published."""
    return dg.define_asset_job(
        names.named("checks_job"),
        selection=dg.AssetSelection.checks(*checks),
        description="Check that what is published is whole.",
    )

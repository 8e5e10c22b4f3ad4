"""Jobs of whole assets, and of checks."""

from collections.abc import Iterable
from typing import Any

import dagster as dg

from omnigraph_assets.assets.maintenance import CLEANUP, COMPACTION
from omnigraph_assets.instance import PARTITION
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


def derived_job(names: Names, derived: Iterable[dg.AssetsDefinition]) -> Any:
    """The job of all derived assets; automation selects those of the types that changed."""
    return dg.define_asset_job(
        names.named("derived_job"),
        selection=dg.AssetSelection.assets(*(key for assets in derived for key in assets.keys)),
        description="Bring embeddings, indexes and topology of a branch up to date.",
    )


def enrich_jobs(derived: Iterable[dg.AssetsDefinition]) -> list[Any]:
    """A job for each group of derived assets, to run one by hand."""
    return [
        dg.define_asset_job(
            f"{assets.node_def.name}_job", selection=dg.AssetSelection.assets(*assets.keys)
        )
        for assets in derived
    ]


def maintenance_jobs(names: Names) -> dict[str, Any]:
    """A job for each asset of maintenance, by its name."""
    return {
        what: dg.define_asset_job(
            names.named(f"{what}_job"), selection=dg.AssetSelection.assets(names.key(what))
        )
        for what in (COMPACTION, CLEANUP)
    }


def check_job(names: Names, checks: Iterable[dg.AssetChecksDefinition]) -> Any:
    """All checks of what is published on a branch.

    Dagster gives a job the partitions of its assets, and this one has checks alone: its runs name
    their branch with the tag of partitions.
    """
    return dg.define_asset_job(
        names.named("checks_job"),
        selection=dg.AssetSelection.checks(*checks),
        description=f"Check what is published on the branch that the tag `{PARTITION}` names.",
    )

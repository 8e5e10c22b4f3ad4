"""Checks of what is published: that the graph is whole, and that branches can be merged."""

import json
from collections.abc import Iterator

import dagster as dg

from omnigraph_assets.branch_jobs import MERGEABLE
from omnigraph_assets.config import GraphConfig
from omnigraph_assets.names import Names
from omnigraph_assets.told import failures

_LISTED = 20


def build_checks(config: GraphConfig) -> list[dg.AssetChecksDefinition]:
    """The checks of a graph's manifest."""
    names = Names(config.name)

    @dg.asset_check(
        asset=names.manifest,
        name="integrity",
        description="Every branch and tag is whole: what the catalogs say is there.",
    )
    def integrity() -> dg.AssetCheckResult:
        with failures(), config.open() as graph:
            report = graph.verify()
        findings = [finding.render() for finding in report.findings[:_LISTED]]
        return dg.AssetCheckResult(
            passed=report.is_sound,
            metadata={"findings": len(report.findings), "listed": dg.MetadataValue.json(findings)},
        )

    @dg.multi_asset_check(
        name=names.named(MERGEABLE),
        specs=[
            dg.AssetCheckSpec(
                MERGEABLE,
                asset=names.manifest,
                description="Branches can be merged into main; a merge tells of its own.",
            )
        ],
    )
    def mergeable() -> Iterator[dg.AssetCheckResult]:
        with failures(), config.open() as graph:
            branches = [name for name in graph.branch_list() if name != "main"]
            found = {name: graph.branch_merge(name, dry_run=True).conflicts for name in branches}
        told = {name: [c.to_json() for c in some[:_LISTED]] for name, some in found.items() if some}
        yield dg.AssetCheckResult(
            asset_key=names.manifest,
            check_name=MERGEABLE,
            passed=not told,
            severity=dg.AssetCheckSeverity.WARN,
            metadata={
                "branches": len(branches),
                "conflicts": dg.MetadataValue.json(json.loads(json.dumps(told, default=str))),
            },
        )

    return [integrity, mergeable]

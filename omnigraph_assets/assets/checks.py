"""Checks of what is published on a branch: it is whole, and it can be merged into main.

Evaluations belong to a partition: a branch that passes hides no failure of another one.
"""

import dagster as dg

from omnigraph_assets.config import GraphConfig
from omnigraph_assets.instance import PARTITION
from omnigraph_assets.jobs.branches import MERGEABLE
from omnigraph_assets.metadata import conflict_metadata, failures, spark_metadata
from omnigraph_assets.names import MAIN, Names
from omnigraph_assets.resources.graph import open_graph

_LISTED = 20


def build_checks(config: GraphConfig) -> list[dg.AssetChecksDefinition]:
    """The checks of a graph's manifest."""
    names = Names(config.name)

    @dg.asset_check(
        asset=names.manifest,
        name="integrity",
        description="Everything that the catalog of the branch names is there.",
        partitions_def=names.branches,
        required_resource_keys=names.resources,
    )
    def integrity(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        with failures(), open_graph(context, config, needs_spark=False) as graph:
            report = graph.verify(_branch(context))
        findings = [finding.render() for finding in report.findings[:_LISTED]]
        return dg.AssetCheckResult(
            passed=report.is_sound,
            metadata={"findings": len(report.findings), "listed": dg.MetadataValue.json(findings)},
        )

    @dg.asset_check(
        asset=names.manifest,
        name=MERGEABLE,
        description="The branch can be merged into main; a merge reports its own conflicts here.",
        partitions_def=names.branches,
        required_resource_keys=names.resources,
    )
    def mergeable(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        branch = _branch(context)
        conflicts, jobs = [], None
        if branch != MAIN:
            with failures(), open_graph(context, config) as graph:
                found = graph.branch_merge(branch, dry_run=True, engine=config.engine)
            conflicts = [conflict.to_json() for conflict in found.conflicts]
            jobs = found.spark
        return dg.AssetCheckResult(
            passed=not conflicts,
            severity=dg.AssetCheckSeverity.WARN,
            metadata={**conflict_metadata(conflicts, branch, MAIN), **spark_metadata(jobs)},
        )

    return [integrity, mergeable]


def _branch(context: dg.AssetCheckExecutionContext) -> str:
    """
    Raises:
        dg.Failure: the run names no branch.
    """
    if not context.has_partition_key:
        raise dg.Failure(
            f"the run checks no branch: give it the tag `{PARTITION}` with the name of one",
            allow_retries=False,
        )
    branch: str = context.partition_key
    return branch

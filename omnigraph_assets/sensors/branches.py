"""Partitions follow branches: each branch of the graph is one partition of its assets."""

from collections.abc import Collection
from typing import Any

import dagster as dg

from omnigraph_assets.names import Names


def known_branches(instance: dg.DagsterInstance, names: Names) -> set[str]:
    """The branches that are partitions."""
    return set(instance.get_dynamic_partitions(names.branches.name or ""))


def partition_requests(
    instance: dg.DagsterInstance, names: Names, branches: Collection[str]
) -> list[Any]:
    """Add a partition for each new branch, and remove those of deleted ones."""
    known = known_branches(instance, names)
    requests: list[Any] = []
    if new := sorted(set(branches) - known):
        requests.append(names.branches.build_add_request(new))
    if gone := sorted(known - set(branches)):
        requests.append(names.branches.build_delete_request(gone))
    return requests

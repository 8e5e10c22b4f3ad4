"""Which tables a merge has to check together: what each side changed comes in, table keys go out.

Rules that several rows keep hold within each side. They can break only where rows of both sides
meet, or where the source's rows come under rules they were not written by. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from omnigraph_core.schema.catalog import Catalog


@dataclass(frozen=True, slots=True)
class TableSides:
    """Where the rows of a table of the result come from."""

    has_ours: bool
    """The target has changed it since the base."""
    has_theirs: bool
    """The source has, and the target gets that."""
    has_other_rules: bool = False
    """The merged type differs from the one the source's rows were written by."""


def tables_to_check(catalog: Catalog, sides: Mapping[str, TableSides]) -> frozenset[str]:
    """The tables whose changes by the source must be checked against the target.

    Whole groups that hang together by edges: a node that is deleted together with its edges would
    leave orphans behind if only one of the two were looked at.
    """
    meeting = {key for key, side in sides.items() if side.has_theirs and _is_new_company(side)}
    for members in edge_groups(catalog):
        known = [sides[key] for key in members if key in sides]
        if any(side.has_ours for side in known) and any(side.has_theirs for side in known):
            meeting |= members
    return connected(catalog, meeting)


def connected(catalog: Catalog, keys: Iterable[str]) -> frozenset[str]:
    """These tables and all that edges join to them, near or far."""
    wanted = set(keys)
    left = edge_groups(catalog)
    while joined := [members for members in left if members & wanted]:
        left = [members for members in left if not members & wanted]
        wanted.update(*joined)
    return frozenset(wanted)


def edge_groups(catalog: Catalog) -> list[frozenset[str]]:
    """For each edge type its table and those of its ends."""
    return [
        frozenset(
            {
                edge.table_key,
                catalog.nodes[edge.source].table_key,
                catalog.nodes[edge.target].table_key,
            }
        )
        for edge in catalog.edges.values()
    ]


def _is_new_company(side: TableSides) -> bool:
    return side.has_ours or side.has_other_rules

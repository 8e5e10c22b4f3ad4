"""Merges of branches with schemas of their own: the oracle sees all rows in the merged one."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.exec.catalogs import accepted_catalog
from tests.support.examples import seeds
from tests.support.merge_checks import Lens, check_merge
from tests.support.merge_oracle import Rules
from tests.support.merge_worlds import SCHEMA, World
from tests.support.schema_worlds import (
    LATER_VALUES,
    REFORMS,
    SHELF_TO_RACK,
    catalog_of,
    schema_text,
    seen_after,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from omnigraph_core.schema.catalog import Catalog
    from tests.support.merge_oracle import Found, Graph

RULES = [
    Rules(strategy, side) for strategy in ("row", "property") for side in (None, "ours", "theirs")
]


def reform(made: World, branch: str, names: list[str]) -> None:
    """Change the schema of a branch; rows that are in the way are changed first."""
    if "tighten range" in names:
        fix = "query q() { update Part set { length: 50.0 } where length > 50.0 }"
        made.og.mutate(fix, branch=branch)
    is_lossy = any(REFORMS[name].is_lossy for name in names)
    made.og.schema_apply(schema_text(names), branch=branch, allow_data_loss=is_lossy)


def diverge(made: World, branch: str, names: list[str]) -> None:
    made.og.branch_create(branch)
    made.edit(branch, made.random.randint(0, 4))
    if names:
        reform(made, branch, names)
    for _ in range(made.random.randint(0, 2)):
        made.retouch(branch, LATER_VALUES)
    if made.random.random() < 0.3:
        made.optimize(branch)


def lost_notes(
    done: dict[str, list[str]], base: Graph, ours: Graph, theirs: Graph
) -> Iterator[Found]:
    """Values written to the property that the other side has dropped."""
    before = base.get("node:Part", {})
    for side, graph, other in (("ours", ours, "theirs"), ("theirs", theirs, "ours")):
        if "drop" in done[other] and "drop" not in done[side]:
            written = (
                row["_row_note"] != before.get(id, {}).get("_row_note", "null")
                for id, row in graph.get("node:Part", {}).items()
                if row["_row_note"] != "null"
            )
            if any(written):
                yield "node:Part", None, "schema_conflict"


def shape(catalog: Catalog) -> dict[str, dict[str, str]]:
    types = (*catalog.nodes.values(), *catalog.edges.values())
    return {
        type.table_key: {name: str(item.type) for name, item in sorted(type.properties.items())}
        for type in types
    }


@pytest.mark.parametrize("seed", seeds(200, 2))
def test_branches_with_schemas_of_their_own(tmp_path: Path, seed: int) -> None:
    made = World(Omnigraph.init(str(tmp_path / "graph"), SCHEMA), seed)
    made.fill("main")
    wanted: dict[str, list[str]] = {"ours": [], "theirs": []}
    for name in REFORMS:
        ways = [("ours",), ("theirs",), ("ours", "theirs"), *[()] * (4 if name == "drop" else 1)]
        for side in made.random.choice(ways):
            wanted[side].append(name)
    for side, names in wanted.items():
        diverge(made, side, names)
    ours, theirs = wanted.values()
    union = [name for name in REFORMS if name in (*ours, *theirs)]
    lens = Lens(
        catalog=catalog_of(union),
        base=partial(seen_after, names=union),
        ours=partial(seen_after, names=[name for name in union if name not in ours]),
        theirs=partial(seen_after, names=[name for name in union if name not in theirs]),
        keys=SHELF_TO_RACK if "rename type" in union else {},
        lost=partial(lost_notes, wanted),
    )
    for number, rules in enumerate(RULES):
        copy = f"ours-{number}"
        made.og.branch_create(copy, source="ours")
        merged = check_merge(made.og, "theirs", copy, rules, lens)
        if merged.is_clean:
            accepted = accepted_catalog(made.og.snapshot(copy).schema)
            assert shape(accepted) == shape(lens.catalog)

"""Random graphs kept twice: stored, and as the oracle has them; each with a history of its own.

`World` stores a random graph and changes it step by step: indexes, more rows, deletions, updates,
compaction, a branch with changes of its own. `states` yields what there is to read after each step.
Everything follows from a seed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.values import to_json
from tests.support.read_contents import SCHEMA, Contents, catalog, random_contents, random_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from omnigraph_core.manifest.snapshot import Snapshot
    from omnigraph_core.schema.catalog import EdgeType, NodeType


@dataclass(frozen=True)
class State:
    """Something to read, and what must be found there."""

    name: str
    target: str | Snapshot
    contents: Contents


@dataclass
class World:
    """A stored graph on its way through a history that follows from the seed."""

    seed: int
    root: Path
    rng: Random = field(init=False)
    graph: Omnigraph = field(init=False)

    def __post_init__(self) -> None:
        self.rng = Random(f"world {self.seed}")
        self.graph = Omnigraph.init(str(self.root / f"world{self.seed}"), SCHEMA, actor="tester")

    def states(self) -> Iterator[State]:
        """Every state once it is there; earlier ones come back as snapshots at the end."""
        contents = Contents((), ())
        past: list[State] = []
        for name, change in self._steps():
            contents = change(contents)
            past.append(State(f"as it was after {name}", self.graph.snapshot(), contents))
            yield State(name, "main", contents)
        self.graph.branch_create("draft", source="main")
        on_branch = self._deleted(self._extended(contents, "draft"), "draft")
        yield State("branch", "draft", on_branch)
        yield State("beside a branch", "main", contents)
        yield from past[:-1]

    def _steps(self) -> tuple[tuple[str, Callable[[Contents], Contents]], ...]:
        return (
            ("load", self._loaded),
            ("indexes", self._indexed),
            ("more rows", lambda contents: self._extended(contents, "main")),
            ("deletions", lambda contents: self._deleted(contents, "main")),
            ("updates", self._updated),
            ("compaction", self._compacted),
            ("replacement", self._replaced),
        )

    def _loaded(self, contents: Contents) -> Contents:
        contents = random_contents(self.rng)
        self.graph.load(contents.jsonl())
        return contents

    def _indexed(self, contents: Contents) -> Contents:
        self.graph.ensure_indices()
        return contents

    def _extended(self, contents: Contents, branch: str) -> Contents:
        added = random_contents(self.rng, contents)
        self.graph.load(added.jsonl(), branch=branch, mode="merge")
        return contents.replaced((*added.all_nodes(), *added.all_edges()))

    def _deleted(self, contents: Contents, branch: str) -> Contents:
        for type_name in ("Part", "Needs", self.rng.choice(("Bin", "Note", "Holds"))):
            ids = [entity.id for entity in contents.of(type_name) if self.rng.random() < 0.12]
            if ids:
                query = f"query q($ids: [String]) {{ delete {type_name} where id in $ids }}"
                self.graph.mutate(query, {"ids": ids}, branch=branch)
                contents = contents.without(type_name, ids)
        return contents

    def _updated(self, contents: Contents) -> Contents:
        """Some values of some parts and edges are others."""
        for type_name, name in (("Part", "small"), ("Part", "body"), ("Needs", "amount")):
            type = _type_of(type_name).properties[name].type
            stored = contents.of(type_name)
            chosen = [entity for entity in stored if self.rng.random() < 0.3]
            value = random_value(self.rng, type, name) if self.rng.random() < 0.7 else None
            query = f"""query q($ids: [String], $value: {type.scalar}?) {{
              update {type_name} set {{ {name}: $value }} where id in $ids
            }}"""
            given = {"ids": [entity.id for entity in chosen], "value": to_json(value)}
            self.graph.mutate(query, given)
            contents = contents.replaced(
                replace(entity, properties={**entity.properties, name: value}) for entity in chosen
            )
        return contents

    def _replaced(self, contents: Contents) -> Contents:
        """All edges of a type are others."""
        added = random_contents(self.rng, contents).edges["Near"]
        added = [edge for edge in added if {edge.src, edge.dst} <= set(contents.nodes["Bin"])]
        if not added:
            return contents
        self.graph.load(Contents((), added).jsonl(), mode="overwrite")
        others = [edge for edge in contents.all_edges() if edge.type != "Near"]
        return Contents(contents.all_nodes(), [*others, *added])

    def _compacted(self, contents: Contents) -> Contents:
        self.graph.optimize()
        return contents


def _type_of(name: str) -> NodeType | EdgeType:
    return catalog().nodes[name] if name in catalog().nodes else catalog().edges[name]

"""Our engine: the queries of `queries.gq`, asked of one snapshot with warm caches."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.read.data import SCHEMA
from omnigraph_core.engine.omnigraph import Omnigraph

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.read.data import Case, Graph
    from benchmarks.read.operations import Ask, Rows

_QUERIES: Final = (Path(__file__).parent / "queries.gq").read_text()
_PARAMETERS: Final = {
    "lookup": ("start",),
    "lookups": ("many",),
    "filter_count": ("age", "city"),
    "filter_top": ("age", "city"),
    "hop_1": ("start",),
    "hop_2": ("start",),
    "hop_3": ("start",),
    "hop_2_counts": ("many",),
    "reachable": ("start",),
    "triangles": (),
    "without_job": (),
    "edges_by_city": (),
    "age_by_city": (),
    "vector_exact": ("vector",),
    "vector_hop_2": ("start", "vector"),
    "bm25_top": ("words",),
    "hybrid_top": ("vector", "words"),
    "nothing": ("start",),
}


class Ours:
    def __init__(self, graph: Graph, directory: Path) -> None:
        if not directory.exists():
            made = Omnigraph.init(str(directory), SCHEMA)
            made.load(graph.people, type="Person", mode="append")
            made.load(graph.companies, type="Company", mode="append")
            made.load(graph.knows, type="Knows", mode="append")
            made.load(graph.works_at, type="WorksAt", mode="append")
            made.ensure_indices()
        self._graph = Omnigraph.open(str(directory))
        self._snapshot = self._graph.snapshot()

    @property
    def asks(self) -> Mapping[str, Ask]:
        named = {name: self._ask(name, used) for name, used in _PARAMETERS.items()}
        # The engine itself chooses between the index and all vectors.
        return {**named, "vector_index": named["vector_exact"]}

    def rows(self, answer: Any) -> Rows:
        return [tuple(row.values()) for row in answer.to_pylist()]

    def _ask(self, name: str, used: tuple[str, ...]) -> Ask:
        def ask(case: Case) -> Any:
            params = {key: getattr(case, key) for key in used}
            return self._graph.query(self._snapshot, _QUERIES, name, params)

        return ask

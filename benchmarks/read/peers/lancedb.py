"""LanceDB: tables with indexes on keys, ends, words and vectors; the caller follows the edges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import lancedb
import numpy as np

from benchmarks.read.peers.fusion import fused

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from benchmarks.read.data import Case, Graph
    from benchmarks.read.operations import Ask, Rows

_PROBES: Final = 20
_ALL: Final = 1_000_000


class LanceDB:
    def __init__(self, graph: Graph, directory: Path) -> None:
        is_new = not directory.exists()
        self._database = lancedb.connect(str(directory))
        if is_new:
            self._fill(graph)
        self._people = self._database.open_table("people")
        self._knows = self._database.open_table("knows")

    @property
    def asks(self) -> Mapping[str, Ask]:
        return {
            "lookup": self._lookup,
            "lookups": self._lookups,
            "filter_count": lambda case: [(self._people.count_rows(_filter(case)),)],
            "filter_top": self._filter_top,
            "hop_1": lambda case: self._hops(case, 1),
            "hop_2": lambda case: self._hops(case, 2),
            "hop_3": lambda case: self._hops(case, 3),
            "vector_exact": self._vector_exact,
            "vector_index": self._vector_index,
            "vector_hop_2": self._vector_hop_2,
            "bm25_top": self._bm25_top,
            "hybrid_top": lambda case: fused(self._vector_index(case), self._bm25_top(case)),
        }

    def rows(self, answer: Any) -> Rows:
        return [tuple(row) for row in answer]

    def _fill(self, graph: Graph) -> None:
        people = self._database.create_table("people", graph.people)
        people.create_scalar_index("code")
        people.create_scalar_index("age")
        people.create_scalar_index("city", index_type="BITMAP")
        people.create_fts_index("bio", stem=False, remove_stop_words=False)
        people.create_index(
            "cosine",
            num_partitions=max(len(graph.people) // 400, 1),
            vector_column_name="vector",
            index_type="IVF_FLAT",
        )
        knows = self._database.create_table("knows", graph.knows.sort_by("src"))
        knows.create_scalar_index("src")

    def _select(self, where: str, columns: list[str], limit: int = _ALL) -> list[tuple[Any, ...]]:
        found = self._people.search().where(where).select(columns).limit(limit).to_arrow()
        return list(zip(*(found[name].to_pylist() for name in columns), strict=True))

    def _lookup(self, case: Case) -> Any:
        return self._select(f"code = '{case.start}'", ["name", "age"])

    def _lookups(self, case: Case) -> Any:
        return self._select(_within("code", case.many), ["name", "age"])

    def _filter_top(self, case: Case) -> Any:
        found = self._select(_filter(case), ["name", "age"])
        return sorted(found, key=lambda row: (-row[1], row[0]))[:20]

    def _reached(self, case: Case, count: int) -> list[str]:
        front = [case.start]
        for _ in range(count):
            search = self._knows.search().where(_within("src", front)).select(["dst"])
            front = search.limit(_ALL).to_arrow()["dst"].unique().to_pylist()
        return front

    def _hops(self, case: Case, count: int) -> Any:
        return self._select(_within("code", self._reached(case, count)[:100]), ["name"])

    def _near(self, case: Case) -> Any:
        return self._people.search(np.asarray(case.vector, np.float32)).distance_type("cosine")

    def _vector_exact(self, case: Case) -> Any:
        return _codes(self._near(case).bypass_vector_index())

    def _vector_index(self, case: Case) -> Any:
        return _codes(self._near(case).nprobes(_PROBES))

    def _vector_hop_2(self, case: Case) -> Any:
        near = self._near(case).where(_within("code", self._reached(case, 2)), prefilter=True)
        return _codes(near.bypass_vector_index())

    def _bm25_top(self, case: Case) -> Any:
        return _codes(self._people.search(case.words, query_type="fts"), "_score")


def _filter(case: Case) -> str:
    return f"age > {case.age} AND city = '{case.city}'"


def _within(column: str, values: Iterable[str]) -> str:
    return f"{column} IN ({', '.join(map(repr, values))})"


def _codes(search: Any, score: str = "_distance") -> list[tuple[str]]:
    found = search.select(["code", score]).limit(10).to_arrow()
    return [(code,) for code in found["code"].to_pylist()]

"""lance-graph: Cypher over Arrow tables held in memory; it keeps no index and no adjacency."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from lance_graph import CypherQuery, DistanceMetric, GraphConfig, VectorSearch

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from benchmarks.read.data import Case, Graph
    from benchmarks.read.operations import Ask, Rows

_STATEMENTS: Final = {
    "lookup": "MATCH (p:Person) WHERE p.code = {start} RETURN p.name, p.age",
    "lookups": "MATCH (p:Person) WHERE p.code IN {many} RETURN p.name, p.age",
    "filter_count": "MATCH (p:Person) WHERE p.age > {age} AND p.city = {city} "
    "RETURN count(p.code) AS n",
    "filter_top": "MATCH (p:Person) WHERE p.age > {age} AND p.city = {city} "
    "RETURN p.name, p.age ORDER BY p.age DESC, p.name LIMIT 20",
    "hop_1": "MATCH (p:Person)-[:Knows]->(a:Person) WHERE p.code = {start} "
    "RETURN DISTINCT a.name LIMIT 100",
    "hop_2": "MATCH (p:Person)-[:Knows]->(a:Person)-[:Knows]->(b:Person) WHERE p.code = {start} "
    "RETURN DISTINCT b.name LIMIT 100",
    "hop_3": "MATCH (p:Person)-[:Knows]->(a:Person)-[:Knows]->(b:Person)-[:Knows]->(c:Person) "
    "WHERE p.code = {start} RETURN DISTINCT c.name LIMIT 100",
    "edges_by_city": "MATCH (p:Person)-[:Knows]->(f:Person) RETURN p.city, count(f.code) AS n",
    "age_by_city": "MATCH (p:Person)-[:Knows]->(f:Person) RETURN p.city, avg(f.age) AS mean",
}
_TWO_HOPS: Final = (
    "MATCH (p:Person)-[:Knows]->(a:Person)-[:Knows]->(b:Person) WHERE p.code = {start} "
    "RETURN DISTINCT b.code, b.vector"
)


class LanceGraph:
    def __init__(self, graph: Graph, _directory: Path) -> None:
        self._config = (
            GraphConfig.builder()
            .with_node_label("Person", "code")
            .with_node_label("Company", "name")
            .with_relationship("Knows", "src", "dst")
            .with_relationship("WorksAt", "src", "dst")
            .build()
        )
        self._people = graph.people.select(["code", "vector"])
        self._tables = {
            "Person": graph.people,
            "Company": graph.companies,
            "Knows": graph.knows,
            "WorksAt": graph.works_at,
        }

    @property
    def asks(self) -> Mapping[str, Ask]:
        asks = {name: self._ask(text) for name, text in _STATEMENTS.items()}
        return {
            **asks,
            "vector_exact": lambda case: _near("vector", case).search(self._people),
            "vector_hop_2": self._vector_hop_2,
        }

    def rows(self, answer: Any) -> Rows:
        return list(zip(*(column.to_pylist() for column in answer.columns[:2]), strict=True))

    def _ask(self, text: str) -> Ask:
        return lambda case: self._query(text, case).execute(self._tables)

    def _vector_hop_2(self, case: Case) -> Any:
        near = _near("b.vector", case)
        return self._query(_TWO_HOPS, case).execute_with_vector_rerank(self._tables, near)

    def _query(self, text: str, case: Case) -> Any:
        """It has parameters, but not in every place."""
        filled = text.format(
            start=json.dumps(case.start),
            many=json.dumps(case.many),
            age=case.age,
            city=json.dumps(case.city),
        )
        return CypherQuery(filled).with_config(self._config)


def _near(column: str, case: Case) -> Any:
    search = VectorSearch(column).query_vector(list(case.vector))
    return search.metric(DistanceMetric.Cosine).top_k(10)

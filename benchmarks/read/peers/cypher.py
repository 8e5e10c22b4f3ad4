"""Kuzu and Ladybug speak one Cypher: the same statements, prepared once, for both."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from benchmarks.read.data import Case
    from benchmarks.read.operations import Ask, Rows

_TABLES: Final = (
    "CREATE NODE TABLE Person(code STRING PRIMARY KEY, name STRING, age INT32, city STRING, "
    "bio STRING, vector FLOAT[128])",
    "CREATE NODE TABLE Company(name STRING PRIMARY KEY, city STRING)",
    "CREATE REL TABLE Knows(FROM Person TO Person, since DATE)",
    "CREATE REL TABLE WorksAt(FROM Person TO Company)",
)
_FILES: Final = {
    "Person": "people",
    "Company": "companies",
    "Knows": "knows",
    "WorksAt": "works_at",
}
_START: Final = "MATCH (p:Person {code: $start})"
STATEMENTS: Final = {
    "lookup": f"{_START} RETURN p.name, p.age",
    "lookups": "UNWIND $many AS c MATCH (p:Person {code: c}) RETURN p.name, p.age",
    "filter_count": "MATCH (p:Person) WHERE p.age > $age AND p.city = $city RETURN count(*)",
    "filter_top": "MATCH (p:Person) WHERE p.age > $age AND p.city = $city "
    "RETURN p.name, p.age ORDER BY p.age DESC, p.name LIMIT 20",
    "hop_1": f"{_START}-[:Knows]->(a:Person) RETURN DISTINCT a.name LIMIT 100",
    "hop_2": f"{_START}-[:Knows]->(:Person)-[:Knows]->(b:Person) RETURN DISTINCT b.name LIMIT 100",
    "hop_3": f"{_START}-[:Knows]->(:Person)-[:Knows]->(:Person)-[:Knows]->(c:Person) "
    "RETURN DISTINCT c.name LIMIT 100",
    "hop_2_counts": "UNWIND $many AS c MATCH (p:Person {code: c})-[:Knows]->(:Person)"
    "-[:Knows]->(b:Person) RETURN p.code, count(DISTINCT b.code)",
    # One path to each: counting them needs no distinct.
    "reachable": f"{_START}-[:Knows* SHORTEST 1..4]->(b:Person) "
    "WHERE b.code <> $start RETURN count(*)",
    "triangles": "MATCH (a:Person)-[:Knows]->(b:Person)-[:Knows]->(c:Person), "
    "(a)-[:Knows]->(c) RETURN count(*)",
    "without_job": "MATCH (p:Person) WHERE NOT EXISTS { MATCH (p)-[:WorksAt]->(:Company) } "
    "RETURN count(*)",
    "edges_by_city": "MATCH (p:Person)-[:Knows]->(:Person) RETURN p.city, count(*)",
    "age_by_city": "MATCH (p:Person)-[:Knows]->(f:Person) RETURN p.city, avg(f.age)",
    "vector_exact": "MATCH (p:Person) RETURN p.code "
    "ORDER BY array_cosine_similarity(p.vector, CAST($vector, 'FLOAT[128]')) DESC LIMIT 10",
    "vector_hop_2": f"{_START}-[:Knows]->(:Person)-[:Knows]->(b:Person) WITH DISTINCT b "
    "RETURN b.code "
    "ORDER BY array_cosine_similarity(b.vector, CAST($vector, 'FLOAT[128]')) DESC LIMIT 10",
}
TEXT_INDEX: Final = (
    "LOAD fts",
    "CALL CREATE_FTS_INDEX('Person', 'bio_words', ['bio'], stemmer := 'none')",
)
VECTOR_INDEX: Final = (
    "LOAD vector",
    "CALL CREATE_VECTOR_INDEX('Person', 'vector_near', 'vector', metric := 'cosine')",
)
SEARCHES: Final = {
    "vector_index": "CALL QUERY_VECTOR_INDEX('Person', 'vector_near', "
    "$vector, 10) RETURN node.code ORDER BY distance",
    "bm25_top": "CALL QUERY_FTS_INDEX('Person', 'bio_words', $words, top := 10) "
    "RETURN node.code ORDER BY score DESC LIMIT 10",
}
_USED: Final = ("start", "many", "age", "city", "vector", "words")


class Cypher:
    """A database made by one of the two packages."""

    def __init__(self, package: Any, directory: Path, statements: Mapping[str, str]) -> None:
        is_new = not directory.exists()
        directory.mkdir(parents=True, exist_ok=True)
        self._connection = package.Connection(package.Database(str(directory / "graph.db")))
        if is_new:
            self._fill(directory.parent)
        self._statements = statements

    @property
    def asks(self) -> Mapping[str, Ask]:
        return {name: self._ask(text) for name, text in self._statements.items()}

    def rows(self, answer: Any) -> Rows:
        return [tuple(row) for row in answer]

    def run(self, statement: str) -> None:
        self._connection.execute(statement)

    def _fill(self, data: Path) -> None:
        for statement in _TABLES:
            self.run(statement)
        for table, file in _FILES.items():
            self.run(f"COPY {table} FROM '{data / file}.parquet'")

    def _ask(self, text: str) -> Ask:
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
            prepared = self._connection.prepare(text)  # advised against, but faster
        used = [key for key in _USED if f"${key}" in text]

        def ask(case: Case) -> Any:
            params = {key: _plain(getattr(case, key)) for key in used}
            return self._connection.execute(prepared, params).get_all()

        return ask


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value

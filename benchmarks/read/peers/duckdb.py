"""DuckDB: tables, indexes on keys and on both ends of edges, SQL; no extension."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import duckdb

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from benchmarks.read.data import Case, Graph
    from benchmarks.read.operations import Ask, Rows

_TABLES: Final = (
    "CREATE TABLE person(code VARCHAR PRIMARY KEY, name VARCHAR, age INT, city VARCHAR, "
    "bio VARCHAR, vector FLOAT[128])",
    "CREATE TABLE company(name VARCHAR PRIMARY KEY, city VARCHAR)",
    "CREATE TABLE knows(src VARCHAR, dst VARCHAR, since DATE)",
    "CREATE TABLE works_at(src VARCHAR, dst VARCHAR)",
    "INSERT INTO person SELECT * FROM '{data}/people.parquet'",
    "INSERT INTO company SELECT * FROM '{data}/companies.parquet'",
    "INSERT INTO knows SELECT * FROM '{data}/knows.parquet' ORDER BY src, dst",
    "INSERT INTO works_at SELECT * FROM '{data}/works_at.parquet' ORDER BY src, dst",
    "CREATE INDEX knows_src ON knows(src)",
    "CREATE INDEX knows_dst ON knows(dst)",
    "CREATE INDEX works_at_src ON works_at(src)",
    "ANALYZE",
)
_TWO: Final = "knows k JOIN knows l ON l.src = k.dst"
_STATEMENTS: Final = {
    "lookup": "SELECT name, age FROM person WHERE code = $start",
    "lookups": "SELECT name, age FROM person WHERE code IN (SELECT unnest($many::VARCHAR[]))",
    "filter_count": "SELECT count(*) FROM person WHERE age > $age AND city = $city",
    "filter_top": "SELECT name, age FROM person WHERE age > $age AND city = $city "
    "ORDER BY age DESC, name LIMIT 20",
    "hop_1": "SELECT DISTINCT p.name FROM knows k JOIN person p ON p.code = k.dst "
    "WHERE k.src = $start LIMIT 100",
    "hop_2": f"SELECT DISTINCT p.name FROM {_TWO} JOIN person p ON p.code = l.dst "
    "WHERE k.src = $start LIMIT 100",
    "hop_3": f"SELECT DISTINCT p.name FROM {_TWO} JOIN knows m ON m.src = l.dst "
    "JOIN person p ON p.code = m.dst WHERE k.src = $start LIMIT 100",
    "hop_2_counts": f"SELECT k.src, count(DISTINCT l.dst) FROM {_TWO} "
    "WHERE k.src IN (SELECT unnest($many::VARCHAR[])) GROUP BY k.src",
    "reachable": "WITH RECURSIVE reached(code, depth) AS (SELECT $start, 0 UNION "
    "SELECT k.dst, r.depth + 1 FROM reached r JOIN knows k ON k.src = r.code WHERE r.depth < 4) "
    "SELECT count(DISTINCT code) FROM reached WHERE code <> $start",
    "triangles": f"SELECT count(*) FROM {_TWO} JOIN knows m ON m.src = k.src AND m.dst = l.dst",
    "without_job": "SELECT count(*) FROM person p "
    "WHERE NOT EXISTS (SELECT 1 FROM works_at w WHERE w.src = p.code)",
    "edges_by_city": "SELECT p.city, count(*) FROM knows k JOIN person p ON p.code = k.src "
    "GROUP BY p.city",
    "age_by_city": "SELECT p.city, avg(f.age) FROM knows k JOIN person p ON p.code = k.src "
    "JOIN person f ON f.code = k.dst GROUP BY p.city",
    "vector_exact": "SELECT code FROM person "
    "ORDER BY array_cosine_distance(vector, $vector::FLOAT[128]) LIMIT 10",
    "vector_hop_2": f"SELECT code FROM person WHERE code IN (SELECT l.dst FROM {_TWO} "
    "WHERE k.src = $start) ORDER BY array_cosine_distance(vector, $vector::FLOAT[128]) LIMIT 10",
}
_USED: Final = ("start", "many", "age", "city", "vector", "words")


class DuckDB:
    def __init__(self, _graph: Graph, directory: Path) -> None:
        is_new = not directory.exists()
        directory.mkdir(parents=True, exist_ok=True)
        self._connection = duckdb.connect(str(directory / "graph.duckdb"))
        self._connection.execute("SET enable_progress_bar = false")
        if is_new:
            for statement in _TABLES:
                self._connection.execute(statement.format(data=directory.parent))

    @property
    def asks(self) -> Mapping[str, Ask]:
        return {name: self._ask(text) for name, text in _STATEMENTS.items()}

    def rows(self, answer: Any) -> Rows:
        return [tuple(row) for row in answer]

    def _ask(self, text: str) -> Ask:
        used = [key for key in _USED if f"${key}" in text]

        def ask(case: Case) -> Any:
            params = {key: _plain(getattr(case, key)) for key in used}
            return self._connection.execute(text, params).fetchall()

        return ask


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value

"""What a process keeps of versions nobody asks for: bounded, however many commits there are."""

from __future__ import annotations

import gc
from collections import Counter
from typing import TYPE_CHECKING

import pyarrow as pa
from lance import LanceDataset

from omnigraph_core.engine import reads
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.history import tables
from omnigraph_core.topology.links import Links
from omnigraph_core.topology.memory import ByteCache
from omnigraph_core.topology.row_numbers import RowNumbers

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

SCHEMA = "node Person { code: String @key  age: I32 }\nedge Knows: Person -> Person"
UPDATE = "query m($c: String, $a: I32) { update Person set { age: $a } where code = $c }"
LOOKUP = "query q($c: String) { match { $p: Person {code: $c} } return { $p.age } }"
HOP = "query q($c: String) { match { $p: Person {code: $c}  $p knows $a } return { $a.age } }"
COMMITS = 48
KINDS = (LanceDataset, RowNumbers, Links)


def test_old_versions_are_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = ByteCache(2**20)
    monkeypatch.setattr(reads, "shared_cache", lambda: cache)
    monkeypatch.setattr(tables, "MOST_TABLE_BYTES", 2**16)
    graph = Omnigraph.init(str(tmp_path / "graph"), SCHEMA)
    codes = [f"p{number}" for number in range(300)]
    people = {"code": codes, "age": pa.array([1] * 300, pa.int32())}
    graph.load(pa.table(people), type="Person", mode="append")
    knows = {"from": codes, "to": [*codes[1:], codes[0]]}
    graph.load(pa.table(knows), type="edge:Knows", mode="append")
    before = _living()
    for age in range(COMMITS):
        changed = {"c": codes[7 * age % 300], "a": age}
        graph.mutate(UPDATE, changed)
        assert graph.query("main", LOOKUP, params={"c": changed["c"]}).to_pylist() == [
            {"p.age": age}
        ]
        friends = graph.query("main", HOP, params={"c": codes[7 * age % 300 - 1]}).to_pylist()
        assert friends == [{"a.age": age}]
        assert cache.held_of_versions <= cache.version_capacity
    more = _living() - before
    assert max(more.values()) <= COMMITS // 3, more
    assert graph._context.tables.nbytes <= 2**16
    graph.close()


def _living() -> Counter[str]:
    gc.collect()
    found = [kind.__name__ for item in gc.get_objects() for kind in KINDS if type(item) is kind]
    return Counter(found)

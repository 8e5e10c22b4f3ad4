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

SCHEMA = "node Person { code: String @key  name: String  age: I32 }\nedge Knows: Person -> Person"
UPDATE = "query m($c: String, $a: I32) { update Person set { age: $a } where code = $c }"
LOOKUP = "query q($c: String) { match { $p: Person {code: $c} } return { $p.age } }"
HOP = "query q($c: String) { match { $p: Person {code: $c}  $p knows $a } return { $a.age } }"
SORTED = "query q() { match { $p: Person } return { $p.name, $p.age } order { $p.name } }"
GROUPED = "query q() { match { $p: Person } return { $p.name, count($p) as n } }"
COMMITS = 48
KINDS = (LanceDataset, RowNumbers, Links)


def test_old_versions_are_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = ByteCache(2**20)
    monkeypatch.setattr(reads, "shared_cache", lambda: cache)
    monkeypatch.setattr(tables, "MOST_TABLE_BYTES", 2**16)
    graph = Omnigraph.init(str(tmp_path / "graph"), SCHEMA)
    codes = [f"p{number}" for number in range(300)]
    people = {
        "code": codes,
        "name": [f"n{n % 7}" for n in range(300)],
        "age": pa.array([1] * 300, pa.int32()),
    }
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
        assert len(graph.query("main", SORTED).to_pylist()) == 300
        assert len(graph.query("main", GROUPED).to_pylist()) == 7
        assert cache.held_of_versions <= cache.version_capacity
    more = _living() - before
    assert max(more.values()) <= COMMITS // 3, more
    # Ranks of two columns: what has the same name is told apart by its id.
    assert _kept_whole(cache) == {"text ranks": 2 * 4, "column codes": 4}
    assert graph._context.tables.nbytes <= 2**16
    graph.close()


def _kept_whole(cache: ByteCache) -> Counter[str]:
    """How many versions have something large of their own, by what it is."""
    kinds = [key[0] for key in cache._entries if isinstance(key, tuple)]
    return Counter(kind for kind in kinds if kind in ("text ranks", "column codes"))


def _living() -> Counter[str]:
    gc.collect()
    found = [kind.__name__ for item in gc.get_objects() for kind in KINDS if type(item) is kind]
    return Counter(found)

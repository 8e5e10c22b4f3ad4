"""`nearest` on 100 000 vectors of 128 numbers: the ten that brute force finds, or nearly all.

The last tenth of the rows came after the index was built.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from omnigraph_core.constants import Constant
from omnigraph_core.engine.indexing import IndexState
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.exec import vectors
from omnigraph_core.topology.memory import ByteCache

if TYPE_CHECKING:
    from pathlib import Path

COUNT, WIDTH, QUERIES = 100_000, 128, 10
SCHEMA = "node Item { sku: I64 @key  shelf: I64  v: Vector(128) @index }"
RANKED = "return { $i.sku as sku } order { nearest($i.v, $v) } limit 10"
QUERY = f"""
query all($v: Vector(128)) {{ match {{ $i: Item }} {RANKED} }}
query one_shelf($v: Vector(128)) {{ match {{ $i: Item {{ shelf: 7 }} }} {RANKED} }}
"""


def made() -> np.ndarray:
    """Vectors around some hundred places, as those of texts are."""
    chance = np.random.default_rng(11)
    centres = chance.standard_normal((200, WIDTH))
    shapes = centres[chance.integers(0, 200, COUNT)] + chance.standard_normal((COUNT, WIDTH))
    return shapes.astype(np.float32)


def rows(shapes: np.ndarray, start: int, end: int) -> pa.Table:
    numbers = pa.array(shapes[start:end].ravel())
    skus = np.arange(start, end)
    return pa.table(
        {
            "sku": skus,
            "shelf": skus % 100,
            "v": pa.FixedSizeListArray.from_arrays(numbers, WIDTH),
        }
    )


@pytest.fixture(scope="module")
def shapes() -> np.ndarray:
    return made()


@pytest.fixture(scope="module")
def og(shapes: np.ndarray, tmp_path_factory: pytest.TempPathFactory) -> Omnigraph:
    og = Omnigraph.init(str(_folder(tmp_path_factory)), SCHEMA)
    indexed = COUNT * 9 // 10
    og.load(rows(shapes, 0, indexed), type="Item")
    og.ensure_indices()
    og.load(rows(shapes, indexed, COUNT), type="Item")
    (report,) = (item for item in og.index_status() if item.column == "v")
    assert (report.state, report.rows - report.covered_rows) == (IndexState.PARTIAL, 10_000)
    return og


def _folder(factory: pytest.TempPathFactory) -> Path:
    return factory.mktemp("recall") / "graph"


@pytest.mark.parametrize("is_exact", [True, False], ids=["in memory", "through the index"])
@pytest.mark.parametrize("name", ["all", "one_shelf"])
def test_recall(
    og: Omnigraph,
    shapes: np.ndarray,
    name: str,
    is_exact: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []
    search = vectors.nearest_rows

    def seen(*given: Any, **named: Any) -> object:
        asked.append(given)
        return search(*given, **named)

    monkeypatch.setattr(vectors, "nearest_rows", seen)
    if not is_exact:
        monkeypatch.setattr(vectors, "EXACT_VECTOR_BYTES", Constant("bytes", 0, ""))
        cache = ByteCache(2**20)  # no column of vectors is kept
        monkeypatch.setattr("omnigraph_core.engine.reads.shared_cache", lambda: cache)
    units = shapes / np.linalg.norm(shapes, axis=1, keepdims=True)
    allowed = np.arange(COUNT) % 100 == 7 if name == "one_shelf" else np.ones(COUNT, np.bool_)
    chance, shares = np.random.default_rng(5), []
    for _ in range(QUERIES):
        query = shapes[chance.integers(COUNT)] + chance.standard_normal(WIDTH) / 2
        near = np.where(allowed, units @ query.astype(np.float32), -np.inf)
        best = set(np.argpartition(-near, 10)[:10].tolist())
        found = og.query("main", QUERY, name, {"v": query.tolist()}).to_pylist()
        shares.append(len(best & {row["sku"] for row in found}) / 10)
    assert np.mean(shares) >= (1.0 if is_exact else 0.98)
    # Of few rows all distances are worked out; an index would look at the wrong ones.
    assert bool(asked) is (not is_exact and name == "all")

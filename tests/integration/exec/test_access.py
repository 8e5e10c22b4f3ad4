"""What `explain` says about finding rows is what the executor does: calls are counted."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pytest

from omnigraph_core.exec.select import selected
from omnigraph_core.ir.compile import compile_one
from omnigraph_core.ir.nodes import NodeScan, QueryIR
from omnigraph_core.plan.access import Access, access_path
from omnigraph_core.schema.arrow import node_schema
from omnigraph_core.schema.build import compile_schema
from omnigraph_core.topology.dense import DenseTable
from tests.support.dense_runs import NOTHING, PLENTY, Runs, stored

if TYPE_CHECKING:
    from collections.abc import Callable

    from omnigraph_core.storage.dataset import Table

CATALOG = compile_schema(
    """
    node Part { name: String @key  size: I32?  about: String? }
    node Pair { left: String  right: I32  @key(left, right) }
    """
)
COUNT: Final = 200
DOINGS: Final = {
    "number_of": Access.LOOKUP,
    "numbers_of": Access.LIST,
    "column": Access.COLUMNS,
    "numpy": Access.COLUMNS,
    "codes": Access.COLUMNS,
    "find_where": Access.PUSHDOWN,
}
"""What a table is asked first, and the path that shows."""


def rows(type_name: str) -> pa.Table:
    numbers = range(COUNT)
    columns: dict[str, list[object]] = {
        "id": [f'["n{i}","{i}"]' if type_name == "Pair" else f"n{i}" for i in numbers],
        "name": [f"n{i}" for i in numbers],
        "size": list(numbers),
        "about": [f"about {i}" for i in numbers],
        "left": [f"n{i}" for i in numbers],
        "right": list(numbers),
    }
    schema = node_schema(CATALOG.nodes[type_name])
    return pa.table({name: columns[name] for name in schema.names}, schema=schema)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Table]:
    root = tmp_path_factory.mktemp("access")
    return {name: stored(root / name, rows(name)) for name in CATALOG.nodes}


@pytest.fixture
def doings(monkeypatch: pytest.MonkeyPatch) -> list[Access]:
    """What tables were asked, in order, each kind of question as the path it belongs to."""
    noted: list[Access] = []

    def noting(name: str, original: Callable[..., object]) -> Callable[..., object]:
        def asked(self: DenseTable, *args: object) -> object:
            noted.append(DOINGS[name])
            return original(self, *args)

        return asked

    for name in DOINGS:
        monkeypatch.setattr(DenseTable, name, noting(name, getattr(DenseTable, name)))
    return noted


@pytest.mark.parametrize("capacity", [PLENTY, NOTHING], ids=["kept", "too large"])
@pytest.mark.parametrize(
    "match",
    [
        "$p: Part",
        '$p: Part {name: "n7"}',
        '$p: Part $p.size > 3 "n7" = $p.id',
        '$p: Part $p.name in ["n7", "n8", "no"]',
        '$p: Part $p.size > 3 $p.id in ["n7", "n8"] $p.name = "n7"',
        "$p: Part $p.size > 3",
        '$p: Part $p.size > 3 $p.about contains "1"',
        '$p: Part $p.name = "n7" or $p.size = 3',
        '$p: Part $p.name != "n7"',
        '$p: Pair {left: "n7", right: 7}',
        '$p: Pair {left: "n7"}',
        "$p: Pair $p.right in [7, 8]",
    ],
)
def test_the_path_is_the_one_taken(
    tables: dict[str, Table], doings: list[Access], match: str, capacity: int
) -> None:
    ir = compile_one(f"query q() {{ match {{ {match} }} return {{ $p }} }}", CATALOG).ir
    assert isinstance(ir, QueryIR)
    scan = ir.pipeline[0]
    assert isinstance(scan, NodeScan)
    node = CATALOG.nodes[scan.type_name]
    runs = Runs(tables[scan.type_name], node, capacity)
    path = access_path(scan.filters, node, runs.dense.fits)
    doings.clear()
    found = selected(runs.run("p"), "p", scan.filters)
    assert len(found)
    assert _path_of(doings) is path.access


def _path_of(doings: list[Access]) -> Access:
    """Rows found by their ids, or by a filter, may be checked on columns afterwards."""
    if not doings:
        return Access.ALL
    told = Counter(doings)
    for access in (Access.PUSHDOWN, Access.LIST, Access.LOOKUP):
        if told[access]:
            return access
    return Access.COLUMNS

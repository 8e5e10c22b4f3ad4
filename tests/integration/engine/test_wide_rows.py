"""Rows that are wide: read, filtered, ordered and searched in portions, and counted beforehand.

Figures that decide on portions are made small, so that little data goes the ways of much.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import BudgetExceeded
from omnigraph_core.exec import project
from omnigraph_core.storage import row_space
from omnigraph_core.storage.dataset import create_table
from omnigraph_core.storage.row_space import fragment_states, iter_addresses, read_fragments
from omnigraph_core.storage.session import open_store
from omnigraph_core.storage.staged import stage_append
from omnigraph_core.storage.translate import storage_error
from omnigraph_core.topology import stored_values
from omnigraph_core.topology.dense import DenseTable
from omnigraph_core.topology.memory import ByteCache
from omnigraph_core.topology.widths import row_bytes

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.storage.dataset import Table

SHORT, WIDE, WIDTH = 1_500, 120, 200_000
MEBIBYTE = 2**20


def text(number: int) -> str:
    if number < SHORT:
        return f"short w{number % 7}"
    return f"w{number % 7} {number:06} " + chr(97 + number % 26) * WIDTH


@pytest.fixture(scope="module")
def articles(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A graph whose first rows are short and later ones wide, in one fragment."""
    place = str(tmp_path_factory.mktemp("wide") / "g")
    og = Omnigraph.init(place, "node Article { name: String @key\n text: String\n n: I64 }\n")
    numbers = range(SHORT + WIDE)
    columns = {
        "name": [f"a{n:06}" for n in numbers],
        "text": [text(n) for n in numbers],
        "n": list(numbers),
    }
    og.load(pa.table(columns), type="Article")
    return place


@pytest.fixture
def small_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_space, "_BATCH_BYTES", MEBIBYTE)
    monkeypatch.setattr(stored_values, "_TAKEN_BYTES", MEBIBYTE)
    monkeypatch.setattr(project, "_PORTION_BYTES", MEBIBYTE)
    monkeypatch.setattr(project, "_NEGLIGIBLE", 1_000)


ASKED = {
    "equal": ('$a.text = "short w3"', "", [n for n in range(SHORT) if n % 7 == 3]),
    "contains": ('$a.text contains "001510"', "", [1510]),
    "prefix": ('$a.text starts_with "w1"', "", [n for n in range(SHORT, 1_620) if n % 7 == 1]),
    "search": ('search($a.text, "w2")', "", [n for n in range(1_620) if n % 7 == 2]),
    "order": ("$a.n >= 1490", "$a.text, ", None),
    "all": ("$a.n >= 0", "", list(range(1_620))),
}


@pytest.mark.usefixtures("small_portions")
@pytest.mark.parametrize("is_kept", [True, False])
@pytest.mark.parametrize(("where", "order", "expected"), ASKED.values(), ids=ASKED)
def test_wide_rows_are_found(
    articles: str,
    monkeypatch: pytest.MonkeyPatch,
    where: str,
    order: str,
    expected: list[int] | None,
    is_kept: bool,
) -> None:
    if not is_kept:
        monkeypatch.setenv("OMNIGRAPH_CACHE_MEMORY", str(16 * MEBIBYTE))
    found = Omnigraph.open(articles).query(
        "main",
        f"query q() {{ match {{ $a: Article  {where} }} return {{ $a.n, $a.text }}"
        f" order {{ {order}$a.n }} }}",
    )
    if expected is None:
        expected = sorted(range(1_490, SHORT + WIDE), key=text)
    assert found.table.column("a.n").to_pylist() == expected
    assert found.table.column("a.text").to_pylist() == [text(n) for n in expected]


@pytest.fixture
def table(tmp_path: Path) -> Table:
    schema = pa.schema([pa.field("id", pa.utf8(), nullable=False), pa.field("text", pa.utf8())])
    numbers = range(SHORT + WIDE)
    rows = pa.table([[f"a{n}" for n in numbers], [text(n) for n in numbers]], schema=schema)
    return stage_append(create_table(open_store(str(tmp_path)), "nodes/a", schema), rows)


@pytest.mark.usefixtures("small_portions")
def test_batches_are_small_where_rows_are_wide(table: Table) -> None:
    batches = list(read_fragments(table, ["text"], [item.id for item in fragment_states(table)]))
    assert max(batch.nbytes for batch in batches) <= 2 * MEBIBYTE
    assert pa.Table.from_batches(batches).column(0).to_pylist() == list(
        map(text, range(SHORT + WIDE))
    )
    found = np.concatenate(list(iter_addresses(table, "`text` LIKE '%w3%'")))
    assert (found.astype(np.int64) % 2**32).tolist() == list(range(3, SHORT + WIDE, 7))


def test_later_rows_count_in_what_a_column_takes(table: Table) -> None:
    total = sum(len(text(n)) for n in range(SHORT + WIDE))
    assert not DenseTable(table, ByteCache(2 * total)).fits("text")
    assert DenseTable(table, ByteCache(8 * total)).fits("text")


@pytest.mark.usefixtures("small_portions")
@pytest.mark.parametrize("room", [2**20, 2**30])
def test_values_that_no_array_can_hold_are_refused(
    table: Table, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    subject = DenseTable(table, ByteCache(room))
    numbers = np.array([1_619, -1, 1, 1_500] * 10, np.int32)
    expected = [None if n < 0 else text(n) for n in numbers.tolist()]
    assert subject.values("text", numbers).to_pylist() == expected
    monkeypatch.setattr(stored_values, "_MOST_BYTES", 3 * MEBIBYTE)
    with pytest.raises(BudgetExceeded, match="values of text"):
        subject.values("text", numbers)


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Omnigraph:
    """One long text, and one long list, beside many edges."""
    og = Omnigraph.init(
        str(tmp_path_factory.mktemp("hub") / "g"),
        "node Bin { name: String @key\n text: String\n l: [String] }\n"
        "node Part { name: String @key }\nedge Holds: Bin -> Part\n",
    )
    names = [f"p{n:04}" for n in range(5_000)]
    og.load(pa.table({"name": ["b"], "text": ["y" * 10**6], "l": [["z" * 1000] * 500]}), type="Bin")
    og.load(pa.table({"name": names}), type="Part")
    og.load(pa.table({"from": ["b"] * len(names), "to": names}), type="edge:Holds")
    return og


@pytest.mark.parametrize(
    "ending",
    ["{ $p.name, $b.text }", "{ $b }", "{ $b.l }", "{ $b.text } limit 900", "{ $b } limit 900"],
)
def test_a_result_is_counted_before_it_is_made(hub: Omnigraph, ending: str) -> None:
    query = f"query q() {{ match {{ $b: Bin  $b holds $p }} return {ending} }}"
    before = pa.total_allocated_bytes()
    with pytest.raises(BudgetExceeded) as caught:
        hub.query("main", query, memory=64 * MEBIBYTE)
    assert caught.value.clause == "return"
    assert pa.total_allocated_bytes() - before < 64 * MEBIBYTE


@pytest.mark.usefixtures("small_portions")
def test_a_wide_result_that_fits_comes_in_portions(hub: Omnigraph) -> None:
    query = "query q() { match { $b: Bin  $b holds $p } return { $b.text, $p.name, $b } limit 12 }"
    found = hub.query("main", query, memory=64 * MEBIBYTE).table
    assert found.column(0).num_chunks == 12
    assert found.column(0).to_pylist() == ["y" * 10**6] * 12
    assert {len(node["l"]) for node in found.column(2).to_pylist()} == {500}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pa.array(["ab", None, "", "xyz"]), [6, 4, 4, 7]),
        (pa.array(["?", "ab", None, "", "xyz"]).slice(1), [6, 4, 4, 7]),
        (pa.array([["ab", "c"], None, [], ["xyz"]]), [15, 4, 4, 11]),
        (pa.array([[1, 2], None, [], [3]], pa.list_(pa.int64())), [21, 4, 4, 13]),
    ],
)
def test_bytes_of_values_follow_from_their_offsets(values: pa.Array, expected: list[int]) -> None:
    assert row_bytes(values, np.arange(4)).tolist() == expected
    assert row_bytes(values, np.array([3, 0, 3])).tolist() == [expected[n] for n in (3, 0, 3)]


def test_too_much_at_once_is_no_damage() -> None:
    problem = storage_error(
        OSError("Arrow error: Offset overflow error: 2147483650"), "reading", "x"
    )
    assert "damaged" not in str(problem)
    assert "too large" in str(problem)

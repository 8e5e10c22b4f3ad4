"""Which of several records with one id count."""

from __future__ import annotations

import pyarrow as pa

from omnigraph_core.schema.build import compile_schema
from omnigraph_core.write.batches import FRESH, LINE
from omnigraph_core.write.repeats import repeated_rows
from tests.support.cases import each

CATALOG = compile_schema("""
node Part {
  sku: String @key
}
node Note {
  text: String?
}
edge About: Note -> Part
""")
NOTE, PART, ABOUT = CATALOG.nodes["Note"], CATALOG.nodes["Part"], CATALOG.edges["About"]


def replaced(ids: list[str], fresh: str = "", type: object = NOTE) -> list[int]:
    """The lines of the rows that later ones replace; ids in `fresh` were made just now."""
    rows = pa.table(
        {
            "id": pa.chunked_array([pa.array(ids[:2], pa.utf8()), pa.array(ids[2:], pa.utf8())]),
            LINE: pa.array(range(1, len(ids) + 1), pa.int64()),
            FRESH: pa.array([id in fresh for id in ids], pa.bool_()),
        }
    )
    found = repeated_rows(type, rows)  # type: ignore[arg-type]
    assert found.schema == rows.schema
    lines: list[int] = found.column(LINE).to_pylist()
    return lines


@each(
    ("ids", "expected"),
    [
        ([], []),
        (["a"], []),
        (["a", "b", "c"], []),
        (["a", "a"], [1]),
        (["a", "b", "a", "c", "a"], [1, 3]),
        (["b", "a", "a", "b"], [1, 2]),
        (["a", "A", "á", ""], []),
    ],
)
def test_all_but_the_last(ids: list[str], expected: list[int]) -> None:
    assert replaced(ids) == expected
    assert replaced(ids, type=ABOUT) == expected


def test_fresh_ids_are_nobody_elses() -> None:
    assert replaced(["x", "a", "y", "a"], fresh="xy") == [2]


def test_a_key_given_twice_is_a_mistake_and_stays_one() -> None:
    assert replaced(["a", "a"], type=PART) == []

"""Assignments become cells, rows and changed rows, companions included."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph_core.plan.values import Values
from omnigraph_core.query.typed import Constant, NowValue, ParamValue
from omnigraph_core.schema.build import compile_schema
from omnigraph_core.types import F64, I64, STRING, PropType, Scalar
from omnigraph_core.violations import Rule, Violations
from omnigraph_core.write.assign import assigned_cells, changed_rows, new_row
from omnigraph_core.write.batches import LINE, batch_schema
from omnigraph_core.write.pending import pending_schema
from tests.support.cases import each
from tests.support.oracle import NOW

if TYPE_CHECKING:
    from omnigraph_core.query.typed import TypedExpr
    from omnigraph_core.values import Value

CATALOG = compile_schema(
    """
node Article {
  slug: String @key
  title: String?
  rank: I32 @default(7)
  score: F32?
  at: DateTime?
  cover: Blob?
  sizes: [U32]?
  shape: Vector(2)? @embed(title)
}

edge Cites: Article -> Article { page: U32? }
"""
)
ARTICLE = CATALOG.nodes["Article"]
SHAPE = PropType(Scalar.VECTOR, dimension=2)


def cells(
    *assignments: tuple[str, TypedExpr], params: dict[str, Value] | None = None
) -> dict[str, pa.Array]:
    violations = Violations()
    made = assigned_cells(ARTICLE, assignments, Values(NOW, params or {}), 1, violations)
    assert made is not None, violations.listed
    return made


def shown(row: pa.Table) -> dict[str, object]:
    at = row.schema.get_field_index("at")
    row = row.set_column(at, "at", row.column("at").cast(pa.int64()))
    (values,) = row.to_pylist()
    return {name: value for name, value in values.items() if value is not None}


def test_a_new_row_has_what_is_given_and_defaults() -> None:
    made = cells(
        ("slug", ParamValue("slug", STRING)),
        ("score", Constant(2, I64)),
        ("at", NowValue()),
        ("cover", Constant("base64:AQI=", STRING)),
        params={"slug": "a"},
    )
    batch = new_row(ARTICLE, made, 3)

    assert batch.rows.schema.equals(batch_schema(ARTICLE))
    assert shown(batch.rows) == {
        "slug": "a",
        "score": 2.0,
        "at": 1767225600000,
        "cover": b"\x01\x02",
        "rank": 7,
        "#source": 0,
        LINE: 3,
    }


def test_a_null_that_is_given_is_not_a_default() -> None:
    made = cells(("rank", ParamValue("rank", I64.nullable())), params={"rank": None})

    assert new_row(ARTICLE, made, 1).rows.column("rank").to_pylist() == [None]


def test_a_blob_may_be_kept_elsewhere() -> None:
    made = cells(("cover", Constant("s3://covers/1.png", STRING)))

    assert made["cover"].to_pylist() == [None]
    assert made["cover#uri"].to_pylist() == ["s3://covers/1.png"]


@each(
    ("name", "type", "value", "message"),
    [
        ("rank", I64, 2**31, "out of range for I32"),
        ("rank", F64, 2.5, "expected I32, found number 2.5"),
        ("score", F64, 1e39, "out of range for F32"),
        ("sizes", PropType(Scalar.I64, is_list=True), (1, -1), "element 1: -1 is out of range"),
        ("cover", STRING, "C:\\cover.png", "expected a blob"),
    ],
)
def test_what_does_not_fit_is_reported(
    name: str, type: PropType, value: Value, message: str
) -> None:
    violations = Violations()
    assignments = [("slug", Constant("a", STRING)), (name, ParamValue("p", type))]
    made = assigned_cells(ARTICLE, assignments, Values(NOW, {"p": value}), 4, violations)
    (violation,) = violations.listed

    assert made is None
    assert violation.rule is Rule.VALUE
    assert (violation.type_name, violation.property) == ("Article", name)
    assert violation.render().startswith(f"statement 4: Article.{name}: ")
    assert message in violation.message


def test_every_value_that_does_not_fit_is_reported() -> None:
    violations = Violations()
    assignments = [("rank", Constant(2**40, I64)), ("score", Constant(1e300, F64))]

    assert assigned_cells(ARTICLE, assignments, Values(NOW), 1, violations) is None
    assert violations.total == 2


def stored(*titles: str | None) -> pa.Table:
    """Articles with vectors: the first was given, the others made of their titles."""
    count = len(titles)
    columns = {
        "id": pa.array([f"a{n}" for n in range(count)], pa.utf8()),
        "title": pa.array(titles, pa.utf8()),
        "shape": pa.array([[1.0, float(n)] for n in range(count)], pa.list_(pa.float32(), 2)),
        "shape#origin": pa.array([None, *range(1, count)], pa.int64()),
    }
    schema = pending_schema(ARTICLE)
    whole = [columns.get(field.name, pa.nulls(count, field.type)) for field in schema]
    arrays = [array.cast(field.type) for array, field in zip(whole, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def test_a_vector_goes_when_its_text_changes() -> None:
    changed = changed_rows(
        ARTICLE, stored("old", "new", None, "old"), cells(("title", Constant("new", STRING))), 2
    )

    assert changed.column("title").to_pylist() == ["new"] * 4
    assert changed.column("shape").to_pylist() == [None, [1.0, 1.0], None, None]
    assert changed.column("shape#origin").to_pylist() == [None, 1, None, None]
    assert changed.column(LINE).to_pylist() == [2] * 4


def test_a_vector_goes_with_its_text() -> None:
    none = cells(("title", ParamValue("t", STRING.nullable())), params={"t": None})
    changed = changed_rows(ARTICLE, stored("old", None), none, 1)

    assert changed.column("shape").to_pylist() == [None, [1.0, 1.0]]


def test_a_vector_that_is_given_stays_and_has_no_origin() -> None:
    given = cells(("title", Constant("new", STRING)), ("shape", Constant((3.0, 4.0), SHAPE)))
    changed = changed_rows(ARTICLE, stored("old", "old"), given, 1)

    assert changed.column("shape").to_pylist() == [[3.0, 4.0]] * 2
    assert changed.column("shape#origin").to_pylist() == [None, None]


def test_other_columns_stay() -> None:
    before = stored("old", "new")
    changed = changed_rows(ARTICLE, before, cells(("rank", Constant(1, I64))), 1)

    for name in ("id", "title", "shape", "shape#origin"):
        assert changed.column(name).equals(before.column(name))

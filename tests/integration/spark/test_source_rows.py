"""What the data source decides and loads, without Spark: pins, checks of columns, parts to commits.

These are the calls that Spark makes; that it makes them is shown by the tests beside this one.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import (
    BranchNotFound,
    ConfigError,
    ConflictError,
    DataError,
    EndpointNotFound,
    GraphNotFound,
    OmnigraphError,
    PolicyDenied,
    PreconditionFailed,
)
from omnigraph_core.ids import new_ulid
from omnigraph_core.spark.source.landing import check_columns
from omnigraph_core.spark.source.options import read_options, write_options
from omnigraph_core.spark.source.resolve import pin_table
from omnigraph_core.spark.source.writer import OmnigraphWriter
from tests.support.ageing import clean_up
from tests.support.source_worlds import SCHEMA, small_graph, stored, things

if TYPE_CHECKING:
    from collections.abc import Mapping

    from omnigraph_core.spark.source.pin import Pin

POLICY = (
    "version: 1\ngroups:\n  staff: [ada]\nrules:\n  - id: all\n    allow:\n"
    "      actors: { group: staff }\n      actions: [read, change]\n      branch_scope: any\n"
)


@pytest.fixture
def og(tmp_path: Path) -> Omnigraph:
    return small_graph(tmp_path / "graph")


@pytest.fixture
def policy(tmp_path: Path) -> str:
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY)
    return str(path)


def pin(og: Omnigraph, type: str = "Thing", **options: object) -> Pin:
    given = {name: str(value) for name, value in options.items()}
    return pin_table(read_options({"graph": og.uri, "type": type, **given}))


def write(
    og: Omnigraph,
    rows: pa.Table,
    type: str = "Thing",
    *,
    parts: int = 1,
    is_overwriting: bool = False,
    **given: str,
) -> None:
    """Rows in so many partitions, as Spark would hand them over."""
    options = write_options({"graph": og.uri, "type": type, **given}, is_overwriting=is_overwriting)
    check_columns(options, rows.schema)
    writer = OmnigraphWriter(options, new_ulid())
    size = -(-rows.num_rows // parts) or 1
    written = [writer.write(iter(rows.slice(n * size, size).to_batches())) for n in range(parts)]
    try:
        writer.commit(list(written))
    except OmnigraphError:
        writer.abort(list(written))
        raise


def skus(*values: str) -> pa.Table:
    return pa.table({"sku": values})


def left(og: Omnigraph) -> list[str]:
    """What jobs have left beside the graph."""
    return [path.name for path in (Path(og.uri) / "_scratch").rglob("*") if path.is_file()]


def test_any_state_can_be_pinned(tmp_path: Path) -> None:
    og = Omnigraph.init(str(tmp_path / "graph"), "node Thing { sku: String @key }")
    og.load(things({"sku": "a"}))
    first = og.snapshot()
    og.tag_create("v1")
    og.branch_create("side")
    og.load(things({"sku": "b"}), branch="side")
    side = og.snapshot("side")
    og.load(things({"sku": "c"}))

    def found(**options: object) -> list[str]:
        return sorted(pin(og, **options).place.open().read().column("sku").to_pylist())

    assert found() == ["a", "c"]
    assert found(branch="side") == found(branch="side", version=side.manifest_version) == ["a", "b"]
    assert found(tag="v1") == found(version=first.manifest_version) == ["a"]
    assert found(commit=first.commit.graph_commit_id) == ["a"]
    assert found(version=1) == []


def test_what_is_not_there_cannot_be_pinned(og: Omnigraph, policy: str) -> None:
    for type in ("Thingy", "edge:Thing"):
        with pytest.raises(ConfigError, match=f"unknown type `{type}`") as refused:
            pin(og, type)
        assert refused.value.hint == "did you mean `Thing`?"
    with pytest.raises(BranchNotFound):
        pin(og, branch="dev")
    with pytest.raises(GraphNotFound):
        pin_table(read_options({"graph": "/nowhere", "type": "Thing"}))
    assert pin(og, actor="ada", policy=policy).table_key == "node:Thing"
    with pytest.raises(PolicyDenied):
        pin(og, actor="eve", policy=policy)
    with pytest.raises(PolicyDenied):
        write(og, skus("new"), actor="eve", policy=policy)
    with pytest.raises(ConfigError, match=r"none\.yaml"):
        pin(og, actor="ada", policy=policy.replace("policy.yaml", "none.yaml"))


def test_modes_and_branches(tmp_path: Path) -> None:
    og = Omnigraph.init(str(tmp_path / "graph"), "node Thing { sku: String @key\n n: I64? }")

    def numbers() -> dict[str, int]:
        return {id: row["n"] for id, row in stored(og).items()}

    def rows(**values: int) -> pa.Table:
        return pa.table({"sku": list(values), "n": list(values.values())})

    write(og, rows(a=1, b=2), actor="ada")
    assert og.list_commits(limit=1)[0].actor_id == "ada"
    write(og, rows(b=3, c=4), mode="merge", parts=2)
    assert numbers() == {"a": 1, "b": 3, "c": 4}
    write(og, rows(d=6), is_overwriting=True)
    assert numbers() == {"d": 6}
    write(og, rows(e=7), mode="overwrite")
    assert numbers() == {"e": 7}
    og.branch_create("side")
    head = og.head_commit_id_for_branch("side")
    with pytest.raises(PreconditionFailed):
        write(og, rows(f=8), branch="side", if_commit="01M7HCRA2YB7TR5DXVE32ATFRJ")
    write(og, rows(f=8), branch="side", if_commit=head)
    assert og.snapshot("side").table("node:Thing").row_count == 2
    assert numbers() == {"e": 7}


def test_columns_are_checked_before_there_are_rows(og: Omnigraph) -> None:
    schema = pa.schema(
        [
            ("sku", pa.utf8()),
            ("colour", pa.utf8()),
            ("large", pa.bool_()),
            ("note", pa.decimal128(2, 1)),
            ("tags", pa.map_(pa.utf8(), pa.utf8())),
        ]
    )
    options = write_options({"graph": og.uri, "type": "Thing"}, is_overwriting=False)
    with pytest.raises(DataError) as refused:
        check_columns(options, schema)
    for words in (
        "unknown column `colour` of Thing",
        "Thing.large: expected I64?, found a column of bool",
        "Thing.note: expected String?, found a column of decimal128(2, 1)",
        "Thing.tags: expected [String]?, found a column of map<",
    ):
        assert words in str(refused.value)
    with pytest.raises(DataError, match="unknown type `Thingy`"):
        write(og, skus("a"), "Thingy")
    with pytest.raises(BranchNotFound):
        write(og, skus("a"), branch="none")


def test_rows_that_break_rules_are_all_told(og: Omnigraph) -> None:
    before, head = stored(og), og.head_commit_id_for_branch()
    bad = pa.table(
        {
            "sku": ["most", "x", "y", None],
            "kind": ["bolt", "screw", None, None],
            "huge": pa.array([1, Decimal("0.5"), -1, 2**64], pa.decimal128(22, 1)),
            "shape": [None, [1.0, 2.0, 3.0], [1.0], None],
            "day": [None, "2020-02-30", None, None],
        }
    )
    with pytest.raises(DataError) as refused:
        write(og, bad, parts=2)
    for words in (
        "partition 0, row 1: @unique violation on Thing.sku: key 'most' already exists",
        "partition 0, row 2: Thing.huge: expected U64, found ",
        "partition 0, row 2: Thing.day: ",
        "partition 1, row 1: Thing.huge: ",
        "partition 1, row 1: Thing.shape: expected 3 numbers, found 1",
        "partition 1, row 2: Thing.huge: ",
        "hint: nothing was written",
    ):
        assert words in str(refused.value)
    with pytest.raises(EndpointNotFound):
        write(og, pa.table({"src": ["x"], "dst": ["attic"]}), "Lies")
    assert (stored(og), og.head_commit_id_for_branch()) == (before, head)
    assert left(og) == []


def test_decimals_fit_where_their_values_do(og: Omnigraph) -> None:
    """Literals of SQL are decimals, and so is what was read as unsigned."""
    largest, exact = 2**64 - 1, Decimal("0.12345678901234567890")
    write(
        og,
        pa.table(
            {
                "sku": ["d"],
                "exact": [exact],
                "ratio": [Decimal("2.25")],
                "small": [Decimal("7.00")],
                "large": pa.array([-(2**63)], pa.decimal128(38, 2)),
                "huge": pa.array([largest], pa.decimal128(20, 0)),
                "shape": [[Decimal("1.0"), Decimal("2.5"), Decimal("3.0")]],
                "sizes": pa.array([[0, largest]], pa.list_(pa.decimal128(20, 0))),
                "moment": [dt.datetime(2020, 1, 1, 0, 0, 1)],
            }
        ),
    )
    row = stored(og)["d"]
    assert (row["small"], row["large"], row["huge"]) == (7, -(2**63), largest)
    assert (row["sizes"], row["moment"]) == ([0, largest], 1_577_836_801_000_000)
    assert (row["exact"], row["ratio"]) == (float(exact).hex(), (2.25).hex())
    assert row["shape"] == [value.hex() for value in (1.0, 2.5, 3.0)]
    with pytest.raises(DataError, match=r"expected U64.*found a column of decimal128"):
        og.load(pa.table({"sku": ["e"], "huge": [Decimal(1)]}), type="Thing")


def test_a_repeat_under_one_key_writes_nothing(tmp_path: Path) -> None:
    og = Omnigraph.init(str(tmp_path / "graph"), SCHEMA)

    def rows(numbers: Mapping[int, float]) -> pa.Table:
        return pa.table(
            {
                "sku": [f"s{n}" for n in numbers],
                "huge": pa.array(list(numbers), pa.decimal128(20, 0)),
                "tags": [[f"t{n}"] * (n % 3) for n in numbers],
                "exact": list(numbers.values()),
            }
        )

    numbers = {n: n / 3 for n in range(50)}
    write(og, rows(numbers), parts=3, idempotency_key="nightly")
    head = og.head_commit_id_for_branch()
    write(og, rows(dict(reversed(numbers.items()))), parts=2, idempotency_key="nightly")
    assert (og.head_commit_id_for_branch(), len(stored(og))) == (head, 50)
    with pytest.raises(ConflictError, match="`nightly` was used for another request"):
        write(og, rows({**numbers, 7: 0.5}), parts=3, idempotency_key="nightly")
    assert left(og) == []


def test_no_rows(og: Omnigraph) -> None:
    before, head = stored(og), og.head_commit_id_for_branch()
    nothing = skus("a").slice(0, 0)
    write(og, nothing)
    write(og, nothing, mode="merge")
    with pytest.raises(ConfigError, match="overwriting with nothing would empty Thing"):
        write(og, nothing, mode="overwrite")
    assert (stored(og), og.head_commit_id_for_branch()) == (before, head)
    write(og, pa.table({"sku": ["null"], "shape": pa.nulls(1, pa.list_(pa.float32()))}))
    assert stored(og)["null"]["shape"] is None


def test_what_a_killed_job_has_left_is_swept(og: Omnigraph) -> None:
    options = write_options({"graph": og.uri, "type": "Thing"}, is_overwriting=False)
    OmnigraphWriter(options, new_ulid()).write(iter(skus("new").to_batches()))
    assert len(left(og)) == 1
    clean_up(og, keep=1)
    assert left(og) == []
    assert og.load(things({"sku": "new"})).nodes_loaded == 1

"""Mutations on a real graph: what each statement does, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import (
    ConfigError,
    ConstraintViolation,
    DataError,
    EndpointNotFound,
    ParameterError,
    QueryTypeError,
    RecordError,
)
from omnigraph_core.violations import Rule

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = """
node Part {
  sku: String @key
  name: String?
  code: String? @unique
  stock: I32?
  weight: F32?
  made: DateTime?
  grade: enum(raw, ready) @default("raw")
  drawing: Blob?
  tags: [String]?
  @range(stock, 0..)
}

node Bin {
  row: I64
  place: String
  @key(row, place)
}

node Note {
  text: String
}

edge Holds: Bin -> Part @card(0..2) {
  count: I64?
}

edge Replaces: Part -> Part
edge Owns: Part -> Note @card(1..)
"""
ADD = "query add($sku: String, $stock: I64?) { insert Part { sku: $sku, stock: $stock } }"


@pytest.fixture
def og(tmp_path: Path) -> Omnigraph:
    return Omnigraph.init(str(tmp_path / "graph"), SCHEMA)


def run(og: Omnigraph, body: str, **params: object) -> Any:
    """Run statements that take no declared parameters."""
    return og.mutate(f"query run() {{ {body} }}", params)


def rows(og: Omnigraph, key: str = "node:Part") -> dict[str, dict[str, Any]]:
    found = og.table(og.snapshot(), key).read().to_pylist()
    by_id = {row["id"]: {k: v for k, v in row.items() if v is not None} for row in found}
    assert len(by_id) == len(found)
    return by_id


def test_an_insert_is_a_commit(og: Omnigraph) -> None:
    result = og.mutate(ADD, {"sku": "a", "stock": 3}, actor="tester")
    head = og.snapshot().commit

    assert rows(og) == {"a": {"id": "a", "sku": "a", "stock": 3, "grade": "raw"}}
    assert result.commit == head
    assert (head.operation, head.actor_id) == ("mutate", "tester")
    assert result.to_json() == {
        "branch": "main",
        "query_name": "add",
        "affected_nodes": 1,
        "affected_edges": 0,
        "actor_id": "tester",
        "commit_id": head.graph_commit_id,
        "manifest_version": head.manifest_version,
        "repeated": False,
    }


def test_a_keyed_insert_replaces_the_whole_node(og: Omnigraph) -> None:
    run(og, 'insert Part { sku: "a", name: "bolt", stock: 3, grade: "ready" }')
    run(og, 'insert Part { sku: "b" }')
    result = run(og, 'insert Part { sku: "a", weight: 1 }')

    assert result.affected_nodes == 1
    assert rows(og)["a"] == {"id": "a", "sku": "a", "weight": 1.0, "grade": "raw"}
    assert list(rows(og)) == ["b", "a"]


def test_ids_of_composite_keys_and_of_nothing(og: Omnigraph) -> None:
    run(
        og,
        'insert Bin { row: 7, place: "left" } insert Note { text: "x" } insert Part { sku: "p" }',
    )
    bins = rows(og, "node:Bin")
    assert list(bins) == ['["7","left"]']
    (bin,) = bins
    end = bin.replace('"', '\\"')
    run(og, f'insert Holds {{ from: "{end}", to: "p" }} insert Holds {{ from: "{end}", to: "p" }}')

    assert [edge["src"] for edge in rows(og, "edge:Holds").values()] == [bin, bin]
    run(og, 'insert Note { text: "x" }')
    assert len(rows(og, "node:Note")) == 2


def test_statements_see_the_ones_before_them(og: Omnigraph) -> None:
    og.mutate(ADD, {"sku": "old", "stock": 1})
    before = og.snapshot().manifest_version
    result = run(
        og,
        """
        insert Part { sku: "new", stock: 1 }
        update Part set { stock: 2 } where stock = 1
        update Part set { name: "two" } where stock = 2
        update Part set { name: "one" } where stock = 1
        """,
    )

    assert result.affected_nodes == 5
    assert og.snapshot().manifest_version == before + 1
    found = {id: (row["stock"], row["name"]) for id, row in rows(og).items()}
    assert found == {"old": (2, "two"), "new": (2, "two")}


def test_an_edge_may_come_before_its_nodes(og: Omnigraph) -> None:
    result = run(
        og,
        """
        insert Replaces { from: "a", to: "b" }
        insert Part { sku: "a" }
        insert Part { sku: "b" }
        """,
    )
    assert (result.affected_nodes, result.affected_edges) == (2, 1)


def test_now_is_the_same_everywhere_in_a_query(og: Omnigraph) -> None:
    run(og, " ".join(f'insert Part {{ sku: "{n}", made: now() }}' for n in range(20)))
    made = og.table(og.snapshot(), "node:Part").read(["made"]).column("made").cast("int64")

    assert len(set(made.to_pylist())) == 1
    run(og, "update Part set { stock: 1 } where made <= now()")
    assert all(row["stock"] == 1 for row in rows(og).values())


def test_an_update_leaves_other_columns_alone(og: Omnigraph) -> None:
    run(
        og,
        """
        insert Part { sku: "a", name: "x", drawing: "base64:AQI=", tags: ["p", "q"] }
        insert Part { sku: "b", name: "x", drawing: "s3://drawings/b.png" }
        """,
    )
    large = "base64:" + "AAAA" * 30_000
    og.mutate(
        'query big($d: Blob) { insert Part { sku: "c", name: "x", drawing: $d } }', {"d": large}
    )
    assert run(og, 'update Part set { stock: 5 } where name = "x"').affected_nodes == 3

    found = rows(og)
    assert {row["stock"] for row in found.values()} == {5}
    assert found["a"]["drawing"] == b"\x01\x02"
    assert found["a"]["tags"] == ["p", "q"]
    assert found["b"]["drawing#uri"] == "s3://drawings/b.png"
    assert found["c"]["drawing"] == b"\x00" * 90_000
    run(og, 'update Part set { drawing: "base64:Aw==" } where tags contains "p"')
    assert rows(og)["a"]["drawing"] == b"\x03"
    run(og, 'update Part set { drawing: "base64:Aw==" } where sku = "b"')
    assert "drawing#uri" not in rows(og)["b"]


def test_edges_can_be_updated(og: Omnigraph) -> None:
    run(og, 'insert Part { sku: "a" } insert Bin { row: 1, place: "x" }')
    (bin,) = rows(og, "node:Bin")
    end = bin.replace('"', '\\"')
    run(og, f'insert Holds {{ from: "{end}", to: "a", count: 1 }}')
    (edge,) = rows(og, "edge:Holds")

    assert run(og, 'update Holds set { count: 2 } where to = "a"').affected_edges == 1
    assert rows(og, "edge:Holds") == {edge: {"id": edge, "src": bin, "dst": "a", "count": 2}}


def test_a_delete_takes_the_edges_along(og: Omnigraph) -> None:
    run(
        og,
        """
        insert Part { sku: "a", stock: 1 } insert Part { sku: "b", stock: 2 }
        insert Part { sku: "c" }
        insert Replaces { from: "a", to: "b" } insert Replaces { from: "b", to: "a" }
        insert Replaces { from: "a", to: "a" } insert Replaces { from: "c", to: "c" }
        """,
    )
    versions = {key: entry.table_version for key, entry in og.snapshot().tables.items()}
    result = run(
        og,
        'delete Part where sku = "a" delete Part where stock >= 1 delete Replaces where to = "b"',
    )

    assert (result.affected_nodes, result.affected_edges) == (2, 3)
    assert list(rows(og)) == ["c"]
    assert [edge["src"] for edge in rows(og, "edge:Replaces").values()] == ["c"]
    moved = {k for k, e in og.snapshot().tables.items() if e.table_version != versions[k]}
    assert moved == {"node:Part", "edge:Replaces"}


@pytest.mark.parametrize(
    "body",
    [
        'update Part set { stock: 1 } where sku = "nobody"',
        "delete Part where stock > 100",
        'delete Holds where from = "nobody"',
        "delete Part where name = $none",
    ],
)
def test_without_a_match_there_is_no_commit(og: Omnigraph, body: str) -> None:
    og.mutate(ADD, {"sku": "a", "stock": 1})
    before = og.snapshot().commit
    result = og.mutate(f"query run($none: String?) {{ {body} }}")

    assert (result.affected_nodes, result.affected_edges) == (0, 0)
    assert result.commit is result.commit_id is None
    assert og.snapshot().commit == before


def test_every_problem_is_reported_with_its_statement(og: Omnigraph) -> None:
    with pytest.raises(DataError) as refused:
        og.mutate(
            """
            query bad($grade: String, $none: String?) {
              insert Part { sku: "a", stock: -1, code: "x" }
              insert Part { sku: "b", grade: $grade, code: "x" }
              insert Note { text: $none }
              insert Replaces { from: "a", to: "z" }
            }
            """,
            {"grade": "lost"},
        )
    listed = refused.value.violations
    assert [(item.rule, item.line) for item in listed] == [
        (Rule.RANGE, 1),
        (Rule.ENUM, 2),
        (Rule.UNIQUE, 2),
        (Rule.REQUIRED, 3),
        (Rule.ENDPOINT, 4),
    ]
    assert "statement 1: @range violation on Part.stock" in str(refused.value)
    assert not rows(og)


def test_values_that_do_not_fit_their_column(og: Omnigraph) -> None:
    with pytest.raises(RecordError) as refused:
        og.mutate(
            """
            query bad($n: I64, $d: String) {
              insert Part { sku: "a", stock: $n }
              insert Part { sku: "b", drawing: $d }
              insert Replaces { from: "a", to: "b" }
            }
            """,
            {"n": 2**31, "d": "no address"},
        )
    assert [(item.rule, item.line) for item in refused.value.violations] == [
        (Rule.VALUE, 1),
        (Rule.VALUE, 2),
    ]


def test_a_key_must_be_given(og: Omnigraph) -> None:
    with pytest.raises(ConstraintViolation, match="missing required property `sku`"):
        og.mutate("query bad($sku: String?) { insert Part { sku: $sku } }")


def test_rules_hold_against_committed_rows(og: Omnigraph) -> None:
    run(og, 'insert Part { sku: "a", code: "x" } insert Part { sku: "b", code: "y" }')
    head = og.snapshot().commit
    with pytest.raises(ConstraintViolation, match=r"@unique violation on Part\.code"):
        run(og, 'insert Part { sku: "c", code: "x" }')
    with pytest.raises(ConstraintViolation, match=r"@unique violation on Part\.code"):
        run(og, 'update Part set { code: "x" } where sku = "b"')
    with pytest.raises(EndpointNotFound, match="dst 'z' not found in Part"):
        run(og, 'insert Replaces { from: "a", to: "z" }')
    assert og.snapshot().commit == head
    run(og, 'update Part set { code: "z" } where sku = "a" insert Part { sku: "c", code: "x" }')
    assert rows(og)["c"]["code"] == "x"


def test_a_delete_may_not_leave_too_few_edges(og: Omnigraph) -> None:
    run(og, 'insert Part { sku: "a" } insert Note { text: "x" }')
    (note,) = rows(og, "node:Note")
    run(og, f'insert Owns {{ from: "a", to: "{note}" }}')
    with pytest.raises(ConstraintViolation, match="@card violation on edge Owns"):
        run(og, f'delete Owns where to = "{note}"')
    with pytest.raises(ConstraintViolation, match="@card violation on edge Owns"):
        run(og, 'delete Note where text = "x"')

    result = run(og, 'delete Note where text = "x" delete Part where sku = "a"')
    assert (result.affected_nodes, result.affected_edges) == (2, 1)


def test_parameters_are_checked_first(og: Omnigraph) -> None:
    with pytest.raises(ParameterError) as refused:
        og.mutate(ADD, {"sku": "half \ud800", "more": 1})
    assert len(refused.value.problems) == 2


def test_a_read_is_refused(og: Omnigraph) -> None:
    with pytest.raises(ConfigError, match="`list` is a read"):
        og.mutate("query list() { match { $p: Part } return { $p.sku } }")
    with pytest.raises(QueryTypeError):
        run(og, "insert Part { sku: 1 }")


def test_a_condition_that_only_the_rows_can_answer(og: Omnigraph) -> None:
    """Two columns are compared: no filter says that, so every row is looked at."""
    run(
        og,
        """
        insert Part { sku: "a", name: "a", drawing: "base64:AQI=" }
        insert Part { sku: "b", name: "a" }
        insert Part { sku: "c", name: "c", stock: 1 }
        """,
    )
    assert run(og, "update Part set { stock: 2 } where sku = name").affected_nodes == 2

    assert {id: row.get("stock") for id, row in rows(og).items()} == {"a": 2, "b": None, "c": 2}
    assert rows(og)["a"]["drawing"] == b"\x01\x02"
    assert run(og, "delete Part where sku != name").affected_nodes == 1
    assert sorted(rows(og)) == ["a", "c"]

"""Rows that no write would have let in, put there behind its back: verify tells each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.engine.verifying.model import Severity
from omnigraph_core.exec.catalogs import accepted_catalog
from omnigraph_core.manifest.image import TableOperation
from omnigraph_core.schema.arrow import table_schema
from omnigraph_core.storage.staged import stage_append
from tests.support.graphs import copied, publish
from tests.support.table_writes import stage_delete_keys

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = """
node Part {
  sku: String @key
  state: enum(new, used)?
  price: F64?
  code: String?
  maker: String?
  note: String
  sizes: [I32]?
  vector: Vector(2)? @embed("note")
  drawing: Blob?
  @unique(maker, code)
  @range(price, 0..100)
  @check(code, "[a-z]+")
}

node Tag { label: String }

edge Fits: Part -> Part @card(1..2) { weight: F32? }
"""
PARTS = "\n".join(
    f'{{"type":"Part","data":{{"sku":"p{n}","note":"n","state":"new","price":{n},"code":"{c}",'
    f'"maker":"m","drawing":"base64:aGV4"}}}}'
    for n, c in enumerate("abc")
)
EDGES = "\n".join(
    f'{{"edge":"Fits","from":"p{a}","to":"p{b}","data":{{"id":"{a}{b}"}}}}'
    for a, b in ((0, 1), (0, 2), (1, 2))
)
TAGS = '{"type":"Tag","data":{"id":"t1","label":"red"}}'


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Omnigraph:
    og = Omnigraph.init(str(tmp_path_factory.mktemp("sound")), SCHEMA)
    og.load("\n".join((PARTS, EDGES, TAGS)).encode(), embed="off")
    og.optimize()
    assert errors(og) == []
    return og


@pytest.fixture
def og(sound: Omnigraph, tmp_path: Path) -> Omnigraph:
    return copied(sound, tmp_path)


def smuggle(og: Omnigraph, key: str, *rows: dict[str, Any], branch: str = "main") -> None:
    """Append rows through storage and the door alone; what is not given is null."""
    snapshot = og.snapshot(branch)
    catalog = accepted_catalog(snapshot.schema)
    kind, name = key.split(":")
    type = catalog.nodes[name] if kind == "node" else catalog.edges[name]
    schema = table_schema(type)
    columns = [pa.array([row.get(f.name) for row in rows], f.type) for f in schema]
    staged = stage_append(og.table(snapshot, key), pa.Table.from_arrays(columns, schema=schema))
    assert staged is not None
    publish(og, snapshot, {key: staged}, TableOperation.APPEND)


def part(id: str, **values: Any) -> dict[str, Any]:
    return {"id": id, "sku": id, "note": "n", **values}


def errors(og: Omnigraph, branch: str | None = None) -> list[tuple[str, str]]:
    report = og.verify(branch, is_deep=True)
    return [
        (item.code, item.message) for item in report.findings if item.severity is Severity.ERROR
    ]


@pytest.mark.parametrize(
    ("key", "row", "code", "text"),
    [
        ("node:Part", part("p0"), "rows.key", "key 'p0' was given before, at node:Part, row 1"),
        ("node:Part", part("x", sku="y"), "rows.id_mismatch", "id 'x' of Part does not agree"),
        ("node:Part", part("x", state="old"), "rows.enum", "old"),
        ("node:Part", part("x", price=101.0), "rows.range", "101"),
        ("node:Part", part("x", price=float("nan")), "rows.range", "price"),
        ("node:Part", part("x", code="A"), "rows.check", "code"),
        ("node:Part", part("x", maker="m", code="a"), "rows.unique", "('m', 'a')"),
        ("node:Part", part("x", sizes=[1, None]), "rows.value", "element 1 of Part.sizes is null"),
        ("node:Part", part("x", vector=[1.0, float("inf")]), "rows.value", "Part.vector"),
        ("node:Tag", {"id": "t1", "label": "blue"}, "rows.key", "id 't1' was given before"),
        ("edge:Fits", {"id": "x", "src": "p1", "dst": "no"}, "rows.endpoint", "dst 'no' not found"),
        ("edge:Fits", {"id": "x", "src": "no", "dst": "p0"}, "rows.endpoint", "src 'no' not found"),
        ("edge:Fits", {"id": "01", "src": "p2", "dst": "p0"}, "rows.key", "id '01'"),
        ("edge:Fits", {"id": "x", "src": "p0", "dst": "p0"}, "rows.cardinality", "has 3, allowed"),
        (
            "edge:Fits",
            {"id": "x", "src": "p2", "dst": "p0", "weight": float("inf")},
            "rows.value",
            "expected a finite number",
        ),
    ],
)
def test_a_row_that_breaks_a_rule(
    og: Omnigraph, key: str, row: dict[str, Any], code: str, text: str
) -> None:
    assert og.verify().is_sound
    smuggle(og, key, row)
    (found,) = errors(og)
    assert found[0] == code
    assert text in found[1]
    place = og.verify(is_deep=True).findings[0].place
    assert place.startswith(f"main@{og.snapshot().manifest_version} {key}, row ")


def test_rows_are_counted_where_there_are_too_many_to_list(og: Omnigraph) -> None:
    smuggle(og, "node:Part", *(part(f"x{n}", price=-1.0) for n in range(30)))
    found = errors(og)
    assert [code for code, _ in found].count("rows.range") == 20
    assert ("rows.more", "10 more broken rules; in all 30 of range") in found


def test_only_the_branch_that_has_them(og: Omnigraph) -> None:
    og.branch_create("review")
    smuggle(og, "node:Part", part("x", price=-1.0), branch="review")
    assert errors(og, "main") == []
    assert [code for code, _ in errors(og, "review")] == ["rows.range"]
    og.tag_create("v1", "review")
    og.branch_create("third", source="review")
    assert [code for code, _ in errors(og)] == ["rows.range"], "what is shared is told once"


def test_an_edge_whose_node_went_on_another_branch(og: Omnigraph) -> None:
    """The edges are the same version; their ends are not."""
    og.branch_create("review")
    snapshot = og.snapshot("review")
    fewer = stage_delete_keys(og.table(snapshot, "node:Part"), pa.array(["p2"]))
    assert fewer is not None
    publish(og, snapshot, {"node:Part": fewer}, TableOperation.DELETE)
    assert errors(og, "main") == []
    assert {code for code, _ in errors(og, "review")} == {"rows.endpoint"}
    assert len(errors(og)) == 2


def test_rows_that_wait_for_vectors_and_empty_tables(og: Omnigraph) -> None:
    og.load(b'{"type":"Part","data":{"sku":"new","note":"text"}}', mode="merge", embed="off")
    og.load(b"", mode="overwrite")
    assert errors(og) == []
    assert og.verify(is_deep=True).checked.rows == 4 + 3 + 1

"""Images as rows."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from omnigraph_core.errors import InvariantBroken, StorageError
from omnigraph_core.manifest.rows import IMAGE_SCHEMA, decode_image, encode_image
from tests.support.cases import each
from tests.unit.manifest.samples import DETACHED, SCHEMA, commit, entry, image

if TYPE_CHECKING:
    from collections.abc import Callable

    from omnigraph_core.manifest.image import Image

    Rows = list[dict[str, Any]]

FULL = image(
    entry("node:Part", table_version=4),
    entry("edge:Fits", location="edges/f", branch="b", physical_version=1, row_count=0),
    tombstones={"node:Old": 7, "node:Part": 2},
    commits=(
        commit(8, parent_commit_id="c7", actor_id="ada"),
        commit(9, manifest_branch="b", incarnation="i1", manifest_version=1),
        commit(
            10,
            merged_parent_commit_id="c5",
            manifest_version=2,
            created_at=3,
            idempotency_key="nightly",
            request_digest="d1",
            summary='{"rows":3}',
        ),
    ),
)


def rows_of(of: Image) -> Rows:
    return list(encode_image(of).to_pylist())


def decode(rows: Rows) -> Image:
    return decode_image(pa.Table.from_pylist(rows, schema=IMAGE_SCHEMA), where="here")


def row(rows: Rows, object_id: str) -> dict[str, Any]:
    (found,) = (item for item in rows if item["object_id"] == object_id)
    return found


PART = "node:Part$00000000000000000004"
OLD = "node:Old$tombstone$00000000000000000007"


def test_the_schema_of_rows() -> None:
    shown = [(f.name, str(f.type), f.nullable) for f in IMAGE_SCHEMA]
    assert shown == [
        ("object_id", "string", False),
        ("object_type", "string", False),
        ("location", "string", True),
        ("metadata", "string", True),
        ("base_objects", "list<item: string>", True),
        ("table_key", "string", False),
        ("table_version", "uint64", True),
        ("table_branch", "string", True),
        ("row_count", "uint64", True),
    ]
    assert IMAGE_SCHEMA.metadata == {b"omnigraph:internal_schema_version": b"2"}
    assert IMAGE_SCHEMA.field("object_id").metadata == {
        b"lance-schema:unenforced-primary-key": b"true"
    }
    assert encode_image(FULL).schema.equals(IMAGE_SCHEMA, check_metadata=True)


def test_every_kind_of_row() -> None:
    empty = dict.fromkeys(IMAGE_SCHEMA.names)
    rows = rows_of(FULL)
    assert row(rows, "node:Part") == {
        **empty,
        "object_id": "node:Part",
        "object_type": "table",
        "location": "nodes/node:Part",
        "table_key": "node:Part",
    }
    part = row(rows, PART)
    assert json.loads(part.pop("metadata")) == {
        "lance_version": str(DETACHED),
        "manifest_path": f"nodes/node:Part/_versions/d{DETACHED}.manifest",
        "naming_scheme": "V2",
        "fragments": 2,
        "operation": "append",
    }
    assert part == {
        **{name: None for name in empty if name != "metadata"},
        "object_id": PART,
        "object_type": "table_version",
        "table_key": "node:Part",
        "table_version": 4,
        "row_count": 10,
    }
    assert row(rows, OLD) == {
        **empty,
        "object_id": OLD,
        "object_type": "table_tombstone",
        "table_key": "node:Old",
        "table_version": 7,
    }
    assert row(rows, "c9") == {
        **empty,
        "object_id": "c9",
        "object_type": "graph_commit",
        "table_key": "",
        "table_version": 1,
        "table_branch": "b",
        "metadata": '{"position":1,"parent":"c8","created_at":1000009,"incarnation":"i1",'
        '"operation":"load"}',
    }
    assert row(rows, "graph_head:main") == {
        **empty,
        "object_id": "graph_head:main",
        "object_type": "graph_head",
        "table_key": "",
        "metadata": '{"head_commit_id":"c10"}',
    }
    assert row(rows, "graph_schema") == {
        **empty,
        "object_id": "graph_schema",
        "object_type": "graph_schema",
        "table_key": "",
        "metadata": '{"source":"node Part { name: String }","document":"{}","hash":"h1"}',
    }
    assert len(rows) == 2 * 2 + 2 + 3 + 1 + 1


def test_a_linear_version_is_named_as_lance_names_it() -> None:
    metadata = row(rows_of(FULL), "edge:Fits$00000000000000000003")["metadata"]
    path = json.loads(metadata)["manifest_path"]
    assert path == "edges/f/_versions/18446744073709551614.manifest"


def test_the_head_of_a_branch() -> None:
    on_branch = image(commits=(commit(1, manifest_branch="a/b"),))
    assert row(rows_of(on_branch), "graph_head:a/b")
    assert decode(rows_of(on_branch)) == on_branch


def test_reading_back() -> None:
    assert decode(rows_of(FULL)) == FULL
    assert list(decode(rows_of(FULL)).tables) == ["edge:Fits", "node:Part"]


def test_the_order_of_rows_means_nothing() -> None:
    assert decode(rows_of(FULL)[::-1]) == FULL


def test_chunks_mean_nothing() -> None:
    rows = encode_image(FULL)
    chunked = pa.concat_tables([rows.slice(0, 4), rows.slice(4)])
    assert decode_image(chunked, where="here") == FULL


def test_a_commit_without_a_key_takes_no_room_for_one() -> None:
    named = [set(json.loads(row(rows_of(FULL), name)["metadata"])) for name in ("c8", "c10")]
    assert named[1] - named[0] == {"merged_parent", "idempotency_key", "request_digest", "summary"}


def test_an_image_without_tables() -> None:
    assert decode(rows_of(image())) == image()


def test_text_of_any_kind() -> None:
    odd = image(
        entry("node:Ünïcode$1", location="nodes/ü"),
        schema=replace(SCHEMA, source='"\n\\ \u2028 \ud800'),
        commits=(commit(1, actor_id="", operation="ladé"),),
    )
    assert decode(rows_of(odd)) == odd


@each(
    ("broken", "invariant"),
    [
        (image(commits=()), "an image has a head commit"),
        (image(commits=(commit(1), commit(1))), "a commit is in an image once"),
        (replace(image(), tables={"node:A": entry("node:B")}), "node:B is kept under its own key"),
        (image(entry("node:A"), tombstones={"node:A": 3}), "node:A is newer than its tombstone"),
        (image(entry("node:A", table_version=0)), "node:A is newer than its tombstone"),
    ],
)
def test_an_image_that_would_not_read_back_is_not_written(broken: Image, invariant: str) -> None:
    with pytest.raises(InvariantBroken, match=invariant):
        encode_image(broken)


def without(object_id: str) -> Callable[[Rows], None]:
    return lambda rows: rows.remove(row(rows, object_id))


def twice(object_id: str) -> Callable[[Rows], None]:
    return lambda rows: rows.append(row(rows, object_id))


def with_cell(object_id: str, /, **cells: object) -> Callable[[Rows], None]:
    return lambda rows: row(rows, object_id).update(cells)


def with_metadata(object_id: str, **values: object) -> Callable[[Rows], None]:
    def damage(rows: Rows) -> None:
        found = row(rows, object_id)
        found["metadata"] = json.dumps({**json.loads(found["metadata"]), **values})

    return damage


DAMAGES = [
    (without("node:Part"), "`node:Part` has a version but is not registered"),
    (without(PART), "`node:Part` is registered but has no version"),
    (without("c8"), "a commit is missing or there twice"),
    (without("c10"), "object_id of row `graph_head:main` is 'graph_head:main', expected"),
    (without("graph_head:main"), "it has 0 rows of type graph_head, expected one"),
    (without("graph_schema"), "it has 0 rows of type graph_schema, expected one"),
    (twice("node:Part"), "`node:Part` is registered twice"),
    (twice(PART), "`node:Part` has two versions 4"),
    (twice("c9"), "a commit is missing or there twice"),
    (twice("graph_head:main"), "it has 2 rows of type graph_head, expected one"),
    (twice("graph_schema"), "it has 2 rows of type graph_schema, expected one"),
    (with_cell("node:Part", object_type="view"), "object_type of row `node:Part` is 'view'"),
    (with_cell("node:Part", object_type=None), "row `node:Part` has no object_type"),
    (with_cell("node:Part", object_id=None), "row `None` has no object_id"),
    (with_cell("node:Part", table_key="node:X"), "object_id of row `node:Part` is 'node:Part'"),
    (with_cell("node:Part", location=None), "row `node:Part` has no location"),
    (with_cell(PART, table_key=None), f"row `{PART}` has no table_key"),
    (with_cell(PART, table_version=None), f"row `{PART}` has no table_version"),
    (with_cell(PART, table_version=5), f"object_id of row `{PART}` is"),
    (with_cell(PART, table_version=0), "table_version of row .* expected a whole number from 1"),
    (with_cell(PART, row_count=None), f"row `{PART}` has no row_count"),
    (with_cell(PART, metadata=None), f"row `{PART}` has no metadata"),
    (with_cell(PART, metadata="{"), f"metadata of row `{PART}` is not JSON"),
    (with_cell(PART, metadata="{}"), f"metadata of row `{PART}` has no lance_version"),
    (with_metadata(PART, lance_version=5), "expected text"),
    (with_metadata(PART, lance_version="x"), "expected a number in decimal digits"),
    (with_metadata(PART, fragments=-1), "expected a whole number"),
    (with_metadata(PART, operation="magic"), "operation of metadata of row .* is 'magic'"),
    (with_cell(OLD, table_version=6), f"object_id of row `{OLD}` is"),
    (with_cell("c9", table_version=None), "row `c9` has no table_version"),
    (with_metadata("c9", position=2), "a commit is missing or there twice"),
    (with_metadata("c9", incarnation=None), "metadata of row `c9` has no incarnation"),
    (with_metadata("c9", parent=1), "parent of metadata of row `c9` is 1, expected text"),
    (with_metadata("c9", created_at="now"), "created_at of metadata of row `c9` is 'now'"),
    (with_metadata("c10", idempotency_key=5), "idempotency_key of metadata of row `c10` is 5"),
    (with_metadata("c10", request_digest=[]), "request_digest of metadata of row `c10` is []"),
    (with_metadata("c10", summary={}), "summary of metadata of row `c10` is {}, expected text"),
    (with_metadata("graph_head:main", head_commit_id="c9"), "is 'c9', expected `c10`"),
    (with_cell("graph_schema", object_id="schema"), "expected `graph_schema`"),
    (with_metadata("graph_schema", hash=None), "metadata of row `graph_schema` has no hash"),
]


@each(("damage", "problem"), DAMAGES)
def test_damage_is_told(damage: Callable[[Rows], None], problem: str) -> None:
    rows = rows_of(FULL)
    damage(rows)
    with pytest.raises(StorageError) as caught:
        decode(rows)
    start = "the catalog at here is damaged: "
    assert caught.value.message.startswith(start)
    pattern = re.escape(problem).replace(r"\.\*", ".*")
    assert re.search(pattern, caught.value.message), caught.value.message


def test_no_commits_at_all() -> None:
    rows = [item for item in rows_of(FULL) if item["object_type"] != "graph_commit"]
    with pytest.raises(StorageError, match="it has no row of type graph_commit"):
        decode(rows)


@each(
    ("change", "shown"),
    [
        (lambda rows: rows.drop_columns(["metadata"]), "object_id string, object_type string"),
        (lambda rows: rows.append_column("extra", pa.nulls(len(rows))), "row_count uint64, extra"),
        (lambda rows: rows.append_column("metadata", rows["metadata"]), "uint64, metadata string"),
        (
            lambda rows: rows.set_column(8, "row_count", rows["row_count"].cast("int64")),
            "row_count int64",
        ),
        (lambda rows: rows.select([]), "its columns are none"),
    ],
)
def test_other_columns_are_refused(change: Callable[[pa.Table], pa.Table], shown: str) -> None:
    with pytest.raises(StorageError, match=shown):
        decode_image(change(encode_image(FULL)), where="here")


def test_columns_in_another_order() -> None:
    rows = encode_image(FULL)
    assert decode_image(rows.select(IMAGE_SCHEMA.names[::-1]), where="here") == FULL

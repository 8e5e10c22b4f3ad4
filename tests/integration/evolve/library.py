"""A library of articles, and the stages its schema goes through: together every kind of step.

Stages touch different declarations, so they may be taken in any order, or on different branches.
`evolved` says in plain Python what all of them make of a row.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from omnigraph_core.engine.omnigraph import Omnigraph

if TYPE_CHECKING:
    from omnigraph_core.manifest.snapshot import Snapshot

SCHEMA: Final = """
interface Named { label: String? }
interface Sized { size: I32? }
node Article implements Named, Sized {
  slug: String @key
  title: String
  state: enum(draft, live, gone)
  access: enum(all, some)
  mood: String?
  views: I32?
  pages: [I32]?
  ratio: F32?
  score: F32
  cover: Blob?
  tags: [String]?
  extra: String?
  topic: Vector(4)? @embed("title")
  shape: Vector(2)?
  @range(views, 0..1000)
}
node Shelf { code: String @key }
node Plain { code: String @key }
node Scrap { code: String @key }
edge On: Article -> Shelf @card(0..2) { since: Date?  weight: U32? }
edge Near: Shelf -> Shelf
"""
ARTICLE, ON = "node:Article", "edge:On"


@dataclass(frozen=True, slots=True)
class Stage:
    """Pieces of text to replace in a schema, and the kinds of steps that takes."""

    name: str
    kinds: frozenset[str]
    edits: tuple[tuple[str, str], ...]

    def applied_to(self, source: str) -> str:
        for old, new in self.edits:
            assert source.count(old) == 1, f"{old!r} in {source}"
            source = source.replace(old, new)
        return source


def _stage(name: str, kinds: str, *edits: tuple[str, str]) -> Stage:
    return Stage(name, frozenset(kinds.split()), edits)


STAGES: Final = (
    _stage(
        "more",
        "add_type add_property",
        ("node Scrap", "node Topic { name: String @key }\nnode Scrap"),
        ("edge Near", "edge About: Article -> Topic { degree: F64? }\nedge Near"),
        ("  topic:", "  memo: [String]?\n  scan: Blob?\n  rating: I64 @default(3)\n  topic:"),
        ("since: Date?", 'since: Date?  how: String @default("upright")'),
    ),
    _stage(
        "other names",
        "rename_type rename_property",
        ("node Shelf {", 'node Rack @rename_from("Shelf") {'),
        ("Article -> Shelf", "Article -> Rack"),
        ("Shelf -> Shelf", "Rack -> Rack"),
        ("  cover: Blob?", '  picture: Blob? @rename_from("cover")'),
        ("  shape: Vector(2)?", '  outline: Vector(2)? @rename_from("shape")'),
        ("weight: U32?", 'mass: U32? @rename_from("weight")'),
    ),
    _stage(
        "wider types",
        "widen_property",
        ("  pages: [I32]?", "  pages: [I64]?"),
        ("  ratio: F32?", "  ratio: F64?"),
    ),
    _stage(
        "fewer nulls",
        "tighten_nullability update_default",
        ("  extra: String?", '  extra: String @default("none")'),
    ),
    _stage("more nulls", "relax_nullability", ("  score: F32", "  score: F32?")),
    _stage(
        "enums",
        "extend_enum narrow_enum string_to_enum",
        ("enum(draft, live, gone)", "enum(draft, live, kept)"),
        ("  mood: String?", "  mood: enum(calm, wild)?"),
    ),
    _stage("free text", "enum_to_string", ("  access: enum(all, some)", "  access: String")),
    _stage(
        "rules",
        "add_constraint remove_constraint change_cardinality",
        ("  @range(views, 0..1000)", "  @unique(title)"),
        ("@card(0..2)", "@card(0..3)"),
    ),
    _stage(
        "interfaces",
        "change_interfaces change_interface_property widen_property",
        ("interface Sized { size: I32? }", "interface Sized { size: I64? }"),
        ("implements Named, Sized {", "implements Sized {\n  label: String?"),
    ),
    _stage(
        "words",
        "update_type_metadata update_property_metadata",
        ("node Plain {", 'node Plain @description("Nothing special") {'),
        ("  title: String\n", '  title: String @description("As printed")\n'),
    ),
    _stage("other vectors", "change_embedding", ('@embed("title")', '@embed("slug")')),
    _stage(
        "drops",
        "drop_property drop_type",
        ("  tags: [String]?\n", ""),
        ("node Scrap { code: String @key }\n", ""),
    ),
)


def article(slug: str, **values: Any) -> dict[str, Any]:
    """A record under the first schema."""
    given = {"title": f"About {slug}", "state": "draft", "access": "all", "score": 0.5}
    return {"type": "Article", "data": {"slug": slug, **given, **values}}


def on(id: str, slug: str, code: str, **values: Any) -> dict[str, Any]:
    return {"edge": "On", "from": slug, "to": code, "data": {"id": id, **values}}


FIRST: Final = (
    article(
        "a1", mood="calm", views=1, pages=[1, 2], ratio=0.1, cover="base64:AAE=", tags=["x"],
        extra="e", shape=[1.0, -0.0], label="L", size=4,
    ),
    article("a2", state="live", access="some", pages=[], tags=[], cover="base64:"),
    article("a3", mood="wild", views=1000),
    *({"type": "Shelf", "data": {"code": code}} for code in "bc"),
    {"type": "Plain", "data": {"code": "p"}},
    {"type": "Scrap", "data": {"code": "s"}},
    on("o1", "a1", "b", weight=3, since="2024-02-29"),
    on("o2", "a2", "c"),
    on("o3", "a3", "b"),
    {"edge": "Near", "from": "b", "to": "c", "data": {"id": "n1"}},
)  # fmt: skip


def new_library(address: str) -> Omnigraph:
    """Three articles on two shelves, in two fragments."""
    og = Omnigraph.init(address, SCHEMA)
    put(og, "main", *FIRST)
    put(og, "main", article("a2", state="live", access="some", pages=[], tags=[], cover="base64:"))
    return og


def put(og: Omnigraph, branch: str, *records: dict[str, Any]) -> None:
    og.load("".join(json.dumps(record) + "\n" for record in records).encode(), branch=branch)


Content = dict[str, dict[str, dict[str, Any]]]
"""Rows by id, by table."""


def content(og: Omnigraph, snapshot: Snapshot) -> Content:
    return {
        key: {row["id"]: row for row in og.table(snapshot, key).read().to_pylist()}
        for key in snapshot.tables
    }


def without_vectors(found: Content) -> Content:
    """Without those that were made of text."""
    made = {"topic", "topic#origin"}
    return {
        key: {
            id: {name: value for name, value in row.items() if name not in made}
            for id, row in rows.items()
        }
        for key, rows in found.items()
    }


def evolved(first: Content) -> Content:
    """What the rows of the first schema are once all stages were taken."""
    after = {key: {id: dict(row) for id, row in rows.items()} for key, rows in first.items()}
    del after["node:Scrap"]
    after["node:Rack"] = after.pop("node:Shelf")
    after |= {"node:Topic": {}, "edge:About": {}}
    for row in after[ARTICLE].values():
        row |= {"picture": row.pop("cover"), "picture#uri": row.pop("cover#uri")}
        row |= {"outline": row.pop("shape"), "memo": None, "scan": None, "scan#uri": None}
        row |= {"rating": 3, "extra": "none" if row["extra"] is None else row["extra"]}
        del row["tags"]
    for row in after[ON].values():
        row |= {"mass": row.pop("weight"), "how": "upright"}
    return after

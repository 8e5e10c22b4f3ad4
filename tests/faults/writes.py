"""Loads, changes and backfills as fault tests run them: each takes a word, which is its key too.

Every one of them writes two node tables and an edge table, where it can.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.engine.staged_frames import publish_frames, stage_frame

if TYPE_CHECKING:
    from collections.abc import Sequence

SCHEMA: Final = """
node Part {
  sku: String @key
  name: String? @index
  stock: I64?
  shape: Vector(4)? @embed("name")
}

node Crate {
  label: String @key
}

node Bin {
  code: String @key
}

edge Holds: Crate -> Part {
  count: I64?
}
"""
SOME: Final = ("a1", "a2", "a3")
"""Parts that the prepared graphs have on main."""

_GONE: Final = {"first": "a1", "second": "a2"}
_INSERT: Final = """
query add($word: String) {
  insert Part { sku: $word, name: $word, stock: 1 }
  insert Crate { label: $word }
  insert Holds { from: $word, to: $word }
}
"""
_UPDATE: Final = """
query fill($word: String, $sku: String) { update Part set { name: $word } where sku = $sku }
"""
_DELETE: Final = """
query drop($sku: String) {
  delete Part where sku = $sku
  delete Crate where label = $sku
}
"""


def new_graph(address: str) -> Omnigraph:
    return Omnigraph.init(address, SCHEMA, actor="tester")


def make_written(address: str) -> None:
    """Parts, each in a crate of its own."""
    new_graph(address).load(records(SOME), actor="tester")


def make_pending(address: str) -> None:
    """Vectors are still to be made."""
    og = new_graph(address)
    og.load(records(SOME), embed="off", actor="tester")


def records(ids: Sequence[str], stock: int = 0) -> bytes:
    """A part, its crate, and the edge from this to that for each id."""
    found: list[dict[str, object]] = []
    for id in ids:
        found.append({"type": "Part", "data": {"sku": id, "name": f"part {id}", "stock": stock}})
        found.append({"type": "Crate", "data": {"label": id}})
        found.append({"edge": "Holds", "from": id, "to": id, "data": {"id": f"edge {id}"}})
    return "".join(json.dumps(record) + "\n" for record in found).encode()


def publish_staged(og: Omnigraph, word: str) -> None:
    """Frames of three types; a repeat stages the same rows again."""
    frames = {
        "Part": {"sku": [word], "name": [word], "stock": [1]},
        "Crate": {"label": [word]},
        "Holds": {"src": [word], "dst": [word]},
    }
    staged = [
        stage_frame(og, word, name, pa.table(columns), label=name)
        for name, columns in frames.items()
    ]
    publish_frames(og, word, {frame.name: frame.label for frame in staged}, engine="local")


def load_append(og: Omnigraph, word: str) -> None:
    og.load(records([word, f"{word} too"]), mode="append", idempotency_key=word, actor="tester")


def load_merge(og: Omnigraph, word: str) -> None:
    og.load(records(["a1", word], stock=len(word)), idempotency_key=word, actor="tester")


def load_overwrite(og: Omnigraph, word: str) -> None:
    og.load(records([word, "b1"]), mode="overwrite", idempotency_key=word, actor="tester")


def insert(og: Omnigraph, word: str) -> None:
    og.mutate(_INSERT, {"word": word}, idempotency_key=word, actor="tester")


def update(og: Omnigraph, word: str) -> None:
    given = {"word": word, "sku": _GONE[word]}
    og.mutate(_UPDATE, given, idempotency_key=word, actor="tester")


def delete(og: Omnigraph, word: str) -> None:
    """With the edges that end there."""
    og.mutate(_DELETE, {"sku": _GONE[word]}, idempotency_key=word, actor="tester")


def backfill(og: Omnigraph, word: str) -> None:
    """The second time there is something to do again."""
    if word == "second":
        og.load(records([word]), embed="off", idempotency_key=word, actor="tester")
    og.embed_backfill(actor="tester")

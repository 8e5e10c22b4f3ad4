"""Schema changes as fault tests make them: each takes a word and changes the types of that name.

Between them they take every kind of physical step: columns that come empty or filled, go, change
their name, widen or lose their nulls, tables that come, go and change their name.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.settings import SCHEMA_LOCK

if TYPE_CHECKING:
    from collections.abc import Iterator

WORDS: Final = ("first", "second")
_OLD: Final = """
node {title} {{
  code: String @key
  note: String?
  size: I32?
  grade: I64?
  kind: String?
  scan: Blob?
}}
node {title}Box {{
  label: String @key
}}
edge {title}In: {title} -> Bin {{
  weight: F32?
}}
edge {title}Near: {title} -> {title}
"""
_STEPS: Final = """
node {title} {{
  code: String @key
  remark: String? @rename_from("note")
  size: I64?
  grade: I64 @default(3)
  scan: Blob?
  more: [String]?
  filled: String @default("by default")
}}
node {title}Case {{
  label: String @key
}}
edge {title}Lies: {title} -> Bin @rename_from("{title}In") {{
  weight: F64?
}}
edge {title}Near: {title} -> {title}
"""
_FEWER: Final = """
node {title} {{
  code: String @key
  note: String?
  size: I32?
  grade: I64?
}}
edge {title}In: {title} -> Bin {{
  weight: F32?
}}
"""


def take_steps(og: Omnigraph, word: str) -> None:
    """Everything but for good."""
    _apply(og, word, _STEPS, allow_data_loss=False)


def drop_softly(og: Omnigraph, word: str) -> None:
    _apply(og, word, _FEWER, allow_data_loss=False)


def drop_for_good(og: Omnigraph, word: str) -> None:
    """Two columns, a node type and an edge type."""
    _apply(og, word, _FEWER, allow_data_loss=True)


def _apply(og: Omnigraph, word: str, wanted: str, *, allow_data_loss: bool) -> None:
    """A lock that a killed process left has expired by now."""
    title = word.title()
    source = og.schema_show().source
    source = source.replace(_OLD.format(title=title), wanted.format(title=title))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(SCHEMA_LOCK.name, "0.001")
        og.schema_apply(source, allow_data_loss=allow_data_loss, actor="tester")


def make_evolving(address: str) -> None:
    """Rows in every table of both words, in two fragments of some."""
    source = "node Bin {\n  code: String @key\n}\n"
    source += "".join(_OLD.format(title=word.title()) for word in WORDS)
    og = Omnigraph.init(address, source, actor="tester")
    og.load(_jsonl({"type": "Bin", "data": {"code": "bin"}}), actor="tester")
    for word in WORDS:
        og.load(_jsonl(*_rows(word.title())), actor="tester")
        more = {"code": "c3", "note": None, "size": -3, "grade": 7, "kind": "k"}
        og.load(_jsonl({"type": word.title(), "data": more}), actor="tester")


def _rows(title: str) -> Iterator[dict[str, Any]]:
    for code, scan in (("c1", "base64:AAE="), ("c2", None)):
        row = {"code": code, "note": f"note {code}", "size": 1, "kind": "k", "scan": scan}
        yield {"type": title, "data": row}
    yield {"type": f"{title}Box", "data": {"label": "box"}}
    yield {"edge": f"{title}In", "from": "c1", "to": "bin", "data": {"id": "in", "weight": 0.5}}
    yield {"edge": f"{title}Near", "from": "c1", "to": "c2", "data": {"id": "near"}}


def _jsonl(*rows: dict[str, Any]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()

"""Random inputs for loads of a small graph of every kind of rule, with mistakes of every kind."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from omnigraph_core.errors import DataError

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from omnigraph_core.engine.omnigraph import Omnigraph
    from omnigraph_core.write.load_model import LoadResult

SCHEMA: Final = """
node Part {
  sku: String @key
  name: String?
  stock: I64?
  code: String?
  size: F64?
  grade: String?
  @range(stock, 0..)
  @unique(code)
  @unique(size, grade)
}
node Note { text: String }
node Bin { label: String @key  room: I64? }
edge Holds: Bin -> Part @card(0..3) { amount: I64? }
edge Needs: Part -> Part @card(1..2)
edge About: Note -> Part { @unique(src, dst) }
"""
MODES: Final = ("overwrite", "append", "merge")
_ULID: Final = re.compile(r"\b[0-9A-HJKMNP-TV-Z]{26}\b")
_BROKEN: Final = (
    '{"type": "Part", "data": {"sku": "x"',
    '{"type": "Part", "data": {"sku": 7}}',
    '{"type": "Part", "data": {"nmae": "x"}}',
    '{"type": "Thing", "data": {}}',
    '{"edge": "Holds", "from": "b1"}',
    '{"type": "Bin", "data": {"label": "b1", "room": "wide"}}',
    "[1, 2]",
)


def records(rng: random.Random, count: int, share_bad: float) -> list[str]:
    """Lines of records, so many of them bad."""
    made = _Maker(rng, count, share_bad)
    lines = [made.line() for _ in range(count)]
    rng.shuffle(lines)
    return lines


class _Maker:
    def __init__(self, rng: random.Random, count: int, share_bad: float) -> None:
        self._rng = rng
        self._count = count
        self._share_bad = share_bad
        self._ids: dict[str, list[str]] = {"Part": [], "Bin": [], "Note": []}

    def line(self) -> str:
        rng = self._rng
        if rng.random() < self._share_bad / 3:
            return rng.choice((*_BROKEN, "", "// nothing"))
        kind = rng.random()
        if kind < 0.3:
            return json.dumps({"type": "Part", "data": self._part()})
        if kind < 0.45:
            label = self._new("Bin", "b")
            return json.dumps({"type": "Bin", "data": {"label": label, "room": rng.randrange(9)}})
        if kind < 0.55:
            data: dict[str, object] = {"text": "é" * rng.randrange(3)}
            if rng.random() < 0.6:
                data["id"] = self._new("Note", "n")
            return json.dumps({"type": "Note", "data": data}, ensure_ascii=False)
        return json.dumps(self._edge())

    def _is_bad(self) -> bool:
        return self._rng.random() < self._share_bad

    def _new(self, kind: str, letter: str) -> str:
        """An id of a node; a bad one is another's."""
        ids = self._ids[kind]
        if ids and self._is_bad():
            return self._rng.choice(ids)
        ids.append(f"{letter}{self._rng.randrange(self._count * 2)}")
        return ids[-1]

    def _part(self) -> dict[str, object]:
        rng = self._rng
        data: dict[str, object] = {"sku": self._new("Part", "p")}
        if rng.random() < 0.5:
            data["stock"] = -1 if self._is_bad() else rng.randrange(10)
        if rng.random() < 0.5:
            data["code"] = f"c{rng.randrange(self._count if self._is_bad() else 10**6)}"
        if rng.random() < 0.5:
            data["size"] = rng.choice((0.0, -0.0, 1.5)) if self._is_bad() else rng.random()
            data["grade"] = rng.choice("ab")
        return data

    def _end(self, kind: str) -> str:
        ids = self._ids[kind]
        return "nowhere" if not ids or self._is_bad() else self._rng.choice(ids)

    def _edge(self) -> dict[str, object]:
        name, source, target = self._rng.choice(
            (("Holds", "Bin", "Part"), ("Needs", "Part", "Part"), ("About", "Note", "Part"))
        )
        edge: dict[str, object] = {
            "edge": name,
            "from": self._end(source),
            "to": self._end(target),
        }
        if self._rng.random() < 0.5:
            edge["data"] = {"id": f"e{self._rng.randrange(self._count * 4)}"}
        return edge


def outcome(load: Callable[[], LoadResult]) -> tuple[str, Any]:
    """What became of a load, without ids that are made anew each time."""
    try:
        result = load()
    except DataError as refused:
        told = json.dumps(refused.details(), default=str, indent=0)
        return "refused", _ULID.sub("ULID", told).splitlines()
    return "loaded", {**result.to_json(), "commit_id": None}


def content(graph: Omnigraph, branch: str = "main") -> list[str]:
    """All rows of a branch, without ids that are made anew each time."""
    lines = b"".join(graph.export_jsonl(branch)).decode().splitlines()
    return sorted(_ULID.sub("ULID", line) for line in lines)

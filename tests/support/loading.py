"""A schema with every rule and every kind of property, and the shortest ways to load it."""

from __future__ import annotations

import functools
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import DataError
from tests.support.graphs import copied

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from omnigraph_core.violations import Violation

SCHEMA = """
node Part {
  sku: String @key
  name: String
  kind: enum(bolt, nut)?
  stock: I64?
  code: String?
  serial: String? @unique
  maker: String?
  model: String?
  weight: F64?
  shape: Vector(3)?
  tags: [String]?
  drawing: Blob?
  colour: String? @default("grey")
  @unique(maker, model)
  @range(stock, 0..100)
  @check(code, "^[A-Z]{2}$")
}

node Bin {
  label: String
  row: I32
  @key(label, row)
}

node Note {
  text: String?
  rank: I64?
  @range(rank, 0..9)
}

node Article {
  slug: String @key
  title: String?
  body: String?
  picture: Blob?
  topic: Vector(4)? @embed("body")
}

node Page {
  slug: String @key
  body: String
  topic: Vector(4) @embed("body")
}

edge Holds: Bin -> Part @card(0..2) {
  grade: enum(good, poor)?
  count: I64?
  @unique(src, dst)
}

edge Needs: Note -> Part @card(1..2)
"""

Record = dict[str, Any]


def new_graph(path: Path) -> Omnigraph:
    return Omnigraph.init(str(path / "graph"), SCHEMA, actor="tester")


def small_graph(path: Path) -> Omnigraph:
    """Three parts, two bins and a note; one bin holds part `a`, and the note needs it."""
    return copied(_small_graph(), path / "graph")


@functools.cache
def _small_graph() -> Omnigraph:
    """Built once in a process; in the directory of the run, which ends with it."""
    graph = new_graph(Path(tempfile.mkdtemp()))
    graph.load(
        lines(
            part("a", serial="S1", maker="Acme", model="X"),
            part("b"),
            part("c"),
            bin_("north"),
            bin_("south"),
            note("n", rank=1),
            holds("north", "a", "h1"),
            needs("n", "a", "w1"),
        )
    )
    return graph


def part(sku: str, **values: Any) -> Record:
    return {"type": "Part", "data": {"sku": sku, "name": f"part {sku}", **values}}


def bin_(label: str, row: int = 1) -> Record:
    return {"type": "Bin", "data": {"label": label, "row": row}}


def bin_id(label: str, row: int = 1) -> str:
    return f'["{label}","{row}"]'


def note(id: str | None = None, **values: Any) -> Record:
    return {"type": "Note", "data": values if id is None else {"id": id, **values}}


def article(slug: str, **values: Any) -> Record:
    return {"type": "Article", "data": {"slug": slug, **values}}


def page(slug: str, **values: Any) -> Record:
    return {"type": "Page", "data": {"slug": slug, **values}}


def holds(label: str, sku: str, id: str | None = None, **values: Any) -> Record:
    return edge("Holds", bin_id(label), sku, id, **values)


def needs(note_id: str, sku: str, id: str | None = None) -> Record:
    return edge("Needs", note_id, sku, id)


def edge(name: str, src: str, dst: str, id: str | None = None, **values: Any) -> Record:
    data = values if id is None else {"id": id, **values}
    return {"edge": name, "from": src, "to": dst, "data": data}


def lines(*records: Record | str) -> bytes:
    """Records as JSONL; text stands for itself."""
    texts = [item if isinstance(item, str) else json.dumps(item) for item in records]
    return "".join(f"{text}\n" for text in texts).encode()


def exported(graph: Omnigraph, branch: str = "main", **filters: Any) -> bytes:
    return b"".join(graph.export_jsonl(branch, **filters))


def rows(graph: Omnigraph, type_name: str, branch: str = "main") -> dict[str, Record]:
    """The rows of a type by id; those of edges with `from` and `to`, without what is null."""
    found = {}
    for line in exported(graph, branch, types=[type_name]).splitlines():
        record = json.loads(line)
        ends = {name: record[name] for name in ("from", "to") if name in record}
        values = {name: value for name, value in record["data"].items() if value is not None}
        id = values.pop("id")
        found[id] = {**ends, **values}
    return found


def ids(graph: Omnigraph, type_name: str, branch: str = "main") -> list[str]:
    return sorted(rows(graph, type_name, branch))


def state(graph: Omnigraph, branch: str = "main") -> tuple[object, ...]:
    """What a refused write must leave alone, as another process sees it."""
    return _seen(graph, branch, exported)


def _state_before(graph: Omnigraph) -> tuple[object, ...]:
    """The same before a write: the rows of a commit are those of the first export of it."""

    def once(other: Omnigraph, branch: str) -> bytes:
        key = (other.uri, other.head_commit_id_for_branch(branch))
        if key not in _EXPORTS:
            _EXPORTS[key] = exported(other, branch)
        return _EXPORTS[key]

    return _seen(graph, "main", once)


_EXPORTS: dict[tuple[str, str], bytes] = {}


def _seen(
    graph: Omnigraph, branch: str, export: Callable[[Omnigraph, str], bytes]
) -> tuple[object, ...]:
    other = Omnigraph.open(graph.uri)
    return (
        other.head_commit_id_for_branch(branch),
        other.snapshot(branch),
        other.branch_list(),
        export(other, branch),
    )


def refused(graph: Omnigraph, *records: Record | str, **options: Any) -> DataError:
    """The error of a load that must be refused and leave everything as it was."""
    before = _state_before(graph)
    with pytest.raises(DataError) as caught:
        graph.load(lines(*records), **options)
    assert state(graph) == before
    return caught.value


def refused_mutation(
    graph: Omnigraph, query: str, params: Mapping[str, object] | None = None, **options: Any
) -> DataError:
    before = _state_before(graph)
    with pytest.raises(DataError) as caught:
        graph.mutate(query, params, **options)
    assert state(graph) == before
    return caught.value


def facts(violation: Violation) -> tuple[str, int | None]:
    return str(violation.rule), violation.line


def places(problem: DataError) -> list[tuple[str, int | None]]:
    """Rule and line of everything listed."""
    return [facts(violation) for violation in problem.violations]

"""A write that is about to be published, and what somebody else does just then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import (
    ConstraintViolation,
    DataError,
    DuplicateKey,
    EndpointNotFound,
    PreconditionFailed,
    VersionConflict,
)
from tests.support.constraints import (
    BIN,
    LIES_IN,
    PART,
    bin,
    check_every_version,
    jsonl,
    lies_in,
    new_graph,
    part,
    rows_of,
)
from tests.support.meanwhile import meanwhile

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Write = Callable[[Omnigraph], object]

INSERT = "query put($sku: String, $label: String) { insert LiesIn { from: $sku, to: $label } }"
ADD = "query add($sku: String, $code: String?) { insert Part { sku: $sku, code: $code } }"
STOCK = "query fill($sku: String) { update Part set { stock: 9 } where sku = $sku }"
DELETE = "query drop($sku: String) { delete Part where sku = $sku }"
DELETE_BIN = "query clear($label: String) { delete Bin where label = $label }"
TAKE = "query take($sku: String) { delete LiesIn where from = $sku }"


@pytest.fixture
def og(tmp_path: Path) -> Omnigraph:
    return filled_graph(str(tmp_path / "graph"))


def filled_graph(address: str) -> Omnigraph:
    """Parts a to c and bins x and y; only c lies in one."""
    made = new_graph(address)
    parts = [part(sku, code=sku) for sku in "abc"]
    made.load(jsonl(*parts, bin("x"), bin("y"), lies_in("c", "x")))
    return made


def loaded(mode: str, *records: dict[str, object]) -> Write:
    return lambda og: og.load(jsonl(*records), mode=mode)


def mutated(query: str, **given: str) -> Write:
    return lambda og: og.mutate(query, given)


@dataclass(frozen=True, slots=True)
class Case:
    """`write` meets `meanwhile`, once: the table it is told of, the rule it breaks, or neither."""

    name: str
    write: Write
    meanwhile: Write
    conflict: str | None = None
    error: type[DataError] | None = None


ADD_D = mutated(ADD, sku="d", code="d")
PUT_A = mutated(INSERT, sku="a", label="x")
DROP_A = mutated(DELETE, sku="a")
ONLY_C = loaded("overwrite", part("c"))
A_AND_C = loaded("overwrite", part("a"), part("c"))
APPEND_D = loaded("append", part("d"))
BIN_Z = loaded("merge", bin("z"))
LOST = EndpointNotFound
BROKEN = ConstraintViolation
CASES = [
    Case("an insert, another one", ADD_D, mutated(ADD, sku="e", code="e")),
    Case("an insert, the same code", ADD_D, mutated(ADD, sku="e", code="d"), error=BROKEN),
    Case("an insert, the same key", ADD_D, mutated(ADD, sku="d", code="z")),
    Case("an edge, its end deleted", PUT_A, DROP_A, error=LOST),
    Case("an edge, its other end deleted", PUT_A, mutated(DELETE_BIN, label="x"), error=LOST),
    Case("an edge, its end overwritten", PUT_A, ONLY_C, error=LOST),
    Case("an edge, its end kept", PUT_A, A_AND_C),
    Case("an edge, the same", PUT_A, PUT_A, error=BROKEN),
    Case("an append, another one", APPEND_D, loaded("append", part("e"))),
    Case("an append, the same", APPEND_D, APPEND_D, error=DuplicateKey),
    Case("a merge, the same", loaded("merge", part("d", stock=1)), loaded("merge", part("d"))),
    Case("a merge, an end deleted", loaded("merge", lies_in("a", "y")), DROP_A, error=LOST),
    Case("an overwrite, an insert", ONLY_C, ADD_D, conflict=PART),
    Case("an overwrite, an edge", A_AND_C, PUT_A, conflict=LIES_IN),
    Case("an overwrite, another table", ONLY_C, BIN_Z),
    Case("an update, of the same table", mutated(STOCK, sku="a"), ADD_D, conflict=PART),
    Case("an update, an edge", mutated(STOCK, sku="a"), PUT_A),
    Case("a delete, an edge to it", DROP_A, PUT_A, conflict=LIES_IN),
    Case(
        "a delete, of its edge", mutated(DELETE, sku="c"), mutated(TAKE, sku="c"), conflict=LIES_IN
    ),
    Case("a delete, another table", mutated(DELETE, sku="c"), BIN_Z),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_write_meets_another(case: Case, og: Omnigraph, tmp_path: Path) -> None:
    """Refused, it has left nothing; landed, or done again, it is as if it had come later."""
    one_by_one = filled_graph(str(tmp_path / "beside"))
    case.meanwhile(one_by_one)
    other = Omnigraph.open(og.uri)
    with meanwhile(lambda: case.meanwhile(other)):
        check_ending(case, og)
    if case.error or case.conflict:
        assert content(og) == content(one_by_one)
        assert check_every_version(og) == 3
    if case.conflict:
        case.write(og)
    if not case.error:
        case.write(one_by_one)
        assert content(og) == content(one_by_one)
        assert check_every_version(og) == 4


def content(og: Omnigraph) -> dict[str, list[dict[str, object]]]:
    """All rows but for ids of edges, which no two runs share."""
    rows = rows_of(og, og.snapshot())
    edges = [{**row, "id": None} for row in rows[LIES_IN]]
    return {**rows, LIES_IN: sorted(edges, key=lambda row: (row["src"], row["dst"]))}


def check_ending(case: Case, og: Omnigraph) -> None:
    if case.conflict:
        with pytest.raises(VersionConflict) as told:
            case.write(og)
        assert told.value.table_key == case.conflict
        assert told.value.retryable
    elif case.error:
        with pytest.raises(case.error) as refused:
            case.write(og)
        assert len(refused.value.violations) == 1
    else:
        case.write(og)


def test_a_delete_repeated_takes_the_new_edge_along(og: Omnigraph) -> None:
    other = Omnigraph.open(og.uri)
    with meanwhile(lambda: PUT_A(other)), pytest.raises(VersionConflict):
        og.mutate(DELETE, {"sku": "a"})
    assert [row["src"] for row in content(og)[LIES_IN]] == ["a", "c"]
    done = og.mutate(DELETE, {"sku": "a"})
    assert (done.affected_nodes, done.affected_edges) == (1, 1)
    assert [row["src"] for row in content(og)[LIES_IN]] == ["c"]


def test_an_insert_only_onto_a_named_commit(og: Omnigraph) -> None:
    """With `if_commit` nothing is run again: the author wants exactly that state."""
    other = Omnigraph.open(og.uri)
    head = og.head_commit_id_for_branch()
    with meanwhile(lambda: other.load(jsonl(bin("z")))), pytest.raises(PreconditionFailed) as told:
        og.mutate(ADD, {"sku": "d"}, if_commit=head)
    assert (told.value.member, told.value.expected) == ("head", head)
    assert len(content(og)[PART]) == 3
    assert len(content(og)[BIN]) == 3


def test_a_handle_that_knows_an_old_state(og: Omnigraph) -> None:
    """What it knows is good enough to begin with, never to refuse and never to break a rule."""
    other = Omnigraph.open(og.uri)
    ADD_D(other)
    og.mutate(INSERT, {"sku": "d", "label": "x"})
    other.mutate(DELETE, {"sku": "d"})
    with pytest.raises(EndpointNotFound):
        og.load(jsonl(lies_in("d", "y")))
    other.mutate(ADD, {"sku": "e", "code": "wanted"})
    with pytest.raises(ConstraintViolation, match="is held by 'e'"):
        og.mutate(ADD, {"sku": "f", "code": "wanted"})
    other.mutate(DELETE, {"sku": "e"})
    og.mutate(ADD, {"sku": "f", "code": "wanted"})
    assert [row["id"] for row in content(og)[PART]] == ["a", "b", "c", "f"]
    check_every_version(og)


def test_what_is_left_out_depends_on_the_newest_rows(og: Omnigraph) -> None:
    """A record is bad no more once the row it clashed with is gone; another one has become so."""
    other = Omnigraph.open(og.uri)

    def swap() -> None:
        other.mutate(DELETE, {"sku": "a"})
        other.mutate(ADD, {"sku": "d"})

    given = jsonl(part("a", stock=1), part("d", stock=1), part("e", stock=1))
    with meanwhile(swap):
        done = og.load(given, mode="append", skip_bad=True)
    assert (done.nodes_loaded, done.records_rejected) == (2, 1)
    stocks = {row["id"]: row["stock"] for row in content(og)[PART]}
    assert stocks == {"a": 1, "b": None, "c": None, "d": None, "e": 1}

"""Every mistake a mutation can hold once it runs: a place in it is a statement."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.errors import (
    CompileError,
    ConstraintViolation,
    DataError,
    EndpointNotFound,
    ParameterError,
    RecordError,
)
from omnigraph_core.violations import Rule
from tests.support.cases import each
from tests.support.loading import (
    bin_id,
    places,
    refused_mutation,
    small_graph,
    state,
)

if TYPE_CHECKING:
    from omnigraph_core.engine.omnigraph import Omnigraph


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Omnigraph:
    """One graph for every refused write: each of them leaves it as it was."""
    return small_graph(tmp_path_factory.mktemp("errors"))


@dataclass(frozen=True)
class WrongStatement:
    name: str
    query: str
    error: type[DataError]
    rule: Rule
    says: tuple[str, ...]
    statement: int | None = 1
    type_name: str | None = None
    property: str | None = None
    value: object = None
    id: str | None = None
    params: dict[str, object] = field(default_factory=dict)


def insert_part(sku: str, **values: str) -> str:
    given = {"sku": f'"{sku}"', "name": '"z"', **values}
    return f"insert Part {{ {', '.join(f'{name}: {value}' for name, value in given.items())} }}"


def insert_holds(label: str, sku: str) -> str:
    return f"insert Holds {{ from: '{bin_id(label)}', to: \"{sku}\" }}"


STATEMENTS = [
    WrongStatement(
        "a parameter that is null in required",
        "query q($name: String?) { insert Note { rank: 1 } "
        'insert Part { sku: "z", name: $name } }',
        ConstraintViolation, Rule.REQUIRED, ("missing required property `name` on Part",),
        statement=2, type_name="Part", property="name", id="z", params={"name": None},
    ),
    WrongStatement(
        "a parameter outside an enum",
        "query q($kind: String) { " + insert_part("z", kind="$kind") + " }",
        ConstraintViolation, Rule.ENUM, ("invalid enum value 'screw' on Part.kind", "bolt | nut"),
        type_name="Part", property="kind", value="screw", id="z", params={"kind": "screw"},
    ),
    WrongStatement(
        "range on insert", "query q() { " + insert_part("z", stock="101") + " }",
        ConstraintViolation, Rule.RANGE, ("@range violation on Part.stock", "0..100"),
        type_name="Part", property="stock", value=101, id="z",
    ),
    WrongStatement(
        "range on update", 'query q() { update Part set { stock: 101 } where sku = "b" }',
        ConstraintViolation, Rule.RANGE, ("@range violation on Part.stock", "0..100"),
        type_name="Part", property="stock", value=101, id="b",
    ),
    WrongStatement(
        "check", "query q() { " + insert_part("z", code='"x"') + " }",
        ConstraintViolation, Rule.CHECK, ("@check violation on Part.code", "'x'"),
        type_name="Part", property="code", value="x", id="z",
    ),
    WrongStatement(
        "unique in the query",
        f"query q() {{ {insert_part('y', serial='1'.join(2 * [chr(34)]))} "
        f"{insert_part('z', serial='1'.join(2 * [chr(34)]))} }}",
        ConstraintViolation, Rule.UNIQUE,
        ("@unique violation on Part.serial: '1' was given before, at statement 1",),
        statement=2, type_name="Part", property="serial", value="1", id="z",
    ),
    WrongStatement(
        "unique against committed",
        'query q() { update Part set { maker: "Acme", model: "X" } where sku = "b" }',
        ConstraintViolation, Rule.UNIQUE, ("@unique violation on Part.(maker, model)", "'a'"),
        type_name="Part", property="maker, model", value=["Acme", "X"], id="b",
    ),
    WrongStatement(
        "source that is not there",
        "query q($bin: String) { insert Holds { from: $bin, to: \"b\" } }",
        EndpointNotFound, Rule.ENDPOINT, ("src 'west' not found in Bin", "edge Holds"),
        type_name="Holds", property="src", value="west", params={"bin": "west"},
    ),
    WrongStatement(
        "target that is not there",
        "query q() { insert Note { rank: 1 } insert Needs { from: \"n\", to: \"zz\" } }",
        EndpointNotFound, Rule.ENDPOINT, ("dst 'zz' not found in Part", "edge Needs"),
        statement=2, type_name="Needs", property="dst", value="zz",
    ),
    WrongStatement(
        "more than the maximum",
        'query q() { insert Needs { from: "n", to: "b" } insert Needs { from: "n", to: "c" } }',
        ConstraintViolation, Rule.CARDINALITY,
        ("@card violation on edge Needs", "source 'n' has 3", "1..2"),
        statement=2, type_name="Needs", property="src", value="n",
    ),
    WrongStatement(
        "less than the minimum", 'query q() { delete Needs where from = "n" }',
        ConstraintViolation, Rule.CARDINALITY,
        ("@card violation on edge Needs", "source 'n' has 0", "1..2"),
        statement=None, type_name="Needs", property="src", value="n",
    ),
    WrongStatement(
        "a blob that is neither bytes nor address",
        "query q($blob: String) { " + insert_part("z", drawing="$blob") + " }",
        RecordError, Rule.VALUE, ("Part.drawing", "expected a blob as base64:<data> or a URI"),
        type_name="Part", property="drawing", params={"blob": "hello"},
    ),
]  # fmt: skip


@each("wrong", STATEMENTS, ids=lambda wrong: wrong.name)
def test_mutation(graph: Omnigraph, wrong: WrongStatement) -> None:
    problem = refused_mutation(graph, wrong.query, wrong.params)
    assert type(problem) is wrong.error
    (found,) = problem.violations
    assert (found.rule, found.line, found.type_name, found.property, found.value, found.id) == (
        wrong.rule, wrong.statement, wrong.type_name, wrong.property, wrong.value, wrong.id,
    )  # fmt: skip
    assert found.file is None
    if wrong.statement is not None:
        assert found.to_json()["statement"] == wrong.statement
        assert problem.message.startswith(f"statement {wrong.statement}: ")
    for fragment in wrong.says:
        assert fragment in found.message


def test_a_mutation_reports_every_mistake(graph: Omnigraph) -> None:
    statements = [
        insert_part("p1", stock="101"),
        insert_part("p2", code='"x"'),
        'insert Needs { from: "n", to: "zz" }',
        insert_part("p3"),
        insert_part("p4", serial='"S1"'),
    ]
    problem = refused_mutation(graph, f"query q() {{ {' '.join(statements)} }}")
    assert type(problem) is DataError
    assert places(problem) == [("range", 1), ("check", 2), ("endpoint", 3), ("unique", 5)]


SET_KEY = 'update Part set { sku: "y" } where sku = "a"'


@each(
    ("statements", "code", "at", "message"),
    [
        ('insert Part { sku: "z" }', "T12", "Part", "`Part` needs `name`"),
        ('insert Part { name: "z" }', "T12", "Part", "`Part` needs `sku`"),
        ('insert Prat { sku: "z" }', "T10", "Prat", "unknown type `Prat`"),
        ('insert Needs { from: "n" }', "T12", "Needs", "`Needs` needs `to`"),
        ('insert Needs { to: "a" }', "T12", "Needs", "`Needs` needs `from`"),
        (insert_part("z", stok="1"), "T11", "stok", "unknown property `stok` on `Part`"),
        (insert_part("z", stock='"many"'), "T3", '"many"', "expected I64, found String"),
        (insert_part("z", kind='"screw"'), "T3", '"screw"', "is not a value of enum(bolt, nut)"),
        (insert_part("z", shape="[1.0, 2.0]"), "T3", "[1.0", "expected 3 numbers, found 2"),
        (insert_part("z", name="null"), "Q000", "null", "expected a value, found `null`"),
        (SET_KEY, "T16", "sku", "`sku` of `Part` is part of the key and cannot be updated"),
        (
            "insert Note { } delete Note where rank = 1",
            "D2",
            "delete",
            "either deletes, or inserts",
        ),
    ],
)
def test_what_the_compiler_finds_before(
    graph: Omnigraph, statements: str, code: str, at: str, message: str
) -> None:
    before, query = state(graph), f"query q() {{\n{statements}\n}}"
    with pytest.raises(CompileError) as caught:
        graph.mutate(query)
    (found,) = caught.value.diagnostics
    assert (found.code, found.line, found.column) == (code, 2, statements.index(at) + 1)
    assert message in found.message
    assert state(graph) == before


def test_a_vector_parameter_of_another_dimension(graph: Omnigraph) -> None:
    query = f"query q($shape: Vector(3)) {{ {insert_part('z', shape='$shape')} }}"
    problem = refused_mutation(graph, query, {"shape": [1, 2]})
    assert type(problem) is ParameterError
    assert "shape" in problem.message
    assert "3" in problem.message
    assert "2" in problem.message

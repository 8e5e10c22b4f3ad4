"""The front door: one query or a whole file, every problem at once."""

from __future__ import annotations

import pytest

from omnigraph_core.errors import CompileError, QueryNotFound, QuerySyntaxError, QueryTypeError
from omnigraph_core.ir.compile import compile_file, compile_one
from omnigraph_core.ir.nodes import MutationIR, NodeScan, QueryIR
from tests.support.people import people_catalog

GOOD = 'query names() { match { $p: Person $p.name != "x" } return { $p.name } }'
WRITE = 'query add() { insert Person { name: "x" } }'
WRONG = "query wrong() { match { $p: Persn } return { $q.name } }"


def test_a_file_compiles_in_written_order() -> None:
    read, write = compile_file(f"{GOOD}\n{WRITE}", people_catalog())
    assert [read.checked.name, write.checked.name] == ["names", "add"]
    assert isinstance(read.ir, QueryIR)
    assert isinstance(write.ir, MutationIR)
    assert [column.name for column in read.columns] == ["p.name"]
    assert write.columns == ()


def test_what_is_compiled_is_optimised() -> None:
    compiled = compile_one(GOOD, people_catalog())
    assert isinstance(compiled.ir, QueryIR)
    (scan,) = compiled.ir.pipeline
    assert isinstance(scan, NodeScan)
    assert len(scan.filters) == 1


def test_every_problem_of_every_query_is_reported() -> None:
    text = f"{WRONG}\n{GOOD}\n{WRONG.replace('wrong', 'worse')}"
    with pytest.raises(QueryTypeError) as refused:
        compile_file(text, people_catalog(), "things.gq")
    assert {found.line for found in refused.value.diagnostics} == {1, 3}
    assert {found.file for found in refused.value.diagnostics} == {"things.gq"}


def test_one_query_is_not_stopped_by_another_that_is_wrong() -> None:
    assert compile_one(f"{WRONG}\n{GOOD}", people_catalog(), "names").checked.name == "names"
    with pytest.raises(CompileError):
        compile_one(f"{WRONG}\n{GOOD}", people_catalog(), "wrong")


def test_a_name_is_needed_to_choose() -> None:
    with pytest.raises(QueryNotFound):
        compile_one(f"{GOOD}\n{WRITE}", people_catalog())
    with pytest.raises(QueryNotFound, match="did you mean `names`"):
        compile_one(GOOD, people_catalog(), "nmaes")


def test_a_repeated_name_chooses_neither_query() -> None:
    other = GOOD.replace("Person", "Company")
    with pytest.raises(QueryTypeError) as refused:
        compile_one(f"{GOOD}\n{WRITE}\n{other}", people_catalog(), "names")
    assert [(found.code, found.line) for found in refused.value.diagnostics] == [("T40", 3)]
    assert compile_one(f"{GOOD}\n{WRITE}\n{other}", people_catalog(), "add").checked.name == "add"


def test_a_text_that_does_not_parse_is_a_compile_error() -> None:
    with pytest.raises(QuerySyntaxError):
        compile_one("query {", people_catalog())

"""The checker's own contract: what it returns, what it raises, and that problems stay apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph_core.diagnostics import Source
from omnigraph_core.errors import QueryNotFound, QueryTypeError
from omnigraph_core.query.ast import QueryFile
from omnigraph_core.query.check import CheckedFile, check_queries, check_query, select_query
from omnigraph_core.query.checked import CheckedNegation, CheckedOptional, CheckedRead, QueryKind
from omnigraph_core.query.codes import QUERY_CODES
from omnigraph_core.query.parse import parse_queries
from omnigraph_core.schema.build import compile_schema

CATALOG = compile_schema(
    """
    node Part { code: String @key  weight: F64? }
    node Supplier { name: String @key }
    edge Supplies: Supplier -> Part
    edge Contains: Part -> Part
    """
)
QUERIES = Path(__file__).parents[2] / "fixtures" / "queries"
SCHEMAS = Path(__file__).parents[2] / "fixtures" / "schemas"
GOOD = "query good() { match { $p: Part } return { $p.code } }"
BAD = "query bad() { match { $p: Prat } return { $p.code } limit -1 }"
WORSE = "query worse() { match { $p: Part } return { $p.cod } }"


def _check(text: str) -> CheckedFile:
    return check_queries(parse_queries(text, "q.gq"), CATALOG, Source(text, "q.gq"))


def _match(clauses: str) -> CheckedFile:
    return _check(f"query q() {{ match {{ {clauses} }} return {{ $p.code }} }}")


def _codes(file: CheckedFile) -> list[str]:
    return [item.code for result in file.results for item in result.diagnostics]


def test_a_good_query_has_a_checked_form_and_no_problem() -> None:
    (result,) = _check(GOOD).results
    assert result.diagnostics == ()
    assert result.checked is not None
    assert result.checked.name == "good"
    assert result.checked.kind is QueryKind.READ
    assert result.query.name == "good"


def test_a_bad_query_leaves_the_others_usable() -> None:
    file = _check(f"{BAD}\n{GOOD}\n{WORSE}")
    assert [result.checked is not None for result in file.results] == [False, True, False]
    assert [[item.code for item in result.diagnostics] for result in file.results] == [
        ["T1", "T43"],
        [],
        ["T6"],
    ]


def test_require_raises_the_problems_of_every_query() -> None:
    with pytest.raises(QueryTypeError) as caught:
        _check(f"{BAD}\n{GOOD}\n{WORSE}").require()
    assert [item.code for item in caught.value.diagnostics] == ["T1", "T43", "T6"]
    assert [item.line for item in caught.value.diagnostics] == [1, 1, 3]


def test_require_returns_every_query_in_order() -> None:
    names = [query.name for query in _check(f"{GOOD}\n{GOOD.replace('good', 'fine')}").require()]
    assert names == ["good", "fine"]


def test_a_repeated_name_is_a_problem_of_the_later_query() -> None:
    file = _check(f"{GOOD}\n{GOOD}")
    assert file.results[0].checked is not None
    assert file.results[1].checked is None
    assert _codes(file) == ["T40"]


def test_check_query_raises_every_problem_of_its_query() -> None:
    query = parse_queries(BAD).queries[0]
    with pytest.raises(QueryTypeError) as caught:
        check_query(query, CATALOG, Source(BAD))
    assert [item.code for item in caught.value.diagnostics] == ["T1", "T43"]


def test_check_query_returns_the_checked_form() -> None:
    query = parse_queries(GOOD).queries[0]
    checked = check_query(query, CATALOG, Source(GOOD))
    assert checked.node_types == (("p", "Part"),)


def test_select_query() -> None:
    file = parse_queries(f"{GOOD}\n{GOOD.replace('good', 'fine')}")
    assert select_query(file, "fine").name == "fine"
    assert select_query(parse_queries(GOOD), None).name == "good"


@pytest.mark.parametrize(
    ("text", "name", "words"),
    [
        (f"{GOOD}\n{WORSE}", "god", ["query 'god' not found", "did you mean `good`?", "`worse`"]),
        (f"{GOOD}\n{WORSE}", None, ["multiple queries", "`good`, `worse`"]),
        ("\n".join(GOOD.replace("good", f"good{n}") for n in range(20)), None, ["and 8 more"]),
    ],
)
def test_select_query_says_what_there_is(text: str, name: str | None, words: list[str]) -> None:
    with pytest.raises(QueryNotFound) as caught:
        select_query(parse_queries(text), name)
    assert all(word in str(caught.value) for word in words)


@pytest.mark.parametrize("name", [None, "any"])
def test_select_query_from_nothing(name: str | None) -> None:
    with pytest.raises(QueryNotFound):
        select_query(QueryFile(), name)


def test_rows_know_their_nodes_but_not_those_of_negations() -> None:
    (checked,) = _match(
        "$p: Part  $s supplies $p  not { $p contains $q }  optional { $p contains $r }"
    ).require()
    assert checked.node_types == (("p", "Part"), ("r", "Part"), ("s", "Supplier"))


def test_blocks_name_what_they_share_and_introduce() -> None:
    (checked,) = _match(
        "$p: Part  not { $p contains $q }  optional { $p contains $r }  not { $r contains $p }"
    ).require()
    assert isinstance(checked.body, CheckedRead)
    _, first, optional, second = checked.body.clauses
    assert isinstance(first, CheckedNegation)
    assert isinstance(optional, CheckedOptional)
    assert isinstance(second, CheckedNegation)
    assert first.outer == ("p",)
    assert (optional.outer, optional.introduced) == (("p",), ("r",))
    assert second.outer == ("r", "p")


def test_blocks_and_conditions_may_nest_as_deep_as_they_parse() -> None:
    depth = 60
    negations = "not { $p contains $p " * depth + "}" * depth
    options = "".join(f"optional {{ $p contains $q{i} " for i in range(depth)) + "}" * depth
    condition = "$p.weight > 1"
    for level in range(depth):
        condition = f"({condition} {('and', 'or')[level % 2]} $p.weight < 9)"
    for clause in (negations, options, condition):
        assert _codes(_match(f"$p: Part {clause}")) == []


@pytest.mark.parametrize("path", sorted(QUERIES.glob("*.gq")), ids=lambda path: path.stem)
def test_fixture_queries_fit_their_schema(path: Path) -> None:
    catalog = compile_schema((SCHEMAS / f"{path.stem}.pg").read_text())
    text = path.read_text()
    file = check_queries(parse_queries(text, path.name), catalog, Source(text, path.name))
    assert "\n".join(item.render() for r in file.results for item in r.diagnostics) == ""


def test_every_code_has_one_line() -> None:
    for code, title in QUERY_CODES.items():
        assert code.strip() == code
        assert title
        assert "\n" not in title

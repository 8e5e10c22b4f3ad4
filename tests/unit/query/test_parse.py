"""Where things stand in the text, what is collected, and that parses do not disturb each other."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from omnigraph_core.constants import MAX_DIGITS, MAX_NESTING
from omnigraph_core.diagnostics import Diagnostic, Span
from omnigraph_core.errors import QuerySyntaxError
from omnigraph_core.query import ast
from omnigraph_core.query.parse import parse_queries
from omnigraph_core.query.render import render_queries
from omnigraph_core.types import Scalar

FIXTURES = sorted((Path(__file__).parents[2] / "fixtures" / "queries").glob("*.gq"))


def refused(text: str) -> tuple[Diagnostic, ...]:
    with pytest.raises(QuerySyntaxError) as caught:
        parse_queries(text, "q.gq")
    return caught.value.diagnostics


def clauses(text: str) -> tuple[ast.Clause, ...]:
    (query,) = parse_queries(f"query q() {{ match {{ {text} }} return {{ $x }} }}").queries
    assert isinstance(query.body, ast.Read)
    return query.body.match


def condition(text: str) -> ast.Condition:
    (clause,) = clauses(text)
    assert isinstance(clause, ast.Filter)
    return clause.condition


def expr(text: str) -> ast.Expr:
    found = condition(f"$x.p = {text}")
    assert isinstance(found, ast.Comparison)
    return found.right


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_a_fixture_parses_and_renders_to_the_same(path: Path) -> None:
    file = parse_queries(path.read_text(), path.name)
    assert file.queries
    assert parse_queries(render_queries(file)) == file


def test_an_empty_text_is_an_empty_file() -> None:
    assert parse_queries("") == ast.QueryFile()
    assert parse_queries(" // nothing\n/* at all */") == ast.QueryFile()


SPANNED = """query find($name: String, $ids: [I64]?) @description("d") {
  match {
    $p: Person { name: $name }
    $p $w:<knows>{1,2} $f
    $f.age >= 21 and ($f.name = "x" or search($f . bio, "y"))
    not { $p in $f }
  }
  return { $f.name as friend, count(distinct $f) }
  having { friend != -1.5 }
  order { friend desc, $p.age }
  limit 10
}
query write() { update Person set { tags: ["a"] } where age in $ids delete Knows where to is null }
"""


def test_every_node_knows_its_text() -> None:
    found = {SPANNED[span.start : span.end] for span in _spans(parse_queries(SPANNED))}
    assert {
        "name",
        "$name: String",
        "[I64]?",
        '@description("d")',
        "$p: Person { name: $name }",
        "name: $name",
        "$p $w:<knows>{1,2} $f",
        "{1,2}",
        "knows",
        "$w",
        "$f.age >= 21",
        '$f.name = "x" or search($f . bio, "y")',
        "$f . bio",
        "bio",
        "not { $p in $f }",
        "in",
        "$f.name as friend",
        "count(distinct $f)",
        "friend != -1.5",
        "-1.5",
        "friend desc",
        "10",
        'update Person set { tags: ["a"] } where age in $ids',
        '["a"]',
        "age in $ids",
        "delete Knows where to is null",
        "to is null",
    } <= found
    assert {text[:5] for text in found if "\n" in text} == {"query", "match"}


def _spans(node: object) -> list[Span]:
    if isinstance(node, tuple):
        return [span for item in node for span in _spans(item)]
    own = getattr(node, "span", None)
    spans = [own] if isinstance(own, Span) else []
    for name in getattr(node, "__dataclass_fields__", {}):
        if name != "span":
            spans += _spans(getattr(node, name))
    return spans


def test_numbers_keep_their_kind() -> None:
    assert expr("1") == ast.Literal(1)
    assert expr("1.0") == ast.Literal(1.0)
    assert expr("-7") == ast.Literal(-7)
    assert expr("true") == ast.Literal(True)
    assert expr("1") != expr("1.0")
    assert expr("9223372036854775808") == ast.Literal(2**63)


def test_numbers_of_absurd_length_are_refused() -> None:
    assert expr("9" * MAX_DIGITS.value) == ast.Literal(int("9" * MAX_DIGITS.value))
    text = "query q() { match { $x.p = DIGITS $x knows{DIGITS,2} $y } return { $x } }"
    found = refused(text.replace("DIGITS", "9" * 5000))
    assert [item.message for item in found] == ["number of 5000 digits"] * 2


def test_a_fraction_beyond_every_float_is_refused() -> None:
    text = f"query q() {{ match {{ $x.p = {'9' * 400}.0 }} return {{ $x }} }}"
    assert [item.message for item in refused(text)] == ["number too large for F64"]


def test_dates_are_literals_only_of_one_string() -> None:
    assert expr('date("2024-01-01")') == ast.TemporalLiteral(Scalar.DATE, "2024-01-01")
    assert expr('datetime("x")') == ast.TemporalLiteral(Scalar.DATETIME, "x")
    for text in ("date()", "date($x)", "date(1)", 'date("a", "b")', 'date(distinct "a")'):
        assert isinstance(expr(text), ast.Call), text


def test_chains_are_flat_whatever_the_parentheses() -> None:
    flat = condition("$x.a = 1 and $x.b = 2 and $x.c = 3")
    assert isinstance(flat, ast.And)
    assert len(flat.operands) == 3
    assert condition("($x.a = 1 and $x.b = 2) and $x.c = 3") == flat
    assert condition("$x.a = 1 and (($x.b = 2 and $x.c = 3))") == flat
    assert condition("$x.a = 1 or ($x.b = 2 or $x.c = 3)") == ast.Or(flat.operands)
    mixed = condition("$x.a = 1 or $x.b = 2 and $x.c = 3")
    assert mixed == ast.Or((flat.operands[0], ast.And(flat.operands[1:])))


def test_operator_words_between_bare_variables_follow_an_edge() -> None:
    for word in ("contains", "starts_with", "in", "is"):
        assert isinstance(clauses(f"$a {word} $b")[0], ast.Traversal)
        assert isinstance(clauses(f"$a {word}{{1,2}} $b")[0], ast.Traversal)
    assert isinstance(condition("$a contains $b.p"), ast.Comparison)
    assert isinstance(condition("($a contains $b)"), ast.Comparison)
    assert isinstance(condition("$a in $b and $a.p = 1"), ast.And)
    assert isinstance(condition("$a in $b or $a.p = 1"), ast.Or)


def test_a_long_chain_is_no_trouble() -> None:
    found = condition(" or ".join(f"$x.p = {number}" for number in range(3000)))
    assert isinstance(found, ast.Or)
    assert len(found.operands) == 3000


def test_text_that_is_no_unicode_is_refused() -> None:
    (found,) = refused('query q() { match { $x.p = "\ud800" } return { $x } }')
    assert found.message == "half of a surrogate pair"


def test_nesting_has_a_limit() -> None:
    inside = MAX_NESTING.value - 2
    assert condition("(" * inside + "$x.p = 1" + ")" * inside)
    deep = "query q() { match { $x.p in " + "[" * 5000 + "]" * 5000 + " } return { $x } }"
    (found,) = refused(deep)
    assert found.message == "nested more than 64 levels deep"
    assert deep[found.span.start] == "["


def test_unclosed_brackets_of_many_queries_do_not_add_up() -> None:
    found = refused("query q() { match { $x: T\n" * 100)
    assert len(found) == 100


def test_brackets_in_strings_and_comments_do_not_nest() -> None:
    assert clauses('$x.p = "' + "(" * 200 + '" /* ' + "[" * 200 + " */")


def test_every_broken_query_is_reported_at_its_place() -> None:
    sound = "query b() { match { $x: T } return { $x } } "
    text = "query a() { match } " + sound + 'query c() { match { $x.p = "\\q" } return }'
    found = refused(text)
    assert [text[item.span.start : item.span.end] for item in found] == ["}", "\\q", "}"]
    assert {item.code for item in found} == {"Q000"}
    assert {item.file for item in found} == {"q.gq"}


def test_the_word_query_inside_strings_and_comments_starts_nothing() -> None:
    text = 'query a() { /* query b() { */ match { $x.p = "query c() {" } return } // query d() {'
    (found,) = refused(text)
    assert text[found.span.start : found.span.end] == "}"


def test_a_name_remembers_where_it_was_written() -> None:
    text = "query q() { match { $x: T } return { $x.p as total } }"
    body = parse_queries(text).queries[0].body
    assert isinstance(body, ast.Read)
    alias = body.columns[0].alias
    assert alias == "total"
    assert text[alias.span.start : alias.span.end] == "total"


def test_parses_in_several_threads_keep_their_problems_apart() -> None:
    def problems(number: int) -> list[str]:
        bad = "".join(f"$x.p{index} = null " for index in range(number))
        if not number:
            return [type(clauses("$x.p = 1")).__name__]
        return [
            item.message for item in refused(f"query q() {{ match {{ {bad}}} return {{ $x }} }}")
        ]

    numbers = [0, 1, 2, 3] * 25
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(problems, numbers))
    assert [len(item) for item in found] == [max(1, number) for number in numbers]

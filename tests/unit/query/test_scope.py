"""Which variables a block sees, which it shares with the blocks around it, and what it reports."""

from __future__ import annotations

from omnigraph_core.diagnostics import Diagnostics, Name, Source, Span
from omnigraph_core.query.scope import Context, Scope, find_property, find_variable, properties_of
from omnigraph_core.query.typed import EntityKind
from omnigraph_core.schema.build import compile_schema
from tests.support.cases import each

CATALOG = compile_schema(
    """
    node Article { title: String @key  pages: I32? }
    edge Cites: Article -> Article { note: String? }
    """
)


def _context(text: str = "some text") -> Context:
    return Context(CATALOG, Diagnostics(Source(text, "q.gq")))


def _codes(ctx: Context) -> list[str]:
    return [item.code for item in ctx.problems.found]


def test_an_inner_block_sees_and_notes_outer_variables() -> None:
    outer = Scope()
    outer.bind("a", EntityKind.NODE, "Article")
    middle = Scope(outer)
    middle.bind("b", EntityKind.NODE, "Article")
    inner = Scope(middle)
    assert inner.find("a") is outer.variables["a"]
    assert list(inner.outer) == ["a"]
    assert list(middle.outer) == ["a"]
    assert inner.mentions_outer
    assert not middle.mentions_outer


def test_a_variable_of_the_block_itself_is_no_outer_mention() -> None:
    inner = Scope(Scope())
    inner.bind("a", EntityKind.NODE, "Article")
    assert inner.find("a") is not None
    assert not inner.outer
    assert not inner.mentions_outer


def test_asking_whether_a_name_is_known_mentions_nothing() -> None:
    outer = Scope()
    outer.bind("a", EntityKind.NODE, "Article")
    inner = Scope(outer)
    assert inner.is_known("a")
    assert not inner.mentions_outer


def test_negation_is_inherited() -> None:
    assert Scope(Scope(Scope(), is_negated=True)).is_negated
    assert not Scope(Scope()).is_negated


def test_a_variable_of_a_later_clause_comes_later() -> None:
    scope = Scope()
    scope.position = 3
    bound = scope.bind("a", EntityKind.NODE, "Article")
    scope.position = 2
    assert scope.comes_later(bound)
    assert Scope(scope).comes_later(bound)
    scope.position = 4
    assert not scope.comes_later(bound)


def test_an_unbound_variable_is_reported_once() -> None:
    ctx, scope = _context(), Scope()
    for start in (0, 5):
        assert find_variable(ctx, scope, Name("x", Span(start, start + 1))) is None
    assert _codes(ctx) == ["T6"]
    assert ctx.problem_count == 1


def test_the_anonymous_variable_is_never_found() -> None:
    ctx, scope = _context(), Scope()
    scope.bind(ctx.fresh_name(), EntityKind.NODE, "Article")
    assert find_variable(ctx, scope, Name("_")) is None
    assert _codes(ctx) == ["T6"]


def test_fresh_names_differ_and_cannot_be_written() -> None:
    ctx = _context()
    names = {ctx.fresh_name() for _ in range(3)}
    assert len(names) == 3
    assert not any(name.isidentifier() for name in names)
    scope = Scope()
    for name in names:
        scope.bind(name, EntityKind.NODE, "Article")
    assert list(scope.names()) == []


@each(
    ("kind", "type_name", "name", "shown"),
    [
        (EntityKind.NODE, "Article", "title", "String"),
        (EntityKind.NODE, "Article", "pages", "I32?"),
        (EntityKind.NODE, "Article", "id", "String"),
        (EntityKind.NODE, "Article", "src", "None"),
        (EntityKind.EDGE, "Cites", "note", "String?"),
        (EntityKind.EDGE, "Cites", "src", "String"),
        (EntityKind.EDGE, "Cites", "dst", "String"),
        (EntityKind.EDGE, "Cites", "title", "None"),
    ],
)
def test_properties_and_implicit_columns(
    kind: EntityKind, type_name: str, name: str, shown: str
) -> None:
    bound = Scope().bind("x", kind, type_name)
    assert str(find_property(_context(), bound, name)) == shown


def test_properties_of_an_optional_variable_are_nullable() -> None:
    bound = Scope().bind("x", EntityKind.NODE, "Article", is_optional=True)
    assert str(find_property(_context(), bound, "title")) == "String?"
    assert str(find_property(_context(), bound, "id")) == "String?"


def test_an_unknown_type_has_no_properties() -> None:
    assert properties_of(CATALOG, EntityKind.NODE, None) == ({}, ())


def test_quoted_source_is_one_short_line() -> None:
    ctx = _context("$a.title  =\n   $b.title")
    assert ctx.written(Span(0, 23)) == "`$a.title = $b.title`"
    assert len(_context("x" * 90).written(Span(0, 90))) == 42

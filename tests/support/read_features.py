"""Which constructs of the language a read uses, by name: to see that random reads use them all."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from omnigraph_core.query import ast
from tests.support.tree_parts import inside

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.read_queries import Sample


def features(sample: Sample) -> set[str]:
    """The constructs of a query, each once."""
    read = sample.query.body
    assert isinstance(read, ast.Read)
    found = {name for part in _parts(read) for name in _names(part)}
    found.update(_of_result(read))
    found.update(_of_blocks(read.match, ""))
    found.update(_of_local_names(read.match))
    found.update(_of_params(sample))
    return found


def _parts(part: object) -> Iterator[object]:
    yield part
    for item in inside(part):
        yield from _parts(item)


def _names(part: object) -> Iterator[str]:
    match part:
        case ast.Binding(fields=chosen):
            yield "binding with fields" if chosen else "binding"
        case ast.Traversal():
            yield from _of_traversal(part)
        case ast.Comparison(left, op, right):
            yield f"{op}"
            if isinstance(left, ast.Access) and isinstance(right, ast.Access):
                yield "two properties"
            if isinstance(left, ast.Variable) and isinstance(right, ast.Variable):
                yield "two nodes"
            if isinstance(left, ast.ListLiteral):
                yield "list literal contains"
        case ast.Membership(_, options):
            yield f"in {'a list' if isinstance(options, ast.ListLiteral) else 'a parameter'}"
        case ast.NullTest(operand, is_negated):
            yield "is not null" if is_negated else "is null"
            yield f"null test of {type(operand).__name__}"
        case ast.And() | ast.Or():
            yield type(part).__name__.lower()
        case ast.Call(function, _, is_distinct):
            yield f"{function}(distinct)" if is_distinct else f"{function}()"
        case ast.TemporalLiteral(scalar):
            yield f"{scalar} literal"
        case ast.Access(_, name) if name in ("id", "src", "dst"):
            yield f".{name}"
        case _:
            pass


def _of_traversal(traversal: ast.Traversal) -> Iterator[str]:
    yield "traversal"
    if traversal.is_undirected:
        yield "undirected"
    if traversal.edge_binding is not None:
        yield "edge variable"
    if traversal.bounds is not None:
        yield "hops"
        if traversal.bounds.minimum > 1:
            yield "hops from two"
    if ast.ANONYMOUS in (traversal.left, traversal.right):
        yield "anonymous"
    if traversal.left == traversal.right:
        yield "loop"


def _of_blocks(clauses: tuple[ast.Clause, ...], around: str) -> Iterator[str]:
    """Blocks by what they stand in: `not`, `not in optional`, ..."""
    for clause in clauses:
        if isinstance(clause, ast.Negation | ast.OptionalMatch):
            name = "not" if isinstance(clause, ast.Negation) else "optional"
            yield f"{name}{around}"
            yield from _of_blocks(clause.clauses, f" in {name}")
    if sum(isinstance(clause, ast.Negation) for clause in clauses) > 1:
        yield "several not"
    if sum(isinstance(clause, ast.OptionalMatch) for clause in clauses) > 1:
        yield "several optional"


def _of_local_names(clauses: tuple[ast.Clause, ...]) -> Iterator[str]:
    """Whether two `not` blocks use one name that the match does not know."""
    outer = _pattern_names(tuple(c for c in clauses if not isinstance(c, ast.Negation)))
    blocks = [_pattern_names(c.clauses) - outer for c in clauses if isinstance(c, ast.Negation)]
    if any(one & other for one, other in combinations(blocks, 2)):
        yield "shared local name"


def _pattern_names(clauses: tuple[ast.Clause, ...]) -> set[str]:
    found = {part for part in _parts(clauses) if isinstance(part, ast.Traversal | ast.Binding)}
    names = {n for p in found if isinstance(p, ast.Traversal) for n in (p.left, p.right)}
    names |= {p.variable for p in found if isinstance(p, ast.Binding)}
    return {str(name) for name in names} - {ast.ANONYMOUS}


def _of_result(read: ast.Read) -> Iterator[str]:
    if read.is_distinct:
        yield "distinct"
    if read.having:
        yield "having"
    if read.order:
        yield "order"
    if len(read.order) > 1:
        yield "several keys"
    if any(key.direction is ast.SortDirection.DESC for key in read.order):
        yield "descending"
    for key in read.order:
        yield f"order by {type(key.expr).__name__}"
    for word, count in (("limit", read.limit), ("offset", read.offset)):
        if count is not None:
            yield f"{word} {type(count).__name__}"
    for column in read.columns:
        yield f"column {type(column.expr).__name__}"


def _of_params(sample: Sample) -> Iterator[str]:
    for param in sample.query.params:
        yield f"parameter {param.type.name}{' list' if param.type.is_list else ''}"
        if sample.params[str(param.name)] is None:
            yield "null parameter"

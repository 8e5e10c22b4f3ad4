"""Query ASTs that the parser can produce, for laws over rendering and parsing.

What no text parses to is left out where it would arise: `true` as a word, an edge called `not`.
"""

from __future__ import annotations

from hypothesis import strategies as st

from omnigraph_core.diagnostics import Name
from omnigraph_core.query import ast
from omnigraph_core.types import Scalar

KEYWORDS = [
    "query", "match", "return", "distinct", "having", "order", "limit", "offset", "as", "asc",
    "desc", "not", "optional", "and", "or", "in", "is", "null", "contains", "starts_with",
    "insert", "update", "delete", "set", "where", "now", "date", "datetime", "from", "to",
]  # fmt: skip

idents = st.one_of(
    st.sampled_from(["a", "name", "_", "_x1", "createdAt", "true", "false", "trueish", "notable"]),
    st.sampled_from(KEYWORDS),
    st.from_regex(r"[a-z_][A-Za-z0-9_]{0,6}", fullmatch=True),
).map(Name)
operand_names = idents.filter(lambda name: name not in ("true", "false"))
"""Where an expression may stand, these two are literals."""
edge_names = idents.filter(lambda name: name != "not")
type_names = st.from_regex(r"[A-Z][A-Za-z0-9_]{0,6}", fullmatch=True).map(Name)

strings = st.text(max_size=12)
texts = st.one_of(
    strings, st.sampled_from(['"', "\\", "\n\r\t", "// no", "/* */", "a\\n", "}{", "é"])
)
numbers = st.one_of(
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
)
literals = st.builds(ast.Literal, st.one_of(st.booleans(), numbers, texts))
temporals = st.builds(ast.TemporalLiteral, st.sampled_from([Scalar.DATE, Scalar.DATETIME]), texts)
items = st.recursive(
    literals | temporals,
    lambda inner: st.builds(ast.ListLiteral, st.lists(inner, max_size=3).map(tuple)),
    max_leaves=4,
)
lists = st.builds(ast.ListLiteral, st.lists(items, max_size=3).map(tuple))
variables = st.builds(ast.Variable, idents)
accesses = st.builds(ast.Access, idents, idents)
words = st.builds(ast.Word, operand_names)


def _is_call(call: ast.Call) -> bool:
    """Not `date("…")`, a literal, and not `f(distinct …)` unless that says distinct."""
    arguments = call.arguments
    if call.is_distinct or not arguments:
        return bool(arguments) or not call.is_distinct
    match arguments[0]:
        case ast.Word("distinct") | ast.Call("distinct"):
            return False
        case ast.Literal(str()):
            return call.function not in ("date", "datetime") or len(arguments) > 1
    return True


def _calls(inner: st.SearchStrategy[ast.Expr]) -> st.SearchStrategy[ast.Call]:
    arguments = st.lists(inner, max_size=3).map(tuple)
    return st.builds(ast.Call, operand_names, arguments, st.booleans()).filter(_is_call)


_leaves: st.SearchStrategy[ast.Expr] = st.one_of(
    literals, temporals, lists, variables, accesses, words
)
exprs: st.SearchStrategy[ast.Expr] = st.recursive(_leaves, _calls, max_leaves=3)
calls = _calls(exprs)
values: st.SearchStrategy[ast.Expr] = st.one_of(literals, temporals, lists, variables, calls)

_right = exprs.filter(lambda expr: expr != ast.Word(Name("null")))
_atoms: st.SearchStrategy[ast.Condition] = st.one_of(
    st.builds(ast.Comparison, exprs, st.sampled_from(ast.CompareOp), _right),
    st.builds(ast.Membership, exprs, lists | variables),
    st.builds(ast.NullTest, exprs, st.booleans()),
    st.builds(ast.Truth, calls | temporals),
)


def _chains(inner: st.SearchStrategy[ast.Condition]) -> st.SearchStrategy[ast.Condition]:
    operands = st.lists(inner, min_size=2, max_size=3)
    return st.one_of(operands.map(_all_of), operands.map(_any_of))


def _all_of(operands: list[ast.Condition]) -> ast.Condition:
    parts = [p for o in operands for p in (o.operands if isinstance(o, ast.And) else (o,))]
    return ast.And(tuple(parts))


def _any_of(operands: list[ast.Condition]) -> ast.Condition:
    parts = [p for o in operands for p in (o.operands if isinstance(o, ast.Or) else (o,))]
    return ast.Or(tuple(parts))


conditions = st.recursive(_atoms, _chains, max_leaves=4)

assignments = st.lists(st.builds(ast.Assignment, idents, values), max_size=3).map(tuple)
_counts = st.integers(0, 10**20)
traversals = st.builds(
    ast.Traversal,
    idents,
    edge_names,
    idents,
    st.booleans(),
    st.none() | idents,
    st.none() | st.builds(ast.Bounds, _counts, st.none() | _counts),
)
_clauses: st.SearchStrategy[ast.Clause] = st.one_of(
    st.builds(ast.Binding, idents, type_names, assignments),
    traversals,
    st.builds(ast.Filter, conditions),
)


def _blocks(inner: st.SearchStrategy[ast.Clause]) -> st.SearchStrategy[ast.Clause]:
    clauses = st.lists(inner, min_size=1, max_size=2).map(tuple)
    return st.builds(ast.Negation, clauses) | st.builds(ast.OptionalMatch, clauses)


clause_lists = st.lists(st.recursive(_clauses, _blocks, max_leaves=3), min_size=1, max_size=3).map(
    tuple
)

_page = st.none() | variables | st.builds(ast.Literal, st.integers(-(2**64), 2**64))
reads = st.builds(
    ast.Read,
    clause_lists,
    st.lists(st.builds(ast.Column, exprs, st.none() | idents), min_size=1, max_size=3).map(tuple),
    st.booleans(),
    st.lists(conditions, max_size=2).map(tuple),
    st.lists(
        st.builds(ast.SortKey, exprs, st.none() | st.sampled_from(ast.SortDirection)), max_size=2
    ).map(tuple),
    _page,
    _page,
)
statements = st.one_of(
    st.builds(ast.Insert, type_names, assignments),
    st.builds(ast.Update, type_names, assignments, conditions),
    st.builds(ast.Delete, type_names, conditions),
)
mutations = st.builds(ast.Mutation, st.lists(statements, min_size=1, max_size=3).map(tuple))

types = st.builds(
    ast.TypeRef, type_names | idents, st.none() | _counts, st.booleans(), st.booleans()
)
queries = st.builds(
    ast.Query,
    idents,
    st.lists(st.builds(ast.Param, idents, types), max_size=3).map(tuple),
    st.lists(st.builds(ast.QueryAnnotation, idents, texts), max_size=2).map(tuple),
    reads | mutations,
)
files = st.builds(ast.QueryFile, st.lists(queries, max_size=2).map(tuple))

"""The result half of random reads: columns, groups, having, distinct, order, ranks, windows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.diagnostics import Name
from omnigraph_core.query import ast
from omnigraph_core.types import F64, I64, PropType, Scalar
from tests.support.read_contents import VALUES, random_value
from tests.support.read_terms import ORDERINGS, Terms, access, call, literal

if TYPE_CHECKING:
    from tests.support.read_terms import Var

COMPARABLE = frozenset({Scalar.STRING, Scalar.DATE, Scalar.DATETIME})
TEXTS = {"Part": "body", "Note": "text"}
VECTORS = {"Part": "shape", "Note": "spot"}


def random_result(terms: Terms, variables: list[Var], match: tuple[ast.Clause, ...]) -> ast.Read:
    """A read of the match, whose variables are given."""
    result = _Result(terms, variables)
    kind = terms.pick({"plain": 5.5, "grouped": 4, "distinct": 2.5, "ranked": 2.5})
    if kind == "grouped":
        return result.grouped(match)
    if kind == "ranked":
        read = result.ranked(match)
        if read is not None:
            return read
    return result.plain(match, is_distinct=kind == "distinct")


class _Result:
    def __init__(self, terms: Terms, variables: list[Var]) -> None:
        self.terms = terms
        self.rng = terms.rng
        self.variables = variables

    # The kinds of results

    def plain(self, match: tuple[ast.Clause, ...], *, is_distinct: bool) -> ast.Read:
        count = self.rng.choice((1, 2, 2, 3, 4))
        columns = self._named([self._column() for _ in range(count)])
        order = self._order(columns, is_distinct=is_distinct)
        limit, offset = self._window(is_ordered=bool(order))
        return ast.Read(match, columns, is_distinct, (), order, limit, offset)

    def ranked(self, match: tuple[ast.Clause, ...]) -> ast.Read | None:
        """Ordered by a ranking, or with one as a column."""
        rank = self._rank()
        if rank is None:
            return None
        exprs = [self._column() for _ in range(self.rng.choice((1, 2)))]
        is_leading, is_distinct = self.terms.chance(0.75), self.terms.chance(0.15)
        if not is_leading or is_distinct or self.terms.chance(0.5):
            exprs.append(rank)
        if self.terms.chance(0.15) and (other := self._rank()) is not None:
            exprs.append(other)
        columns = self._named(exprs)
        order: tuple[ast.SortKey, ...] = ()
        if is_leading:
            direction = ast.SortDirection.DESC if self.terms.chance(0.1) else None
            direction = None if rank.function == "nearest" else direction
            more = self._property_keys(1) if not is_distinct and self.terms.chance(0.3) else ()
            order = (ast.SortKey(rank, direction), *more)
        limit: ast.Literal | ast.Variable = self._count((1, 2, 3, 5, 50))
        offset = self._count((0, 1, 2)) if self.terms.chance(0.2) else None
        return ast.Read(match, columns, is_distinct, (), order, limit, offset)

    def grouped(self, match: tuple[ast.Clause, ...]) -> ast.Read:
        groups = [self._group() for _ in range(self.rng.choice((0, 1, 1, 2)))]
        totals = [self._aggregate() for _ in range(self.rng.choice((1, 1, 2, 3)))]
        columns = self._named([*groups, *totals])
        having = (self._having(columns),) if self.terms.chance(0.3) else ()
        is_distinct = self.terms.chance(0.15)
        order = self._group_order(columns, is_distinct=is_distinct)
        limit, offset = self._window(is_ordered=bool(order))
        return ast.Read(match, columns, is_distinct, having, order, limit, offset)

    # Columns

    def _named(self, exprs: list[ast.Expr]) -> tuple[ast.Column, ...]:
        """Columns with names of their own: a default one where it is free, or an alias."""
        taken: set[str] = set()
        columns = []
        for number, expr in enumerate(exprs):
            default = _default_name(expr)
            if default in taken or self.terms.chance(0.5):
                columns.append(ast.Column(expr, Name(f"c{number}")))
            else:
                taken.add(default)
                columns.append(ast.Column(expr))
        return tuple(columns)

    def _column(self) -> ast.Expr:
        kind = self.terms.pick({"property": 8, "node": 2, "given": 0.7, "search": 1})
        if kind == "search" and (found := self.terms.text_call(self.variables)) is not None:
            return found
        return self._given() if kind == "given" else self._group(has_nodes=kind == "node")

    def _group(self, *, has_nodes: bool | None = None) -> ast.Expr:
        """What rows can be grouped by."""
        nodes = [v for v in self.variables if not v.is_edge]
        if has_nodes is None:
            has_nodes = self.terms.chance(0.2)
        if has_nodes and nodes:
            return ast.Variable(Name(self.rng.choice(nodes).name))
        if self.terms.chance(0.05):
            return self._given()
        var = self.rng.choice(self.variables)
        return access(var, self.rng.choice(list(var.properties)))

    def _given(self) -> ast.Expr:
        if self.terms.chance(0.25):
            return call("now")
        type = PropType(self.rng.choice((Scalar.STRING, Scalar.I64, Scalar.F64, Scalar.DATE)))
        return self.terms.given(type, random_value(self.rng, type))

    def _aggregate(self) -> ast.Call:
        kind = self.rng.choice(("count", "count", "distinct", "sum", "avg", "min", "max"))
        if kind in ("count", "distinct"):
            is_search = kind == "count" and self.terms.chance(0.1)
            found = self.terms.text_call(self.variables) if is_search else None
            return call("count", found or self._group(), is_distinct=kind == "distinct")
        typed = [(v, n, t) for v in self.variables for n, t in v.properties.items()]
        scalars = [(v, n, t) for v, n, t in typed if not t.is_list and not t.is_vector]
        numbers = [(v, n) for v, n, t in scalars if t.scalar.is_numeric]
        if kind in ("sum", "avg"):
            if not numbers:
                return call("count", self._group())
            return call(kind, access(*self.rng.choice(numbers)))
        comparable = [(v, n) for v, n, t in scalars if t.scalar in COMPARABLE]
        return call(kind, access(*self.rng.choice([*numbers, *comparable])))

    # Ranks

    def _rank(self) -> ast.Call | None:
        nodes = [v for v in self.variables if not v.is_edge and not v.is_optional]
        texts = [v for v in nodes if v.type_name in TEXTS]
        if not texts:
            return None
        var = self.rng.choice(texts)
        kind = self.rng.choice(("bm25", "nearest", "rrf"))
        if kind != "rrf":
            return self._arm(var, kind)
        first, second = (self._arm(var, self.rng.choice(("bm25", "nearest"))) for _ in range(2))
        if self.terms.chance(0.4):
            k = self.terms.given(I64, self.rng.choice((1, 2, 60)))
            return call("rrf", first, second, k)
        return call("rrf", first, second)

    def _arm(self, var: Var, kind: str) -> ast.Call:
        if kind == "nearest" and var.type_name in VECTORS:
            vector = tuple(self.rng.choice(VALUES[Scalar.VECTOR]) for _ in range(3))
            type = PropType(Scalar.VECTOR, dimension=3)
            is_param = self.terms.chance(0.5)
            query = self.terms.param(type, vector) if is_param else literal(vector)
            return call("nearest", access(var, VECTORS[var.type_name]), query)
        return call("bm25", access(var, TEXTS[var.type_name]), self.terms.query_text())

    # Having, order, window

    def _having(self, columns: tuple[ast.Column, ...]) -> ast.Condition:
        """Groups by a count, an alias, or an aggregate that is not returned."""
        parts: list[ast.Condition] = [self._having_part(columns)]
        if self.terms.chance(0.4):
            parts.append(self._having_part(columns))
            return ast.Or(tuple(parts)) if self.terms.chance(0.6) else ast.And(tuple(parts))
        return parts[0]

    def _having_part(self, columns: tuple[ast.Column, ...]) -> ast.Condition:
        counts = [c for c in columns if isinstance(c.expr, ast.Call) and c.expr.function == "count"]
        small = self.terms.given(I64, self.rng.choice((0, 1, 1, 2, 3)))
        op = self.rng.choice((*ORDERINGS, ast.CompareOp.GE, ast.CompareOp.NE))
        if counts and self.terms.chance(0.5):
            column = self.rng.choice(counts)
            name = ast.Word(column.alias) if column.alias else column.expr
            return ast.Comparison(name, op, small)
        aggregate = self._aggregate()
        if aggregate.function in ("min", "max"):
            return ast.NullTest(aggregate, self.terms.chance(0.7))
        number = small if aggregate.function == "count" else self.terms.given(F64, 0.5)
        return ast.Comparison(aggregate, op, number)

    def _order(
        self, columns: tuple[ast.Column, ...], *, is_distinct: bool
    ) -> tuple[ast.SortKey, ...]:
        if self.terms.chance(0.45):
            return ()
        if not is_distinct and self.terms.chance(0.6):
            return self._property_keys(self.rng.choice((1, 1, 2, 3)))
        return self._column_keys(columns)

    def _property_keys(self, count: int) -> tuple[ast.SortKey, ...]:
        keys = []
        for _ in range(count):
            var = self.rng.choice(self.variables)
            found = [n for n, t in var.properties.items() if not t.is_list and not t.is_vector]
            keys.append(self._key(access(var, self.rng.choice(found))))
        return tuple(keys)

    def _key(self, expr: ast.Expr) -> ast.SortKey:
        direction = self.rng.choice((None, ast.SortDirection.ASC, ast.SortDirection.DESC))
        return ast.SortKey(expr, direction)

    def _column_keys(self, columns: tuple[ast.Column, ...]) -> tuple[ast.SortKey, ...]:
        fitting = [c for c in columns if self._is_orderable(c)]
        chosen = [c for c in fitting if self.terms.chance(0.6)]
        self.rng.shuffle(chosen)
        return tuple(self._key(ast.Word(c.alias) if c.alias else c.expr) for c in chosen)

    def _is_orderable(self, column: ast.Column) -> bool:
        expr = column.expr
        if isinstance(expr, ast.Access):
            (var,) = (v for v in self.variables if v.name == expr.variable)
            type = var.properties[str(expr.property)]
            return not type.is_list and not type.is_vector
        is_aggregate = isinstance(expr, ast.Call) and expr.function in _AGGREGATES
        return is_aggregate or (column.alias is not None and not isinstance(expr, ast.Variable))

    def _group_order(
        self, columns: tuple[ast.Column, ...], *, is_distinct: bool
    ) -> tuple[ast.SortKey, ...]:
        if self.terms.chance(0.4):
            return ()
        keys = self._column_keys(columns)
        if not is_distinct and self.terms.chance(0.4):
            keys = (self._key(self._aggregate()), *keys)
        return keys

    def _window(
        self, *, is_ordered: bool
    ) -> tuple[ast.Literal | ast.Variable | None, ast.Literal | ast.Variable | None]:
        limit = offset = None
        if self.terms.chance(0.45 if is_ordered else 0.2):
            limit = self._count((0, 1, 2, 3, 4, 5, 5, 6, 8, 10, 10, 30))
        if self.terms.chance(0.25 if is_ordered else 0.1):
            offset = self._count((0, 1, 1, 1, 2, 3))
        return limit, offset

    def _count(self, options: tuple[int, ...]) -> ast.Literal | ast.Variable:
        count = self.rng.choice(options)
        if self.terms.chance(0.4):
            scalar = self.rng.choice((Scalar.I32, Scalar.I64, Scalar.U32, Scalar.U64))
            return self.terms.param(PropType(scalar), count, may_be_null=False)
        return ast.Literal(count)


_AGGREGATES = frozenset({"count", "sum", "avg", "min", "max"})


def _default_name(expr: ast.Expr) -> str:
    if isinstance(expr, ast.Access):
        return f"{expr.variable}.{expr.property}"
    if isinstance(expr, ast.Variable):
        return str(expr.name)
    return str(expr.function) if isinstance(expr, ast.Call) else "literal"

"""Random operands and conditions over given variables, as the parser would have them.

Values come mostly from the graph that is asked, so that conditions tend to hold for something.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from omnigraph_core.diagnostics import Name
from omnigraph_core.query import ast
from omnigraph_core.types import BOOL, INTEGER_RANGES, STRING, PropType, Scalar
from omnigraph_core.values import format_datetime
from tests.support.read_contents import WORDS, catalog, random_text, random_value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from random import Random

    from omnigraph_core.values import Value
    from tests.support.read_contents import Contents

T = TypeVar("T")
EQUALITIES = (ast.CompareOp.EQ, ast.CompareOp.NE)
ORDERINGS = (ast.CompareOp.LT, ast.CompareOp.LE, ast.CompareOp.GT, ast.CompareOp.GE)
ODD = (0.1, 0.30000000000000004, 1e300, -5e-324)
"""Numbers to compare with that nothing has, or nothing but an F32 seems to have."""
NULLS = 0.12
"""How often a parameter that may be null is."""


@dataclass(frozen=True)
class Var:
    """A bound variable."""

    name: str
    type_name: str
    is_edge: bool = False
    is_optional: bool = False

    @property
    def properties(self) -> dict[str, PropType]:
        """Those that queries read, the implicit ones too."""
        types = catalog().edges if self.is_edge else catalog().nodes
        declared = types[self.type_name].properties
        found = {name: p.type for name, p in declared.items() if not p.type.is_blob}
        return {**found, **dict.fromkeys(("id", "src", "dst") if self.is_edge else ("id",), STRING)}


def access(var: Var, name: str) -> ast.Access:
    return ast.Access(Name(var.name), Name(name))


def call(function: str, *arguments: ast.Expr, is_distinct: bool = False) -> ast.Call:
    return ast.Call(Name(function), arguments, is_distinct)


def literal(value: Value) -> ast.Expr:
    """A value as it is written."""
    if isinstance(value, dt.datetime):
        return ast.TemporalLiteral(Scalar.DATETIME, format_datetime(value))
    if isinstance(value, dt.date):
        return ast.TemporalLiteral(Scalar.DATE, value.isoformat())
    if isinstance(value, tuple):
        return ast.ListLiteral(tuple(map(literal, value)))
    assert value is not None
    return ast.Literal(value)


@dataclass
class Terms:
    """Makes operands and conditions, and collects the parameters they use."""

    rng: Random
    contents: Contents
    params: dict[str, tuple[ast.TypeRef, Value]] = field(default_factory=dict)

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def pick(self, options: Mapping[T, float]) -> T:
        """One of the options, by weight."""
        return self.rng.choices(list(options), list(options.values()))[0]

    # Values

    def param(self, type: PropType, value: Value, *, may_be_null: bool = True) -> ast.Variable:
        """A new parameter of this value, now and then null instead."""
        is_nullable = may_be_null and self.chance(0.4)
        if is_nullable and self.chance(NULLS * 2):
            value = None
        name = f"k{len(self.params)}"
        type_ref = ast.TypeRef(Name(type.scalar), type.dimension, type.is_list, is_nullable)
        self.params[name] = (type_ref, value)
        return ast.Variable(Name(name))

    def given(self, type: PropType, value: Value) -> ast.Expr:
        """The value as a literal or parameter; a DateTime may be `now()` instead."""
        if type.scalar is Scalar.DATETIME and not type.is_list and self.chance(0.25):
            return call("now")
        if value is None or self.chance(0.35):
            return self.param(type, value)
        return literal(value)

    def stored(self, var: Var, name: str, type: PropType) -> Value:
        """A value the property has somewhere, or could have."""
        values = [entity.get(name) for entity in self.contents.of(var.type_name)]
        found = [value for value in values if value is not None]
        if found and self.chance(0.85):
            return self.rng.choice(found)
        return random_value(self.rng, type, name)

    def beside(self, var: Var, name: str, type: PropType) -> tuple[PropType, Value]:
        """A value to compare a property with, numbers of any other type among them."""
        value = self.stored(var, name, type)
        plain = PropType(type.scalar)
        if type.scalar.is_numeric and self.chance(0.3):
            scalar = self.rng.choice((Scalar.I64, Scalar.F64, Scalar.I32, Scalar.U64, Scalar.F32))
            is_odd = scalar is Scalar.F64 and self.chance(0.3)
            value = self.rng.choice(ODD) if is_odd else random_value(self.rng, PropType(scalar))
            return PropType(scalar), value
        if type.scalar.is_integer:
            fits = [s for s, (low, high) in INTEGER_RANGES.items() if low <= int(value) <= high]  # type: ignore[arg-type]
            return PropType(self.rng.choice(fits)), value
        return plain, value

    def query_text(self) -> ast.Expr:
        """What a search looks for, now and then misspelt."""
        text = self.rng.choice(WORDS[:6]) if self.chance(0.6) else random_text(self.rng)
        if self.chance(0.15):
            place = self.rng.randrange(len(text) + 1)
            text = text[:place] + self.rng.choice("aeq ") + text[place + 1 :]
        return self.given(STRING, text)

    def text_call(self, variables: Sequence[Var]) -> ast.Call | None:
        """`search`, `match_text` or `fuzzy` on one of the variables."""
        found = [(v, n) for v in variables if not v.is_edge for n in self.texts_of(v)]
        if not found:
            return None
        field = access(*self.rng.choice(found))
        function = self.rng.choice(("search", "search", "match_text", "fuzzy"))
        arguments = [field, self.query_text()]
        if function == "fuzzy" and self.chance(0.6):
            edits = self.rng.choice((0, 1, 2, 3))
            arguments.append(self.given(PropType(Scalar.I32), edits))
        return call(function, *arguments)

    def texts_of(self, var: Var) -> list[str]:
        """Properties with texts, those with words more often."""
        found = [name for name, type in var.properties.items() if type.is_string]
        return found + [name for name in found if name in ("body", "text")] * 8

    # Conditions

    def condition(self, variables: Sequence[Var], depth: int = 1) -> ast.Condition:
        """A condition over some of the variables."""
        kind = self.pick({"one": 6, "or": 3.0, "and": 0.8}) if depth else "one"
        if kind == "one":
            return self._atom(variables)
        parts = [self.condition(variables, depth - 1) for _ in range(self.rng.choice((2, 2, 3)))]
        if kind == "or":
            flat = [p for o in parts for p in (o.operands if isinstance(o, ast.Or) else (o,))]
            return ast.Or(tuple(flat))
        flat = [p for o in parts for p in (o.operands if isinstance(o, ast.And) else (o,))]
        return ast.And(tuple(flat))

    def _atom(self, variables: Sequence[Var]) -> ast.Condition:
        var = self.rng.choice(variables)
        kind = self.pick(
            {
                "given": 8, "pair": 2, "in": 2, "null": 2, "list": 1.5, "text": 2, "search": 2.5,
                "same": 1.5, "params": 0.4, "ends": 1,
            }
        )  # fmt: skip
        found: ast.Condition | None = None
        match kind:
            case "pair":
                found = self._pair(var, variables)
            case "in":
                found = self._membership(var)
            case "null":
                found = self._null_test(var)
            case "list":
                found = self._list_test(var)
            case "text":
                found = self._text_test(var)
            case "search":
                found = self._search(variables)
            case "same":
                found = self._same(var, variables)
            case "params":
                found = self._of_params()
            case "ends":
                found = self._end(var, variables)
        return found or self._comparison(var)

    def _plain(self, var: Var) -> tuple[str, PropType]:
        found = {n: t for n, t in var.properties.items() if not t.is_list and not t.is_vector}
        name = self.rng.choice(list(found))
        return name, found[name]

    def _comparison(self, var: Var) -> ast.Condition:
        name, type = self._plain(var)
        given_type, value = self.beside(var, name, type)
        op = self.rng.choice((*EQUALITIES, *ORDERINGS))
        if op is ast.CompareOp.EQ and self.chance(0.5):
            op = ast.CompareOp.NE
        if op in EQUALITIES and type.enum_values is not None:
            value = self.rng.choice(type.enum_values)
        sides = access(var, name), self.given(given_type, value)
        left, right = sides[::-1] if self.chance(0.2) else sides
        return ast.Comparison(left, op, right)

    def _pair(self, var: Var, variables: Sequence[Var]) -> ast.Condition | None:
        """Two properties of one kind, of one variable or two."""
        name, type = self._plain(var)
        other = self.rng.choice(variables)
        names = [
            n
            for n, t in other.properties.items()
            if not t.is_list and not t.is_vector and (other, n) != (var, name)
            and (t.scalar is type.scalar or (t.scalar.is_numeric and type.scalar.is_numeric))
        ]  # fmt: skip
        if not names:
            return None
        op = self.rng.choice((*EQUALITIES, *ORDERINGS))
        return ast.Comparison(access(var, name), op, access(other, self.rng.choice(names)))

    def _membership(self, var: Var) -> ast.Condition:
        name, type = self._plain(var)
        values: tuple[Value, ...]
        if type.enum_values is not None:
            values = tuple(v for v in type.enum_values if self.chance(0.6))
            scalar = Scalar.STRING
        else:
            scalar = self.beside(var, name, type)[0].scalar if self.chance(0.2) else type.scalar
            plain = PropType(scalar)
            is_own = scalar is type.scalar
            values = tuple(
                self.stored(var, name, type) if is_own else random_value(self.rng, plain)
                for _ in range(self.rng.choice((1, 2, 3, 5, 5)))
            )
        options = PropType(scalar, is_list=True)
        if not values or self.chance(0.4):
            given: ast.Expr = self.param(options, values)
        else:
            given = literal(values)
        if self.chance(0.2) and isinstance(given, ast.ListLiteral):
            return ast.Comparison(given, ast.CompareOp.CONTAINS, access(var, name))
        return ast.Membership(access(var, name), given)

    def _null_test(self, var: Var) -> ast.Condition:
        is_negated = self.chance(0.6)
        if var.is_optional and not var.is_edge and self.chance(0.5):
            return ast.NullTest(ast.Variable(Name(var.name)), is_negated)
        name = self.rng.choice(list(var.properties))
        return ast.NullTest(access(var, name), is_negated)

    def _list_test(self, var: Var) -> ast.Condition | None:
        lists = {n: t for n, t in var.properties.items() if t.is_list}
        if not lists:
            return None
        name = self.rng.choice(list(lists))
        element = PropType(lists[name].scalar)
        members = self.stored(var, name, lists[name])
        assert isinstance(members, tuple)
        value = self.rng.choice(members) if members else random_value(self.rng, element)
        given = self.given(element, value)
        return ast.Comparison(access(var, name), ast.CompareOp.CONTAINS, given)

    def _text_test(self, var: Var) -> ast.Condition | None:
        names = [n for n, t in var.properties.items() if t.is_string and t.enum_values is None]
        name = self.rng.choice(names)
        text = self.stored(var, name, STRING)
        assert isinstance(text, str)
        start = 0 if self.chance(0.6) else self.rng.randrange(len(text) + 1)
        part = text[start : start + self.rng.choice((0, 1, 1, 2, 3))]
        op = self.rng.choice((ast.CompareOp.CONTAINS, ast.CompareOp.STARTS_WITH))
        return ast.Comparison(access(var, name), op, self.given(STRING, part))

    def _search(self, variables: Sequence[Var]) -> ast.Condition | None:
        found = self.text_call(variables)
        if found is None or self.chance(0.6):
            return None if found is None else ast.Truth(found)
        op = self.rng.choice(EQUALITIES)
        return ast.Comparison(found, op, self.given(BOOL, self.chance(0.5)))

    def _same(self, var: Var, variables: Sequence[Var]) -> ast.Condition | None:
        """Two nodes, the same one or not."""
        fitting = [v for v in variables if v != var and not v.is_edge]
        others = [v for v in fitting if v.type_name == var.type_name]
        if var.is_edge or not others:
            return None
        op = ast.CompareOp.NE if self.chance(0.7) else ast.CompareOp.EQ
        names = Name(var.name), Name(self.rng.choice(others).name)
        return ast.Comparison(ast.Variable(names[0]), op, ast.Variable(names[1]))

    def _of_params(self) -> ast.Condition:
        """A condition that is the same for every row."""
        scalar = self.rng.choice((Scalar.I64, Scalar.STRING, Scalar.DATE, Scalar.F64))
        type = PropType(scalar)
        first, second = (random_value(self.rng, type) for _ in range(2))
        if self.chance(0.3):
            return ast.NullTest(self.param(type, first), self.chance(0.8))
        op = self.rng.choice((ast.CompareOp.NE, *ORDERINGS))
        return ast.Comparison(self.param(type, first), op, self.given(type, second))

    def _end(self, var: Var, variables: Sequence[Var]) -> ast.Condition | None:
        """An end of an edge beside the id of a node."""
        edges = [v for v in variables if v.is_edge]
        if var.is_edge or not edges:
            return None
        op = self.rng.choice((*EQUALITIES, ast.CompareOp.LE))
        end = access(self.rng.choice(edges), self.rng.choice(("src", "dst")))
        return ast.Comparison(end, op, access(var, "id"))

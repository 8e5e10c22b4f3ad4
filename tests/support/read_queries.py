"""Random reads: every clause of the language, over the schema of the random worlds.

Queries are well-formed by construction as far as that is simple; the few that the checker refuses
are left out by whoever runs them. `random_read` gives a query and the values of its parameters.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from omnigraph_core.diagnostics import Name
from omnigraph_core.query import ast
from omnigraph_core.query.check_traversal import edge_word
from omnigraph_core.query.render import render_query
from omnigraph_core.values import to_json
from tests.support.read_contents import catalog, random_value
from tests.support.read_results import random_result
from tests.support.read_terms import Terms, Var, access

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from omnigraph_core.schema.catalog import EdgeType
    from omnigraph_core.values import Value
    from tests.support.read_contents import Contents


@dataclass(frozen=True)
class Sample:
    """A query and what its parameters are."""

    query: ast.Query
    params: dict[str, Value]

    @property
    def text(self) -> str:
        return render_query(self.query)

    @property
    def given(self) -> dict[str, object]:
        """The parameters as users give them; now and then a null one is left out."""
        names = {str(param.name) for param in self.query.params}
        found = {name: to_json(self.params[name]) for name in self.params if name in names}
        return {n: v for n, v in found.items() if v is not None or len(n) % 2}


def random_read(rng: Random, contents: Contents) -> Sample:
    terms = Terms(rng, contents)
    match, variables = _Block(terms).whole()
    read = random_result(terms, variables, match)
    params = tuple(ast.Param(Name(name), type) for name, (type, _) in terms.params.items())
    query = ast.Query(Name("q"), params, (), read)
    return Sample(query, {name: value for name, (_, value) in terms.params.items()})


NAMES = {
    "Part": ("a", "b", "c", "p"), "Bin": ("d", "e"), "Shelf": ("s",), "Note": ("m", "n"),
    "Day": ("f",), "Grade": ("g",),
}  # fmt: skip
EDGE_NAMES = ("v", "w")
LOCAL_NAMES = ("x", "y")
"""What a `not` block may call nodes of any type, whatever another block calls so."""


class _Block:
    """A clause list in the making: what it binds, what it sees of the blocks around it."""

    def __init__(
        self, terms: Terms, outer: Sequence[Var] = (), *, is_negated: bool = False
    ) -> None:
        self.terms = terms
        self.rng = terms.rng
        self.outer = {var.name: var for var in outer}
        self.own: dict[str, Var] = {}
        self.is_negated = is_negated
        self.hidden: set[str] = set()
        """Names used inside blocks, that no optional block may bind later."""
        self.clauses: list[ast.Clause] = []

    @property
    def visible(self) -> dict[str, Var]:
        return {**self.outer, **self.own}

    def whole(self) -> tuple[tuple[ast.Clause, ...], list[Var]]:
        """A match."""
        self._patterns(self.rng.choice((0, 1, 1, 1, 2, 2, 3)))
        self._conditions(self.rng.choice((0, 0, 1, 1, 2)))
        self._blocks(self.rng.choice((0, 0, 1, 1, 2)), depth=2)
        return tuple(self.clauses), list(self.own.values())

    # Bindings and traversals

    def _patterns(self, traversals: int) -> None:
        found: list[ast.Clause] = []
        if not self.outer and (not traversals or self.terms.chance(0.7)):
            found.append(self._binding())
        for _ in range(traversals):
            traversal = self._traversal()
            if traversal is not None:
                found.append(traversal)
        if self.terms.chance(0.2 if self.outer else 0.12):
            found.append(self._binding())
        if not found:
            found.append(self._binding())
        if self.terms.chance(0.3):
            self.rng.shuffle(found)
        self.clauses += found

    def _binding(self) -> ast.Binding:
        """A new variable, or conditions on one that is there."""
        again = [v for v in self.visible.values() if not v.is_edge and v.name not in self.hidden]
        again = [v for v in again if not v.is_optional or v.name in self.outer]
        if again and self.terms.chance(0.5):
            var = self.rng.choice(again)
        else:
            weights = {"Part": 6, "Bin": 2, "Shelf": 1, "Note": 2, "Day": 0.7, "Grade": 0.7}
            var = self._node(self.terms.pick(weights), is_new=True)
        chosen = () if self.terms.chance(0.8) else (self._field(var),)
        return ast.Binding(Name(var.name), Name(var.type_name), chosen)

    def _field(self, var: Var) -> ast.Assignment:
        name = self.rng.choice([n for n, t in var.properties.items() if not t.is_vector])
        type = var.properties[name]
        value = self.terms.stored(var, name, type)
        if type.is_list:
            assert isinstance(value, tuple)
            type = replace(type, is_list=False)
            value = self.rng.choice(value) if value else random_value(self.rng, type)
        return ast.Assignment(Name(name), self.terms.given(replace(type, enum_values=None), value))

    def _node(self, type_name: str, *, is_new: bool = False, besides: str = "") -> Var:
        """A variable of a type, known already or not."""
        known = [v for v in self.visible.values() if v.type_name == type_name and not v.is_edge]
        known = [v for v in known if v.name in self.outer or not v.is_optional]
        known = [v for v in known if v.name != besides]
        names = LOCAL_NAMES if self.is_negated and self.terms.chance(0.6) else NAMES[type_name]
        fresh = [name for name in names if name not in self.visible]
        fresh = [name for name in fresh if name not in self.hidden]
        if known and not (fresh and (is_new or self.terms.chance(0.4))):
            return self.rng.choice(known)
        var = Var(self.rng.choice(fresh or [f"z{len(self.visible)}"]), type_name)
        self.own[var.name] = var
        return var

    def _traversal(self) -> ast.Traversal | None:
        edges = catalog().edges
        known = {v.type_name for v in self.visible.values() if not v.is_edge}
        fitting = [e for e in edges.values() if not known or {e.source, e.target} & known]
        if not fitting:
            return None
        weights = {"Needs": 6, "Holds": 4, "Near": 2, "On": 1, "About": 2, "Made": 1, "Graded": 1}
        edge = edges[self.terms.pick({e.name: weights[e.name] for e in fitting})]
        left, right = self._ends(edge)
        is_undirected = edge.source == edge.target and self.terms.chance(0.25)
        binding, bounds = self._edge_variable(edge), None
        if binding is None and self.terms.chance(0.25):
            is_chain = edge.source == edge.target
            low = self.rng.choice((1, 1, 1, 2, 2, 3)) if is_chain or self.terms.chance(0.05) else 1
            bounds = ast.Bounds(low, low + self.rng.choice((0, 0, 1, 2, 5)))
        return ast.Traversal(left, self._word(edge), right, is_undirected, binding, bounds)

    def _word(self, edge: EdgeType) -> Name:
        return Name(edge_word(edge.name) if self.terms.chance(0.95) else edge.name.lower())

    def _ends(self, edge: EdgeType) -> tuple[Name, Name]:
        """Variables at both ends, at least one of them known before if any is there that fits."""
        known = set(self.visible)
        if edge.source == edge.target and self.terms.chance(0.03):
            name = Name(self._node(edge.source).name)
            return name, name
        first = self._end(edge.source)
        names = [first, self._end(edge.target, besides=first)]
        if names == [ast.ANONYMOUS] * 2:
            names[0] = Name(self._node(edge.source).name)
        # Which way an edge is followed has to be clear from what is bound.
        if edge.source != edge.target and known & set(names) and self.terms.chance(0.4):
            names.reverse()
        return names[0], names[1]

    def _end(self, type_name: str, besides: str = "") -> Name:
        if self.terms.chance(0.1):
            return Name(ast.ANONYMOUS)
        return Name(self._node(type_name, besides=besides).name)

    def _edge_variable(self, edge: EdgeType) -> Name | None:
        fresh = [n for n in EDGE_NAMES if n not in self.visible and n not in self.hidden]
        if not fresh or not self.terms.chance(0.22):
            return None
        var = Var(self.rng.choice(fresh), edge.name, is_edge=True)
        self.own[var.name] = var
        return Name(var.name)

    # What narrows rows, and blocks

    def _conditions(self, count: int) -> None:
        visible = list(self.visible.values())
        for _ in range(count):
            self.clauses.append(ast.Filter(self.terms.condition(visible)))

    def _blocks(self, count: int, depth: int) -> None:
        for _ in range(count):
            if self.is_negated or self.terms.chance(0.5):
                self._negation(depth)
                if self.terms.chance(0.2):
                    self._negation(depth)
            else:
                self._optional(depth)
        if count and self.terms.chance(0.3):
            self._conditions(1)

    def _negation(self, depth: int) -> None:
        inner = self._inner(is_negated=True)
        if self.terms.chance(0.25):
            inner._conditions(1)
        else:
            inner._related(self.rng.choice((1, 1, 2)))
            inner._conditions(self.rng.choice((0, 1, 1)))
        if depth > 1 and self.terms.chance(0.25):
            inner._blocks(1, depth - 1)
        self.hidden.update(inner.own)
        self.clauses.append(ast.Negation(tuple(inner.clauses)))

    def _optional(self, depth: int) -> None:
        inner = self._inner(is_negated=False)
        inner.hidden |= self.hidden
        inner._related(self.rng.choice((1, 1, 2)))
        inner._conditions(self.rng.choice((0, 1, 1)))
        if depth > 1 and self.terms.chance(0.3):
            inner._blocks(1, depth - 1)
        if inner.own:
            self.own |= {v.name: replace(v, is_optional=True) for v in inner.own.values()}
            self.hidden |= inner.hidden
            self.clauses.append(ast.OptionalMatch(tuple(inner.clauses)))

    def _inner(self, *, is_negated: bool) -> _Block:
        return _Block(self.terms, list(self.visible.values()), is_negated=is_negated)

    def _related(self, count: int) -> None:
        """Patterns of an inner block, of which the first reaches out of it."""
        traversals = [t for t in (self._traversal() for _ in range(count)) if t is not None]
        self.clauses += traversals
        if self.terms.chance(0.25):
            self.clauses.append(self._binding())
        if not any(self._is_outer(clause) for clause in self.clauses):
            outer = self.rng.choice(list(self.outer.values()))
            test = ast.NullTest(access(outer, "id"), is_negated=True)
            self.clauses.append(ast.Filter(test))

    def _is_outer(self, clause: ast.Clause) -> bool:
        if isinstance(clause, ast.Traversal):
            return clause.left in self.outer or clause.right in self.outer
        return isinstance(clause, ast.Binding) and clause.variable in self.outer

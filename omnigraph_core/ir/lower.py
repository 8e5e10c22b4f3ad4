"""Lowering: a checked query in, its intermediate form out.

A clause list becomes scans and expands, each filter as soon as its variables are bound, then
anti-joins, then optional joins in written order with whatever waits for them. Every clause is
emitted exactly once; one that never finds its variables is a bug to report, not a lost condition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.errors import InvariantBroken
from omnigraph_core.ir.links import next_link, walk_link
from omnigraph_core.ir.local_names import outer_names, rename_locals
from omnigraph_core.ir.lower_mutation import lower_mutation
from omnigraph_core.ir.nodes import (
    Filter,
    NodeScan,
    OrderKey,
    QueryIR,
    ReturnColumn,
    anti_join,
    introduces,
    optional_join,
)
from omnigraph_core.query.ast import SortDirection
from omnigraph_core.query.checked import (
    CheckedBinding,
    CheckedFilter,
    CheckedMutation,
    CheckedNegation,
    CheckedOptional,
    CheckedTraversal,
)
from omnigraph_core.query.mentions import mentions
from omnigraph_core.query.typed import IsNull, NodeValue

if TYPE_CHECKING:
    from collections.abc import Iterable

    from omnigraph_core.ir.nodes import MutationIR, Op, Pipeline
    from omnigraph_core.query.checked import CheckedClause, CheckedQuery, CheckedRead
    from omnigraph_core.query.typed import TypedCondition


def lower_query(checked: CheckedQuery) -> QueryIR | MutationIR:
    """The intermediate form of a checked query, not yet optimised."""
    if isinstance(checked.body, CheckedMutation):
        return lower_mutation(checked.name, checked.params, checked.body)
    return _lower_read(checked, checked.body)


def _lower_read(checked: CheckedQuery, read: CheckedRead) -> QueryIR:
    return QueryIR(
        name=checked.name,
        params=checked.params,
        pipeline=lower_match(read.clauses),
        columns=tuple(ReturnColumn(c.name, c.expr, c.type) for c in read.columns),
        is_distinct=read.is_distinct,
        is_grouped=read.is_grouped,
        having=read.having,
        order_by=tuple(
            OrderKey(key.expr, is_descending=key.direction is SortDirection.DESC)
            for key in read.order
        ),
        limit=read.limit,
        offset=read.offset,
        node_types=checked.node_types,
    )


def lower_match(clauses: Iterable[CheckedClause]) -> Pipeline:
    """The pipeline of a whole match block."""
    return _Block(tuple(clauses)).lower()


class _Block:
    """One clause list on its way to a pipeline; `bound` grows as operators are emitted.

    `taken` are all names of the rows it starts from; it reads only those in `bound`.
    """

    def __init__(
        self,
        clauses: tuple[CheckedClause, ...],
        *,
        bound: frozenset[str] = frozenset(),
        nullable: frozenset[str] = frozenset(),
        taken: frozenset[str] = frozenset(),
    ) -> None:
        self.bound = set(bound)
        self.nullable = set(nullable)
        self.taken = taken
        self.ops: list[Op] = []
        self.scans: list[CheckedBinding] = []
        self.conditions: dict[str, tuple[TypedCondition, ...]] = {}
        self.links: list[CheckedTraversal] = []
        self.filters: list[tuple[TypedCondition, frozenset[str]]] = []
        self.negations: list[CheckedNegation] = []
        self.optionals: list[CheckedOptional] = []
        for clause in clauses:
            self._sort_in(clause)

    def _sort_in(self, clause: CheckedClause) -> None:
        match clause:
            case CheckedBinding():
                self._sort_in_binding(clause)
            case CheckedTraversal():
                self.links.append(clause)
            case CheckedFilter(condition=condition):
                self._wait_for(condition)
            case CheckedNegation():
                self.negations.append(clause)
            case CheckedOptional():
                self.optionals.append(clause)

    def _sort_in_binding(self, binding: CheckedBinding) -> None:
        """The first binding of a variable introduces it; a repeated one only adds conditions.

        Of a variable from outside, one without conditions still says that the node is there.
        """
        variable = binding.variable
        if variable not in self.bound and variable not in self.conditions:
            self.scans.append(binding)
            self.conditions[variable] = binding.conditions
            return
        is_nullable = variable in self.nullable
        if is_nullable or (variable in self.bound and not binding.conditions):
            node = NodeValue(variable, binding.type_name, is_nullable)
            self._wait_for(IsNull(node, is_negated=True))
        for condition in binding.conditions:
            self._wait_for(condition)

    def _wait_for(self, condition: TypedCondition) -> None:
        """Keep a condition for when its variables are bound; they are looked up only once."""
        self.filters.append((condition, mentions(condition)))

    def lower(self) -> Pipeline:
        self._emit_filters()
        self._emit_links()
        for binding in self.scans:
            if binding.variable not in self.bound:
                self._scan(binding.variable, binding.type_name)
        while self.links:
            self._scan(*self.links[0].source)
        self._emit_negations()
        for optional in self.optionals:
            self._emit_optional(optional)
        self._require_all_emitted()
        return tuple(self.ops)

    def _scan(self, variable: str, type_name: str) -> None:
        """Start a part of the match at a variable and walk everything linked to it."""
        self._emit(NodeScan(variable, type_name, self.conditions.get(variable, ())))
        self._emit_filters()
        self._emit_links()

    def _emit_links(self) -> None:
        while (link := next_link(self.links, self.bound)) is not None:
            self.links.remove(link)
            self._emit(walk_link(link, self.bound, self.conditions))
            self._emit_filters()

    def _emit_filters(self) -> None:
        waiting = []
        for condition, names in self.filters:
            if names <= self.bound:
                self._emit(Filter(condition))
            else:
                waiting.append((condition, names))
        self.filters = waiting

    def _emit_negations(self) -> None:
        waiting = []
        for negation in self.negations:
            if self.bound >= outer_names(negation):
                self._emit(anti_join(self._inner(negation)))
            else:
                waiting.append(negation)
        self.negations = waiting

    def _emit_optional(self, optional: CheckedOptional) -> None:
        join = optional_join(self._inner(optional))
        self._emit(join)
        self.nullable.update(join.introduced)
        self._emit_filters()
        self._emit_negations()

    def _inner(self, block: CheckedNegation | CheckedOptional) -> Pipeline:
        taken = self.taken | self.bound
        if isinstance(block, CheckedNegation):
            block = rename_locals(block, taken)
        outer = outer_names(block)
        nullable = outer & self.nullable
        return _Block(block.clauses, bound=outer, nullable=nullable, taken=taken).lower()

    def _emit(self, op: Op) -> None:
        self.ops.append(op)
        self.bound.update(introduces(op))

    def _require_all_emitted(self) -> None:
        left_over = [*self.links, *self.filters, *self.negations]
        if left_over:
            raise InvariantBroken(
                f"every clause of a match is emitted; left over with {sorted(self.bound)} bound: "
                f"{left_over}"
            )

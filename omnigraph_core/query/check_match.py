"""Match blocks: every variable gets its type, every traversal a direction, every filter its values.

A block is read twice. First its bindings and traversals, since a binding counts wherever it stands;
then its filters and inner blocks in written order, since a filter sees only what stands above it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from omnigraph_core.diagnostics import did_you_mean
from omnigraph_core.query.ast import (
    ANONYMOUS,
    Binding,
    CompareOp,
    Comparison,
    Filter,
    Membership,
    Negation,
    OptionalMatch,
    Traversal,
    Variable,
)
from omnigraph_core.query.check_traversal import (
    check_traversal,
    edge_word,
    is_free_name,
    is_left_open,
)
from omnigraph_core.query.checked import (
    CheckedBinding,
    CheckedFilter,
    CheckedNegation,
    CheckedOptional,
)
from omnigraph_core.query.conditions import check_condition, conjuncts
from omnigraph_core.query.expressions import check_expr
from omnigraph_core.query.fields import check_field, check_value
from omnigraph_core.query.functions import Place
from omnigraph_core.query.operands import listing
from omnigraph_core.query.scope import Bound, Scope, find_property
from omnigraph_core.query.typed import EntityKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from omnigraph_core.diagnostics import Name
    from omnigraph_core.query.ast import Assignment, Clause, Expr
    from omnigraph_core.query.checked import CheckedClause
    from omnigraph_core.query.scope import Context
    from omnigraph_core.query.typed import TypedCondition, TypedExpr

_OPERATOR_WORDS: Final = frozenset({"contains", "starts_with", "in"})


def check_match(ctx: Context, clauses: Sequence[Clause]) -> tuple[Scope, tuple[CheckedClause, ...]]:
    """The clauses of a match, and the scope its results are written in."""
    scope = Scope()
    return scope, _check_block(ctx, scope, clauses)


def _check_block(
    ctx: Context, scope: Scope, clauses: Sequence[Clause]
) -> tuple[CheckedClause, ...]:
    meant = [_meant(ctx, clause) for clause in clauses]
    declared = _declared(ctx, meant)
    patterns = [_pattern(ctx, scope, i, clause, declared) for i, clause in enumerate(meant)]
    checked: list[CheckedClause] = []
    for position, (clause, pattern) in enumerate(zip(meant, patterns, strict=True)):
        scope.position = position
        if pattern is not None:
            checked.append(pattern)
        elif isinstance(clause, Filter):
            checked.extend(_filters(ctx, scope, clause))
        elif isinstance(clause, Negation | OptionalMatch):
            checked.extend(_inner_block(ctx, scope, clause))
    scope.position = len(meant)
    return tuple(checked)


def _meant(ctx: Context, clause: Clause) -> Clause:
    """`$param in $options` reads like a traversal, but a parameter is never a node."""
    if (
        not isinstance(clause, Traversal)
        or clause.edge not in _OPERATOR_WORDS
        or clause.left not in ctx.params
        or clause.is_undirected
        or clause.edge_binding is not None
        or clause.bounds is not None
    ):
        return clause
    left = Variable(clause.left, clause.left.span)
    right = Variable(clause.right, clause.right.span)
    if clause.edge == "in":
        return Filter(Membership(left, right, clause.span), clause.span)
    return Filter(Comparison(left, CompareOp(clause.edge), right, clause.span), clause.span)


def _declared(ctx: Context, clauses: Sequence[Clause]) -> dict[str, str | None]:
    """The type each variable of a block is first bound to."""
    types: dict[str, str | None] = {}
    for clause in clauses:
        if isinstance(clause, Binding) and clause.variable not in types:
            is_node = clause.type_name in ctx.catalog.nodes
            types[clause.variable] = str(clause.type_name) if is_node else None
    return types


def _pattern(
    ctx: Context, scope: Scope, position: int, clause: Clause, declared: dict[str, str | None]
) -> CheckedClause | None:
    """A binding or traversal, checked; for an optional block, what it will introduce is noted."""
    scope.position = position
    if isinstance(clause, Binding):
        return _binding(ctx, scope, clause)
    if isinstance(clause, Traversal):
        return check_traversal(ctx, scope, clause, declared)
    if isinstance(clause, OptionalMatch):
        scope.promised.update(name for name in _pattern_names(clause) if not scope.is_known(name))
    return None


def _pattern_names(block: OptionalMatch) -> Iterator[Name]:
    """Every variable an optional block may introduce, those of inner optional blocks too."""
    waiting: list[Clause] = list(block.clauses)
    while waiting:
        clause = waiting.pop()
        if isinstance(clause, Binding):
            yield clause.variable
        elif isinstance(clause, Traversal):
            ends = (clause.left, clause.right, clause.edge_binding)
            yield from (name for name in ends if name is not None and name != ANONYMOUS)
        elif isinstance(clause, OptionalMatch):
            waiting.extend(clause.clauses)


def _binding(ctx: Context, scope: Scope, written: Binding) -> CheckedBinding | None:
    name = written.variable
    type_name = _node_type(ctx, written.type_name)
    if name == ANONYMOUS:
        hint = "give the variable a name, like `$x`"
        ctx.report("T6", "`$_` cannot be bound", name.span, hint=hint)
        return None
    is_free = is_free_name(ctx, name) and not is_left_open(ctx, scope, name)
    bound = scope.find(name)
    if bound is None:
        bound = Bound(str(name), EntityKind.NODE, type_name, scope.position)
        if name not in scope.promised:
            scope.variables[bound.name] = bound
    elif not _is_same(ctx, bound, written, type_name):
        return None
    if type_name is None or bound.type_name is None:
        return None
    conditions = [_field(ctx, scope, bound, field) for field in written.fields]
    sound = tuple(condition for condition in conditions if condition is not None)
    return CheckedBinding(bound.name, type_name, sound) if is_free else None


def _node_type(ctx: Context, name: Name) -> str | None:
    if name in ctx.catalog.nodes:
        return str(name)
    if ctx.is_first("T1", name):
        message, hint = _type_problem(ctx, name)
        ctx.report("T1", message, name.span, hint=hint)
    return None


def _type_problem(ctx: Context, name: Name) -> tuple[str, str | None]:
    catalog = ctx.catalog
    if name in catalog.interfaces:
        nodes = [node.name for node in catalog.nodes.values() if name in node.implements]
        hint = listing("bind a node type that implements it:", nodes)
        return f"`{name}` is an interface, not a node type", hint
    if name in catalog.edges:
        hint = f"traverse it: `$a {edge_word(name)} $b`"
        return f"`{name}` is an edge, not a node type", hint
    hint = did_you_mean(name, catalog.nodes) or listing("node types are", catalog.nodes)
    return f"unknown node type `{name}`", hint


def _is_same(ctx: Context, bound: Bound, written: Binding, type_name: str | None) -> bool:
    """Whether a variable that exists already may be bound again: a node of the same type."""
    if bound.kind is EntityKind.EDGE:
        message = f"`${bound.name}` is an edge and cannot be bound to nodes"
        ctx.report("T23", message, written.variable.span, hint="choose another name")
        return False
    if type_name is None or bound.type_name in (None, type_name):
        return True
    message = f"`${bound.name}` is a `{bound.type_name}` already, not a `{type_name}`"
    ctx.report("T28", message, written.type_name.span, hint="use another variable")
    return False


def _field(ctx: Context, scope: Scope, bound: Bound, field: Assignment) -> TypedCondition | None:
    type = find_property(ctx, bound, field.name)
    if type is not None:
        return check_field(ctx, scope, bound.name, field, type)
    assert bound.type_name is not None
    properties = ctx.catalog.nodes[bound.type_name].properties
    hint = did_you_mean(field.name, (*properties, "id")) or listing("it has", properties)
    message = f"unknown property `{field.name}` on `{bound.type_name}`"
    ctx.report("T2", message, field.name.span, hint=hint)
    check_value(ctx, field.value, scope=scope)
    return None


def _filters(ctx: Context, scope: Scope, written: Filter) -> Iterator[CheckedFilter]:
    """One filter per part of an `and`: each can then run as soon as its own variables are bound."""

    def operand(expr: Expr) -> TypedExpr | None:
        return check_expr(ctx, scope, expr, Place.MATCH)

    for part in conjuncts(written.condition):
        condition = check_condition(ctx, part, operand)
        if condition is not None:
            yield CheckedFilter(condition)


def _inner_block(
    ctx: Context, scope: Scope, written: Negation | OptionalMatch
) -> Iterator[CheckedClause]:
    is_negation = isinstance(written, Negation)
    if not is_negation and scope.is_negated:
        hint = "`not` asks whether anything matches; an option cannot change that"
        ctx.report("T41", "`optional` has no effect inside `not`", written.span, hint=hint)
    before = ctx.problem_count
    inner = Scope(scope, is_negated=is_negation)
    clauses = _check_block(ctx, inner, written.clauses)
    if not inner.mentions_outer and ctx.problem_count == before:
        _report_uncorrelated(ctx, written)
    if isinstance(written, Negation):
        scope.hidden.update(inner.variables)
        yield CheckedNegation(clauses, tuple(inner.outer))
    else:
        if not inner.variables and ctx.problem_count == before:
            message = "`optional` block binds no variable, so it changes nothing"
            hint = "write its conditions outside, or bind what may be missing"
            ctx.report("T41", message, written.span, hint=hint)
        _adopt(ctx, scope, inner, written)
        yield CheckedOptional(clauses, tuple(inner.outer), tuple(inner.variables))


def _report_uncorrelated(ctx: Context, written: Negation | OptionalMatch) -> None:
    if isinstance(written, Negation):
        code, message = "T9", "`not` block mentions no variable bound outside it"
    else:
        code, message = "T41", "`optional` block mentions no variable bound outside it"
    ctx.report(code, message, written.span, hint="connect it to a variable of the match")


def _adopt(ctx: Context, scope: Scope, inner: Scope, written: OptionalMatch) -> None:
    """Make the variables of an optional block visible after it, as ones that may be null."""
    for bound in inner.variables.values():
        if scope.is_hidden(bound.name):
            place = next((n.span for n in _pattern_names(written) if n == bound.name), written.span)
            message = f"`${bound.name}` names something else inside a `not` block above"
            ctx.report("T41", message, place, hint="choose another name for one of them")
        scope.bind(bound.name, bound.kind, bound.type_name, is_optional=True)

"""Traversals: which edge, in which direction, between which node types.

A variable bound anywhere in the block or around it has its type before its traversals are read;
only where neither end is known does the edge's own direction decide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.diagnostics import did_you_mean
from omnigraph_core.query.ast import ANONYMOUS
from omnigraph_core.query.checked import CheckedTraversal, Direction
from omnigraph_core.query.operands import listing
from omnigraph_core.query.typed import EntityKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from omnigraph_core.diagnostics import Name
    from omnigraph_core.query.ast import Traversal
    from omnigraph_core.query.scope import Context, Scope
    from omnigraph_core.schema.catalog import EdgeType


def check_traversal(
    ctx: Context, scope: Scope, written: Traversal, declared: Mapping[str, str | None]
) -> CheckedTraversal | None:
    """A traversal with both ends typed; binds the ends and the edge variable it introduces.

    Args:
        declared: the types that bindings of this block give, wherever they stand.
    """
    edge = ctx.catalog.try_edge(written.edge)
    if edge is None:
        _report_edge(ctx, written.edge)
    are_usable = _is_end(ctx, scope, written.left) & _is_end(ctx, scope, written.right)
    types = (_end_type(scope, written.left, declared), _end_type(scope, written.right, declared))
    is_sound = are_usable and not _has_unknown_end(scope, written, declared)
    direction = None
    if edge is not None:
        direction = _direction(ctx, written, edge, types, are_ends_sound=is_sound)
    left, right = _bind_ends(ctx, scope, written, _expected(edge, direction, types))
    edge_binding = _bind_edge(ctx, scope, written, edge)
    hops = _hops(ctx, written)
    if edge is None or direction is None or hops is None or not are_usable:
        return None
    if written.edge_binding is not None and edge_binding is None:
        return None
    return _checked(scope, (left, right), edge, direction, hops, edge_binding)


def _report_edge(ctx: Context, word: Name) -> None:
    if not ctx.is_first("T4", word.lower()):
        return
    names = [edge_word(name) for name in ctx.catalog.edges]
    hint = did_you_mean(word, names) or listing("edges are", names)
    ctx.report("T4", f"unknown edge `{word}`", word.span, hint=hint)


def edge_word(name: str) -> str:
    """An edge as traversals write it: first letter in lower case."""
    return name[:1].lower() + name[1:]


def _is_end(ctx: Context, scope: Scope, name: Name) -> bool:
    """Whether a variable may stand at an end of a traversal of this block."""
    if name == ANONYMOUS:
        return True
    if not is_free_name(ctx, name):
        return False
    if is_left_open(ctx, scope, name):
        return False
    bound = scope.find(name)
    if bound is not None and bound.kind is EntityKind.EDGE:
        hint = "its ends are the variables beside it"
        ctx.report("T23", f"`${name}` is an edge, not a node to start from", name.span, hint=hint)
        return False
    return True


def is_free_name(ctx: Context, name: Name) -> bool:
    """Whether a pattern variable keeps clear of the parameters."""
    if name not in ctx.params:
        return True
    if ctx.is_first("T29", name):
        message = f"`${name}` is a parameter and cannot be a pattern variable too"
        hint = "rename one; to use its value, write it in a filter or field"
        ctx.report("T29", message, name.span, hint=hint)
    return False


def is_left_open(ctx: Context, scope: Scope, name: Name) -> bool:
    """Whether an `optional` block above binds the variable, so that requiring it would undo it."""
    if name not in scope.promised:
        return False
    if ctx.is_first("T41", name):
        message = f"`${name}` is bound by an `optional` block above and cannot be required here"
        hint = "move this clause inside the optional block, or the variable out of it"
        ctx.report("T41", message, name.span, hint=hint)
    return True


def _end_type(scope: Scope, name: Name, declared: Mapping[str, str | None]) -> str | None:
    """The node type of an end if it is known, by a binding anywhere or by an earlier clause."""
    if name == ANONYMOUS:
        return None
    bound = scope.find(name)
    if bound is None:
        return declared.get(name)
    return bound.type_name if bound.kind is EntityKind.NODE else None


def _has_unknown_end(scope: Scope, written: Traversal, declared: Mapping[str, str | None]) -> bool:
    """Whether a mistake in another clause keeps the type of an end from being known."""
    for name in (written.left, written.right):
        if name == ANONYMOUS:
            continue
        bound = scope.find(name)
        if (bound.type_name if bound is not None else declared.get(name, "")) is None:
            return True
    return False


def _direction(
    ctx: Context,
    written: Traversal,
    edge: EdgeType,
    types: tuple[str | None, str | None],
    *,
    are_ends_sound: bool,
) -> Direction | None:
    left, right = types
    if written.is_undirected:
        return _undirected(ctx, written, edge, types)
    if written.left == written.right != ANONYMOUS and edge.source != edge.target:
        return _report_end(ctx, written.right, left or edge.source, edge)
    for direction, source, target in (
        (Direction.OUT, edge.source, edge.target),
        (Direction.IN, edge.target, edge.source),
    ):
        if left == source or (left is None and right == target):
            fits = right is None or right == target
            return direction if fits else _report_end(ctx, written.right, right, edge)
    if left is not None:
        return _report_end(ctx, written.left, left, edge)
    if right is not None:
        return _report_end(ctx, written.right, right, edge)
    # After a mistake at an end nothing tells which way the edge was meant.
    return Direction.OUT if are_ends_sound or edge.source == edge.target else None


def _undirected(
    ctx: Context, written: Traversal, edge: EdgeType, types: tuple[str | None, str | None]
) -> Direction | None:
    if edge.source != edge.target:
        message = f"`{edge.name}` joins `{edge.source}` and `{edge.target}`, so it has a direction"
        hint = f"write `{written.edge}` without angle brackets"
        ctx.report("T22", message, written.edge.span, hint=hint)
        return None
    for name, type in zip((written.left, written.right), types, strict=True):
        if type is not None and type != edge.source:
            return _report_end(ctx, name, type, edge)
    return Direction.BOTH


def _report_end(ctx: Context, name: Name, type: str | None, edge: EdgeType) -> Direction | None:
    message = (
        f"`${name}` is a `{type}`, but `{edge.name}` goes from `{edge.source}` to `{edge.target}`"
    )
    fitting = [
        edge_word(other.name)
        for other in ctx.catalog.edges.values()
        if type in (other.source, other.target)
    ]
    ctx.report("T5", message, name.span, hint=listing(f"edges of `{type}` are", fitting))
    return None


def _expected(
    edge: EdgeType | None, direction: Direction | None, types: tuple[str | None, str | None]
) -> tuple[str | None, str | None]:
    """The types the ends get; after a mistake only what bindings say."""
    if edge is None or direction is None:
        return types
    if direction is Direction.IN:
        return edge.target, edge.source
    return edge.source, edge.target


def _bind_ends(
    ctx: Context, scope: Scope, written: Traversal, types: tuple[str | None, str | None]
) -> tuple[str, str]:
    names = []
    for name, type in zip((written.left, written.right), types, strict=True):
        if name == ANONYMOUS:
            fresh = ctx.fresh_name()
            scope.bind(fresh, EntityKind.NODE, type)
            names.append(fresh)
        else:
            if scope.find(name) is None and name not in scope.promised:
                scope.bind(str(name), EntityKind.NODE, type)
            names.append(str(name))
    return names[0], names[1]


def _bind_edge(ctx: Context, scope: Scope, written: Traversal, edge: EdgeType | None) -> str | None:
    """The edge variable, bound; None when there is none or it cannot be one."""
    name = written.edge_binding
    if name is None:
        return None
    if written.bounds is not None:
        message = f"`${name}` cannot stand for one edge of a path of several hops"
        hint = "leave out the hop bounds, or the edge variable"
        ctx.report("T23", message, written.bounds.span, hint=hint)
    if name == ANONYMOUS:
        hint = "leave it out, or give it a name"
        ctx.report("T23", "`$_` is not a name for an edge", name.span, hint=hint)
        return None
    if scope.is_known(name) or name in scope.promised:
        hint = "an edge variable needs a name of its own"
        ctx.report("T23", f"`${name}` is already bound", name.span, hint=hint)
        return None
    scope.bind(str(name), EntityKind.EDGE, edge.name if edge is not None else None)
    is_sound = is_free_name(ctx, name) and written.bounds is None
    return str(name) if is_sound else None


def _hops(ctx: Context, written: Traversal) -> tuple[int, int] | None:
    bounds = written.bounds
    if bounds is None:
        return 1, 1
    problem = hint = None
    if bounds.minimum < 1:
        problem, hint = "hop bounds start at 1", "write `{1,n}`"
    elif bounds.maximum is None:
        problem, hint = "hop bounds need a maximum", f"write `{{{bounds.minimum},n}}`"
    elif bounds.maximum < bounds.minimum:
        problem = f"hop bounds end before they start: {bounds.minimum} to {bounds.maximum}"
        hint = f"write `{{{bounds.maximum},{bounds.minimum}}}`"
    if problem is not None or bounds.maximum is None:
        ctx.report("T15", problem or "", bounds.span, hint=hint)
        return None
    return bounds.minimum, bounds.maximum


def _checked(
    scope: Scope,
    names: tuple[str, str],
    edge: EdgeType,
    direction: Direction,
    hops: tuple[int, int],
    edge_binding: str | None,
) -> CheckedTraversal | None:
    ends = [scope.find(name) for name in names]
    types = [end.type_name if end is not None else None for end in ends]
    left, right = types
    if left is None or right is None:
        return None
    return CheckedTraversal(
        names[0], left, names[1], right, edge.name, direction, *hops, edge_binding
    )

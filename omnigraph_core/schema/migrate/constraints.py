"""The steps of one type's constraints and cardinality, compared after its property renames.

Keys never change: ids derive from them. Everything else may be removed freely and added once the
rows are known to keep it. A changed bound or pattern is a removal and an addition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from omnigraph_core.diagnostics import Name
from omnigraph_core.schema.ast import Check, Index, Range, Unique
from omnigraph_core.schema.catalog import EdgeType, NodeType
from omnigraph_core.schema.document.shape import unordered_groups
from omnigraph_core.schema.migrate.codes import MigrationCode
from omnigraph_core.schema.migrate.steps import (
    AddConstraint,
    ChangeCardinality,
    DataWork,
    RemoveConstraint,
    Tier,
    UnsupportedChange,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from omnigraph_core.schema.ast import Cardinality
    from omnigraph_core.schema.migrate.pair import Pair
    from omnigraph_core.schema.migrate.steps import Step

Removable: TypeAlias = Unique | Index | Range | Check


def plan_constraints(pair: Pair[NodeType] | Pair[EdgeType]) -> Iterator[Step]:
    """Key refusals, then constraints that go, then those that come, then cardinality."""
    if isinstance(pair.after, NodeType) and isinstance(pair.before, NodeType):
        yield from _plan_key(pair, pair.before.key, pair.after.key)
    before = _constraints(pair.before, pair.renamed)
    after = _constraints(pair.after, str)
    for constraint in _in_order(before - after):
        yield RemoveConstraint(pair.kind, pair.name, constraint)
    for constraint in _in_order(after - before):
        if not any(column in pair.properties.refused for column in _columns(constraint)):
            yield _add(pair, constraint, before)
    if isinstance(pair.after, EdgeType) and isinstance(pair.before, EdgeType):
        yield from _plan_cardinality(pair, pair.before.cardinality, pair.after.cardinality)


def _plan_key(
    pair: Pair[NodeType] | Pair[EdgeType],
    before: tuple[str, ...] | None,
    after: tuple[str, ...] | None,
) -> Iterator[Step]:
    old = tuple(pair.renamed(column) for column in before or ())
    new = tuple(str(column) for column in after or ())
    if old == new or any(column in pair.properties.refused for column in new):
        return
    if not old:
        change = f"adding `@key({', '.join(new)})`"
    elif not new:
        change = f"removing `@key({', '.join(old)})`"
    else:
        change = f"changing `@key({', '.join(old)})` to `@key({', '.join(new)})`"
    yield UnsupportedChange(
        pair.entity(),
        f"{change} is not supported: ids of nodes, and so the ends of edges, derive from it",
        MigrationCode.KEY_CHANGE,
        hint="declare a new node type with the key you want and load the nodes into it",
    )


def _constraints(item: NodeType | EdgeType, rename: Callable[[str], str]) -> set[Removable]:
    def renamed(groups: tuple[tuple[str, ...], ...]) -> set[tuple[Name, ...]]:
        current = unordered_groups(tuple(rename(column) for column in group) for group in groups)
        return {tuple(Name(column) for column in group) for group in current}

    indexes = renamed(item.indexes)
    found: set[Removable] = {Unique(group) for group in renamed(item.unique)}
    if isinstance(item, NodeType):
        # The index that a key brings with it comes and goes with the key, not by a step.
        indexes -= renamed((item.key,) if item.key else ())
        found |= {Range(Name(rename(r.property)), r.minimum, r.maximum) for r in item.ranges}
        found |= {Check(Name(rename(check.property)), check.pattern) for check in item.checks}
    return found | {Index(group) for group in indexes}


def _in_order(constraints: set[Removable]) -> list[Removable]:
    return sorted(constraints, key=lambda item: (type(item).__name__, repr(item)))


def _columns(constraint: Removable) -> tuple[str, ...]:
    if isinstance(constraint, Range | Check):
        return (constraint.property,)
    return constraint.columns


def _add(
    pair: Pair[NodeType] | Pair[EdgeType], constraint: Removable, before: set[Removable]
) -> AddConstraint:
    if _holds_already(pair, constraint, before):
        return AddConstraint(pair.kind, pair.name, constraint)
    return AddConstraint(
        pair.kind, pair.name, constraint, tier=Tier.VALIDATED, data_work=DataWork.SCAN
    )


def _holds_already(
    pair: Pair[NodeType] | Pair[EdgeType], constraint: Removable, before: set[Removable]
) -> bool:
    if isinstance(constraint, Index):
        return True
    if isinstance(constraint, Range) and any(
        isinstance(old, Range) and _contains(constraint, old) for old in before
    ):
        return True
    # A new nullable column holds nulls only, and nulls are exempt from every constraint.
    return any(
        column in pair.after.properties
        and column not in pair.properties.previous
        and pair.after.properties[column].type.is_nullable
        for column in _columns(constraint)
    )


def _contains(outer: Range, inner: Range) -> bool:
    lower_holds = outer.minimum is None or (
        inner.minimum is not None and outer.minimum <= inner.minimum
    )
    upper_holds = outer.maximum is None or (
        inner.maximum is not None and inner.maximum <= outer.maximum
    )
    return outer.property == inner.property and lower_holds and upper_holds


def _plan_cardinality(
    pair: Pair[NodeType] | Pair[EdgeType], before: Cardinality, after: Cardinality
) -> Iterator[Step]:
    if before == after:
        return
    is_wider = after.minimum <= before.minimum and (
        after.maximum is None or (before.maximum is not None and before.maximum <= after.maximum)
    )
    yield ChangeCardinality(
        pair.kind,
        pair.name,
        before,
        after,
        tier=Tier.SAFE if is_wider else Tier.VALIDATED,
        data_work=DataWork.NONE if is_wider else DataWork.SCAN,
    )

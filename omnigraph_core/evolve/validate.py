"""Whether rows keep what a plan demands of them: a plan and views come in, bad rows go out.

Rows are looked at as they will be, defaults filled in. Only columns that a step makes narrower are
read, in bounded batches; every broken rule of every row is reported.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from omnigraph_core.evolve.degrees import check_degrees
from omnigraph_core.evolve.duplicates import check_group
from omnigraph_core.evolve.portions import iter_rows
from omnigraph_core.ids import edge_table_key, node_table_key
from omnigraph_core.schema.arrow import uri_column
from omnigraph_core.schema.ast import Check as Pattern
from omnigraph_core.schema.ast import Range, Unique
from omnigraph_core.schema.catalog import NodeType
from omnigraph_core.schema.migrate import Tier, TypeKind
from omnigraph_core.schema.migrate.steps import (
    AddConstraint,
    AddProperty,
    ChangeCardinality,
    ChangeEmbedding,
    ConstraintStep,
    NarrowEnum,
    PropertyStep,
    StringToEnum,
    TightenNullability,
    WidenProperty,
)
from omnigraph_core.violations import Rule, Violation, Violations
from omnigraph_core.write.batches import LINE, SOURCE, Batch, Places
from omnigraph_core.write.constraints import check_rows
from omnigraph_core.write.findings import shortened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from omnigraph_core.compare.view import RowView
    from omnigraph_core.schema.catalog import Catalog
    from omnigraph_core.schema.migrate import MigrationPlan, Step
    from omnigraph_core.schema.reshape import GraphType


_RULES: Final[Mapping[type[Step], Rule]] = {
    TightenNullability: Rule.REQUIRED,
    NarrowEnum: Rule.ENUM,
    StringToEnum: Rule.ENUM,
}


@dataclass(slots=True)
class _Demands:
    """What the steps of a plan ask of the rows of one table, each with the step that asks."""

    properties: dict[str, str] = field(default_factory=dict)
    rules: dict[tuple[str, Rule], str] = field(default_factory=dict)
    """The step that asks for one rule of a property, where others ask for something else."""
    groups: dict[tuple[str, ...], str] = field(default_factory=dict)
    cardinality: str | None = None
    has_higher_minimum: bool = False


def check_tightened(
    before: Catalog,
    after: Catalog,
    plan: MigrationPlan,
    open_view: Callable[[str], RowView | None],
    violations: Violations,
) -> frozenset[str]:
    """Report the rows that do not keep what the steps of a plan demand.

    Args:
        before, after: the catalogs the plan leads from and to.
        open_view: the rows a table will have, by its later key; None: there is no such table yet.

    Returns:
        The later keys of the tables that were looked at.
    """
    types = _types(after)
    if not _types(before):
        return frozenset()
    read: set[str] = set()
    for key, demands in _collect(plan, types).items():
        view = open_view(key)
        if view is None:
            continue
        read.add(key)
        type = types[key]
        _check_values(view, type, demands, violations)
        for group, cause in demands.groups.items():
            check_group(view, group, cause, violations)
        if demands.cardinality is not None and not isinstance(type, NodeType):
            check_degrees(
                type,
                view,
                demands.cardinality,
                violations,
                has_higher_minimum=demands.has_higher_minimum,
            )
    return frozenset(read)


def _types(catalog: Catalog) -> dict[str, GraphType]:
    types: tuple[GraphType, ...] = (*catalog.nodes.values(), *catalog.edges.values())
    return {type.table_key: type for type in types}


def _collect(plan: MigrationPlan, types: Mapping[str, GraphType]) -> dict[str, _Demands]:
    found: dict[str, _Demands] = defaultdict(_Demands)
    for step in plan.steps:
        match step:
            case PropertyStep(type_kind=TypeKind.INTERFACE):
                continue
            case PropertyStep():
                _demand_property(step, types, found)
            case AddConstraint(tier=Tier.VALIDATED):
                _demand_constraint(step, found[_key(step)])
            case ChangeCardinality(tier=Tier.VALIDATED):
                demands = found[_key(step)]
                demands.cardinality = f"{step.kind} {_key(step)}"
                demands.has_higher_minimum = step.to.minimum > step.from_.minimum
    return {key: found[key] for key in types if key in found}


def _key(step: PropertyStep | ConstraintStep | ChangeCardinality) -> str:
    make = node_table_key if step.type_kind is TypeKind.NODE else edge_table_key
    return make(step.type_name)


def _demand_property(
    step: PropertyStep, types: Mapping[str, GraphType], found: dict[str, _Demands]
) -> None:
    key, name = _key(step), step.property_name
    if not _is_narrower(step, types[key]):
        return
    cause = f"{step.kind} {key}.{name}"
    found[key].properties.setdefault(name, cause)
    rule = _RULES.get(type(step))
    if rule is not None:
        found[key].rules[name, rule] = cause
    if isinstance(step, TightenNullability) and step.default is not None:
        # One value in the place of many nulls, which were exempt so far.
        for group in types[key].unique:
            if name in group:
                found[key].groups.setdefault(tuple(group), cause)


def _is_narrower(step: Step, type: GraphType) -> bool:
    """Whether a step can meet a row that does not allow it."""
    match step:
        case (
            NarrowEnum() | StringToEnum() | TightenNullability() | AddProperty(tier=Tier.VALIDATED)
        ):
            return True
        case ChangeEmbedding(property_name=name):
            # A required vector may be without a value only while a text is there to make it from.
            return not type.properties[name].type.is_nullable
        case WidenProperty(property_name=name, to_type=wider):
            # 0.1 in 32 bits is more than 0.1 in 64, and may lie beyond the bound now.
            ranges = type.ranges if isinstance(type, NodeType) else ()
            return wider.scalar.is_float and any(item.property == name for item in ranges)
    return False


def _demand_constraint(step: AddConstraint, demands: _Demands) -> None:
    match step.constraint:
        case Unique(columns):
            group = tuple(map(str, columns))
            demands.groups.setdefault(group, f"{step.kind} {_key(step)}")
        case Range(name) | Pattern(name):
            cause = f"{step.kind} {_key(step)}.{name}"
            demands.properties.setdefault(str(name), cause)
            rule = Rule.RANGE if isinstance(step.constraint, Range) else Rule.CHECK
            demands.rules[str(name), rule] = cause


def _check_values(
    view: RowView, type: GraphType, demands: _Demands, violations: Violations
) -> None:
    """The rules of single rows, for some of the properties."""
    causes = demands.properties
    blobs = [name for name in causes if type.properties[name].type.is_blob]
    for name in blobs:
        _check_blobs(view, type, name, causes[name], violations)
    rules = _rules(type, [name for name in causes if name not in blobs])
    if not rules.properties:
        return
    found = Violations(violations.room)
    for rows in iter_rows(view, ("id", *rules.properties)):
        check_rows(Batch(rules, _placed(rows)), Places(), found)
    for violation in found.listed:
        name = violation.property or ""
        cause = demands.rules.get((name, violation.rule), causes.get(name, ""))
        message = f"{cause}: {violation.message} (id {shortened(violation.id or '')!r})"
        violations.add(replace(violation, message=message, line=None))
    listed = [violation.rule for violation in found.listed]
    for rule, count in found.counts.items():
        violations.count(rule, count - listed.count(rule))


def _rules(type: GraphType, names: Iterable[str]) -> NodeType:
    """A type with only these properties, and the texts that vectors among them are made from."""
    embeddings = type.embeddings if isinstance(type, NodeType) else {}
    made = {name: embeddings[name] for name in names if name in embeddings}
    wanted = dict.fromkeys((*names, *(embedding.source for embedding in made.values())))
    return NodeType(
        name=type.name,
        properties={name: type.properties[name] for name in wanted},
        ranges=tuple(
            item
            for item in (type.ranges if isinstance(type, NodeType) else ())
            if item.property in wanted
        ),
        checks=tuple(
            item
            for item in (type.checks if isinstance(type, NodeType) else ())
            if item.property in wanted
        ),
        embeddings=made,
    )


def _placed(rows: pa.Table) -> pa.Table:
    """Stored rows have no place; the columns that would tell it are looked for all the same."""
    nowhere = np.zeros(rows.num_rows, np.int64)
    placed = rows.append_column(SOURCE, pa.array(nowhere, pa.int32()))
    return placed.append_column(LINE, pa.array(nowhere))


def _check_blobs(
    view: RowView, type: GraphType, name: str, cause: str, violations: Violations
) -> None:
    """Rows without a required blob: found by the store, so that no bytes are read."""
    for holder, addresses in view.iter_lacking((name, uri_column(name))):
        listed = addresses[: violations.room]
        for id in holder.take(listed, ("id",)).column("id").to_pylist():
            message = (
                f"{cause}: missing required property `{name}` on {type.name} (id {shortened(id)!r})"
            )
            violations.add(
                Violation(Rule.REQUIRED, message, str(type.name), name, id=shortened(id))
            )
        violations.count(Rule.REQUIRED, len(addresses) - len(listed))

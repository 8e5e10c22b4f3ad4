"""Mutations: inserts, updates and deletes, each against the type it names.

Edge ends are written `from` and `to` and leave here as the columns `src` and `dst`. What would
change the identity of a row is refused, since ids derive from keys and ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from omnigraph_core.diagnostics import did_you_mean, nearest_name
from omnigraph_core.query.ast import Access, Call, Delete, Insert, Variable, Word
from omnigraph_core.query.checked import (
    CheckedDelete,
    CheckedInsert,
    CheckedMutation,
    CheckedUpdate,
)
from omnigraph_core.query.conditions import check_condition
from omnigraph_core.query.expressions import find_function
from omnigraph_core.query.fields import check_assignment, check_declared, check_value
from omnigraph_core.query.functions import Place
from omnigraph_core.query.literals import check_literal
from omnigraph_core.query.mentions import mentions
from omnigraph_core.query.operands import listing
from omnigraph_core.query.typed import TARGET, EntityKind, NowValue, PropertyValue
from omnigraph_core.schema.catalog import EDGE_ENDS
from omnigraph_core.types import STRING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from omnigraph_core.diagnostics import Name
    from omnigraph_core.query.ast import Assignment, Condition, Expr, Mutation, Statement, Update
    from omnigraph_core.query.checked import CheckedStatement
    from omnigraph_core.query.scope import Context
    from omnigraph_core.query.typed import TypedCondition, TypedExpr
    from omnigraph_core.schema.catalog import Embedding, PropertyDef
    from omnigraph_core.types import PropType

_END_WORDS: Final = {column: word for word, column in EDGE_ENDS.items()}


@dataclass(frozen=True, slots=True)
class _Target:
    """The type a statement writes, whichever kind it is."""

    kind: EntityKind
    name: str
    properties: Mapping[str, PropertyDef]
    key: tuple[str, ...] = ()
    embeddings: Mapping[str, Embedding] | None = None

    @property
    def is_edge(self) -> bool:
        return self.kind is EntityKind.EDGE

    def column(self, word: str) -> tuple[str, PropType] | None:
        """The stored column a word names, implicit ones included."""
        found = self.properties.get(word)
        if found is not None:
            return found.name, found.type
        if word == "id":
            return word, STRING
        return (EDGE_ENDS[word], STRING) if self.is_edge and word in EDGE_ENDS else None


def check_mutation(ctx: Context, mutation: Mutation) -> CheckedMutation:
    """Every statement of a mutation; meaningful only if the context has no problems."""
    _check_mixing(ctx, mutation.statements)
    checked = [_statement(ctx, statement) for statement in mutation.statements]
    return CheckedMutation(tuple(item for item in checked if item is not None))


def _check_mixing(ctx: Context, statements: Sequence[Statement]) -> None:
    deletes = isinstance(statements[0], Delete) if statements else False
    for statement in statements:
        if isinstance(statement, Delete) is not deletes:
            message = "a mutation either deletes, or inserts and updates"
            hint = "split it into two queries"
            ctx.report("D2", message, statement.span, hint=hint)
            return


def _statement(ctx: Context, statement: Statement) -> CheckedStatement | None:
    target = _find_target(ctx, statement.type_name)
    if target is None:
        return None
    if isinstance(statement, Insert):
        return _insert(ctx, target, statement)
    if isinstance(statement, Delete):
        where = _where(ctx, target, statement.where)
        return CheckedDelete(target.kind, target.name, where) if where is not None else None
    return _update(ctx, target, statement)


def _find_target(ctx: Context, name: Name) -> _Target | None:
    catalog = ctx.catalog
    if node := catalog.nodes.get(name):
        return _Target(EntityKind.NODE, node.name, node.properties, node.key or (), node.embeddings)
    if edge := catalog.edges.get(name):
        return _Target(EntityKind.EDGE, edge.name, edge.properties)
    if ctx.is_first("T10", name):
        known = (*catalog.nodes, *catalog.edges)
        hint = did_you_mean(name, known) or listing("types are", known)
        if name in catalog.interfaces:
            hint = f"`{name}` is an interface; write a node type that implements it"
        ctx.report("T10", f"unknown type `{name}`", name.span, hint=hint)
    return None


def _insert(ctx: Context, target: _Target, written: Insert) -> CheckedInsert:
    unknown: list[str] = []
    values: dict[str, TypedExpr | None] = {}
    for given in written.assignments:
        type = _insertable(target, given.name)
        if type is None:
            unknown.append(given.name)
            _report_unknown(ctx, target, given.name)
            check_value(ctx, given.value)
        else:
            _assign(ctx, values, given, type)
    _check_complete(ctx, target, written, values, unknown)
    return CheckedInsert(target.kind, target.name, _in_schema_order(target, values))


def _insertable(target: _Target, name: str) -> PropType | None:
    if name == "id":
        return None
    column = target.column(name)
    return column[1] if column is not None else None


def _report_unknown(ctx: Context, target: _Target, name: Name) -> None:
    message = f"unknown property `{name}` on `{target.name}`"
    hint: str | None
    if name == "id":
        hint = "ids are made from the key, or generated"
    elif target.is_edge and name in _END_WORDS:
        hint = f"write `{_END_WORDS[name]}`"
    else:
        words = (*target.properties, *(EDGE_ENDS if target.is_edge else ()))
        hint = did_you_mean(name, words) or listing("it has", words)
    ctx.report("T11", message, name.span, hint=hint)


def _assign(
    ctx: Context, values: dict[str, TypedExpr | None], given: Assignment, type: PropType
) -> None:
    value = check_assignment(ctx, given, type)
    if given.name in values:
        message = f"`{given.name}` is assigned twice"
        ctx.report("T13", message, given.name.span, hint="keep one of them")
    values[str(given.name)] = value


def _check_complete(
    ctx: Context,
    target: _Target,
    written: Insert,
    values: Mapping[str, object],
    unknown: Sequence[str],
) -> None:
    """Report what must be given and is not; a misspelt name was reported already."""
    missing = [name for name in (*EDGE_ENDS,) if target.is_edge and name not in values]
    missing += [
        prop.name
        for prop in target.properties.values()
        if prop.name not in values and _is_required(target, prop, values)
    ]
    if missing and unknown:
        meant = {nearest_name(name, missing) for name in unknown}
        meant |= {_END_WORDS.get(name) for name in unknown}
        missing = [name for name in missing if name not in meant]
    if missing:
        names = ", ".join(f"`{name}`" for name in missing)
        message = f"`{target.name}` needs {names}"
        ctx.report("T12", message, written.type_name.span, hint="assign every required property")


def _is_required(target: _Target, prop: PropertyDef, values: Mapping[str, object]) -> bool:
    if prop.type.is_nullable or prop.has_default:
        return False
    embedding = target.embeddings.get(prop.name) if target.embeddings else None
    if embedding is None:
        return True
    source = target.properties[embedding.source]
    is_filled = source.name in values or source.has_default
    return not is_filled and not _is_required(target, source, values)


def _in_schema_order(
    target: _Target, values: Mapping[str, TypedExpr | None]
) -> tuple[tuple[str, TypedExpr], ...]:
    columns = [(word, column) for word, column in EDGE_ENDS.items() if target.is_edge]
    columns += [(name, name) for name in target.properties]
    return tuple(
        (column, value) for word, column in columns if (value := values.get(word)) is not None
    )


def _update(ctx: Context, target: _Target, written: Update) -> CheckedUpdate | None:
    values: dict[str, TypedExpr | None] = {}
    if not written.assignments:
        hint = "assign at least one property"
        ctx.report("T10", "update sets nothing", written.type_name.span, hint=hint)
    for given in written.assignments:
        _set(ctx, target, values, given)
    where = _where(ctx, target, written.where)
    if where is None:
        return None
    assignments = _in_schema_order(target, values)
    return CheckedUpdate(target.kind, target.name, assignments, where)


def _set(
    ctx: Context, target: _Target, values: dict[str, TypedExpr | None], given: Assignment
) -> None:
    column = target.column(given.name)
    if column is None:
        _report_unknown(ctx, target, given.name)
        check_value(ctx, given.value)
    elif given.name in target.key or given.name not in target.properties:
        why = "part of the key" if given.name in target.key else "part of its identity"
        message = f"`{given.name}` of `{target.name}` is {why} and cannot be updated"
        ctx.report("T16", message, given.name.span, hint="delete and insert instead")
        check_value(ctx, given.value)
    else:
        _assign(ctx, values, given, column[1])


def _where(ctx: Context, target: _Target, written: Condition) -> TypedCondition | None:
    def operand(expr: Expr) -> TypedExpr | None:
        return _where_operand(ctx, target, expr)

    where = check_condition(ctx, written, operand)
    if where is not None and not mentions(where):
        message = f"`where` names no property of `{target.name}`"
        hint = "as it stands it holds for every row or for none"
        ctx.report("T11", message, written.span, hint=hint)
        return None
    return where


def _where_operand(ctx: Context, target: _Target, expr: Expr) -> TypedExpr | None:
    """A property word, or a value known before the first row."""
    if isinstance(expr, Word):
        return _where_property(ctx, target, expr.name)
    if isinstance(expr, Variable):
        return check_declared(ctx, expr)
    if isinstance(expr, Call):
        return NowValue() if find_function(ctx, expr, Place.WHERE) is not None else None
    if isinstance(expr, Access):
        message = f"`where` has no variables, found {ctx.written(expr.span)}"
        ctx.report("T11", message, expr.span, hint=f"write `{expr.property}` alone")
        return None
    return check_literal(ctx, expr)


def _where_property(ctx: Context, target: _Target, word: Name) -> PropertyValue | None:
    column = target.column(word)
    if column is None:
        _report_unknown(ctx, target, word)
        return None
    name, type = column
    if type.is_blob:
        message = f"`{word}` is a Blob and cannot be compared"
        ctx.report("T11", message, word.span, hint="compare another property")
        return None
    return PropertyValue(TARGET, name, type)

"""How the rows of one table that satisfy conditions are found: conditions come in, a path goes out.

`explain` prints the path the executor takes for the same conditions. A path never decides which
rows are found, only what finding them costs.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from omnigraph_core.plan.values import is_given
from omnigraph_core.query.mentions import iter_terms
from omnigraph_core.query.typed import All, Compare, IsIn, PropertyValue, TextMatch, TypedOp
from omnigraph_core.schema.catalog import NodeType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from omnigraph_core.plan.values import GivenExpr
    from omnigraph_core.query.typed import TypedCondition
    from omnigraph_core.schema.catalog import EdgeType


class Access(StrEnum):
    """The ways to the rows, in the order they are preferred."""

    ALL = "all rows"
    """There is nothing to ask."""
    LOOKUP = "key lookup"
    """One id is given: at most one row."""
    LIST = "key list"
    """Some ids are given."""
    COLUMNS = "column filter"
    """Whole columns, kept in memory, are compared at once."""
    PUSHDOWN = "pushdown"
    """A column is too big to be kept: the storage looks for the rows, with its indexes."""


@dataclass(frozen=True, slots=True)
class AccessPath:
    access: Access
    key: tuple[str, ...] = ()
    """The columns that give the ids away: `id`, or those of the key."""
    rest: tuple[TypedCondition, ...] = ()
    """The other conditions: on a key, checked on the rows found; else compared in memory."""
    pushed: tuple[TypedCondition, ...] = ()
    """Conditions the storage is asked."""


@dataclass(frozen=True, slots=True)
class Equality:
    """A property that has to equal a given value, or one of a given list of them."""

    property: PropertyValue
    given: GivenExpr
    is_list: bool


def access_path(
    conditions: Iterable[TypedCondition],
    type: NodeType | EdgeType,
    is_kept: Callable[[str], bool],
) -> AccessPath:
    """The path for conditions on one variable alone.

    Args:
        is_kept: whether a column is in memory, or small enough to be.

    >>> from tests.support.ir_samples import CONTEXT, age, named
    >>> part = CONTEXT.catalog.nodes["Part"]
    >>> path = access_path((age("p", ">", 3), named("p", "bolt")), part, lambda _: True)
    >>> str(path.access), path.key, len(path.rest)
    ('key lookup', ('name',), 1)
    >>> str(access_path((age("p", ">", 3),), part, lambda _: False).access)
    'pushdown'
    """
    parts = conjuncts(conditions)
    if not parts:
        return AccessPath(Access.ALL)
    by_key = _try_by_key(parts, type)
    if by_key is not None:
        return by_key
    kept = tuple(part for part in parts if all(map(is_kept, compared_columns((part,)))))
    if len(kept) == len(parts):
        return AccessPath(Access.COLUMNS, rest=kept)
    return AccessPath(Access.PUSHDOWN, (), kept, tuple(p for p in parts if p not in kept))


def conjuncts(conditions: Iterable[TypedCondition]) -> tuple[TypedCondition, ...]:
    """The same conditions with every `and` taken apart."""
    parts: list[TypedCondition] = []
    for condition in conditions:
        parts += conjuncts(condition.operands) if isinstance(condition, All) else (condition,)
    return tuple(parts)


def _try_by_key(parts: tuple[TypedCondition, ...], type: NodeType | EdgeType) -> AccessPath | None:
    """The path by the first condition that gives ids, or by a key of several columns."""
    for place, part in enumerate(parts):
        found = key_equality(part, type)
        if found is not None:
            access = Access.LIST if found.is_list else Access.LOOKUP
            rest = parts[:place] + parts[place + 1 :]
            return AccessPath(access, (found.property.property,), rest)
    key = (type.key or ()) if isinstance(type, NodeType) else ()
    equalities = [found for found in map(equality, parts) if found and not found.is_list]
    pinned = {found.property.property for found in equalities}
    return AccessPath(Access.LOOKUP, key, parts) if key and pinned.issuperset(key) else None


def key_equality(condition: TypedCondition, type: NodeType | EdgeType) -> Equality | None:
    """The equality, if the property is the id or the only column of the key."""
    found = equality(condition)
    if found is None:
        return None
    key = type.key if isinstance(type, NodeType) else None
    name = found.property.property
    return found if name == "id" or key == (name,) else None


def equality(condition: TypedCondition) -> Equality | None:
    """The property and the value it has to equal, however that is written."""
    match condition:
        case Compare(PropertyValue() as column, TypedOp.EQ, value) if is_given(value):
            return Equality(column, value, is_list=False)
        case Compare(value, TypedOp.EQ, PropertyValue() as column) if is_given(value):
            return Equality(column, value, is_list=False)
        case IsIn(PropertyValue() as column, options):
            return Equality(column, options, is_list=True)
        case _:
            return None


def compared_columns(conditions: Sequence[TypedCondition]) -> tuple[str, ...]:
    """The properties that conditions compare, each once, without texts that are only searched."""
    terms = tuple(iter_terms(conditions))
    read = Counter(term.property for term in terms if isinstance(term, PropertyValue))
    return tuple(read - Counter(searched_columns(conditions)))


def searched_columns(conditions: Sequence[TypedCondition]) -> tuple[str, ...]:
    """The texts whose words conditions search."""
    terms = iter_terms(conditions)
    return tuple(term.field.property for term in terms if isinstance(term, TextMatch))

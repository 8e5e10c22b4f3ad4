"""How rows of one type are seen as rows of another: a source for each column of the later table.

Two versions of a type come in, and which property continues which; what goes out is the way
migrations are planned: new columns hold nulls, or the default where a value is required.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from omnigraph_core.schema.arrow import origin_column, table_schema, uri_column
from omnigraph_core.schema.catalog import EDGE_IMPLICIT, NODE_IMPLICIT, EdgeType, NodeType
from omnigraph_core.schema.document.shape import stored_default
from omnigraph_core.schema.migrate.column_types import WIDENINGS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from omnigraph_core.schema.catalog import PropertyDef
    from omnigraph_core.types import PropType
    from omnigraph_core.values import Value

GraphType: TypeAlias = NodeType | EdgeType


@dataclass(frozen=True, slots=True)
class ColumnSource:
    """Where a column of the later type comes from."""

    column: str | None
    """Column of the earlier table; None: there is none, every row has `fill`."""
    fill: Value = None
    """For rows without a value; None: they stay null."""
    is_cast: bool = False
    """The storage type widens; the values stay equal."""


_NOTHING = ColumnSource(None)


def reshape(
    before: GraphType, after: GraphType, renamed: Mapping[str, str]
) -> dict[str, ColumnSource]:
    """The source of every column of `table_schema(after)`, companions included, in its order.

    A property whose values the later type cannot hold (another dimension, a text for a number)
    counts as new, whatever `renamed` says.

    Args:
        renamed: earlier property → later property, for every property that continues.
    """
    implicit = NODE_IMPLICIT if isinstance(after, NodeType) else EDGE_IMPLICIT
    found = {column: ColumnSource(column) for column in implicit}
    previous = {new: old for old, new in renamed.items()}
    for name, prop in after.properties.items():
        earlier = before.properties.get(previous.get(name, ""))
        if earlier is None or not can_hold(prop.type, earlier.type):
            found[name] = ColumnSource(None, _fill(prop, has_nulls=True))
            continue
        found[name] = ColumnSource(
            earlier.name,
            _fill(prop, has_nulls=earlier.type.is_nullable),
            is_cast=earlier.type.scalar is not prop.type.scalar,
        )
        found |= _companions(before, earlier, name)
    return {column: found.get(column, _NOTHING) for column in table_schema(after).names}


def is_same_shape(before: GraphType, after: GraphType, renamed: Mapping[str, str]) -> bool:
    """Whether both have the same table columns with the same rows, so that nothing is to be done.

    The order of columns says nothing.
    """
    stays = all(
        source == ColumnSource(column) for column, source in reshape(before, after, renamed).items()
    )
    old, new = table_schema(before), table_schema(after)
    return stays and {field.name: field for field in old} == {field.name: field for field in new}


def can_hold(later: PropType, earlier: PropType) -> bool:
    """Whether every value of the earlier type is one of the later, enum values aside."""
    if (later.is_list, later.dimension) != (earlier.is_list, earlier.dimension):
        return False
    scalars = (earlier.scalar, later.scalar)
    return earlier.scalar is later.scalar or scalars in WIDENINGS


def _fill(prop: PropertyDef, *, has_nulls: bool) -> Value:
    # A default of a nullable property is for later writes only: the rows before it stay null.
    return stored_default(prop) if has_nulls and not prop.type.is_nullable else None


def _companions(before: GraphType, earlier: PropertyDef, name: str) -> dict[str, ColumnSource]:
    """Both that a property may have, with the ones that the earlier table has as their sources."""
    stored = table_schema(before).names
    pairs = (
        (uri_column(name), uri_column(earlier.name)),
        (origin_column(name), origin_column(earlier.name)),
    )
    return {new: ColumnSource(old) for new, old in pairs if old in stored}

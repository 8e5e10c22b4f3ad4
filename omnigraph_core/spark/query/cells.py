"""What rows of a match carry on Spark: a cell is one value of one bound variable.

It is a property, or what a search gives the node: a truth, a score or a distance. Every cell is a
column of its own; a variable is null exactly where its id is.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import pyarrow as pa

from omnigraph_core.errors import InvariantBroken
from omnigraph_core.query.typed import (
    Aggregate,
    All,
    Any,
    Bm25,
    Compare,
    EntityKind,
    Holds,
    IsIn,
    IsNull,
    Nearest,
    NodeValue,
    PropertyValue,
    Rrf,
    TextMatch,
)
from omnigraph_core.schema.arrow import arrow_type

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from omnigraph_core.query.mentions import Term
    from omnigraph_core.query.typed import TypedExpr
    from omnigraph_core.schema.catalog import Catalog

Search: TypeAlias = TextMatch | Nearest | Bm25

ID: Final = "id"
_ENDS: Final = ("id", "src", "dst")


@dataclass(frozen=True, slots=True)
class Cell:
    """A value of a variable: a property by its name, or a search."""

    variable: str
    source: str | Search

    @property
    def name(self) -> str:
        """Of its column; no two cells of a query share one, and case means nothing to Spark.

        >>> Cell("p", "size").name, Cell("p", "isNew").name
        ('p:size', 'p:is^new')
        """
        if isinstance(self.source, str):
            return f"{_in_lower_case(self.variable)}:{_in_lower_case(self.source)}"
        digest = hashlib.blake2b(repr(self.source).encode(), digest_size=8).hexdigest()
        return f"{_in_lower_case(self.variable)}?{digest}"


def _in_lower_case(name: str) -> str:
    """A name with its capitals marked, for names that differ in nothing else."""
    return re.sub("[A-Z]", lambda found: f"^{found[0].lower()}", name)


def id_of(variable: str) -> Cell:
    return Cell(variable, ID)


def cell_of(expr: TypedExpr) -> Cell:
    """The cell that has the value of an expression over one row; of a node, its id."""
    match expr:
        case PropertyValue(variable, name):
            return Cell(variable, name)
        case NodeValue(variable):
            return id_of(variable)
        case TextMatch(field=field) | Nearest(field=field) | Bm25(field=field):
            return Cell(field.variable, expr)
        case _:
            raise InvariantBroken(f"a row of a match has no value for {expr}")


def cells_in(terms: Iterable[Term]) -> Iterator[Cell]:
    """The cells that expressions and conditions read, maybe repeatedly."""
    for term in terms:
        match term:
            case PropertyValue() | NodeValue() | TextMatch() | Nearest() | Bm25():
                yield cell_of(term)
            case Rrf(arms):
                yield id_of(arms[0].field.variable)
                yield from map(cell_of, arms)
            case Compare(left, _, right):
                yield from cells_in((left, right))
            case IsIn(operand) | IsNull(operand) | Holds(operand) | Aggregate(argument=operand):
                yield from cells_in((operand,))
            case All(parts) | Any(parts):
                yield from cells_in(parts)


class CellTypes:
    """The Arrow types of cells, from what the variables of a query are bound to."""

    def __init__(self, types: Mapping[str, tuple[EntityKind, str]], catalog: Catalog) -> None:
        self._types = types
        self._catalog = catalog

    def bound_to(self, variable: str) -> tuple[EntityKind, str]:
        return self._types[variable]

    def of(self, cell: Cell) -> pa.DataType:
        if isinstance(cell.source, TextMatch):
            return pa.bool_()
        if isinstance(cell.source, Nearest | Bm25):
            return pa.float64()
        kind, type_name = self._types[cell.variable]
        known = self._catalog.nodes if kind is EntityKind.NODE else self._catalog.edges
        declared = known[type_name].properties.get(cell.source)
        if declared is not None:
            return arrow_type(declared.type)
        if cell.source in _ENDS:
            return pa.utf8()
        raise InvariantBroken(f"`{type_name}` has no `{cell.source}`")

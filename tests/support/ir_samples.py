"""A tiny catalog and short spellings of operators, for the examples in the rules' docstrings."""

from __future__ import annotations

from typing import Final

from omnigraph_core.ir.nodes import Expand, Op, QueryIR
from omnigraph_core.ir.rules.levels import RuleContext
from omnigraph_core.query.checked import Direction
from omnigraph_core.query.typed import Compare, Constant, IsIn, PropertyValue, TypedOp
from omnigraph_core.schema.ast import Cardinality
from omnigraph_core.schema.catalog import Catalog, EdgeType, NodeType, PropertyDef
from omnigraph_core.types import I64, STRING, PropType, Scalar

_PROPERTIES: Final = {
    "name": PropertyDef("name", STRING),
    "age": PropertyDef("age", I64.nullable()),
}
CONTEXT: Final = RuleContext(
    Catalog(
        interfaces={},
        nodes={"Part": NodeType("Part", _PROPERTIES, key=("name",))},
        edges={"Uses": EdgeType("Uses", "Part", "Part", Cardinality(), {})},
        edge_names={"uses": "Uses"},
    )
)


def query(*ops: Op) -> QueryIR:
    return QueryIR("sample", pipeline=ops)


def uses(src: str, dst: str, *filters: Compare) -> Expand:
    return Expand(src, dst, "Uses", Direction.OUT, "Part", dst_filters=filters)


def _age(variable: str) -> PropertyValue:
    return PropertyValue(variable, "age", I64.nullable())


def age(variable: str, op: str, value: int) -> Compare:
    return Compare(_age(variable), TypedOp(op), Constant(value, I64))


def age_in(variable: str, *values: int) -> IsIn:
    return IsIn(_age(variable), Constant(values, PropType(Scalar.I64, is_list=True)))


def older(left: str, right: str) -> Compare:
    return Compare(_age(left), TypedOp.GT, _age(right))


def named(variable: str, name: str) -> Compare:
    return Compare(PropertyValue(variable, "name", STRING), TypedOp.EQ, Constant(name, STRING))

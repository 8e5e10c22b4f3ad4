"""Three rows of every type of any schema, past all constraints, and parameters that fit them.

What may be null is null in the third row, also a vector that is embedded later; the first row has
`a0`, 1, …, which is what parameters are, too: lookups find something.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph_core.exec.scalars import arrow_array
from omnigraph_core.manifest.image import TableOperation
from omnigraph_core.schema.arrow import table_schema
from omnigraph_core.schema.catalog import NodeType
from omnigraph_core.storage.staged import stage_append
from omnigraph_core.types import Scalar
from omnigraph_core.values import from_json
from omnigraph_core.write.identity import key_ids
from tests.support.graphs import publish

if TYPE_CHECKING:
    from collections.abc import Iterable

    from omnigraph_core.engine.omnigraph import Omnigraph
    from omnigraph_core.query.checked import CheckedParam
    from omnigraph_core.schema.catalog import Catalog, EdgeType
    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.types import PropType

ROWS = 3


def fill(og: Omnigraph, catalog: Catalog) -> None:
    """Rows in every table, with one commit; edges go round their rows."""
    snapshot = og.snapshot()
    types: list[NodeType | EdgeType] = [*catalog.nodes.values(), *catalog.edges.values()]
    if not types:
        return
    ids: dict[str, list[str]] = {}
    staged: dict[str, Table] = {}
    for type in types:
        table = og.table(snapshot, type.table_key)
        appended = stage_append(table, _rows(type, ids))
        assert appended is not None
        staged[type.table_key] = appended
    publish(og, snapshot, staged, TableOperation.APPEND)


def sample_params(params: Iterable[CheckedParam], *, is_null: bool) -> dict[str, Any]:
    """A value for each parameter: null where it may be, or nowhere."""
    return {
        param.name: None if is_null and param.type.is_nullable else sample_value(param.type, 0)
        for param in params
    }


def sample_value(type: PropType, place: int) -> Any:
    """JSON for a row's value of a type."""
    if type.dimension is not None:
        return [1.0, float(place), *[0.0] * (type.dimension - 2)][: type.dimension]
    if type.is_list:
        return [_scalar(type, 0), _scalar(type, place)]
    return _scalar(type, place)


def _scalar(type: PropType, place: int) -> Any:
    match type.scalar:
        case Scalar.STRING:
            return f"a{place}" if type.enum_values is None else type.enum_values[place % 2 - 1]
        case Scalar.BOOL:
            return place % 2 == 0
        case Scalar.F32 | Scalar.F64:
            return place + 0.5
        case Scalar.DATE:
            return f"2024-01-{place + 1:02d}"
        case Scalar.DATETIME:
            return f"2024-01-{place + 1:02d}T00:00:00Z"
        case Scalar.BLOB:
            return "base64:eA=="
        case _:
            return place + 1


def _rows(type: NodeType | EdgeType, ids: dict[str, list[str]]) -> pa.Table:
    """The rows of a type; `ids` learns those of nodes and tells the ends of edges."""
    key = (type.key or ()) if isinstance(type, NodeType) else ()
    columns = {
        field.name: _column(type.properties[field.name].type, has_null=field.nullable)
        if field.name in type.properties and field.type != pa.large_binary()
        else pa.nulls(ROWS, field.type)
        for field in table_schema(type)
    }
    made = [f"{type.name}{place}" for place in range(ROWS)]
    if key:
        made = key_ids(pa.table(columns), key).to_pylist()
    columns["id"] = pa.array(made, pa.string())
    if isinstance(type, NodeType):
        ids[type.name] = made
    else:
        targets = ids[type.target]
        columns["src"] = pa.array(ids[type.source], pa.string())
        columns["dst"] = pa.array([*targets[1:], targets[0]], pa.string())
    return pa.table(columns)


def _column(type: PropType, *, has_null: bool) -> pa.Array:
    values = [from_json(sample_value(type, place), type) for place in range(ROWS)]
    if has_null:
        values[-1] = None
    return arrow_array(values, type)

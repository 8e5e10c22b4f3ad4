"""Rows of a read: an Arrow stream comes in, a table with its columns and its place goes out."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import unquote

import pyarrow as pa

from omnigraph_core.client.decode.reading import every, maybe, understood
from omnigraph_core.client.failures import Failed
from omnigraph_core.client.requests import ARROW
from omnigraph_core.client.streams import Body
from omnigraph_core.errors import StorageError
from omnigraph_core.query.descriptor import ResultColumn, ValueKind

if TYPE_CHECKING:
    from typing import IO

    import httpx2

    from omnigraph_core.client.decode.reading import Document

_COLUMNS: Final = b"omnigraph.columns"


@dataclass(frozen=True, slots=True)
class Rows:
    """What a read answered; `place` is the branch, the manifest version and the commit read."""

    query_name: str
    columns: tuple[ResultColumn, ...]
    table: pa.Table
    place: tuple[str, int, str]


def read_rows(response: httpx2.Response) -> Rows:
    """The rows of an answer, batch by batch as they arrive.

    Raises:
        StorageError: it is no Arrow stream, or is damaged.
    """
    if not response.headers.get("content-type", "").startswith(ARROW):
        response.read()
        raise Failed.of_foreign(response)
    try:
        with pa.ipc.open_stream(cast("IO[bytes]", Body(response))) as stream:
            table = stream.read_all()
    except (pa.ArrowException, OSError) as problem:
        raise StorageError(f"the rows of the answer are damaged: {problem}") from problem
    return understood(lambda headers: _rows(headers, table), response.headers)


def _rows(headers: Any, table: pa.Table) -> Rows:
    facts = dict(table.schema.metadata or {})
    columns = json.loads(facts.pop(_COLUMNS))
    version = int(headers["Omnigraph-Manifest-Version"])
    return Rows(
        query_name=unquote(headers["Omnigraph-Query-Name"]),
        columns=every(_decode_column, columns),
        table=table.replace_schema_metadata(facts or None),
        place=(unquote(headers["Omnigraph-Branch"]), version, headers["Omnigraph-Commit"]),
    )


def _decode_column(document: Document) -> ResultColumn:
    """A column as clients see it; of which type of the schema it is made stays with the server."""
    return ResultColumn(
        name=document["name"],
        kind=ValueKind(document["kind"]),
        is_nullable=document["nullable"],
        item_kind=maybe(ValueKind, document.get("item_kind")),
        vector_dim=document.get("vector_dim"),
    )

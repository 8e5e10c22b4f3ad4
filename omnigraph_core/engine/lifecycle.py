"""Making and opening graphs.

`init` becomes true with one write, the first image of main's catalog. Everything before it is empty
tables that a repeated init finds and uses, so a crashed one needs no repair and nothing is deleted.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from omnigraph_core.clock import now_us
from omnigraph_core.errors import AlreadyExists, GraphNotFound, ObjectNotFound, StorageError
from omnigraph_core.failpoints import declare
from omnigraph_core.history import refs
from omnigraph_core.history.branches import catalog_of
from omnigraph_core.history.context import GraphContext
from omnigraph_core.ids import edge_table_key, new_ulid, node_table_key
from omnigraph_core.manifest.catalog import create_main_catalog, load_latest, try_load_version
from omnigraph_core.manifest.image import (
    AcceptedSchema,
    GraphCommit,
    Image,
    TableEntry,
    TableOperation,
)
from omnigraph_core.manifest.layout import (
    BRANCH_REFS,
    GRAPH_COMMITS,
    GRAPH_RUNS,
    MANIFEST,
    table_location,
)
from omnigraph_core.manifest.names import check_actor
from omnigraph_core.schema.arrow import table_schema
from omnigraph_core.schema.build import compile_schema
from omnigraph_core.schema.document import build_document, render_document, schema_hash
from omnigraph_core.storage.dataset import create_table, open_empty
from omnigraph_core.storage.objects import check_conditional_put, list_objects
from omnigraph_core.storage.session import open_store

if TYPE_CHECKING:
    import pyarrow as pa

    from omnigraph_core.manifest.catalog import CatalogState
    from omnigraph_core.schema.catalog import Catalog as SchemaCatalog
    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.storage.session import Store

_TABLE: Final = declare("init.after_table", "one more table of a new graph exists")
_TABLES: Final = declare("init.after_tables", "all tables exist, the graph does not")
_GRAPH: Final = declare("init.after_catalog", "the graph exists, its creator not yet told")

_PARALLEL: Final = 8
_WRITTEN_LATER: Final = (BRANCH_REFS, GRAPH_COMMITS, GRAPH_RUNS)
"""What only a graph that existed can have left behind."""


def init_graph(address: str, schema: str, *, actor: str | None) -> GraphContext:
    """Make an empty graph with the given schema.

    Raises:
        SchemaError, SchemaSyntaxError: the schema text is wrong.
        AlreadyExists: there is a graph; it is left alone.
        StorageError: the store cannot be written, or cannot keep a graph safely.
    """
    check_actor(actor)
    compiled = compile_schema(schema)
    document = build_document(compiled, accepted=None)
    store = open_store(address)
    store.create_root()
    _refuse_existing(store)
    check_conditional_put(store)
    image = Image(
        tables=_create_tables(store, compiled),
        tombstones={},
        schema=AcceptedSchema(schema, render_document(document), schema_hash(document)),
        commits=(_genesis(actor),),
    )
    _TABLES.hit()
    context = GraphContext(store)
    context.remember(_create_main(store, image))
    _GRAPH.hit()
    return context


def _create_main(store: Store, image: Image) -> CatalogState:
    catalog = catalog_of(store, refs.MAIN_REF)
    try:
        return create_main_catalog(catalog, image)
    except AlreadyExists as taken:
        first = try_load_version(catalog, 1)
        if first is not None and first.snapshot.commit == image.head:
            return first  # ours: the answer was lost
        raise _exists(store) from taken


def open_graph(address: str) -> GraphContext:
    """Open a graph; reads main's newest image, so a damaged or newer one is told at once.

    Raises:
        GraphNotFound: there is none at that address.
        FormatTooNew: a newer release wrote it.
        StorageError: the store cannot be read.
    """
    store = open_store(address)
    context = GraphContext(store)
    try:
        context.remember(load_latest(catalog_of(store, refs.MAIN_REF)))
    except ObjectNotFound as missing:
        _refuse_remains(store)
        raise GraphNotFound(
            f"no graph at {store.root}: {missing.message}",
            hint="check the address, or make a graph there with `init`",
        ) from missing
    return context


def _refuse_existing(store: Store) -> None:
    try:
        load_latest(catalog_of(store, refs.MAIN_REF))
    except ObjectNotFound:
        _refuse_remains(store)
        return
    raise _exists(store)


def _refuse_remains(store: Store) -> None:
    """A graph that lost its catalog is not made anew: its data would count as garbage."""
    try:
        has_refs = any(list_objects(store, directory) for directory in _WRITTEN_LATER)
        has_data = any(
            "/data/" in found.path
            for kind in ("nodes", "edges")
            for found in list_objects(store, kind)
        )
    except ObjectNotFound:
        return  # not even a directory
    if has_refs or has_data:
        raise StorageError(
            f"the graph at {store.root} has lost its catalog `{MANIFEST}`",
            hint=f"restore the directory `{MANIFEST}` from a copy; make a new graph elsewhere",
        )


def _exists(store: Store) -> AlreadyExists:
    return AlreadyExists(
        f"there is a graph at {store.root}", hint="open it, or choose another address"
    )


def _genesis(actor: str | None) -> GraphCommit:
    return GraphCommit(
        graph_commit_id=new_ulid(),
        manifest_branch=None,
        incarnation=refs.MAIN_REF.incarnation,
        manifest_version=1,
        parent_commit_id=None,
        merged_parent_commit_id=None,
        actor_id=actor,
        created_at=now_us(),
        operation="init",
    )


def table_schemas(compiled: SchemaCatalog) -> dict[str, pa.Schema]:
    """The Arrow schema of every table a schema declares, by table key."""
    nodes = {node_table_key(name): table_schema(node) for name, node in compiled.nodes.items()}
    edges = {edge_table_key(name): table_schema(edge) for name, edge in compiled.edges.items()}
    return {**nodes, **edges}


def _create_tables(store: Store, compiled: SchemaCatalog) -> dict[str, TableEntry]:
    schemas = table_schemas(compiled)
    with ThreadPoolExecutor(_PARALLEL) as pool:
        tables = pool.map(lambda key: _ensure_empty_table(store, key, schemas[key]), schemas)
        return {key: _entry(key, table) for key, table in zip(schemas, tables, strict=True)}


def _ensure_empty_table(store: Store, table_key: str, schema: pa.Schema) -> Table:
    """An empty table of that schema: a new one, or one that a crashed attempt has left.

    What is at its place and does not fit stays; the table then gets a place of its own.
    """
    location = table_location(table_key)
    try:
        table = create_table(store, location, schema)
    except AlreadyExists:
        left = open_empty(store, location, schema)
        table = left or create_table(
            store, table_location(table_key, token=new_ulid().lower()), schema
        )
    _TABLE.hit()
    return table


def _entry(table_key: str, table: Table) -> TableEntry:
    return TableEntry(
        table_key=table_key,
        location=table.location,
        table_version=1,
        physical_version=table.physical_version,
        branch=None,
        row_count=0,
        fragment_count=0,
        operation=TableOperation.CREATE,
    )

"""Three-way merge of schemas: the accepted schemas of a base and two sides in, one schema out.

Where only one side changed, its schema is taken as it is. Otherwise what comes out compiles, and
the rows of both sides can follow it; whatever stands in the way of that is a conflict.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from omnigraph_core.diagnostics import Source
from omnigraph_core.errors import SchemaError
from omnigraph_core.manifest.image import AcceptedSchema
from omnigraph_core.merge.schema_ids import joined
from omnigraph_core.merge.schema_parts import KINDS, document_of, read_parts
from omnigraph_core.merge.schema_rules import SchemaConflicts, merge_types
from omnigraph_core.merge.schema_text import Sides, assemble
from omnigraph_core.schema.build import build_catalog
from omnigraph_core.schema.continuity import next_document
from omnigraph_core.schema.document import render_document, schema_hash, shape_hash
from omnigraph_core.schema.parse import parse_schema
from omnigraph_core.schema.relabel import plan_relabelled, relabelled
from omnigraph_core.schema.render import render_schema

if TYPE_CHECKING:
    from omnigraph_core.diagnostics import Diagnostic
    from omnigraph_core.merge.model import MergeConflict
    from omnigraph_core.merge.schema_text import MergedText
    from omnigraph_core.schema import ast
    from omnigraph_core.schema.catalog import Catalog
    from omnigraph_core.schema.document import SchemaDocument


@dataclass(frozen=True, slots=True)
class SchemaMerge:
    accepted: AcceptedSchema
    """The merged schema; ours where there are conflicts."""
    conflicts: tuple[MergeConflict, ...]
    is_changed: bool
    """Whether it differs from ours."""


def merge_schemas(
    base: AcceptedSchema, ours: AcceptedSchema, theirs: AcceptedSchema
) -> SchemaMerge:
    """Bring the changes that theirs made to the base into ours."""
    if theirs.hash in (base.hash, ours.hash):
        return SchemaMerge(ours, (), is_changed=False)
    if ours.hash == base.hash:
        return SchemaMerge(theirs, (), is_changed=True)
    conflicts = SchemaConflicts()
    accepted = _merge(_read(base, ours, theirs), conflicts)
    if accepted is None:
        return SchemaMerge(ours, tuple(conflicts.found), is_changed=False)
    if _is_same(document_of(ours), document_of(accepted)):
        return SchemaMerge(ours, (), is_changed=False)
    return SchemaMerge(accepted, (), is_changed=True)


def _read(base: AcceptedSchema, ours: AcceptedSchema, theirs: AcceptedSchema) -> Sides:
    common = document_of(base)
    return Sides(*(read_parts(item, common) for item in (base, ours, theirs)))


def _merge(sides: Sides, conflicts: SchemaConflicts) -> AcceptedSchema | None:
    types = merge_types(sides.base, sides.ours, sides.theirs, conflicts)
    merged = assemble(sides, types, conflicts)
    if conflicts.found:
        return None
    source = render_schema(merged.schema)
    catalog = _compiled(source, conflicts)
    if catalog is None:
        return None
    document = _document(sides, merged, catalog, conflicts)
    if conflicts.found:
        return None
    return AcceptedSchema(source, render_document(document), schema_hash(document))


def _compiled(source: str, conflicts: SchemaConflicts) -> Catalog | None:
    parsed = parse_schema(source)
    try:
        return build_catalog(parsed, Source(source, "merged schema"))
    except SchemaError as problem:
        for item in problem.diagnostics:
            advice = "change one side so that both together are valid, then merge again"
            hint = "" if item.hint is None else f" ({item.hint})"
            message = f"the merged schema is not valid: {item.message}{hint}; {advice}"
            conflicts.add(_place(parsed, item), message)
        return None


def _place(schema: ast.Schema, problem: Diagnostic) -> str:
    """The type that a problem was found in."""
    around = [item for item in schema.declarations if item.span.start <= problem.span.start]
    return f"{KINDS[type(around[-1])]}:{around[-1].name}" if around else "schema"


def _document(
    sides: Sides, merged: MergedText, catalog: Catalog, conflicts: SchemaConflicts
) -> SchemaDocument:
    ours, theirs = (
        relabelled(side.document, merged.continued(side)) for side in (sides.ours, sides.theirs)
    )
    _check_plan("ours", ours, catalog, conflicts)
    _check_plan("theirs", theirs, catalog, conflicts)
    return next_document(catalog, joined(ours, theirs, sides.base.document))


def _check_plan(
    side: str, document: SchemaDocument, catalog: Catalog, conflicts: SchemaConflicts
) -> None:
    for step in plan_relabelled(document, catalog).unsupported:
        table_key, _, name = step.entity.partition(".")
        hint = "" if step.hint is None else f"; {step.hint}"
        message = f"rows of {side} cannot follow the merged schema: {step.reason}{hint}"
        conflicts.add(table_key, message, *([name] if name else []))


def _is_same(ours: SchemaDocument, merged: SchemaDocument) -> bool:
    """Whether two documents say the same of the same things."""
    return shape_hash(ours) == shape_hash(merged) and _named_ids(ours) == _named_ids(merged)


def _named_ids(document: SchemaDocument) -> set[tuple[int, str]]:
    types = {(item.type_id, item.name) for item in document.types}
    return types | {(p.prop_id, p.name) for item in document.types for p in item.properties}

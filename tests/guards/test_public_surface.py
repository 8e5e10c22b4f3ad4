"""Names other code may build on; taking one away is a breaking change and shows here."""

from __future__ import annotations

import importlib
import inspect

from tests.support.cases import each

SURFACE = {
    "omnigraph_core.schema.parse": {"parse_schema"},
    "omnigraph_core.schema.build": {"build_catalog", "compile_schema"},
    "omnigraph_core.schema.render": {"render_schema"},
    "omnigraph_core.schema.arrow": {
        "arrow_type", "edge_schema", "is_companion", "node_schema", "origin_column",
        "table_schema", "uri_column",
    },
    "omnigraph_core.schema.indexes": {"IndexKind", "IndexSpec", "physical_indexes"},
    "omnigraph_core.schema.document": {
        "ConstraintKind", "DocumentConstraint", "DocumentEdge", "DocumentInterface", "DocumentNode",
        "DocumentProperty", "DocumentType", "IR_VERSION", "Reference", "SatisfiedProperty",
        "SchemaDocument", "build_document", "catalog_from_document", "document_from_json",
        "document_to_json", "render_document", "schema_hash", "shape_hash",
    },
    "omnigraph_core.schema.migrate": {
        "DataWork", "DropMode", "MIGRATION_CODES", "MigrationCode", "MigrationPlan", "Step",
        "StepKind", "Tier", "TypeKind", "UnsupportedChange", "plan_migration",
    },
    "omnigraph_core.query.parse": {"parse_queries"},
    "omnigraph_core.query.render": {
        "render_condition", "render_expr", "render_queries", "render_query",
    },
    "omnigraph_core.query.check": {
        "CheckedFile", "QueryCheck", "check_queries", "check_query", "select_query",
    },
    "omnigraph_core.query.lint": {
        "Finding", "LintReport", "QueryResult", "SchemaSource", "lint_queries",
    },
    "omnigraph_core.query.params": {"coerce_params"},
    "omnigraph_core.query.descriptor": {"ResultColumn", "ValueKind", "describe_columns"},
    "omnigraph_core.query.operation": {"Operation", "TypeUse", "describe_operation"},
    "omnigraph_core.ir.compile": {
        "CompiledQuery", "compile_checked", "compile_file", "compile_one",
    },
    "omnigraph_core.ir.lower": {"lower_match", "lower_query"},
    "omnigraph_core.ir.explain": {
        "explain", "explain_condition", "explain_expr", "explain_op", "explain_pipeline",
    },
}  # fmt: skip


@each("name", SURFACE)
def test_public_names(name: str) -> None:
    module = importlib.import_module(name)
    own = set(getattr(module, "__all__", ())) or {
        key
        for key, value in vars(module).items()
        if not key.startswith("_")
        and (inspect.isclass(value) or inspect.isfunction(value))
        and value.__module__ == name
    }
    assert own == SURFACE[name]

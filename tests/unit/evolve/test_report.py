"""What a schema change reports, on the wire."""

from __future__ import annotations

from omnigraph_core.evolve.report import (
    PurgeReport,
    SchemaApplyResult,
    SchemaPlanReport,
    StepReport,
)
from omnigraph_core.schema.migrate import TypeKind
from omnigraph_core.schema.migrate.steps import AddType, DropMode, DropType

ADD = StepReport(AddType(TypeKind.NODE, "Part"))
DROP = StepReport(DropType(TypeKind.NODE, "Bin", DropMode.HARD), 3, 100)


def test_a_plan() -> None:
    assert SchemaPlanReport("main", supported=True, steps=(ADD, DROP)).to_json() == {
        "branch": "main",
        "supported": True,
        "step_count": 2,
        "steps": [
            {
                "kind": "add_type", "type_kind": "node", "name": "Part", "tier": "safe",
                "data_work": "none", "row_count": 0, "stored_bytes": None,
            },
            {
                "kind": "drop_type", "type_kind": "node", "name": "Bin", "mode": "hard",
                "tier": "safe", "data_work": "none", "row_count": 3, "stored_bytes": 100,
            },
        ],
    }  # fmt: skip


def test_a_change_without_a_commit() -> None:
    document = SchemaApplyResult("main", applied=False, manifest_version=4, steps=()).to_json()
    assert document == {
        "branch": "main", "supported": True, "applied": False, "dry_run": False,
        "manifest_version": 4, "step_count": 0, "steps": [], "commit_id": None, "actor_id": None,
        "purge": None,
    }  # fmt: skip


def test_a_purge() -> None:
    assert PurgeReport(2, 10, ("tag v1",), 60.0).to_json() == {
        "versions_removed": 2,
        "bytes_removed": 10,
        "held_by": ["tag v1"],
        "grace_seconds": 60.0,
        "problem": None,
    }

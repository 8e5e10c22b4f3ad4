"""Planning the way from an accepted schema to a desired one."""

from omnigraph_core.schema.migrate.codes import MIGRATION_CODES, MigrationCode
from omnigraph_core.schema.migrate.plan import plan_migration
from omnigraph_core.schema.migrate.steps import (
    DataWork,
    DropMode,
    MigrationPlan,
    Step,
    StepKind,
    Tier,
    TypeKind,
    UnsupportedChange,
)

__all__ = [
    "MIGRATION_CODES",
    "DataWork",
    "DropMode",
    "MigrationCode",
    "MigrationPlan",
    "Step",
    "StepKind",
    "Tier",
    "TypeKind",
    "UnsupportedChange",
    "plan_migration",
]

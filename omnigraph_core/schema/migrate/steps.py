"""The steps of a migration plan: one frozen value per change, with its risk and its data work.

Steps read in order: each names things as they are called after the steps before it. `to_json` gives
`kind`, the fields in declared order, then `tier` and `data_work`; wire names never change.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Final

from omnigraph_core.diagnostics import Diagnostics, Source
from omnigraph_core.errors import UnsupportedMigration
from omnigraph_core.schema.migrate.places import Places
from omnigraph_core.schema.migrate.wire import shown, to_wire

if TYPE_CHECKING:
    from omnigraph_core.diagnostics import Span
    from omnigraph_core.schema.ast import Annotation, Cardinality, Constraint
    from omnigraph_core.schema.migrate.codes import MigrationCode
    from omnigraph_core.types import PropType
    from omnigraph_core.values import Value


class Tier(StrEnum):
    """How much a step can hurt."""

    SAFE = "safe"
    """Always succeeds and loses nothing."""
    VALIDATED = "validated"
    """Depends on the rows; refused, with the rows that break it, when they do not allow it."""
    DESTRUCTIVE = "destructive"
    """Takes data out of sight (soft) or away (hard)."""


class DataWork(StrEnum):
    """What a step does with existing rows."""

    NONE = "none"
    """Nothing: only the schema changes, or a column of nulls appears."""
    SCAN = "scan"
    """Reads the affected columns to check every row; writes nothing."""
    BACKFILL = "backfill"
    """Writes values into one column where they are missing or stale."""
    REWRITE = "rewrite"
    """Writes one column again in another storage type; values stay equal."""
    PURGE = "purge"
    """Removes the data from every version of the branch."""


class TypeKind(StrEnum):
    INTERFACE = "interface"
    NODE = "node"
    EDGE = "edge"


class DropMode(StrEnum):
    SOFT = "soft"
    """Older versions keep the data readable."""
    HARD = "hard"
    """The data is purged from older versions of the branch too."""


class StepKind(StrEnum):
    ADD_TYPE = "add_type"
    RENAME_TYPE = "rename_type"
    UPDATE_TYPE_METADATA = "update_type_metadata"
    CHANGE_INTERFACES = "change_interfaces"
    ADD_PROPERTY = "add_property"
    RENAME_PROPERTY = "rename_property"
    UPDATE_PROPERTY_METADATA = "update_property_metadata"
    UPDATE_DEFAULT = "update_default"
    CHANGE_EMBEDDING = "change_embedding"
    WIDEN_PROPERTY = "widen_property"
    RELAX_NULLABILITY = "relax_nullability"
    TIGHTEN_NULLABILITY = "tighten_nullability"
    EXTEND_ENUM = "extend_enum"
    NARROW_ENUM = "narrow_enum"
    ENUM_TO_STRING = "enum_to_string"
    STRING_TO_ENUM = "string_to_enum"
    CHANGE_INTERFACE_PROPERTY = "change_interface_property"
    ADD_CONSTRAINT = "add_constraint"
    REMOVE_CONSTRAINT = "remove_constraint"
    CHANGE_CARDINALITY = "change_cardinality"
    DROP_PROPERTY = "drop_property"
    DROP_TYPE = "drop_type"
    UNSUPPORTED_CHANGE = "unsupported_change"


@dataclass(frozen=True, slots=True)
class Step:
    kind: ClassVar[StepKind]
    tier: Tier | None = field(default=Tier.SAFE, kw_only=True)
    data_work: DataWork | None = field(default=DataWork.NONE, kw_only=True)

    def to_json(self) -> dict[str, object]:
        """The step on the wire."""
        return {
            "kind": str(self.kind),
            **{name: to_wire(value) for name, value in self._own_fields()},
            "tier": to_wire(self.tier),
            "data_work": to_wire(self.data_work),
        }

    def describe(self) -> str:
        """The step on one line, for people."""
        optional = {item.name for item in fields(self) if item.default is None}
        details = [
            f"{name}={shown(value)}"
            for name, value in self._own_fields()
            if name not in _PLACE and not (value is None and name in optional)
        ]
        return " ".join(
            [str(self.kind), self._place(), *details, f"[{self.tier}, {self.data_work}]"]
        )

    def _place(self) -> str:
        found = {name: value for name, value in self._own_fields() if name in _PLACE}
        owner = found.get("type_name", found.get("name"))
        parts = (f":{owner}" if owner else "", f".{p}" if (p := found.get("property_name")) else "")
        return f"{found['type_kind']}{''.join(parts)}"

    def _own_fields(self) -> list[tuple[str, object]]:
        # `from` is a keyword of Python, so the field that carries it is called `from_`.
        return [
            (item.name.rstrip("_"), getattr(self, item.name))
            for item in fields(self)
            if item.name not in _NOT_BODY
        ]


_NOT_BODY: Final = frozenset({"tier", "data_work", "span", "hint"})
_PLACE: Final = frozenset({"type_kind", "type_name", "name", "property_name"})


@dataclass(frozen=True, slots=True)
class TypeStep(Step):
    type_kind: TypeKind
    name: str


@dataclass(frozen=True, slots=True)
class PropertyStep(Step):
    type_kind: TypeKind
    type_name: str
    property_name: str


@dataclass(frozen=True, slots=True)
class AddType(TypeStep):
    kind = StepKind.ADD_TYPE


@dataclass(frozen=True, slots=True)
class RenameType(Step):
    kind = StepKind.RENAME_TYPE
    type_kind: TypeKind
    from_: str
    to: str


@dataclass(frozen=True, slots=True)
class UpdateTypeMetadata(TypeStep):
    kind = StepKind.UPDATE_TYPE_METADATA
    annotations: tuple[Annotation, ...]


@dataclass(frozen=True, slots=True)
class ChangeInterfaces(Step):
    """Which interfaces a node implements; properties that come or go have steps of their own."""

    kind = StepKind.CHANGE_INTERFACES
    type_kind: TypeKind
    type_name: str
    added: tuple[str, ...]
    removed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AddProperty(PropertyStep):
    kind = StepKind.ADD_PROPERTY
    property_type: PropType
    default: Value = None


@dataclass(frozen=True, slots=True)
class RenameProperty(Step):
    kind = StepKind.RENAME_PROPERTY
    type_kind: TypeKind
    type_name: str
    from_: str
    to: str


@dataclass(frozen=True, slots=True)
class UpdatePropertyMetadata(PropertyStep):
    kind = StepKind.UPDATE_PROPERTY_METADATA
    annotations: tuple[Annotation, ...]


@dataclass(frozen=True, slots=True)
class UpdateDefault(PropertyStep):
    """Only later writes see a default that is added, changed or (None) removed."""

    kind = StepKind.UPDATE_DEFAULT
    default: Value


@dataclass(frozen=True, slots=True)
class ChangeEmbedding(PropertyStep):
    """Vectors made from another text or by another model are stale; None removes the embedding."""

    kind = StepKind.CHANGE_EMBEDDING
    source: str | None
    model: str | None


@dataclass(frozen=True, slots=True)
class WidenProperty(PropertyStep):
    kind = StepKind.WIDEN_PROPERTY
    from_type: PropType
    to_type: PropType


@dataclass(frozen=True, slots=True)
class RelaxNullability(PropertyStep):
    kind = StepKind.RELAX_NULLABILITY


@dataclass(frozen=True, slots=True)
class TightenNullability(PropertyStep):
    """With a default, nulls are filled with it; without one, a null refuses the migration."""

    kind = StepKind.TIGHTEN_NULLABILITY
    default: Value = None


@dataclass(frozen=True, slots=True)
class ExtendEnum(PropertyStep):
    kind = StepKind.EXTEND_ENUM
    added_values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NarrowEnum(PropertyStep):
    kind = StepKind.NARROW_ENUM
    removed_values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EnumToString(PropertyStep):
    kind = StepKind.ENUM_TO_STRING


@dataclass(frozen=True, slots=True)
class StringToEnum(PropertyStep):
    kind = StepKind.STRING_TO_ENUM
    enum_values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ChangeInterfaceProperty(PropertyStep):
    """Any change of type: an interface has no rows, and its nodes have steps of their own."""

    kind = StepKind.CHANGE_INTERFACE_PROPERTY
    property_type: PropType


@dataclass(frozen=True, slots=True)
class ConstraintStep(Step):
    type_kind: TypeKind
    type_name: str
    constraint: Constraint


@dataclass(frozen=True, slots=True)
class AddConstraint(ConstraintStep):
    kind = StepKind.ADD_CONSTRAINT


@dataclass(frozen=True, slots=True)
class RemoveConstraint(ConstraintStep):
    kind = StepKind.REMOVE_CONSTRAINT


@dataclass(frozen=True, slots=True)
class ChangeCardinality(Step):
    kind = StepKind.CHANGE_CARDINALITY
    type_kind: TypeKind
    type_name: str
    from_: Cardinality
    to: Cardinality


@dataclass(frozen=True, slots=True)
class DropProperty(PropertyStep):
    kind = StepKind.DROP_PROPERTY
    mode: DropMode


@dataclass(frozen=True, slots=True)
class DropType(TypeStep):
    kind = StepKind.DROP_TYPE
    mode: DropMode


@dataclass(frozen=True, slots=True)
class UnsupportedChange(Step):
    """A change that cannot be carried out; it has no tier and no data work."""

    kind = StepKind.UNSUPPORTED_CHANGE
    entity: str
    reason: str
    code: MigrationCode
    tier: Tier | None = field(default=None, kw_only=True)
    data_work: DataWork | None = field(default=None, kw_only=True)
    span: Span | None = field(default=None, kw_only=True, compare=False)
    """Where the cause is written; None stands for the declaration of the entity."""
    hint: str | None = field(default=None, kw_only=True, compare=False)

    def describe(self) -> str:
        return f"{self.kind} {self.entity} [{self.code}] {self.reason}"


@dataclass(frozen=True, slots=True)
class MigrationPlan:
    """The whole way from the accepted schema to the desired one; no steps when they are equal."""

    steps: tuple[Step, ...]

    @property
    def unsupported(self) -> tuple[UnsupportedChange, ...]:
        return tuple(step for step in self.steps if isinstance(step, UnsupportedChange))

    @property
    def supported(self) -> bool:
        """Whether every step can be carried out."""
        return not self.unsupported

    def to_json(self) -> dict[str, object]:
        return {"supported": self.supported, "steps": [step.to_json() for step in self.steps]}

    def require_supported(self, source: Source | None = None) -> None:
        """Refuse a plan with changes that cannot be carried out.

        Args:
            source: the desired schema's text, to point into; without it problems have no place.

        Raises:
            UnsupportedMigration: every unsupported change.
        """
        if self.supported:
            return
        source = source or Source("", "<schema>")
        places, problems = Places(source), Diagnostics(source)
        for step in self.unsupported:
            span = step.span if source.text and step.span else places.find(step.entity)
            problems.add(step.code, f"{step.entity}: {step.reason}", span, hint=step.hint)
        raise UnsupportedMigration(problems.found)

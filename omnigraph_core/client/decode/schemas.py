"""Schemas and the steps between them from documents; importing this loads no storage.

A step comes back as the class it was, so that people read it as they would at the graph itself.
"""

from __future__ import annotations

import json
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from omnigraph_core.client.decode.commits import decode_landed
from omnigraph_core.client.decode.reading import every, maybe
from omnigraph_core.diagnostics import Name
from omnigraph_core.evolve.report import (
    PurgeReport,
    SchemaApplyResult,
    SchemaPlanReport,
    StepReport,
)
from omnigraph_core.manifest.image import AcceptedSchema
from omnigraph_core.schema.ast import (
    Annotation,
    Argument,
    ArgumentKind,
    Cardinality,
    Check,
    Index,
    Key,
    Range,
    Unique,
)
from omnigraph_core.schema.migrate import (
    DataWork,
    DropMode,
    MigrationCode,
    Step,
    Tier,
    TypeKind,
    steps,
)
from omnigraph_core.types import PropType, Scalar
from omnigraph_core.values import ValueProblem, from_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from omnigraph_core.client.decode.reading import Document
    from omnigraph_core.manifest.image import GraphCommit
    from omnigraph_core.schema.ast import Constraint


def decode_schema(document: Document) -> AcceptedSchema:
    compiled = document["document"]
    if not isinstance(compiled, str):  # as it is stored
        compiled = json.dumps(compiled, indent=2, ensure_ascii=False) + "\n"
    return AcceptedSchema(document["schema_source"], compiled, document["schema_hash"])


def decode_schema_plan(document: Document) -> SchemaPlanReport:
    return SchemaPlanReport(
        branch=document["branch"],
        supported=document["supported"],
        steps=every(_decode_reported, document["steps"]),
    )


def decode_applied(document: Document, fetch: Callable[[str], GraphCommit]) -> SchemaApplyResult:
    return SchemaApplyResult(
        branch=document["branch"],
        applied=document["applied"],
        manifest_version=document["manifest_version"],
        steps=every(_decode_reported, document["steps"]),
        commit=decode_landed(document, fetch),
        is_dry_run=document["dry_run"],
        purge=maybe(_decode_purge, document.get("purge")),
        supported=document["supported"],
    )


def _decode_purge(document: Document) -> PurgeReport:
    return PurgeReport(
        versions_removed=document["versions_removed"],
        bytes_removed=document["bytes_removed"],
        held_by=tuple(document["held_by"]),
        grace_seconds=document["grace_seconds"],
        problem=document["problem"],
    )


def _decode_reported(document: Document) -> StepReport:
    return StepReport(
        step=decode_step(document),
        row_count=document["row_count"],
        stored_bytes=document["stored_bytes"],
    )


def decode_step(document: Document) -> Step:
    """A step of a migration; keys that belong to no field of it are passed over."""
    kind = _steps()[document["kind"]]
    given: dict[str, Any] = {}
    for item in fields(kind):
        wire = item.name.rstrip("_")
        if item.init and wire in document:
            given[item.name] = _decode_field(item.name, document[wire])
    if given.get("default") is not None and isinstance(given.get("property_type"), PropType):
        given["default"] = _typed(given["default"], given["property_type"])
    return kind(**given)


@cache
def _steps() -> dict[str, type[Step]]:
    """The classes of steps by the spelling of their kind."""
    found = (item for item in vars(steps).values() if isinstance(item, type))
    kinds = (item for item in found if issubclass(item, Step) and hasattr(item, "kind"))
    return {str(kind.kind): kind for kind in kinds}


def _decode_field(name: str, value: Any) -> Any:
    if value is None:
        return None
    if name in _READERS:
        return _READERS[name](value)
    if isinstance(value, dict):  # the bounds of an edge, before and after
        return Cardinality(value["min"], value["max"])
    return tuple(value) if isinstance(value, list) else value


def _decode_type(document: Document) -> PropType:
    scalar = document["scalar"]
    is_vector = isinstance(scalar, dict)
    values = document["enum_values"]
    return PropType(
        scalar=Scalar.VECTOR if is_vector else Scalar(scalar),
        dimension=scalar["Vector"] if is_vector else None,
        is_list=document["list"],
        is_nullable=document["nullable"],
        enum_values=None if values is None else tuple(values),
    )


def _decode_constraint(document: Document) -> Constraint:
    ((tag, body),) = document.items()
    if tag == "Range":
        return Range(Name(body["property"]), _bound(body["min"]), _bound(body["max"]))
    if tag == "Check":
        return Check(Name(body["property"]), body["pattern"])
    kinds: dict[str, type[Key | Unique | Index]] = {"Key": Key, "Unique": Unique, "Index": Index}
    return kinds[tag](tuple(Name(column) for column in body))


def _bound(document: Document | None) -> int | float | None:
    if document is None:
        return None
    if "Float" in document:
        return float(document["Float"])
    return int(document["Integer"])


def _decode_annotations(items: list[Document]) -> tuple[Annotation, ...]:
    return tuple(
        Annotation(
            Name(item["name"]),
            maybe(_argument, item["value"]),
            tuple((Name(n), _argument(text)) for n, text in item.get("keywords", {}).items()),
        )
        for item in items
    )


def _argument(text: str) -> Argument:
    """How it was written is not told, and does not count."""
    return Argument(ArgumentKind.STRING, text)


def _typed(value: object, kind: PropType) -> object:
    """A default as the value it stands for; one that does not fit stays as it was told."""
    try:
        return from_json(value, kind)
    except ValueProblem:
        return value


_READERS: Final[dict[str, Callable[[Any], Any]]] = {
    "type_kind": TypeKind,
    "tier": Tier,
    "data_work": DataWork,
    "mode": DropMode,
    "code": MigrationCode,
    "property_type": _decode_type,
    "from_type": _decode_type,
    "to_type": _decode_type,
    "constraint": _decode_constraint,
    "annotations": _decode_annotations,
}

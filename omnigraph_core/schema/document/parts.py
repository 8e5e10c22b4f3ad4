"""The smaller pieces of the document as JSON and back: properties, types, annotations, constraints.

Property types, constraints and bounds are spelled as migration steps spell them on the wire, except
that a column here is a reference carrying id and name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.diagnostics import Name
from omnigraph_core.schema.ast import Annotation, Argument, ArgumentKind
from omnigraph_core.schema.document.model import (
    ConstraintKind,
    DocumentConstraint,
    DocumentProperty,
    Reference,
    SatisfiedProperty,
)
from omnigraph_core.types import PropType, Scalar
from omnigraph_core.values import ValueProblem, from_json, to_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from omnigraph_core.schema.document.cursor import Cursor
    from omnigraph_core.values import Value

_PROPERTY = (
    "name",
    "prop_id",
    "position",
    "prop_type",
    "annotations",
    "default",
    "property_constraints",
    "embed_source",
    "embed_model",
    "declared_directly",
    "satisfies_interface_properties",
)


def property_to_json(item: DocumentProperty) -> dict[str, object]:
    return {
        "name": item.name,
        "prop_id": item.prop_id,
        "position": item.position,
        "prop_type": type_to_json(item.type),
        "annotations": [annotation_to_json(annotation) for annotation in item.annotations],
        "default": to_json(item.default),
        "property_constraints": [str(kind) for kind in item.property_constraints],
        "embed_source": reference_to_json(item.embed_source) if item.embed_source else None,
        "embed_model": item.embed_model,
        "declared_directly": item.declared_directly,
        "satisfies_interface_properties": [
            {"interface": reference_to_json(found.interface), "property_id": found.property_id}
            for found in item.satisfies_interface_properties
        ],
    }


def property_from_json(cursor: Cursor) -> DocumentProperty:
    fields = cursor.fields(*_PROPERTY)
    type = type_from_json(fields["prop_type"])
    source = fields["embed_source"]
    satisfied = fields["satisfies_interface_properties"]
    return DocumentProperty(
        name=fields["name"].text(),
        prop_id=fields["prop_id"].whole(),
        position=fields["position"].whole(),
        type=type,
        annotations=tuple(annotation_from_json(item) for item in fields["annotations"].items()),
        default=_default_from_json(fields["default"], type),
        property_constraints=tuple(
            item.member(ConstraintKind) for item in fields["property_constraints"].items()
        ),
        embed_source=None if source.is_null else reference_from_json(source),
        embed_model=fields["embed_model"].optional_text(),
        declared_directly=fields["declared_directly"].boolean(),
        satisfies_interface_properties=tuple(_satisfied_from_json(i) for i in satisfied.items()),
    )


def _default_from_json(cursor: Cursor, type: PropType) -> Value:
    if cursor.is_null:
        return None
    try:
        return from_json(cursor.value, type)
    except ValueProblem as problem:
        raise cursor.problem(str(problem)) from problem


def _satisfied_from_json(cursor: Cursor) -> SatisfiedProperty:
    fields = cursor.fields("interface", "property_id")
    return SatisfiedProperty(
        reference_from_json(fields["interface"]), fields["property_id"].whole()
    )


def type_to_json(type: PropType) -> dict[str, object]:
    """A property type on the wire.

    >>> type_to_json(PropType(Scalar.VECTOR, dimension=3, is_nullable=True))
    {'scalar': {'Vector': 3}, 'nullable': True, 'list': False, 'enum_values': None}
    """
    return {
        "scalar": {"Vector": type.dimension} if type.is_vector else str(type.scalar),
        "nullable": type.is_nullable,
        "list": type.is_list,
        "enum_values": None if type.enum_values is None else list(type.enum_values),
    }


def type_from_json(cursor: Cursor) -> PropType:
    fields = cursor.fields("scalar", "nullable", "list", "enum_values")
    scalar, dimension = _scalar_from_json(fields["scalar"])
    values = fields["enum_values"]
    return PropType(
        scalar=scalar,
        dimension=dimension,
        is_list=fields["list"].boolean(),
        is_nullable=fields["nullable"].boolean(),
        enum_values=None if values.is_null else tuple(item.text() for item in values.items()),
    )


def _scalar_from_json(cursor: Cursor) -> tuple[Scalar, int | None]:
    if isinstance(cursor.value, str):
        scalar = cursor.member(Scalar)
        if scalar is Scalar.VECTOR:
            raise cursor.problem("a vector needs its dimension")
        return scalar, None
    return Scalar.VECTOR, cursor.fields("Vector")["Vector"].whole()


def annotation_to_json(annotation: Annotation) -> dict[str, object]:
    return {
        "name": str(annotation.name),
        **_argument_to_json(annotation.value),
        "keywords": [
            {"name": str(name), **_argument_to_json(value)} for name, value in annotation.keywords
        ],
    }


def annotation_from_json(cursor: Cursor) -> Annotation:
    fields = cursor.fields("name", "value", "value_kind", "items", "keywords")
    return Annotation(
        name=Name(fields["name"].text()),
        value=None if fields["value_kind"].is_null else _argument_from_json(fields),
        keywords=tuple(_keyword_from_json(item) for item in fields["keywords"].items()),
    )


def _keyword_from_json(cursor: Cursor) -> tuple[Name, Argument]:
    fields = cursor.fields("name", "value", "value_kind", "items")
    return Name(fields["name"].text()), _argument_from_json(fields)


def _argument_to_json(argument: Argument | None) -> dict[str, object]:
    if argument is None:
        return {"value": None, "value_kind": None, "items": []}
    return {
        "value": argument.text,
        "value_kind": str(argument.kind),
        "items": [_argument_to_json(item) for item in argument.items],
    }


def _argument_from_json(fields: Mapping[str, Cursor]) -> Argument:
    return Argument(
        kind=fields["value_kind"].member(ArgumentKind),
        text=fields["value"].text(),
        items=tuple(
            _argument_from_json(item.fields("value", "value_kind", "items"))
            for item in fields["items"].items()
        ),
    )


def reference_to_json(reference: Reference) -> dict[str, object]:
    return {"id": reference.id, "name": reference.name}


def reference_from_json(cursor: Cursor) -> Reference:
    fields = cursor.fields("id", "name")
    return Reference(None if fields["id"].is_null else fields["id"].whole(), fields["name"].text())


def constraint_to_json(constraint: DocumentConstraint) -> dict[str, object]:
    columns = [reference_to_json(column) for column in constraint.columns]
    match constraint.kind:
        case ConstraintKind.RANGE:
            body: object = {
                "property": columns[0],
                "min": bound_to_json(constraint.minimum),
                "max": bound_to_json(constraint.maximum),
            }
        case ConstraintKind.CHECK:
            body = {"property": columns[0], "pattern": constraint.pattern}
        case _:
            body = columns
    return {str(constraint.kind): body}


def constraint_from_json(cursor: Cursor) -> DocumentConstraint:
    tag, body = cursor.only_field()
    kind = next((kind for kind in ConstraintKind if kind == tag), None)
    if kind is None:
        raise cursor.problem(f"expected {' | '.join(ConstraintKind)}, found {tag!r}")
    if kind is ConstraintKind.RANGE:
        fields = body.fields("property", "min", "max")
        column = reference_from_json(fields["property"])
        bounds = (_bound_from_json(fields["min"]), _bound_from_json(fields["max"]))
        return DocumentConstraint(kind, (column,), *bounds)
    if kind is ConstraintKind.CHECK:
        fields = body.fields("property", "pattern")
        column = reference_from_json(fields["property"])
        return DocumentConstraint(kind, (column,), pattern=fields["pattern"].text())
    return DocumentConstraint(kind, tuple(reference_from_json(item) for item in body.items()))


def bound_to_json(bound: int | float | None) -> dict[str, object] | None:
    """A range bound on the wire: tagged, because 1 and 1.0 are written differently.

    >>> bound_to_json(1), bound_to_json(1.5), bound_to_json(None)
    ({'Integer': 1}, {'Float': 1.5}, None)
    """
    if bound is None:
        return None
    return {"Float": bound} if isinstance(bound, float) else {"Integer": bound}


def _bound_from_json(cursor: Cursor) -> int | float | None:
    if cursor.is_null:
        return None
    tag, bound = cursor.only_field()
    if tag == "Integer":
        return bound.integer()
    if tag == "Float":
        return bound.number()
    raise cursor.problem(f"expected Integer | Float, found {tag!r}")

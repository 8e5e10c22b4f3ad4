"""A schema taken apart for merging: its types and properties, each known by what it continues.

An accepted schema and the one it is compared with come in; parts go out whose references are
tokens, so that a rename changes the name of one part and nothing else. Parts are equal when they
say the same, whatever their order, their layout and where a constraint is written.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Final, TypeAlias

from omnigraph_core.schema import ast
from omnigraph_core.schema.assemble import COLUMN_CONSTRAINTS
from omnigraph_core.schema.continuity import continuity
from omnigraph_core.schema.document import document_from_json
from omnigraph_core.schema.document.match import RENAME_FROM, rename_hint
from omnigraph_core.schema.document.shape import annotation_shape
from omnigraph_core.schema.parse import parse_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from omnigraph_core.manifest.image import AcceptedSchema
    from omnigraph_core.schema.continuity import Continuity
    from omnigraph_core.schema.document import DocumentType, SchemaDocument
    from omnigraph_core.types import PropType

Token: TypeAlias = tuple[bool, str]
"""Whether the base has the thing, and its name: there, or on the sides that have added it."""
TypeToken: TypeAlias = tuple[str, Token]
"""A kind (`interface`, `node`, `edge`) and the token of a type."""
ConstraintToken: TypeAlias = tuple[object, ...]

INTERFACE: Final = "interface"
NODE: Final = "node"
EDGE: Final = "edge"
KINDS: Final = {ast.Interface: INTERFACE, ast.Node: NODE, ast.Edge: EDGE}


@dataclass(frozen=True, slots=True)
class AnnotationPart:
    meaning: str
    column: Token | None
    """The text that `@embed` names."""
    written: ast.Annotation = field(compare=False)


@dataclass(frozen=True, slots=True)
class PropertyPart:
    name: str
    values: PropType
    """Its type without null."""
    is_nullable: bool
    annotations: Mapping[str, AnnotationPart]
    """Without rename hints; on nodes and edges without constraints too."""
    hint: str | None = field(default=None, compare=False)

    @property
    def type(self) -> PropType:
        return self.values.nullable(is_nullable=self.is_nullable)


@dataclass(frozen=True, slots=True)
class ConstraintPart:
    columns: tuple[Token, ...] = field(compare=False)
    written: ast.Constraint = field(compare=False)


@dataclass(frozen=True, slots=True)
class TypePart:
    kind: str
    name: str
    properties: Mapping[Token, PropertyPart]
    """Those that it declares itself."""
    annotations: Mapping[str, AnnotationPart]
    implements: Mapping[Token, str]
    ends: tuple[Token, Token] | None
    cardinality: tuple[int, int | None]
    constraints: Mapping[ConstraintToken, ConstraintPart]
    hint: str | None = field(default=None, compare=False)
    columns: Mapping[Token, str] = field(default_factory=dict, compare=False)
    """Every property it has, inherited ones too, and what it is called."""

    @property
    def table_key(self) -> str:
        return f"{self.kind}:{self.name}"


@dataclass(frozen=True, slots=True)
class SchemaParts:
    document: SchemaDocument
    types: Mapping[TypeToken, TypePart]
    """In written order."""


def read_parts(accepted: AcceptedSchema, base: SchemaDocument) -> SchemaParts:
    """The parts of a schema, known by what they continue of the base."""
    document = document_of(accepted)
    names = _Names(document, continuity(base, document, common=base))
    declarations = parse_schema(accepted.source).declarations
    types = {
        (KINDS[type(item)], names.type(KINDS[type(item)], item.name)): _read_type(item, names)
        for item in declarations
    }
    return SchemaParts(document, types)


def document_of(accepted: AcceptedSchema) -> SchemaDocument:
    return document_from_json(json.loads(accepted.document))


class _Names:
    """The tokens of the names of one schema."""

    def __init__(self, document: SchemaDocument, found: Continuity) -> None:
        earlier = {INTERFACE: found.interfaces, NODE: found.nodes, EDGE: found.edges}
        self._types = {
            (kind, new): (True, old)
            for kind, names in earlier.items()
            for old, new in names.items()
        }
        types: dict[str, Sequence[DocumentType]] = {
            INTERFACE: document.interfaces,
            NODE: document.nodes,
            EDGE: document.edges,
        }
        self._columns = {
            (kind, item.name): self._column_tokens(kind, item, found)
            for kind, items in types.items()
            for item in items
        }

    def type(self, kind: str, name: str) -> Token:
        return self._types.get((kind, name), (False, str(name)))

    def columns(self, kind: str, name: str) -> Mapping[str, Token]:
        return self._columns[kind, name]

    def _column_tokens(self, kind: str, item: DocumentType, found: Continuity) -> dict[str, Token]:
        is_old, earlier_type = self.type(kind, item.name)
        renamed = found.properties[kind, earlier_type] if is_old else {}
        earlier = {new: old for old, new in renamed.items()}
        names = [prop.name for prop in item.properties]
        return {name: (name in earlier, earlier.get(name, name)) for name in names}


def _read_type(item: ast.Declaration, names: _Names) -> TypePart:
    kind = KINDS[type(item)]
    columns = names.columns(kind, item.name)
    is_table = not isinstance(item, ast.Interface)
    limit = item.cardinality if isinstance(item, ast.Edge) else None
    implements = item.implements if isinstance(item, ast.Node) else ()
    ends = (item.source, item.target) if isinstance(item, ast.Edge) else None
    annotations = () if isinstance(item, ast.Interface) else item.annotations
    return TypePart(
        kind=kind,
        name=str(item.name),
        properties={
            columns[prop.name]: _read_property(prop, columns, is_table=is_table)
            for prop in item.properties
        },
        annotations=_read_annotations(annotations, columns),
        implements={names.type(INTERFACE, name): str(name) for name in implements},
        ends=None if ends is None else (names.type(NODE, ends[0]), names.type(NODE, ends[1])),
        cardinality=(0, None) if limit is None else (limit.minimum, limit.maximum),
        constraints={} if isinstance(item, ast.Interface) else _read_constraints(item, columns),
        hint=rename_hint(annotations),
        columns={token: name for name, token in columns.items()},
    )


def _read_property(
    prop: ast.Property, columns: Mapping[str, Token], *, is_table: bool
) -> PropertyPart:
    kept = [item for item in prop.annotations if not (is_table and item.name in COLUMN_CONSTRAINTS)]
    return PropertyPart(
        name=str(prop.name),
        values=prop.type.nullable(is_nullable=False),
        is_nullable=prop.type.is_nullable,
        annotations=_read_annotations(kept, columns),
        hint=rename_hint(prop.annotations),
    )


def _read_annotations(
    annotations: Iterable[ast.Annotation], columns: Mapping[str, Token]
) -> dict[str, AnnotationPart]:
    """By name; one that stands there twice has its number with it."""
    found: dict[str, AnnotationPart] = {}
    times: Counter[str] = Counter()
    for item in annotations:
        name = str(item.name)
        if name == RENAME_FROM:
            continue
        times[name] += 1
        key = name if times[name] == 1 else f"{name} ({times[name]})"
        found[key] = _read_annotation(item, columns)
    return found


def _read_annotation(item: ast.Annotation, columns: Mapping[str, Token]) -> AnnotationPart:
    shape, column = annotation_shape(item), None
    if item.name == "embed" and item.value is not None:
        column = columns.get(item.value.text, (False, item.value.text))
        shape["value"] = None
    elif item.name == "default" and item.value is not None:
        shape["value"] = _number(item.value)
    return AnnotationPart(json.dumps(shape, sort_keys=True), column, item)


def _number(argument: ast.Argument) -> object:
    """A default with its numbers as such: 1 and 1.0 are one."""
    if argument.kind is ast.ArgumentKind.LIST:
        return [_number(item) for item in argument.items]
    if argument.kind in (ast.ArgumentKind.INT, ast.ArgumentKind.FLOAT):
        return format(Decimal(argument.text).normalize(), "f")
    return argument.text


def _read_constraints(
    item: ast.Node | ast.Edge, columns: Mapping[str, Token]
) -> dict[ConstraintToken, ConstraintPart]:
    written = [
        COLUMN_CONSTRAINTS[annotation.name]((prop.name,))
        for prop in item.properties
        for annotation in prop.annotations
        if annotation.name in COLUMN_CONSTRAINTS
    ]
    found: dict[ConstraintToken, ConstraintPart] = {}
    for constraint in (*written, *item.constraints):
        names = columns_of(constraint)
        tokens = tuple(columns.get(name, (False, str(name))) for name in names)
        found.setdefault(_constraint_token(constraint, tokens), ConstraintPart(tokens, constraint))
    return found


def columns_of(constraint: ast.Constraint) -> tuple[str, ...]:
    """The columns a constraint names, as it names them."""
    if isinstance(constraint, ast.Range | ast.Check):
        return (constraint.property,)
    return constraint.columns


def _constraint_token(constraint: ast.Constraint, columns: tuple[Token, ...]) -> ConstraintToken:
    match constraint:
        case ast.Range():
            return ("range", columns, constraint.minimum, constraint.maximum)
        case ast.Check():
            return ("check", columns, constraint.pattern)
        case ast.Key():
            return ("key", columns)
        case ast.Unique():
            return ("unique", tuple(sorted(columns)))
        case ast.Index():
            return ("index", tuple(sorted(columns)))

"""From merged parts to declarations: names for tokens again, hints for renames, nothing dangling.

What a part refers to must be there still; a reference to something the other side removed is a
conflict, as are two things that would have one name, and a property that got lost between moves.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from omnigraph_core.diagnostics import Name
from omnigraph_core.merge.schema_parts import EDGE, INTERFACE, NODE, SchemaParts
from omnigraph_core.schema import ast
from omnigraph_core.schema.continuity import Continuity
from omnigraph_core.schema.document.match import RENAME_FROM
from omnigraph_core.schema.render_parts import render_constraint

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping

    from omnigraph_core.merge.schema_parts import (
        AnnotationPart,
        ConstraintPart,
        PropertyPart,
        Token,
        TypePart,
        TypeToken,
    )
    from omnigraph_core.merge.schema_rules import SchemaConflicts


@dataclass(frozen=True, slots=True)
class MergedText:
    """The merged schema, and what it calls the things that the sides have."""

    schema: ast.Schema
    types: Mapping[TypeToken, str]
    columns: Mapping[TypeToken, Mapping[Token, str]]
    """By type: its properties, inherited ones too, that are still there."""

    def continued(self, side: SchemaParts) -> Continuity:
        """What the merged schema makes of a side."""
        types: dict[str, dict[str, str]] = {INTERFACE: {}, NODE: {}, EDGE: {}}
        properties = {}
        for token, part in side.types.items():
            if token in self.types:
                names = self.columns[token]
                types[part.kind][part.name] = self.types[token]
                properties[part.kind, part.name] = {
                    name: names[column] for column, name in part.columns.items() if column in names
                }
        return Continuity(types[NODE], types[EDGE], types[INTERFACE], properties)


@dataclass(frozen=True, slots=True)
class Sides:
    base: SchemaParts
    ours: SchemaParts
    theirs: SchemaParts

    def of(self, token: TypeToken) -> tuple[tuple[str, SchemaParts, TypePart | None], ...]:
        """A type as each side has it."""
        return (
            ("ours", self.ours, self.ours.types.get(token)),
            ("theirs", self.theirs, self.theirs.types.get(token)),
        )


def assemble(
    sides: Sides, merged: Mapping[TypeToken, TypePart], conflicts: SchemaConflicts
) -> MergedText:
    """The declarations of merged parts, in their order."""
    columns = {token: _columns(sides, token, merged) for token in merged}
    _check_type_names(sides, merged, conflicts)
    declarations = []
    for token, part in merged.items():
        assembly = _Assembly(sides, merged, token, columns[token], conflicts)
        assembly.check_columns()
        declarations.append(assembly.declaration(part))
    types = {token: part.name for token, part in merged.items()}
    return MergedText(ast.Schema(tuple(declarations)), types, columns)


def _columns(
    sides: Sides, token: TypeToken, merged: Mapping[TypeToken, TypePart]
) -> dict[Token, str]:
    """What the properties of a merged type are called, of all that a side has."""
    own = merged[token].properties
    found: dict[Token, str] = {}
    for _, side, part in sides.of(token):
        for column, name in {} if part is None else part.columns.items():
            if column in own:
                found[column] = own[column].name
            elif part is not None and column not in found:
                inherited = _inherited(side, part, name, merged, token)
                found |= {} if inherited is None else {column: inherited}
    return found


def _inherited(
    side: SchemaParts,
    part: TypePart,
    name: str,
    merged: Mapping[TypeToken, TypePart],
    token: TypeToken,
) -> str | None:
    """What a column that a side takes from an interface is called in the merged one."""
    for interface in part.implements:
        later = merged.get((INTERFACE, interface))
        if later is None or interface not in merged[token].implements:
            continue
        for column, prop in side.types[INTERFACE, interface].properties.items():
            if prop.name == name and column in later.properties:
                return later.properties[column].name
    return None


def _check_type_names(
    sides: Sides, merged: Mapping[TypeToken, TypePart], conflicts: SchemaConflicts
) -> None:
    tokens: dict[str, list[TypeToken]] = defaultdict(list)
    for token, part in merged.items():
        tokens[part.table_key].append(token)
    for table_key, found in tokens.items():
        if len(found) > 1:
            ways = [_way(sides, token, merged[token].name) for token in found]
            message = f"two types would be called `{merged[found[0]].name}`: {', '.join(ways)}"
            conflicts.add(table_key, f"{message}; give one of them another name, then merge again")


def _way(sides: Sides, token: TypeToken, name: str) -> str:
    before = sides.base.types.get(token)
    word = next(word for word, _, part in sides.of(token) if part is not None and part.name == name)
    return _told(word, None if before is None else before.name, name)


def _told(side: str, before: str | None, name: str) -> str:
    """How a side came to a name."""
    if before is None:
        return f"{side} added it"
    return f"{side} kept it" if before == name else f"{side} renamed `{before}`"


class _Assembly:
    """One merged type on its way to a declaration."""

    def __init__(
        self,
        sides: Sides,
        merged: Mapping[TypeToken, TypePart],
        token: TypeToken,
        columns: Mapping[Token, str],
        conflicts: SchemaConflicts,
    ) -> None:
        self._sides, self._merged, self._token = sides, merged, token
        self._columns, self._conflicts = columns, conflicts
        self._parts = {word: part for word, _, part in sides.of(token) if part is not None}
        self._table_key = self._parts.get("ours", merged[token]).table_key
        base = sides.base.types.get(token)
        self._base_columns: Mapping[Token, str] = {} if base is None else base.columns

    def check_columns(self) -> None:
        """Report properties that got lost, and those that would share a name."""
        implements = self._merged[self._token].implements
        # With an interface its properties are gone; the interface is reported, and enough.
        is_whole = all((INTERFACE, item) in self._merged for item in implements)
        for column, sides in self._known().items() if is_whole else ():
            is_wanted = len(sides) == len(self._parts) or column not in self._base_columns
            if is_wanted and column not in self._columns:
                self._report_lost(column, sides)
        tokens: dict[str, list[Token]] = defaultdict(list)
        for column, name in self._columns.items():
            tokens[name].append(column)
        for name, found in tokens.items():
            if len(found) > 1:
                ways = ", ".join(self._column_way(column, name) for column in found)
                message = f"two properties would be called `{name}`: {ways}"
                fix = "give one of them another name, then merge again"
                self._conflicts.add(self._table_key, f"{message}; {fix}", name)

    def _known(self) -> dict[Token, list[str]]:
        """Every column a side has, with the sides that have it."""
        found: dict[Token, list[str]] = {}
        for word, part in self._parts.items():
            for column in part.columns:
                found.setdefault(column, []).append(word)
        return found

    def _report_lost(self, column: Token, sides: list[str]) -> None:
        name = self._parts[sides[0]].columns[column]
        which = "both sides have" if len(sides) > 1 else f"{sides[0]} has"
        owner = self._merged[self._token].name
        message = (
            f"{which} property `{name}`, but nothing declares it after the merge: a side took away"
            " the declaration or the interface that the other relies on; declare"
            f" `{name}` on `{owner}` itself on both sides, then merge again"
        )
        self._conflicts.add(self._table_key, message, name)

    def _column_way(self, column: Token, name: str) -> str:
        sides = self._known()[column]
        word = next((w for w in sides if self._parts[w].columns[column] == name), sides[0])
        return _told(word, self._base_columns.get(column), name)

    def declaration(self, part: TypePart) -> ast.Declaration:
        """The type as it is to be written."""
        properties = tuple(self._property(*item) for item in part.properties.items())
        if part.kind == INTERFACE:
            return ast.Interface(Name(part.name), properties)
        before = {word: side.name for word, side in self._parts.items()}
        declared = {other.name for other in self._merged.values() if other.kind == part.kind}
        annotations = (
            *_hint(part.name, before, part.hint, declared),
            *(item.written for item in part.annotations.values()),
        )
        constraints = tuple(
            self._constraint(item)
            for item in part.constraints.values()
            if self._carrier(item) is None
        )
        if part.kind == NODE:
            names = tuple(self._reference(INTERFACE, item) for item in part.implements)
            return ast.Node(Name(part.name), annotations, names, properties, constraints)
        source, target = (self._reference(NODE, end) for end in part.ends or ())
        limit = None if part.cardinality == (0, None) else ast.Cardinality(*part.cardinality)
        name = Name(part.name)
        return ast.Edge(name, source, target, limit, annotations, properties, constraints)

    def _property(self, token: Token, part: PropertyPart) -> ast.Property:
        before = {
            word: side.columns[token] for word, side in self._parts.items() if token in side.columns
        }
        alone = [
            ast.Annotation(Name(type(item.written).__name__.lower()))
            for item in self._merged[self._token].constraints.values()
            if self._carrier(item) == token
        ]
        annotations = (
            *alone,
            *(self._annotation(item) for item in part.annotations.values()),
            *_hint(part.name, before, part.hint, set(self._columns.values())),
        )
        return ast.Property(Name(part.name), part.type, annotations)

    def _carrier(self, part: ConstraintPart) -> Token | None:
        """The property that a constraint can be written on."""
        is_column = isinstance(part.written, ast.Key | ast.Unique | ast.Index)
        is_own = len(part.columns) == 1 and part.columns[0] in self._merged[self._token].properties
        return part.columns[0] if is_column and is_own else None

    def _annotation(self, part: AnnotationPart) -> ast.Annotation:
        written = part.written
        if part.column is None or written.value is None:
            return written
        text = self._column(part.column, f"`@{written.name}`")
        return replace(written, value=replace(written.value, text=text))

    def _constraint(self, part: ConstraintPart) -> ast.Constraint:
        shown = f"`{render_constraint(part.written)}`"
        names = tuple(Name(self._column(column, shown)) for column in part.columns)
        if isinstance(part.written, ast.Range | ast.Check):
            return replace(part.written, property=names[0])
        return replace(part.written, columns=names)

    def _column(self, column: Token, user: str) -> str:
        """What a property is called, for something that names it."""
        known = self._known().get(column)
        if known is None or column in self._columns:
            return self._columns.get(column, column[1])
        name = self._parts[known[0]].columns[column]
        self._report_dangling(user, f"property `{name}`", known, name)
        return name

    def _reference(self, kind: str, token: Token) -> Name:
        """What another type is called."""
        if part := self._merged.get((kind, token)):
            return Name(part.name)
        known = [(word, part) for word, _, part in self._sides.of((kind, token)) if part]
        name = known[0][1].name if known else token[1]
        user = f"{self._token[0]} `{self._merged[self._token].name}`"
        self._report_dangling(user, f"{kind} `{name}`", [word for word, _ in known])
        return Name(name)

    def _report_dangling(
        self, user: str, what: str, known: Iterable[str], *properties: str
    ) -> None:
        keeper = next(iter(known), "ours")
        gone = "theirs" if keeper == "ours" else "ours"
        message = (
            f"{user} of {keeper} needs {what}, which {gone} removed; bring it back on the side that"
            " removed it, or remove what needs it on the other, then merge again"
        )
        self._conflicts.add(self._table_key, message, *properties)


def _hint(
    name: str, before: Mapping[str, str], written: str | None, declared: Container[str]
) -> Iterator[ast.Annotation]:
    """The hint that lets a side whose name is another follow; a followed one stays as it was.

    Only what both sides have can have been renamed since; a hint on an addition names nothing.
    """
    ours, theirs = before.get("ours"), before.get("theirs")
    if ours is None or theirs is None:
        return
    if ours != name:
        old: str | None = ours
    elif theirs != name and theirs not in declared:
        old = theirs
    else:
        old = written
    if old is not None:
        yield ast.Annotation(Name(RENAME_FROM), ast.Argument(ast.ArgumentKind.STRING, old))

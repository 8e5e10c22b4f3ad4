"""Three-way merge of the parts of schemas: what one side changed is taken, what both changed alike.

Parts of the base and of both sides come in; merged parts go out, and a conflict for everything that
both sides changed in different ways. Where there is a conflict a part is kept, so that what refers
to it is not reported too.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar

from omnigraph_core.merge.model import MergeConflict, MergeConflictKind
from omnigraph_core.merge.schema_parts import PropertyPart, TypePart, columns_of
from omnigraph_core.schema.render_parts import render_annotation, render_constraint

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from omnigraph_core.merge.schema_parts import (
        AnnotationPart,
        ConstraintPart,
        ConstraintToken,
        SchemaParts,
        Token,
        TypeToken,
    )
    from omnigraph_core.schema.ast import Constraint
    from omnigraph_core.types import PropType

_Key = TypeVar("_Key")
_Part = TypeVar("_Part")

AGREE: Final = "make both sides equal there, then merge again"


class SchemaConflicts:
    """What stands in the way of a merged schema, in the order it was found."""

    def __init__(self) -> None:
        self.found: list[MergeConflict] = []

    def add(self, table_key: str, message: str, *properties: str) -> None:
        kind = MergeConflictKind.SCHEMA_CONFLICT
        conflict = MergeConflict(table_key, None, kind, message, properties)
        if conflict not in self.found:
            self.found.append(conflict)


def merge_types(
    base: SchemaParts, ours: SchemaParts, theirs: SchemaParts, conflicts: SchemaConflicts
) -> dict[TypeToken, TypePart]:
    """The merged types: those of ours in its order, then what theirs adds in its order."""

    def settle(
        _: TypeToken, before: TypePart | None, our: TypePart | None, their: TypePart | None
    ) -> TypePart | None:
        if our is None or their is None:
            kept = our or their
            if kept is not None and before is not None:
                _report_removal(kept.table_key, before, kept, conflicts, is_ours_gone=our is None)
            return kept
        if before is None:
            message = (
                f"both sides added {our.kind} `{our.name}` with different definitions; make the"
                " definitions equal, or give one of the types another name, then merge again"
            )
            conflicts.add(our.table_key, message)
            return our
        return _TypeMerge(before, our, their, conflicts).merged()

    return merge_maps(base.types, ours.types, theirs.types, settle)


def merge_maps(
    base: Mapping[_Key, _Part],
    ours: Mapping[_Key, _Part],
    theirs: Mapping[_Key, _Part],
    settle: Callable[[_Key, _Part | None, _Part | None, _Part | None], _Part | None],
) -> dict[_Key, _Part]:
    """Three-way merge of keyed parts; `settle` is asked where both sides differ from the base.

    >>> merge_maps({"a": 1, "b": 1}, {"b": 1, "c": 1}, {"a": 1, "b": 2}, lambda *_: None)
    {'b': 2, 'c': 1}
    """
    found: dict[_Key, _Part] = {}
    for key in (*ours, *(key for key in theirs if key not in ours)):
        before, our, their = base.get(key), ours.get(key), theirs.get(key)
        if our == their or their == before:
            part = our
        else:
            part = their if our == before else settle(key, before, our, their)
        if part is not None:
            found[key] = part
    return found


def _report_removal(
    table_key: str,
    before: TypePart | PropertyPart,
    kept: TypePart | PropertyPart,
    conflicts: SchemaConflicts,
    *,
    is_ours_gone: bool,
) -> None:
    gone, changed = ("ours", "theirs") if is_ours_gone else ("theirs", "ours")
    what = before.kind if isinstance(before, TypePart) else "property"
    how = "changed it" if kept.name == before.name else f"renamed it to `{kept.name}`"
    conflicts.add(
        table_key,
        f"{gone} removed {what} `{before.name}`, {changed} {how}; remove it on both sides, or undo"
        f" the change of one of them, then merge again",
        *(() if isinstance(kept, TypePart) else (kept.name,)),
    )


class _TypeMerge:
    """The merge of one type that the base has and both sides changed."""

    def __init__(
        self, base: TypePart, ours: TypePart, theirs: TypePart, conflicts: SchemaConflicts
    ) -> None:
        self._base, self._ours, self._theirs = base, ours, theirs
        self._conflicts = conflicts

    def merged(self) -> TypePart:
        base, ours, theirs = self._base, self._ours, self._theirs
        return replace(
            ours,
            name=self._name(base, ours, theirs),
            properties=merge_maps(
                base.properties, ours.properties, theirs.properties, self._settle_property
            ),
            annotations=merge_maps(
                base.annotations, ours.annotations, theirs.annotations, self._annotation_settler()
            ),
            implements=merge_maps(base.implements, ours.implements, theirs.implements, _first),
            ends=self._pick("ends", base.ends, ours.ends, theirs.ends, _shown_ends),
            cardinality=self._pick(
                "cardinality", base.cardinality, ours.cardinality, theirs.cardinality, _shown_limit
            ),
            constraints=self._constraints(),
        )

    def _name(
        self,
        base: TypePart | PropertyPart,
        ours: TypePart | PropertyPart,
        theirs: TypePart | PropertyPart,
        *properties: str,
    ) -> str:
        if base.name not in (ours.name, theirs.name) and ours.name != theirs.name:
            what = base.kind if isinstance(base, TypePart) else "property"
            message = (
                f"both sides renamed {what} `{base.name}`: ours to `{ours.name}`, theirs to"
                f" `{theirs.name}`; give it one name on both sides, then merge again"
            )
            self._conflicts.add(self._ours.table_key, message, *properties)
        return theirs.name if ours.name == base.name else ours.name

    def _pick(
        self,
        what: str,
        base: _Part,
        ours: _Part,
        theirs: _Part,
        show: Callable[[_Part], str],
        *properties: str,
    ) -> _Part:
        if ours == theirs or theirs == base:
            return ours
        if ours == base:
            return theirs
        owner = f" of property `{properties[0]}`" if properties else ""
        message = (
            f"both sides changed the {what}{owner} from {show(base)}: ours to {show(ours)},"
            f" theirs to {show(theirs)}; {AGREE}"
        )
        self._conflicts.add(self._ours.table_key, message, *properties)
        return ours

    def _settle_property(
        self,
        _: Token,
        base: PropertyPart | None,
        ours: PropertyPart | None,
        theirs: PropertyPart | None,
    ) -> PropertyPart | None:
        if ours is None or theirs is None:
            kept = ours or theirs
            if kept is not None and base is not None:
                _report_removal(
                    self._ours.table_key, base, kept, self._conflicts, is_ours_gone=ours is None
                )
            return kept
        if base is None:
            message = (
                f"both sides added property `{ours.name}`, ours as `{shown_property(ours)}`, theirs"
                f" as `{shown_property(theirs)}`; {AGREE}"
            )
            self._conflicts.add(self._ours.table_key, message, ours.name)
            return ours
        return self._property(base, ours, theirs)

    def _property(
        self, base: PropertyPart, ours: PropertyPart, theirs: PropertyPart
    ) -> PropertyPart:
        return replace(
            ours,
            name=self._name(base, ours, theirs, base.name),
            values=self._values(base, ours, theirs),
            is_nullable=self._pick(
                "nullability", base.is_nullable, ours.is_nullable, theirs.is_nullable, str
            ),
            annotations=merge_maps(
                base.annotations,
                ours.annotations,
                theirs.annotations,
                self._annotation_settler(ours.name),
            ),
        )

    def _values(self, base: PropertyPart, ours: PropertyPart, theirs: PropertyPart) -> PropType:
        before, our, their = base.values, ours.values, theirs.values
        if before.enum_values and our.enum_values and their.enum_values:
            kept = _merged_members(before.enum_values, our.enum_values, their.enum_values)
            if kept:
                return replace(our, enum_values=kept)
        return self._pick("type", before, our, their, _quoted, ours.name)

    def _annotation_settler(
        self, *properties: str
    ) -> Callable[
        [str, AnnotationPart | None, AnnotationPart | None, AnnotationPart | None],
        AnnotationPart | None,
    ]:
        def settle(
            key: str,
            _: AnnotationPart | None,
            ours: AnnotationPart | None,
            theirs: AnnotationPart | None,
        ) -> AnnotationPart | None:
            owner = f" of property `{properties[0]}`" if properties else ""
            message = (
                f"both sides changed `@{key}`{owner}: ours {_shown_annotation(ours)}, theirs"
                f" {_shown_annotation(theirs)}; {AGREE}"
            )
            self._conflicts.add(self._ours.table_key, message, *properties)
            return ours or theirs

        return settle

    def _constraints(self) -> dict[ConstraintToken, ConstraintPart]:
        sides = (self._base.constraints, self._ours.constraints, self._theirs.constraints)
        for column in sorted({key[:2] for key in sides[0] if key[0] in _ADJUSTED}, key=str):
            before, our, their = ({k for k in side if k[:2] == column} for side in sides)
            # The same bound was changed twice: both new ones together were wanted by nobody.
            if before - our - their and our - before - their and their - before - our:
                self._report_adjusted(our - their, their - our)
        return merge_maps(*sides, _first)

    def _report_adjusted(self, ours: set[ConstraintToken], theirs: set[ConstraintToken]) -> None:
        our = [self._ours.constraints[key].written for key in ours]
        their = [self._theirs.constraints[key].written for key in theirs]
        shown = [
            ", ".join(sorted(f"`{render_constraint(item)}`" for item in items))
            for items in (our, their)
        ]
        message = (
            f"both sides changed a constraint: ours to {shown[0]}, theirs to {shown[1]}; {AGREE}"
        )
        self._conflicts.add(self._ours.table_key, message, *sorted({*map(_column, our)}))


_ADJUSTED: Final = ("range", "check")


def _column(constraint: Constraint) -> str:
    return str(columns_of(constraint)[0])


def _first(
    _: object, _before: _Part | None, ours: _Part | None, theirs: _Part | None
) -> _Part | None:
    # Members of a set are there or not, so both sides can never differ from the base apart.
    return ours or theirs


def _merged_members(
    base: tuple[str, ...], ours: tuple[str, ...], theirs: tuple[str, ...]
) -> tuple[str, ...]:
    """The values of an enum that both sides may have extended and narrowed.

    >>> _merged_members(("a", "b"), ("a", "b", "c"), ("b", "d"))
    ('b', 'c', 'd')
    """
    gone = set(base) - (set(ours) & set(theirs))
    return tuple(sorted({*ours, *theirs} - gone))


def _quoted(value: object) -> str:
    return f"`{value}`"


def _shown_ends(ends: tuple[Token, Token] | None) -> str:
    return "none" if ends is None else f"`{ends[0][1]} -> {ends[1][1]}`"


def _shown_limit(limit: tuple[int, int | None]) -> str:
    return f"`{limit[0]}..{'' if limit[1] is None else limit[1]}`"


def _shown_annotation(part: AnnotationPart | None) -> str:
    return "removed it" if part is None else f"has `{render_annotation(part.written)}`"


def shown_property(part: PropertyPart) -> str:
    """A property as it is written, without its constraints."""
    annotations = [render_annotation(item.written) for item in part.annotations.values()]
    return " ".join([f"{part.name}: {part.type}", *annotations])

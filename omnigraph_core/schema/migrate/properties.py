"""The steps of one type's properties: additions, renames, metadata, types, defaults, embeddings.

Interfaces have no rows, so their steps are safe and free whatever changes; the nodes that take a
property over plan their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from omnigraph_core.schema.catalog import EdgeType, InterfaceType, NodeType, PropertyDef
from omnigraph_core.schema.document.shape import (
    annotation_shape,
    embeddings_of,
    metadata,
    stored_default,
)
from omnigraph_core.schema.migrate.codes import MigrationCode
from omnigraph_core.schema.migrate.column_types import plan_type_change
from omnigraph_core.schema.migrate.pair import Pair
from omnigraph_core.schema.migrate.renames import refuse_rename
from omnigraph_core.schema.migrate.steps import (
    AddProperty,
    ChangeEmbedding,
    ChangeInterfaceProperty,
    DataWork,
    DropMode,
    DropProperty,
    RenameProperty,
    Tier,
    TypeKind,
    UnsupportedChange,
    UpdateDefault,
    UpdatePropertyMetadata,
)

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator

    from omnigraph_core.schema.ast import Annotation
    from omnigraph_core.schema.migrate.steps import Step

AnyPair: TypeAlias = Pair[InterfaceType] | Pair[NodeType] | Pair[EdgeType]


def plan_properties(pair: AnyPair, unresolved: Container[tuple[str, str]] = ()) -> Iterator[Step]:
    """Every property step of a type except drops, in name order; embeddings after the others.

    Args:
        unresolved: (interface, property) whose rename was refused there; the nodes stay silent.
    """
    # The text a vector is made from may itself be new, or have a new name, in this plan.
    steps = _plan_each(pair, unresolved)
    yield from sorted(steps, key=lambda step: isinstance(step, ChangeEmbedding))


def _plan_each(pair: AnyPair, unresolved: Container[tuple[str, str]]) -> Iterator[Step]:
    match = pair.properties
    for name in sorted(pair.after.properties):
        after = pair.after.properties[name]
        if name in match.refused:
            yield refuse_rename(
                pair.entity(name), match.refused[name], after.annotations, match.dropped, {}
            )
        elif name in match.previous:
            yield from _plan_kept(pair, match.previous[name], after)
        elif not any((interface, name) in unresolved for interface in after.satisfies):
            yield from _plan_added(pair, after)


def plan_property_drops(pair: AnyPair, *, allow_data_loss: bool) -> Iterator[Step]:
    """The properties that go; of a table their data goes too, out of sight or for good."""
    for name in pair.properties.dropped:
        place = (pair.kind, pair.name, name)
        if pair.kind is TypeKind.INTERFACE:
            yield DropProperty(*place, DropMode.SOFT)
        elif allow_data_loss:
            yield DropProperty(
                *place, DropMode.HARD, tier=Tier.DESTRUCTIVE, data_work=DataWork.PURGE
            )
        else:
            yield DropProperty(*place, DropMode.SOFT, tier=Tier.DESTRUCTIVE)


def _plan_added(pair: AnyPair, after: PropertyDef) -> Iterator[Step]:
    is_required = not after.type.is_nullable and pair.kind is not TypeKind.INTERFACE
    is_filled = after.has_default or _is_embedded_everywhere(pair, after.name)
    if is_required and not is_filled:
        takes_default = not (after.type.is_vector or after.type.is_blob)
        yield UnsupportedChange(
            pair.entity(after.name),
            "adding a required property without `@default`: existing rows would have no value",
            MigrationCode.REQUIRED_WITHOUT_DEFAULT,
            hint=f"make it `{after.type.nullable()}`"
            + (" or give it a `@default`" if takes_default else ""),
        )
        return
    yield AddProperty(
        pair.kind,
        pair.name,
        str(after.name),
        after.type,
        stored_default(after),
        tier=Tier.SAFE if after.has_default or not is_required else Tier.VALIDATED,
        data_work=DataWork.BACKFILL if is_required else DataWork.NONE,
    )
    if after.name in embeddings_of(pair.after):
        yield _change_embedding(pair, after.name)


def _plan_kept(pair: AnyPair, old: str, after: PropertyDef) -> Iterator[Step]:
    before = pair.before.properties[old]
    place = (pair.kind, pair.name, str(after.name))
    if old != after.name:
        yield RenameProperty(pair.kind, pair.name, old, str(after.name))
    if is_redescribed(before.annotations, after.annotations):
        yield UpdatePropertyMetadata(*place, metadata(after.annotations))
    if before.type != after.type:
        yield from _plan_type(pair, old, after)
    if stored_default(before) != stored_default(after):
        yield UpdateDefault(*place, stored_default(after))
    if _is_embedded_anew(pair, old, after.name):
        yield _change_embedding(pair, after.name)


def is_redescribed(before: Iterable[Annotation], after: Iterable[Annotation]) -> bool:
    """Whether the describing annotations differ in more than their order or quotes."""
    return [annotation_shape(item) for item in metadata(before)] != [
        annotation_shape(item) for item in metadata(after)
    ]


def _plan_type(pair: AnyPair, old: str, after: PropertyDef) -> Iterator[Step]:
    if pair.kind is TypeKind.INTERFACE:
        yield ChangeInterfaceProperty(pair.kind, pair.name, str(after.name), after.type)
        return
    key = pair.before.key if isinstance(pair.before, NodeType) else None
    yield from plan_type_change(
        pair.kind,
        pair.name,
        pair.before.properties[old].type,
        after,
        is_key=old in (key or ()),
    )


def _is_embedded_anew(pair: AnyPair, old: str, new: str) -> bool:
    before = embeddings_of(pair.before).get(old)
    after = embeddings_of(pair.after).get(new)
    if before is None or after is None:
        return before is not after
    return (pair.renamed(before.source), before.model) != (after.source, after.model)


def _is_embedded_everywhere(pair: AnyPair, name: str) -> bool:
    """Whether every row has a text to make this vector from."""
    embedding = embeddings_of(pair.after).get(name)
    return embedding is not None and not pair.after.properties[embedding.source].type.is_nullable


def _change_embedding(pair: AnyPair, name: str) -> ChangeEmbedding:
    place = (pair.kind, pair.name, str(name))
    embedding = embeddings_of(pair.after).get(name)
    if embedding is None:
        return ChangeEmbedding(*place, None, None)
    # Where there are no rows there are no stale vectors.
    has_rows = pair.kind is not TypeKind.INTERFACE
    return ChangeEmbedding(
        *place,
        str(embedding.source),
        embedding.model,
        tier=Tier.VALIDATED if has_rows else Tier.SAFE,
        data_work=DataWork.BACKFILL if has_rows else DataWork.NONE,
    )

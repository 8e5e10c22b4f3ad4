"""The types that a reader of the feed asks for, followed from commit to commit.

A filter names types once; a type that is renamed afterwards is still the one that was meant. Names
and tables at one commit come in, those at the next go out. Only catalogs are looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from omnigraph_core.diff.schemas import document_of
from omnigraph_core.diff.tables import match_tables, type_names
from omnigraph_core.schema.continuity import continuity

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from omnigraph_core.diff.model import ChangeFilter
    from omnigraph_core.diff.tables import TablePair
    from omnigraph_core.manifest.snapshot import Snapshot
    from omnigraph_core.schema.continuity import Continuity


@dataclass(frozen=True, slots=True)
class FollowedType:
    """What one name of a filter stands for at one commit."""

    names: tuple[str, ...]
    """The one in the filter, then others that it has had."""
    keys: tuple[str, ...]
    """Its table: two if a node and an edge share the name, none while there is no such type."""


Followed: TypeAlias = tuple[FollowedType, ...]


def follow(filter: ChangeFilter, at: Snapshot | None, head: Snapshot) -> Followed:
    """What a filter stands for at a commit: names may be those of then or of now.

    Args:
        at: None if nobody can tell any more.
    """
    known = {} if at is None else type_names(at)
    old = {} if at is None or at is head else _earlier_keys(at, head)
    found = []
    for name in sorted(filter.type_names):
        keys = _keys_of(name, known) or _keys_of(name, type_names(head), old)
        others = {known[key] for key in keys} - {name}
        found.append(FollowedType((name, *sorted(others)), keys))
    return tuple(found)


def follow_on(
    followed: Followed, before: Snapshot, after: Snapshot, found: Continuity | None
) -> Followed:
    """The same types one commit later.

    A name whose type is gone stands for the next one that has it.

    Args:
        found: what continues, None if both have one schema.
    """
    if not followed or found is None:
        return followed
    later = dict(match_tables(before, after, found))
    known = type_names(after)
    return tuple(_one_later(item, later, known) for item in followed)


def is_followed(pair: TablePair, before: Followed, after: Followed) -> bool:
    """Whether the rows of a pair of tables are asked for: by what it was, or by what it is now."""
    sides = (pair.before, before), (pair.after, after)
    return any(
        side is not None and side.type.table_key in item.keys
        for side, followed in sides
        for item in followed
    )


def is_same_choice(followed: Followed, filter: ChangeFilter, at: Snapshot, head: Snapshot) -> bool:
    """Whether a filter names these types: as they were called, as they are, or as they will be."""
    if len(filter.type_names) != len(followed):
        return False
    told = [set(item.names) for item in followed]
    if not _is_matched(filter.type_names, told) and at.schema.hash != head.schema.hash:
        now = type_names(head)
        later = _later_keys(at, head)
        for item, names in zip(followed, told, strict=True):
            names |= {now[later[key]] for key in item.keys if key in later}
    return _is_matched(filter.type_names, told)


def _one_later(
    item: FollowedType, later: Mapping[str, str], known: Mapping[str, str]
) -> FollowedType:
    keys = tuple(sorted(later[key] for key in item.keys if key in later))
    keys = keys or _keys_of(item.names[0], known)
    new = sorted({known[key] for key in keys} - set(item.names))
    return FollowedType((*item.names, *new), keys)


def _keys_of(
    name: str, known: Mapping[str, str], earlier: Mapping[str, str] | None = None
) -> tuple[str, ...]:
    """The keys of the types with a name; those that they had earlier, if that is told."""
    keys = [key for key, own in known.items() if own == name]
    if earlier is not None:
        keys = [earlier[key] for key in keys if key in earlier]
    return tuple(sorted(keys))


def _later_keys(at: Snapshot, head: Snapshot) -> dict[str, str]:
    found = continuity(document_of(at.schema), document_of(head.schema))
    return dict(match_tables(at, head, found))


def _earlier_keys(at: Snapshot, head: Snapshot) -> dict[str, str]:
    return {later: key for key, later in _later_keys(at, head).items()}


def _is_matched(names: Iterable[str], told: list[set[str]]) -> bool:
    """Whether each of the names tells one of the types, and all are told."""
    given = frozenset(names)
    return all(given & item for item in told) and given <= set().union(*told)

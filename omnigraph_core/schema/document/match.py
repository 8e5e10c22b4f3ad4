"""Which desired name continues which accepted one: by equal name, or through `@rename_from`.

A rename takes a name the desired schema no longer declares and gives it one the accepted schema
does not have. Anything else (chains, swaps, two claims) is refused: an id never changes its thing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from omnigraph_core.schema.ast import Annotation
    from omnigraph_core.schema.catalog import EdgeType, NodeType, PropertyDef

RENAME_FROM: Final = "rename_from"


class Refusal(StrEnum):
    """Why a rename hint cannot be followed."""

    NAMES_NOTHING = "names_nothing"
    CLAIMED_TWICE = "claimed_twice"
    STILL_DECLARED = "still_declared"
    NAME_TAKEN = "name_taken"


@dataclass(frozen=True, slots=True)
class Match:
    """The desired names sorted out: continued, refused, or (in neither map) new."""

    previous: Mapping[str, str]
    """Desired name → the accepted name it continues."""
    refused: Mapping[str, Refusal]
    dropped: tuple[str, ...]
    """Accepted names nothing continues and no refused hint asks for, sorted."""

    @property
    def renamed(self) -> dict[str, str]:
        """Accepted name → desired name, for everything continued."""
        return {old: new for new, old in self.previous.items()}


def match_types(
    accepted: Mapping[str, NodeType] | Mapping[str, EdgeType],
    desired: Mapping[str, NodeType] | Mapping[str, EdgeType],
) -> Match:
    """Match the nodes, or the edges, of two catalogs."""
    return match_names(
        {name: rename_hint(item.annotations) for name, item in accepted.items()},
        {name: rename_hint(item.annotations) for name, item in desired.items()},
    )


def match_properties(
    accepted: Mapping[str, PropertyDef], desired: Mapping[str, PropertyDef]
) -> Match:
    """Match the properties of one type.

    A hint copied from an interface only counts on nodes where it can: the property may have been
    renamed long before this node took it up, or the node may keep a property of the old name.
    """
    hints = {name: rename_hint(prop.annotations) for name, prop in desired.items()}
    for name, prop in desired.items():
        if not prop.is_direct and (hints[name] not in accepted or hints[name] in desired):
            hints[name] = None
    return match_names(
        {name: rename_hint(prop.annotations) for name, prop in accepted.items()}, hints
    )


def rename_hint(annotations: Iterable[Annotation]) -> str | None:
    """The old name given by `@rename_from`, if any."""
    for annotation in annotations:
        if annotation.name == RENAME_FROM and annotation.value is not None:
            return annotation.value.text
    return None


def match_names(accepted: Mapping[str, str | None], desired: Mapping[str, str | None]) -> Match:
    """Match names, each given with its rename hint.

    >>> match_names({"a": None, "b": None}, {"b": None, "c": "a"}).previous
    {'b': 'b', 'c': 'a'}
    >>> match_names({"a": None, "b": None}, {"a": "b", "b": "a"}).refused["a"].value
    'name_taken'
    """
    claims = Counter(hint for name, hint in desired.items() if name not in accepted)
    previous: dict[str, str] = {}
    refused: dict[str, Refusal] = {}
    for name, hint in desired.items():
        if name in accepted:
            previous[name] = name
            if _is_fresh_claim(name, hint, accepted):
                refused[name] = Refusal.NAME_TAKEN
        elif hint is not None:
            if refusal := _refuse_rename(hint, accepted, desired, claims):
                refused[name] = refusal
            else:
                previous[name] = hint
    wanted = {*previous.values(), *(desired[name] for name in refused)}
    return Match(previous, refused, tuple(sorted(name for name in accepted if name not in wanted)))


def _is_fresh_claim(name: str, hint: str | None, accepted: Mapping[str, str | None]) -> bool:
    # A hint the accepted schema already carries has been followed; the old name may be used again.
    return hint is not None and hint != name and hint in accepted and accepted[name] != hint


def _refuse_rename(
    hint: str,
    accepted: Mapping[str, str | None],
    desired: Mapping[str, str | None],
    claims: Counter[str | None],
) -> Refusal | None:
    if hint not in accepted:
        return Refusal.NAMES_NOTHING
    if hint in desired:
        return Refusal.STILL_DECLARED
    return Refusal.CLAIMED_TWICE if claims[hint] > 1 else None

"""The stable codes of changes that cannot be carried out, each with a one-line title."""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


class MigrationCode(StrEnum):
    """Families: MF may fail on data, ID changes identity, RN a rename that cannot be followed."""

    REQUIRED_WITHOUT_DEFAULT = "OG-MF-103"
    TYPE_CHANGE = "OG-MF-106"
    KEY_CHANGE = "OG-ID-101"
    ENDPOINT_CHANGE = "OG-ID-102"
    RENAME_NAMES_NOTHING = "OG-RN-101"
    RENAME_ACROSS_KINDS = "OG-RN-102"
    RENAME_CLAIMED_TWICE = "OG-RN-103"
    RENAME_STILL_DECLARED = "OG-RN-104"
    RENAME_NAME_TAKEN = "OG-RN-105"


MIGRATION_CODES: Final[Mapping[str, str]] = MappingProxyType(
    {
        MigrationCode.REQUIRED_WITHOUT_DEFAULT: "a required property is added without `@default`",
        MigrationCode.TYPE_CHANGE: "a property type changes in a way rows cannot follow",
        MigrationCode.KEY_CHANGE: "the `@key` of a node type changes",
        MigrationCode.ENDPOINT_CHANGE: "an edge changes its source or target type",
        MigrationCode.RENAME_NAMES_NOTHING: "`@rename_from` names nothing in the accepted schema",
        MigrationCode.RENAME_ACROSS_KINDS: "`@rename_from` names a type of another kind",
        MigrationCode.RENAME_CLAIMED_TWICE: "two declarations give the same `@rename_from`",
        MigrationCode.RENAME_STILL_DECLARED: "the old name of a rename is still declared",
        MigrationCode.RENAME_NAME_TAKEN: "the new name of a rename is already in use",
    }
)

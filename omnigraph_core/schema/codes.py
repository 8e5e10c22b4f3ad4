"""The codes of schema problems: what each refuses, in one line.

The reference pages list exactly these; every diagnostic of the schema language carries one.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEMA_CODES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "P1": "the text does not follow the grammar, names an unknown type or has a bad escape",
        "P2": "vector dimension out of range, list of Blob, or enum value given twice",
        "P3": "property named like a column the storage keeps for itself",
        "P4": "cardinality whose minimum exceeds its maximum, that is too large or given twice",
        "P5": "`@range` or `@check` without its two arguments, property first",
        "P6": "node implements an unknown interface",
        "P7": "property declared with a type other than its interface's",
        "P8": "constraint or `@embed` on a type instead of on a property or in the body",
        "P9": "blank or repeated `@description` or `@instruction`, or `@instruction` on a property",
        "P10": "`@key`, `@unique`, `@index` or `@embed` on a property whose type cannot carry it",
        "P11": "`@key` or `@embed` on an edge property, or one repeated or given a value",
        "P12": "`@embed` that is not on a Vector, or without one String source",
        "P13": "`@key`, `@range` or `@check` in an edge body",
        "P14": "more than one `@key` on a node",
        "P15": "constraint that names an unknown property, or one property twice",
        "P16": "`@key` column that is nullable, a list, a Vector or a Blob",
        "P17": "`@index` or `@unique` on a Blob",
        "P18": "`@range` on a property that is no number, `@check` on one that is no String",
        "P19": "property named like an implicit column or edge end point",
        "P20": "`@range` whose lower bound exceeds its upper, or a bound beyond 64 bits",
        "P21": "`@check` pattern that is no valid regular expression",
        "P22": "`@range` or `@check` on a list",
        "P23": "`@unique` on a list or Vector",
        "P24": "`@default` that does not fit its property",
        "P25": "`@rename_from` without exactly one former name",
        "P26": "annotation, constraint or parent on an interface",
        "C1": "node type or edge type declared twice",
        "C2": "edge end point that is no declared node type",
        "C3": "two edge names that differ only in case",
        "C4": "interface or property declared twice, or interfaces that disagree on annotations",
    }
)

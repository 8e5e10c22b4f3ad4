"""The codes of query problems: what each refuses or remarks, in one line.

The reference pages list exactly these; every diagnostic of the query language carries one.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

QUERY_CODES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "Q000": "the text does not follow the grammar",
        "T1": "binding to something that is not a declared node type",
        "T2": "inline field that is not a property of the type",
        "T3": "literal that does not fit its property: type, range, enum set or vector length",
        "T4": "traversal over an unknown edge",
        "T5": "variable whose type does not fit the edge",
        "T6": "unbound variable, or a property it does not have",
        "T7": "values that cannot be compared or assigned",
        "T8": "aggregate over a value it cannot take, or in a place that has no groups",
        "T9": "column that cannot be grouped, or a `not` block that mentions no outer variable",
        "T10": "mutation of an unknown type, or an update that sets nothing",
        "T11": "mutation of an unknown property",
        "T12": "insert without a required property or endpoint",
        "T13": "property assigned twice",
        "T14": "value taken from something that is not a declared parameter",
        "T15": "hop bounds or `nearest` operands",
        "T16": "assignment that would change identity",
        "T17": "`nearest` order without a limit",
        "T18": "`nearest` order together with an alias key",
        "T19": "`search` or `fuzzy` operands",
        "T20": "`match_text` or `bm25` operands",
        "T21": "`rrf` operands, or `rrf` without a limit",
        "T22": "undirected traversal of an edge between different types",
        "T23": "edge variable where only its properties may stand",
        "T24": "Blob read as a value",
        "T25": "two result columns of one name",
        "T28": "variable bound again with another type",
        "T29": "parameter name given twice, reserved, or reused by a pattern variable",
        "T30": "unknown parameter type",
        "T38": "list literal whose members are lists or do not fit together",
        "T39": "sort key that cannot order the result",
        "T40": "query name given twice in one file",
        "T41": "`optional` block without an outer variable, or whose variable is needed outside",
        "T42": "`having` outside a grouped query, or over something that is not in its result",
        "T43": "limit or offset that is not a whole number of rows",
        "T44": "unknown function, wrong number of arguments, or function not allowed here",
        "T45": "query annotation that is unknown, repeated or blank",
        "T46": "date or datetime that does not exist",
        "T47": "number literal too large for any 64-bit type",
        "D2": "mutation that mixes delete with insert or update",
        "L201": "nullable property that no update of the file ever sets",
        "L203": "parameter declared and never used",
        "L204": "offset without an order",
        "L205": "parts of a match that nothing connects",
    }
)

"""From collected violations to the one error a caller sees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from omnigraph_core.errors import (
    ConstraintViolation,
    DataError,
    DuplicateKey,
    EndpointNotFound,
    RecordError,
)
from omnigraph_core.violations import MAX_LISTED, Rule

if TYPE_CHECKING:
    from omnigraph_core.violations import Violations

_CLASSES: Final[dict[Rule, type[DataError]]] = {
    Rule.JSON: RecordError,
    Rule.RECORD: RecordError,
    Rule.UNKNOWN_TYPE: RecordError,
    Rule.UNKNOWN_FIELD: RecordError,
    Rule.VALUE: RecordError,
    Rule.ID_MISMATCH: RecordError,
    Rule.REQUIRED: ConstraintViolation,
    Rule.ENUM: ConstraintViolation,
    Rule.RANGE: ConstraintViolation,
    Rule.CHECK: ConstraintViolation,
    Rule.UNIQUE: ConstraintViolation,
    Rule.CARDINALITY: ConstraintViolation,
    Rule.EMBEDDING: ConstraintViolation,
    Rule.KEY: DuplicateKey,
    Rule.ENDPOINT: EndpointNotFound,
    Rule.ORPHAN: EndpointNotFound,
}


def refuse(violations: Violations) -> None:
    """Raise what was found, if anything was.

    The class is that of the violations if they have one in common, else `DataError` itself.

    Raises:
        DataError: with every listed violation and the count of all.
    """
    if not violations.total:
        return
    listed = violations.listed[:MAX_LISTED]
    lines = [violation.render() for violation in listed]
    if violations.total > len(listed):
        rest = violations.total - len(listed)
        lines.append(f"and {rest} more" if listed else f"{rest} rows break rules")
    classes = {_CLASSES[rule] for rule in violations.counts}
    kind = classes.pop() if len(classes) == 1 else DataError
    first = listed[0] if listed else None
    raise kind(
        "\n".join(lines),
        hint="nothing was written",
        table=None if first is None else first.type_name,
        line=None if first is None else first.line,
        property=None if first is None else first.property,
        violations=listed,
        counts=violations.counts,
    )

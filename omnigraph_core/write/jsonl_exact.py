"""Records one by one: the text of a record in, a typed row or every reason why not out.

This is what JSONL means. The fast path may only give what this one gives; whatever it is not sure
of comes here.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeGuard

import pyarrow as pa

from omnigraph_core.exec.scalars import plain_value
from omnigraph_core.schema.arrow import uri_column
from omnigraph_core.schema.catalog import EDGE_ENDS, EdgeType
from omnigraph_core.values import ValueProblem
from omnigraph_core.violations import Rule
from omnigraph_core.write.batches import LINE, SOURCE, Batch, batch_schema
from omnigraph_core.write.intake import Intake, suggestion
from omnigraph_core.write.json_text import JsonProblem, Repeated, parse_json
from omnigraph_core.write.json_values import read_text, read_value, shortened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from omnigraph_core.schema.catalog import PropertyDef
    from omnigraph_core.write.batches import GraphType

_NODE_MEMBERS: Final = ("type", "data")
_EDGE_MEMBERS: Final = ("edge", "from", "to", "data")


@dataclass(slots=True)
class _Rows:
    """Rows of one type, kept by column; a column may lack the rows before its first value."""

    lines: list[int] = field(default_factory=list)
    values: dict[str, list[object]] = field(default_factory=dict)


class ExactReader:
    """Takes records in the order of their lines and gives the good ones as batches."""

    def __init__(self, intake: Intake) -> None:
        self._intake = intake
        self._types: dict[str, GraphType] = {}
        self._rows: dict[str, _Rows] = defaultdict(_Rows)
        self._refused: dict[str, _Rows] = defaultdict(_Rows)

    def add_line(self, line: int, text: bytes) -> None:
        """Read the record a line holds."""
        try:
            value = parse_json(text.rstrip(b"\r\n").decode())
        except UnicodeDecodeError as problem:
            what = f"not UTF-8 at byte {problem.start + 1} of the line"
            self._intake.report(Rule.JSON, line, what)
        except JsonProblem as problem:
            self._intake.report(Rule.JSON, line, f"not valid JSON: {problem}")
        else:
            self.add(line, value)

    def add(self, line: int, record: object) -> None:
        """Take a record that begins at a line, or report what is wrong with it."""
        check = _RecordCheck(self._intake, line)
        type = check.type_of(record)
        if type is None or not _is_object(record) or not self._intake.is_wanted(type):
            return
        row = check.row(type, record)
        self._types[type.table_key] = type
        rows = (self._rows if check.is_good else self._refused)[type.table_key]
        _append(rows, row)
        rows.lines.append(line)

    def take(self) -> Iterator[Batch]:
        """The good rows since the last time, a batch per type."""
        taken, refused = dict(self._rows), dict(self._refused)
        self._rows.clear()
        self._refused.clear()
        for key, rows in refused.items():
            self._intake.refuse(_batch(self._types[key], rows, self._intake))
        for key, rows in taken.items():
            yield _batch(self._types[key], rows, self._intake)


def _append(rows: _Rows, row: Mapping[str, object]) -> None:
    before = len(rows.lines)
    for name, value in row.items():
        column = rows.values.setdefault(name, [])
        column.extend([None] * (before - len(column)))
        column.append(value)


def _batch(type: GraphType, rows: _Rows, intake: Intake) -> Batch:
    count = len(rows.lines)
    columns: list[pa.Array] = []
    for column in batch_schema(type):
        if column.name in (SOURCE, LINE):
            continue
        values = rows.values.get(column.name, [])
        values.extend([None] * (count - len(values)))
        columns.append(pa.array(values, column.type))
    columns.extend(intake.place_columns(rows.lines))
    return Batch(type, pa.Table.from_arrays(columns, schema=batch_schema(type)))


class _RecordCheck:
    """One record: every problem is reported, and then the record is not good."""

    def __init__(self, intake: Intake, line: int) -> None:
        self._intake = intake
        self._line = line
        self._type_name: str | None = None
        self.is_good = True

    def type_of(self, record: object) -> GraphType | None:
        """The type a record names; None, and a report, if it names none."""
        if not _is_object(record):
            self._wrong(Rule.RECORD, "expected a record as an object", value=record)
            return None
        has_type, has_edge = "type" in record, "edge" in record
        if has_type == has_edge:
            which = "both `type` and `edge`" if has_type else "neither `type` nor `edge`"
            self._wrong(
                Rule.RECORD, f"a record has exactly one of `type` and `edge`, found {which}"
            )
            return None
        member = "edge" if has_edge else "type"
        name = record[member]
        if not isinstance(name, str):
            self._wrong(Rule.RECORD, f"expected `{member}` as text", property=member, value=name)
            return None
        return self._find(name, is_edge=has_edge)

    def _find(self, name: str, *, is_edge: bool) -> GraphType | None:
        catalog = self._intake.catalog
        found = catalog.try_edge(name) if is_edge else catalog.nodes.get(name)
        if found is not None:
            self._type_name = found.name
            return found
        known = tuple(catalog.edges if is_edge else catalog.nodes)
        kind = "edge" if is_edge else "node"
        shown = shortened(name)
        self._wrong(
            Rule.UNKNOWN_TYPE,
            f"unknown {kind} type `{shown}`{suggestion(str(shown), known)}",
            value=name,
        )
        return None

    def row(self, type: GraphType, record: dict[str, object]) -> dict[str, object]:
        """The values of a record by column; useful only if it is good."""
        members = _EDGE_MEMBERS if isinstance(type, EdgeType) else _NODE_MEMBERS
        self._repeated(record)
        for name in record:
            if name not in members:
                self._unknown(name, members, "of a record")
        row: dict[str, object] = {}
        if isinstance(type, EdgeType):
            for member, column in EDGE_ENDS.items():
                row[column] = self._end(type, member, record.get(member))
        data = record.get("data")
        if data is None:
            data = {}
        if _is_object(data):
            self._repeated(data)
            row.update(self._data(type, data))
        else:
            self._wrong(Rule.RECORD, "expected `data` as an object", property="data", value=data)
        return row

    def _end(self, type: EdgeType, member: str, value: object) -> str | None:
        if value is None:
            self._wrong(Rule.RECORD, f"edge {type.name} without `{member}`", property=member)
            return None
        return self._text(f"`{member}` of edge {type.name}", member, value)

    def _data(self, type: GraphType, data: dict[str, object]) -> Iterator[tuple[str, object]]:
        for name, value in data.items():
            if name == "id":
                yield name, self._text(f"{type.name}.id", name, value)
            elif name in type.properties:
                yield from self._property(type.properties[name], value)
            else:
                known = ("id", *type.properties)
                self._unknown(name, known, f"of {type.name}")
        for name, default in type.properties.items():
            if name not in data and default.has_default:
                yield name, plain_value(default.default)

    def _text(self, what: str, property: str, value: object) -> str | None:
        try:
            return None if value is None else read_text(value)
        except ValueProblem as problem:
            self._wrong(Rule.VALUE, f"{what}: {problem}", property=property, value=value)
            return None

    def _property(self, property: PropertyDef, value: object) -> Iterator[tuple[str, object]]:
        try:
            read = read_value(value, property.type)
        except ValueProblem as problem:
            what = f"{self._type_name}.{property.name}: {problem}"
            self._wrong(Rule.VALUE, what, property=property.name, value=value)
            return
        if property.type.is_blob and isinstance(read, tuple):
            yield property.name, read[0]
            yield uri_column(property.name), read[1]
        else:
            yield property.name, read

    def _repeated(self, members: dict[str, object]) -> None:
        if isinstance(members, Repeated):
            for name in members.names:
                shown = str(shortened(name))
                self._wrong(Rule.RECORD, f"member `{shown}` is given twice", property=shown)

    def _unknown(self, name: str, known: tuple[str, ...], where: str) -> None:
        shown = str(shortened(name))
        self._wrong(
            Rule.UNKNOWN_FIELD,
            lambda: f"unknown member `{shown}` {where}{suggestion(shown, known)}",
            property=shown,
        )

    def _wrong(
        self,
        rule: Rule,
        message: Callable[[], str] | str,
        *,
        property: str | None = None,
        value: object = None,
    ) -> None:
        self.is_good = False
        self._intake.report(
            rule, self._line, message, type_name=self._type_name, property=property, value=value
        )


def _is_object(value: object) -> TypeGuard[dict[str, object]]:
    return isinstance(value, dict)

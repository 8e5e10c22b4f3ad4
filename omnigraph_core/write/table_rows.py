"""Rows of one table as rows of one type: which column goes where, and what does not fit.

Record batches as the file holds them come in, tables with the columns of a batch go out. Problems
of columns are reported once, those of values by row.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.exec.scalars import arrow_column
from omnigraph_core.schema.arrow import uri_column
from omnigraph_core.schema.catalog import EDGE_ENDS, EdgeType
from omnigraph_core.types import STRING, PropType
from omnigraph_core.values import ValueProblem
from omnigraph_core.violations import Rule
from omnigraph_core.write.arrow_columns import Converted, can_hold, convert
from omnigraph_core.write.arrow_shown import shown_scalar
from omnigraph_core.write.batches import LINE, SOURCE, Batch, batch_schema
from omnigraph_core.write.blob_text import parse_blob
from omnigraph_core.write.csv_columns import convert_texts
from omnigraph_core.write.intake import suggestion
from omnigraph_core.write.sources import Format

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.write.batches import GraphType
    from omnigraph_core.write.intake import Intake


@dataclass(frozen=True, slots=True)
class _Target:
    """Where a column goes and what it holds; `blob` names the property it holds the URIs of."""

    place: str
    type: PropType
    blob: str | None = None


@dataclass(slots=True)
class _Found:
    """What came of the columns of some rows."""

    numbers: np.ndarray
    is_bad: np.ndarray
    columns: dict[str, pa.Array] = field(default_factory=dict)
    uris: dict[str, list[pa.Array]] = field(default_factory=dict)
    """By blob: those given as its text, those of a column of their own."""


class TableReader:
    """Reads the rows of one source of one type."""

    def __init__(self, intake: Intake, type: GraphType) -> None:
        self._intake = intake
        self._type = type
        self._is_text = intake.source.format is Format.CSV
        self._targets = dict(_targets(type, has_uris=not self._is_text))

    def report_row(self, line: int, what: str, text: str) -> None:
        """Report a row that cannot be cut into the columns."""
        self._intake.report(Rule.RECORD, line, what, type_name=self._type.name, value=text)

    def accepts(self, schema: pa.Schema) -> bool:
        """Whether rows with these columns can be read; what is wrong with them is reported."""
        before = self._intake.violations.total
        if not schema.names:
            self._wrong_column(Rule.RECORD, "no columns: expected their names in the first row")
        for column in schema:
            self._check_column(column)
        self._check_places([self._targets[n].place for n in schema.names if n in self._targets])
        return self._intake.violations.total == before

    def _check_column(self, column: pa.Field) -> None:
        name, type_name = column.name, self._type.name
        target = self._targets.get(name)
        if target is None:
            hint = suggestion(name, tuple(self._targets))
            what = f"unknown column `{name}` of {type_name}{hint}"
            self._wrong_column(Rule.UNKNOWN_FIELD, what, name)
        elif not self._is_text and not self._can_hold(column.type, target.type):
            what = f"{type_name}.{name}: expected {target.type}, found a column of {column.type}"
            self._wrong_column(Rule.VALUE, what, name)

    def _can_hold(self, kind: pa.DataType, type: PropType) -> bool:
        return can_hold(kind, type, has_decimals=self._intake.source.has_decimals)

    def _check_places(self, places: list[str]) -> None:
        for place in sorted({place for place in places if places.count(place) > 1}):
            self._wrong_column(Rule.RECORD, f"column `{place}` is given twice", place)
        if isinstance(self._type, EdgeType):
            for member, place in EDGE_ENDS.items():
                if place not in places:
                    what = f"edge {self._type.name} without a column `{member}`"
                    self._wrong_column(Rule.RECORD, what, member)

    def _wrong_column(self, rule: Rule, what: str, property: str | None = None) -> None:
        self._intake.report(rule, None, what, type_name=self._type.name, property=property)

    def read(self, rows: pa.RecordBatch, numbers: np.ndarray) -> pa.Table:
        """The good ones of some rows, with the columns of a batch."""
        found = _Found(numbers, np.zeros(rows.num_rows, dtype=bool))
        for name, column in zip(rows.schema.names, rows.columns, strict=True):
            self._add(found, name, column)
        self._add_uris(found)
        self._expect_ends(found)
        for name, property in self._type.properties.items():
            if name not in found.columns and property.has_default:
                found.columns[name] = arrow_column(property.default, property.type, rows.num_rows)
        return self._table(found)

    def _add(self, found: _Found, name: str, column: pa.Array) -> None:
        target = self._targets[name]
        made = self._convert(column, target.type)
        self._wrong_rows(found, name, made.problems, values=column)
        if target.blob is not None:
            self._wrong_rows(found, name, _not_uris(made.values), values=column)
            found.uris.setdefault(target.blob, []).append(made.values)
            return
        found.columns[target.place] = made.values
        if made.uris is not None:
            found.uris.setdefault(target.place, []).append(made.uris)

    def _convert(self, column: pa.Array, type: PropType) -> Converted:
        if not self._is_text:
            return convert(column, type)
        texts, problems = _decoded(column)
        made = convert_texts(texts, type)
        return Converted(made.values, made.uris, {**made.problems, **problems})

    def _add_uris(self, found: _Found) -> None:
        for blob, uris in found.uris.items():
            given = [*uris, found.columns[blob]] if blob in found.columns else uris
            counts = sum(np.array(item.is_valid(), dtype=np.int8) for item in given)
            twice = np.flatnonzero(np.asarray(counts) > 1).tolist()
            self._wrong_rows(found, blob, dict.fromkeys(twice, "both bytes and a URI are given"))
            found.columns[uri_column(blob)] = pc.coalesce(*uris)

    def _expect_ends(self, found: _Found) -> None:
        if not isinstance(self._type, EdgeType):
            return
        for member, place in EDGE_ENDS.items():
            lacking = np.flatnonzero(np.array(found.columns[place].is_null(), dtype=bool))
            what = f"edge {self._type.name} without `{member}`"
            for row in lacking.tolist():
                found.is_bad[row] = True
                self._wrong(Rule.RECORD, int(found.numbers[row]), what, member)

    def _wrong_rows(
        self,
        found: _Found,
        name: str,
        problems: dict[int, str],
        *,
        values: pa.Array | None = None,
    ) -> None:
        for row, problem in problems.items():
            found.is_bad[row] = True
            what = f"{self._type.name}.{name}: {problem}"
            value = None if values is None else shown_scalar(values[row])
            self._wrong(Rule.VALUE, int(found.numbers[row]), what, name, value)

    def _wrong(self, rule: Rule, line: int, what: str, property: str, value: object = None) -> None:
        self._intake.report(
            rule, line, what, type_name=self._type.name, property=property, value=value
        )

    def _table(self, found: _Found) -> pa.Table:
        columns = found.columns
        columns[SOURCE], columns[LINE] = self._intake.place_columns(found.numbers)
        schema = batch_schema(self._type)
        for column in schema:
            if column.name not in columns:
                columns[column.name] = pa.nulls(len(found.numbers), column.type)
        table = pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)
        if not found.is_bad.any():
            return table
        self._intake.refuse(Batch(self._type, table.filter(pa.array(found.is_bad))))
        return table.filter(pa.array(~found.is_bad))


def _targets(type: GraphType, *, has_uris: bool) -> Iterator[tuple[str, _Target]]:
    """What the columns of a table can be, by name."""
    yield "id", _Target("id", STRING)
    if isinstance(type, EdgeType):
        for member, place in EDGE_ENDS.items():
            yield member, _Target(place, STRING)
            yield place, _Target(place, STRING)
    for name, property in type.properties.items():
        yield name, _Target(name, property.type)
        if property.type.is_blob and has_uris:
            yield uri_column(name), _Target(uri_column(name), STRING, name)


def _not_uris(values: pa.Array) -> dict[int, str]:
    problems = {}
    for row, value in enumerate(values.to_pylist()):
        try:
            if value is not None and parse_blob(value)[1] is None:
                problems[row] = "expected a URI, found bytes"
        except ValueProblem as problem:
            problems[row] = str(problem)
    return problems


def _decoded(column: pa.Array) -> tuple[pa.Array, dict[int, str]]:
    """Bytes as texts, and which of them are none."""
    try:
        return column.cast(pa.utf8()), {}
    except pa.ArrowInvalid:
        texts: list[str | None] = []
        problems = {}
        for row, value in enumerate(column.to_pylist()):
            try:
                texts.append(None if value is None else value.decode())
            except UnicodeDecodeError:
                texts.append(None)
                problems[row] = "not UTF-8"
        return pa.array(texts, pa.utf8()), problems

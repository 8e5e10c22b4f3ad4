"""Checks body constraints against the properties of the finished type.

A node or edge with its effective properties comes in; problems go out. A constraint whose name is
unknown, or whose type was refused already, is reported no further.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from omnigraph_core.diagnostics import Diagnostics, Name, did_you_mean
from omnigraph_core.schema import ast
from omnigraph_core.schema.check_annotations import find_annotation
from omnigraph_core.schema.defaults import default_value
from omnigraph_core.schema.render_parts import render_constraint
from omnigraph_core.schema.type_names import is_unknown
from omnigraph_core.values import ValueProblem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from omnigraph_core.schema.expand import Effective
    from omnigraph_core.types import PropType
    from omnigraph_core.values import Value

_END_POINTS: Final = ("src", "dst")
_ENDS_ELSEWHERE: Final = {"from": "src", "to": "dst", "source": "src", "target": "dst"}
_LOWEST, _HIGHEST = -(2**63), 2**64 - 1


def check_node_constraints(
    node: ast.Node, properties: Mapping[str, Effective], problems: Diagnostics
) -> None:
    """Report what is wrong with the constraints in a node's body."""
    checker = _Checker(node.name, properties, (), problems)
    for constraint in node.constraints:
        checker.check(constraint)
        if isinstance(constraint, ast.Range | ast.Check):
            found = properties.get(constraint.property)
            if found is not None and _refuses(constraint, _usable_default(found.property)):
                _report_refused_default(constraint, found, problems)


def _usable_default(property: ast.Property) -> Value:
    """The default, unless the property was refused already for it or its type."""
    try:
        return None if is_unknown(property.type) else default_value(property)
    except ValueProblem:
        return None


def _refuses(constraint: ast.Range | ast.Check, value: Value) -> bool:
    """Whether a write that leaves the property out would break the constraint."""
    if isinstance(constraint, ast.Check):
        return isinstance(value, str) and _is_found(constraint.pattern, value) is False
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    low, high = constraint.minimum, constraint.maximum
    if low is not None and high is not None and low > high:
        return False
    return (low is not None and value < low) or (high is not None and value > high)


def _report_refused_default(
    constraint: ast.Range | ast.Check, found: Effective, problems: Diagnostics
) -> None:
    default = find_annotation(found.property, "default") if found.is_direct else None
    span = constraint.span if default is None else default.span
    message = f"default of `{constraint.property}` breaks `{render_constraint(constraint)}`"
    problems.add("P24", message, span, hint="every write that leaves it out would be refused")


def check_edge_constraints(
    edge: ast.Edge, properties: Mapping[str, Effective], problems: Diagnostics
) -> None:
    """Report what is wrong with the constraints in an edge's body."""
    checker = _Checker(edge.name, properties, _END_POINTS, problems)
    for constraint in edge.constraints:
        if isinstance(constraint, ast.Unique | ast.Index):
            checker.check(constraint)
        else:
            word = type(constraint).__name__.lower()
            hint = "edges take `@unique`, `@index` and, in the header, `@card`"
            problems.add("P13", f"an edge cannot carry `@{word}`", constraint.span, hint=hint)


class _Checker:
    """The checks of one type's constraints, with what they all need at hand."""

    def __init__(
        self,
        owner: str,
        properties: Mapping[str, Effective],
        implicit: tuple[str, ...],
        problems: Diagnostics,
    ) -> None:
        self._owner = owner
        self._types = {name: item.property.type for name, item in properties.items()}
        self._implicit = implicit
        self._problems = problems

    def check(self, constraint: ast.Constraint) -> None:
        match constraint:
            case ast.Range():
                self._check_range(constraint)
            case ast.Check():
                self._check_pattern(constraint)
            case _:
                self._check_columns(constraint)

    def _check_columns(self, constraint: ast.Key | ast.Unique | ast.Index) -> None:
        seen: set[str] = set()
        for column in constraint.columns:
            if column in seen:
                message = f"constraint names `{column}` twice"
                self._problems.add("P15", message, column.span)
                continue
            seen.add(column)
            found = None if column in self._implicit else self._lookup(column)
            if found is not None:
                self._check_column(constraint, column, found)

    def _lookup(self, column: Name) -> PropType | None:
        """The type to check against; None when there is none or it was refused already."""
        found = self._types.get(column)
        if found is None:
            message = f"unknown property `{column}` on `{self._owner}`"
            hint = did_you_mean(column, [*self._types, *self._implicit])
            if self._implicit and column in _ENDS_ELSEWHERE:
                hint = f"write `{_ENDS_ELSEWHERE[column]}`"
            self._problems.add("P15", message, column.span, hint=hint)
        return None if found is None or is_unknown(found) else found

    def _check_column(
        self, constraint: ast.Key | ast.Unique | ast.Index, column: Name, type: PropType
    ) -> None:
        if isinstance(constraint, ast.Key):
            if kind := _unfit_for_key(type):
                message = f"key property `{column}` cannot be {kind}"
                self._problems.add("P16", message, column.span)
            return
        word = "unique" if isinstance(constraint, ast.Unique) else "index"
        if type.is_blob:
            self._problems.add("P17", f"`@{word}` cannot name the Blob `{column}`", column.span)
        elif word == "unique" and (type.is_list or type.is_vector):
            kind = "list" if type.is_list else "Vector"
            message = f"`@unique` cannot name the {kind} `{column}`"
            self._problems.add("P23", message, column.span)

    def _check_range(self, constraint: ast.Range) -> None:
        self._check_bounds(constraint)
        name = constraint.property
        found = self._lookup(name)
        if found is None:
            return
        if found.is_list:
            self._problems.add("P22", f"`@range` cannot bound the list `{name}`", name.span)
        elif not found.is_numeric:
            message = f"`@range` bounds numbers; `{name}` is {found}"
            self._problems.add("P18", message, name.span)

    def _check_bounds(self, constraint: ast.Range) -> None:
        low, high = constraint.minimum, constraint.maximum
        for bound in (low, high):
            if isinstance(bound, int) and not _LOWEST <= bound <= _HIGHEST:
                message = "a bound of `@range` does not fit 64 bits"
                self._problems.add("P20", message, constraint.span)
        if low is not None and high is not None and low > high:
            message = f"nothing lies in {low}..{high}"
            hint = f"write {high}..{low}"
            self._problems.add("P20", message, constraint.span, hint=hint)

    def _check_pattern(self, constraint: ast.Check) -> None:
        if problem := _regex_problem(constraint.pattern):
            message = f"invalid regular expression: {problem}"
            self._problems.add("P21", message, constraint.span)
        name = constraint.property
        found = self._lookup(name)
        if found is None:
            return
        if found.is_list:
            self._problems.add("P22", f"`@check` cannot test the list `{name}`", name.span)
        elif not found.is_string:
            message = f"`@check` tests Strings; `{name}` is {found}"
            self._problems.add("P18", message, name.span)


def _unfit_for_key(type: PropType) -> str | None:
    if type.is_list:
        return "a list"
    if type.is_vector:
        return "a Vector"
    if type.is_blob:
        return "a Blob"
    return "nullable" if type.is_nullable else None


def _regex_problem(pattern: str) -> str | None:
    """Why the engine that will run the pattern refuses it."""
    found = _is_found(pattern, "")
    return found if isinstance(found, str) else None


def _is_found(pattern: str, text: str) -> bool | str:
    """Whether the engine that will run the pattern finds it in the text, or why it cannot."""
    # Here because Arrow loads slower than the compiler: only schemas with patterns wait for it.
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        return bool(pc.match_substring_regex(pa.array([text]), pattern)[0].as_py())
    except pa.ArrowInvalid as problem:
        return str(problem).removeprefix("Invalid regular expression: ")

"""The columns of a read while it is checked, for `having` and `order` to find theirs in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from omnigraph_core.diagnostics import did_you_mean
from omnigraph_core.query.operands import listing, type_of
from omnigraph_core.query.typed import ColumnValue

if TYPE_CHECKING:
    from omnigraph_core.query.ast import Word
    from omnigraph_core.query.scope import Context
    from omnigraph_core.query.typed import TypedExpr


@dataclass(slots=True)
class Result:
    """Columns by name and value, in order; the value is None after a reported mistake."""

    is_grouped: bool
    is_distinct: bool
    columns: list[tuple[str, TypedExpr | None]] = field(default_factory=list)

    @property
    def hides_rows(self) -> bool:
        """Whether only result columns are left to order by."""
        return self.is_grouped or self.is_distinct

    def find(self, name: str) -> int | None:
        """The position of a column by its name."""
        for position, (known, _) in enumerate(self.columns):
            if known == name:
                return position
        return None

    def column_of(self, expr: TypedExpr) -> ColumnValue | None:
        """The column that holds just this value."""
        for position, (name, known) in enumerate(self.columns):
            if known == expr:
                return ColumnValue(position, name, type_of(expr))
        return None

    def by_alias(self, ctx: Context, word: Word, code: str) -> ColumnValue | None:
        """The column a bare word names, or None after reporting that there is none."""
        position = self.find(word.name)
        if position is None:
            names = [name for name, _ in self.columns if "." not in name]
            hint = did_you_mean(word.name, names) or self._hint(word, names)
            message = f"the result has no column `{word.name}`"
            ctx.report(code, message, word.span, hint=hint)
            return None
        name, expr = self.columns[position]
        return None if expr is None else ColumnValue(position, name, type_of(expr))

    def _hint(self, word: Word, names: list[str]) -> str | None:
        owner = next((n.partition(".")[0] for n, _ in self.columns if "." in n), None)
        if owner is not None and not names:
            return f"write `${owner}.{word.name}` for a property"
        return listing("named columns are", names)

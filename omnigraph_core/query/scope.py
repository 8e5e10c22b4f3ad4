"""What names mean while one query is checked: parameters, bound variables, blocks inside blocks.

A `Context` lives for one query and collects its problems; a `Scope` is one block of clauses. A name
that could not be resolved is reported once and has no type from then on, so whatever depends on it
stays silent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from omnigraph_core.diagnostics import did_you_mean
from omnigraph_core.query.ast import ANONYMOUS
from omnigraph_core.query.checked import FRESH_MARK
from omnigraph_core.query.typed import EntityKind
from omnigraph_core.schema.catalog import EDGE_IMPLICIT, NODE_IMPLICIT
from omnigraph_core.types import STRING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from omnigraph_core.diagnostics import Diagnostics, Name, Span
    from omnigraph_core.schema.catalog import Catalog, PropertyDef
    from omnigraph_core.types import PropType

_LONGEST_QUOTE: Final = 40


class Context:
    """The catalog, the parameters and the problems of one query."""

    __slots__ = ("_fresh", "_known_problems", "catalog", "params", "problem_count", "problems")

    def __init__(self, catalog: Catalog, problems: Diagnostics) -> None:
        self.catalog = catalog
        self.problems = problems
        self.params: dict[str, PropType | None] = {}
        """None for a parameter whose type is unknown."""
        self.problem_count = 0
        self._known_problems: set[tuple[str, str]] = set()
        self._fresh = 0

    def report(self, code: str, message: str, span: Span, *, hint: str | None = None) -> None:
        self.problem_count += 1
        self.problems.add(code, message, span, hint=hint)

    def is_first(self, code: str, name: str) -> bool:
        """Whether this name has this problem for the first time; later uses stay silent."""
        if (code, name) in self._known_problems:
            return False
        self._known_problems.add((code, name))
        return True

    def fresh_name(self) -> str:
        """A variable no query can write, for `$_`."""
        self._fresh += 1
        return f"{ANONYMOUS}{FRESH_MARK}{self._fresh}"

    def written(self, span: Span) -> str:
        """The source text of a span on one line, in backticks; long texts are cut."""
        text = " ".join(self.problems.source.text[span.start : span.end].split())
        return f"`{text if len(text) <= _LONGEST_QUOTE else text[: _LONGEST_QUOTE - 1] + '…'}`"


@dataclass(slots=True)
class Bound:
    """A variable of a block. `type_name` is None when it could not be found out."""

    name: str
    kind: EntityKind
    type_name: str | None
    position: int
    """The clause of its block that introduces it."""
    is_optional: bool = False


class Scope:
    """One block: its variables, and which outer ones it mentions."""

    __slots__ = (
        "hidden", "is_negated", "mentions_outer", "outer", "parent", "position", "promised",
        "variables",
    )  # fmt: skip

    def __init__(self, parent: Scope | None = None, *, is_negated: bool = False) -> None:
        self.parent = parent
        self.variables: dict[str, Bound] = {}
        self.position = 0
        """The clause being checked; a filter sees only variables introduced before it."""
        self.outer: dict[str, None] = {}
        """Outer variables mentioned anywhere inside, in order of mention."""
        self.mentions_outer = False
        """Whether a clause of this very block mentions one."""
        self.promised: set[str] = set()
        """Variables an `optional` block written earlier introduces."""
        self.hidden: set[str] = set()
        """Variables local to a `not` block written earlier."""
        self.is_negated: bool = is_negated or (parent is not None and parent.is_negated)

    def bind(
        self, name: str, kind: EntityKind, type_name: str | None, *, is_optional: bool = False
    ) -> Bound:
        bound = Bound(name, kind, type_name, self.position, is_optional)
        self.variables[name] = bound
        return bound

    def find(self, name: str) -> Bound | None:
        """The variable of that name here or outside; an outer one counts as mentioned."""
        found = self.variables.get(name)
        if found is not None:
            return found
        crossed, scope = [self], self.parent
        while scope is not None:
            found = scope.variables.get(name)
            if found is not None:
                self.mentions_outer = True
                for inner in crossed:
                    inner.outer[name] = None
                return found
            crossed.append(scope)
            scope = scope.parent
        return None

    def is_known(self, name: str) -> bool:
        """Whether a variable of that name exists here or outside."""
        return any(name in scope.variables for scope in self.chain())

    def is_hidden(self, name: str) -> bool:
        """Whether the name is local to a `not` block of this or an outer block."""
        return any(name in scope.hidden for scope in self.chain())

    def comes_later(self, bound: Bound) -> bool:
        """Whether a variable is introduced only below the clause being checked."""
        for scope in self.chain():
            if scope.variables.get(bound.name) is bound:
                return bound.position > scope.position
        return False

    def names(self) -> Iterable[str]:
        """Every visible variable a reader could have meant."""
        return (name for scope in self.chain() for name in scope.variables if "#" not in name)

    def chain(self) -> Iterator[Scope]:
        """This block and those around it, from the inside out."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent


def find_variable(ctx: Context, scope: Scope, name: Name) -> Bound | None:
    """The bound variable an expression means, or None after reporting why there is none."""
    found = scope.find(name)
    if found is None:
        _report_unbound(ctx, scope, name)
        return None
    if scope.comes_later(found) and ctx.is_first("T6", name):
        message = f"`${name}` is used before it is bound"
        hint = f"move the filter below the clause that introduces `${name}`"
        ctx.report("T6", message, name.span, hint=hint)
    return found


def _report_unbound(ctx: Context, scope: Scope, name: Name) -> None:
    if name == ANONYMOUS:
        hint = "give it a name, like `$x`, to read from it"
        ctx.report("T6", "`$_` stands for a different node each time", name.span, hint=hint)
    elif name in ctx.params:
        message = f"`${name}` is a parameter, it has no properties"
        ctx.report("T6", message, name.span, hint=f"use `${name}` itself")
    elif ctx.is_first("T6", name):
        ctx.report("T6", f"`${name}` is not bound", name.span, hint=_unbound_hint(ctx, scope, name))


def _unbound_hint(ctx: Context, scope: Scope, name: str) -> str:
    if scope.is_hidden(name):
        return f"`${name}` exists only inside its `not` block"
    if any(name in outer.promised for outer in scope.chain()):
        return f"move the filter below the `optional` block that introduces `${name}`"
    near = did_you_mean(f"${name}", [f"${known}" for known in (*scope.names(), *ctx.params)])
    return near or f"bind it in match, like `${name}: Type`, or declare it as a parameter"


def find_property(ctx: Context, bound: Bound, name: str) -> PropType | None:
    """The type of a variable's property or implicit column; None when it has no such one."""
    properties, implicit = properties_of(ctx.catalog, bound.kind, bound.type_name)
    found = properties.get(name)
    if found is None and name not in implicit:
        return None
    type = STRING if found is None else found.type
    is_missing_allowed = bound.is_optional or _is_embedded(ctx.catalog, bound, name)
    return type.nullable() if is_missing_allowed else type


def _is_embedded(catalog: Catalog, bound: Bound, name: str) -> bool:
    """Whether it is a vector made from a text: null until it was made, whatever is declared."""
    if bound.kind is EntityKind.EDGE or bound.type_name is None:
        return False
    return name in catalog.nodes[bound.type_name].embeddings


def properties_of(
    catalog: Catalog, kind: EntityKind, type_name: str | None
) -> tuple[Mapping[str, PropertyDef], tuple[str, ...]]:
    """The declared properties of a type and the names of its implicit columns."""
    if type_name is None:
        return {}, ()
    if kind is EntityKind.EDGE:
        return catalog.edges[type_name].properties, EDGE_IMPLICIT
    return catalog.nodes[type_name].properties, NODE_IMPLICIT

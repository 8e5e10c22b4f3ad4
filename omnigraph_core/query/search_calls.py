"""Search functions: text matches and rankings, each over one property of one node variable.

The query of a search is a literal or a parameter, known before the first row: the executor prepares
it once. A ranking never stands on an optional variable, whose rows may have nothing to rank.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from omnigraph_core.constants import FUZZY_MAX_EDITS, RRF_K
from omnigraph_core.query.ast import Access, Call, ListLiteral, Literal, Variable
from omnigraph_core.query.functions import FUNCTIONS
from omnigraph_core.query.literals import check_literal, vector_of
from omnigraph_core.query.operands import check_access, check_param
from omnigraph_core.query.typed import (
    Bm25,
    Constant,
    EntityKind,
    Nearest,
    Rrf,
    TextFunction,
    TextMatch,
)
from omnigraph_core.types import BOOL, I64

if TYPE_CHECKING:
    from omnigraph_core.query.ast import Expr
    from omnigraph_core.query.scope import Context, Scope
    from omnigraph_core.query.typed import ParamValue, PropertyValue, RankExpr
    from omnigraph_core.types import PropType

_CODES: Final = {
    "search": "T19",
    "fuzzy": "T19",
    "match_text": "T20",
    "bm25": "T20",
    "nearest": "T15",
}
_DEFAULT_K: Final = Constant(RRF_K.value, I64)
_DEFAULT_EDITS: Final = Constant(FUZZY_MAX_EDITS.value, I64)


def check_text_match(ctx: Context, scope: Scope, call: Call) -> TextMatch | None:
    """`search`, `fuzzy` or `match_text`."""
    field = _text_field(ctx, scope, call)
    query = _text_query(ctx, scope, call)
    max_edits: Constant | ParamValue | None = _DEFAULT_EDITS if call.function == "fuzzy" else None
    if len(call.arguments) == 3:
        max_edits = _whole_number(ctx, call.arguments[2], "T19", "the edit distance", least=0)
        if max_edits is None:
            return None
    if field is None or query is None:
        return None
    type = BOOL.nullable() if _may_be_null(field, query, max_edits) else BOOL
    return TextMatch(TextFunction(call.function), field, query, max_edits, type)


def _may_be_null(*operands: PropertyValue | Constant | ParamValue | None) -> bool:
    """Whether nothing matches is unknown, as for any other condition."""
    return any(operand is not None and operand.type.is_nullable for operand in operands)


def check_rank(ctx: Context, scope: Scope, call: Call) -> RankExpr | None:
    """`nearest`, `bm25` or `rrf`."""
    if call.function == "rrf":
        return _rrf(ctx, scope, call)
    if call.function == "nearest":
        return _nearest(ctx, scope, call)
    field = _ranked(ctx, scope, call, _text_field(ctx, scope, call))
    query = _text_query(ctx, scope, call)
    return Bm25(field, query) if field is not None and query is not None else None


def _text_field(ctx: Context, scope: Scope, call: Call) -> PropertyValue | None:
    field = _field(ctx, scope, call)
    if field is not None and not field.type.is_string:
        message = f"`{call.function}` reads a String property, found {field.type}"
        hint = "use `=`, `<` or `contains` for other types, `nearest` for vectors"
        ctx.report(_CODES[call.function], message, call.arguments[0].span, hint=hint)
        return None
    return field


def _field(ctx: Context, scope: Scope, call: Call) -> PropertyValue | None:
    """The property a search reads: always `$x.p` of a node."""
    written = call.arguments[0]
    if not isinstance(written, Access):
        message = f"`{call.function}` reads a property, found {ctx.written(written.span)}"
        hint = f"write `{FUNCTIONS[call.function].signature}`"
        ctx.report(_CODES[call.function], message, written.span, hint=hint)
        return None
    bound = scope.find(written.variable)
    if bound is not None and bound.kind is EntityKind.EDGE:
        message = f"`{call.function}` reads nodes, `${written.variable}` is an edge"
        ctx.report("T23", message, written.span, hint="search a property of a node")
        return None
    return check_access(ctx, scope, written)


def _text_query(ctx: Context, scope: Scope, call: Call) -> Constant | ParamValue | None:
    query = _query(ctx, scope, call)
    type = query.type if query is not None else None
    if type is not None and not type.is_string:
        message = f"`{call.function}` takes a String to look for, found {type}"
        hint = _declared_hint(call.arguments[1], "String") or "quote the text"
        ctx.report(_CODES[call.function], message, call.arguments[1].span, hint=hint)
        return None
    return query


def _declared_hint(written: Expr, type: str) -> str | None:
    return f"declare it: `${written.name}: {type}`" if isinstance(written, Variable) else None


def _query(ctx: Context, scope: Scope, call: Call) -> Constant | ParamValue | None:
    """What is looked for: a literal or a parameter."""
    written = call.arguments[1]
    if isinstance(written, Literal | ListLiteral):
        return check_literal(ctx, written)
    if isinstance(written, Variable) and written.name in ctx.params:
        return check_param(ctx, written.name)
    code = _CODES[call.function]
    if isinstance(written, Variable) and not scope.is_known(written.name):
        message = f"`${written.name}` is not a declared parameter"
        if ctx.is_first("T6", written.name):
            ctx.report(code, message, written.span, hint=f"declare it: `${written.name}: String`")
        return None
    message = f"`{call.function}` looks for a literal or a parameter"
    ctx.report(code, message, written.span, hint="the query must be known before the first row")
    return None


def _ranked(
    ctx: Context, scope: Scope, call: Call, field: PropertyValue | None
) -> PropertyValue | None:
    bound = scope.find(field.variable) if field is not None else None
    if bound is not None and bound.is_optional:
        message = f"`{call.function}` cannot rank `${bound.name}`, which an `optional` block binds"
        hint = "match it outside the optional block"
        ctx.report(_CODES[call.function], message, call.arguments[0].span, hint=hint)
        return None
    return field


def _nearest(ctx: Context, scope: Scope, call: Call) -> Nearest | None:
    field = _ranked(ctx, scope, call, _field(ctx, scope, call))
    if field is not None and not field.type.is_vector:
        message = f"`nearest` reads a Vector property, found {field.type}"
        ctx.report("T15", message, call.arguments[0].span, hint="use `bm25` to rank texts")
        field = None
    query = _query(ctx, scope, call)
    if field is None or query is None:
        return None
    fitted = _vector_query(ctx, query, field.type, call)
    return Nearest(field, fitted) if fitted is not None else None


def _vector_query(
    ctx: Context, query: Constant | ParamValue, vector: PropType, call: Call
) -> Constant | ParamValue | None:
    """A vector of the field's length, or a text to embed."""
    type, span = query.type, call.arguments[1].span
    if type.is_string or (type.is_vector and type.dimension == vector.dimension):
        return query
    if isinstance(query, Constant) and isinstance(query.value, tuple) and type.scalar.is_numeric:
        return vector_of(ctx, query.value, vector, span, "T15")
    message = f"cannot look for {type} in {vector.nullable(is_nullable=False)}"
    hint = f"use a `{vector.nullable(is_nullable=False)}` parameter, a list of numbers or a text"
    ctx.report("T15", message, span, hint=hint)
    return None


def _whole_number(
    ctx: Context, written: Expr, code: str, what: str, *, least: int
) -> Constant | ParamValue | None:
    """A whole number known before the first row."""
    value: Constant | ParamValue | None = None
    if isinstance(written, Literal):
        value = check_literal(ctx, written)
    elif isinstance(written, Variable) and written.name in ctx.params:
        value = check_param(ctx, written.name)
    else:
        message = f"{what} is a whole number or a parameter"
        hint = _declared_hint(written, "I64") or f"write a number, like {max(least, 2)}"
        ctx.report(code, message, written.span, hint=hint)
        return None
    if value is None:
        return None
    if not (value.type.is_numeric and value.type.scalar.is_integer):
        hint = _declared_hint(written, "I64") or f"write a number, like {max(least, 2)}"
        ctx.report(code, f"{what} is a whole number, found {value.type}", written.span, hint=hint)
        return None
    if isinstance(value, Constant) and isinstance(value.value, int) and value.value < least:
        hint = f"write {least} or more"
        ctx.report(code, f"{what} is at least {least}", written.span, hint=hint)
        return None
    return value


def _rrf(ctx: Context, scope: Scope, call: Call) -> Rrf | None:
    arms = [_arm(ctx, scope, arm) for arm in call.arguments[:2]]
    k: Constant | ParamValue | None = _DEFAULT_K
    if len(call.arguments) == 3:
        k = _whole_number(ctx, call.arguments[2], "T21", "the constant k", least=1)
    first, second = arms
    if first is None or second is None or k is None:
        return None
    if first.field.variable != second.field.variable:
        message = (
            f"both arms must rank one variable, found `${first.field.variable}` "
            f"and `${second.field.variable}`"
        )
        ctx.report("T21", message, call.span, hint="rank one variable in both arms")
        return None
    return Rrf((first, second), k)


def _arm(ctx: Context, scope: Scope, arm: Expr) -> Nearest | Bm25 | None:
    if not isinstance(arm, Call) or arm.function not in ("nearest", "bm25"):
        message = f"`rrf` fuses `nearest` and `bm25`, found {ctx.written(arm.span)}"
        hint = f"write `{FUNCTIONS['nearest'].signature}` or `{FUNCTIONS['bm25'].signature}`"
        ctx.report("T21", message, arm.span, hint=hint)
        return None
    if len(arm.arguments) != 2 or arm.is_distinct:
        signature = FUNCTIONS[arm.function].signature
        message = f"`{arm.function}` takes 2 arguments, found {len(arm.arguments)}"
        ctx.report("T44", message, arm.span, hint=f"write `{signature}`")
        return None
    rank = check_rank(ctx, scope, arm)
    return rank if isinstance(rank, Nearest | Bm25) else None

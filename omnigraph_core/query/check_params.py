"""The head of a query: parameters with their types, and its annotations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from omnigraph_core.constants import RESERVED_PARAMETER
from omnigraph_core.diagnostics import did_you_mean
from omnigraph_core.query.ast import ANONYMOUS
from omnigraph_core.query.checked import CheckedParam
from omnigraph_core.schema.type_names import OTHER_LANGUAGES
from omnigraph_core.types import MAX_VECTOR_DIMENSION, SCALAR_NAMES, PropType, Scalar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from omnigraph_core.query.ast import Param, QueryAnnotation, TypeRef
    from omnigraph_core.query.scope import Context

ANNOTATIONS: Final = ("description", "instruction")


def check_params(ctx: Context, params: Sequence[Param]) -> tuple[CheckedParam, ...]:
    """Declare the parameters of a query in its context."""
    for param in params:
        type = _type(ctx, param.type)
        problem = _name_problem(ctx, param.name)
        if problem is not None:
            ctx.report("T29", problem, param.name.span, hint="choose another name")
        elif param.name not in ctx.params:
            ctx.params[str(param.name)] = type
    return tuple(CheckedParam(name, type) for name, type in ctx.params.items() if type is not None)


def _name_problem(ctx: Context, name: str) -> str | None:
    if name in ctx.params:
        return f"parameter `${name}` is declared twice"
    if name == RESERVED_PARAMETER.value:
        return f"`${name}` is reserved"
    return "`$_` cannot name a parameter" if name == ANONYMOUS else None


def _type(ctx: Context, ref: TypeRef) -> PropType | None:
    """The type a parameter declares, or None after reporting that there is no such type."""
    if ref.name == "Vector":
        return _vector(ctx, ref)
    if ref.name not in SCALAR_NAMES:
        hint = _type_hint(ctx, ref.name)
        ctx.report("T30", f"unknown type `{ref.name}`", ref.name.span, hint=hint)
        return None
    if ref.dimension is not None:
        message = f"`{ref.name}` has no dimension"
        ctx.report("T30", message, ref.span, hint=f"write `{ref.name}`")
        return None
    scalar = Scalar(ref.name)
    if ref.is_list and scalar is Scalar.BLOB:
        ctx.report("T30", "a list cannot hold Blobs", ref.span, hint="pass Blobs one by one")
        return None
    return PropType(scalar, is_list=ref.is_list, is_nullable=ref.is_nullable)


def _type_hint(ctx: Context, name: str) -> str:
    if name == "enum":
        return "an enum is passed as `String`"
    if known := OTHER_LANGUAGES.get(name.lower()):
        return f"use `{known}`"
    if name in ctx.catalog.nodes or name in ctx.catalog.edges:
        return "parameters are plain values; pass the key as `String`"
    return did_you_mean(name, SCALAR_NAMES) or (
        f"types are {', '.join(SCALAR_NAMES)}, Vector(n) and [T]"
    )


def _vector(ctx: Context, ref: TypeRef) -> PropType | None:
    if ref.is_list:
        hint = "pass vectors one by one"
        ctx.report("T30", "a list cannot hold vectors", ref.span, hint=hint)
        return None
    if ref.dimension is None:
        hint = "write the dimension of the property, like `Vector(768)`"
        ctx.report("T30", "`Vector` needs a dimension", ref.span, hint=hint)
        return None
    if not 1 <= ref.dimension <= MAX_VECTOR_DIMENSION:
        message = f"a vector has between 1 and {MAX_VECTOR_DIMENSION} dimensions"
        ctx.report("T30", message, ref.span, hint="write the dimension of the property")
        return None
    return PropType(Scalar.VECTOR, dimension=ref.dimension, is_nullable=ref.is_nullable)


def check_annotations(ctx: Context, annotations: Sequence[QueryAnnotation]) -> dict[str, str]:
    """The texts of `@description` and `@instruction`."""
    texts: dict[str, str] = {}
    for annotation in annotations:
        name = annotation.name
        if name not in ANNOTATIONS:
            near = did_you_mean(f"@{name}", [f"@{known}" for known in ANNOTATIONS])
            hint = near or "use `@description` or `@instruction`"
            message = f"unknown query annotation `@{name}`"
            ctx.report("T45", message, annotation.span, hint=hint)
        elif name in texts:
            message = f"`@{name}` is given twice"
            ctx.report("T45", message, annotation.span, hint="keep one of them")
        else:
            texts[str(name)] = annotation.text
            if not annotation.text.strip():
                message = f"`@{name}` is blank"
                ctx.report("T45", message, annotation.span, hint="write a text, or leave it out")
    return texts

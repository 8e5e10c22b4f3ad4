"""Query parameters: JSON values in, typed values out, one for every declared parameter.

Nothing is guessed: a parameter left out is null if its type allows null and an error if not, and a
name the query does not declare is an error. All problems are reported together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.diagnostics import did_you_mean
from omnigraph_core.errors import ParameterError
from omnigraph_core.values import ValueProblem, from_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from omnigraph_core.query.checked import CheckedParam
    from omnigraph_core.values import Value


def coerce_params(
    params: Sequence[CheckedParam], given: Mapping[str, object] | None
) -> dict[str, Value]:
    """The value of every declared parameter, in declaration order.

    >>> from omnigraph_core.query.checked import CheckedParam
    >>> from omnigraph_core.types import I64, STRING
    >>> declared = (CheckedParam("name", STRING), CheckedParam("age", I64.nullable()))
    >>> coerce_params(declared, {"name": "a"})
    {'name': 'a', 'age': None}

    Raises:
        ParameterError: every parameter that is missing, undeclared or of the wrong type.
    """
    given = given or {}
    values: dict[str, Value] = {}
    problems: list[str] = []
    for param in params:
        try:
            values[param.name] = _coerce(param, given)
        except ValueProblem as problem:
            problems.append(f"param '{param.name}': {problem}")
    problems.extend(_undeclared(params, given))
    if problems:
        raise ParameterError(problems)
    return values


def _coerce(param: CheckedParam, given: Mapping[str, object]) -> Value:
    if param.name not in given and not param.type.is_nullable:
        raise ValueProblem(f"missing, expected {param.type}")
    return from_json(given.get(param.name), param.type)


def _undeclared(params: Sequence[CheckedParam], given: Mapping[str, object]) -> Iterator[str]:
    names = [param.name for param in params]
    for name in given:
        if name not in names:
            hint = did_you_mean(name, names) or _declared(names)
            yield f"param '{name}': not declared by the query; {hint}"


def _declared(names: list[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in names)
    return f"it declares {shown}" if names else "it declares no parameters"

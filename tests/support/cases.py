"""Many small cases in one test: all of them are checked, and one report names those that fail.

Every worker of a run builds every test item before its first test starts. Cases that take
milliseconds therefore share an item. A case that takes longer, starts a process or needs a fixture
of its own stays a parameter of pytest.
"""

from __future__ import annotations

import functools
import inspect
import traceback
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
from _pytest._io.saferepr import saferepr

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_Case = TypeVar("_Case")
_WITH_ID = type(pytest.param())


def check_all(
    cases: Iterable[_Case], check: Callable[[_Case], object], name: Callable[[_Case], str] = str
) -> None:
    """Call `check` with every case; raise one AssertionError that lists every failure."""
    __tracebackhide__ = True
    failures, tried = list[str](), 0
    for case in cases:
        tried += 1
        try:
            check(case)
        except (Exception, pytest.fail.Exception, pytest.skip.Exception) as error:  # noqa: BLE001 - all are reported
            failures.append(f"--- {name(case)}\n{indent(_message(error), '  ')}")
    assert tried, "there are no cases"
    if failures:
        raise AssertionError("\n".join([f"{len(failures)} of {tried} cases failed", *failures]))


def each(
    names: str | Sequence[str],
    cases: Iterable[Any] | Callable[[], Iterable[Any]],
    ids: Iterable[object] | Callable[[Any], object] | None = None,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Like `pytest.mark.parametrize`, but one item: the test is called for every case in turn.

    Cases that take time to make are given as a function, which the test calls. Fixtures are shared
    by all cases, save that each has a `monkeypatch` that is undone and a `tmp_path` of its own.
    """
    wanted = names.replace(" ", "").split(",") if isinstance(names, str) else list(names)
    is_single = isinstance(names, str) and len(wanted) == 1

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def all_cases(**given: Any) -> None:
            __tracebackhide__ = True
            listed = list(cases if isinstance(cases, Iterable) else cases())
            check_all(
                range(len(listed)),
                lambda number: run(given, number, values_of(listed[number])),
                lambda number: _name(listed[number], values_of(listed[number]), number, ids),
            )

        def values_of(case: Any) -> Sequence[Any]:
            if isinstance(case, _WITH_ID):
                return tuple(case.values)
            return (case,) if is_single else tuple(case)

        def run(given: dict[str, Any], number: int, values: Sequence[Any]) -> None:
            with ExitStack() as stack:
                fresh = dict(given)
                if "monkeypatch" in given:
                    fresh["monkeypatch"] = stack.enter_context(given["monkeypatch"].context())
                if "tmp_path" in given:
                    fresh["tmp_path"] = given["tmp_path"] / str(number)
                    fresh["tmp_path"].mkdir()
                test(**fresh, **dict(zip(wanted, values, strict=True)))

        signature = inspect.signature(test)
        others = [item for item in signature.parameters.values() if item.name not in wanted]
        all_cases.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
        return all_cases

    return decorate


def _name(case: Any, values: Sequence[Any], number: int, ids: Any) -> str:
    """The id of a case as pytest has it, or else its values."""
    if isinstance(case, _WITH_ID) and case.id is not None:
        return str(case.id)
    if callable(ids):
        return "-".join(str(ids(value)) for value in values)
    return str(list(ids)[number]) if ids is not None else ", ".join(map(saferepr, values))


def _message(error: BaseException) -> str:
    """What was expected and found, and the line that says so."""
    steps = traceback.extract_tb(error.__traceback__)
    own = [s for s in steps if "site-packages" not in s.filename and s.filename != __file__]
    place = f"{Path(own[-1].filename).name}:{own[-1].lineno}: " if own else ""
    if isinstance(error, AssertionError | pytest.fail.Exception):
        return f"{place}{error}"
    return f"{place}{type(error).__name__}: {error}"

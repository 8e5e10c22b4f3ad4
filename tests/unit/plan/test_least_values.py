"""Parameters that may be too small, wherever a read uses them."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.errors import ParameterError
from omnigraph_core.ir.compile import compile_one
from omnigraph_core.ir.nodes import QueryIR
from omnigraph_core.plan.least_values import check_least, least_values
from omnigraph_core.plan.values import Values
from omnigraph_core.schema.build import compile_schema
from tests.support.cases import each

if TYPE_CHECKING:
    from omnigraph_core.plan.least_values import LeastValue

CATALOG = compile_schema("node Part { sku: String @key  about: String }\nedge Fits: Part -> Part")
EDITS = "the edit distance of `fuzzy`"
PLACES = {
    "limit": ("$p: Part", "$p.sku", "limit $n"),
    "offset": ("$p: Part", "$p.sku", "offset $n"),
    "scan": ('$p: Part  fuzzy($p.about, "x", $n)', "$p.sku", ""),
    "expand": ('$p: Part  $p fits $q  fuzzy($q.about, "x", $n)', "$p.sku", ""),
    "filter": ('$p: Part  $p fits $q  fuzzy($q.about, "x", $n) or $p.sku = "a"', "$q.sku", ""),
    "not": ('$p: Part  not { $p fits $q  fuzzy($q.about, "x", $n) }', "$p.sku", ""),
    "optional": ('$p: Part  optional { $p fits $q  fuzzy($q.about, "x", $n) }', "$q.sku", ""),
    "column": ("$p: Part", '$p.sku, fuzzy($p.about, "x", $n)', ""),
    "order": (
        "$p: Part",
        "$p.sku",
        'order { rrf(bm25($p.about, "x"), bm25($p.about, "y"), $n) } limit 3',
    ),
}


def found(match: str, returned: str, rest: str) -> tuple[LeastValue, ...]:
    text = f"query q($n: I64) {{ match {{ {match} }} return {{ {returned} }} {rest} }}"
    ir = compile_one(text, CATALOG).ir
    assert isinstance(ir, QueryIR)
    return least_values(ir)


def given(number: int | None) -> Values:
    return Values(dt.datetime.now(dt.UTC), {"n": number})


@each("place", PLACES)
def test_every_place(place: str) -> None:
    (only,) = found(*PLACES[place])
    what = {"limit": "limit", "offset": "offset", "order": "the constant of `rrf`"}
    assert (only.param.name, only.what) == ("n", what.get(place, EDITS))
    least = 1 if place == "order" else 0
    check_least((only,), given(least))
    check_least((only,), given(None))
    with pytest.raises(ParameterError) as refused:
        check_least((only,), given(least - 1))
    problem = f"param 'n': {only.what} is at least {least}, found {least - 1}"
    assert refused.value.problems == (problem,)


def test_literals_are_the_checker_s_business() -> None:
    assert found('$p: Part  fuzzy($p.about, "x", 1)', "$p.sku, $n", "limit 3 offset 0") == ()


def test_one_parameter_in_two_places() -> None:
    uses = found('$p: Part  fuzzy($p.about, "x", $n)', "$p.sku", "limit $n")
    assert [use.what for use in uses] == ["limit", EDITS]
    with pytest.raises(ParameterError) as refused:
        check_least(uses, given(-1))
    assert len(refused.value.problems) == 2

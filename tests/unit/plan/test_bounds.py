"""A fitted comparison says the same as the one it came from."""

from __future__ import annotations

import itertools
import math

from omnigraph_core.plan.bounds import fit_bound
from omnigraph_core.plan.values import compare_values
from omnigraph_core.query.typed import TypedOp
from omnigraph_core.types import Scalar
from tests.support.cases import each
from tests.support.condition_strategies import FLOATS, INTEGERS, ORDERED, samples

NUMERIC = [scalar for scalar in Scalar if scalar.is_numeric]


@each("scalar", NUMERIC)
@each("op", ORDERED)
def test_the_same_for_every_number_of_the_type(op: TypedOp, scalar: Scalar) -> None:
    for stored, given in itertools.product(samples(scalar), (*INTEGERS, *FLOATS)):
        fitted = fit_bound(op, given, scalar)
        found = fitted if isinstance(fitted, bool) else compare_values(stored, *fitted)
        assert found == compare_values(stored, op, given), (stored, op, given, fitted)


@each("given", [1e39, -1e39, 3.4028235677973366e38, 2.0**127 * 1.9999999])
def test_beyond_f32(given: float) -> None:
    for op in (TypedOp.LT, TypedOp.GE):
        fitted = fit_bound(op, given, Scalar.F32)
        if not isinstance(fitted, bool):
            assert math.isfinite(fitted[1])
            fitted = compare_values(0.0, *fitted)
        assert fitted == compare_values(0.0, op, given)

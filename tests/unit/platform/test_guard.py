"""What the guard says of a load, case by case."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from omnigraph_assets.loads.guard import LoadFacts, Verdict, decide
from tests.support.cases import each

SOUND = LoadFacts("running", "main", "one", "one", "hash", "hash", is_staged=True)


@each(
    ("facts", "verdict", "reason"),
    [
        ({}, Verdict.READY, "nothing stands in the way"),
        ({"status": "published", "incarnation": None}, Verdict.READY, "published before"),
        ({"status": "failed"}, Verdict.REJECT, "failed"),
        ({"status": "aborted"}, Verdict.REJECT, "aborted"),
        ({"incarnation": None}, Verdict.REJECT, "is gone"),
        ({"incarnation": "two"}, Verdict.REJECT, "made anew"),
        ({"loaded_before": ("abc",)}, Verdict.REJECT, "loaded before: abc"),
        ({"schema": "other", "lock_owner": "x"}, Verdict.REJECT, "planned under the schema hash"),
        ({"is_staged": False}, Verdict.WAIT, "not staged yet"),
        ({"lock_owner": "ann"}, Verdict.WAIT, "ann is changing the schema"),
    ],
)
def test_decision(facts: dict[str, Any], verdict: Verdict, reason: str) -> None:
    decision = decide(replace(SOUND, **facts))
    assert decision.verdict is verdict
    assert reason in decision.reason

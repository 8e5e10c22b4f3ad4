"""Plans of reads from documents; importing this loads no storage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.client.decode.reading import every, maybe
from omnigraph_core.plan.estimate import IndexFact
from omnigraph_core.plan.report import IndexUse, PlanReport, StepReport, Work

if TYPE_CHECKING:
    from omnigraph_core.client.decode.reading import Document


def decode_plan(document: Document) -> PlanReport:
    return PlanReport(
        query=document["query"],
        steps=every(_decode_step, document["steps"]),
        result=every(_decode_step, document["result"]),
        total=Work(0, document["rows"], document["seconds"]) if "seconds" in document else None,
    )


def _decode_step(document: Document) -> StepReport:
    return StepReport(
        kind=document["kind"],
        text=document["text"],
        estimated_rows=document["estimated_rows"],
        notes=tuple(document["notes"]),
        pushed=tuple(document.get("pushed", ())),
        indexes=every(_decode_index, document.get("indexes", ())),
        inner=every(_decode_step, document.get("inner", ())),
        work=maybe(_decode_work, document.get("work")),
    )


def _decode_index(document: Document) -> IndexUse:
    fact = IndexFact(document["kind"], document["covered_rows"])
    return IndexUse(document["column"], fact, document["rows"])


def _decode_work(document: Document) -> Work:
    return Work(
        document["rows_in"], document["rows_out"], document["seconds"], document["portions"]
    )

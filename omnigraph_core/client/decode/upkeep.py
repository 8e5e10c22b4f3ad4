"""Reports of maintenance from documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.client.decode.reading import every, maybe
from omnigraph_core.engine.cleanup import BranchCleanup, CleanupReport, TableCleanup
from omnigraph_core.engine.indexing import IndexReport, IndexState
from omnigraph_core.engine.optimize import OptimizeReason, TableOptimizeStats
from omnigraph_core.engine.verifying.model import Checked, Finding, Severity, VerifyReport
from omnigraph_core.job_report import SparkResults

if TYPE_CHECKING:
    from omnigraph_core.client.decode.reading import Document


def decode_indexes(document: Document) -> tuple[IndexReport, ...]:
    return every(_decode_index, document["indexes"])


def decode_built(document: Document) -> SparkResults[IndexReport]:
    return SparkResults(decode_indexes(document), spark=document.get("spark"))


def _decode_index(document: Document) -> IndexReport:
    return IndexReport(
        table_key=document["table_key"],
        name=document["name"],
        column=document["column"],
        kind=document["kind"],
        state=IndexState(document["state"]),
        rows=document["rows"],
        covered_rows=document["covered_rows"],
        segments=document["segments"],
        is_inherited=document["is_inherited"],
        is_built=document["is_built"],
    )


def decode_optimized(document: Document) -> SparkResults[TableOptimizeStats]:
    return SparkResults(map(_decode_stats, document["tables"]), spark=document.get("spark"))


def _decode_stats(document: Document) -> TableOptimizeStats:
    return TableOptimizeStats(
        table_key=document["table_key"],
        fragments_removed=document["fragments_removed"],
        fragments_added=document["fragments_added"],
        indexes_built=tuple(document["indexes_built"]),
        committed=document["committed"],
        reason=maybe(OptimizeReason, document["reason"]),
    )


def decode_cleanup(document: Document) -> CleanupReport:
    return CleanupReport(
        is_preview=document["is_preview"],
        branches=every(_decode_branch, document["branches"]),
        tables=every(_decode_table, document["tables"]),
        derived_files_removed=document["derived_files_removed"],
        derived_bytes_removed=document["derived_bytes_removed"],
        spark=document.get("spark"),
    )


def _decode_branch(document: Document) -> BranchCleanup:
    return BranchCleanup(
        document["branch"], document["old_versions_removed"], document["versions_kept"]
    )


def _decode_table(document: Document) -> TableCleanup:
    return TableCleanup(
        table_key=document["table_key"],
        location=document["location"],
        old_versions_removed=document["old_versions_removed"],
        files_removed=document["files_removed"],
        bytes_removed=document["bytes_removed"],
    )


def decode_verified(document: Document) -> VerifyReport:
    return VerifyReport(
        branch=document["branch"],
        is_deep=document["is_deep"],
        checked=Checked(**document["checked"]),
        findings=every(_decode_finding, document["findings"]),
    )


def _decode_finding(document: Document) -> Finding:
    return Finding(
        severity=Severity(document["severity"]),
        code=document["code"],
        place=document["place"],
        message=document["message"],
        hint=document["hint"],
    )

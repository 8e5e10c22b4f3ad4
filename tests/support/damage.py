"""What a check of a graph has found, without what tests of the kernel leave out on purpose."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.engine.verifying.model import Severity

if TYPE_CHECKING:
    from omnigraph_core.engine.omnigraph import Omnigraph


def damages(og: Omnigraph, branch: str | None = None, *, is_deep: bool = True) -> list[str]:
    """The codes of errors in files, catalogs, logs and tables.

    Tables of kernel tests hold edges without ends, put there behind the back of every rule: what
    rows say is left out.
    """
    found = og.verify(branch, is_deep=is_deep).findings
    errors = [item.code for item in found if item.severity is Severity.ERROR]
    return [str(code) for code in errors if not code.startswith("rows.")]

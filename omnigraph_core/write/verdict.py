"""Whether a load goes on: every problem that was found comes in, a refusal goes out, or nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.violations import Violations
from omnigraph_core.write.refuse import refuse
from omnigraph_core.write.rejects import write_rejects

if TYPE_CHECKING:
    from collections.abc import Sequence

    from omnigraph_core.write.batches import Places
    from omnigraph_core.write.load_model import LoadOptions
    from omnigraph_core.write.sources import Source


def settle(
    options: LoadOptions,
    sources: Sequence[Source],
    places: Places,
    in_rows: Violations,
    in_sets: Violations,
    *,
    is_beyond_mending: bool,
) -> None:
    """Write the reject file, and refuse the load unless bad records may be left out.

    Args:
        in_rows: problems of single records and of files.
        in_sets: problems of rows together.
        is_beyond_mending: leaving records out does not help.

    Raises:
        DataError: the load is refused; carries all problems.
    """
    problems = Violations.together(in_rows, in_sets)
    if options.rejects is not None:
        write_rejects(options.rejects, sources, places, problems)
    is_mended = not is_beyond_mending and not _is_about_files(in_rows)
    if not (options.is_skipping_bad and is_mended):
        refuse(problems)


def _is_about_files(problems: Violations) -> bool:
    """Whether something is wrong that is in no record, as with a cut-off file."""
    return any(violation.line is None for violation in problems.listed)

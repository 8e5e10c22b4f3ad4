"""Pandas, hidden from a process that does not need it."""

from __future__ import annotations

import sys
from pathlib import Path

from omnigraph_core.startup import hide_pandas, reveal_pandas


def test_hidden_pandas_is_found_until_it_is_revealed() -> None:
    before = list(sys.meta_path)
    hide_pandas()
    try:
        (finder,) = [found for found in sys.meta_path if found not in before]
        assert finder.find_spec("pandas", None) is not None
        assert finder.find_spec("numpy", None) is None
        reveal_pandas()
        (finder,) = [found for found in sys.meta_path if found not in before]
        assert Path(finder.find_spec("pandas", None).origin).is_file()
        assert finder.find_spec("numpy", None) is None
    finally:
        sys.meta_path[:] = before

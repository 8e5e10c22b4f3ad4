"""What commands do not load."""

from __future__ import annotations

import subprocess
import sys

_LOADED = """
import sys
from omnigraph_core.startup import hide_pandas, reveal_pandas
{hide}
import pyarrow.dataset
print("pandas.core" in sys.modules)
reveal_pandas()
import pandas
print("pandas.core" in sys.modules)
"""


def _loaded(hide: str) -> list[str]:
    program = _LOADED.format(hide=hide)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stderr == ""
    return done.stdout.split()


def test_pandas_is_found_by_those_who_need_it_alone() -> None:
    assert _loaded("hide_pandas()") == ["False", "True"]
    assert _loaded("import pandas; hide_pandas()") == ["True", "True"]

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


_USED = """
import sys
from importlib.util import find_spec
from omnigraph_core.startup import without_pandas
{hide}
    import pyarrow as pa
    pa.array([1.0])
assert find_spec("pandas") is not None
pa.array([1.0])
print("pandas" in sys.modules)
import pandas as pd
print(pa.array(pd.Series([1, None])).null_count)
print(pa.array(pd.Series(["a", float("nan")], dtype=object)).null_count)
print(pa.array(pd.Series(pd.Categorical(["a"]))).type)
print(pd.__spec__.loader.get_resource_reader("pandas").is_resource("__init__.py"))
"""


def _used(hide: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", _USED.format(hide=hide)], capture_output=True, text=True
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_arrow_knows_pandas_when_it_is_loaded_after_all() -> None:
    hidden = _used("with without_pandas():")
    assert (hidden[0], hidden[1:]) == ("False", _used("if True:")[1:])

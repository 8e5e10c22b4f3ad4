"""Pandas, hidden from a process that does not need it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph_core import startup

if TYPE_CHECKING:
    import pytest


def test_hidden_pandas_is_found_until_it_is_revealed(monkeypatch: pytest.MonkeyPatch) -> None:
    # Definitions of the platform that were imported before have hidden it and revealed it again.
    others = [found for found in sys.meta_path if type(found).__module__ != startup.__name__]
    monkeypatch.setattr(sys, "meta_path", [*others])
    startup.hide_pandas()
    (finder,) = [found for found in sys.meta_path if found not in others]
    assert finder.find_spec("pandas", None) is not None
    assert finder.find_spec("numpy", None) is None
    startup.reveal_pandas()
    (finder,) = [found for found in sys.meta_path if found not in others]
    assert Path(finder.find_spec("pandas", None).origin).is_file()
    assert finder.find_spec("numpy", None) is None

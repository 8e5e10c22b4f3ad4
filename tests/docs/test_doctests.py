"""Every example with a prompt in the docstrings of the packages is run.

Only files that hold a prompt are imported. `pytest --doctest-modules FILE` runs one file alone.
"""

from __future__ import annotations

import doctest
import importlib
from typing import TYPE_CHECKING

from tests.docs.snippets import ROOT
from tests.support.cases import check_all

if TYPE_CHECKING:
    from pathlib import Path

PACKAGES = ("omnigraph_core", "omnigraph_assets")


def test_examples_of_docstrings() -> None:
    check_all(_files_with_examples(), _run_examples, lambda path: str(path.relative_to(ROOT)))


def _files_with_examples() -> list[Path]:
    paths = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    return [path for path in paths if ">>> " in path.read_text()]


def _run_examples(path: Path) -> None:
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    module = importlib.import_module(name.removesuffix(".__init__"))
    runner, report = doctest.DocTestRunner(verbose=False), list[str]()
    for test in doctest.DocTestFinder(exclude_empty=True).find(module):
        runner.run(test, out=report.append)
    assert runner.summarize(verbose=False).attempted, "a prompt outside of a docstring"
    assert not report, "".join(report)

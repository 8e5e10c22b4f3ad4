from __future__ import annotations

import subprocess
import sys

import pytest
import typer

from omnigraph_core.cli.target import graph_address


def test_the_address_is_given_once() -> None:
    assert graph_address("a", None) == graph_address(None, "a") == "a"
    with pytest.raises(typer.BadParameter, match="not both"):
        graph_address("a", "a")
    for nothing in (None, ""):
        with pytest.raises(typer.BadParameter, match="URI must be provided"):
            graph_address(nothing, None)


def test_commands_without_a_graph_do_without_its_storage() -> None:
    code = (
        "import sys, omnigraph_core.cli.main; print({'lance', 'obstore', 'yaml'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"

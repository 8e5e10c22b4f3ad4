"""What the command line loads, and what it does without."""

from __future__ import annotations

import subprocess
import sys


def test_commands_without_a_graph_do_without_its_storage() -> None:
    code = (
        "import sys, omnigraph_core.cli.app; "
        "print({'lance', 'obstore', 'yaml', 'httpx2', 'rich', 'cedarpy'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"

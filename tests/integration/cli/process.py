"""The command as a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

OMNIGRAPH = Path(sys.executable).parent / "omnigraph"
ENVIRONMENT = {"COLUMNS": "100", "LC_ALL": "C.UTF-8", "OMNIGRAPH_EMBEDDINGS_MOCK": "1"}


def omnigraph(
    *arguments: object, folder: Path, stdin: bytes = b"", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end in a folder."""
    done = subprocess.run(
        [OMNIGRAPH, *map(str, arguments)],
        cwd=folder,
        env=ENVIRONMENT | environment,
        input=stdin,
        capture_output=True,
        check=False,
    )
    output, errors = done.stdout.decode(), done.stderr.decode()
    assert "Traceback" not in errors, errors
    return subprocess.CompletedProcess(done.args, done.returncode, output, errors)

"""The command as a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support import warm

OMNIGRAPH = Path(sys.executable).parent / "omnigraph"
ENVIRONMENT = {"COLUMNS": "100", "LC_ALL": "C.UTF-8", "OMNIGRAPH_EMBEDDINGS_MOCK": "1"}


def omnigraph(
    *arguments: object, folder: Path, stdin: bytes = b"", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end in a folder, in a process that has loaded it before."""
    done = warm.run(
        "omnigraph_core.cli.main:main",
        [str(OMNIGRAPH), *map(str, arguments)],
        folder=folder,
        environment=ENVIRONMENT | environment,
        stdin=stdin,
    )
    return _read(done)


def installed_omnigraph(
    *arguments: object, folder: Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the command that is installed, as a shell does."""
    done = subprocess.run(
        [OMNIGRAPH, *map(str, arguments)],
        cwd=folder,
        env=ENVIRONMENT | environment,
        capture_output=True,
        check=False,
    )
    return _read(done)


def _read(done: subprocess.CompletedProcess[bytes]) -> subprocess.CompletedProcess[str]:
    output, errors = done.stdout.decode(), done.stderr.decode()
    assert "Traceback" not in errors, errors
    return subprocess.CompletedProcess(done.args, done.returncode, output, errors)

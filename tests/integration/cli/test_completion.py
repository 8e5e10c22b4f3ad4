"""`omnigraph completion`: scripts that a shell can really use."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.integration.cli.process import ENVIRONMENT, OMNIGRAPH, omnigraph

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.cli.conftest import Call

ASKED = """
eval "$script"
COMP_WORDS=(omnigraph comm) COMP_CWORD=1
_omnigraph_completion omnigraph
echo "${COMPREPLY[@]}"
COMP_WORDS=(omnigraph branch merge --del) COMP_CWORD=3
_omnigraph_completion omnigraph
echo "${COMPREPLY[@]}"
"""


def test_bash_completes_commands_and_options(tmp_path: Path) -> None:
    """A shell asks the installed command, which it starts by its name."""
    path = {"PATH": f"{OMNIGRAPH.parent}:/usr/bin:/bin"}
    script = omnigraph("completion", "bash", folder=tmp_path).stdout
    done = subprocess.run(
        ["bash", "-c", ASKED],
        cwd=tmp_path,
        env=ENVIRONMENT | path | {"script": script},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("commit\n--delete-branch\n", "")


@pytest.mark.parametrize(
    ("shell", "text"),
    [
        ("bash", "complete -o default -F _omnigraph_completion omnigraph"),
        ("zsh", "#compdef omnigraph"),
        ("fish", "complete --command omnigraph"),
    ],
)
def test_every_shell_has_a_script(call: Call, shell: str, text: str) -> None:
    code, script, errors = call("completion", shell)
    assert (code, errors) == (0, "")
    assert text in script
    assert "_OMNIGRAPH_COMPLETE" in script


def test_other_shells(call: Call) -> None:
    code, output, errors = call("completion", "tcsh")
    assert (code, output) == (2, "")
    assert "'bash', 'zsh', 'fish'" in errors

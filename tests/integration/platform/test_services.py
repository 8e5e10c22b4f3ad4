"""Processes of the local platform end for certain."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from omnigraph_assets.local import services
from omnigraph_assets.local.files import Command, write_files
from omnigraph_assets.local.places import ROOT, Places, read_places
from omnigraph_assets.local.services import (
    Restarts,
    holder,
    left_behind,
    start_service,
    stop_left_behind,
    stop_services,
)
from omnigraph_assets.local.up import CannotStart, _Start, down
from tests.support.live_platform import until
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

STUBBORN = "trap '' TERM; sleep 600 & echo here; wait; wait"


@pytest.fixture
def places(tmp_path: Path) -> Places:
    made = read_places({"PLATFORM_DIR": str(tmp_path)})
    write_files(made)
    return made


@pytest.mark.parametrize("is_stubborn", [False, True])
def test_what_a_service_has_started_ends_with_it(
    places: Places, monkeypatch: pytest.MonkeyPatch, *, is_stubborn: bool
) -> None:
    monkeypatch.setattr(services, "_TERM_SECONDS", 0.3 if is_stubborn else 60)
    script = STUBBORN if is_stubborn else "sleep 600 & echo here; wait"
    service = start_service("it", ("bash", "-c", script), places, {"PATH": "/usr/bin:/bin"})
    until(lambda: "here" in service.tail, "the script to begin")
    assert left_behind(places).keys() == {"it"}
    stop_services([service])
    assert service.is_gone()
    assert service.code == (-signal.SIGKILL if is_stubborn else -signal.SIGTERM)
    assert left_behind(places) == {}


def test_what_a_killed_start_has_left_is_stopped_by_down(places: Places) -> None:
    start = (
        "import sys; from omnigraph_assets.local.services import start_service\n"
        "from omnigraph_assets.local.places import read_places\n"
        f"places = read_places({{'PLATFORM_DIR': {str(places.directory)!r}}})\n"
        "start_service('orphan', ('sleep', '600'), places, {'PATH': '/usr/bin:/bin'})\n"
    )
    subprocess.run([sys.executable, "-c", start], cwd=ROOT, check=True)
    assert left_behind(places).keys() == {"orphan"}
    assert down(places)
    assert left_behind(places) == {}
    assert not down(places)
    assert stop_left_behind(places) == []


@pytest.fixture
def start(places: Places) -> Iterator[_Start]:
    """A start, before its first service."""
    made = _Start(places, {"PATH": "/usr/bin:/bin"})
    yield made
    made._stop_all()


def begin(start: _Start, name: str, script: str) -> None:
    """Start a service that is a script."""
    start._commands[name] = Command(("bash", "-c", script))
    start._begin(name)


def test_a_fork_server_is_started_again_and_its_runs_go_on(places: Places, start: _Start) -> None:
    begin(start, "fork-server", "sleep 600 & echo run $!; wait")
    first = start._services["fork-server"]
    run = wait_until(lambda: re.search(r"run (\d+)", first.tail), "a run")
    assert run is not None
    leader = holder(places.processes / "fork-server")
    assert leader is not None
    os.kill(leader, signal.SIGKILL)

    def is_started_again() -> bool:
        start._pause()
        return start._services["fork-server"] is not first

    until(is_started_again, "another fork server")
    os.kill(int(run[1]), 0)
    assert left_behind(places).keys() == {"fork-server", "fork-server-2"}
    start._stop_all()
    assert first.is_gone()
    assert left_behind(places) == {}


def test_the_platform_goes_on_without_a_fork_server_and_without_no_other_service(
    start: _Start, capsys: pytest.CaptureFixture[str]
) -> None:
    begin(start, "fork-server", "echo broken; exit 3")
    start._restarts["fork-server"] = Restarts(most=1)

    def is_given_up() -> bool:
        start._pause()
        return not start._services

    until(is_given_up, "the last restart")
    told = capsys.readouterr().out
    assert "fork-server ended with 3: restart 1 of 1" in told
    assert "runs start without it" in told
    begin(start, "server", "exit 4")
    with pytest.raises(CannotStart, match="server ended with 4"):
        until(start._pause, "the end of a service")

"""Processes of the local platform end for certain."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from omnigraph_assets.local import services
from omnigraph_assets.local.files import write_files
from omnigraph_assets.local.places import ROOT, Places, read_places
from omnigraph_assets.local.services import (
    left_behind,
    start_service,
    stop_left_behind,
    stop_services,
)
from omnigraph_assets.local.up import down
from tests.support.live_platform import until

if TYPE_CHECKING:
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

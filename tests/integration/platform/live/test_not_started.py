"""Starts of a platform that come to nothing. They need none, so they come before it is started."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

from tests.support.live_platform import environment_of, free_ports, run_local

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_taken_ports_are_told_before_anything_starts(tmp_path: Path) -> None:
    ports = free_ports()
    with (
        socket.create_server(("127.0.0.1", 0)) as one,
        socket.create_server(("127.0.0.1", 0)) as two,
    ):
        ports |= {"DAGSTER_PORT": one.getsockname()[1], "SERVER_PORT": two.getsockname()[1]}
        done = run_local("up", environment_of(tmp_path, ports))
    assert done.returncode == 1
    assert f"error: port {ports['DAGSTER_PORT']} is taken\n" in done.stderr
    assert f"port {ports['SERVER_PORT']} is taken\n" in done.stderr
    assert str(ports["CODE_PORT"]) not in done.stderr
    assert "make up DAGSTER_PORT=" in done.stderr
    assert not (tmp_path / "graph").exists()


def test_a_service_that_dies_is_told_with_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environ, "OMNIGRAPH_LOG", "shout")  # the server refuses it
    done = run_local("up", environment_of(tmp_path, free_ports()))
    assert done.returncode == 1
    assert "error: server ended with" in done.stderr
    assert "OMNIGRAPH_LOG" in done.stderr
    assert "stopped; the data stays" in done.stdout

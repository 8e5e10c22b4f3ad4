"""The fork server and its client, as far as no process is needed: where they meet, and what they
make of requests that go wrong."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from omnigraph_assets.run_launcher.client import (
    ForkFailed,
    ForkServerClient,
    ensure_directory,
    server_command,
    socket_path,
)

LONG = "d" * 120


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files go."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_socket_lies_with_its_instance_if_its_path_is_short() -> None:
    path = socket_path("/home/it", "/usr/bin/python")
    assert path.parent == Path("/home/it")
    assert path == socket_path(Path("/home/it"), "/usr/bin/python")
    assert path != socket_path("/home/it", "/usr/bin/python4")
    assert str(path) in server_command("/home/it", "/usr/bin/python", ())
    ensure_directory(path)
    assert not path.parent.exists(), "the instance makes its directory"


def test_a_socket_of_a_long_path_lies_in_a_private_directory(temporary: Path) -> None:
    path = socket_path(f"/home/{LONG}", "/usr/bin/python")
    assert path.parent.parent == temporary
    assert path.parent != socket_path(f"/home/{LONG}/other", "/usr/bin/python").parent
    assert str(path) in server_command(f"/home/{LONG}", "/usr/bin/python", ())
    for _ in range(2):
        ensure_directory(path)
        assert path.parent.stat().st_mode & 0o777 == 0o700


def test_a_directory_that_others_may_enter_is_not_used(temporary: Path) -> None:
    path = socket_path(f"/home/{LONG}", "/usr/bin/python")
    path.parent.mkdir()
    path.parent.chmod(0o755)
    with pytest.raises(PermissionError, match="others"):
        ensure_directory(path)


def test_a_path_that_is_too_long_all_the_same_is_not_used(temporary: Path) -> None:
    with pytest.raises(ForkFailed, match="longer than the 107 bytes of a socket"):
        ForkServerClient(temporary / LONG / "runs.sock", ("false",)).fork("request")

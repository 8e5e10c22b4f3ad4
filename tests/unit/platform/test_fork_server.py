"""The fork server and its client, as far as no process is needed: where they meet, and what they
make of requests that go wrong."""

from __future__ import annotations

import errno
import json
import os
import socket
import sys
import tempfile
from argparse import Namespace
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from omnigraph_assets.local.places import ROOT
from omnigraph_assets.run_launcher import client
from omnigraph_assets.run_launcher.client import (
    ANSWER_SECONDS,
    GO,
    ForkFailed,
    ForkServerClient,
    ensure_directory,
    server_command,
    socket_path,
)
from tests.support.later import Later

if TYPE_CHECKING:
    from collections.abc import Iterator

    import dagster as dg
    from dagster import _serdes as serdes
    from dagster._core import code_pointer
    from dagster._core import origin as origins
    from dagster._grpc import types as grpc_types

    from omnigraph_assets.run_launcher import fork_server, forked_process
else:
    dg, forked_process = Later("dagster"), Later("omnigraph_assets.run_launcher.forked_process")
    code_pointer, serdes = Later("dagster._core.code_pointer"), Later("dagster._serdes")
    origins, grpc_types = Later("dagster._core.origin"), Later("dagster._grpc.types")
    fork_server = Later("omnigraph_assets.run_launcher.fork_server")

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


def test_modules_that_are_missing_or_being_edited_are_not_preloaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "half_saved.py").write_text("VALUE = (\n")
    (tmp_path / "importing_it.py").write_text("import half_saved\n")
    broken = fork_server._preload(["json", "importing_it", "not_there"])
    assert broken == [str(tmp_path / "half_saved.py")]
    assert "importing_it" not in sys.modules
    told = capsys.readouterr().err
    assert "importing_it is not preloaded: '(' was never closed" in told
    assert "not_there is not preloaded: No module named 'not_there'" in told


def test_edited_files_are_noticed(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text("VALUE = 1\n")
    seen = fork_server._module_files([str(file)])
    assert seen == fork_server._module_files(seen)
    file.write_text("VALUE = 100\n")
    assert seen != fork_server._module_files(seen)
    file.unlink()
    assert fork_server._module_files(seen) == {str(file): None}
    assert str(Path(fork_server.__file__)) in fork_server._module_files()


def test_a_process_waits_for_its_start_as_long_as_its_caller_lives() -> None:
    module = code_pointer.ModuleCodePointer("none", "none", None)
    repository = origins.RepositoryPythonOrigin(sys.executable, module, None, None, None)
    job = origins.JobPythonOrigin("none", repository)
    request = serdes.serialize_value(grpc_types.ExecuteRunArgs(job, "none", None))
    for said, is_to_begin in ((GO, True), (b"", False)):
        caller, connection = socket.socketpair()
        connection.settimeout(60)  # as for the request
        with caller, ThreadPoolExecutor() as pool:
            begun = pool.submit(fork_server._may_begin, request, connection)
            assert json.loads(caller.makefile().readline()) == {"pid": os.getpid()}
            assert connection.gettimeout() is None
            caller.sendall(said)
            caller.shutdown(socket.SHUT_WR)
            assert begun.result() is is_to_begin
        assert connection.fileno() == -1


def test_a_server_that_hangs_is_passed_over_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as hanging:
        hanging.bind("runs.sock")
        hanging.listen()
        asked = ForkServerClient(Path("runs.sock"), ("false",), 0.1)
        with pytest.raises(ForkFailed, match=r"within 0\.1 s"):
            asked.fork("request")
        hanging.accept()[0].close()
        with pytest.raises(ForkFailed, match="did not answer within the last 5 min"):
            asked.fork("request")
        hanging.setblocking(False)
        with pytest.raises(BlockingIOError):
            hanging.accept()
        monkeypatch.setattr(client, "_PASSED_OVER_SECONDS", 0.0)
        with pytest.raises(ForkFailed, match=r"within 0\.1 s"):
            asked.fork("request")
        hanging.accept()[0].close()


def test_a_server_that_never_listens_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = ForkServerClient(Path("runs.sock"), ("bash", "-c", "read"), 0.1)
    with pytest.raises(ForkFailed, match=r"within 0\.1 s"):
        asked.fork("request")
    asked.close()
    asked = ForkServerClient(Path("runs.sock"), ("bash", "-c", "exit 3"), 60)
    with pytest.raises(ForkFailed, match="ended with 3"):
        asked.fork("request")
    asked.close()


def test_a_run_may_start_otherwise_before_dagster_gives_it_up() -> None:
    settings = yaml.safe_load((ROOT / "dagster.yaml").read_text())
    assert settings["run_monitoring"]["start_timeout_seconds"] >= 2 * ANSWER_SECONDS


@pytest.fixture
def listener(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    monkeypatch.chdir(tmp_path)
    with fork_server._listen(Path("runs.sock")) as made:
        yield made


@pytest.fixture
def server(listener: socket.socket) -> fork_server.ForkServer:
    options = Namespace(socket="runs.sock", until_stdin_ends=False, preload=[], runs=None)
    return fork_server.ForkServer(listener, -1, options)


def forking(monkeypatch: pytest.MonkeyPatch, pid: int | None) -> None:
    """Have forks of this process end so, or fail; it has threads, and tests to go on with."""

    def fork() -> int:
        if pid is None:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        return pid

    monkeypatch.setattr(os, "fork", fork)
    monkeypatch.setattr("threading.active_count", lambda: 1)


def test_only_its_user_may_connect_to_a_fork_server(listener: socket.socket) -> None:
    assert Path("runs.sock").stat().st_mode & 0o777 == 0o600


def test_a_request_that_is_cut_off_is_passed_over(server: fork_server.ForkServer) -> None:
    for said in (b"", b'"cut', b"\xff\n"):
        with socket.socket(socket.AF_UNIX) as caller:
            caller.connect("runs.sock")
            caller.sendall(said)
            caller.shutdown(socket.SHUT_WR)
            assert server._accept() is None
            assert caller.recv(1) == b""


def test_a_caller_without_a_process_is_not_answered(
    server: fork_server.ForkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    forking(monkeypatch, None)
    with socket.socket(socket.AF_UNIX) as caller:
        caller.connect("runs.sock")
        caller.sendall(b'"request"\n')
        assert server._accept() is None
        assert caller.recv(1) == b""
        assert server._runs == {}


def test_runs_that_died_are_reported_once_there_is_a_process_for_it(
    server: fork_server.ForkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = [(11, 9), (12, 0), (13, 9)]
    monkeypatch.setattr(os, "waitpid", lambda *_: ended.pop(0) if ended else (0, 0))
    server._runs = {11: "killed", 12: "done", 14: "going on"}  # 13 has reported a run
    forking(monkeypatch, None)
    assert server._reap() is None
    assert server._runs == {14: "going on"}
    assert server._dead == [("killed", 11, -9)]
    forking(monkeypatch, 21)
    assert server._reap() is None
    assert server._dead == []
    server._dead = [("killed", 11, -9)]
    forking(monkeypatch, 0)
    assert server._reap() is not None


def test_a_run_is_carried_out_by_the_process_that_its_own_tag_names() -> None:
    run = dg.DagsterRun(job_name="load")
    assert forked_process.forked_pid(run) is None
    tags = {forked_process.PROCESS_TAG: forked_process.process_tag(run, 7)}
    tagged = run.with_tags(tags)
    assert forked_process.forked_pid(tagged) == 7
    repeated = dg.DagsterRun(job_name="load", tags=tags)
    assert forked_process.forked_pid(repeated) is None
    moved = {forked_process.PROCESS_TAG: tags[forked_process.PROCESS_TAG].replace("host", "was")}
    assert forked_process.forked_pid(run.with_tags(moved)) is None
    none = {forked_process.PROCESS_TAG: forked_process.NO_PROCESS}
    assert forked_process.forked_pid(run.with_tags(none)) is None

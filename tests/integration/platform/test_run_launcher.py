"""Runs that are forked from a warm process: how they end, who notices, and what happens without
that process."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_assets.run_launcher import client
from tests.support.later import Later
from tests.support.launched_runs import LAUNCHER, LOCATION, LaunchedRuns
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    import dagster as dg
    from dagster import _serdes as serdes
    from dagster._core import code_pointer
    from dagster._core import origin as origins
    from dagster._core.workspace import load_target
    from dagster._grpc import types as grpc_types

    from omnigraph_assets import orphaned_runs
else:
    dg, load_target = Later("dagster"), Later("dagster._core.workspace.load_target")
    code_pointer, serdes = Later("dagster._core.code_pointer"), Later("dagster._serdes")
    origins, grpc_types = Later("dagster._core.origin"), Later("dagster._grpc.types")
    orphaned_runs = Later("omnigraph_assets.orphaned_runs")

ROOT = Path(__file__).parent.parent.parent.parent
EDITED = "edited_module"
PATIENCE = 300.0
"""Seconds for a fork server on a busy machine: another way to start a run would fail its test."""


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory of modules that the processes find."""
    directory = tmp_path_factory.mktemp("modules")
    (directory / f"{EDITED}.py").write_text("VALUE = 'old'\n")
    (directory / "broken_module.py").write_text("raise ValueError('broken')\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{ROOT}{os.pathsep}{directory}")
        yield directory


@pytest.fixture(scope="module")
def runs(modules: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LaunchedRuns]:
    """An instance that forks runs, and a code server."""
    preload = ["omnigraph_assets.definitions", "pyspark.sql.connect.session", EDITED]
    launcher = {**LAUNCHER, "config": {"preload": preload, "fork_seconds": PATIENCE}}
    target = load_target.ModuleTarget("tests.support.launched_jobs", None, str(ROOT), LOCATION)
    directory = str(tmp_path_factory.mktemp("home"))
    with (
        dg.instance_for_test({"run_launcher": launcher}, temp_dir=directory) as instance,
        LaunchedRuns(instance, target) as launched,
    ):
        yield launched


@pytest.fixture
def fork_server(tmp_path: Path) -> Iterator[client.ForkServerClient]:
    """A fork server without a platform; its directory is one that no socket can lie in."""
    where = (tmp_path / ("d" * 100), sys.executable)
    Path(where[0]).mkdir()
    asked = client.ForkServerClient(
        client.socket_path(*where), client.server_command(*where, preload=()), PATIENCE
    )
    yield asked
    asked.close()


def request_of(directory: str | None = None) -> str:
    """A request for a run that does not exist; it is never told to go."""
    module = code_pointer.ModuleCodePointer("none", "none", directory)
    repository = origins.RepositoryPythonOrigin(sys.executable, module, None, None, None)
    job = origins.JobPythonOrigin("none", repository)
    arguments = grpc_types.ExecuteRunArgs(job, "none", None, set_exit_code_on_failure=True)
    return str(serdes.serialize_value(arguments))


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_gone(pid: int) -> bool:
    return not orphaned_runs.is_alive(pid, 1e12)


def seen_from(runs: LaunchedRuns, run_id: str) -> Any:
    """What a sensor of the code location of a run is told."""
    origin = runs.run(run_id).remote_job_origin
    assert origin is not None
    here = origin.repository_origin.code_location_origin
    return SimpleNamespace(instance=runs.instance, instance_ref=None, code_location_origin=here)


def test_runs_end_as_their_steps_do(runs: LaunchedRuns, tmp_path: Path) -> None:
    config = {"root": str(tmp_path), "socket": runs.code_server}
    engine = {"ops": {"use_engine": {"config": config}}}
    good = [runs.launch("succeeding"), *(runs.launch("engine", engine) for _ in range(3))]
    bad = runs.launch("failing")
    assert [runs.end(run_id) for run_id in good] == ["SUCCESS"] * 4
    assert runs.end(bad) == "FAILURE"
    assert "as it should" in str(
        [entry.dagster_event for entry in runs.instance.all_logs(bad) if entry.step_key]
    )
    for run_id in [*good, bad]:
        assert f"Started process for run (pid: {runs.pid(run_id)})" in runs.said(run_id)
        assert "could not be forked" not in runs.said(run_id)
    assert not runs.instance.run_launcher.terminate(good[0])


def test_a_killed_run_is_reported_and_a_terminated_one_canceled(runs: LaunchedRuns) -> None:
    killed, canceled = runs.launch("waiting"), runs.launch("waiting")
    for run_id in (killed, canceled):
        runs.wait_for_step(run_id)
    launcher = runs.instance.run_launcher
    assert launcher.check_run_worker_health(runs.run(killed)).status.value == "RUNNING"
    os.kill(runs.pid(killed), signal.SIGKILL)
    assert runs.end(killed) == "FAILURE"
    assert "terminated by signal 9" in runs.said(killed)
    assert launcher.terminate(canceled)
    assert runs.end(canceled) == "CANCELED"


def test_runs_go_on_without_the_fork_server_and_others_start(runs: LaunchedRuns) -> None:
    first = runs.launch("waiting")
    runs.wait_for_step(first)
    process = runs.pid(first)
    os.kill(parent_of(process), signal.SIGKILL)
    second = runs.launch("succeeding")
    assert runs.end(second) == "SUCCESS"
    assert runs.pid(second) != process
    assert runs.status(first) == "STARTED"
    os.kill(process, signal.SIGKILL)
    wait_until(lambda: is_gone(process), "the end of the process")
    # Nobody was there to report it: Dagster's run monitoring asks, and so does the publish guard.
    health = runs.instance.run_launcher.check_run_worker_health(runs.run(first))
    assert health.status.value == "FAILED"
    assert orphaned_runs.end_dead_runs(seen_from(runs, first)) == [], "others may report it"
    assert runs.status(first) == "STARTED"
    assert orphaned_runs.end_dead_runs(seen_from(runs, first), grace_seconds=0.0) == [first]
    assert runs.status(first) == "FAILURE"


def test_a_process_that_ends_before_its_start_is_no_failure_of_the_run(
    runs: LaunchedRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = runs.launch("waiting")
    runs.wait_for_step(kept)
    server = parent_of(runs.pid(kept))
    others, tag, ended = set(children_of(server)), runs.instance.add_run_tags, []

    def tag_and_kill(run_id: str, tags: dict[str, str]) -> None:
        tag(run_id, tags)
        if not ended:
            ended.append(runs.pid(run_id))
            os.kill(server, signal.SIGSTOP)  # it reports when it goes on
            os.kill(ended[0], signal.SIGKILL)
            wait_until(lambda: is_gone(ended[0]), "the end of the process")

    try:
        with monkeypatch.context() as patch:
            patch.setattr(runs.instance, "add_run_tags", tag_and_kill)
            run_id = runs.launch("waiting")
    finally:
        os.kill(server, signal.SIGCONT)
    assert "could not be forked, the code server starts it" in runs.said(run_id)
    assert runs.end(runs.launch("succeeding")) == "SUCCESS", "it has asked how the process ended"
    wait_until(lambda: set(children_of(server)) <= others, "its report")
    launcher = runs.instance.run_launcher
    runs.wait_for_step(run_id)
    assert launcher.check_run_worker_health(runs.run(run_id)).status.value == "RUNNING"
    assert launcher.terminate(run_id)
    assert runs.end(run_id) == "CANCELED"
    assert launcher.terminate(kept)
    assert runs.end(kept) == "CANCELED"


def test_a_module_that_was_edited_is_imported_again(runs: LaunchedRuns, modules: Path) -> None:
    def reading(text: str) -> object:
        return {"ops": {"read_module": {"config": text}}}

    kept = runs.launch("waiting")
    server = parent_of(runs.pid(kept))
    assert runs.end(runs.launch("module", reading("old"))) == "SUCCESS"
    (modules / f"{EDITED}.py").write_text("VALUE = 'edited'\n")
    assert runs.end(runs.launch("module", reading("edited"))) == "SUCCESS"
    assert parent_of(runs.pid(kept)) == server
    os.kill(runs.pid(kept), signal.SIGKILL)  # still noticed by the server that has begun anew
    assert runs.end(kept) == "FAILURE"


def test_the_code_server_starts_what_cannot_be_forked(
    runs: LaunchedRuns, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    launcher = {**LAUNCHER, "config": {"preload": ["broken_module"]}}
    target = load_target.GrpcServerTarget("localhost", None, runs.code_server, LOCATION)
    with (
        dg.instance_for_test({"run_launcher": launcher}, temp_dir=str(tmp_path)) as instance,
        LaunchedRuns(instance, target) as others,
    ):
        run_id = others.launch("waiting")
        others.wait_for_step(run_id)
        assert "could not be forked, the code server starts it" in others.said(run_id)
        health = instance.run_launcher.check_run_worker_health(others.run(run_id))
        assert health.status.value == "RUNNING"
        assert orphaned_runs.end_dead_runs(seen_from(others, run_id)) == []
        assert instance.run_launcher.terminate(run_id)
        assert others.end(run_id) == "CANCELED"
    assert "ValueError: broken" in capfd.readouterr().err


def test_a_fork_server_of_a_deep_directory_answers(fork_server: client.ForkServerClient) -> None:
    with fork_server.fork(request_of()) as process:
        assert not is_gone(process.pid)
    wait_until(lambda: is_gone(process.pid), "a process that was given up")


def test_a_service_waits_until_a_server_that_the_daemon_started_has_ended(
    fork_server: client.ForkServerClient,
) -> None:
    with fork_server.fork(request_of()):
        pass
    with subprocess.Popen(fork_server.command, stdin=subprocess.DEVNULL) as service:

        def is_waiting() -> bool:
            locks = Path("/proc/locks").read_text()
            return re.search(rf"-> FLOCK .* {service.pid} ", locks) is not None

        wait_until(lambda: is_waiting() or service.poll() is not None, "a server that waits")
        assert service.poll() is None
        fork_server.close()
        wait_until(lambda: not is_waiting() and fork_server.path.exists(), "the other server")
        with fork_server.fork(request_of()) as process:
            assert parent_of(process.pid) == service.pid
        service.terminate()


def test_what_goes_wrong_before_a_run_begins_is_the_callers_to_know(
    fork_server: client.ForkServerClient,
) -> None:
    with pytest.raises(client.ForkFailed, match=r"cannot begin: .*/not/there"):
        fork_server.fork(request_of("/not/there"))

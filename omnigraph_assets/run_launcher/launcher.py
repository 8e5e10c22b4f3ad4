"""The run launcher of the platform: `run_launcher` in `dagster.yaml` names it.

A run of a code location on this machine is forked from a warm process. All other runs, and those
for which no process could be forked, start as Dagster starts them: by the code server.
"""

import contextlib
import os
import signal
import threading
from collections.abc import Mapping
from typing import Any, Final, Self

import dagster as dg
from dagster._config.config_schema import UserConfigSchema
from dagster._core.launcher import DefaultRunLauncher, LaunchRunContext
from dagster._core.launcher.base import CheckRunHealthResult, WorkerStatus
from dagster._core.origin import JobPythonOrigin
from dagster._core.remote_representation.code_location import GrpcServerCodeLocation
from dagster._grpc.types import ExecuteRunArgs
from dagster._serdes import ConfigurableClassData, serialize_value

from omnigraph_assets.orphaned_runs import is_alive
from omnigraph_assets.run_launcher.client import (
    ANSWER_SECONDS,
    PRELOAD,
    ForkFailed,
    ForkServerClient,
    server_command,
    socket_path,
)
from omnigraph_assets.run_launcher.forked_process import (
    NO_PROCESS,
    PROCESS_TAG,
    forked_pid,
    forked_process,
    process_tag,
)

_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


class ForkingRunLauncher(DefaultRunLauncher):
    """Forks runs from a warm process.

    Args:
        preload: modules that the fork server imports.
        fork_seconds: how long it may take to start and to fork a run; then the code server starts
            the run. Dagster's `start_timeout_seconds` has to be longer.
    """

    def __init__(
        self,
        inst_data: ConfigurableClassData | None = None,
        preload: tuple[str, ...] = PRELOAD,
        fork_seconds: float = ANSWER_SECONDS,
    ) -> None:
        super().__init__(inst_data)
        self._preload = preload
        self._fork_seconds = fork_seconds
        self._lock = threading.Lock()
        self._clients: dict[str, ForkServerClient] = {}

    @classmethod
    def config_type(cls) -> UserConfigSchema:
        return {
            "preload": dg.Field([str], is_required=False, default_value=list(PRELOAD)),
            "fork_seconds": dg.Field(float, is_required=False, default_value=ANSWER_SECONDS),
        }

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData, config_value: Mapping[str, Any]
    ) -> Self:
        return cls(inst_data, tuple(config_value["preload"]), config_value["fork_seconds"])

    def launch_run(self, context: LaunchRunContext) -> None:
        run = context.dagster_run
        origin = _local_origin(context)
        if origin is not None:
            try:
                self._fork(run, origin)
            except ForkFailed as problem:
                self._instance.report_engine_event(
                    f"The run could not be forked, the code server starts it: {problem}",
                    run,
                    cls=type(self),
                )
            else:
                self._run_ids.add(run.run_id)
                return
        super().launch_run(context)

    def _fork(self, run: dg.DagsterRun, origin: JobPythonOrigin) -> None:
        arguments = ExecuteRunArgs(
            job_origin=origin,
            run_id=run.run_id,
            instance_ref=self._instance.get_ref(),
            set_exit_code_on_failure=True,
        )
        with self._client(origin.executable_path).fork(serialize_value(arguments)) as process:
            # Storage reads a run to tag it and writes it back: the process must not have begun to
            # report, or the status that it reports could be lost.
            self._instance.add_run_tags(run.run_id, {PROCESS_TAG: process_tag(run, process.pid)})
            try:
                process.go()
            except ForkFailed:
                # The tag would have its code server's process ended and watched by a dead number.
                self._instance.add_run_tags(run.run_id, {PROCESS_TAG: NO_PROCESS})
                raise

    def _client(self, executable: str) -> ForkServerClient:
        with self._lock:
            if executable not in self._clients:
                directory = self._instance.root_directory
                command = server_command(directory, executable, self._preload)
                path = socket_path(directory, executable)
                self._clients[executable] = ForkServerClient(path, command, self._fork_seconds)
            return self._clients[executable]

    def terminate(self, run_id: str) -> bool:
        run = self._instance.get_run_by_id(run_id)
        pid = None if run is None else forked_pid(run)
        if run is None or pid is None:
            return bool(super().terminate(run_id))  # type: ignore[no-untyped-call]
        if run.is_finished:
            return False
        self._instance.report_run_canceling(run)
        if not _is_running(run):
            self._instance.report_engine_event(f"Process {pid} is gone.", run, cls=type(self))
            return False
        with contextlib.suppress(ProcessLookupError):  # it has ended since, and has reported that
            os.kill(pid, signal.SIGINT)
        return True

    @property
    def supports_check_run_worker_health(self) -> bool:
        return True

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        pid = forked_pid(run)
        if pid is None:
            return CheckRunHealthResult(WorkerStatus.RUNNING, "its code server watches it")
        if _is_running(run):
            return CheckRunHealthResult(WorkerStatus.RUNNING)
        return CheckRunHealthResult(WorkerStatus.FAILED, f"process {pid} is gone")

    def dispose(self) -> None:
        with self._lock:
            for client in self._clients.values():
                client.close()
        super().dispose()


def _local_origin(context: LaunchRunContext) -> JobPythonOrigin | None:
    """What a process of this machine can load the job of a run from; None if none can."""
    run = context.dagster_run
    origin, remote = run.job_code_origin, run.remote_job_origin
    if context.workspace is None or origin is None or remote is None:
        return None
    name = remote.repository_origin.code_location_origin.location_name
    location = context.workspace.get_code_location(name)
    if not isinstance(location, GrpcServerCodeLocation):
        return None
    is_local = location.client.socket is not None or location.client.host in _LOOPBACK
    return origin if is_local and origin.repository_origin.container_image is None else None


def _is_running(run: dg.DagsterRun) -> bool:
    process = forked_process(run)
    return process is not None and is_alive(process["pid"], process["since"])

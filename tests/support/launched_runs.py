"""Runs launched as the daemon launches them: by the run launcher of an instance, over a real code
server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from tests.support.later import Later
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    import dagster as dg
    from dagster._core.workspace import context as workspaces
    from dagster._core.workspace import load_target
else:
    dg, load_target = Later("dagster"), Later("dagster._core.workspace.load_target")
    workspaces = Later("dagster._core.workspace.context")

LAUNCHER: Final = {
    "module": "omnigraph_assets.run_launcher.launcher",
    "class": "ForkingRunLauncher",
}
LOCATION: Final = "launched"
_BETWEEN_LOOKS: Final = 0.1
"""Seconds: each look reads the event log."""


class LaunchedRuns:
    """An instance with a code server. Enter it to have both."""

    def __init__(self, instance: dg.DagsterInstance, target: load_target.WorkspaceLoadTarget):
        self.instance = instance
        self._workspace = workspaces.WorkspaceProcessContext(instance, target)

    def __enter__(self) -> LaunchedRuns:
        self._workspace.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end_runs()
        self._workspace.__exit__(kind, error, trace)

    def _end_runs(self) -> None:
        """End what a failed test has left: instance and code server wait for their runs."""
        begun = [dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED]
        for run in self.instance.get_runs(dg.RunsFilter(statuses=begun)):
            if self.instance.run_launcher.terminate(run.run_id):
                self.end(run.run_id)
            else:
                self.instance.report_run_failed(run)

    @property
    def code_server(self) -> str:
        """The socket of the code server."""
        location = self._workspace.create_request_context().get_code_location(LOCATION)
        socket = location.client.socket  # type: ignore[attr-defined]
        assert isinstance(socket, str)
        return socket

    def create(self, job: str, config: Any = None, tags: Mapping[str, str] | None = None) -> str:
        """Create a run, as a sensor's request does; its id."""
        context = self._workspace.create_request_context()
        location = context.get_code_location(LOCATION)
        repository = next(iter(location.get_repositories().values()))
        remote: Any = repository.get_full_job(job)
        plan = location.get_execution_plan(remote, config or {}, None, None, self.instance)
        run = self.instance.create_run(
            job_name=job,
            run_id=None,
            run_config=config or {},
            status=dg.DagsterRunStatus.NOT_STARTED,
            tags=tags,
            root_run_id=None,
            parent_run_id=None,
            step_keys_to_execute=None,
            execution_plan_snapshot=plan.execution_plan_snapshot,
            job_snapshot=remote.job_snapshot,
            parent_job_snapshot=remote.parent_job_snapshot,
            asset_selection=None,
            asset_check_selection=None,
            resolved_op_selection=None,
            op_selection=None,
            remote_job_origin=remote.get_remote_origin(),
            job_code_origin=remote.get_python_origin(),
            asset_graph=repository.asset_graph,
        )
        return run.run_id

    def start(self, run_id: str) -> None:
        """Launch a run that was created."""
        self.instance.launch_run(run_id, self._workspace.create_request_context())

    def launch(self, job: str, config: Any = None) -> str:
        run_id = self.create(job, config)
        self.start(run_id)
        return run_id

    def run(self, run_id: str) -> dg.DagsterRun:
        found = self.instance.get_run_by_id(run_id)
        assert found is not None
        return found

    def status(self, run_id: str) -> str:
        return str(self.run(run_id).status.value)

    def end(self, run_id: str) -> str:
        """The status of a run once it is over."""
        wait_until(
            lambda: self.run(run_id).is_finished,
            "the end of a run",
            interval=_BETWEEN_LOOKS,
            tell=lambda: self.said(run_id),
        )
        return self.status(run_id)

    def said(self, run_id: str) -> str:
        """All messages of a run."""
        return "\n".join(entry.message for entry in self.instance.all_logs(run_id))

    def wait_for_step(self, run_id: str) -> None:
        """Wait until the first step of a run has begun."""
        wait_until(
            lambda: self.instance.all_logs(run_id, of_type=dg.DagsterEventType.STEP_START),
            "the first step of a run",
            interval=_BETWEEN_LOOKS,
            tell=lambda: self.said(run_id),
        )

    def pid(self, run_id: str) -> int:
        """The process of a forked run."""
        process = json.loads(self.run(run_id).tags[".dagster/forked_process"])
        assert process["run_id"] == run_id
        return int(process["pid"])

"""`omnigraph job …`: what a server does beside the requests that asked for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, cast

import typer

from omnigraph_core.cli.confirm import YesOption, confirm
from omnigraph_core.cli.options import JsonOption
from omnigraph_core.cli.output import key_values, moment, print_json, print_lines, with_actor
from omnigraph_core.cli.target import GivenGraph, on_graph
from omnigraph_core.errors import ConfigError

if TYPE_CHECKING:
    from omnigraph_core.client.jobs import Job, Jobs

app = typer.Typer(help="Look at the jobs of a server, and stop them.", no_args_is_help=True)

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="The job.", show_default=False)]


@app.command("list")
@on_graph
def list_jobs(graph: GivenGraph, as_json: JsonOption = False) -> None:
    """List the jobs of the last day, newest first."""
    server = _server_of(graph, "job list")
    with graph.busy("reading jobs"):
        jobs = server.list_jobs()
    if as_json:
        print_json({"jobs": [job.to_json() for job in jobs]})
    else:
        print_lines(map(_line, jobs))


@app.command()
@on_graph
def show(graph: GivenGraph, job_id: IdArgument, as_json: JsonOption = False) -> None:
    """Show one job."""
    server = _server_of(graph, "job show")
    with graph.busy("looking for the job"):
        job = server.get_job(job_id)
    _print(job, as_json=as_json)


@app.command()
@on_graph
def cancel(
    graph: GivenGraph,
    job_id: IdArgument,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Stop a job; it may still be running for a moment."""
    server = _server_of(graph, "job cancel")
    confirm(f"stop job {job_id}?", is_agreed=yes)
    with graph.busy(f"stopping {job_id}"):
        job = server.cancel_job(job_id)
    _print(job, as_json=as_json)


def _server_of(graph: GivenGraph, command: str) -> Jobs:
    """
    Raises:
        ConfigError: the graph is not behind a server.
    """
    if not graph.chosen().is_remote:
        raise ConfigError(
            f"`{command}` is only supported against a server: it is the server that has jobs",
            hint="give its URL; runs of a graph are listed by `run list`",
        )
    return cast("Jobs", graph.open())


def _print(job: Job, *, as_json: bool) -> None:
    if as_json:
        print_json(job.to_json())
        return
    members: dict[str, object] = {
        "job_id": job.job_id,
        "operation": job.operation,
        "status": job.status,
        "branch": job.branch,
        "actor_id": job.actor_id,
        "progress": _counts(job) or None,
        "error": job.error,
        "created_at": moment(job.created_at),
        "updated_at": moment(job.updated_at),
    }
    print_lines(key_values(members))


def _line(job: Job) -> str:
    branch = "" if job.branch is None else f" branch={job.branch}"
    line = with_actor(f"{job.job_id} {job.status} {job.operation}{branch}", job.actor_id)
    counts = _counts(job)
    return f"{line} {counts}" if counts else line


def _counts(job: Job) -> str:
    return " ".join(f"{step}={rows}" for step, rows in job.progress.items())

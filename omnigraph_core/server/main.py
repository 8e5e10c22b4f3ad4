"""`omnigraph-server`: the command, and the life of the server process from start to stop.

Everything that can be wrong with options, configuration, tokens, the default graph and the address
is told before the first request, with one message and a status that is not 0.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn

import typer
import uvicorn
from uvicorn.supervisors import Multiprocess

from omnigraph_core import settings as environment
from omnigraph_core.config.find import nearest
from omnigraph_core.errors import ConfigError, OmnigraphError
from omnigraph_core.server import settings
from omnigraph_core.server.logs import configure_logging
from omnigraph_core.server.options import CONTAINER_BIND, Address, LogFormat, ServerOptions
from omnigraph_core.server.serving import prepare
from omnigraph_core.server.workers import worker_app

if TYPE_CHECKING:
    from omnigraph_core.server.serving import Serving

_LOG: Final = logging.getLogger("omnigraph.server")
_USAGE: Final = 64
"""The status of a process that was told nothing to serve."""
_KEEP_ALIVE: Final = 75
"""Seconds a connection stays open without a request: longer than the clients keep theirs."""
_BACKLOG: Final = 2_048
_WORKER_SILENCE: Final = 60
"""Seconds after which a worker that says nothing is replaced; it may be busy with one thing."""

cli = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


def main() -> NoReturn:
    try:
        cli(prog_name="omnigraph-server")
    except OmnigraphError as problem:
        typer.echo(f"error: {problem}", err=True)
        sys.exit(1)
    sys.exit(0)


@cli.command()
def serve(
    uri: Annotated[
        str | None,
        typer.Argument(
            metavar="URI",
            help="The graph: a path, file:///path or s3://bucket/prefix.",
            show_default=False,
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option("--target", metavar="NAME", help="The graph by its name in omnigraph.yaml."),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="Use this file, in place of the nearest omnigraph.yaml.",
        ),
    ] = None,
    bind: Annotated[
        str | None,
        typer.Option(
            "--bind", metavar="HOST:PORT", help="Where to listen.  [default: 127.0.0.1:8080]"
        ),
    ] = None,
    workers: Annotated[
        int, typer.Option("--workers", metavar="N", min=1, help="Processes that answer.")
    ] = 1,
    unauthenticated: Annotated[
        bool,
        typer.Option(
            "--unauthenticated",
            help="Allow other machines to reach a server that has no bearer tokens.",
        ),
    ] = False,
    list_graphs: Annotated[
        bool,
        typer.Option(
            "--list-graphs", help="Without a policy: tell everybody which graphs there are."
        ),
    ] = False,
    log_format: Annotated[
        LogFormat, typer.Option("--log-format", help="How the log is written.")
    ] = "text",
) -> None:
    """Serve graphs over HTTP."""
    if uri is not None and target is not None:
        raise typer.BadParameter("URI and --target exclude each other: give one graph")
    given = ServerOptions(
        uri=uri,
        target=target,
        config=config,
        bind=bind,
        workers=workers,
        is_open_allowed=unauthenticated,
        lists_graphs=list_graphs,
        log_format=log_format,
    )
    run(given if sys.argv[1:] else _from_environment())


def _from_environment() -> ServerOptions:
    """Without arguments, as in a container, the environment says what to serve."""
    uri, file = settings.TARGET_URI.read(), settings.CONFIG_FILE.read()
    bind = settings.BIND.read()
    if uri is None and file is None:
        if nearest(Path.cwd()) is None:
            typer.echo(
                "error: nothing to serve: give a graph, or set OMNIGRAPH_TARGET_URI or "
                "OMNIGRAPH_CONFIG",
                err=True,
            )
            raise typer.Exit(_USAGE)
        return ServerOptions(bind=bind, is_open_allowed=settings.UNAUTHENTICATED.read())
    return ServerOptions(
        uri=uri,
        target=None if uri is not None else settings.TARGET.read(),
        config=None if file is None else Path(file),
        bind=bind or CONTAINER_BIND,
        is_open_allowed=settings.UNAUTHENTICATED.read(),
    )


def run(options: ServerOptions) -> None:
    """Serve until told to stop.

    Raises:
        OmnigraphError: the server cannot start.
    """
    configure_logging(options.log_format)
    serving = prepare(options)
    for warning in serving.config.warnings:
        _LOG.warning("%s", warning)
    with _listening(serving.address) as listener:
        serving.graphs.open_default()
        if options.workers > 1:
            _run_workers(options, listener)
        else:
            _run_here(serving, listener)


def _listening(address: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((address.host, address.port))
        # At once: an address that is bound and not listened on can be taken by another server that
        # starts, too, and only one of the two would ever be heard.
        listener.listen(_BACKLOG)
        listener.set_inheritable(True)
    except OSError as problem:
        listener.close()
        raise ConfigError(
            f"cannot listen on {address}: {problem.strerror}",
            hint="stop what listens there, or choose another place with --bind",
        ) from problem
    return listener


def _run_here(serving: Serving, listener: socket.socket) -> None:
    from omnigraph_core.server.app import app_of  # slow: the web framework
    from omnigraph_core.server.threads import stop_threads

    # The server tells itself the signal once more when it has stopped; by then it means nothing.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _pass)
    server = uvicorn.Server(uvicorn.Config(app_of(serving), **_settings()))
    _tell(listener)
    server.run(sockets=[listener])
    if not stop_threads():
        _LOG.warning("stopped while writes were under way; they may have landed or not")
        logging.shutdown()
        os._exit(0)  # a thread would keep the process


def _run_workers(options: ServerOptions, listener: socket.socket) -> None:
    with tempfile.TemporaryDirectory(prefix="omnigraph-metrics-") as directory:
        environment.adopt({settings.MULTIPROCESS_DIRECTORY: directory})
        config = uvicorn.Config(
            partial(worker_app, options),
            factory=True,
            workers=options.workers,
            timeout_worker_healthcheck=_WORKER_SILENCE,
            **_settings(),
        )
        _tell(listener)
        _Workers(config, sockets=[listener]).run()


class _Workers(Multiprocess):
    """Notices at once that a worker dies while the supervisor waits for its sign of life."""

    def keep_subprocess_alive(self) -> None:
        for process in self.processes:
            # With this end open here too, the pipe would stay open without the worker, and the
            # supervisor would wait as long as for a busy one.
            process.child_conn.close()
        super().keep_subprocess_alive()


def _tell(listener: socket.socket) -> None:
    host, port = listener.getsockname()[:2]
    _LOG.info("listening on http://%s", Address(host, port))


def _pass(_number: int, _frame: object) -> None: ...


def _settings() -> dict[str, Any]:
    return {
        "log_config": None,
        "access_log": False,
        "server_header": False,
        "lifespan": "on",
        "ws": "none",
        "http": "omnigraph_core.server.protocol:Protocol",
        "backlog": _BACKLOG,
        "timeout_keep_alive": _KEEP_ALIVE,
        "timeout_graceful_shutdown": max(1, round(settings.SHUTDOWN_TIMEOUT.read())),
    }

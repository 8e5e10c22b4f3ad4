"""Start all services, bring the example through them, and run until Ctrl-C or `make down`."""

import fcntl
import os
import re
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final

from omnigraph_assets.local import dagster_state
from omnigraph_assets.local.example import (
    drop_example,
    dropped,
    make_graph,
    refusal,
    run_demo_queries,
    table_of,
)
from omnigraph_assets.local.files import (
    commands_of,
    describe_embeddings,
    environment_of,
    write_files,
)
from omnigraph_assets.local.places import EXAMPLE, Places, check_ports
from omnigraph_assets.local.services import (
    Restarts,
    Service,
    holder,
    start_service,
    stop_left_behind,
    stop_services,
)
from omnigraph_assets.local.web import NoAnswer, ask, is_listening

_BETWEEN_LOOKS: Final = 0.5
_REMINDER: Final = 15.0
_STOP_SECONDS: Final = 90.0
_FORK_SERVER: Final = "fork-server"


class CannotStart(Exception):
    """Something is in the way; the message says what."""


class StopAsked(Exception):
    """Ctrl-C, or `make down`."""


def up(places: Places, given: Mapping[str, str]) -> int:
    """Run the platform until it is stopped; the exit code.

    Raises:
        CannotStart: it did not come up, or a service died. Everything is stopped again.
        ConfigError: a port is taken.
    """
    if not EXAMPLE.is_dir():
        raise CannotStart(f"there is no example at {EXAMPLE}: run it from a clone of the project")
    with held(places):
        check_ports(places)
        return _Start(places, environment_of(places, given)).run()


@contextmanager
def held(places: Places) -> Iterator[None]:
    """Keep others from starting, or deleting, the same platform.

    Raises:
        CannotStart: it is running.
    """
    places.directory.mkdir(parents=True, exist_ok=True)
    with places.lock.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CannotStart(f"{places.directory} is in use: `make down` stops it") from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        if left := stop_left_behind(places):
            say(f"stopped what an earlier start had left behind: {', '.join(left)}")
        yield


def say(text: str) -> None:
    """Tell whoever has started it."""
    with suppress(OSError):  # nobody listens any more: that must not keep anything running
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()


class _Start:
    """One start of the platform, from nothing to the end."""

    def __init__(self, places: Places, environment: Mapping[str, str]) -> None:
        self._places = places
        self._environment = environment
        self._commands = commands_of(places)
        self._services: dict[str, Service] = {}
        self._spark_was_up = False
        self._restarts = {name: Restarts() for name in ("spark", _FORK_SERVER)}
        self._due: dict[str, float] = {}
        """When services that have ended are started again."""
        self._former: list[Service] = []
        """Fork servers that have ended; their runs may go on."""
        self._stop = threading.Event()
        self._began = time.monotonic()
        self._failed: set[str] = set()

    def run(self) -> int:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda *_: self._stop.set())
        is_ready = False
        try:
            self._come_up()
            is_ready = True
            while True:
                self._pause()
        except StopAsked:
            return 0 if is_ready else 130
        finally:
            say("stopping ...")
            self._stop_all()
            say(f"stopped; the data stays in {self._places.directory}")

    def _come_up(self) -> None:
        places = self._places
        say(f"starting the platform in {places.directory}")
        say(f"vectors are made {describe_embeddings(self._environment)}")
        say(f"loads run {_describe_engine(places)}")
        write_files(places)
        self._tell("the graph is made" if make_graph(places) else "the graph is there")
        if places.has_spark:
            self._begin("spark")
        self._begin("code-server", "server")
        self._wait_for(lambda: self._closed_port("CODE_PORT", "the definitions to load"))
        self._begin(_FORK_SERVER, "webserver", "daemon")
        self._wait_for(self._server_missing)
        if places.has_spark:
            self._wait_for(lambda: self._closed_port("SPARK_PORT", "the Spark Connect server"))
            self._spark_was_up = True
        self._wait_for(lambda: dagster_state.not_ready(places))
        self._tell("all processes are up, all sensors run")
        if not places.done.exists():
            self._bring_example()
        self._ask()
        self._tell("ready")
        say(_next_steps(places))

    def _bring_example(self) -> None:
        places = self._places
        is_new = drop_example(places)
        name = dropped(places)
        self._tell(f"dropped the example into {name}" if is_new else "the example was dropped")
        self._wait_for(self._load_missing)
        places.done.touch()
        self._tell("the load is published and enriched")

    def _ask(self) -> None:
        try:
            for answer in run_demo_queries(self._places):
                say(f"\n{table_of(answer)}")
        except NoAnswer as problem:
            # Who has changed the graph since may have taken away what is asked for.
            say(f"\nthe example's questions have no answer any more: {problem}")
        say("")

    def _begin(self, *names: str, is_restart: bool = False) -> None:
        for name in names:
            command = self._commands[name]
            variables = {**self._environment, **command.variables}
            self._services[name] = start_service(
                name, command.words, self._places, variables, is_restart=is_restart
            )

    def _closed_port(self, name: str, what: str) -> str | None:
        return None if is_listening(self._places.ports[name]) else what

    def _server_missing(self) -> str | None:
        try:
            ask(f"{self._places.server_url}/readyz")
        except NoAnswer:
            return "the HTTP server"
        return None

    def _load_missing(self) -> str | None:
        """What is missing until the example is published and all derived from it is made."""
        if reason := refusal(self._places):
            raise CannotStart(f"the example was refused: {reason}")
        try:
            runs = dagster_state.runs(self._places)
            self._tell_failed(runs)
            if doing := dagster_state.describe_live_runs(runs):
                return f"Dagster: {doing}"
            if not dagster_state.has_loaded(runs):
                return "the sensor to see the file"
            missing = len(dagster_state.not_derived(self._places))
        except NoAnswer:
            return "Dagster's webserver to answer"
        return f"automation to make {missing} embeddings and indexes" if missing else None

    def _tell_failed(self, runs: list[dagster_state.Run]) -> None:
        for run in runs:
            if run.status == "FAILURE" and run.run_id not in self._failed:
                self._failed.add(run.run_id)
                self._tell(f"a run failed: {self._places.dagster_url}/runs/{run.run_id}")

    def _wait_for(self, missing: Callable[[], str | None]) -> None:
        """Look until nothing is missing. Report what is; changes of numbers alone now and then."""
        said, since = "", time.monotonic()
        while (what := missing()) is not None:
            kind = re.sub(r"\d+", "", what)
            if kind != said or time.monotonic() - since > _REMINDER:
                self._tell(f"waiting for {what}")
                said, since = kind, time.monotonic()
            if time.monotonic() - self._began > self._places.seconds:
                raise CannotStart(
                    f"still waiting for {what} after {self._places.seconds:.0f} s: look into "
                    f"{self._places.logs}, or give it more with PLATFORM_SECONDS"
                )
            self._pause()

    def _pause(self) -> None:
        """Wait a moment, then check the services; Spark and the fork server are started again.

        Raises:
            StopAsked: somebody wants it to end.
            CannotStart: a service has ended.
        """
        if self._stop.wait(_BETWEEN_LOOKS):
            raise StopAsked
        for service in list(self._services.values()):
            if service.code is None:
                continue
            if service.name == _FORK_SERVER:
                self._restart_fork_server(service)
            elif service.name == "spark" and self._spark_was_up:
                self._restart_spark(service)
            else:
                raise CannotStart(_describe_end(service))

    def _restart_spark(self, ended: Service) -> None:
        """Start the Spark server again after a delay. Runs wait for it and go on.

        Raises:
            CannotStart: it has ended too often.
        """
        if self._is_due(ended):
            stop_services([ended])  # what the ended process has started may hold the port
            self._begin("spark", is_restart=True)

    def _restart_fork_server(self, ended: Service) -> None:
        """Start the fork server again after a delay, unless it has ended too often.

        Its runs go on meanwhile, and no run needs it: others start more slowly.
        """
        try:
            if not self._is_due(ended):
                return
        except CannotStart as problem:
            self._tell(f"{problem}; runs start without it")
            del self._services[_FORK_SERVER]
        else:
            self._begin(_FORK_SERVER, is_restart=True)
        self._former.append(ended)

    def _is_due(self, ended: Service) -> bool:
        """Whether a service is to be started again now; each restart waits longer.

        Raises:
            CannotStart: it has ended too often.
        """
        name, now, restarts = ended.name, time.monotonic(), self._restarts[ended.name]
        if name not in self._due:
            delay = restarts.next_delay(now)
            if delay is None:
                often = f"{restarts.most} restarts in {restarts.seconds / 60:.0f} min"
                raise CannotStart(f"{_describe_end(ended)}\nit ended again after {often}")
            self._due[name] = now + delay
            self._tell(
                f"{name} ended with {ended.code}: restart {restarts.count} of {restarts.most} in "
                f"{delay:.0f} s; its log is {ended.log}"
            )
        if now < self._due[name]:
            return False
        del self._due[name]
        return True

    def _stop_all(self) -> None:
        """Services that start runs go first, then those with the runs, then Spark."""
        having_runs = (_FORK_SERVER, "code-server")
        services = [*self._services.values(), *self._former]
        for names in (self._services.keys() - {*having_runs, "spark"}, having_runs, ("spark",)):
            stop_services(one for one in services if one.name in names)

    def _tell(self, text: str) -> None:
        say(f"{time.monotonic() - self._began:5.0f} s  {text}")


def _describe_engine(places: Places) -> str:
    """
    >>> from pathlib import Path
    >>> _describe_engine(Places(Path("p"), {}, engine="local"))
    'in the processes of Dagster, without Spark'
    """
    if places.has_spark:
        return f"on Spark at {places.spark_url}, with a heap of {places.spark_memory}"
    if places.engine == "local":
        return "in the processes of Dagster, without Spark"
    return "on the Spark server of OMNIGRAPH_SPARK_REMOTE"


def _describe_end(service: Service) -> str:
    end = f"{service.name} ended with {service.code}"
    return f"{end}; the end of {service.log}:\n{service.tail}"


def _next_steps(places: Places) -> str:
    dagster, server = places.dagster_url, places.server_url
    command, queries = ".venv/bin/omnigraph", "--query examples/river/queries.gq"
    number = """'{"number": "IN-2030-1"}'"""
    spark = f"\n  Spark UI  {places.spark_ui_url}" if places.has_spark else ""
    return f"""
  Dagster   {dagster}
            lineage {dagster}/asset-groups, sensors {dagster}/automation
  server    {server}{spark}
  graph     {places.graph}
  drops     {dropped(places)}
  logs      {places.logs}

next
  drop records (`.jsonl`) into {dropped(places)}:
  they are checked, loaded, published and enriched
  {command} read {server} {queries} --name incident --params {number}
  {command} branch create spring {server}
  the branch is a partition of all assets soon after

Ctrl-C stops everything, as does `make down`. The next `make up` goes on with the data,
`make demo-reset` deletes it."""


def down(places: Places) -> bool:
    """Stop a platform that was started elsewhere; whether there was one.

    Raises:
        CannotStart: it does not stop.
    """
    running = holder(places.lock)
    if running is not None:
        os.kill(running, signal.SIGTERM)
        end = time.monotonic() + _STOP_SECONDS
        while holder(places.lock) == running:
            if time.monotonic() > end:
                raise CannotStart(f"process {running} has not stopped in {_STOP_SECONDS:.0f} s")
            time.sleep(0.1)
    return bool(stop_left_behind(places)) or running is not None


def reset(places: Places) -> None:
    """Delete all that was made; nothing else that may lie in the directory.

    Raises:
        CannotStart: it is running.
    """
    if not places.directory.is_dir():
        return
    with held(places):
        for path in places.owned:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
    if not any(places.directory.iterdir()):
        places.directory.rmdir()

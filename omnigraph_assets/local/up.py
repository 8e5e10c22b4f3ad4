"""Starts everything, brings the example through, and stays until it is told to stop."""

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
    ask_three,
    drop_example,
    dropped,
    make_graph,
    refusal,
    table_of,
)
from omnigraph_assets.local.files import (
    commands_of,
    environment_of,
    told_embeddings,
    write_files,
)
from omnigraph_assets.local.parts import (
    Part,
    holder,
    start_part,
    stop_left_behind,
    stop_parts,
)
from omnigraph_assets.local.places import EXAMPLE, Places, check_ports
from omnigraph_assets.local.web import NoAnswer, ask, is_listening

_BETWEEN_LOOKS: Final = 0.5
_REMINDER: Final = 15.0
_STOP_SECONDS: Final = 60.0


class CannotStart(Exception):
    """Something is in the way; the message says what."""


class StopAsked(Exception):
    """Ctrl-C, or `make down`."""


def up(places: Places, given: Mapping[str, str]) -> int:
    """Run the platform until it is stopped; the exit code.

    Raises:
        CannotStart: it did not come up, or a part of it died. Everything is stopped again.
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
        self._parts: list[Part] = []
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
        say(f"vectors are made {told_embeddings(self._environment)}")
        write_files(places)
        self._tell("the graph is made" if make_graph(places) else "the graph is there")
        commands = commands_of(places)
        self._begin("code-server", "server", commands=commands)
        self._wait_for(lambda: self._closed_port("CODE_PORT", "the definitions to load"))
        self._begin("webserver", "daemon", commands=commands)
        self._wait_for(self._server_missing)
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
            for answer in ask_three(self._places):
                say(f"\n{table_of(answer)}")
        except NoAnswer as problem:
            # Who has changed the graph since may have taken away what is asked for.
            say(f"\nthe example's questions have no answer any more: {problem}")
        say("")

    def _begin(self, *names: str, commands: Mapping[str, tuple[str, ...]]) -> None:
        for name in names:
            part = start_part(name, commands[name], self._places, self._environment)
            self._parts.append(part)

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
            if doing := dagster_state.told_live(runs):
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
        """Look until nothing is missing, telling what is; numbers alone are told now and then."""
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
        """A moment, after which everything is as it should be.

        Raises:
            StopAsked: somebody wants it to end.
            CannotStart: a process has ended by itself.
        """
        if self._stop.wait(_BETWEEN_LOOKS):
            raise StopAsked
        for part in self._parts:
            if part.code is not None:
                raise CannotStart(
                    f"{part.name} ended with {part.code}; the end of {part.log}:\n{part.tail}"
                )

    def _stop_all(self) -> None:
        """Whoever may start more goes first; the code server has the runs."""
        stop_parts(part for part in self._parts if part.name != "code-server")
        stop_parts(part for part in self._parts if part.name == "code-server")

    def _tell(self, text: str) -> None:
        say(f"{time.monotonic() - self._began:5.0f} s  {text}")


def _next_steps(places: Places) -> str:
    dagster, server = places.dagster_url, places.server_url
    command, queries = ".venv/bin/omnigraph", "--query examples/river/queries.gq"
    number = """'{"number": "IN-2030-1"}'"""
    return f"""
  Dagster   {dagster}
            lineage {dagster}/asset-groups, sensors {dagster}/automation
  server    {server}
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

"""A real Postgres server for tests, in a directory of its own that ends with the run.

Debian keeps the server apart from the PATH, and it refuses to run as root: then it runs as the user
that its package makes, or as nobody.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.support.ports import ATTEMPTS, free_port
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

USER: Final = "dagster"
PASSWORD: Final = "of the tests"
DATABASE: Final = "dagster_of_tests"
_DEBIAN: Final = Path("/usr/lib/postgresql")
_OWNERS: Final = ("postgres", "nobody")
_MORTAL: Final = ("setpriv", "--pdeathsig", "INT")
"""Linux asks the server to end when the tests are killed."""
_SECONDS: Final = 120


@contextlib.contextmanager
def postgres_server() -> Iterator[int]:
    """An empty database; yields the port of this machine where the server listens."""
    programs = _programs()
    directory = Path(tempfile.mkdtemp(prefix="postgres-"))
    try:
        given = _rights(directory)
        _make_cluster(programs, directory, given)
        with _serving(programs, directory, given) as port:
            yield port
    finally:
        shutil.rmtree(directory)


def _programs() -> Path:
    """Where the server is: those of the newest release, unless one is on the PATH."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).resolve().parent
    releases = [path.parent for path in _DEBIAN.glob("*/bin/initdb")]
    assert releases, "no Postgres server is installed: `make postgres` installs one"
    return max(releases, key=lambda path: int(path.parent.name))


def _rights(directory: Path) -> tuple[str | Path, ...]:
    """What comes before a command: it ends with the tests, and does not run as root."""
    if os.getuid() != 0:
        return _MORTAL
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    owner = next(known[name] for name in _OWNERS if name in known)
    os.chown(directory, owner.pw_uid, owner.pw_gid)
    # The directory of the run is for its owner alone; to pass through it is enough.
    directory.parent.chmod(directory.parent.stat().st_mode | 0o011)
    user, group = str(owner.pw_uid), str(owner.pw_gid)
    return (*_MORTAL, "--reuid", user, "--regid", group, "--clear-groups")


def _make_cluster(programs: Path, directory: Path, given: tuple[str | Path, ...]) -> None:
    secret = directory / "password"
    secret.write_text(PASSWORD)
    command = [*given, programs / "initdb", "--pgdata", "data", "--username", USER, "--no-sync"]
    command += ["--auth", "scram-sha-256", "--pwfile", secret.name, "--encoding", "UTF8"]
    command += ["--locale", "C"]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@contextlib.contextmanager
def _serving(programs: Path, directory: Path, given: tuple[str | Path, ...]) -> Iterator[int]:
    """Another process may take the port between the choice and the start: then choose again."""
    for attempt in range(1, ATTEMPTS + 1):
        port = free_port()
        log = directory / "postgres.log"
        with log.open("wb") as output:
            server = subprocess.Popen(
                [
                    *(*given, programs / "postgres", "-D", directory / "data", "-p", str(port)),
                    *("-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="),
                    *("-c", "fsync=off", "-c", "shared_buffers=32MB"),
                ],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        try:
            if _becomes_ready(programs, server, port):
                yield port
                return
        finally:
            server.send_signal(signal.SIGINT)  # it ends its sessions, and leaves no shared memory
            server.wait(_SECONDS)
        told = log.read_text(errors="replace")
        assert attempt < ATTEMPTS, told


def _becomes_ready(programs: Path, server: subprocess.Popen[bytes], port: int) -> bool:
    where = ("--host", "127.0.0.1", "--port", str(port), "--username", USER)
    variables = {**os.environ, "PGPASSWORD": PASSWORD}

    def is_decided() -> bool:
        if server.poll() is not None:
            return True
        asked = subprocess.run(
            [programs / "createdb", *where, DATABASE],
            capture_output=True,
            check=False,
            env=variables,
        )
        return asked.returncode == 0

    wait_until(is_decided, "Postgres", seconds=_SECONDS, interval=0.1)
    return server.poll() is None

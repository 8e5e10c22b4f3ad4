"""A real S3 server for tests: SeaweedFS, started on first use and shared by every process of a run.

Who uses the server holds a shared lock on a file. A watchdog process owns the server and takes the
lock for itself once the last user is gone, killed or not; then it ends the server. So the server
outlives no test run, and no process needs to know the others.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
import uuid
from datetime import timedelta
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

import certifi
import obstore
from obstore.store import S3Store

from tests.support.ports import ATTEMPTS, free_port
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

ROOT: Final = Path(__file__).parent.parent.parent
WEED: Final = Path(sys.executable).parent / "weed"
ACCESS_KEY: Final = "test-access-key"
SECRET_KEY: Final = "test-secret-key"
REGION: Final = "us-east-1"
START_SECONDS: Final = 120
GRPC_OFFSET: Final = 10_000
_ROLES: Final = ("s3", "master", "volume", "filer")
_PR_SET_PDEATHSIG: Final = 1
_END: Final = "-----END CERTIFICATE-----\n"


class S3Server:
    """The server of a directory: the first to enter starts it, the last to leave ends it.

    Leaving waits for the end of the server when it was started here, so that nothing is left
    behind; other users of the same directory are waited for.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._leaving = contextlib.ExitStack()
        self.port = 0
        self.bucket = ""

    def __enter__(self) -> S3Server:
        self._directory.mkdir(parents=True, exist_ok=True)
        state = self._directory / "server.json"
        with contextlib.ExitStack() as stack:
            watchdogs: list[subprocess.Popen[bytes]] = []
            stack.callback(lambda: [watchdog.wait() for watchdog in watchdogs])
            # Undone before the wait above: the watchdog waits for this lock.
            stack.enter_context(_open_lock(self._directory / "users.lock", fcntl.LOCK_SH))
            with _open_lock(self._directory / "start.lock", fcntl.LOCK_EX):
                _write_authority(self._authorities)
                if not state.exists():
                    watchdogs.append(_start_watchdog(self._directory))
            self.port = json.loads(state.read_text())["port"]
            self.bucket = self.new_bucket()
            self._leaving = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._leaving.close()

    @property
    def _authorities(self) -> Path:
        return self._directory / "authorities"

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def environment(self, *, endpoint: str | None = None) -> dict[str, str]:
        """What a client needs to reach the server, directly or through a proxy before it.

        Each store that is opened loads the certificates of all authorities, though the server
        speaks plain HTTP: four fifths of the CPU time of a new graph. One authority is enough.
        """
        return {
            "SSL_CERT_DIR": str(self._authorities),
            "SSL_CERT_FILE": str(self._authorities / "one.pem"),
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_REGION": REGION,
            "AWS_ENDPOINT_URL": endpoint or self.endpoint,
            "AWS_ALLOW_HTTP": "true",
        }

    def new_bucket(self) -> str:
        """An empty bucket. The first object in it is slow: prefixes of one bucket are cheaper."""
        name = f"bucket-{uuid.uuid4().hex[:12]}"
        _create_bucket(self.port, name)
        return name


def s3_store(bucket: str, endpoint: str, *, secret_key: str = SECRET_KEY) -> S3Store:
    """A client that asks once: a test wants to see the first failure, not the fifth answer."""
    return S3Store(
        bucket,
        endpoint=endpoint,
        access_key_id=ACCESS_KEY,
        secret_access_key=secret_key,
        region=REGION,
        client_options={"allow_http": True},
        retry_config={"max_retries": 0},
    )


def presigned_put(bucket: str, key: str, endpoint: str) -> str:
    """A URL that may be PUT without further signing; an empty key names the bucket itself."""
    return obstore.sign(s3_store(bucket, endpoint), "PUT", key, timedelta(minutes=5))


def _create_bucket(port: int, name: str) -> None:
    url = presigned_put(name, "", f"http://127.0.0.1:{port}")
    with urllib.request.urlopen(urllib.request.Request(url, method="PUT"), timeout=120):
        pass


def _write_authority(directory: Path) -> None:
    """The first certificate of those that clients trust; without any they would refuse to work."""
    if not directory.exists():
        directory.mkdir()
        first, end, _ = Path(certifi.where()).read_text("utf-8").partition(_END)
        (directory / "one.pem").write_text(f"{first}{end}", "utf-8")


def _open_lock(path: Path, mode: int) -> IO[str]:
    """The lock is held as long as the file is open, and ends with the process at the latest."""
    file = path.open("a")
    fcntl.flock(file, mode)
    return file


def _start_watchdog(directory: Path) -> subprocess.Popen[bytes]:
    with (directory / "watchdog.log").open("ab") as log:
        watchdog = subprocess.Popen(
            [sys.executable, "-m", "tests.support.s3", str(directory)],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # an interrupt from the keyboard is for the tests alone
        )

    def has_started() -> bool:
        if watchdog.poll() is not None:
            tails = [_tail(directory / name) for name in ("weed.log", "watchdog.log")]
            raise RuntimeError("\n".join(["the S3 server did not start", *tails]))
        return (directory / "server.json").exists()

    wait_until(has_started, "the S3 server", seconds=(ATTEMPTS + 1) * START_SECONDS)
    return watchdog


def _tail(path: Path) -> str:
    lines = path.read_text(errors="replace").splitlines() if path.exists() else []
    return "\n".join([f"--- {path}", *lines[-30:]])


def watch(directory: Path) -> None:
    """Run the server of a directory until nobody uses it; the body of the watchdog process."""
    state = directory / "server.json"
    with (
        (directory / "users.lock").open("a") as users,
        _serving(directory, users) as (weed, port),
    ):
        state.with_suffix(".new").write_text(json.dumps({"port": port}))
        state.with_suffix(".new").rename(state)
        while weed.poll() is None and not _is_unused(users):
            time.sleep(0.05)
        # Before the lock is let go of: who enters then finds no state and starts anew.
        state.unlink()


def _is_unused(users: IO[str]) -> bool:
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextlib.contextmanager
def _serving(directory: Path, users: IO[str]) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Another process may take a port between the choice and the start: then choose again."""
    for attempt in range(1, ATTEMPTS + 1):
        ports = _free_ports()
        weed = _start_weed(directory, ports)
        try:
            if _becomes_ready(weed, ports["s3"], users):
                yield weed, ports["s3"]
                return
        finally:
            _end_weed(weed, directory, ports)
        sys.stderr.write(f"attempt {attempt} with ports {ports} failed\n")
    raise SystemExit(1)


def _free_ports() -> dict[str, int]:
    """Weed takes a second port beside each."""
    pairs = [place + more for place in range(len(_ROLES)) for more in (0, GRPC_OFFSET)]
    first = free_port(pairs, most=19_000)
    return {role: first + place for place, role in enumerate(_ROLES)}


def _start_weed(directory: Path, ports: dict[str, int]) -> subprocess.Popen[bytes]:
    for part in ("data", "logs", "home"):
        (directory / part).mkdir(exist_ok=True)
    identity = {
        "name": "tests",
        "credentials": [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}],
        "actions": ["Admin", "Read", "Write", "List", "Tagging"],
    }
    (directory / "s3.json").write_text(json.dumps({"identities": [identity]}))
    with (directory / "weed.log").open("ab") as log:
        return subprocess.Popen(
            [
                WEED,
                f"-logdir={directory / 'logs'}",
                "server",
                "-s3",
                *(f"-{role}.port={port}" for role, port in ports.items()),
                f"-dir={directory / 'data'}",
                f"-s3.config={directory / 's3.json'}",
                "-ip=127.0.0.1",
                "-ip.bind=127.0.0.1",
                "-s3.port.iceberg=0",
                "-s3.port.lance=0",
                "-filer.localSocket=filer.sock",
                "-s3.localSocket=s3.sock",
                "-master.telemetry=false",
                "-master.peers=none",  # alone: no election to wait for
                "-master.volumeSizeLimitMB=64",
                # Each bucket takes several volumes. The default is free space divided by their
                # size, which a run with many buckets exceeds.
                "-volume.max=10000",
            ],
            cwd=directory,  # where the sockets go: their paths must be short
            env={"HOME": str(directory / "home"), "PATH": os.environ["PATH"], "GOGC": "400"},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            preexec_fn=_die_with_parent,
        )


def _die_with_parent() -> None:
    """Linux ends the server even when the watchdog itself is killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _becomes_ready(weed: subprocess.Popen[bytes], port: int, users: IO[str]) -> bool:
    """Ready is more than listening: a bucket is made, an object is written and read."""

    def is_decided() -> bool:
        if _is_unused(users):
            raise SystemExit("nobody waits for the server any more")
        return weed.poll() is not None or _answers(port)

    try:
        wait_until(is_decided, "weed", seconds=START_SECONDS, interval=0.05)
    except AssertionError:
        return False
    return weed.poll() is None


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError, obstore.exceptions.BaseError):
        _create_bucket(port, "readiness")
        store = s3_store("readiness", f"http://127.0.0.1:{port}")
        obstore.put(store, "probe", b"ready")
        return obstore.get(store, "probe").bytes() == b"ready"
    return False


def _end_weed(weed: subprocess.Popen[bytes], directory: Path, ports: dict[str, int]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(weed.pid, signal.SIGKILL)
    weed.wait()
    for role, port in ports.items():  # weed puts these here whatever it is told
        Path("/tmp", f"seaweedfs-{role}-grpc-{port + GRPC_OFFSET}.sock").unlink(missing_ok=True)
    shutil.rmtree(directory / "data", ignore_errors=True)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # asked to end, it takes weed along
    watch(Path(sys.argv[1]))

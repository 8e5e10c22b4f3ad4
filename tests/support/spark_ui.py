"""What others can see of Spark: the pages of its UI, where it listens, and command lines."""

from __future__ import annotations

import contextlib
import json
import socket
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

REST: Final = ("environment", "jobs", "stages", "sql?details=true&planDescription=true")
PAGES: Final = ("/environment/", "/jobs/", "/SQL/", "/SQL/execution/?id=0", "/executors/")


def page(address: str) -> str:
    with urllib.request.urlopen(address, timeout=60) as answer:
        return str(answer.read().decode())


def shown_pages(ui: str) -> dict[str, str]:
    """What the Spark UI shows, as JSON and as pages."""
    applications = f"{ui}/api/v1/applications"
    (application,) = json.loads(page(applications))
    rest = {name: page(f"{applications}/{application['id']}/{name}") for name in REST}
    return rest | {path: page(f"{ui}{path}") for path in PAGES}


def listening_at(port: int) -> list[str]:
    """The addresses of this machine where somebody listens on a port; :: stands for all."""
    found = set()
    for table, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            address, state = line.split()[1], line.split()[3]
            packed, _, number = address.partition(":")
            if state == "0A" and int(number, 16) == port:
                words = [
                    bytes.fromhex(packed[at : at + 8])[::-1] for at in range(0, len(packed), 8)
                ]
                found.add(socket.inet_ntop(family, b"".join(words)).removeprefix("::ffff:"))
    return sorted(found)


def command_lines() -> str:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            found.append((entry / "cmdline").read_bytes().decode(errors="replace"))
    return "\n".join(found)


@contextlib.contextmanager
def event_log(spark: SparkSession, directory: Path) -> Iterator[None]:
    """Within, Spark keeps the log of events that it keeps when told so at its start."""
    directory.mkdir()
    context: Any = spark.sparkContext
    scala, jvm = context._jsc.sc(), context._jvm
    conf = scala.getConf().set("spark.eventLog.compress", "false")
    log = jvm.org.apache.spark.scheduler.EventLoggingListener(
        scala.applicationId(),
        jvm.scala.Option.empty(),
        jvm.java.net.URI(directory.as_uri()),
        conf,
        scala.hadoopConfiguration(),
    )
    log.start()
    scala.listenerBus().addToEventLogQueue(log)
    try:
        yield
        scala.listenerBus().waitUntilEmpty(10_000)
    finally:
        scala.listenerBus().removeListener(log)
        log.stop()


def new_descriptions(spark: SparkSession) -> Callable[[], list[str]]:
    """The descriptions of the jobs since the last call, as Spark's own status store has them."""
    seen: set[int] = set()

    def new() -> list[str]:
        context: Any = spark.sparkContext
        scala = context._jsc.sc()
        scala.listenerBus().waitUntilEmpty(10_000)
        jobs = scala.statusStore().jobsList(None)
        found = {jobs.apply(at).jobId(): jobs.apply(at).description() for at in range(jobs.size())}
        told = [
            found[number].get()
            for number in sorted(found.keys() - seen)
            if found[number].isDefined()
        ]
        seen.update(found)
        return list(dict.fromkeys(told))

    new()
    return new

"""The platform as it is deployed: Dagster in Postgres, with its webserver, graph and drops in a
bucket, Spark Connect on a cluster of two workers. Parts of Spark die under loads, and each load is
published once."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pytest

from omnigraph_core.history.runs import RunStatus
from tests.support.deployed_platform import DeployedPlatform
from tests.support.faulty_platform import people
from tests.support.live_platform import until
from tests.support.postgres import postgres_server
from tests.support.scripted_spark import ScriptedServer
from tests.support.spark_cluster import WORKERS, StandaloneCluster, executors
from tests.support.spark_ui import page
from tests.support.stores import new_prefix
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.support.s3 import S3Server

pytestmark = [
    pytest.mark.long(
        "test_faults shows the same decisions; test_loads and test_connect_sessions what Spark does"
    ),
    pytest.mark.filterwarnings("ignore::dagster.BetaWarning"),
    pytest.mark.filterwarnings("ignore::dagster.PreviewWarning"),
]

COUNT: Final = 30_000
"""People of a file: its task takes some seconds, time enough to be killed."""
NAMES: Final = [f"p{number:05}" for number in range(COUNT)]
BOTH: Final = ("left", "right")
NOTHING: Final = (0, 0)
_LOOKS: Final = 10
"""What an executor had sent before it was stopped has arrived after so many."""
ALL: Final = (COUNT, COUNT - 1)


@dataclass(frozen=True, slots=True)
class Deployed:
    platform: DeployedPlatform
    cluster: StandaloneCluster
    spark: ScriptedServer

    def busy(self) -> dict[str, int]:
        """Processes of executors that do a task just now, by application and number."""
        known = executors(self.cluster)
        return {name: known[name] for name in self._at_work() if name in known}

    def _at_work(self) -> list[str]:
        applications = f"{self.spark.ui}/api/v1/applications"
        (application,) = json.loads(page(applications))
        found = json.loads(page(f"{applications}/{application['id']}/executors"))
        return [f"{application['id']}/{one['id']}" for one in found if one["activeTasks"]]

    def has_begun(self, *branches: str) -> bool:
        """Whether all of these are being loaded."""
        running = self.platform.graph.list_runs(status=RunStatus.RUNNING)
        return {run.target_branch for run in running} >= set(branches)

    def busy_under(self, *branches: str) -> dict[str, int]:
        return self.busy() if self.has_begun(*branches) else {}

    def kills_a_task(self, *branches: str) -> bool:
        """Kill an executor under its task, once the branches are being loaded.

        The executor is stopped first and looked at again: its task may just have ended.
        """
        busy = self.busy_under(*branches)
        assert not busy or len(executors(self.cluster)) == WORKERS
        for name, process in busy.items():
            os.kill(process, signal.SIGSTOP)
            is_at_work = all(name in self._at_work() for _ in range(_LOOKS))
            os.kill(process, signal.SIGKILL if is_at_work else signal.SIGCONT)
            if is_at_work:
                return True
        return False


@pytest.fixture(scope="module")
def deployed(s3_server: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    directory = tmp_path_factory.mktemp("deployed")
    (directory / "spark").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in s3_server.environment().items():
            patch.setenv(name, value)
        # A cluster of its own: its workers know how to reach the bucket.
        with StandaloneCluster(directory / "cluster") as cluster, postgres_server() as port:
            spark = ScriptedServer(directory / "spark", master=cluster.url)
            try:
                platform = DeployedPlatform(
                    directory / "platform",
                    root=new_prefix(s3_server.bucket),
                    postgres=port,
                    remote=spark.url,
                )
                for name, value in platform.environment.items():
                    patch.setenv(name, value)
                with platform:
                    yield Deployed(platform, cluster, spark)
            finally:
                spark.kill()


def assert_published_once(
    platform: DeployedPlatform, branch: str, version: int, names: Sequence[str] = NAMES
) -> None:
    """One commit more than there were, with all rows, and Dagster tells of this one alone."""
    assert platform.graph.snapshot(branch).manifest_version == version + 1
    (commit,) = platform.published(branch)
    assert platform.names(branch) == list(names)
    assert platform.rows(branch) == (len(names), len(names) - 1)
    told = platform.told(branch)
    assert told == {key: {commit} for key in ("nodes/Person", "edges/Knows", "manifest")}
    assert platform.graph.verify(branch, is_deep=True).is_sound


def seen_until_loaded(platform: DeployedPlatform, *branches: str) -> set[tuple[int, int]]:
    """Wait until the platform has finished by itself; what could be seen on the way."""
    seen: set[tuple[int, int]] = set()

    def is_done() -> bool:
        seen.update(platform.rows(branch) for branch in branches)
        return not platform.live(*branches) and not any(map(platform.waits, branches))

    until(is_done, "the end of the loads", tell=platform.said)
    return seen


def lost_tasks(spark: ScriptedServer) -> list[Any]:
    """Tasks that ended with their executor, as the event log has them."""
    lines = [
        json.loads(line)
        for path in spark.events.rglob("*")
        if path.is_file()
        for line in path.read_text().splitlines()
        if "ExecutorLostFailure" in line
    ]
    return [line for line in lines if line["Event"] == "SparkListenerTaskEnd"]


def test_an_executor_dies_under_two_branches_that_load_at_once(deployed: Deployed) -> None:
    platform = deployed.platform
    assert type(platform.instance.run_storage).__name__ == "PostgresRunStorage"
    versions = {}
    for branch in BOTH:
        platform.branch(branch)
        versions[branch] = platform.graph.snapshot(branch).manifest_version
        platform.put(branch, "people.jsonl", *people(*NAMES))
    wait_until(
        lambda: deployed.kills_a_task(*BOTH), "a task of both", seconds=400, tell=platform.said
    )
    assert [platform.rows(branch) for branch in BOTH] == [NOTHING, NOTHING]
    assert seen_until_loaded(platform, *BOTH) <= {NOTHING, ALL}
    assert lost_tasks(deployed.spark)
    for branch in BOTH:
        # Spark has done the tasks again: nobody else had to.
        assert [run.status.value for run in platform.runs(branch)] == ["SUCCESS"]
        assert_published_once(platform, branch, versions[branch])
    (left,), (right,) = (platform.spans(branch) for branch in BOTH)
    assert max(left[0], right[0]) < min(left[1], right[1]), "both at once"


def test_the_connect_server_dies_under_a_load_and_comes_back(deployed: Deployed) -> None:
    platform, spark = deployed.platform, deployed.spark
    branch = platform.branch("restarted")
    version = platform.graph.snapshot(branch).manifest_version
    platform.put(branch, "people.jsonl", *people(*NAMES))
    wait_until(lambda: deployed.busy_under(branch), "a task", seconds=400, tell=platform.said)
    spark.kill()
    assert platform.rows(branch) == NOTHING
    spark.start()
    assert seen_until_loaded(platform, branch) <= {NOTHING, ALL}
    assert platform.runs(branch)[0].status.value == "SUCCESS"
    assert_published_once(platform, branch, version)


def test_a_load_is_launched_through_the_webserver(deployed: Deployed) -> None:
    """As its page does it: the webserver asks the code server, the daemon takes it from the queue.

    The sensor of drops may be quicker; then one of the two runs finds nothing that waits.
    """
    platform = deployed.platform
    names = ["ann", "bob", "cid"]
    branch = platform.branch("launched")
    version = platform.graph.snapshot(branch).manifest_version
    platform.put(branch, "people.jsonl", *people(*names))
    run_id = platform.launch(branch)
    assert seen_until_loaded(platform, branch) <= {NOTHING, (3, 2)}
    asked = "query($id: ID!) { runOrError(runId: $id) { ... on Run { status } } }"
    assert platform.ask(asked, id=run_id) == {"status": "SUCCESS"}
    assert_published_once(platform, branch, version, names)

"""The platform of several machines on one: Dagster's state in Postgres, graph and drops in a
bucket, and Spark Connect on a cluster, each a process of its own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import yaml

from omnigraph_assets.resources.landing import LOADED, open_drops
from tests.support.faulty_platform import ROOT, FaultyPlatform, only_member
from tests.support.live_platform import post, until
from tests.support.ports import free_port, is_free
from tests.support.postgres import DATABASE, PASSWORD, USER

if TYPE_CHECKING:
    from pathlib import Path

_VOLUME: Final = "/var/lib/dagster"


class DeployedPlatform(FaultyPlatform):
    """Without a fork server: runs are processes of the code server. Asked over HTTP."""

    parts = ("code-server", "daemon", "webserver")

    def __init__(self, directory: Path, *, root: str, postgres: int, remote: str) -> None:
        super().__init__(directory, engine="spark", webserver_port=free_port())
        self._postgres = postgres
        self.drops = f"{root}/drops"
        self.environment |= {
            "DAGSTER_POSTGRES_HOST": "127.0.0.1",
            "DAGSTER_POSTGRES_USER": USER,
            "DAGSTER_POSTGRES_PASSWORD": PASSWORD,
            "DAGSTER_POSTGRES_DB": DATABASE,
            "OMNIGRAPH_PLATFORM_GRAPH": f"{root}/graph",
            "OMNIGRAPH_PLATFORM_DROPS": self.drops,
            "OMNIGRAPH_PLATFORM_ENGINE": "spark",
            "OMNIGRAPH_SPARK_REMOTE": remote,
        }

    def settings(self) -> dict[str, Any]:
        """Those that are deployed, but for the volume and the port of Postgres."""
        text = (ROOT / "deploy" / "dagster" / "dagster.yaml").read_text()
        settings: dict[str, Any] = yaml.safe_load(text.replace(_VOLUME, str(self.places.dagster)))
        settings["storage"]["postgres"]["postgres_db"]["port"] = self._postgres
        return settings

    def start(self, name: str, **variables: str) -> None:
        super().start(name, **variables)
        port = self.places.ports["DAGSTER_PORT"]
        if name == "webserver":
            until(lambda: not is_free(port), "the webserver", tell=self.said)

    def ask(self, query: str, **variables: object) -> Any:
        """What the webserver answers, as it answers to its own pages."""
        address = f"http://127.0.0.1:{self.places.ports['DAGSTER_PORT']}/graphql"
        answer = post(address, {"query": query, "variables": variables})
        assert "errors" not in answer, answer
        return only_member(answer["data"])

    def put(self, branch: str, name: str, *records: object) -> None:
        """Drop an object: the sensor finds it whole."""
        text = "".join(f"{json.dumps(record)}\n" for record in records)
        open_drops(self.drops).write(f"{self.drops}/{branch}/{name}", text)

    def waits(self, branch: str) -> list[str]:
        """Files that no load has put away."""
        return [file.name for file in open_drops(self.drops).list() if file.branch == branch]

    def loaded(self, branch: str) -> str:
        """Where the files are that were loaded."""
        return f"{self.drops}/{LOADED}/{branch}/"

    def rows(self, branch: str) -> tuple[int, int]:
        """How many people there are to be seen, and how many who know each other."""
        tables = self.graph.snapshot(branch).tables
        return tables["node:Person"].row_count, tables["edge:Knows"].row_count

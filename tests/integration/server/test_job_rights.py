"""Whose jobs they are, and what it takes to begin one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.served import document, ended, lines, new_stock, part, stock_server
from tests.support.server import tokens

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.server import Client

ASYNC = {"Prefer": "respond-async"}
POLICY = """
version: 1
groups:
  loaders: [ada, ben]
  keepers: [kim]
  writers: [wim]
protected_branches: [main]
rules:
  - id: load
    allow: { actors: { group: loaders }, actions: [read, change], branch_scope: any }
  - id: write
    allow: { actors: { group: writers }, actions: [change], branch_scope: any }
  - id: keep
    allow: { actors: { group: keepers }, actions: [admin] }
  - id: look
    allow: { actors: { group: keepers }, actions: [read], branch_scope: any }
"""

JUDGED = {"ada": "a-1", "ben": "b-1", "kim": "k-1", "wim": "w-1"}


def begin(client: Client, path: str, body: object = None) -> Any:
    return document(client.post(path, body, headers=ASYNC), 202)


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    root = tmp_path_factory.mktemp("judged")
    new_stock(root)
    (root / "policy.yaml").write_text(POLICY)
    config = root / "omnigraph.yaml"
    config.write_text(
        "graphs: { stock: { uri: ./stock } }\nserver: { graph: stock }\n"
        "policy: { file: ./policy.yaml }\n"
    )
    with stock_server(root, config=config, env=tokens(**JUDGED)) as client:
        yield client


def test_jobs_belong_to_whoever_began_them(judged: Client) -> None:
    with judged.acting("a-1") as ada, judged.acting("b-1") as ben, judged.acting("k-1") as kim:
        job = begin(ada, "/ingest", {"data": lines([part("own1")]).decode()})
        done = ended(ada, job)
        assert (done["status"], done["actor_id"]) == ("done", "ada")
        assert document(ben.get(f"/jobs/{job['job_id']}"), 403)["code"] == "forbidden"
        assert document(ben.post(f"/jobs/{job['job_id']}/cancel"), 403)["code"] == "forbidden"
        assert document(ben.get("/jobs"))["jobs"] == []
        assert [found["job_id"] for found in document(ada.get("/jobs"))["jobs"]] == [job["job_id"]]
        assert document(kim.get(f"/jobs/{job['job_id']}"))["status"] == "done"
        assert document(kim.get("/jobs"))["jobs"]


def test_a_job_needs_no_more_rights_than_its_operation(judged: Client) -> None:
    with judged.acting("a-1") as ada, judged.acting("k-1") as kim:
        assert document(ada.post("/optimize", headers=ASYNC), 403)["code"] == "forbidden"
        response = kim.request("POST", "/load/ndjson", content=b"", headers=ASYNC)
        assert document(response, 403)["code"] == "forbidden"
        assert ended(kim, begin(kim, "/optimize"))["status"] == "done"
    with judged.acting("w-1") as wim:
        job = begin(wim, "/ingest", {"data": lines([part("blind1")]).decode()})
        assert ended(wim, job)["status"] == "done"
        assert document(wim.get("/snapshot"), 403)["code"] == "forbidden"

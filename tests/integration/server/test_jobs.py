"""Jobs: long work beside the request for it, seen by every worker, ended once."""

from __future__ import annotations

import json
import shutil
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from tests.support.served import (
    SCHEMA,
    document,
    ended,
    lines,
    new_stock,
    part,
    state_of,
    stock_server,
)
from tests.support.server import server_process
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.server import Client

ASYNC = {"Prefer": "respond-async"}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("jobs")


@pytest.fixture(scope="module")
def stock(root: Path) -> Omnigraph:
    return new_stock(root)


@pytest.fixture(scope="module")
def client(root: Path, stock: Omnigraph) -> Iterator[Client]:
    with stock_server(root) as client:
        yield client


def begin(client: Client, path: str, body: object = None) -> Any:
    return document(client.post(path, body, headers=ASYNC), 202)


def begin_load(client: Client, data: bytes, **parameters: Any) -> Any:
    response = client.request(
        "POST", "/load/ndjson", content=data, params=parameters, headers=ASYNC
    )
    return document(response, 202)


@pytest.mark.parametrize(
    ("path", "body", "operation"),
    [
        ("/optimize", None, "optimize"),
        ("/cleanup", {"keep": 3}, "cleanup"),
        ("/verify", {"deep": True}, "verify"),
        ("/indexes", {}, "ensure_indexes"),
        ("/embeddings/backfill", None, "backfill"),
    ],
)
def test_maintenance_as_a_job_answers_the_same(
    client: Client, stock: Omnigraph, path: str, body: object, operation: str
) -> None:
    job = begin(client, path, body)
    assert (job["operation"], job["status"]) == (operation, "running")
    done = ended(client, job)
    assert done["status"] == "done", done
    assert stock.get_run(job["run_id"]).status == "published"
    again = document(client.post(path, body))
    assert done["result"].keys() == again.keys()


def test_merges_and_schema_changes_are_jobs_too(client: Client, stock: Omnigraph) -> None:
    stock.branch_create("merged")
    stock.load(lines([part("m1")]), branch="merged")
    done = ended(client, begin(client, "/branches/merge", {"source": "merged"}))
    assert done["result"]["outcome"] == "fast_forward"
    wider = SCHEMA.replace("stock: I64?", "stock: I64?\n  weight: F64?")
    done = ended(client, begin(client, "/schema/apply", {"schema_source": wider}))
    assert done["result"]["applied"] is True


def test_a_job_that_cannot_be_done_has_failed(client: Client, stock: Omnigraph) -> None:
    done = ended(client, begin(client, "/branches/merge", {"source": "nowhere"}))
    assert (done["status"], done["error"]["reason"]) == ("failed", "not_found.branch")
    assert stock.get_run(done["run_id"]).status == "failed"


def test_jobs_are_listed_newest_first(client: Client) -> None:
    first, second = (ended(client, begin(client, "/verify"))["job_id"] for _ in range(2))
    listed = [job["job_id"] for job in document(client.get("/jobs"))["jobs"]]
    assert listed.index(second) < listed.index(first)
    assert len(document(client.get("/jobs", params={"limit": 1}))["jobs"]) == 1
    failed = document(client.get("/jobs", params={"status": "failed"}))["jobs"]
    assert {job["status"] for job in failed} <= {"failed"}


def test_a_list_of_jobs_holds_no_results(client: Client) -> None:
    bad = lines([{"type": "Part", "data": {"sku": "listed1"}}, part("listed2")])
    failed = ended(client, begin_load(client, bad, rejects=True))
    done = ended(client, begin_load(client, bad, rejects=True, skip_bad=True))
    assert failed["error"]["details"]["rejects"]
    assert done["result"]["rejects"]
    newest, before = document(client.get("/jobs", params={"limit": 2}))["jobs"]
    assert newest == {name: done[name] for name in done if name != "result"}
    assert before["error"]["error"] == failed["error"]["error"]
    assert "details" not in before["error"]


def test_the_place_of_a_job_is_below_its_graph(client: Client) -> None:
    response = client.post("/graphs/default/verify", headers=ASYNC)
    job = document(response, 202)
    assert response.headers["Location"] == f"/graphs/default/jobs/{job['job_id']}"
    assert document(client.get(response.headers["Location"]))["job_id"] == job["job_id"]


def test_unknown_jobs_are_not_found(client: Client) -> None:
    for job_id in ("01ARZ3NDEKTSV4RRFFQ69G5FAV", "nothing", "..%2Fkeys"):
        assert document(client.get(f"/jobs/{job_id}"), 404)["code"] == "not_found"
        assert document(client.post(f"/jobs/{job_id}/cancel"), 404)["code"] == "not_found"


def test_a_run_is_told_as_a_job(client: Client, stock: Omnigraph) -> None:
    run = stock.begin_run()
    told = document(client.get(f"/jobs/{run.run_id}"))
    assert (told["operation"], told["status"]) == ("run", "running")
    stock.abort_run(run.run_id)
    assert document(client.get(f"/jobs/{run.run_id}"))["status"] == "cancelled"


# Cancelling


class Gate:
    """Holds the progress of loads back until it is opened."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.open = threading.Event()
        self.is_to_stop = threading.Event()


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    """Jobs stop at their first report until the test lets them go on."""
    from omnigraph_core.server.job_records import JobStore
    from omnigraph_core.server.job_work import RunningJob

    gate = Gate()
    hear, ask_to_stop = RunningJob.hear, JobStore.ask_to_stop

    def held(job: RunningJob, progress: Any) -> None:
        gate.reached.set()
        assert gate.open.wait(120)
        job._reported = 0.0
        hear(job, progress)

    def asking(store: JobStore, job_id: str) -> None:
        ask_to_stop(store, job_id)
        gate.is_to_stop.set()

    monkeypatch.setattr(RunningJob, "hear", held)
    monkeypatch.setattr(JobStore, "ask_to_stop", asking)
    monkeypatch.setattr("omnigraph_core.server.jobs._PATIENCE", 120.0)
    yield gate
    gate.open.set()


def test_a_load_is_cancelled_as_a_whole(client: Client, stock: Omnigraph, gate: Gate) -> None:
    head = stock.head_commit_id_for_branch()
    job = begin_load(client, lines(part(f"x{number}") for number in range(10)))
    assert gate.reached.wait(120)
    answers: list[Any] = []
    cancelling = threading.Thread(
        target=lambda: answers.append(client.post(f"/jobs/{job['job_id']}/cancel"))
    )
    cancelling.start()
    assert gate.is_to_stop.wait(120)
    gate.open.set()
    cancelling.join()
    assert document(answers[0])["status"] == "cancelled"
    assert ended(client, job)["status"] == "cancelled"
    assert stock.head_commit_id_for_branch() == head
    assert stock.get_run(job["run_id"]).status == "aborted"
    again = document(client.post(f"/jobs/{job['job_id']}/cancel"), 409)
    assert "cancelled" in again["error"]


def test_workers_see_and_cancel_jobs_of_each_other(
    client: Client, root: Path, stock: Omnigraph, gate: Gate
) -> None:
    job = begin_load(client, lines([part("other1")]))
    assert gate.reached.wait(120)
    with stock_server(root) as other:
        seen = document(other.get(f"/jobs/{job['job_id']}"))
        assert seen["status"] == "running"
        gate.open.set()
        done = ended(other, job)
        assert done == document(client.get(f"/jobs/{job['job_id']}"))
        gate.open.clear()
        gate.reached.clear()
        second = begin_load(client, lines([part("other2")]))
        assert gate.reached.wait(120)
        with ThreadPoolExecutor(1) as pool:
            cancelling = pool.submit(other.post, f"/jobs/{second['job_id']}/cancel")
            assert gate.is_to_stop.wait(120)
            gate.open.set()
            assert document(cancelling.result())["status"] == "cancelled"


def test_an_end_is_not_told_before_all_workers_would_tell_it(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    from omnigraph_core.server.job_records import JobStatus, JobStore

    gate, write = Gate(), JobStore.write

    def late(store: JobStore, record: Any) -> None:
        if record.status is JobStatus.DONE:
            gate.reached.set()
            assert gate.open.wait(120)
        write(store, record)

    monkeypatch.setattr(JobStore, "write", late)
    job = begin_load(client, lines([part("late1")]))
    assert gate.reached.wait(120)
    assert document(client.get(f"/jobs/{job['job_id']}"))["status"] == "running"
    gate.open.set()
    assert ended(client, job)["status"] == "done"


def test_conflicts_leave_the_run_to_be_resolved(
    client: Client, stock: Omnigraph, gate: Gate
) -> None:
    job = begin_load(client, lines([part("p2", stock=100)]))
    assert gate.reached.wait(120)
    stock.load(lines([part("p2", stock=200)]))
    gate.open.set()
    failed = ended(client, job)
    assert failed["error"]["merge_conflicts"][0]["row_id"] == "p2"
    assert stock.get_run(job["run_id"]).status == "running"
    published = client.post(f"/runs/{job['run_id']}/publish", {"resolve": "theirs"})
    assert document(published)["status"] == "published"
    version = stock.snapshot().manifest_version
    found = stock.entity_at("node:Part", "p2", version=version)
    assert found is not None
    assert found["stock"] == 100


def test_what_has_begun_and_cannot_stop_is_refused(
    client: Client, stock: Omnigraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = threading.Event(), threading.Event()
    verify = Omnigraph.verify

    def slowly(graph: Omnigraph, *arguments: Any, **options: Any) -> Any:
        begun.set()
        assert go_on.wait(120)
        return verify(graph, *arguments, **options)

    monkeypatch.setattr(Omnigraph, "verify", slowly)
    job = begin(client, "/verify")
    assert begun.wait(120)
    refused = document(client.post(f"/jobs/{job['job_id']}/cancel"), 409)
    assert "`verify` has begun" in refused["error"]
    go_on.set()
    assert ended(client, job)["status"] == "done"


def test_what_waits_for_its_turn_can_be_cancelled(
    root: Path, stock: Omnigraph, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_SERVER_JOBS", "1")
    with stock_server(root) as narrow:
        first = begin_load(narrow, lines([part("y1")]))
        assert gate.reached.wait(120)
        waiting = begin(narrow, "/optimize")
        cancelled = document(narrow.post(f"/jobs/{waiting['job_id']}/cancel"))
        assert cancelled["status"] == "cancelled"
        gate.open.set()
        assert ended(narrow, first)["status"] == "done"


def test_jobs_are_bounded(
    root: Path, stock: Omnigraph, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_SERVER_JOBS", "1")
    monkeypatch.setenv("OMNIGRAPH_PER_ACTOR_JOBS_MAX", "3")
    with stock_server(root) as narrow:
        jobs = [begin_load(narrow, lines([part("bound1")]))]
        assert gate.reached.wait(120)
        keyed = {"headers": {**ASYNC, "Idempotency-Key": "bound"}}
        jobs += [document(narrow.post("/optimize", **keyed), 202), begin(narrow, "/optimize")]
        before = state_of(stock)
        load = {"data": lines([part("bound2")]).decode(), "branch": "bounded", "from": "main"}
        for path, body in (("/optimize", None), ("/ingest", load)):
            refused = narrow.post(path, body, headers=ASYNC)
            assert document(refused, 429)["code"] == "too_many_requests"
            assert refused.headers["retry-after"] == "1"
        again = document(narrow.post("/optimize", **keyed), 202)
        assert again["job_id"] == jobs[1]["job_id"]
        assert state_of(stock) == before
        workers = [thread for thread in threading.enumerate() if thread.name == "omnigraph-jobs"]
        assert len(workers) <= 2  # one at work, one that looks after those that wait
        gate.open.set()
        assert {ended(narrow, job)["status"] for job in jobs} == {"done"}
        assert ended(narrow, begin(narrow, "/optimize"))["status"] == "done"


# Keys


def test_a_job_the_spool_has_forgotten_is_not_done_again(
    client: Client, root: Path, stock: Omnigraph
) -> None:
    headers = {**ASYNC, "Idempotency-Key": "forgotten"}

    def begun(data: bytes) -> Any:
        response = client.request("POST", "/load/ndjson", content=data, headers=headers)
        return ended(client, document(response, 202))

    data = lines([part("forgotten1")])
    done = begun(data)
    head = stock.head_commit_id_for_branch()
    shutil.rmtree(root / "spool")
    again = begun(data)
    assert (again["job_id"], again["status"]) == (done["job_id"], "done")
    shutil.rmtree(root / "spool")
    other = begun(lines([part("forgotten2")]))
    assert other["status"] == "failed"
    assert "`forgotten` was used for another request" in other["error"]["error"]
    assert stock.head_commit_id_for_branch() == head


def test_a_job_that_cannot_be_recorded_is_not_begun(
    client: Client, root: Path, stock: Omnigraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_the_way: list[Path] = []
    begin_run = Omnigraph.begin_run

    def blocked(graph: Omnigraph, *arguments: Any, **options: Any) -> Any:
        run = begin_run(graph, *arguments, **options)
        (place,) = (root / "spool" / "jobs").iterdir()
        in_the_way.append(place / f"{run.run_id}.json")
        in_the_way[0].mkdir()  # no file can take its place
        return run

    headers = {**ASYNC, "Idempotency-Key": "recorded"}
    with monkeypatch.context() as patch:
        patch.setattr(Omnigraph, "begin_run", blocked)
        assert "spool" in document(client.post("/optimize", {}, headers=headers), 500)["error"]
    (path,) = in_the_way
    path.rmdir()
    assert stock.get_run(path.stem).status == "failed"
    job = document(client.post("/optimize", {}, headers=headers), 202)
    assert ended(client, job)["status"] == "done"


# Ends of the server


def test_a_server_that_stops_gives_up_what_takes_too_long(
    root: Path, stock: Omnigraph, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_SHUTDOWN_TIMEOUT", "0.1")
    with stock_server(root) as stopping:
        job = begin_load(stopping, lines([part("s1")]))
        assert gate.reached.wait(120)
    gate.open.set()
    assert stock.get_run(job["run_id"]).status == "failed"
    with stock_server(root) as later:
        told = document(later.get(f"/jobs/{job['job_id']}"))
    assert told["status"] == "failed"
    assert "the server was stopped" in told["error"]["error"]


def test_a_job_of_a_killed_server_has_failed(root: Path, stock: Omnigraph) -> None:
    slow = {
        "OMNIGRAPH_SERVER_SPOOL": str(root / "spool"),
        "OMNIGRAPH_FAILPOINTS": "publish.before_image=sleep(60000)",
    }
    with server_process(str(root / "stock"), env=slow) as running:
        with running.client() as client:
            job = begin_load(client, lines([part("kill1")]))
            wait_until(
                lambda: document(client.get(f"/jobs/{job['job_id']}"))["progress"].get("read"),
                "the first rows",
            )
        assert running.stop(signal.SIGKILL) != 0
    with stock_server(root) as later:
        told = document(later.get(f"/jobs/{job['job_id']}"))
        assert told["status"] == "failed"
        assert "has ended" in told["error"]["error"]
        assert told["error"]["retryable"] is True
    assert stock.get_run(job["run_id"]).status == "failed"


def test_the_spool_is_private_and_whole(root: Path, client: Client) -> None:
    begin(client, "/verify")
    files = [
        path for path in (root / "spool" / "jobs").rglob("*.json") if not path.name.startswith(".")
    ]
    assert files
    for path in files:
        assert json.loads(path.read_bytes())["job_id"] == path.stem
    assert (root / "spool").stat().st_mode & 0o077 == 0

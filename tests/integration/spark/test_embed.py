"""Vectors by Spark are those of one process: asked for once, within limits, with one commit."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from omnigraph_core.embedding.limits import Limits, RateLimiter
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import ConfigError, EmbeddingError
from omnigraph_core.spark.embed import leases, tasks
from omnigraph_core.spark.embed.leases import LeasePlace, RemoteLimiter, serving
from omnigraph_core.spark.runner import InProcessRunner, SparkRunner
from omnigraph_core.storage.scratch import Scratch
from omnigraph_core.storage.session import open_store
from omnigraph_core.write.paid_vectors import PaidVectors
from tests.integration.cli.process import ENVIRONMENT, OMNIGRAPH
from tests.integration.spark.conftest import ON_CLUSTERS, ON_THIS_MACHINE
from tests.support.embedding_server import EmbeddingServer, Reply
from tests.support.processes import spawn
from tests.support.spark import ROOT, SECONDS, DoingTwice
from tests.support.spark_cluster import kill_an_executor
from tests.support.spark_embeds import fill, provider
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from omnigraph_core.write.progress import Progress
    from tests.integration.spark.conftest import Mortal
    from tests.support.spark import Driver

SCHEMA = """
node Page {
  slug: String @key
  text: String?
  title: String?
  picture: Blob?
  topic: Vector(8)? @embed("text")
  name: Vector(4)? @embed("title", model="small")
}
node Note { slug: String @key  text: String  topic: Vector(8)? @embed("text") }
"""
MOCK = {"OMNIGRAPH_EMBEDDINGS_MOCK": "1"}


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer() as server:
        yield server


def note(number: int, text: str | None = None) -> dict[str, Any]:
    return {"type": "Note", "data": {"slug": f"n{number}", "text": text or f"note {number}"}}


def with_notes(path: Path | str, count: int) -> Omnigraph:
    graph = Omnigraph.init(str(path), SCHEMA)
    graph.load(lines(*map(note, range(count))), embed="off")
    return graph


def lines(*records: dict[str, Any]) -> bytes:
    return "\n".join(map(json.dumps, records)).encode()


def mixed(path: Path) -> Omnigraph:
    """Rows that lack one vector, two or none, in several fragments, some of them deleted."""
    graph = Omnigraph.init(str(path), SCHEMA)
    pages = [
        {
            "type": "Page",
            "data": {
                "slug": f"p{number}",
                "text": None if number % 7 == 0 else f"text {number % 11}",
                "title": " " if number % 5 == 0 else f"title {number}",
                "picture": "base64:AAEC",
            },
        }
        for number in range(60)
    ]
    graph.load(lines(*pages[:20]), embed="off")
    graph.load(lines(*pages[20:40]))
    graph.load(lines(*pages[40:], *map(note, range(30))), embed="off")
    changing = 'query q() { update Page set { text: "another" } where slug = "p21" }'
    graph.mutate(changing, embed="off")
    clearing = 'query q($none: String?) { update Page set { text: $none } where slug = "p23" }'
    graph.mutate(clearing, {"none": None}, embed="off")
    graph.mutate('query q() { delete Page where slug = "p3" }')
    return graph


def content(graph: Omnigraph) -> list[bytes]:
    return sorted(b"".join(graph.export_jsonl()).splitlines())


def scratch(graph: Omnigraph) -> list[str]:
    found = (Path(graph.uri) / "_scratch").rglob("*")
    return sorted(path.name for path in found if path.is_file())


def pending(graph: Omnigraph) -> int:
    """Of the vectors; whether one is stale depends on the settings of who asks."""
    return sum(item.pending for item in graph.embedding_status())


@ON_THIS_MACHINE
def test_vectors_do_not_depend_on_where_they_are_made(
    driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    here, there = mixed(tmp_path / "here"), mixed(tmp_path / "there")
    assert pending(here)
    expected = here.embed_backfill()
    commits = len(there.list_commits())
    done = driver.call(fill, there.uri, 25, MOCK)
    assert done["vectors_made"] == expected.vectors_made
    assert len(done["commits"]) == 1
    found = Omnigraph.open(there.uri)
    assert content(found) == content(here)
    assert pending(found) == 0
    assert len(found.list_commits()) == commits + 1
    assert found.list_commits()[0].actor_id == "filler"
    assert found.verify(is_deep=True).is_sound
    assert scratch(found) == []
    assert driver.call(fill, there.uri, 25, MOCK) == {
        "branch": "main",
        "vectors_made": 0,
        "commits": [],
    }


def test_tasks_may_be_done_twice(tmp_path: Path, server: EmbeddingServer) -> None:
    graph = with_notes(tmp_path / "graph", 40)
    done = fill(DoingTwice(), graph.uri, 9, provider(server))
    assert (done["vectors_made"], len(done["commits"])) == (40, 1)
    assert sorted(server.texts) == sorted(f"note {number}" for number in range(40))
    assert pending(Omnigraph.open(graph.uri)) == 0


def test_a_killed_backfill_is_continued_without_paying_twice(
    spark: SparkSession, server: EmbeddingServer, tmp_path: Path
) -> None:
    """It is killed while it waits for its sixth answer; five were kept."""
    graph = with_notes(tmp_path / "graph", 100)
    settings = provider(server, OMNIGRAPH_EMBED_CONCURRENCY="1", OMNIGRAPH_EMBED_BATCH="8")
    server.queue(*[None] * 5, Reply(is_withheld=True))
    with spawn("tests.support.spark_embeds:fill_here", graph.uri, 30, settings) as killed:
        wait_until(lambda: len(server.requests) == 6, "the sixth request")
    assert len(server.answered) == 4 * 8 - 2 + 8
    kept = [name for name in scratch(graph) if name.startswith("vectors-")]
    assert [name.split("-")[1] for name in kept] == ["30", "8"], "of a part, of an answer"
    assert killed.wait().returncode != 0

    head = graph.head_commit_id_for_branch()
    assert Omnigraph.open(graph.uri).head_commit_id_for_branch() == head
    done = fill(SparkRunner(spark), graph.uri, 30, settings)
    assert (done["vectors_made"], len(done["commits"])) == (100, 1)
    assert sorted(server.answered) == sorted(f"note {number}" for number in range(100))
    found = Omnigraph.open(graph.uri)
    assert pending(found) == 0
    assert found.verify(is_deep=True).is_sound
    left = [name for name in scratch(found) if name.startswith("vectors-")]
    assert left == [], "what is in a commit need not be kept"


@pytest.mark.long("test_a_killed_backfill_is_continued_without_paying_twice, on a session at hand")
def test_a_killed_command_is_continued_without_paying_twice(
    server: EmbeddingServer, tmp_path: Path
) -> None:
    """Its tasks end with it, so what they had asked for is either kept or was not answered."""
    graph = with_notes(tmp_path / "graph", 6_000)
    settings = provider(server, OMNIGRAPH_EMBED_CONCURRENCY="1")
    command = [OMNIGRAPH, "embed", "backfill", graph.uri, "--engine", "spark"]
    environment = {**ENVIRONMENT, "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **settings}
    environment["OMNIGRAPH_SPARK_MASTER"] = "local[2,3]"
    server.queue(*[None] * 50, *[Reply(is_withheld=True)] * 2)
    killed = subprocess.Popen(command, env=environment, start_new_session=True)
    wait_until(lambda: len(server.requests) == 52, "requests nobody answers", seconds=SECONDS)
    os.killpg(killed.pid, signal.SIGKILL)
    assert killed.wait(SECONDS) == -signal.SIGKILL
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    assert "6000 vectors" in done.stdout
    assert done.stdout.count("commit_id") == 1
    assert sorted(server.answered) == sorted(f"note {number}" for number in range(6_000))


@pytest.mark.long(
    "an executor is killed under a load; a killed backfill is continued; tasks are done twice"
)
@ON_CLUSTERS
def test_an_executor_that_is_killed_costs_time_alone(
    mortal: Mortal, server: EmbeddingServer, tmp_path: Path
) -> None:
    graph = with_notes(tmp_path / "graph", 400)
    settings = provider(server, OMNIGRAPH_EMBED_BATCH="10")
    server.queue(*[None] * 10, *[Reply(is_withheld=True)] * 2)
    mortal.driver.start(fill, graph.uri, 40, settings)
    wait_until(lambda: len(server.requests) >= 12, "requests nobody answers", seconds=SECONDS)
    kill_an_executor(mortal.cluster)
    server.release()
    done = mortal.driver.result()
    assert (done["vectors_made"], len(done["commits"])) == (400, 1)
    found = Omnigraph.open(graph.uri)
    assert pending(found) == 0
    assert found.verify(is_deep=True).is_sound
    assert set(server.answered) == {f"note {number}" for number in range(400)}


def test_a_branch_that_moves_meanwhile_keeps_what_is_new(
    server: EmbeddingServer, tmp_path: Path
) -> None:
    """The commit is made on the newest rows; a changed text waits, and nothing is asked again."""
    graph = with_notes(tmp_path / "graph", 20)
    changes = [lines(note(3, "changed"), note(99, "added"))]

    def listen(progress: Progress) -> None:
        if changes and progress.rows == 20:
            Omnigraph.open(graph.uri).load(changes.pop(), mode="merge", embed="off")

    done = fill(InProcessRunner(), graph.uri, 9, provider(server), listen)
    assert (done["vectors_made"], len(done["commits"])) == (19, 1)
    assert sorted(server.texts) == sorted(f"note {number}" for number in range(20))
    found = Omnigraph.open(graph.uri)
    assert pending(found) == 2
    fill(InProcessRunner(), graph.uri, 9, provider(server))
    assert sorted(server.texts[20:]) == ["added", "changed"]
    assert pending(Omnigraph.open(graph.uri)) == 0


def test_a_provider_that_fails_leaves_the_graph_as_it_was(
    server: EmbeddingServer, graph_root: str
) -> None:
    graph = with_notes(graph_root, 20)
    settings = provider(server, OMNIGRAPH_EMBED_BATCH="5", OMNIGRAPH_EMBED_CONCURRENCY="1")
    server.queue(None, None, Reply(status=400, body={"error": {"message": "no such model"}}))
    with pytest.raises(EmbeddingError, match="no such model"):
        fill(InProcessRunner(), graph.uri, 10, settings)
    assert len(graph.list_commits()) == 2
    server.queue()
    assert fill(InProcessRunner(), graph.uri, 10, settings)["vectors_made"] == 20
    assert sorted(server.answered) == sorted(f"note {number}" for number in range(20))


class Recorder:
    """A limiter that remembers who asked."""

    def __init__(self, limits: Limits) -> None:
        self._inner = RateLimiter(limits)
        self.asked: list[int] = []
        self.pauses: list[float] = []

    def acquire(self, tokens: int, stop: threading.Event) -> bool:
        self.asked.append(tokens)
        return self._inner.acquire(tokens, stop)

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)


def test_every_request_of_every_task_has_a_lease(
    spark: SparkSession,
    server: EmbeddingServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also one that is repeated; that the provider asked to wait reaches whoever gives leases."""
    graph = with_notes(tmp_path / "graph", 300)
    recorder = Recorder(Limits(requests=60_000))
    monkeypatch.setattr(leases, "_limiter", lambda: recorder)
    server.queue(None, Reply(status=429, headers={"retry-after": "0.25"}, body={}))
    settings = provider(server, OMNIGRAPH_EMBED_BATCH="10", OMNIGRAPH_EMBED_CONCURRENCY="6")
    assert fill(SparkRunner(spark), graph.uri, 50, settings)["vectors_made"] == 300
    assert len(recorder.asked) == len(server.requests) == 31
    assert sum(recorder.asked) >= 31 * 10 * 2
    assert recorder.pauses == [0.25]


def test_a_text_of_several_parts_is_asked_for_by_one(spark: SparkSession, tmp_path: Path) -> None:
    """Both tasks ask at the same time: neither could know what the other has kept."""
    graph = Omnigraph.init(str(tmp_path / "graph"), SCHEMA)
    texts = [*(f"first {n}" for n in range(8)), " ", " ", *(f"first {n}" for n in range(4)), "last"]
    graph.load(lines(*(note(at, text) for at, text in enumerate(texts))), embed="off")
    with EmbeddingServer(gate=2) as server:
        settings = provider(server, OMNIGRAPH_EMBED_CONCURRENCY="2")
        done = fill(SparkRunner(spark), graph.uri, 8, settings)
    assert (done["vectors_made"], pending(Omnigraph.open(graph.uri))) == (13, 0)
    assert sorted(server.texts) == [*(f"first {n}" for n in range(8)), "last"]


def test_loads_take_leases_too(
    spark: SparkSession,
    server: EmbeddingServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    recorder = Recorder(Limits())
    monkeypatch.setattr(leases, "_limiter", lambda: recorder)
    for name, value in provider(server).items():
        monkeypatch.setenv(name, value)
    with Omnigraph.init(str(tmp_path / "graph"), SCHEMA) as graph:
        graph.load(lines(*map(note, range(5))), engine="spark")
        assert pending(graph) == 0
    assert len(recorder.asked) == len(server.requests) == 1


def test_tasks_that_reach_nobody_keep_to_their_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "openai")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("OMNIGRAPH_EMBED_CONCURRENCY", "8")
    monkeypatch.setenv("OMNIGRAPH_EMBED_REQUESTS_PER_MINUTE", "600")
    own, told = leases.Share(tasks=4), leases.Share(tasks=4, limits=Limits(200, 4_000))
    assert own.embedder()._read().limits == Limits(150)
    assert told.embedder()._read().limits == Limits(50, 1_000)
    assert told.embedder()._read().concurrency == 2


def test_who_has_no_secret_gets_no_lease(caplog: pytest.LogCaptureFixture) -> None:
    recorder = Recorder(Limits())
    stop = threading.Event()
    with serving(recorder, "127.0.0.1") as place:
        assert RemoteLimiter(place).acquire(7, stop)
        RemoteLimiter(place).pause(1.5)
        stranger = RemoteLimiter(LeasePlace(place.host, place.port, b"guessed"))
        with caplog.at_level(logging.WARNING), pytest.raises(EmbeddingError, match="no lease"):
            stranger.acquire(8, stop)
        assert "without the secret" in caplog.text
        assert place.secret.hex() not in f"{caplog.text} {place} {stranger}"
        assert repr(place.secret) not in repr(place)
    assert (recorder.asked, recorder.pauses) == ([7], [1.5])
    with pytest.raises(EmbeddingError, match="where the job was started") as caught:
        RemoteLimiter(place).acquire(7, stop)
    assert caught.value.retryable


def test_who_waits_for_a_lease_can_be_stopped() -> None:
    limiter = RateLimiter(Limits())
    limiter.pause(SECONDS)
    stop = threading.Event()
    with serving(limiter, "127.0.0.1") as place:
        waiting = threading.Thread(target=RemoteLimiter(place).acquire, args=(1, stop))
        waiting.start()
        stop.set()
        waiting.join(SECONDS)
        assert not waiting.is_alive()
    assert limiter.granted == 0


def test_an_address_of_another_machine_cannot_be_listened_at() -> None:
    elsewhere = serving(Recorder(Limits()), "192.0.2.1")  # an address for documentation
    with pytest.raises(ConfigError, match=r"cannot listen at 192\.0\.2\.1"), elsewhere:
        pass


def test_kept_vectors_are_found_wherever_they_were_put(tmp_path: Path) -> None:
    """Some joined, some not, of two dimensions; asked for in any order, with others among them."""
    kept = Scratch(open_store(str(tmp_path)), "vectors-main")
    rng = np.random.default_rng(1)
    keys = [rng.bytes(32) for _ in range(300)]
    vectors = rng.random((300, 6), np.float32)
    joined, single = PaidVectors(kept), PaidVectors(kept)
    for start in range(0, 200, 20):
        joined.put(keys[start : start + 20], vectors[start : start + 20])
    joined.put(keys[:3], vectors[:3, :2])
    joined.join()
    for start in range(200, 260, 30):
        single.put(keys[start : start + 30], vectors[start : start + 30])
    assert len(kept.names("vectors-")) == 4

    order = rng.permutation(300)
    asked = [keys[at] for at in order]
    found = dict.fromkeys(range(300))
    for places, values in PaidVectors(kept).iter_found(asked, 6):
        for place, value in zip(places, values, strict=True):
            found[int(order[place])] = value
    assert [at for at in range(300) if found[at] is None] == list(range(260, 300))
    np.testing.assert_array_equal(np.stack([found[at] for at in range(260)]), vectors[:260])
    assert len(list(PaidVectors(kept).iter_found(asked, 2))) > 0
    assert list(PaidVectors(kept).iter_found([], 6)) == []


def test_vectors_that_are_joined_while_somebody_looks_are_found(tmp_path: Path) -> None:
    kept = Scratch(open_store(str(tmp_path)), "vectors-main")
    keys = [bytes([number]) * 32 for number in range(6)]
    vectors = np.arange(24, dtype=np.float32).reshape(6, 4)
    writer = PaidVectors(kept)
    for number in range(6):
        writer.put(keys[number : number + 1], vectors[number : number + 1])
    looking = PaidVectors(kept).iter_found(keys, 4)
    found = dict(_rows(*next(looking)))
    writer.join()
    for some in looking:
        found.update(_rows(*some))
    np.testing.assert_array_equal(np.stack([found[number] for number in range(6)]), vectors)


def _rows(places: list[int], vectors: np.ndarray) -> list[tuple[int, np.ndarray]]:
    return list(zip(places, vectors, strict=True))


def test_parts_are_cut_by_rows_and_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: EmbeddingServer
) -> None:
    graph = with_notes(tmp_path / "graph", 12)
    monkeypatch.setattr(tasks, "_PART_BYTES", 3 * (len("note 1") + 4 * 8))
    fill(InProcessRunner(), graph.uri, 5, provider(server, OMNIGRAPH_EMBED_BATCH="64"))
    assert max(len(request.texts) for request in server.requests) == 3

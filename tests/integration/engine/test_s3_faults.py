"""An S3 store that loses answers, ignores conditions, refuses or is not there."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import (
    CommitNotFound,
    CommitOutcomeUnknown,
    GraphNotFound,
    StorageError,
)
from omnigraph_core.history import refs
from omnigraph_core.history.refs import BranchRef
from omnigraph_core.ids import new_ulid
from omnigraph_core.manifest.image import TableOperation
from omnigraph_core.manifest.requirements import requirements_of
from omnigraph_core.storage import session
from omnigraph_core.storage.objects import list_objects
from omnigraph_core.storage.session import open_store
from omnigraph_core.storage.staged import stage_append
from tests.support.counting_proxy import CountingProxy
from tests.support.graphs import (
    HOLDS,
    PART,
    Meanwhile,
    append_pair,
    append_parts,
    content,
    ids,
    new_graph,
    parts,
    update,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.manifest.changes import UpdateTable
    from tests.support.s3 import S3Server

CATALOG = "/__manifest/_versions/"


@pytest.fixture
def proxy(s3_server: S3Server) -> Iterator[CountingProxy]:
    with CountingProxy(s3_server.port) as proxy:
        yield proxy


@pytest.fixture
def direct(s3_root: str) -> Omnigraph:
    """A graph by the straight way."""
    og = new_graph(s3_root)
    append_pair(og, ["a"])
    return og


@pytest.fixture
def og(direct: Omnigraph, proxy: CountingProxy, monkeypatch: pytest.MonkeyPatch) -> Omnigraph:
    """The same graph through the proxy, by a client that gives up sooner."""
    monkeypatch.setattr(session, "_MAX_RETRIES", 1)
    monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.endpoint)
    return Omnigraph.open(direct.uri)


def staged(og: Omnigraph, id: str) -> UpdateTable:
    table = stage_append(og.table(og.snapshot(), PART), parts([id]))
    assert table is not None
    return update(PART, table, TableOperation.APPEND)


def test_one_lost_answer_to_a_publish(
    og: Omnigraph, direct: Omnigraph, proxy: CountingProxy
) -> None:
    proxy.lose_next_response("PUT", CATALOG)
    made = append_parts(og, ["b"])
    assert made.manifest_version == 3
    assert direct.snapshot().commit == made
    assert ids(direct, direct.snapshot()) == ["a", "b"], "once"
    append_parts(og, ["c"])
    assert ids(direct, direct.snapshot()) == ["a", "b", "c"]


def test_every_answer_to_a_publish_is_lost(
    og: Omnigraph, direct: Omnigraph, proxy: CountingProxy
) -> None:
    """The store can be read: it tells that the commit is there."""
    proxy.lose_next_response("PUT", CATALOG, times=None)
    made = append_parts(og, ["b"])
    assert direct.list_commits()[0] == made
    assert ids(direct, direct.snapshot()) == ["a", "b"]


def test_a_store_that_stops_answering_while_publishing(
    og: Omnigraph, direct: Omnigraph, proxy: CountingProxy
) -> None:
    """The commit lands, nobody is told: that is no failure, and its id finds it later."""
    change, chosen = staged(og, "b"), new_ulid()
    wanted = requirements_of(og.snapshot(), touched=[PART])

    def fall_silent() -> None:
        proxy.lose_next_response("PUT", CATALOG, times=None)
        for method in ("GET", "HEAD"):
            proxy.lose_next_response(method, "", times=None)

    with pytest.raises(CommitOutcomeUnknown, match=chosen) as caught:
        og.commit([change], [*wanted, Meanwhile(fall_silent)], commit_id=chosen)
    assert caught.value.details() == {"commit_id": chosen}
    assert not caught.value.retryable
    proxy.restore()
    assert og.get_commit(chosen).manifest_version == 3
    assert ids(direct, direct.snapshot()) == ["a", "b"]
    append_parts(og, ["c"])
    assert ids(direct, direct.snapshot()) == ["a", "b", "c"]


def test_a_store_that_is_gone_before_anything_is_published(
    og: Omnigraph, direct: Omnigraph, proxy: CountingProxy
) -> None:
    change, chosen = staged(og, "b"), new_ulid()
    wanted = requirements_of(og.snapshot(), touched=[PART])
    with pytest.raises(StorageError, match=og.uri) as caught:
        og.commit([change], [*wanted, Meanwhile(proxy.refuse_all)], commit_id=chosen)
    assert caught.value.retryable
    proxy.restore()
    with pytest.raises(CommitNotFound):
        og.get_commit(chosen)
    assert direct.snapshot().manifest_version == 2
    og.commit([change], wanted, commit_id=chosen)
    assert ids(direct, direct.snapshot()) == ["a", "b"]


@pytest.mark.parametrize("path", ["/data/", "/_versions/d", "/_transactions/"])
def test_lost_answers_while_staging(
    og: Omnigraph, direct: Omnigraph, proxy: CountingProxy, path: str
) -> None:
    proxy.lose_next_response("PUT", path)
    append_pair(og, ["b"])
    assert content(direct, direct.snapshot()) == content(og, og.snapshot())
    assert ids(direct, direct.snapshot(), HOLDS) == ["a", "b"]


def test_a_lost_answer_to_a_new_branch_or_tag(
    og: Omnigraph, direct: Omnigraph, proxy: CountingProxy
) -> None:
    """Asked again, the store says that it is there: it is ours."""
    proxy.lose_next_response("PUT", "/_refs/branches/")
    og.branch_create("review")
    proxy.lose_next_response("PUT", "/_refs/tags/")
    og.tag_create("v1")
    proxy.lose_next_response("PUT", "/_refs/manifests/")
    og.branch_create("other")
    append_parts(og, ["b"], "other")
    assert direct.branch_list() == ("main", "other", "review")
    assert ids(direct, direct.snapshot("review")) == ["a"]
    assert ids(direct, direct.snapshot("other")) == ["a", "b"]
    assert [tag.tag for tag in direct.tag_list()] == ["v1"]


@pytest.mark.parametrize("path", [CATALOG, "/__manifest/data/", "/nodes/"])
def test_a_lost_answer_to_init(
    s3_root: str, proxy: CountingProxy, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.endpoint)
    proxy.lose_next_response("PUT", path)
    og = new_graph(s3_root)
    append_pair(og, ["a"])
    assert len(og.list_commits()) == 2
    assert ids(Omnigraph.open(s3_root), og.snapshot()) == ["a"]


def test_lost_answers_to_reads(og: Omnigraph, proxy: CountingProxy) -> None:
    for method in ("GET", "HEAD"):
        proxy.lose_next_response(method, "/")
    assert ids(og, og.snapshot()) == ["a"]


def test_a_lost_answer_to_a_run(og: Omnigraph, direct: Omnigraph, proxy: CountingProxy) -> None:
    proxy.lose_next_response("PUT", "/_graph_runs.lance/_versions/", times=2)
    run = og.begin_run(operation_hash="load")
    assert direct.list_runs() == (run,)
    proxy.lose_next_response("PUT", "/_graph_runs.lance/_versions/")
    ended = og.abort_run(run.run_id)
    assert direct.list_runs() == (ended,)


def test_a_store_without_conditional_writes(
    s3_root: str, proxy: CountingProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two writers would both win there: no graph is made, nothing is left behind."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.endpoint)
    proxy.ignore_if_none_match()
    with pytest.raises(StorageError, match="ignores conditional writes") as caught:
        new_graph(s3_root)
    assert s3_root in caught.value.message
    assert "412" in str(caught.value.hint)
    assert list_objects(open_store(s3_root), "") == ()
    proxy.restore()
    append_pair(new_graph(s3_root), ["a"])


def test_nobody_listens(s3_root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: nobody else gets the port
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{taken.getsockname()[1]}")
        monkeypatch.setattr(session, "_MAX_RETRIES", 1)
        for attempt in (Omnigraph.open, new_graph):
            with pytest.raises(StorageError, match=s3_root) as caught:
                attempt(s3_root)
            assert caught.value.retryable
            assert "check endpoint and network" in str(caught.value.hint)


def test_an_open_graph_whose_store_goes_away(og: Omnigraph, proxy: CountingProxy) -> None:
    snapshot = og.snapshot()
    proxy.refuse_all()
    attempts = [
        og.snapshot,
        og.branch_list,
        og.list_commits,
        lambda: ids(og, snapshot, HOLDS),
        lambda: og.branch_create("x"),
        lambda: og.tag_create("x"),
    ]
    for attempt in attempts:
        with pytest.raises(StorageError) as caught:
            attempt()
        assert type(caught.value) is StorageError, "never taken for something that is not there"
        assert caught.value.retryable
        assert og.uri in caught.value.message
    proxy.restore()
    assert ids(og, og.snapshot()) == ["a"]
    assert (og.branch_list(), og.tag_list()) == (("main",), ())


@pytest.mark.parametrize("name", ["AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID"])
def test_wrong_credentials(direct: Omnigraph, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    with monkeypatch.context() as patch:
        patch.setenv(name, "guessed")
        for attempt in (Omnigraph.open, new_graph):
            with pytest.raises(StorageError, match=direct.uri) as caught:
                attempt(direct.uri)
            assert not caught.value.retryable
            assert caught.value.hint == "check permissions and credentials of this store"
    assert ids(direct, direct.snapshot()) == ["a"]


def test_no_such_bucket(s3_root: str) -> None:
    address = "s3://no-such-bucket-here/graph"
    with pytest.raises(GraphNotFound, match=address):
        Omnigraph.open(address)


def test_three_hundred_branches_are_listed_by_one_request(
    og: Omnigraph, proxy: CountingProxy
) -> None:
    store = open_store(og.uri)
    names = [f"team/{number:03d}" for number in range(300)]

    def create(name: str) -> bool:
        incarnation = new_ulid()
        ref = BranchRef(name, incarnation, f"_refs/manifests/{incarnation}", None, 0, None)
        return refs.put_branch(store, ref)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(create, names))
    proxy.clear()
    assert og.branch_list() == ("main", *names)
    assert proxy.summary() == {"GET list": 1}

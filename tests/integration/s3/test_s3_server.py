"""The S3 server and the proxy of the test suite do what the other tests take for granted."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import lance
import obstore
import pyarrow as pa
import pytest
from obstore.exceptions import (
    AlreadyExistsError,
    GenericError,
    PermissionDeniedError,
    PreconditionError,
)

from tests.support.processes import spawn
from tests.support.s3 import GRPC_OFFSET, S3Server, s3_store
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from obstore import UpdateVersion
    from obstore.store import S3Store

    from tests.support.counting_proxy import CountingProxy


@pytest.fixture
def direct(s3_server: S3Server) -> S3Store:
    return s3_store(s3_server.new_bucket(), s3_server.endpoint)


@pytest.fixture
def proxied(s3_server: S3Server, proxy: CountingProxy) -> S3Store:
    return s3_store(s3_server.new_bucket(), proxy.endpoint)


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_objects_are_kept_and_listed(direct: S3Store) -> None:
    obstore.put(direct, "parts/a b.json", b"{}")
    assert obstore.get(direct, "parts/a b.json").bytes() == b"{}"
    assert [found["path"] for found in obstore.list(direct).collect()] == ["parts/a b.json"]
    obstore.delete(direct, "parts/a b.json")
    with pytest.raises(FileNotFoundError):
        obstore.get(direct, "parts/a b.json")


def test_put_if_absent_has_one_winner(direct: S3Store) -> None:
    def wins(writer: int) -> bool:
        try:
            obstore.put(direct, "claim", str(writer).encode(), mode="create")
        except AlreadyExistsError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(wins, range(8)))
    assert results.count(True) == 1
    assert obstore.get(direct, "claim").bytes() == str(results.index(True)).encode()


def test_put_if_unchanged(direct: S3Store) -> None:
    first: UpdateVersion = {"e_tag": obstore.put(direct, "claim", b"1")["e_tag"]}
    obstore.put(direct, "claim", b"2", mode=first)
    with pytest.raises(PreconditionError):
        obstore.put(direct, "claim", b"3", mode=first)
    assert obstore.get(direct, "claim").bytes() == b"2"


def test_wrong_credentials_are_refused(s3_server: S3Server) -> None:
    stranger = s3_store(s3_server.bucket, s3_server.endpoint, secret_key="guess")
    with pytest.raises(PermissionDeniedError):
        obstore.put(stranger, "x", b"")


def test_a_graph_root_is_empty_and_writable(graph_root: str) -> None:
    """The fixture that behaviour suites run on, once per store."""
    with pytest.raises(ValueError, match="not found"):
        lance.dataset(f"{graph_root}/parts")
    lance.write_dataset(pa.table({"sku": ["a"]}), f"{graph_root}/parts")
    assert lance.dataset(f"{graph_root}/parts").to_table().to_pylist() == [{"sku": "a"}]


def test_the_server_lives_as_long_as_its_users(tmp_path: Path) -> None:
    """Started by a process that is then killed; used by another; gone with the last."""
    directory = tmp_path / "s3"
    with spawn("tests.integration.s3.server_user:hold", str(directory)) as starter:
        port = int(starter.next_line(timeout=300))
        with S3Server(directory) as server:
            assert server.port == port
            starter.kill()
            assert starter.wait().returncode == -9
            store = s3_store(server.bucket, server.endpoint)
            obstore.put(store, "still", b"here")
            assert obstore.get(store, "still").bytes() == b"here"
    wait_until(lambda: not is_open(port), "the server to end")
    wait_until(lambda: not (directory / "data").exists(), "its data to be removed")
    assert not (directory / "server.json").exists()
    assert not Path("/tmp", f"seaweedfs-s3-grpc-{port + GRPC_OFFSET}.sock").exists()


def test_a_start_nobody_waits_for_is_given_up(tmp_path: Path) -> None:
    """The process that starts the server is killed before the server answers."""
    directory = tmp_path / "s3"
    with spawn("tests.integration.s3.server_user:hold", str(directory)):
        wait_until((directory / "data").exists, "the server to begin")
    wait_until(lambda: not (directory / "data").exists(), "the server to be given up")
    assert not (directory / "server.json").exists()


def test_requests_are_counted(proxied: S3Store, proxy: CountingProxy) -> None:
    obstore.put(proxied, "parts/a", b"12345")
    obstore.get(proxied, "parts/a").bytes()
    obstore.get_range(proxied, "parts/a", start=1, end=3)
    obstore.head(proxied, "parts/a")
    obstore.list(proxied, "parts").collect()
    obstore.delete(proxied, ["parts/a", "parts/b"])
    assert proxy.summary() == {"GET": 2, "GET list": 1, "HEAD": 1, "POST delete": 1, "PUT": 1}
    seen = [(request.method, request.status, request.sent) for request in proxy.requests[:4]]
    assert seen == [("PUT", 200, 5), ("GET", 200, 0), ("GET", 206, 0), ("HEAD", 200, 0)]
    assert [request.received for request in proxy.requests[:4]] == [0, 5, 2, 0]
    assert proxy.requests[0].path.endswith("/parts/a")
    proxy.clear()
    assert proxy.requests == ()


def test_large_objects_pass_unharmed(proxied: S3Store, proxy: CountingProxy) -> None:
    """Above the part size of the server and of a multipart upload of the client."""
    content = bytes(range(256)) * (48 * 1024)
    obstore.put(proxied, "large", content)
    assert obstore.get(proxied, "large").bytes() == content
    assert sum(request.sent for request in proxy.requests) >= len(content)


def test_many_clients_at_once(proxied: S3Store, proxy: CountingProxy) -> None:
    def round_trip(number: int) -> bool:
        content = str(number).encode()
        obstore.put(proxied, f"many/{number}", content)
        return obstore.get(proxied, f"many/{number}").bytes() == content

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(round_trip, range(40)))
    assert proxy.summary() == {"GET": 40, "PUT": 40}


def test_a_lost_response_leaves_the_object(proxied: S3Store, proxy: CountingProxy) -> None:
    proxy.lose_next_response("PUT", "/claim")
    obstore.put(proxied, "other", b"")
    with pytest.raises(GenericError):
        obstore.put(proxied, "claim", b"mine", mode="create")
    assert obstore.get(proxied, "claim").bytes() == b"mine"
    with pytest.raises(AlreadyExistsError):
        obstore.put(proxied, "claim", b"again", mode="create")
    assert [request.status for request in proxy.requests] == [200, 200, 200, 412]


def test_every_response_is_lost_until_restored(proxied: S3Store, proxy: CountingProxy) -> None:
    proxy.lose_next_response("GET", "/claim", times=None)
    obstore.put(proxied, "claim", b"mine")
    for _ in range(3):
        with pytest.raises(GenericError):
            obstore.get(proxied, "claim")
    assert [request.received for request in proxy.requests] == [0, 0, 0, 0]
    proxy.restore()
    assert obstore.get(proxied, "claim").bytes() == b"mine"


def test_a_store_that_is_gone(proxied: S3Store, direct: S3Store, proxy: CountingProxy) -> None:
    obstore.put(proxied, "claim", b"mine")
    proxy.refuse_all()
    for _ in range(2):
        with pytest.raises(GenericError):
            obstore.get(proxied, "claim")
    assert proxy.summary() == {"PUT": 1}, "a refused request never reached the store"
    proxy.restore()
    assert obstore.get(proxied, "claim").bytes() == b"mine"


def test_a_store_without_conditions(proxied: S3Store, proxy: CountingProxy) -> None:
    obstore.put(proxied, "parts/a b", b"first", mode="create")
    proxy.ignore_if_none_match()
    obstore.put(proxied, "parts/a b", b"second", mode="create")
    assert obstore.get(proxied, "parts/a b").bytes() == b"second"
    proxy.restore()
    with pytest.raises(AlreadyExistsError):
        obstore.put(proxied, "parts/a b", b"third", mode="create")
    assert [request.status for request in proxy.requests] == [200, 200, 200, 412]


def test_a_slow_store(proxied: S3Store, proxy: CountingProxy) -> None:
    """A request that is held back has not reached the store, and never does if the line breaks."""
    obstore.put(proxied, "claim", b"old")
    proxy.delay(3600)
    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(obstore.put, proxied, "claim", b"new")
        wait_until(lambda: proxy.held, "the request to come to the proxy")
        proxy.refuse_all()
        assert isinstance(held.exception(), GenericError)
    proxy.restore()
    proxy.delay(0.01)
    assert obstore.get(proxied, "claim").bytes() == b"old"
    assert proxy.summary() == {"GET": 1, "PUT": 1}


def test_lance_goes_through_the_proxy(
    s3_root: str, s3_server: S3Server, proxy: CountingProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment is read at every open, so a test can put a proxy before a live graph."""
    lance.write_dataset(pa.table({"sku": ["a"]}), f"{s3_root}/parts")
    monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.endpoint)
    assert lance.dataset(f"{s3_root}/parts").count_rows() == 1
    assert proxy.summary() == {"GET": 1, "GET list": 1}
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3_server.endpoint)
    assert lance.dataset(f"{s3_root}/parts").count_rows() == 1
    assert proxy.summary() == {"GET": 1, "GET list": 1}

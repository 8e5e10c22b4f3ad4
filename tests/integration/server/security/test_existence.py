"""To learn what is there: who may not read learns nothing from refusals."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from tests.integration.server.security.asking import asking

if TYPE_CHECKING:
    from omnigraph_core.engine.omnigraph import Omnigraph
    from tests.support.server import Client


def told(answer: Any, name: str) -> object:
    """An answer without what differs from request to request, and the name that was asked for."""
    body = answer.json()
    body.pop("request_id")
    headers = sorted(set(answer.headers) - {"date"})
    text = re.sub("__run__[0-9A-Z]{26}", "a new run", json.dumps(body))
    return answer.status_code, headers, text.replace(name, "…")


def test_refusals_do_not_tell_what_there_is(eve: Client, stock: Omnigraph) -> None:
    """A commit or a tag is refused by the name of its branch; a branch that is there as any."""
    head = stock.head_commit_id_for_branch()
    pairs = [("draft", "nowhere"), ("v1", "v9"), (head, "01HZY000000000000000000000")]
    for there, missing in pairs:
        for known, unknown in zip(asking(there), asking(missing), strict=True):
            method, path, options = known
            if path.startswith(("/runs/", "/graphs/")):
                continue  # told to everybody who has a token
            answers = [eve.request(m, p, **o) for m, p, o in (known, unknown)]
            what = (method, path, options)
            assert answers[0].status_code in (400, 403, 404), what
            assert answers[0].status_code == answers[1].status_code, what
            if there == "draft":
                assert told(answers[0], there) == told(answers[1], missing), what


def test_stored_queries_are_not_there_for_those_who_may_not(eve: Client, ben: Client) -> None:
    assert ben.post("/queries/skus").status_code == 200
    for suffix, headers in (("", {}), ("/if-graph-commit", {"Omnigraph-If-Graph-Commit": "x"})):
        bodies: tuple[Any, ...] = (
            None, {}, {"params": {"sku": 7}}, {"branch": "nowhere"}, {"snapshot": "x"},
            {"params": []},
        )  # fmt: skip
        for body in bodies:
            known, unknown = (
                eve.post(f"/queries/{name}{suffix}", body, headers=headers)
                for name in ("skus", "nosuch")
            )
            assert known.status_code in (404, 422)
            assert told(known, "skus") == told(unknown, "nosuch")
    assert eve.get("/queries").json() == {"queries": []}


def test_figures_are_for_those_with_a_token(guarded: Client, eve: Client) -> None:
    assert guarded.get("/metrics").status_code == 401
    text = eve.get("/metrics").text
    assert "omnigraph_http_requests_total" in text
    assert not re.search("draft|stock|token-of|ann|ben", text)


def test_browsers_of_other_sites_are_told_nothing(guarded: Client, ben: Client) -> None:
    origin = {"Origin": "https://elsewhere.example.org", "Access-Control-Request-Method": "POST"}
    for answer in (
        guarded.request("OPTIONS", "/change", headers=origin),
        ben.get("/branches", headers=origin),
        guarded.get("/branches", headers=origin),
    ):
        assert not [name for name in answer.headers if name.startswith("access-control")]

"""A mutation asks the store for what it needs and no more, however much a table holds."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tests.integration.write.appends import append
from tests.integration.write.test_commit_requests import counted
from tests.support.graphs import append_parts, new_graph
from tests.support.stores import new_prefix

if TYPE_CHECKING:
    from tests.support.s3 import S3Server

INSERT = "query run($sku: String) { insert Part { sku: $sku } }"
UPDATE = "query run($sku: String) { update Part set { stock: 1 } where sku = $sku }"
LINK = 'query run($sku: String) { insert Holds { from: "b", to: $sku } }'
NONE = "query run($sku: String) { delete Part where sku = $sku }"


def test_a_keyed_insert_costs_an_append_and_one_look(s3_server: S3Server) -> None:
    with counted(s3_server) as count:
        og = new_graph(new_prefix(s3_server.bucket))
        og.mutate('query bin() { insert Bin { code: "b" } }')
        append_parts(og, [f"part {number}" for number in range(3_000)])
        og.optimize()

        def cost(text: str, name: str) -> int:
            """Of the third of three: by then what does not change is known."""
            return [count(partial(og.mutate, text, {"sku": f"{name} {n}"})) for n in range(3)][-1]

        plain = [count(partial(append, og._context, f"plain {n}")) for n in range(3)][-1]
        assert cost(INSERT, "new") <= plain + 1
        assert cost(INSERT, "new") <= plain + 1, "the same again, in place of the first"
        assert cost(UPDATE, "part") <= plain + 6
        assert cost(LINK, "part") <= plain + 1
        assert cost(NONE, "nobody") <= 2

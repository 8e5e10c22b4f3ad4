"""Addresses of graphs do not get out, in whatever spelling they are told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.server.hiding import hiding_of
from tests.support.cases import each

if TYPE_CHECKING:
    from pathlib import Path


@each(
    ("address", "told", "shown"),
    [
        ("/data/a b", "no file /data/a b/nodes", "no file stock/nodes"),
        ("/data/a b", "no file file:///data/a%20b/nodes", "no file stock/nodes"),
        ("/data/a b", "no object data/a%20b/nodes", "no object stock/nodes"),
        ("file:///data/x/", "at /data/x", "at stock"),
        ("/data", "the data at /data", "the data at stock"),
        ("s3://lake/deep/x/", "at s3://lake/deep/x/nodes", "at stock/nodes"),
        ("s3://lake/deep/x", "at http://store/lake/deep/x/y", "at http://store/stock/y"),
    ],
)
def test_every_spelling_is_hidden(address: str, told: str, shown: str) -> None:
    document = {"error": told, "details": {"found": (told, 7, None)}}
    hidden = hiding_of([("stock", address)]).over(document)
    assert hidden == {"error": shown, "details": {"found": [shown, 7, None]}}


def test_a_graph_below_another_one_keeps_its_own_name(tmp_path: Path) -> None:
    hiding = hiding_of([("all", str(tmp_path)), ("stock", str(tmp_path / "stock"))])
    assert hiding.over(f"{tmp_path}/stock/nodes {tmp_path}/nodes") == "stock/nodes all/nodes"


def test_a_way_there_is_hidden_as_well_as_the_place(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    hiding = hiding_of([("stock", str(tmp_path / "link"))])
    assert hiding.over(f"{tmp_path}/link {tmp_path}/real") == "stock stock"

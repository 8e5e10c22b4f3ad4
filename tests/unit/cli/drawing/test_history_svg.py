"""Commits as a picture."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from omnigraph_core.cli.drawing.history_svg import history_svg
from omnigraph_core.cli.drawing.lanes import Place, arrange
from tests.unit.cli.drawing.histories import history

SVG = "{http://www.w3.org/2000/svg}"


def described(place: Place) -> tuple[str, str]:
    return f"<{place.commit.graph_commit_id}>", "load"


def drawn(text: str) -> ET.Element:
    return ET.fromstring(history_svg(arrange(history(text)), described, title="stock"))


def test_a_dot_for_each_commit_and_a_line_to_each_parent() -> None:
    root = drawn("a b:a c:a d:b+c")
    dots = [(item.get("cx"), item.get("cy")) for item in root.iter(f"{SVG}circle")]
    assert dots == [("20", "33"), ("38", "59"), ("20", "85"), ("20", "111")]
    lines = [item.get("d") or "" for item in root.iter(f"{SVG}path")]
    assert [line.partition("C")[0].partition("L")[0] for line in lines] == [
        "M20 33",
        "M20 33",
        "M38 59",
        "M20 85",
    ]
    assert all(line.endswith("20 111") for line in lines[2:])
    texts = [item.text for item in root.iter(f"{SVG}text")]
    assert texts[::2] == ["<d>", "<c>", "<b>", "<a>"]


def test_lines_to_commits_that_are_not_shown_go_to_the_edge() -> None:
    root = drawn("d:b+c")
    height = root.get("height")
    lines = [item.get("d") or "" for item in root.iter(f"{SVG}path")]
    assert [line.split()[-1] for line in lines] == [height, height]


def test_nothing() -> None:
    assert not list(drawn("").iter(f"{SVG}circle"))

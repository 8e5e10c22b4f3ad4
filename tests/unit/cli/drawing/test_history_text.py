"""Lanes as characters."""

from __future__ import annotations

from omnigraph_core.cli.drawing.history_text import BOXES, PLAIN, Strokes, history_rows
from omnigraph_core.cli.drawing.lanes import arrange
from tests.support.cases import each
from tests.unit.cli.drawing.histories import history


def drawn(text: str, strokes: Strokes) -> list[str]:
    rows = history_rows(arrange(history(text)), strokes)
    return [
        row.text.rstrip() if row.place is None else f"{row.text}{row.place.commit.graph_commit_id}"
        for row in rows
    ]


@each(
    ("text", "boxes", "plain"),
    [
        ("a b:a", ["● b", "● a"], ["* b", "* a"]),
        (
            "a b:a c:a d:b+c",
            ["● d", "├─╮", "│ ● c", "● │ b", "├─╯", "● a"],
            ["* d", "|\\", "| * c", "* | b", "|/", "* a"],
        ),
        (
            "a b:a c:a d:a e:b+c f:e+d",
            [
                "● f",
                "├─╮",
                "● │ e",
                "├─│─╮",
                "│ ● │ d",
                "│ │ ● c",
                "● │ │ b",
                "├─╯ │",
                "├───╯",
                "● a",
            ],
            [
                "* f",
                "|\\",
                "* | e",
                "|-|\\",
                "| * | d",
                "| | * c",
                "* | | b",
                "|/  |",
                "|--/",
                "* a",
            ],
        ),
        (
            "a b:a c:a d:b+c e:c",
            ["● e", "│ ● d", "├─┤", "● │ c", "│ ● b", "├─╯", "● a"],
            ["* e", "| * d", "|/|", "* | c", "| * b", "|/", "* a"],
        ),
        ("d:b+c", ["● d", "├─╮", "┊ ┊"], ["* d", "|\\", ": :"]),
        ("", [], []),
    ],
)
def test_pictures(text: str, boxes: list[str], plain: list[str]) -> None:
    assert drawn(text, BOXES) == boxes
    assert drawn(text, PLAIN) == plain


def test_a_lane_to_the_left() -> None:
    """A free lane left of a merge is taken for its other parent."""
    text = "a b m:a+b p t:m s:p"
    assert drawn(text, BOXES)[2:] == ["● │ p", "  ● m", "╭─┤", "● │ b", "  ● a"]
    assert drawn(text, PLAIN)[2:] == ["* | p", "  * m", " /|", "* | b", "  * a"]


def test_plain_pictures_are_plain() -> None:
    assert "".join(drawn("a b:a c:a d:b+c e:c+d", PLAIN)).isascii()


def test_cells_know_their_lane() -> None:
    rows = list(history_rows(arrange(history("a b:a c:a d:b+c")), BOXES))
    assert [cell for cell in rows[1].cells if cell[0] != " "] == [("├", 0), ("─", 1), ("╮", 1)]

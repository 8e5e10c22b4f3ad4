"""A schema as Mermaid text and as SVG."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from omnigraph_core.cli.drawing.mermaid import mermaid
from omnigraph_core.cli.drawing.schema_model import Drawing, drawing_of
from omnigraph_core.cli.drawing.schema_svg import schema_svg
from omnigraph_core.schema.build import compile_schema

SCHEMA = """
interface Named { name: String }
node Part implements Named {
  sku: String @key
  email: String? @unique
  state: enum(new, used)?
  tags: [String]?
  vector: Vector(4)
}
node Bin { code: String @key }
node Note { text: String }
edge Holds: Bin -> Part @card(1..) { count: I64? since: Date }
edge Home: Part -> Bin @card(0..1)
edge Replaces: Part -> Part
edge About: Note -> Part @card(1..1)
"""


@pytest.fixture
def drawing() -> Drawing:
    return drawing_of(compile_schema(SCHEMA))


def texts(picture: str) -> list[str]:
    root = ET.fromstring(picture)
    return [item.text or "" for item in root.iter("{http://www.w3.org/2000/svg}text")]


def frames(picture: str) -> list[tuple[float, ...]]:
    """x, y, width and height of the boxes."""
    root = ET.fromstring(picture)
    found = [item.attrib for item in root.iter("{http://www.w3.org/2000/svg}rect")]
    sides = ("x", "y", "width", "height")
    return [tuple(float(item[side]) for side in sides) for item in found if "rx" in item]


def test_mermaid(drawing: Drawing) -> None:
    assert mermaid(drawing) == (
        "erDiagram\n"
        "  Part {\n"
        "    String sku PK\n"
        '    String email UK "optional"\n'
        '    enum state "new | used, optional"\n'
        '    String[] tags "optional"\n'
        "    Vector(4) vector\n"
        "    String name\n"
        "  }\n"
        "  Bin {\n"
        "    String code PK\n"
        "  }\n"
        "  Note {\n"
        "    String text\n"
        "  }\n"
        '  Named["«interface» Named"] {\n'
        "    String name\n"
        "  }\n"
        '  Bin }o--|{ Part : "Holds (count, since)"\n'
        '  Part }o--o| Bin : "Home"\n'
        '  Part }o--o{ Part : "Replaces"\n'
        '  Note }o--|| Part : "About"\n'
        '  Part }o..|| Named : "implements"\n'
    )


def test_svg_says_everything(drawing: Drawing) -> None:
    shown = texts(schema_svg(drawing, title="stock"))
    for text in (
        "Part",
        "sku: String key",
        "email: String? unique",
        "state: enum(new, used)?",
        "«interface» Named",
        "Holds 1.. (count, since)",
        "Home 0..1",
        "Replaces",
        "About 1..1",
    ):
        assert text in shown


def test_arrows_point_at_their_target(drawing: Drawing) -> None:
    picture = schema_svg(drawing, title="stock")
    # Holds and Home lead there and back: one of them has its head at the left.
    assert picture.count("marker-start=") == 1
    assert picture.count('marker-end="url(#head)"') == 3
    assert picture.count('marker-end="url(#hollow)"') == 1


def test_boxes_do_not_overlap(drawing: Drawing) -> None:
    boxes = frames(schema_svg(drawing, title="stock"))
    assert len(boxes) == 4
    for place, (x, y, width, height) in enumerate(boxes):
        for other_x, other_y, other_width, other_height in boxes[:place]:
            is_beside = x + width <= other_x or other_x + other_width <= x
            is_below = y + height <= other_y or other_y + other_height <= y
            assert is_beside or is_below


def test_markup_in_names_is_text() -> None:
    catalog = compile_schema("node Part { sku: String @key state: enum(a, b) }")
    picture = schema_svg(drawing_of(catalog), title='<a href="x">&')
    title = ET.fromstring(picture).find("{http://www.w3.org/2000/svg}title")
    assert title is not None
    assert title.text == '<a href="x">&'


def test_long_types_are_cut() -> None:
    values = ", ".join(f"value{number}" for number in range(20))
    catalog = compile_schema(f"node Part {{ sku: String @key state: enum({values}) }}")
    (shown,) = [
        text for text in texts(schema_svg(drawing_of(catalog), title="t")) if "enum" in text
    ]
    assert shown.endswith("…")
    assert len(shown) < 60

"""What the command line spells out equals what the engine takes."""

from __future__ import annotations

from typing import get_args

import pytest
import typer

from omnigraph_core.cli import options
from omnigraph_core.cli.options import Embed, Format, Mode, embed_choice
from omnigraph_core.cli.progress import ORDER
from omnigraph_core.engine import beyond
from omnigraph_core.manifest.image import MAIN
from omnigraph_core.write import sources
from omnigraph_core.write.embed import EmbedMode
from omnigraph_core.write.load_model import LoadMode
from omnigraph_core.write.progress import Step
from tests.support.cases import each


@pytest.mark.parametrize(
    ("spelled", "known"),
    [(Mode, LoadMode), (Format, sources.Format), (Embed, EmbedMode)],
)
def test_choices(spelled: object, known: type[LoadMode]) -> None:
    assert list(get_args(spelled)) == [str(member) for member in known]


def test_engines() -> None:
    assert set(get_args(options.Engine)) == set(beyond.ENGINES)


def test_steps_and_branch() -> None:
    assert list(Step) == list(ORDER)
    assert options.MAIN == MAIN


@each(
    ("embed", "is_off", "chosen"),
    [(None, False, "now"), ("defer", False, "defer"), (None, True, "off"), ("off", True, "off")],
)
def test_embed_choice(embed: Embed | None, is_off: bool, chosen: str) -> None:
    assert embed_choice(embed, is_off=is_off) == chosen


def test_embed_choices_that_contradict_each_other() -> None:
    with pytest.raises(typer.BadParameter, match="--embed defer exclude"):
        embed_choice("defer", is_off=True)

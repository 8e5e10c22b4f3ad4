"""The example as a user brings it in: a graph, a dropped file, and three queries."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from omnigraph_assets.local.places import EXAMPLE, NAME, ROOT, Places
from omnigraph_assets.local.web import ask
from omnigraph_assets.resources.landing import LOADED, QUARANTINE, REASON
from omnigraph_core.errors import GraphNotFound

FILE: Final = f"{NAME}.jsonl"
_COUNT: Final = """query incidents() {
  match { $i: Incident }
  return { $i.severity as severity, count($i) as incidents }
  order { severity }
}"""


@dataclass(frozen=True, slots=True)
class Answer:
    """What was asked, in words, and the rows that came."""

    question: str
    rows: tuple[dict[str, Any], ...]


def make_graph(places: Places) -> bool:
    """Make the graph unless it is there; whether it was made."""
    from omnigraph_assets.config import ACTOR  # slow to import
    from omnigraph_core.engine.omnigraph import Omnigraph

    try:
        Omnigraph.open(str(places.graph)).close()
    except GraphNotFound:
        schema = (EXAMPLE / "schema.pg").read_text()
        # As the platform itself: commits of others are shown to Dagster as news, and this is none.
        Omnigraph.init(str(places.graph), schema, actor=ACTOR).close()
        return True
    return False


def drop_example(places: Places) -> bool:
    """Drop the file of the example unless that was done before; whether it was."""
    folders = (places.drops / folder / "main" for folder in ("", LOADED, QUARANTINE))
    if any((folder / FILE).exists() for folder in folders):
        return False
    generate = ("-m", f"examples.{NAME}.generate", "--out", str(places.drops / "main" / FILE))
    # In a session of its own: Ctrl-C is for whoever waits for it.
    subprocess.run([sys.executable, *generate], cwd=ROOT, check=True, start_new_session=True)
    return True


def refusal(places: Places) -> str | None:
    """Why the file of the example was put away, if it was."""
    reason = places.drops / QUARANTINE / "main" / f"{FILE}{REASON}"
    return reason.read_text() if reason.exists() else None


def run_demo_queries(places: Places) -> Iterator[Answer]:
    """Run a traversal, a hybrid search and a query of an earlier commit."""
    server = places.server_url

    def stored(query: str, **params: object) -> tuple[dict[str, Any], ...]:
        return tuple(ask(f"{server}/queries/{query}", {"params": params})["rows"])

    yield Answer(
        "Traversal: who discharges into the water above incident IN-2030-1?",
        stored("suspects", number="IN-2030-1"),
    )
    yield Answer(
        "Hybrid search: incidents of the Alder like `dead fish and no oxygen`",
        stored("similar_incidents", words="dead fish and no oxygen", river="alder"),
    )
    first = ask(f"{server}/commits?branch=main")["commits"][-1]["graph_commit_id"]
    now = ask(f"{server}/query", {"query": _COUNT, "branch": "main"})["rows"]
    then = ask(f"{server}/query", {"query": _COUNT, "snapshot": first})["rows"]
    before = {row["severity"]: row["incidents"] for row in then}
    yield Answer(
        f"Time travel: incidents at commit {first}, the first one, and now",
        tuple(
            {
                "severity": row["severity"],
                "then": before.get(row["severity"], 0),
                "now": row["incidents"],
            }
            for row in now
        ),
    )


def table_of(answer: Answer) -> str:
    """The answer as lines.

    >>> print(table_of(Answer("How many?", ({"kind": "mill", "n": 2}, {"kind": "farm", "n": 10}))))
    How many?
      kind | n
      mill | 2
      farm | 10
    """
    if not answer.rows:
        return f"{answer.question}\n  (no rows)"
    lines = [list(answer.rows[0]), *([_text(v) for v in row.values()] for row in answer.rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = (" | ".join(map(str.ljust, line, widths)).rstrip() for line in lines)
    return "\n  ".join([answer.question, *padded])


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def dropped(places: Places) -> Path:
    """Where files for main are dropped."""
    return places.drops / "main"

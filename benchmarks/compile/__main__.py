"""Parse, check and lower a 60-query file; compile one query warm; import and first compile cold.

Every figure is the median of several runs, shown in milliseconds and as a multiple of a calibration
loop timed in the same run, which is what can be compared between machines. `--check` exits 1 when a
budget is exceeded.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph_core.diagnostics import Source
from omnigraph_core.ir.compile import compile_checked, compile_file, compile_one
from omnigraph_core.query.check import check_queries
from omnigraph_core.query.parse import parse_queries
from omnigraph_core.schema.build import compile_schema

if TYPE_CHECKING:
    from collections.abc import Callable

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "maintenance"
QUERIES = 60
TWO_HOPS = """
query suppliers_of_machine($serial: String, $least: I32) {
  match {
    $m: Machine { serial: $serial }
    $m $fit:builtFrom $p
    $p suppliedBy $s
    $fit.quantity >= $least
    $s.email is not null
  }
  return { $p.sku, $p.name, $s.name as supplier, $fit.quantity }
  order { supplier, $p.sku desc }
  limit 20
}
"""
BUDGETS_MS = {"warm compile, two hops": 3.0, "60 queries: parse + check + lower": 250.0}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit 1 when a budget is exceeded")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    arguments = parser.parse_args()
    figures = measure()
    loop = calibration()
    report = {
        name: {"ms": round(ms, 3), "ratio": round(ms / loop, 2), "budget_ms": BUDGETS_MS.get(name)}
        for name, ms in figures.items()
    }
    if arguments.json:
        print(json.dumps(report, indent=2))
    else:
        for name, row in report.items():
            budget = f"  (budget {row['budget_ms']} ms)" if row["budget_ms"] else ""
            print(f"{name:<42} {row['ms']:>9.3f} ms  {row['ratio']:>8.2f} x loop{budget}")
    exceeded = [name for name, budget in BUDGETS_MS.items() if figures[name] > budget]
    return 1 if arguments.check and exceeded else 0


def measure() -> dict[str, float]:
    """Median milliseconds by name."""
    schema_text = (EXAMPLE / "schema.pg").read_text()
    catalog = compile_schema(schema_text)
    text = sixty_queries()
    parsed = parse_queries(text)
    source = Source(text)
    checked = check_queries(parsed, catalog, source).require()
    assert len(checked) == QUERIES
    return {
        "cold: import and compile one query": cold(
            "import omnigraph_core.ir.compile", compiles=True
        ),
        "cold: import omnigraph_core": cold("import omnigraph_core"),
        "schema: parse + check": timed(lambda: compile_schema(schema_text), 20),
        "60 queries: parse": timed(lambda: parse_queries(text), 10),
        "60 queries: check": timed(lambda: check_queries(parsed, catalog, source), 10),
        "60 queries: lower + rules": timed(
            lambda: [compile_checked(query, catalog) for query in checked], 10
        ),
        "60 queries: parse + check + lower": timed(lambda: compile_file(text, catalog), 10),
        "warm compile, two hops": timed(lambda: compile_one(TWO_HOPS, catalog), 200),
    }


def sixty_queries() -> str:
    """The example's queries repeated under new names until there are sixty."""
    base = (EXAMPLE / "queries.gq").read_text()
    names = re.findall(r"^query (\w+)", base, re.MULTILINE)
    copies = -(-QUERIES // len(names))
    whole = "\n".join(
        re.sub(r"^query (\w+)", rf"query \1_{n}", base, flags=re.MULTILINE) for n in range(copies)
    )
    starts = [match.start() for match in re.finditer(r"^query ", whole, re.MULTILINE)]
    return whole if len(starts) == QUERIES else whole[: starts[QUERIES]]


def timed(work: Callable[[], object], runs: int) -> float:
    work()
    spent = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        spent.append((time.perf_counter() - start) * 1000)
    return statistics.median(spent)


def cold(statement: str, *, compiles: bool = False) -> float:
    """A fresh interpreter's extra time over an empty one."""
    code = statement
    if compiles:
        code = (
            "from omnigraph_core.ir.compile import compile_one\n"
            "from omnigraph_core.schema.build import compile_schema\n"
            f"compile_one({TWO_HOPS!r}, compile_schema({(EXAMPLE / 'schema.pg').read_text()!r}))"
        )

    def run(text: str) -> Callable[[], object]:
        return lambda: subprocess.run([sys.executable, "-c", text], check=True)

    return max(0.0, timed(run(code), 5) - timed(run("pass"), 5))


def calibration() -> float:
    """Milliseconds of a fixed pure-Python loop: the yardstick of this run."""
    return timed(lambda: sum(i * i % 7 for i in range(100_000)), 10)


if __name__ == "__main__":
    sys.exit(main())

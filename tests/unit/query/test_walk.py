"""Every place of a query where a variable can stand is counted."""

from __future__ import annotations

from omnigraph_core.query.parse import parse_queries
from omnigraph_core.query.walk import iter_variables

READ = """
query q() {
  match {
    $a1: T { p: $a2 }
    $a3 $a4:knows $a5
    not { $a6 knows $a7 }
    optional { $a8.p = $a9.p }
    $b1.p in $b2 or ($b3.p is null and search($b4.p, $b5))
    $b6.p = 1
  }
  return { $c1.p, $c2, count($c3), [1] as list }
  having { count($d1) > $d2 }
  order { $e1.p }
  limit $f1
  offset $f2
}
"""
MUTATION = """
query q() {
  insert T { p: $a1, q: 2 }
  update T set { p: $a2 } where p = $b1 and (q in $b2 or r is null)
  delete T where p = $c1
}
"""


def named(text: str) -> list[str]:
    (query,) = parse_queries(text).queries
    return sorted(set(iter_variables(query)))


def test_reads() -> None:
    expected = [f"a{n}" for n in range(1, 10)] + [f"b{n}" for n in range(1, 7)]
    expected += ["c1", "c2", "c3", "d1", "d2", "e1", "f1", "f2"]
    assert named(READ) == expected


def test_mutations() -> None:
    assert named(MUTATION) == ["a1", "a2", "b1", "b2", "c1"]

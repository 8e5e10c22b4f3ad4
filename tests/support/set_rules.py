"""The set rules as plain loops over whole graphs: what the validator is compared with."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

from omnigraph_core.schema.build import compile_schema
from omnigraph_core.violations import Rule
from tests.support.committed import Row

if TYPE_CHECKING:
    from collections.abc import Iterable

    from omnigraph_core.write.batches import GraphType

SCHEMA = """
node Part {
    code: String @key
    serial: String? @unique
    maker: String?
    size: F64?
    @unique(maker, size)
}
node Bin { label: String? }
edge Fits: Part -> Part @card(0..2) { grade: I32?
    @unique(src, grade)
}
edge Holds: Bin -> Part @card(1..2)
edge Marks: Bin -> Bin @card(2..)
edge Near: Part -> Bin
"""
CATALOG = compile_schema(SCHEMA)
TYPES: dict[str, GraphType] = {**CATALOG.nodes, **CATALOG.edges}
Found = tuple[str, str | None, str | None, str, str | None, int | None]

Graph = dict[str, dict[str, Row]]
"""Type name → id → row."""


Write = dict[str, dict[str, Any]]
"""Type name → rows, deleted ids and the kind of write."""


NOTHING: dict[str, Any] = {"rows": (), "deleted": (), "claimed": ()}
NOTHING |= {"is_strict": False, "is_overwrite": False}


class Oracle:
    """Loops over everything; `found` and `bad` are what it is all about.

    Rows that were reported are out when the next rule looks, so they are never the reason why
    another row is refused; edges at a node that was reported are in doubt, and left in peace.
    """

    def __init__(self, graph: Graph, write: Write) -> None:
        self.graph, self.write = graph, write
        self.found: list[Found] = []
        self.bad: dict[str, set[int]] = defaultdict(set)
        self.doubted: dict[str, set[str]] = defaultdict(set)
        self.totals: dict[tuple[str, object], int] = {}
        for name in write:
            self.keys(name)
        for name in CATALOG.nodes:
            self.unique(name)
        for name in CATALOG.edges:
            self.ends(name)
            self.orphans(name)
            self.unique(name)
        for name in CATALOG.edges:
            if name in write:
                self.cardinality(name)

    def report(
        self, rule: Rule, name: str, property: str, value: object, row: int | None, id: str | None
    ) -> None:
        shown_id = None if id is None or id.startswith("new") else id
        line = None if row is None else row + 1
        self.found.append((str(rule), name, property, repr(value), shown_id, line))

    def rows(self, name: str) -> list[Row]:
        rows: list[Row] = self.write[name]["rows"] if name in self.write else []
        return rows

    def counted(self, name: str) -> list[int]:
        """Rows that are neither reported nor in doubt."""
        return [
            n
            for n, row in enumerate(self.rows(name))
            if n not in self.bad[name] and not self.is_doubtful(name, row)
        ]

    def is_doubtful(self, name: str, row: Row) -> bool:
        return name in CATALOG.edges and any(
            row[side] in self.doubted[node] for side, node in sides(name)
        )

    def keys(self, name: str) -> None:
        part = self.write[name]
        first: set[str] = set()
        property = "code" if name == "Part" else "id"
        for row, item in enumerate(part["rows"]):
            is_committed = part["is_strict"] and item["id"] in self.graph[name]
            if item["id"] in first or is_committed:
                self.report(Rule.KEY, name, property, item["id"], row, item["id"])
                self.bad[name].add(row)
            first.add(item["id"])

    def replaced_by(self, name: str, rows: Iterable[int]) -> set[str]:
        """Committed ids that are replaced by these rows."""
        part = self.write[name]
        if part["is_strict"] or part["is_overwrite"]:
            return set()
        return {part["rows"][n]["id"] for n in rows} & set(self.graph[name])

    def staying(self, name: str) -> dict[str, Row]:
        """Committed rows that are there after the write as they were."""
        part = self.write.get(name)
        if part is None:
            return self.graph[name]
        if part["is_overwrite"]:
            return {}
        gone = {*part["deleted"], *self.replaced_by(name, range(len(part["rows"])))}
        return {id: row for id, row in self.graph[name].items() if id not in gone}

    def after(self, name: str) -> set[str]:
        claimed = self.write[name]["claimed"] if name in self.write else ()
        return {*self.staying(name), *(row["id"] for row in self.rows(name)), *claimed}

    def unique(self, name: str) -> None:
        rows = self.rows(name)
        holders = list(self.staying(name).values())
        for n in self.counted(name):
            taken = [
                group
                for group in TYPES[name].unique
                if any(same(rows[n], other, group) for other in holders)
            ]
            for group in taken:
                values = [rows[n][column] for column in group]
                value = values if len(group) > 1 else values[0]
                self.report(Rule.UNIQUE, name, ", ".join(group), value, n, rows[n]["id"])
            if taken:
                self.bad[name].add(n)
                self.doubted[name].add(rows[n]["id"])
            else:
                holders.append(rows[n])

    def ends(self, name: str) -> None:
        for side, node in sides(name):
            for row, item in enumerate(self.rows(name)):
                if item[side] not in self.after(node):
                    self.report(Rule.ENDPOINT, name, side, item[side], row, item["id"])
                    self.bad[name].add(row)

    def orphans(self, name: str) -> None:
        for side, node in sides(name):
            for id, item in self.staying(name).items():
                if item[side] not in self.after(node):
                    self.report(Rule.ORPHAN, name, side, item[side], None, id)

    def cardinality(self, name: str) -> None:
        edge, rows, counted = CATALOG.edges[name], self.rows(name), self.counted(name)
        low, high = edge.cardinality.minimum, edge.cardinality.maximum
        touched = {rows[n]["src"] for n in counted} | self.losing(name)
        sources = (touched & self.after(edge.source)) - self.doubted[edge.source]
        mine = {s: [n for n in counted if rows[n]["src"] == s] for s in sources}
        kept = {s: sum(row["src"] == s for row in self.staying(name).values()) for s in sources}
        total = {s: kept[s] + len(mine[s]) for s in sources}
        wrong = {s for s in sources if high is not None and mine[s] and total[s] > high}
        for source in wrong:
            self.bad[name] |= set(mine[source][max(0, (high or 0) - kept[source]) :])
        few = {s for s in sources if total[s] < low}
        for group in ({s for s in few if mine[s]}, {s for s in few if not mine[s]}):
            short = group - self.may_have_more(name)
            self.bad[name] |= {n for source in short for n in mine[source]}
            wrong |= short
        for source in wrong:
            last = max(mine[source]) if mine[source] else None
            self.report(Rule.CARDINALITY, name, "src", source, last, None)
            self.totals[name, source] = total[source]

    def losing(self, name: str) -> set[str]:
        """Sources of edges that rows which count replace, or that go."""
        part = self.write[name]
        gone = {*part["deleted"], *self.replaced_by(name, self.counted(name))}
        return {
            row["src"] for id, row in self.graph[name].items() if part["is_overwrite"] or id in gone
        }

    def may_have_more(self, name: str) -> set[str]:
        """Sources that rows which are out lead to, or away from."""
        out = set(range(len(self.rows(name)))) - set(self.counted(name))
        away = {self.graph[name][id]["src"] for id in self.replaced_by(name, out)}
        return away | {self.rows(name)[n]["src"] for n in out}


def sides(name: str) -> tuple[tuple[str, str], tuple[str, str]]:
    edge = CATALOG.edges[name]
    return ("src", edge.source), ("dst", edge.target)


def is_sound(graph: Graph, write: Write) -> bool:
    """Whether the write can be done as it is and leaves a sound graph: no rule is told apart."""
    after: Graph = {}
    for name in TYPES:
        part = write.get(name, NOTHING)
        ids = [row["id"] for row in part["rows"]]
        if len(set(ids)) < len(ids) or (part["is_strict"] and set(ids) & set(graph[name])):
            return False
        kept = {} if part["is_overwrite"] else graph[name]
        after[name] = {id: row for id, row in kept.items() if id not in part["deleted"]}
        after[name] |= {row["id"]: row for row in part["rows"]}
    return (
        all(len(drop_repeated(rows, name)) == len(rows) for name, rows in after.items())
        and all(
            row[side] in after[node] or row[side] in write.get(node, NOTHING)["claimed"]
            for name in CATALOG.edges
            for row in after[name].values()
            for side, node in sides(name)
        )
        and all(has_right_counts(name, graph, after, write) for name in CATALOG.edges)
    )


def has_right_counts(name: str, graph: Graph, after: Graph, write: Write) -> bool:
    """Whether sources whose edges change have as many as they may, and those given ones at most."""
    given = {row["src"] for row in write.get(name, NOTHING)["rows"]}
    rows, limits = after[name], CATALOG.edges[name].cardinality
    nodes = {*after[CATALOG.edges[name].source]}
    nodes |= {*write.get(CATALOG.edges[name].source, NOTHING)["claimed"]}
    gone = write.get(name, NOTHING)
    lost = {
        row["src"]
        for id, row in graph[name].items()
        if id not in rows or gone["is_overwrite"] or any(r["id"] == id for r in gone["rows"])
    }
    counts = Counter(row["src"] for row in rows.values())
    return all(
        counts[source] >= limits.minimum
        and (source not in given or limits.maximum is None or counts[source] <= limits.maximum)
        for source in (given | lost) & nodes
    )


def drop_repeated(rows: dict[str, Row], name: str = "Part") -> dict[str, Row]:
    kept: dict[str, Row] = {}
    for id, row in rows.items():
        groups = TYPES[name].unique
        if not any(same(row, other, group) for group in groups for other in kept.values()):
            kept[id] = row
    return kept


def same(one: Row, other: Row, group: Iterable[str]) -> bool:
    """Whether both have the tuple: null and NaN equal nothing, the zeros each other."""
    return all(one[name] is not None and one[name] == other[name] for name in group)

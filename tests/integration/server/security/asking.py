"""Requests that take the name of something, and who sends them."""

from __future__ import annotations

from typing import Any, Final

TOKENS: Final = {"ann": "token-of-ann", "ben": "token-of-ben", "eve": "token-of-eve"}
READ: Final = "query skus() { match { $p: Part } return { $p.sku } }"
INSERT: Final = "query add($sku: String) { insert Part { sku: $sku, name: $sku } }"
SECRET: Final = "the-secret-beside-the-graph"

Request = tuple[str, str, dict[str, Any]]


def record(sku: str, **values: str) -> str:
    members = "".join(f', "{name}": "{value}"' for name, value in values.items())
    return f'{{"type": "Part", "data": {{"sku": "{sku}", "name": "n"{members}}}}}'


def asking(name: str) -> list[Request]:
    """Whatever takes a name of something, with this name."""
    return [
        ("POST", "/read", {"json": {"query_source": READ, "branch": name}}),
        ("POST", "/read", {"json": {"query_source": READ, "snapshot": name}}),
        ("POST", "/read", {"json": {"query_source": READ, "tag": name}}),
        ("POST", "/read", {"json": {"query_source": READ, "query_name": name}}),
        ("POST", "/export", {"json": {"table_keys": [name]}}),
        ("POST", "/export", {"json": {"type_names": [name]}}),
        ("POST", "/branches", {"json": {"name": name}}),
        ("POST", "/branches", {"json": {"name": "new", "from": name}}),
        ("POST", "/branches/merge", {"json": {"source": name}}),
        ("POST", "/branches/diff", {"json": {"from": name, "to": "main"}}),
        ("POST", "/branches/reset", {"json": {"branch": name, "to": name, "confirm": True}}),
        ("POST", "/tags", {"json": {"name": name}}),
        ("POST", "/tags", {"json": {"name": "new", "target": name}}),
        ("POST", "/runs", {"json": {"target_branch": name}}),
        ("POST", "/runs", {"json": {"target_branch": "main", "operation_hash": name}}),
        ("POST", "/ingest", {"json": {"data": record("0", drawing="x"), "branch": name}}),
        ("POST", "/load", {"json": {"data": name}}),
        ("POST", "/load", {"json": {"data": "", "type": name, "format": "csv"}}),
        ("POST", "/load/ndjson", {"params": {"branch": name, "from": name}, "content": b"{}"}),
        ("POST", "/indexes", {"json": {"branch": name}}),
        ("POST", "/cleanup", {"json": {"keep": 1, "branches": [name]}}),
        ("POST", "/verify", {"json": {"branch": name}}),
        ("GET", "/entity", {"params": {"table_key": name, "id": name}}),
        ("GET", "/entity", {"params": {"table_key": f"node:{name}", "id": name}}),
        ("GET", "/blob", {"params": {"type": "Part", "id": name, "property": name}}),
        ("GET", "/blob", {"params": {"type": name, "id": "p1", "property": "drawing"}}),
        ("GET", "/snapshot", {"params": {"branch": name}}),
        ("GET", "/changes", {"params": {"branch": name, "cursor": name}}),
        ("GET", f"/branches/{name}", {}),
        ("DELETE", f"/branches/{name}", {}),
        ("DELETE", f"/tags/{name}", {}),
        ("GET", f"/commits/{name}", {}),
        ("GET", f"/commits/{name}/changes", {}),
        ("GET", f"/runs/{name}", {}),
        ("GET", f"/jobs/{name}", {}),
        ("POST", f"/jobs/{name}/cancel", {}),
        ("POST", f"/queries/{name}", {}),
        ("GET", f"/graphs/{name}/schema", {}),
        ("POST", "/verify", {"headers": {"Idempotency-Key": "/../../../stolen"}}),
        ("POST", "/load/files", {"files": {"file": (name, b"{}")}}),
        ("POST", "/load/files", {"files": {"file": (f"{name}/Part.csv", b"sku,name\n")}}),
        ("POST", "/load/files", {"files": {name: ("Part.csv", b"sku,name\n")}}),
    ]

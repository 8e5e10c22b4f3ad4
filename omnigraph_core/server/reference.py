"""The interface on paper: writes `openapi.json` and `docs/reference/http.md` from the code.

Run `python -m omnigraph_core.server.reference` at the root of the repository after a change to an
operation; tests compare both files with the code.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from omnigraph_core.server.app import bare_app
from omnigraph_core.server.errors import MEANINGS
from omnigraph_core.server.openapi import openapi_document

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCUMENT: Final = Path("openapi.json")
PAGE: Final = Path("docs/reference/http.md")

_INTRODUCTION: Final = """\
# HTTP

Every operation of `omnigraph-server`, made from `openapi.json` by
`python -m omnigraph_core.server.reference`. Each one is also there below `/graphs/{id}` for the
other graphs of a server. Bodies are JSON; keys that are not known are ignored, and null counts as
absent.

- A token goes into `Authorization: Bearer <token>`; only the health of a server is told without.
- Every answer has an `X-Request-Id`, the client's own if it sent one.
- Every answer that is no success is an [ErrorOutput](#erroroutput).
- Writes may carry an `Idempotency-Key`: a repeat of the request gets the first answer again.
- Long work may carry `Prefer: respond-async`: the answer is then 202 and a job.
- `Omnigraph-If-Graph-Commit` makes a write depend on the head of its branch: 412 if it has moved.
- Reads answer with JSON, and with `Accept: application/x-ndjson` or
  `Accept: application/vnd.apache.arrow.stream` with lines or with Arrow.
"""


def main() -> None:
    found = described()
    DOCUMENT.write_text(document_text(found), encoding="utf-8")
    PAGE.write_text(page_text(found), encoding="utf-8")


def described() -> dict[str, Any]:
    """The OpenAPI document of a server that asks for tokens."""
    return openapi_document(bare_app(), is_open=False)


def document_text(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def page_text(document: dict[str, Any]) -> str:
    """The reference page."""
    lines = [_INTRODUCTION, "## Operations", "", *_summary(document)]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            lines += ["", *_operation(method, path, operation)]
    lines += ["", "## Statuses", "", "| status | why |", "|---|---|"]
    lines += [f"| {status} | {meaning} |" for status, meaning in MEANINGS.items()]
    lines += ["", "## Bodies"]
    for name, schema in document["components"]["schemas"].items():
        lines += ["", *_schema(name, schema)]
    return "\n".join(lines) + "\n"


def _summary(document: dict[str, Any]) -> Iterator[str]:
    yield "| operation | request | what it does |"
    yield "|---|---|---|"
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            name = operation["operationId"]
            request = f"`{method.upper()} {path}`"
            yield f"| [{name}](#{name.lower()}) | {request} | {operation['summary']} |"


def _operation(method: str, path: str, operation: dict[str, Any]) -> Iterator[str]:
    yield f"### {operation['operationId']}"
    yield ""
    yield f"`{method.upper()} {path}`: {operation['summary']}."
    yield from _body(operation)
    yield from _parameters(operation)
    yield ""
    yield "| status | answer |"
    yield "|---|---|"
    for status, response in operation["responses"].items():
        if status < "400":
            yield f"| {status} | {_answer(response)} |"
    refused = [f"{status}" for status in operation["responses"] if status >= "400"]
    if refused:
        yield ""
        yield f"[Refused](#statuses) with {', '.join(refused)}."


def _body(operation: dict[str, Any]) -> Iterator[str]:
    if "requestBody" in operation:
        for kind, content in operation["requestBody"]["content"].items():
            yield ""
            yield f"Body: {_type(content.get('schema', {}))} as `{kind}`."


def _parameters(operation: dict[str, Any]) -> Iterator[str]:
    if operation.get("parameters"):
        yield ""
        yield "| parameter | in | type | meaning |"
        yield "|---|---|---|---|"
    for item in operation.get("parameters", ()):
        name = f"`{item['name']}`{', required' if item.get('required') else ''}"
        about = item.get("description") or item["schema"].get("description", "")
        yield f"| {name} | {item['in']} | {_type(item['schema'])} | {about} |"


def _answer(response: dict[str, Any]) -> str:
    told = []
    for kind, content in response.get("content", {}).items():
        shape = _type(content.get("schema", {}))
        told.append(shape if kind == "application/json" else f"`{kind}`")
    about = response.get("description", "")
    shown = about if about != "Successful Response" else ""
    return " · ".join(filter(None, [shown, *told]))


def _schema(name: str, schema: dict[str, Any]) -> Iterator[str]:
    yield f"### {name}"
    if schema.get("description"):
        yield ""
        yield " ".join(schema["description"].split())
    if "enum" in schema:
        yield ""
        yield "One of " + ", ".join(f"`{value}`" for value in schema["enum"]) + "."
    if "properties" in schema:
        yield ""
        yield "| key | type | meaning |"
        yield "|---|---|---|"
    required = schema.get("required", ())
    for key, member in schema.get("properties", {}).items():
        mark = ", required" if key in required else ""
        yield f"| `{key}`{mark} | {_type(member)} | {_described(member)} |"


def _described(member: dict[str, Any]) -> str:
    about = member.get("description") or next(
        (part["description"] for part in member.get("anyOf", ()) if "description" in part), ""
    )
    return " ".join(about.split())


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(_type(part) for part in schema["anyOf"])
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return str(schema.get("type", "any"))


if __name__ == "__main__":
    main()

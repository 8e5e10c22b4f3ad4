"""The OpenAPI document of the server: operations as they are declared, failures that all have.

An open server asks for no token, and its document says so.
"""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from fastapi.openapi.utils import get_openapi

from omnigraph_core.server.errors import MEANINGS
from omnigraph_core.server.idempotency import HEADER
from omnigraph_core.write.commit import MAX_KEY

if TYPE_CHECKING:
    from fastapi import FastAPI

VERSION: Final = "0.3.1"
"""The version of the interface; clients of that release work unchanged."""
SCHEME: Final = "bearer_token"

_PUBLIC: Final = frozenset({"/healthz", "/readyz"})
_EVERYWHERE: Final = (400, 401, 403, 404, 413, 415, 422, 429, 500, 503)
_METHODS: Final = frozenset({"get", "put", "post", "delete", "patch", "head"})
_KEYED: Final = frozenset({
    "abortRun", "applySchema", "backfillEmbeddings", "beginRun", "change", "cleanup",
    "createBranch", "createTag", "deleteBranch", "deleteTag", "ensureIndexes", "failRun", "ingest",
    "invokeQuery", "invokeQueryIfGraphCommit", "load", "loadFiles", "loadNdjson", "mergeBranches",
    "mutate", "mutateIfGraphCommit", "optimize", "pickCommit", "publishRun", "resetBranch",
    "revertCommit", "verify",
})  # fmt: skip
"""Operations that know a repeat by its `Idempotency-Key`."""
_CONDITIONAL: Final = frozenset({
    "change", "ingest", "invokeQuery", "load", "loadFiles", "loadNdjson", "mergeBranches", "mutate",
})  # fmt: skip
"""Those that may demand a head, beside those that must."""
_KEY: Final = {
    "name": HEADER,
    "in": "header",
    "required": False,
    "description": "A repeat under the same key gets the first answer again.",
    "schema": {"type": "string", "minLength": 1, "maxLength": MAX_KEY},
}
_PREFER: Final = {
    "name": "Prefer",
    "in": "header",
    "required": False,
    "description": "`respond-async`: the answer is 202 and a job.",
    "schema": {"type": "string"},
}
_IF_COMMIT: Final = {
    "name": "Omnigraph-If-Graph-Commit",
    "in": "header",
    "required": False,
    "description": "The commit that has to be the head of the branch; 412 if it is not.",
    "schema": {"type": "string"},
}
_REQUEST_ID: Final = {"$ref": "#/components/headers/RequestId"}
_ERROR: Final = {"$ref": "#/components/schemas/ErrorOutput"}


def document_app(app: FastAPI, *, is_open: bool) -> None:
    """Let an app describe itself."""

    @cache
    def document() -> dict[str, Any]:
        return openapi_document(app, is_open=is_open)

    app.openapi = document  # type: ignore[method-assign]


def openapi_document(app: FastAPI, *, is_open: bool) -> dict[str, Any]:
    document = get_openapi(
        title="Omnigraph API",
        version=VERSION,
        openapi_version="3.1.0",
        description="A typed property graph with branches, over HTTP.",
        routes=app.routes,
        license_info={"name": "MIT", "identifier": "MIT"},
        separate_input_output_schemas=False,
    )
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            if method in _METHODS:
                _complete(operation, is_public=path in _PUBLIC, is_open=is_open)
    document["components"]["headers"] = {
        "RequestId": {
            "description": "The client's own `X-Request-Id`, or one that the server made.",
            "schema": {"type": "string"},
        }
    }
    _drop_unused(document)
    if not is_open:
        schemes = document["components"].setdefault("securitySchemes", {})
        schemes[SCHEME] = {"type": "http", "scheme": "bearer"}
    return document


def _complete(operation: dict[str, Any], *, is_public: bool, is_open: bool) -> None:
    responses = operation["responses"]
    for status in () if is_public else _EVERYWHERE:
        if str(status) not in responses or _is_frameworks(responses[str(status)]):
            responses[str(status)] = {
                "description": MEANINGS[status],
                "content": {"application/json": {"schema": dict(_ERROR)}},
            }
    for response in responses.values():
        response.setdefault("headers", {})["X-Request-Id"] = dict(_REQUEST_ID)
    operation["responses"] = dict(sorted(responses.items()))
    headers = _headers(operation)
    if headers:
        operation.setdefault("parameters", []).extend(headers)
    if not is_public and not is_open:
        operation["security"] = [{SCHEME: []}]


def _headers(operation: dict[str, Any]) -> list[dict[str, Any]]:
    """The headers an operation heeds that are no parameters of its code."""
    name = operation["operationId"]
    heeded = (
        (_PREFER, "202" in operation["responses"]),
        (_KEY, name in _KEYED),
        (_IF_COMMIT, name in _CONDITIONAL),
    )
    return [deepcopy(header) for header, is_heeded in heeded if is_heeded]


def _is_frameworks(response: dict[str, Any]) -> bool:
    """Whether it is the shape the framework gives to what it refuses, in place of ours."""
    schema = response.get("content", {}).get("application/json", {}).get("schema", {})
    return str(schema.get("$ref", "")).endswith("/HTTPValidationError")


def _drop_unused(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    document["components"]["schemas"] = dict(sorted(schemas.items()))

"""The OpenAPI document of the server: operations as they are declared, failures that all have.

An open server asks for no token, and its document says so.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from fastapi.openapi.utils import get_openapi

from omnigraph_core.server.errors import MEANINGS

if TYPE_CHECKING:
    from fastapi import FastAPI

VERSION: Final = "0.3.1"
"""The version of the interface; clients of that release work unchanged."""
SCHEME: Final = "bearer_token"

_PUBLIC: Final = frozenset({"/healthz", "/readyz"})
_EVERYWHERE: Final = (400, 401, 403, 404, 413, 415, 422, 429, 500, 503)
_METHODS: Final = frozenset({"get", "put", "post", "delete", "patch", "head"})
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
    operation["responses"] = dict(sorted(responses.items()))
    if not is_public and not is_open:
        operation["security"] = [{SCHEME: []}]


def _is_frameworks(response: dict[str, Any]) -> bool:
    """Whether it is the shape the framework gives to what it refuses, in place of ours."""
    schema = response.get("content", {}).get("application/json", {}).get("schema", {})
    return str(schema.get("$ref", "")).endswith("/HTTPValidationError")


def _drop_unused(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    document["components"]["schemas"] = dict(sorted(schemas.items()))

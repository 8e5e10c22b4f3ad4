"""What went wrong, as clients see it: one shape for every answer that is no success.

Errors of the engine get their status here, in one table. What nobody expected is logged with its
trace and told without it.
"""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Any, Final

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from omnigraph_core.errors import (
    BudgetExceeded,
    ChangeFeedGap,
    EmbeddingError,
    ErrorKind,
    JobFailed,
    OmnigraphError,
    PreconditionFailed,
    QueryCancelled,
    QueryNotFound,
    StorageError,
)
from omnigraph_core.errors.wire import error_document
from omnigraph_core.server.answers import answer
from omnigraph_core.server.threads import reading
from omnigraph_core.server.wire import ErrorOutput

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from fastapi import FastAPI
    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_LOG: Final = logging.getLogger("omnigraph.server")

_NOT_FOUND: Final = "Not Found"
"""What the framework says of a path that it does not know."""
_UNREAD: Final = "There was an error parsing the body"
"""And of a body that it could not make anything of."""
_PARAMETER: Final = re.compile(r"\{\w+\}")

_BY_KIND: Final = {
    ErrorKind.BAD_REQUEST: 400,
    ErrorKind.UNAUTHORIZED: 401,
    ErrorKind.FORBIDDEN: 403,
    ErrorKind.NOT_FOUND: 404,
    ErrorKind.CONFLICT: 409,
    ErrorKind.INTERNAL: 500,
}
_BY_CLASS: Final[Mapping[type[OmnigraphError], int]] = {
    QueryNotFound: 400,
    ChangeFeedGap: 410,
    BudgetExceeded: 413,
    QueryCancelled: 503,
}
_REASONS: Final = {
    400: "http.bad_request",
    404: "http.not_found",
    405: "http.method_not_allowed",
    413: "http.too_large",
    415: "http.unsupported_media_type",
    416: "http.range_not_satisfiable",
    422: "http.invalid",
    429: "http.too_many_requests",
}
MEANINGS: Final = {
    400: "The request cannot be carried out as it is.",
    401: "No bearer token, or none that is known.",
    403: "Policy forbids it.",
    404: "Something it names is not there.",
    405: "The path has other methods: which, in `Allow`.",
    408: "The request did not come to its end in time.",
    409: "The current state refuses it.",
    410: "History it needs was cleaned up.",
    412: "The branch has another head than the request demands.",
    413: "The body, or what the query needs, is too large.",
    415: "The body is not of a type the operation takes.",
    416: "No such range.",
    422: "The request has another shape than the operation takes.",
    429: "Too many requests of this actor at a time.",
    431: "The request line and the headers are too long.",
    500: "Something failed inside.",
    503: "Something is not available now; the same request may succeed later.",
}


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """How an operation documents the failures it has beside those that every one has."""
    return {status: {"model": ErrorOutput, "description": MEANINGS[status]} for status in statuses}


def status_of(error: OmnigraphError) -> int:
    """
    >>> from omnigraph_core.errors import BranchNotFound
    >>> status_of(BranchNotFound("no branch `draft`"))
    404
    """
    for cls in type(error).__mro__:
        if cls in _BY_CLASS:
            return _BY_CLASS[cls]
    if isinstance(error, StorageError | EmbeddingError) and error.retryable:
        return 503
    return _BY_KIND[error.kind]


def failure(
    status: int,
    message: str,
    *,
    code: str = ErrorKind.BAD_REQUEST,
    request_id: str | None = None,
    details: Mapping[str, object] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """An answer in the one shape, for what the engine has no error for."""
    document: dict[str, object] = {"error": message, "code": str(code)}
    document["reason"] = _REASONS.get(status, "http.failed")
    if details:
        document["details"] = dict(details)
    if request_id is not None:
        document["request_id"] = request_id
    return answer(document, status=status, headers=headers)


def handle_errors(app: FastAPI) -> None:
    """Give every failure of an app the one shape."""
    app.add_exception_handler(OmnigraphError, _refused)
    app.add_exception_handler(HTTPException, _framework)
    app.add_exception_handler(RequestValidationError, _invalid)


def request_id_of(scope: Scope) -> str | None:
    found = scope.get("state", {}).get("request_id")
    return found if isinstance(found, str) else None


def told_document(error: OmnigraphError) -> dict[str, Any]:
    """An error as clients are told it; the trace of a task is for the log."""
    document: dict[str, Any] = error_document(error)
    if isinstance(error, JobFailed) and error.trace:
        _LOG.error("%s\n%s", error.message, error.trace)
        document["details"] = {**document["details"]}
        del document["details"]["trace"]
    return document


def error_answer(scope: Scope, error: OmnigraphError, *, status: int | None = None) -> Response:
    """An error of the engine as an answer."""
    chosen = status or status_of(error)
    document = {**_hidden(scope, told_document(error)), "request_id": request_id_of(scope)}
    if chosen == 400:  # a query that is not in the text of the request itself
        document["code"] = str(ErrorKind.BAD_REQUEST)
    if chosen == 412 and isinstance(error, PreconditionFailed):
        heads = {"expected": error.expected, "actual": error.actual}
        document["precondition_failure"] = heads
    headers = {"WWW-Authenticate": "Bearer"} if chosen == 401 else {}
    if chosen == 503:
        headers["Retry-After"] = "1"
    return answer(document, status=chosen, headers=headers)


def _hidden(scope: Scope, document: dict[str, Any]) -> dict[str, Any]:
    """Without the addresses of graphs, if the server is told to hide them."""
    serving = getattr(scope["app"].state, "serving", None)
    found: dict[str, Any] = document if serving is None else serving.graphs.hiding.over(document)
    return found


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, OmnigraphError)
    status = 412 if _is_unmet(request, error) else status_of(error)
    if status == 500:
        _LOG.error("%s", error.message, exc_info=error)
    return error_answer(request.scope, error, status=status)


def _is_unmet(request: Request, error: OmnigraphError) -> bool:
    """Whether it is the condition of the client itself that does not hold."""
    wanted = request.headers.get("omnigraph-if-graph-commit")
    return wanted is not None and isinstance(error, PreconditionFailed) and error.expected == wanted


async def _framework(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        return await _other_methods(request)
    status, message = error.status_code, str(error.detail)
    if status == 404 and message == _NOT_FOUND:
        message = f"no such path: {request.scope['path']}"
    elif status == 400 and message == _UNREAD:
        status, message = _unread(request, error.__cause__)
    return failure(
        status,
        message,
        code=ErrorKind.NOT_FOUND if status == 404 else ErrorKind.BAD_REQUEST,
        request_id=request_id_of(request.scope),
        headers=error.headers,
    )


def _unread(request: Request, cause: BaseException | None) -> tuple[int, str]:
    """Why a body is no JSON, where it is not its grammar."""
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", ""):
        return 415, f"the body must be plain JSON, without Content-Encoding: {encoding}"
    if isinstance(cause, UnicodeDecodeError):
        return 400, "the body is not JSON: it is not UTF-8 text"
    if isinstance(cause, RecursionError):
        return 400, "the body is not JSON that can be read: it is nested too deeply"
    if isinstance(cause, ValueError):
        return 400, "the body is not JSON that can be read: a number in it has too many digits"
    return 400, "the body cannot be read"


async def _other_methods(request: Request) -> Response:
    """What is possible at a path: the answer to `OPTIONS`, and to a method that is not."""
    document = await reading(request.app.openapi)
    methods = allowed_methods(document, request.scope["path"])
    headers = {"Allow": ", ".join(methods)}
    if request.method == "OPTIONS":
        return Response(status_code=204, headers=headers)
    return failure(
        405,
        f"{request.method} is not possible here",
        request_id=request_id_of(request.scope),
        headers=headers,
    )


def allowed_methods(document: Mapping[str, Any], path: str) -> tuple[str, ...]:
    """The methods of a path by the OpenAPI document.

    >>> allowed_methods({"paths": {"/tags/{name}": {"delete": {}}}}, "/tags/v1")
    ('DELETE', 'OPTIONS')
    """
    found = {"OPTIONS"}
    for template, operations in document["paths"].items():
        # A name may have slashes in it: rather too much is matched than too little.
        if re.fullmatch(_PARAMETER.sub(".+", template), path):
            found |= {name.upper() for name in operations}
    return tuple(sorted(found | ({"HEAD"} if "GET" in found else set())))


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    found = error.errors()
    status, message = 422, "; ".join(_problems(found))
    if any(item["type"] == "json_invalid" for item in found):
        status, message = 400, f"the body is not JSON: {found[0].get('ctx', {}).get('error', '')}"
    elif _is_other_type(request, found):
        status, message = 415, "the body must be JSON, with Content-Type: application/json"
    return failure(status, message, request_id=request_id_of(request.scope))


def _is_other_type(request: Request, found: Sequence[Any]) -> bool:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    is_json = kind == "application/json" or (
        kind.startswith("application/") and kind.endswith("+json")
    )
    has_body = request.headers.get("content-length", "0") != "0" or (
        "transfer-encoding" in request.headers
    )
    return has_body and not is_json and any(tuple(item["loc"]) == ("body",) for item in found)


def _problems(found: Sequence[Any]) -> Iterator[str]:
    for item in found:
        place = ".".join(str(part) for part in item["loc"])
        yield f"{place}: {item['msg'][:1].lower()}{item['msg'][1:]}"


class Failsafe:
    """Turns what nobody expected into an answer, unless one has begun: then the connection ends."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        has_begun = False

        async def sending(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self._app(scope, receive, sending)
        except Exception as error:
            _LOG.exception("a request failed", extra={"request_id": request_id_of(scope)})
            if has_begun:
                raise
            response = _unexpected(scope, error)
            await response(scope, receive, send)


def _unexpected(scope: Scope, error: Exception) -> Response:
    if isinstance(error, OmnigraphError):
        return error_answer(scope, error)
    return failure(
        500,
        "something failed inside; the log of the server says what",
        code=ErrorKind.INTERNAL,
        request_id=request_id_of(scope),
    )

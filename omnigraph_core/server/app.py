"""The application: options come in, an ASGI app that answers every operation goes out."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from fastapi import FastAPI

from omnigraph_core.server import settings
from omnigraph_core.server.errors import Failsafe, handle_errors
from omnigraph_core.server.metrics import Metrics
from omnigraph_core.server.middleware.admission import Admission
from omnigraph_core.server.middleware.bodies import BodyLimits
from omnigraph_core.server.middleware.compress import Compress
from omnigraph_core.server.middleware.cors import Cors
from omnigraph_core.server.middleware.head import Head
from omnigraph_core.server.middleware.identity import Identity
from omnigraph_core.server.middleware.observe import Observe
from omnigraph_core.server.middleware.prefix import GraphPrefix
from omnigraph_core.server.openapi import document_app
from omnigraph_core.server.routes import ROUTERS
from omnigraph_core.server.serving import prepare
from omnigraph_core.server.threads import reading

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from omnigraph_core.server.jobs import Jobs
    from omnigraph_core.server.options import ServerOptions
    from omnigraph_core.server.serving import Serving


def create_app(options: ServerOptions) -> FastAPI:
    """
    Raises:
        ConfigError: the configuration or the tokens cannot be used.
    """
    return app_of(prepare(options))


def app_of(serving: Serving) -> FastAPI:
    """The app of a server that has been put together."""
    app = bare_app()
    app.state.serving = serving
    app.state.metrics = Metrics()
    app.state.stored_queries = serving.stored_queries
    document_app(app, is_open=serving.is_open)
    _add_layers(app, serving)
    return app


def bare_app() -> FastAPI:
    """The operations alone: enough to describe them, not to answer."""
    app = FastAPI(
        openapi_url=None,  # served by a route of ours, without the pages that come with it
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        separate_input_output_schemas=False,
        lifespan=_lifespan,
    )
    for router in ROUTERS:
        app.include_router(router)
    handle_errors(app)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """The default graph has to be there before anybody is answered."""
    serving: Serving = app.state.serving
    await reading(serving.graphs.open_default)
    yield
    jobs: Jobs | None = getattr(app.state, "jobs", None)
    if jobs is not None:
        await asyncio.to_thread(jobs.close, settings.SHUTDOWN_TIMEOUT.read())
    serving.graphs.close()
    app.state.metrics.close()


def _add_layers(app: FastAPI, serving: Serving) -> None:
    """From the inside out: the last one added meets a request first."""
    config = serving.config.server
    app.add_middleware(BodyLimits)
    app.add_middleware(
        Admission,
        requests=config.per_actor_inflight or settings.ACTOR_REQUESTS.read(),
        byte_count=config.per_actor_bytes or settings.ACTOR_BYTES.read(),
    )
    app.add_middleware(Identity, tokens=serving.tokens)
    app.add_middleware(GraphPrefix)
    app.add_middleware(Head)
    app.add_middleware(Failsafe)
    app.add_middleware(Compress)
    if config.cors_origins:
        app.add_middleware(Cors, origins=config.cors_origins)
    app.add_middleware(Observe, metrics=app.state.metrics)

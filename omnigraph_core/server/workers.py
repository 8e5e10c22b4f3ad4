"""One of several processes that answer: options come in from the process that started it.

Light to import: while a worker loads the engine it can tell already that it is alive.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from multiprocessing.connection import wait
from typing import TYPE_CHECKING

from omnigraph_core.server.logs import configure_logging

if TYPE_CHECKING:
    from fastapi import FastAPI

    from omnigraph_core.server.options import ServerOptions


def worker_app(options: ServerOptions) -> FastAPI:
    """The app of a worker, which ends with the process that started it, however that one ends."""
    threading.Thread(target=_end_with_parent, name="parent", daemon=True).start()
    configure_logging(options.log_format)
    from omnigraph_core.server.app import create_app  # slow: see above

    return create_app(options)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)

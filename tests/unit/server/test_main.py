"""The supervisor of several workers."""

from __future__ import annotations

import os
import threading
from multiprocessing.connection import Connection
from unittest import mock

import uvicorn
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors.multiprocess import Process

from omnigraph_core.server.main import _Workers


def test_a_worker_that_dies_while_it_is_asked_is_noticed() -> None:
    """The supervisor waits for an answer or for the end of the worker, not for the time limit."""
    config = uvicorn.Config("unused", workers=1, timeout_worker_healthcheck=3600)
    worker = Process(config, [])
    worker.process = mock.Mock(exitcode=STARTUP_FAILURE)  # so that no other one is started
    theirs = Connection(os.dup(worker.child_conn.fileno()))
    supervisor = _Workers.__new__(_Workers)  # the constructor takes over all signals
    supervisor.config, supervisor.processes = config, [worker]
    supervisor.should_exit = threading.Event()
    asking = threading.Thread(target=supervisor.keep_subprocess_alive, daemon=True)
    asking.start()
    assert theirs.recv() == b"ping"
    theirs.close()  # as its death does
    asking.join(120)
    assert not asking.is_alive()
    worker.process.kill.assert_called_once_with()
    assert supervisor.should_exit.is_set()

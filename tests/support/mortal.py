"""Runs a command of this Python that ends when the process that has started it does."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1

if __name__ == "__main__":
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])

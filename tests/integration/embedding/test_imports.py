"""Embeddings are a leaf: what they need of others is loaded when a vector is needed."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import sys
from omnigraph_core.embedding.embedder import Embedder, Task
from omnigraph_core.embedding import files, origin, spec
Embedder.from_settings().embed(["alpha"], dimension=4, task=Task.QUERY)
heavy = ("openai", "google", "httpx2", "requests", "pydantic", "yaml", "pyarrow", "lance")
print([name for name in heavy if name in sys.modules])
"""


def test_no_client_is_loaded_without_need() -> None:
    environment = {"OMNIGRAPH_EMBEDDINGS_MOCK": "1"}
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT], check=True, capture_output=True, text=True, env=environment
    )
    assert result.stdout.strip() == "[]"

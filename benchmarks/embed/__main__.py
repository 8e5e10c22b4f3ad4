"""A backfill on Spark against a provider that allows so many requests per minute, and no more.

The provider is a local server that speaks its protocol and answers 429 to whatever goes beyond 600
requests within any 60 seconds. `--check` exits 1 if it had to, if less than 90 % of the limit was
used between the first and the last request, or if a text was sent twice. `--quick` sends a fifth of
the texts, which is less than a minute of requests.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from omnigraph_core.engine.omnigraph import Omnigraph
from tests.support.embedding_server import EmbeddingServer

TEXTS: Final = 100_000
PER_MINUTE: Final = 600
TASKS: Final = 4
LEAST_SHARE: Final = 0.9
SCHEMA: Final = 'node Page { slug: String @key  text: String  topic: Vector(32)? @embed("text") }'


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit 1 when a budget is exceeded")
    parser.add_argument("--quick", action="store_true", help="a fifth of the texts")
    arguments = parser.parse_args()
    count = TEXTS // 5 if arguments.quick else TEXTS
    with (
        tempfile.TemporaryDirectory() as directory,
        EmbeddingServer(per_minute=PER_MINUTE) as server,
    ):
        os.environ |= _settings(server)
        graph = Omnigraph.init(str(Path(directory) / "graph"), SCHEMA)
        graph.load(_pages(count), embed="off")
        begun = time.monotonic()
        result = graph.embed_backfill(engine="spark")
        seconds = time.monotonic() - begun
    asking = server.arrivals[-1] - server.arrivals[0]
    share = (len(server.arrivals) - 1) / (asking / 60) / PER_MINUTE
    print(f"{result.vectors_made:,} vectors with {len(result.commits)} commit in {seconds:.1f} s")
    print(f"{len(server.arrivals):,} requests in {asking:.1f} s, {share:.1%} of the limit")
    print(f"refused for being too many: {server.throttled}")
    broken = []
    if server.throttled:
        broken.append(f"{server.throttled} requests were beyond the limit")
    if share < LEAST_SHARE:
        broken.append(f"{share:.1%} of the limit was used, at least {LEAST_SHARE:.0%}")
    if sorted(server.texts) != sorted(set(server.texts)) or result.vectors_made != count:
        broken.append(f"{len(server.texts):,} texts were sent for {result.vectors_made:,} vectors")
    for problem in broken:
        print(f"over budget: {problem}")
    return 1 if arguments.check and broken else 0


def _settings(server: EmbeddingServer) -> dict[str, str]:
    return {
        "OMNIGRAPH_EMBED_PROVIDER": "openai",
        "OMNIGRAPH_EMBED_BASE_URL": server.url,
        "OPENAI_API_KEY": "sk-local",
        "NO_PROXY": "127.0.0.1",
        "OMNIGRAPH_EMBED_REQUESTS_PER_MINUTE": str(PER_MINUTE),
        "OMNIGRAPH_EMBED_CONCURRENCY": str(4 * TASKS),
        "OMNIGRAPH_SPARK_MASTER": f"local[{TASKS},3]",
    }


def _pages(count: int) -> bytes:
    pages = (
        {"type": "Page", "data": {"slug": f"p{number}", "text": f"what page {number} is about"}}
        for number in range(count)
    )
    return "\n".join(map(json.dumps, pages)).encode()


if __name__ == "__main__":
    sys.exit(main())

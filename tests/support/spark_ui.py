"""What others can see of Spark: the pages of its UI, where it listens, and command lines."""

from __future__ import annotations

import contextlib
import json
import socket
import urllib.request
from pathlib import Path
from typing import Final

REST: Final = ("environment", "jobs", "stages", "sql?details=true&planDescription=true")
PAGES: Final = ("/environment/", "/jobs/", "/SQL/", "/SQL/execution/?id=0", "/executors/")


def page(address: str) -> str:
    with urllib.request.urlopen(address, timeout=60) as answer:
        return str(answer.read().decode())


def shown_pages(ui: str) -> dict[str, str]:
    """What the Spark UI shows, as JSON and as pages."""
    applications = f"{ui}/api/v1/applications"
    (application,) = json.loads(page(applications))
    rest = {name: page(f"{applications}/{application['id']}/{name}") for name in REST}
    return rest | {path: page(f"{ui}{path}") for path in PAGES}


def listening_at(port: int) -> list[str]:
    """The addresses of this machine where somebody listens on a port; :: stands for all."""
    found = set()
    for table, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            address, state = line.split()[1], line.split()[3]
            packed, _, number = address.partition(":")
            if state == "0A" and int(number, 16) == port:
                words = [
                    bytes.fromhex(packed[at : at + 8])[::-1] for at in range(0, len(packed), 8)
                ]
                found.add(socket.inet_ntop(family, b"".join(words)).removeprefix("::ffff:"))
    return sorted(found)


def command_lines() -> str:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            found.append((entry / "cmdline").read_bytes().decode(errors="replace"))
    return "\n".join(found)

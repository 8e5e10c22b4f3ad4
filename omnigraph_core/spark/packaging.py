"""Our own package, sent to executors that do not have it."""

from __future__ import annotations

import atexit
import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

_ROOT: Final = Path(__file__).parent.parent
_ASKED: Final = 8
"""Tasks that look for the package: more than one, as executors may differ."""


def ship_package(session: SparkSession) -> bool:
    """Send our package to the executors of a session, classic or Connect, if any lacks it.

    It is pure Python. Packages with compiled parts cannot be sent: they belong in the image of
    the executors.

    Returns:
        Whether it was sent.
    """
    asked = session.range(0, _ASKED, 1, _ASKED)
    found = asked.mapInArrow(_finder(_ROOT.name), "is_found boolean").collect()
    is_lacking = not all(row["is_found"] for row in found)
    if is_lacking:
        send_package(session)
    return is_lacking


def _finder(name: str) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """A function that travels by value: who lacks the package could not import it by name."""

    def find(batches: Iterator[Any]) -> Iterator[Any]:
        import importlib.util

        import pyarrow as pa

        for _ in batches:
            yield pa.RecordBatch.from_pydict(
                {"is_found": [importlib.util.find_spec(name) is not None]}
            )

    return find


def send_package(session: SparkSession) -> None:
    """Send our package to every executor of a session."""
    # Executors fetch it when they get their first task, also those that are started later.
    directory = tempfile.mkdtemp(prefix="omnigraph-package-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    archive = Path(directory) / f"{_ROOT.name}.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as package:
        for path in sorted(_ROOT.rglob("*")):
            if path.is_file() and path.suffix != ".pyc":
                package.write(path, path.relative_to(_ROOT.parent))
    session.addArtifact(str(archive), pyfile=True)

"""Our own package, sent to executors that do not have it."""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def ship_package(session: SparkSession) -> None:
    """Send our package to the executors of a session, classic or Connect.

    It is pure Python. Packages with compiled parts cannot be sent: they belong in the image.
    """
    root = Path(__file__).parent.parent
    with tempfile.TemporaryDirectory() as directory:
        archive = Path(directory) / f"{root.name}.zip"
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as package:
            for path in sorted(root.rglob("*")):
                if path.is_file() and path.suffix != ".pyc":
                    package.write(path, path.relative_to(root.parent))
        session.addArtifact(str(archive), pyfile=True)

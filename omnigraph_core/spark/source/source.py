"""The data source `omnigraph`: a type of a graph is read and written as a Spark data frame."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource

from omnigraph_core.errors import ConfigError, OmnigraphError
from omnigraph_core.ids import new_ulid
from omnigraph_core.spark.source.columns import arrow_schema, spark_schema
from omnigraph_core.spark.source.landing import check_columns
from omnigraph_core.spark.source.options import read_options, write_options
from omnigraph_core.spark.source.reader import OmnigraphReader
from omnigraph_core.spark.source.resolve import pin_table
from omnigraph_core.spark.source.told import told
from omnigraph_core.spark.source.writer import OmnigraphWriter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from omnigraph_core.spark.source.pin import Pin

FORMAT = "omnigraph"


def register(session: SparkSession) -> None:
    """Make the format `omnigraph` known to a session, classic or Connect."""
    session.dataSource.register(OmnigraphSource)


class OmnigraphSource(DataSource):
    """One type of a graph.

    Spark makes a source once for each `load` and hands it around as bytes. The snapshot is pinned
    before it first travels, so a data frame means the same rows whenever it is evaluated.
    """

    _pin: Pin | None = None

    @classmethod
    def name(cls) -> str:
        return FORMAT

    @told
    def schema(self) -> StructType:
        """The columns asked for, or all but the bytes of blobs."""
        pin, columns = self._pinned(), read_options(self.options).columns
        if columns is None:
            columns = tuple(name for name in pin.columns if name not in pin.bytes_columns)
        unknown = [name for name in columns if name not in pin.columns]
        if unknown:
            raise ConfigError(
                f"{pin.table_key} has no column `{'`, `'.join(unknown)}`",
                hint=f"columns there: {', '.join(pin.columns)}",
            )
        return spark_schema(pin.place.open().schema, columns)

    @told
    def reader(self, schema: StructType) -> OmnigraphReader:
        options = read_options(self.options)
        rows = options.rows_per_partition
        return OmnigraphReader(self._pinned(), schema, options.where, rows)

    @told
    def writer(self, schema: StructType, overwrite: bool) -> OmnigraphWriter:
        options = write_options(self.options, is_overwriting=overwrite)
        check_columns(options, arrow_schema(schema))
        return OmnigraphWriter(options, new_ulid())

    def _pinned(self) -> Pin:
        if self._pin is None:
            self._pin = pin_table(read_options(self.options))
        return self._pin

    def __getstate__(self) -> dict[str, Any]:
        """With a schema given, Spark asks for nothing before the source travels: pinned here."""
        with contextlib.suppress(OmnigraphError):  # told by `reader`, which Spark asks next
            self._pinned()
        return self.__dict__

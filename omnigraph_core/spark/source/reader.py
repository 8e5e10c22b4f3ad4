"""Reading a pinned table in Spark: groups of its fragments are partitions, batches come out.

Planning looks at metadata alone. A task opens the pinned version by its number and scans its own
fragments, so no task sees what others commit meanwhile.

A reader takes no filters from Spark (`pushFilters`): Spark 4.3 keeps what one use of a frame has
pushed and reads every other use of it by the same filters, which gives wrong rows. Who wants Lance
to filter says so with an option, which belongs to the frame.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from omnigraph_core.spark.source.columns import arrow_schema, as_spark, check_asked
from omnigraph_core.spark.source.told import told
from omnigraph_core.storage.portions import fragment_portions
from omnigraph_core.storage.row_space import check_filter, read_fragments

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from omnigraph_core.spark.source.pin import Pin


class FragmentGroup(InputPartition):
    """The fragments that one task reads."""

    def __init__(self, fragment_ids: tuple[int, ...]) -> None:
        super().__init__(fragment_ids)


class OmnigraphReader(DataSourceReader):
    """Reads some columns of one table at one version. Travels to executors as it is."""

    def __init__(
        self, pin: Pin, asked: StructType, where: str | None, rows_per_partition: int
    ) -> None:
        """
        Raises:
            ConfigError: columns that the type does not have, or has as another type; or a filter
                that is none.
        """
        self._pin = pin
        self._columns = tuple(asked.fieldNames())
        self._where = where
        self._rows_per_partition = rows_per_partition
        table = pin.place.open()
        check_asked(asked, table.schema, pin.columns)
        if where is not None:
            check_filter(table, where)
        self._expected = arrow_schema(asked)

    @told
    def partitions(self) -> list[InputPartition]:
        table = self._pin.place.open()
        return [FragmentGroup(ids) for ids in fragment_portions(table, self._rows_per_partition)]

    @told
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        # For a table without fragments Spark makes one up.
        ids = partition.value if isinstance(partition, FragmentGroup) else ()
        table = self._pin.place.open()
        for rows in read_fragments(table, self._columns, ids, where=self._where):
            if rows.num_rows:
                yield as_spark(rows, self._expected)

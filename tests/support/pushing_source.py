"""The smallest data source that takes a condition from Spark: three numbers, or one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, EqualTo, InputPartition

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql.datasource import Filter
    from pyspark.sql.types import StructType


class PushingSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "pushing"

    def schema(self) -> str:
        return "n bigint"

    def reader(self, schema: StructType) -> PushingReader:
        return PushingReader()


class PushingReader(DataSourceReader):
    def __init__(self) -> None:
        self._wanted: int | None = None

    def pushFilters(self, filters: list[Filter]) -> Iterator[Filter]:
        for asked in filters:
            if isinstance(asked, EqualTo):
                self._wanted = asked.value
            else:
                yield asked

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        numbers = [n for n in (1, 2, 3) if self._wanted in (None, n)]
        yield pa.RecordBatch.from_pydict({"n": pa.array(numbers, pa.int64())})

"""Reciprocal rank fusion over a complete match: rows come in, the same with what `rrf` gives them.

Each of the two rankings orders the different nodes that its variable is bound to; a node's value is
made of its places in both. Places are counted across partitions, so nothing is gathered.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import Window as SparkWindow
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType

from omnigraph_core.exec.rank import rrf_constant
from omnigraph_core.query.typed import Nearest
from omnigraph_core.spark.query.cells import cell_of, id_of
from omnigraph_core.spark.query.frame import column
from omnigraph_core.spark.query.tables import Side
from omnigraph_core.spark.query.tasks import bordered

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import Column, DataFrame

    from omnigraph_core.exec.window import Window
    from omnigraph_core.query.typed import Bm25, Rrf
    from omnigraph_core.spark.query.context import Context
    from omnigraph_core.spark.query.frame import Frame

FEW_RANKED: Final = 1_000_000
"""Nodes that are ranked by one task."""
MOST_COUNTED: Final = 2**31 - 1
"""Rows up to which Spark knows limits."""
_ID: Final = "#id"
_PLACE: Final = "#place"
_PARTITION: Final = "#partition"
_BEHIND: Final = 1 << 40
"""Beyond every place in a first ranking."""


def score_column(number: int) -> str:
    return f"#rrf{number}"


def tie_column(number: int) -> str:
    return f"#tie{number}"


def fused(
    ctx: Context, frame: Frame, rank: Rrf, number: int, window: Window, *, is_leading: bool
) -> Frame:
    """Rows with the score and the tie-break of an `rrf`; of a leading one only those it reaches."""
    assert frame.rows is not None
    variable = rank.arms[0].field.variable
    name = id_of(variable).name
    held = ctx.actions.held(frame.rows)
    scores = [column(cell_of(arm).name).alias(f"#arm{n}") for n, arm in enumerate(rank.arms)]
    nodes = held.select(column(name).alias(_ID), *scores).where(column(_ID).isNotNull())
    nodes = ctx.actions.held(nodes.dropDuplicates([_ID]))
    most = ctx.tables.node_count(ctx.tables.types.bound_to(variable)[1])
    first, second = (
        _ranked(ctx, nodes, arm, place, window, most) for place, arm in enumerate(rank.arms)
    )
    both = first.withColumnRenamed(_PLACE, "#first").join(
        second.withColumnRenamed(_PLACE, "#second").hint("shuffle_hash"), [_ID], "full_outer"
    )
    k = rrf_constant(rank, ctx.values)
    score = _inverse(k, column("#second")) + _inverse(k, column("#first"))
    tie = F.coalesce(column("#first"), column("#second") + F.lit(_BEHIND))
    made = both.select(
        column(_ID), score.alias(score_column(number)), tie.alias(tie_column(number))
    )
    side = Side(made, most, 96)
    frame = replace(frame, rows=held)
    rows = ctx.joins.joined(frame, side, [(name, _ID)], "inner" if is_leading else "left")
    return replace(frame, rows=rows.drop(_ID))


def _inverse(k: int, place: Column) -> Column:
    """What a place in one ranking adds; nothing without one."""
    return F.coalesce(F.lit(1.0) / (F.lit(k + 1.0) + place.cast("double")), F.lit(0.0))


def _ranked(
    ctx: Context, nodes: DataFrame, arm: Nearest | Bm25, number: int, window: Window, most: int
) -> DataFrame:
    """The nodes an arm reaches and their places, best first; those that are equally good by id."""
    score = column(f"#arm{number}")
    is_nearest = isinstance(arm, Nearest)
    keys = [score.asc() if is_nearest else score.desc(), column(_ID).asc()]
    reached = nodes.where(score.isNotNull()).select(column(_ID), score)
    if is_nearest and window.end is not None and window.end <= MOST_COUNTED:
        reached = reached.orderBy(*keys).limit(window.end)
        most = min(most, window.end)
    if most <= FEW_RANKED:
        place = F.row_number().over(SparkWindow.orderBy(*keys)) - 1
        return reached.select(column(_ID), place.cast("bigint").alias(_PLACE))
    return _numbered(ctx, reached.orderBy(*keys))


def _numbered(ctx: Context, ordered: DataFrame) -> DataFrame:
    """Ordered rows by place: each partition counts from where the ones before it end."""
    held = ctx.actions.held(ordered.select(column(_ID)))
    held = held.withColumn(_PARTITION, F.spark_partition_id())
    counts = ctx.actions.act(held.groupBy(column(_PARTITION)).count().collect)
    sizes = {int(row[_PARTITION]): int(row["count"]) for row in counts}
    most = max(sizes, default=-1) + 1
    starts = [0, *accumulate(sizes.get(number, 0) for number in range(most))]
    task = _Numbering(tuple(starts), ctx.tables.variables)
    fields = [StructField(_ID, StringType()), StructField(_PLACE, LongType())]
    return held.mapInArrow(task, StructType(fields))


@dataclass(frozen=True, slots=True)
class _Numbering:
    """Numbers the rows of a partition from where those before it end."""

    starts: tuple[int, ...]
    variables: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """For `mapInArrow`."""
        return bordered(self._rows(batches), self.variables)

    def _rows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        next_place: int | None = None
        for batch in batches:
            if not batch.num_rows:
                continue
            if next_place is None:
                next_place = self.starts[batch.column(_PARTITION)[0].as_py()]
            places = range(next_place, next_place + batch.num_rows)
            next_place += batch.num_rows
            yield pa.record_batch({_ID: batch.column(_ID), _PLACE: pa.array(places, pa.int64())})

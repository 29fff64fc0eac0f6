# SPDX-License-Identifier: Apache-2.0
"""Which column of a kind a graph is wide by, and which columns exist when nothing has been stored yet."""

from server.query.complaint import QueryError, did_you_mean
from server.store.protocol import ColumnInfo, KindInfo
from server.store.push import ValueMerge

DEFAULT_KIND = "cpu"
OVERHEAD_KIND = "overhead"
"""What agents say of their own cost."""
CPU = KindInfo(
    DEFAULT_KIND,
    (
        ColumnInfo("samples", "count", ValueMerge.SUM),
        ColumnInfo("ns", "ns", ValueMerge.SUM),
        ColumnInfo("observed", "count", ValueMerge.SUM),
    ),
)


def with_columns(kind: KindInfo) -> KindInfo:
    """Give a kind of which only accounts were stored, for nothing happened, the columns to ask for: then it has no rows."""
    if kind.columns:
        return kind
    return CPU if kind.name == DEFAULT_KIND else KindInfo(kind.name, (ColumnInfo("count", "count", ValueMerge.SUM),))


def width_column(kind: KindInfo, name: str = "") -> ColumnInfo:
    """Give the sum column called `name`; without a name time before counts. Raises QueryError naming those there are."""
    sums = [column for column in kind.columns if column.merge is ValueMerge.SUM]
    if not name:
        if not sums:
            raise QueryError(f"kind {kind.name} has no column that adds up")
        return next((column for column in sums if column.unit == "ns"), sums[0])
    for column in sums:
        if column.name == name:
            return column
    raise QueryError(f"kind {kind.name} has no column {name!r} that adds up", hint=did_you_mean(name, (c.name for c in sums)))

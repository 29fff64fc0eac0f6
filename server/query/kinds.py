# SPDX-License-Identifier: Apache-2.0
"""Which column of a kind a graph is wide by, and which columns exist when nothing has been stored yet."""

from collections.abc import Iterable

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


_COUNT, _NS = ColumnInfo("count", "count", ValueMerge.SUM), ColumnInfo("ns", "ns", ValueMerge.SUM)
_KNOWN = {
    DEFAULT_KIND: CPU.columns,
    "time": (ColumnInfo("switches", "count", ValueMerge.SUM), ColumnInfo("cpu_ns", "ns", ValueMerge.SUM)),
    "tcp": (ColumnInfo("events", "count", ValueMerge.SUM),),
    **dict.fromkeys(("offcpu", "runqueue", "lock", "lock_hold", "syscall", "syscall_stack"), (_COUNT, _NS)),
    "tcp_stack": (_COUNT,),
}
"""What can be asked of kinds that agents know and of which nothing was stored: they have no rows."""


def with_columns(kind: KindInfo) -> KindInfo:
    """Give a kind of which only accounts were stored, for nothing happened, the columns to ask for."""
    return kind if kind.columns else KindInfo(kind.name, _KNOWN.get(kind.name, (_COUNT,)))


def kinds_to_ask(stored: Iterable[KindInfo]) -> dict[str, KindInfo]:
    """Kinds by name: those stored, and those that agents know. A question for one of the latter is no mistake."""
    known = {name: KindInfo(name, columns) for name, columns in _KNOWN.items()}
    return known | {kind.name: with_columns(kind) for kind in stored}


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

# SPDX-License-Identifier: Apache-2.0
"""The series of a batch: labels, row keys and value columns, decoded as whole arrays and checked."""

from collections.abc import Mapping, Sequence

import numpy as np

from emberwatch.v1 import batch_pb2 as pb
from server.errors import BadRequest, LimitExceeded
from server.ingest.checks import I64, U64, bounded, column, column_of, indices, name, text_of
from server.ingest.limits import IngestLimits
from server.store.protocol import OVERFLOW_SERVICE
from server.store.push import PushColumn, PushKeys, PushSeries, ValueMerge

_MOST_KEY = 1 << 31
_MOST_VALUE = 1 << 62


def decode_series(series: Sequence[pb.Series], nodes: int, strings: int, limits: IngestLimits) -> list[PushSeries]:
    """All series of a batch whose tables have that many entries."""
    found, rows = [], 0
    for one in bounded(series, limits.series, "series of a push"):
        made = _series(one, nodes, strings, limits)
        rows += made.known_keys.size + made.new_keys.stacks.size
        if rows > limits.rows:
            raise LimitExceeded(f"the push has more than {limits.rows} rows")
        found.append(made)
    return found


def _series(series: pb.Series, nodes: int, strings: int, limits: IngestLimits) -> PushSeries:
    kind = name(series.kind, limits.label_name_bytes, "the kind of a series")
    labels = _labels(series.labels, limits)
    known = _known_keys(series.known_keys, limits)
    new = _new_keys(series.new_keys, nodes, strings, limits)
    columns = _columns(series.columns, known.size + new.stacks.size, limits)
    return PushSeries(labels["service"], labels, kind, known, new, columns)


def _labels(labels: Sequence[pb.Label], limits: IngestLimits) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for label in bounded(labels, limits.labels, "labels of a series"):
        label_name = name(label.name, limits.label_name_bytes, "the name of a label")
        if len(label.value) > limits.label_value_bytes:
            raise LimitExceeded(f"label {label_name} has a value of {len(label.value)} bytes; the limit is {limits.label_value_bytes}")
        if label_name in found or label_name == "host":
            raise BadRequest(f"label {label_name} is there twice" if label_name in found else "label host is given by the server")
        found[label_name] = text_of(label.value)
    if not found.get("service") or found["service"] == OVERFLOW_SERVICE:
        raise BadRequest(f"a series has {found.get('service', '')!r} for its service")
    return found


def _known_keys(encoded: pb.Column, limits: IngestLimits) -> I64:
    known = column(encoded, limits.rows, "known keys of a series")
    if known.size and (int(known[-1]) >= _MOST_KEY or np.any(known[1:] <= known[:-1])):
        raise BadRequest("the known keys of a series do not ascend, or are no numbers of this server")
    return known.astype(np.int64)


def _new_keys(table: pb.KeyTable, nodes: int, strings: int, limits: IngestLimits) -> PushKeys:
    stacks = column(table.stacks, limits.rows, "new keys of a series")
    count = stacks.size
    return PushKeys(
        stacks=indices(table.stacks, count, nodes, "stacks of new keys"),
        seconds=indices(table.seconds, count, nodes, "second stacks of new keys"),
        objects=indices(table.objects, count, strings, "objects of new keys"),
        threads=indices(table.threads, count, strings, "threads of new keys"),
        classes=indices(table.classes, count, strings, "classes of new keys"),
    )


def _columns(columns: Sequence[pb.ValueColumn], rows: int, limits: IngestLimits) -> list[PushColumn]:
    found: list[PushColumn] = []
    for one in bounded(columns, limits.columns, "columns of a series"):
        column_name = name(one.name, limits.label_name_bytes, "the name of a column")
        if any(column_name == other.name for other in found):
            raise BadRequest(f"column {column_name} is there twice")
        if int(one.merge) not in [int(merge) for merge in ValueMerge] or len(one.unit) > limits.label_name_bytes:
            raise BadRequest(f"column {column_name} merges by {one.merge} in {one.unit[:100]!r}, which this server does not know")
        merge = ValueMerge(one.merge)
        if one.times_first:
            first = found[0].values if found else None
            _check_product(column_name, first, one.times_first)
            found.append(PushColumn(column_name, one.unit, merge, None, one.times_first))
        else:
            found.append(PushColumn(column_name, one.unit, merge, _values(one.values, rows, column_name)))
    if not found:
        raise BadRequest("a series has no columns")
    return found


def _values(encoded: pb.Column, rows: int, column_name: str) -> U64:
    values = column_of(encoded, rows, f"values of column {column_name}")
    if values.size and int(values.max()) >= _MOST_VALUE:
        raise BadRequest(f"a value of {int(values.max())} in column {column_name} cannot be")
    return values


def _check_product(column_name: str, first: U64 | None, factor: int) -> None:
    if first is None:
        raise BadRequest(f"column {column_name} is a multiple of a first column that is not there")
    if int(first.max(initial=0)) * factor >= _MOST_VALUE:
        raise BadRequest(f"{factor} times the first column, in column {column_name}, cannot be")

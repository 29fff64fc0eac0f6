# SPDX-License-Identifier: Apache-2.0
"""Tables by object, heat maps and columns over time as JSON."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from server.http.serialise import Json
from server.query.columns_query import Columns
from server.query.grouping import By
from server.query.heatmap_query import HeatMap
from server.query.object_query import Buckets, Functions, ObjectTable
from server.query.peers_query import Edge
from server.query.slots import Slots
from server.query.timerange import SECOND_NS
from server.store.protocol import ColumnInfo

MOST_FUNCTIONS = 5
"""Functions named of one object."""
MOST_EDGES = 200
"""Edges of one answer."""


def object_table_json(table: ObjectTable, functions: Mapping[By, Functions], peers: Mapping[str, tuple[str, str]] | None) -> Json:
    """The table; `functions` are those of each object, when asked for, `peers` who is behind which."""
    values = {name: column.tolist() for name, column in table.values.items()}
    histograms = {name: _buckets_json(buckets) for name, buckets in table.histograms.items()}
    rows = [
        {
            "name": name,
            "values": {column: numbers[at] for column, numbers in values.items()},
            "histograms": {histogram: rows[at] for histogram, rows in histograms.items()},
            "errors": [{"error": error, "count": count} for error, count in table.errors.get(name, ())],
            **({} if peers is None else {"peer": _peer_json(peers.get(name))}),
            **{str(which): _functions_json(found.get(name, ())) for which, found in functions.items()},
        }
        for at, name in enumerate(table.names)
    ]
    return {
        "kind": table.kind,
        "by": table.by,
        "from_s": table.range.from_s,
        "until_s": table.range.until_s,
        "seconds": table.covered_ns / SECOND_NS,
        "sort": table.sort,
        "columns": [_column_json(column) for column in table.columns],
        "rows": rows,
        "rows_total": table.rows_total,
        "totals": dict(table.totals),
        "lost": dict(table.losses.lost),
        "lost_share": table.losses.lost_share,
    }


def heatmap_json(heat: HeatMap) -> Json:
    """Counts by slot, null where no window started; quantiles in ns."""
    counts = [row if has else None for row, has in zip(heat.counts.tolist(), heat.has_data.tolist(), strict=True)]
    return {
        "kind": heat.kind,
        **_slots_json(heat.slots),
        "counts": counts,
        "p50_ns": _numbers(heat.p50_ns),
        "p99_ns": _numbers(heat.p99_ns),
    }


def columns_json(found: Columns) -> Json:
    """Columns with a value a slot, null where no window started."""
    has_data = found.has_data.tolist()
    columns = [
        {**_column_json(info), "values": [v if has else None for v, has in zip(found.values[info.name].tolist(), has_data, strict=True)]}
        for info in found.columns
    ]
    return {"kind": found.kind, **_slots_json(found.slots), "columns": columns}


def peers_json(edges: Sequence[Edge], service: str) -> Json:
    """Who talks to whom; with a service, what it calls and who calls it."""
    if not service:
        return {"edges": [_edge_json(edge) for edge in edges[:MOST_EDGES]], "edges_total": len(edges)}
    calls, called_by = ([e for e in edges if e.caller == service], [e for e in edges if e.service == service and e.caller != service])
    return {
        "calls": [_edge_json(edge) for edge in calls[:MOST_EDGES]],
        "calls_total": len(calls),
        "called_by": [_edge_json(edge) for edge in called_by[:MOST_EDGES]],
        "called_by_total": len(called_by),
    }


def _edge_json(edge: Edge) -> Json:
    return {"caller": edge.caller, "service": edge.service, "host": edge.host, "address": edge.address, "values": dict(edge.values)}


def _peer_json(peer: tuple[str, str] | None) -> Json | None:
    return None if peer is None else {"service": peer[0], "host": peer[1]}


def _slots_json(slots: Slots) -> Json:
    return {
        "from_s": slots.range.from_s,
        "until_s": slots.range.until_s,
        "step_s": slots.step_ns / SECOND_NS,
        "times_s": slots.starts_s(),
    }


def _column_json(column: ColumnInfo) -> Json:
    return {"name": column.name, "unit": column.unit, "merge": column.merge.name.lower()}


def _buckets_json(buckets: Buckets) -> list[Json]:
    medians, tails = _numbers(buckets.p50_ns), _numbers(buckets.p99_ns)
    return [
        {"counts": counts, "p50_ns": p50, "p99_ns": p99} for counts, p50, p99 in zip(buckets.counts.tolist(), medians, tails, strict=True)
    ]


def _functions_json(functions: Sequence[tuple[str, float]]) -> list[Json]:
    return [{"name": name, "share": share} for name, share in functions[:MOST_FUNCTIONS]]


def _numbers(values: npt.NDArray[np.float64]) -> list[float | None]:
    return [None if math.isnan(value) else value for value in values.tolist()]

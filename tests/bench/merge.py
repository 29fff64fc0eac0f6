# SPDX-License-Identifier: Apache-2.0
"""Merge of 10 M rows against a loop in C and DuckDB; totals and cut of a tree of 1 M nodes; what an answer carries."""

import ctypes
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import duckdb
import numpy as np
import numpy.typing as npt

from server.profile.cut import View, cut
from server.profile.totals import WeighedTree, add_up, weigh
from server.query.merge import key_weights
from server.store.protocol import Selection, Store
from tests.bench.c_code import compiled
from tests.bench.fixed_store import SERVICE, OneServiceStore
from tests.bench.report import MS, NS_PER_ROW, Line, against, bounded, told
from tests.bench.timing import BenchError, Effort, interleaved
from tests.bench.trees import draw_tree

ROWS, KEYS, PIECE_ROWS = 10_000_000, 200_000, 100_000
NODES = 1_000_000
WIDTH_PX = 1200

Values = npt.NDArray[np.generic]
Merge = Callable[[], Values]


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of many windows, one after another: keys ascend within a window, a few have most of the samples."""

    keys: npt.NDArray[np.int64]
    samples: npt.NDArray[np.uint16]


def run(effort: Effort) -> Iterator[Line]:
    """All lines of the bench."""
    yield from _merge_lines(effort)
    yield from _tree_lines(effort)


def _merge_lines(effort: Effort) -> Iterator[Line]:
    rows = _draw_rows(effort.rows(ROWS))
    with tempfile.TemporaryDirectory() as folder:
        sides = {"ours": _ours(rows), "C": _in_c(rows, Path(folder)), "DuckDB": _in_duckdb(rows)}
        _check_alike({name: side() for name, side in sides.items()})
        taken = interleaved(sides, effort.rounds)
    ours, c, duck = (taken[name] / rows.keys.size for name in ("ours", "C", "DuckDB"))
    what = f"merge {rows.keys.size / 1e6:g} M rows onto {KEYS:,} keys"
    yield against(what, ours, ("C -O2", c), NS_PER_ROW, 2.2)
    yield against(what, ours, ("DuckDB", duck), NS_PER_ROW, 1 / 4)


def _draw_rows(count: int) -> _Rows:
    random = np.random.default_rng(11)
    windows = max(1, count // PIECE_ROWS)
    keys = [np.sort(random.choice(KEYS, PIECE_ROWS, replace=False)) for _ in range(windows)]
    samples = random.zipf(2.0, windows * PIECE_ROWS).clip(max=50_000).astype(np.uint16)
    return _Rows(np.concatenate(keys).astype(np.int64), samples)


def _ours(rows: _Rows) -> Merge:
    store = cast(Store, OneServiceStore(rows.keys, rows.samples, KEYS, PIECE_ROWS))
    everything = Selection("cpu", 0, 1)
    return lambda: key_weights(store, everything, ("samples",)).services[SERVICE].columns["samples"]


def _in_c(rows: _Rows, folder: Path) -> Merge:
    add_rows = ctypes.CDLL(str(compiled("add_rows", folder, "-shared", "-fPIC"))).add_rows
    add_rows.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]

    def merge() -> Values:
        totals = np.zeros(KEYS, np.uint64)
        add_rows(totals.ctypes.data, rows.keys.ctypes.data, rows.samples.ctypes.data, rows.keys.size)
        return totals

    return merge


def _in_duckdb(rows: _Rows) -> Merge:
    """One thread: CPU time is compared, not cores. Reading the arrays costs it no more than reading a table of its own."""
    connection = duckdb.connect(config={"threads": 1})
    connection.register("rows", {"key": rows.keys, "samples": rows.samples})

    def merge() -> Values:
        answer = connection.execute("SELECT key, sum(samples) AS total FROM rows GROUP BY key").fetchnumpy()
        totals = np.zeros(KEYS, np.uint64)
        totals[answer["key"]] = answer["total"].astype(np.uint64)
        return totals

    return merge


def _check_alike(answers: Mapping[str, Values]) -> None:
    for name, answer in answers.items():
        if not np.array_equal(answer, answers["C"]):
            raise BenchError(f"{name} and C do not come to the same sums")


def _tree_lines(effort: Effort) -> Iterator[Line]:
    drawn = draw_tree(effort.rows(NODES))
    tree, weighed = drawn.tree, weigh(drawn.tree, drawn.nodes, drawn.weights)
    view = View(width_px=WIDTH_PX)
    taken = interleaved(
        {
            "totals and cut": lambda: cut(add_up(tree, weighed.own), view),
            "weights": lambda: weigh(tree, drawn.nodes, drawn.weights),
        },
        3 * effort.rounds,
    )
    size = f"{len(tree) / 1e6:.2g} M nodes"
    yield bounded(f"totals and cut of a tree of {size}", taken["totals and cut"], MS, 0.012)
    yield told(f"weights of {drawn.nodes.size:,} stacks onto it, with totals", taken["weights"], MS)
    yield _payload_line(weighed, view)


def _payload_line(weighed: WeighedTree, view: View) -> Line:
    """Every node sent is half a pixel wide or more, and every node that is so wide is sent."""
    shown = cut(weighed, view)
    least = -(-weighed.sum // (2 * view.width_px))
    narrow = int((shown.total[1:] < least).sum())
    sent, wide = int((shown.hidden == 0).sum()), int((weighed.total >= least).sum())
    is_met = narrow == 0 and sent == wide
    what = f"nodes sent of {len(weighed.tree):,} at {view.width_px} px"
    return Line(what, f"{sent:,}", f"{narrow} under half a px", "", "0 narrower", is_met)

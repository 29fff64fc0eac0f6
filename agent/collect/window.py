# SPDX-License-Identifier: Apache-2.0
"""Builds the batch of one window (hop 5 of the path in README): rows of (series, stack, thread), tables, accounts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from agent.collect.locate import Locator
from agent.collect.places import PlaceTable
from agent.collect.ragged import Index
from agent.collect.stacks import Sources, stacks_of_rows
from agent.collect.tables import TableBuilder
from agent.collect.threads import ThreadNames
from agent.collect.tree import tree_from_stacks
from agent.records.drain import CpuDrain
from agent.records.folded import Folded, Keys, Rows, Tables, Values, message_from_folded
from agent.records.kernel_layout import KernelLayout
from agent.records.process import Process, ProcessKey
from agent.records.window import Overhead, WindowFacts
from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1.marks_pb2 import LossReason

U64 = npt.NDArray[np.uint64]

AGENT_SERVICE = b"emberwatch-agent"
UNKNOWN_SERVICE = b"unknown"
"""For a process that was gone before its service could be told."""
CPU_KIND = "cpu"
OVERHEAD_KIND = "overhead"
_LABEL_BYTES = 256
_NO_ROWS = np.zeros(0, np.int64)
_NODE_BITS, _THREAD_BITS = np.uint64(28), np.uint64(16)


@dataclass(frozen=True, slots=True)
class _SeriesKey:
    """What tells the series of a window apart; kind and config labels are the same for all."""

    service: bytes
    version: bytes


class WindowBuilder:
    """Builds batches; keeps what it learned of processes, places and thread names between windows."""

    def __init__(self) -> None:
        self._places = PlaceTable()
        self._locator = Locator(self._places)
        self._threads = ThreadNames()

    def build(
        self, drain: CpuDrain, processes: Callable[[ProcessKey], Process], layout: KernelLayout, facts: WindowFacts
    ) -> pb.FoldedBatch:
        """Build the whole batch of one window. `processes` must answer for every key of `drain`."""
        if self._places.is_full:
            self._places = PlaceTable()
            self._locator = Locator(self._places)
        tables = TableBuilder(self._places)
        losses: dict[LossReason, int] = {}
        series: list[Rows] = []
        if len(drain.keys):
            series, tree_tables, losses = self._cpu_rows(drain, processes, layout, (facts, tables))
        else:
            tree_tables = tables.finished(_NO_ROWS, _NO_ROWS, np.zeros(0, np.uint64))
        if facts.overhead is not None:
            series.append(_overhead_rows(facts.overhead, facts))
        account = _account(drain, losses, facts)
        return message_from_folded(Folded(facts.host, tree_tables, tuple(series), [account]))

    def _cpu_rows(
        self,
        drain: CpuDrain,
        find: Callable[[ProcessKey], Process],
        layout: KernelLayout,
        into: tuple[WindowFacts, TableBuilder],
    ) -> tuple[list[Rows], Tables, dict[LossReason, int]]:
        facts, tables = into
        process_keys, process_of_row = _distinct_processes(drain.keys)
        found = [find(key) for key in process_keys]
        stacks = stacks_of_rows(drain, Sources(self._locator, found, process_of_row, layout))
        self._locator.trim()
        codes, frames = np.unique(stacks.codes, return_inverse=True)
        tree = tree_from_stacks(frames + 1, stacks.bounds)
        series_keys, series_of_process = _numbered([_SeriesKey(process.service or UNKNOWN_SERVICE, process.version) for process in found])
        series_of_row = np.array(series_of_process, np.int64)[process_of_row]
        services = [key.service for key in series_keys]
        thread_of_row = self._threads_of_rows(drain.keys["comm"], series_of_row, services, tables)
        rows = _merged(series_of_row, tree.leaves[stacks.stack_of_row], thread_of_row, drain.counts)
        series = [
            _rows_of_series(_labels(key.service, key.version, facts), rows, index, drain.period_ns) for index, key in enumerate(series_keys)
        ]
        return series, tables.finished(tree.parents, tree.frames, codes), stacks.losses

    def _threads_of_rows(
        self, comms: npt.NDArray[np.bytes_], series_of_row: Index, services: Sequence[bytes], tables: TableBuilder
    ) -> Index:
        """Answer the string of each row's thread name. Distinct pairs only are looked at one by one."""
        distinct, comm_of_row = np.unique(comms, return_inverse=True)
        pairs, pair_of_row = np.unique(series_of_row * len(distinct) + comm_of_row, return_inverse=True)
        names = distinct.tolist()
        strings = [tables.string(self._threads.name(services[pair // len(names)], names[pair % len(names)])) for pair in pairs.tolist()]
        return np.array(strings, np.int64)[pair_of_row]


@dataclass(frozen=True, slots=True)
class _MergedRows:
    """Rows sorted by series, stack, thread, no two alike."""

    series: U64
    stacks: Index
    threads: Index
    samples: U64


def _distinct_processes(keys: npt.NDArray[np.void]) -> tuple[list[ProcessKey], Index]:
    """Answer the processes and, for each row, which one it is of."""
    order = np.lexsort((keys["exec_id"], keys["start_boot_ns"], keys["pid"]))
    pids, starts, exec_ids = keys["pid"][order], keys["start_boot_ns"][order], keys["exec_id"][order]
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = (pids[1:] != pids[:-1]) | (starts[1:] != starts[:-1]) | (exec_ids[1:] != exec_ids[:-1])
    of_row = np.empty(len(order), np.int64)
    of_row[order] = np.cumsum(is_first) - 1
    parts = zip(pids[is_first].tolist(), starts[is_first].tolist(), exec_ids[is_first].tolist(), strict=True)
    return [ProcessKey(*part) for part in parts], of_row


def _numbered(keys: Sequence[_SeriesKey]) -> tuple[list[_SeriesKey], list[int]]:
    """Number distinct keys from 0, sorted, so that series come in a stable order."""
    distinct = sorted(set(keys), key=lambda key: (key.service, key.version))
    numbers = {key: number for number, key in enumerate(distinct)}
    return distinct, [numbers[key] for key in keys]


def _merged(series: Index, stacks: Index, threads: Index, counts: U64) -> _MergedRows:
    """Add up rows that became alike (processes of one service, thread names of one form)."""
    packed = (series.astype(np.uint64) << _NODE_BITS | stacks.astype(np.uint64)) << _THREAD_BITS | threads.astype(np.uint64)
    order = np.argsort(packed)
    packed = packed[order]
    is_first = np.ones(len(packed), np.bool_)
    is_first[1:] = packed[1:] != packed[:-1]
    samples = np.add.reduceat(counts[order], np.flatnonzero(is_first))
    packed = packed[is_first]
    nodes = packed >> _THREAD_BITS & np.uint64((1 << int(_NODE_BITS)) - 1)
    names = packed & np.uint64((1 << int(_THREAD_BITS)) - 1)
    return _MergedRows(packed >> (_NODE_BITS + _THREAD_BITS), nodes.astype(np.int64), names.astype(np.int64), samples)


def _rows_of_series(labels: Sequence[pb.Label], merged: _MergedRows, series: int, period_ns: int) -> Rows:
    first, end = np.searchsorted(merged.series, np.array([series, series + 1], np.uint64)).tolist()
    zeros = np.zeros(end - first, np.int64)
    keys = Keys(merged.stacks[first:end], zeros, zeros, merged.threads[first:end], zeros)
    none = np.zeros(0, np.uint64)
    columns = (
        Values("samples", "count", pb.MERGE_SUM, 0, merged.samples[first:end]),
        Values("ns", "ns", pb.MERGE_SUM, period_ns, none),
        Values("observed", "count", pb.MERGE_SUM, 1, none),
    )
    return Rows(labels, CPU_KIND, none, keys, columns)


def _overhead_rows(overhead: Overhead, facts: WindowFacts) -> Rows:
    """One row without a stack: what the agent cost."""
    zero = np.zeros(1, np.int64)
    columns = (
        _one_value("cpu_ns", "ns", pb.MERGE_SUM, overhead.cpu_ns),
        _one_value("bpf_ns", "ns", pb.MERGE_SUM, overhead.bpf_ns),
        _one_value("rss_bytes", "bytes", pb.MERGE_MAX, overhead.rss_bytes),
        _one_value("map_bytes", "bytes", pb.MERGE_MAX, overhead.map_bytes),
    )
    labels = _labels(AGENT_SERVICE, facts.host.agent_version.encode(), facts)
    return Rows(labels, OVERHEAD_KIND, np.zeros(0, np.uint64), Keys(zero, zero, zero, zero, zero), columns)


def _one_value(name: str, unit: str, merge: pb.Merge, value: int) -> Values:
    return Values(name, unit, merge, 0, np.array([value], np.uint64))


def _labels(service: bytes, version: bytes, facts: WindowFacts) -> list[pb.Label]:
    """Labels of a series, sorted by name; the config cannot rename a service."""
    values = {**facts.labels, "service": service, **({"version": version} if version else {})}
    return [pb.Label(name=name, value=value[:_LABEL_BYTES]) for name, value in sorted(values.items())]


def _account(drain: CpuDrain, stack_losses: dict[LossReason, int], facts: WindowFacts) -> pb.Account:
    """The account of the window; what earlier windows lost on their way is due and lost in this one."""
    losses = dict(stack_losses)
    for reason, value in (*drain.ticks.lost.items(), *facts.carried_losses.items()):
        losses[reason] = losses.get(reason, 0) + value
    return pb.Account(
        kind=CPU_KIND,
        expected=drain.ticks.expected + sum(facts.carried_losses.values()),
        stored=int(drain.counts.sum()),
        idle=drain.ticks.idle,
        filtered=drain.ticks.filtered,
        losses=[pb.Loss(reason=reason, value=value) for reason, value in sorted(losses.items()) if value],
    )

# SPDX-License-Identifier: Apache-2.0
"""Builds the batch of one window (hop 5 of the path in README): rows of (series, stack, thread ...), tables, accounts."""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from agent.collect.class_overrides import ClassOverrides, RowOwners
from agent.collect.kind_rows import CPU_KIND, KindRows, RowTable, row_table
from agent.collect.locate import Locator
from agent.collect.peers import PeerNames
from agent.collect.places import PlaceTable
from agent.collect.ragged import Index
from agent.collect.rows import MergedRows, RowKeys, merged
from agent.collect.stacks import Sources, StackedRows, StackLosses, stacks_of_rows
from agent.collect.tables import TableBuilder
from agent.collect.threads import ThreadNames
from agent.collect.tree import tree_from_stacks
from agent.records.drain import CpuDrain
from agent.records.event_drain import EventDrain, WindowDrain
from agent.records.folded import Folded, Keys, Rows, Tables, Values, message_from_folded
from agent.records.kernel_layout import KernelLayout
from agent.records.process import Process, ProcessKey
from agent.records.window import Overhead, WindowFacts
from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1.marks_pb2 import LossReason

U64 = npt.NDArray[np.uint64]
Losses = Mapping[LossReason, int]

AGENT_SERVICE = b"emberwatch-agent"
UNKNOWN_SERVICE = b"unknown"
"""For a process that was gone before its service could be told."""
TCP_KIND = "tcp"
OVERHEAD_KIND = "overhead"
_LABEL_BYTES = 256
_NO_ROWS = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class _SeriesKey:
    """What tells the series of a window apart; kind and config labels are the same for all."""

    service: bytes
    version: bytes


@dataclass(frozen=True, slots=True)
class _Found:
    """Of all rows of the table: the series, and the node of the stack."""

    series_keys: Sequence[_SeriesKey]
    series_of_row: Index
    node_of_row: Index
    tables: TableBuilder


class WindowBuilder:
    """Builds batches; keeps what it learned of processes, places and thread names between windows."""

    def __init__(self, classes: ClassOverrides | None = None) -> None:
        self._classes = classes or ClassOverrides()
        self._places = PlaceTable()
        self._locator = Locator(self._places)
        self._threads = ThreadNames()
        self._peers = PeerNames()

    def build(
        self, drain: WindowDrain, processes: Callable[[ProcessKey], Process], layout: KernelLayout, facts: WindowFacts
    ) -> pb.FoldedBatch:
        """Build the whole batch of one window. `processes` must answer for every key of `drain`, those of second stacks too."""
        if self._places.is_full:
            self._places = PlaceTable()
            self._locator = Locator(self._places)
        tables = TableBuilder(self._places)
        self._peers.begin_window()
        table = row_table(drain)
        losses = StackLosses(StackedRows(table.keys, table.stacks, table.counts, table.kind_of_row))
        series: list[Rows] = []
        if len(table.keys):
            series, finished, losses = self._rows(table, (processes, layout), (drain.cpu.period_ns, facts, tables))
        else:
            finished = tables.finished(_NO_ROWS, _NO_ROWS, np.zeros(0, np.uint64))
        if facts.overhead is not None:
            series.append(_overhead_rows(facts.overhead, facts))
        accounts = [_cpu_account(drain.cpu, losses.of_kind(0), facts)]
        accounts += [_event_account(one, losses.of_kind(number), facts) for number, one in enumerate(drain.events, start=1)]
        accounts += _accounts_of_lost(facts, {account.kind for account in accounts})
        return message_from_folded(Folded(facts.host, finished, tuple(series), accounts))

    def _rows(
        self,
        table: RowTable,
        places: tuple[Callable[[ProcessKey], Process], KernelLayout],
        into: tuple[int, WindowFacts, TableBuilder],
    ) -> tuple[list[Rows], Tables, StackLosses]:
        find, layout = places
        period_ns, facts, tables = into
        process_keys, process_of_row = _distinct_processes(table.keys)
        found = [find(key) for key in process_keys]
        stacked = np.flatnonzero(table.has_stack)
        rows = StackedRows(table.keys[stacked], table.stacks, table.counts[stacked], table.kind_of_row[stacked])
        losses = StackLosses(rows)
        stacks = stacks_of_rows(rows, Sources(self._locator, found, process_of_row[stacked], layout), losses)
        self._locator.trim()
        codes, frames = np.unique(stacks.codes, return_inverse=True)
        tree = tree_from_stacks(frames + 1, stacks.bounds)
        node_of_row = np.zeros(len(table.keys), np.int64)
        node_of_row[stacked] = tree.leaves[stacks.stack_of_row]
        series_keys, series_of_process = _numbered([_SeriesKey(process.service or UNKNOWN_SERVICE, process.version) for process in found])
        where = _Found(series_keys, np.array(series_of_process, np.int64)[process_of_row], node_of_row, tables)
        series: list[Rows] = []
        services = [key.service for key in series_keys]
        for kind in self._classes.kinds(table, RowOwners(services, where.series_of_row, process_of_row)):
            if kind.end > kind.first:
                series += _series_of_kind(kind, self._merged(kind, table, where), where.series_keys, (period_ns, facts))
        return series, tables.finished(tree.parents, tree.frames, codes), losses

    def _merged(self, kind: KindRows, table: RowTable, where: _Found) -> MergedRows:
        rows = slice(kind.first, kind.end)
        series = where.series_of_row[rows]
        keys = RowKeys(
            series=series,
            stacks=where.node_of_row[rows],
            seconds=np.where(kind.second_of_row >= 0, where.node_of_row[kind.second_of_row], 0),
            objects=self._objects_of_rows(kind, series, where),
            threads=self._threads_of_rows(table.keys["comm"][rows], series, where),
            classes=_strings(kind.classes, kind.class_of_row, where.tables),
        )
        return merged(keys, [(column.merge, column.values) for column in kind.columns])

    def _threads_of_rows(self, comms: npt.NDArray[np.bytes_], series_of_row: Index, where: _Found) -> Index:
        """Answer the string of each row's thread name."""
        distinct, comm_of_row = np.unique(comms, return_inverse=True)
        return _strings_by_service(distinct.tolist(), comm_of_row, self._threads.name, (series_of_row, where))

    def _objects_of_rows(self, kind: KindRows, series_of_row: Index, where: _Found) -> Index:
        """Answer the string of each row's object; peers are so many that a service has only some of them by name."""
        if kind.kind == TCP_KIND:
            return _strings_by_service(kind.objects, kind.object_of_row, self._peers.name, (series_of_row, where))
        return _strings(kind.objects, kind.object_of_row, where.tables)


def _strings_by_service(texts: Sequence[bytes], of_row: Index, name: Callable[[bytes, bytes], bytes], found: tuple[Index, _Found]) -> Index:
    """Answer the string of each row, named by its service and its text. Distinct pairs only are looked at one by one."""
    series_of_row, where = found
    pairs, pair_of_row = np.unique(series_of_row * len(texts) + of_row, return_inverse=True)
    services = [key.service for key in where.series_keys]
    strings = [where.tables.string(name(services[pair // len(texts)], texts[pair % len(texts)])) for pair in pairs.tolist()]
    return np.array(strings, np.int64)[pair_of_row]


def _strings(texts: Sequence[bytes], of_row: Index, tables: TableBuilder) -> Index:
    """Answer the string of each row; only those that rows refer to become strings of the batch."""
    used, row = np.unique(of_row, return_inverse=True)
    return np.array([tables.string(texts[index]) for index in used.tolist()], np.int64)[row]


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


def _series_of_kind(kind: KindRows, rows: MergedRows, series_keys: Sequence[_SeriesKey], said: tuple[int, WindowFacts]) -> list[Rows]:
    """A Rows for each series that has any."""
    period_ns, facts = said
    none = np.zeros(0, np.uint64)
    series = []
    for number, key in enumerate(series_keys):
        part = rows.of_series(number)
        if part.stop == part.start:
            continue
        taken = rows.keys
        keys = Keys(taken.stacks[part], taken.seconds[part], taken.objects[part], taken.threads[part], taken.classes[part])
        columns = _values(kind, [values[part] for values in rows.values], period_ns)
        series.append(Rows(_labels(key.service, key.version, facts), kind.kind, none, keys, columns))
    return series


def _values(kind: KindRows, values: Sequence[U64], period_ns: int) -> tuple[Values, ...]:
    """Columns as they are sent: the first one always, others when they hold anything; two of cpu are multiples of the first."""
    columns = [
        Values(column.name, column.unit, column.merge, 0, of_rows)
        for number, (column, of_rows) in enumerate(zip(kind.columns, values, strict=True))
        if number == 0 or of_rows.any()
    ]
    if kind.kind == CPU_KIND:
        none = np.zeros(0, np.uint64)
        columns += [Values("ns", "ns", pb.MERGE_SUM, period_ns, none), Values("observed", "count", pb.MERGE_SUM, 1, none)]
    return tuple(columns)


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


def _cpu_account(drain: CpuDrain, stack_losses: Losses, facts: WindowFacts) -> pb.Account:
    """The account of the window; what earlier windows lost on their way is due and lost in this one."""
    carried = facts.carried_losses.get(CPU_KIND, {})
    return pb.Account(
        kind=CPU_KIND,
        expected=drain.ticks.expected + sum(carried.values()),
        stored=int(drain.counts.sum()),
        idle=drain.ticks.idle,
        filtered=drain.ticks.filtered,
        losses=_losses(stack_losses, drain.ticks.lost, carried),
    )


def _event_account(drain: EventDrain, stack_losses: Losses, facts: WindowFacts) -> pb.Account:
    carried = facts.carried_losses.get(drain.kind, {})
    return pb.Account(
        kind=drain.kind,
        expected=drain.account.expected + sum(carried.values()),
        stored=int(drain.columns[0].values.sum()),
        filtered=drain.account.filtered,
        losses=_losses(stack_losses, drain.account.lost, carried),
    )


def _accounts_of_lost(facts: WindowFacts, there: Set[str]) -> list[pb.Account]:
    """Of kinds that are off by now, and of which an earlier window was lost."""
    return [
        pb.Account(kind=kind, expected=sum(carried.values()), losses=_losses(carried))
        for kind, carried in facts.carried_losses.items()
        if kind not in there
    ]


def _losses(*parts: Losses) -> list[pb.Loss]:
    """Added up by reason, ascending."""
    sums: dict[LossReason, int] = {}
    for part in parts:
        for reason, value in part.items():
            sums[reason] = sums.get(reason, 0) + value
    return [pb.Loss(reason=reason, value=value) for reason, value in sorted(sums.items()) if value]

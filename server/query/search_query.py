# SPDX-License-Identifier: Apache-2.0
"""Fleet search: which services spend time in the functions a text or regex means, how much of it, and how that went.

First names, each once over the fleet; then an inverted index gives the stacks that hold a frame of a name that matches, and only rows of
services that have one are read. No call tree is needed. A stack counts once for a service, however many of its frames match.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from server.profile.stack_index import U64, Mask
from server.profile.stack_values import HeldStacks, meant_frames
from server.query.chosen import Chosen
from server.query.complaint import QueryError
from server.query.kinds import width_column
from server.query.merge import Meter
from server.query.profile_query import ProfileQuery
from server.query.quality import share
from server.query.selector import Selector
from server.query.stack_indexes import ServiceStacks
from server.query.timerange import SECOND_NS, TimeRange
from server.store.protocol import ColumnInfo, Piece, Selection, ServiceDictionary
from server.store.sums import add_by_group

MOST_SLOTS = 30
_STEPS_S = (60, 120, 300, 600, 1200, 1800, 3600, 7200, 14_400, 28_800, 86_400, 172_800, 345_600, 604_800)
_PIECES_S = (86_400, 3600, 600)
_LATELY_NS = 3600 * SECOND_NS


@dataclass(frozen=True, slots=True)
class FoundFunction:
    """A function that was meant, in one service or over all."""

    name: str
    binary: str
    code: int
    own: int
    total: int
    services: int = 1


@dataclass(frozen=True, slots=True)
class FoundService:
    """One service with a match."""

    service: str
    own: int
    total: int
    service_total: int
    hosts: int
    """Those with a match."""
    trend: list[float | None]
    """Share of the service by slot; None where it had nothing."""
    functions: list[FoundFunction]
    """Those that match, the largest first."""

    @property
    def share(self) -> float:
        """Of the service."""
        return share(self.total, self.service_total)


@dataclass(frozen=True, slots=True)
class Found:
    """The services, the one with the most first."""

    kind: str
    column: ColumnInfo
    range: TimeRange
    slots: "TrendSlots"
    fleet_total: int
    services: list[FoundService]
    functions: list[FoundFunction]
    """Over all services, the largest first."""


@dataclass(frozen=True, slots=True)
class TrendSlots:
    """Slots start at multiples of their length, so that blocks lie in one each; the first and the last are cut by the range."""

    range: TimeRange
    step_s: int

    @property
    def first_s(self) -> int:
        """Start of the first slot."""
        return self.range.from_unix_ns // (self.step_s * SECOND_NS) * self.step_s

    @property
    def count(self) -> int:
        """Number of slots."""
        return -(-(self.range.until_unix_ns - self.first_s * SECOND_NS) // (self.step_s * SECOND_NS))

    @property
    def longest_ns(self) -> int:
        """Longest blocks that lie in one slot."""
        return next((length for length in _PIECES_S if self.step_s % length == 0), 60) * SECOND_NS

    def slot(self, unix_ns: int) -> int:
        """Give the slot of a moment."""
        return min(max((unix_ns - self.first_s * SECOND_NS) // (self.step_s * SECOND_NS), 0), self.count - 1)


def trend_slots(span: TimeRange) -> TrendSlots:
    """Cut a range for a trend."""
    step_s = next(
        (s for s in _STEPS_S if span.length_ns <= (MOST_SLOTS - 1) * s * SECOND_NS), -(-span.length_ns // (SECOND_NS * MOST_SLOTS))
    )
    return TrendSlots(span, step_s)


def search_fleet(query: ProfileQuery, selector: Selector, span: TimeRange, test: Callable[[str], bool]) -> Found:
    """Answer where matching functions are. Raises QueryError, LimitExceeded or Overloaded."""
    if selector.of_rows:
        raise QueryError("a search takes conditions on series only", hint=f"leave {selector.of_rows[0].label} out", text=selector.text)
    with query.place():
        chosen = query.choose(selector, span)
        column, slots = width_column(chosen.kind), trend_slots(span)
        sums = query.store.timeline(chosen.selection(span, (column.name,)), span.length_ns)
        totals = dict(zip(sums.series_ids.tolist(), sums.columns[column.name].sum(axis=1).tolist(), strict=True)) if sums.columns else {}
        matched = _matched(query, chosen, totals, test)
        _add_rows(query, chosen, (matched, column.name), slots)
        hosts = {series.series_id: series.labels.get("host", "") for series in chosen.series}
        found = [one.found(hosts) for one in matched]
        services = sorted((one for one in found if one.total), key=lambda one: (-one.total, one.service))
        return Found(chosen.kind.name, column, span, slots, sum(totals.values()), services, _over_all(services))


def index_new_stacks(query: ProfileQuery) -> None:
    """Index the stacks that came since the last call, of services with data of late; the first one indexes all of theirs."""
    now = query.now_unix_ns()
    services = query.store.catalog(max(0, now - _LATELY_NS), now + 1)
    query.stacks.tend(query.store.dictionary(one.service) for one in services)


class _Matched:
    """A service with names that match, and what its rows come to."""

    def __init__(self, dictionary: ServiceDictionary, stacks: ServiceStacks, is_meant: Mask) -> None:
        self.service, self._table = dictionary.service, stacks.table
        self._held = HeldStacks(stacks.segments, meant_frames(is_meant, stacks.bounds, stacks.names), dictionary.sizes[2])
        self._is_match = self._held.mask()
        self._values: U64 = np.zeros(dictionary.sizes[2], np.uint64)
        self._seen = np.zeros(0, np.bool_)
        self.slots: list[list[int]] = []

    def add(self, piece: Piece, column: str, slot: int) -> None:
        """Take the rows of a piece into account."""
        values = piece.columns.get(column)
        if values is None:
            return
        which = np.flatnonzero(self._is_match[piece.keys] & (values > 0))
        chosen = values[which]
        add_by_group(self._values, piece.keys[which], chosen)
        self.slots[slot][0] += int(chosen.sum(dtype=np.uint64))
        self.slots[slot][1] += int(values.sum(dtype=np.uint64))
        if isinstance(piece.series, int):
            self.see(np.array([piece.series] if which.size else [], np.intp))
        else:
            self.see(piece.series[which])

    def see(self, series: npt.NDArray[np.intp]) -> None:
        """Remember which series had a match."""
        most = int(series.max(initial=-1)) + 1
        if most > self._seen.size:
            self._seen = np.concatenate([self._seen, np.zeros(most - self._seen.size, np.bool_)])
        self._seen[series] = True

    def found(self, hosts: Mapping[int, str]) -> FoundService:
        """Give the row of the service; `hosts` is by series."""
        functions = sorted(self._functions(), key=lambda one: (-one.total, one.name))
        return FoundService(
            service=self.service,
            own=sum(one.own for one in functions),
            total=sum(matched for matched, _ in self.slots),
            service_total=sum(whole for _, whole in self.slots),
            hosts=len({hosts[series] for series in np.flatnonzero(self._seen).tolist()}),
            trend=[matched / whole if whole else None for matched, whole in self.slots],
            functions=functions,
        )

    def _functions(self) -> Iterator[FoundFunction]:
        table, sums = self._table, self._held.sums(self._values)
        for name, own, total in zip(sums.name.tolist(), sums.own.tolist(), sums.total.tolist(), strict=True):
            yield FoundFunction(table.names[name], table.binaries[name], table.codes[name], own, total)


def _matched(query: ProfileQuery, chosen: Chosen, totals: dict[int, int], test: Callable[[str], bool]) -> list[_Matched]:
    services = sorted({series.service for series in chosen.series if totals.get(series.series_id)})
    dictionaries = [query.store.dictionary(service) for service in services]
    stacks = [query.stacks.stacks(dictionary) for dictionary in dictionaries]
    masks = query.names.matches([one.table for one in stacks], test)
    return [_Matched(*one) for one in zip(dictionaries, stacks, masks, strict=True) if one[2].any()]


def _add_rows(query: ProfileQuery, chosen: Chosen, wanted: tuple[list[_Matched], str], slots: TrendSlots) -> None:
    matched, column = wanted
    by_service = {one.service: one for one in matched}
    for one in matched:
        one.slots = [[0, 0] for _ in range(slots.count)]
    ids = frozenset(series.series_id for series in chosen.series if series.service in by_service)
    span, meter = slots.range, Meter()
    selection = Selection(chosen.kind.name, span.from_unix_ns, span.until_unix_ns, ids, (column,), slots.longest_ns)
    for piece in query.store.select(selection) if ids else ():
        meter.count(piece)
        by_service[piece.service].add(piece, column, slots.slot(piece.start_unix_ns))


def _over_all(services: list[FoundService]) -> list[FoundFunction]:
    """Add up the same function of several services."""
    sums: dict[tuple[str, str], FoundFunction] = {}
    for function in (function for service in services for function in service.functions):
        key = (function.name, function.binary)
        known = sums.get(key)
        own, total, count = (known.own, known.total, known.services) if known else (0, 0, 0)
        sums[key] = FoundFunction(*key, function.code, own + function.own, total + function.total, count + 1)
    return sorted(sums.values(), key=lambda one: (-one.total, one.name, one.binary))

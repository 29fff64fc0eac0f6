# SPDX-License-Identifier: Apache-2.0
"""Adds up the rows of a selection by key, per service: the first step of every graph and table.

Keys are dense numbers, so a merge is one addition per row into an array (server.store.sums); nothing is sorted, hashed or grouped.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from server.errors import LimitExceeded
from server.store.protocol import Piece, Selection, ServiceDictionary, Store
from server.store.push import ValueMerge
from server.store.sums import add_by_group, raise_by_group

U64 = npt.NDArray[np.uint64]
F64 = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Keep = Callable[[ServiceDictionary], Mask | None]
"""Which keys of a service are looked at; None for all."""


def keep_all(_: ServiceDictionary) -> Mask | None:
    """Look at all keys."""
    return None


def kept_rows(piece: Piece, kept: Mask | None) -> Piece:
    """Give the rows of a piece whose keys are kept."""
    if kept is None:
        return piece
    which = np.flatnonzero(kept[piece.keys])
    series = piece.series if isinstance(piece.series, int) else piece.series[which]
    columns = {name: values[which] for name, values in piece.columns.items()}
    return replace(piece, keys=piece.keys[which], series=series, columns=columns, run_sizes=None)


@dataclass(frozen=True, slots=True)
class MergeBudget:
    """How much one question may cost."""

    rows: int = 20_000_000
    seconds: float = 30.0
    clock: Callable[[], float] = time.monotonic
    """Seconds."""


@dataclass(frozen=True, slots=True)
class ServiceWeights:
    """Values by key of one service: arrays have an element for each key of the dictionary."""

    dictionary: ServiceDictionary
    columns: Mapping[str, F64]
    """Sums, or the largest where the column merges by max. Exact to 2^53, beyond it rounded to the nearest."""
    totals: Mapping[str, int]
    """Sum over all keys (or the largest), exact."""


@dataclass(frozen=True, slots=True)
class KeyWeights:
    """Values by key, service by service. `start` and `end` are those of the windows that were there; both 0 when there were none."""

    services: Mapping[str, ServiceWeights]
    start_unix_ns: int
    end_unix_ns: int
    rows: int


@dataclass(frozen=True, slots=True)
class _Totals:
    """Totals of one service. Its dictionary was read after the rows were chosen and knows all their keys."""

    dictionary: ServiceDictionary
    columns: Mapping[str, U64]
    maxima: frozenset[str]

    def add(self, piece: Piece) -> None:
        for name, totals in self.columns.items():
            if name in piece.columns:
                (raise_by_group if name in self.maxima else add_by_group)(totals, piece.keys, piece.columns[name])

    def weights(self, kept: Mask | None) -> ServiceWeights:
        if kept is not None:
            for values in self.columns.values():
                values[~kept] = 0
        totals = {name: int(values.max(initial=0)) if name in self.maxima else exact_sum(values) for name, values in self.columns.items()}
        return ServiceWeights(self.dictionary, {name: values.astype(np.float64) for name, values in self.columns.items()}, totals)


@dataclass(slots=True)
class Meter:
    """Counts what a merge costs, and stops it over the budget."""

    budget: MergeBudget = MergeBudget()
    started_s: float = field(init=False)
    rows: int = 0

    def __post_init__(self) -> None:
        self.started_s = self.budget.clock()

    def count(self, piece: Piece) -> None:
        """Take a piece into account. Raises LimitExceeded."""
        self.rows += piece.keys.size
        if self.rows > self.budget.rows:
            raise LimitExceeded(f"the question touches more than {self.budget.rows:,} rows: ask for a shorter range or fewer series")
        if self.budget.clock() - self.started_s > self.budget.seconds:
            raise LimitExceeded(f"the question took more than {self.budget.seconds:g} s: ask for a shorter range or fewer series")


def key_weights(
    store: Store,
    selection: Selection,
    columns: Sequence[str],
    meter: Meter | None = None,
    keep: Keep = keep_all,
) -> KeyWeights:
    """Values of `columns` by key, for all rows of the selection with a key that `keep` keeps.

    Parts of one question are given one meter. Raises LimitExceeded over the budget, naming it.
    """
    maxima, found = maxima_of(store, selection.kind), dict[str, _Totals]()
    meter = meter or Meter()
    start, end, rows_before = 0, 0, meter.rows
    for piece in store.select(
        Selection(selection.kind, selection.from_unix_ns, selection.until_unix_ns, selection.series_ids, tuple(columns))
    ):
        meter.count(piece)
        if piece.service not in found:
            dictionary = store.dictionary(piece.service)
            found[piece.service] = _Totals(dictionary, {name: np.zeros(dictionary.sizes[2], np.uint64) for name in columns}, maxima)
        found[piece.service].add(piece)
        start, end = min(start or piece.start_unix_ns, piece.start_unix_ns), max(end, piece.end_unix_ns)
    services = {service: totals.weights(keep(totals.dictionary)) for service, totals in sorted(found.items())}
    return KeyWeights(services, start, end, meter.rows - rows_before)


def maxima_of(store: Store, kind: str) -> frozenset[str]:
    """Columns of the kind that merge by max."""
    return frozenset(
        column.name for info in store.kinds() if info.name == kind for column in info.columns if column.merge is ValueMerge.MAX
    )


def exact_sum(values: U64) -> int:
    """Add up, of halves, so that it passes 2^64 unharmed."""
    return int((values & np.uint64(0xFFFFFFFF)).sum()) + (int((values >> np.uint64(32)).sum()) << 32)

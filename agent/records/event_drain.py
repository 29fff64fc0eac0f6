# SPDX-License-Identifier: Apache-2.0
"""What one drain of an event kind (waits, locks, system calls, connections) yields: rows by process, with columns of values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from agent.records.drain import CPU_KEY, CpuDrain, Stacks
from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1.marks_pb2 import LossReason

U64 = npt.NDArray[np.uint64]

BUCKETS = 32
"""Of a log2 histogram: bucket 0 holds what is under 1 us, bucket i what is in [2^(i-1), 2^i) us, the last all that is longer."""


@dataclass(frozen=True, slots=True)
class EventColumn:
    """One value column of a kind, one value a row."""

    name: str
    unit: str
    merge: pb.Merge
    values: U64


def histogram_columns(buckets: npt.NDArray[np.unsignedinteger], name: str = "bucket") -> tuple[EventColumn, ...]:
    """`buckets` has shape (rows, BUCKETS): columns NAME_00 to NAME_31, counts that add up."""
    return tuple(
        EventColumn(f"{name}_{bucket:02}", "count", pb.MERGE_HISTOGRAM, buckets[:, bucket].astype(np.uint64)) for bucket in range(BUCKETS)
    )


@dataclass(frozen=True, slots=True)
class EventAccount:
    """The account of one event kind, in the unit of its first column: expected = stored + filtered + sum of lost below 100."""

    expected: int
    filtered: int
    lost: Mapping[LossReason, int] = field(default_factory=dict)
    """Only reasons that happened."""


@dataclass(frozen=True, slots=True)
class EventDrain:
    """One window of one event kind. Times are CLOCK_MONOTONIC, from drain to drain. Rows may be alike; they are merged later."""

    kind: str
    start_ns: int
    end_ns: int
    keys: npt.NDArray[np.void]
    """dtype CPU_KEY: the process a row is of, its thread name, and its stacks (hashes into `stacks`; all 0 for kinds without stacks)."""
    columns: tuple[EventColumn, ...]
    """The first one counts events; accounts are in its unit."""
    account: EventAccount
    stacks: Stacks | None = None
    """Stacks of keys and seconds; None for kinds without."""
    seconds: npt.NDArray[np.void] | None = None
    """dtype CPU_KEY: the second stack of each row (waker, holder) with its process; zeros for none. None when no row has one."""
    objects: Sequence[bytes] = (b"",)
    """What rows are about (lock, call, peer); entry 0 is none."""
    object_of_row: npt.NDArray[np.int64] | None = None
    """Index into objects; None when all are 0."""
    classes: Sequence[bytes] = (b"",)
    """Classes of rows (wait classes); entry 0 is none."""
    class_of_row: npt.NDArray[np.int64] | None = None
    """Index into classes; None when all are 0."""

    def __len__(self) -> int:
        return len(self.keys)


@dataclass(frozen=True, slots=True)
class WindowDrain:
    """One window of all kinds, from one flip of the buffers to the next."""

    cpu: CpuDrain
    events: Sequence[EventDrain] = ()


def event_keys(rows: int) -> npt.NDArray[np.void]:
    """Give `rows` empty keys, to be filled by field."""
    return np.zeros(rows, CPU_KEY)

# SPDX-License-Identifier: Apache-2.0
"""A push after it was decoded and checked, and what became of it: what server.ingest hands to a store.

Tables and rows are columns (arrays of equal length). All indices have been checked to lie in their tables, parents stand before their
children, and known keys ascend without repeating: a store need not check again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]


class ValueMerge(IntEnum):
    """How two values become one; numbers are those of emberwatch.v1.Merge."""

    SUM = 1
    MAX = 2
    HISTOGRAM = 3


@dataclass(frozen=True, slots=True)
class PushFrames:
    """Frames; see emberwatch.v1.FrameTable."""

    kinds: U64
    refs: U64
    offsets: U64
    is_return: U64


@dataclass(frozen=True, slots=True)
class PushStacks:
    """Nodes of the prefix tree: number of the parent (lower than the node's own) and of the frame."""

    parents: I64
    frames: I64


@dataclass(frozen=True, slots=True)
class PushKeys:
    """Keys of rows: nodes (stacks, seconds) and strings (objects, threads, classes) of the push."""

    stacks: I64
    seconds: I64
    objects: I64
    threads: I64
    classes: I64


@dataclass(frozen=True, slots=True)
class PushColumn:
    """One value column; `values` is None when it is `times_first` times the first column of the series."""

    name: str
    unit: str
    merge: ValueMerge
    values: U64 | None
    times_first: int = 0


@dataclass(frozen=True, slots=True)
class PushSeries:
    """Rows of known keys first, then of new keys."""

    service: str
    labels: Mapping[str, str]
    """As sent, service included, host not."""
    kind: str
    known_keys: I64
    """Ascending, distinct."""
    new_keys: PushKeys
    columns: Sequence[PushColumn]


@dataclass(frozen=True, slots=True)
class PushBinary:
    """Fields of emberwatch.v1.Binary."""

    kind: int
    build_id_kind: int
    build_id: bytes
    content_hash: bytes
    path: bytes
    segments: tuple[tuple[int, int, int, int, int], ...]
    size_bytes: int


@dataclass(frozen=True, slots=True)
class PushAccount:
    """Fields of emberwatch.v1.Account; losses by reason, summed."""

    kind: str
    expected: int
    stored: int
    idle: int
    filtered: int
    losses: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class PushHost:
    """Fields of emberwatch.v1.HostFacts, names as text."""

    host: str
    kernel_release: str
    agent_version: str
    online_cpus: int
    rate_hz: int
    window_s: int
    flags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PushEnvelope:
    """Who sent what, and when it was."""

    agent_id: bytes
    epoch_unix_ns: int
    sequence: int
    part: int
    is_last_part: bool
    start_unix_ns: int
    end_unix_ns: int
    received_unix_ns: int
    is_time_suspect: bool
    """The window's own times made no sense; start and end are the server's."""
    dictionary_id: bytes
    """The numbering of known keys, or empty."""


@dataclass(frozen=True, slots=True)
class DecodedPush:
    """One push."""

    envelope: PushEnvelope
    host: PushHost
    strings: Sequence[bytes]
    binaries: Sequence[PushBinary]
    """Entry 0 is the empty one."""
    frames: PushFrames
    stacks: PushStacks
    series: Sequence[PushSeries]
    accounts: Sequence[PushAccount]


class AppendStatus(IntEnum):
    """What became of a push; numbers are those of emberwatch.v1.PushStatus."""

    STORED = 1
    DUPLICATE = 2
    UNKNOWN_KEYS = 3


@dataclass(frozen=True, slots=True)
class Appended:
    """The answer of a store.

    `new_key_ids` (STORED): by index of the series, the number of each new key; a series that went to the overflow is not in it, its
    keys stay without numbers. `unknown_keys` (UNKNOWN_KEYS): by index of the series, known keys that are not known.
    """

    status: AppendStatus
    new_key_ids: Mapping[int, I64]
    unknown_keys: Mapping[int, I64]
    binary_row_ids: tuple[int, ...] = ()
    """Rows of the store for the binaries of the push, entry 0 left out."""

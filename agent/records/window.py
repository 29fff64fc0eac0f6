# SPDX-License-Identifier: Apache-2.0
"""A window on its way: what is said of it beside its samples, and its encoded, numbered parts."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1.marks_pb2 import LossReason

SHIPPED_KINDS = ("cpu", "offcpu", "runqueue", "time", "lock", "syscall", "syscall_stack", "tcp", "tcp_stack", "lock_hold")
"""Kinds with an account. Spooled windows name them by their place: new ones come last, and none leaves."""


@dataclass(frozen=True, slots=True)
class Overhead:
    """What the agent itself cost during a window."""

    cpu_ns: int
    """CPU time of the agent's user-space processes."""
    bpf_ns: int
    """CPU time inside its BPF programs."""
    rss_bytes: int
    """Resident memory at the end of the window."""
    map_bytes: int
    """Memory of its BPF maps."""


@dataclass(frozen=True, slots=True)
class WindowFacts:
    """What a window says beside its samples."""

    host: pb.HostFacts
    overhead: Overhead | None
    """None in the first window, before there is anything to measure."""
    labels: Mapping[str, bytes] = field(default_factory=dict)
    """Labels from the config, put on every series."""
    carried_losses: Mapping[str, Mapping[LossReason, int]] = field(default_factory=dict)
    """By kind: what earlier windows lost on their way (spool, refusals), due in the account of this window and lost in it."""


@dataclass(frozen=True, slots=True)
class WindowTime:
    """Where a window lies, UTC, half open."""

    start_unix_ns: int
    end_unix_ns: int


@dataclass(frozen=True, slots=True)
class Parcel:
    """One part of one window, holding all its frames. The fields are those of emberwatch.v1.PushRequest."""

    epoch_unix_ns: int
    sequence: int
    part: int
    is_last_part: bool
    window_start_unix_ns: int
    window_end_unix_ns: int
    payload: bytes
    """zstd frame of a serialised FoldedBatch without known keys."""
    raw_size_bytes: int
    raw_crc32: int
    counts: tuple[int, ...] = (0,)
    """What is lost when the parcel is, of each of SHIPPED_KINDS in the unit of its first column: rows, and losses its account tells of.
    Those of the last kinds may be missing: they are 0, or not known any more."""

    @property
    def samples(self) -> int:
        """Of kind cpu."""
        return self.counts[0]

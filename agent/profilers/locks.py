# SPDX-License-Identifier: Apache-2.0
"""Kind lock: waits for locks of the kernel and of user space, who waits where, and who holds them (bpf/lock.bpf.c)."""

import logging
import struct
from collections.abc import Mapping, Sequence
from contextlib import ExitStack

import numpy as np
import numpy.typing as npt

from agent.errors import KernelError
from agent.kernel import program as kernel
from agent.kernel.program import BufferedMap, MapShape, ProgramSpec, ProgramType
from agent.profilers.breaker import Breaker, Share
from agent.profilers.event_host import ClosedWindow, EventHost, Group, Scratch, StackedProfiler
from agent.profilers.lock_links import LockLinks
from agent.profilers.lock_names import CallerNames
from agent.profilers.lock_rows import LOCK_KEY, LOCK_VALUE, U64, LockType, Rows, holder_names, most_waited, named_objects
from agent.profilers.stale_starts import forget_before
from agent.records.drain import CPU_KEY, Stacks
from agent.records.event_drain import EventAccount, EventColumn, EventDrain, histogram_columns
from agent.records.limit import Limit
from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1.marks_pb2 import LossReason

log = logging.getLogger(__name__)

KIND = "lock"
SPEC = ProgramSpec(
    source="lock.bpf.c",
    functions=dict.fromkeys(
        (
            "on_contention_begin",
            "on_contention_end",
            "on_contention_walked",
            "on_lock_switch",
            "on_lock_return",
            "on_futex_walked",
            "on_holder_walked",
        ),
        ProgramType.RAW_TRACEPOINT,
    ),
    maps=("lock_settings", "lock_counts", "locks", "contentions", "futex_waits"),
)
FIRST_ROWS, MOST_ROWS, CHUNK = 2048, 1 << 16, 1024
LONGEST_UNSEEN_NS = 10_000
"""A wait from here on is worth a stack; the threshold counts when it is lower."""
MOST_USER_LOCKS = 200
"""Of one process and window that keep their address."""
LOCK_SETTINGS = struct.Struct("<QQQQ")
CONTENTION_KEY_BYTES, FUTEX_KEY_BYTES = 16, 4
CONTENTION = np.dtype([("start_ns", "<u8"), ("flags", "<u8"), ("holder", CPU_KEY), ("holder_tid", "<u4"), ("padding", "<u4")])
"""struct contention in bpf/lock.bpf.c."""
FUTEX_WAIT = np.dtype(
    [
        ("start_ns", "<u8"),
        ("lock", "<u8"),
        ("type", "<u4"),
        ("buffer", "<u4"),
        ("owner_tid", "<u4"),
        ("padding", "<u4"),
        ("holder", CPU_KEY),
        ("holder_tid", "<u4"),
        ("holder_padding", "<u4"),
        ("own", CPU_KEY),
    ]
)
"""struct futex_wait in bpf/shared/user_lock.h."""
_KEY_ZERO = (0).to_bytes(4, "little")


class _Links(LockLinks):
    """Attaches ends before starts, so that what begins is seen to end."""

    def __init__(self, host: EventHost, named: tuple[int, int]) -> None:
        super().__init__(host, "lock_counts")
        self._named = named
        self.has_kernel_locks = True
        self.on_since_ns = 0
        """When they were attached last."""

    def attach(self) -> None:
        program, settings = self.host.program, self.host.settings
        stack_ns = min(settings.threshold_ns, LONGEST_UNSEEN_NS)
        self.on_since_ns = self.host.now_ns()
        packed = LOCK_SETTINGS.pack(self.on_since_ns, stack_ns, *self._named)
        kernel.update(program.map("lock_settings"), _KEY_ZERO, packed)
        try:
            self._try("sched_exit_tp", "on_lock_return")  # From 6.15; before, both ends of a wait are met in sched_switch.
            self.attached.append(program.open_raw_tracepoint("sched_switch", "on_lock_switch"))
            if self.has_kernel_locks:
                self.has_kernel_locks = self._try("contention_end", "on_contention_end") and self._try(
                    "contention_begin", "on_contention_begin"
                )
        except KernelError:
            self.detach()
            raise

    def _try(self, tracepoint: str, function: str) -> bool:
        try:
            self.attached.append(self.host.program.open_raw_tracepoint(tracepoint, function))
        except KernelError as error:
            log.info("tracepoint not there name=%s reason=%s", tracepoint, error)
            return False
        return True


class LockProfiler(StackedProfiler):
    """From start() to close(). Not thread safe."""

    def __init__(self, host: EventHost, closing: ExitStack) -> None:
        super().__init__(host, closing)
        rows = MapShape("locks", LOCK_KEY, LOCK_VALUE, MOST_ROWS, CHUNK)
        self._rows = BufferedMap(host.program.map("locks"), rows, FIRST_ROWS)
        closing.callback(self._rows.close)
        host.install_finisher(Scratch.LOCK, "on_contention_walked")
        host.install_finisher(Scratch.FUTEX, "on_futex_walked")
        host.install_finisher(Scratch.HOLDER, "on_holder_walked")
        self._contentions, self._futex_waits = host.program.map("contentions"), host.program.map("futex_waits")
        self._names = CallerNames(host.symbols.names)
        self._links = _Links(host, host.symbols.data)
        self._breaker = Breaker(self._links, host.settings.most_per_s, host.settings.window_s, host.now_ns)
        closing.callback(self._breaker.close)
        if not self._links.has_kernel_locks:
            log.warning("kernel locks are not seen: this kernel has no contention tracepoints (Linux 5.19 has)")

    def drain(self, window: ClosedWindow) -> Sequence[EventDrain]:
        share = self._breaker.close_window(window.end_ns)
        keys, values = self._rows.drain_all(window.buffer)
        counts = self._links.take_counts(window.buffer)
        counts["unpaired"] += self._forget_stale_starts()
        if self._rows.settle(window.buffer, len(keys), counts["rows_full"]):
            log.info("map grown name=locks entries=%d", self._rows.entries(window.buffer))
        return (self._event_drain(window, keys, values, (share, counts)),)

    def tick(self) -> float | None:
        return self._breaker.tick()

    def limit(self) -> Limit:
        return Limit(self._breaker.duty, self._breaker.duty)

    def map_bytes(self) -> int:
        return self._rows.size_bytes()

    def _forget_stale_starts(self) -> int:
        """Of waits under way when the programs were detached. Those in user space are lost here, the end of others tells of them."""
        since_ns = self._links.on_since_ns
        forget_before(self._contentions, CONTENTION_KEY_BYTES, CONTENTION, since_ns)
        return forget_before(self._futex_waits, FUTEX_KEY_BYTES, FUTEX_WAIT, since_ns)

    def _event_drain(self, window: ClosedWindow, keys: Rows, values: Rows, seen: tuple[Share, Mapping[str, int]]) -> EventDrain:
        share, counts = seen
        objects, object_of_row = self._objects(keys, values, window.stacks)
        holders, holder_of_row = holder_names(keys["holder"])
        return EventDrain(
            kind=KIND,
            start_ns=window.start_ns,
            end_ns=window.end_ns,
            keys=keys["own"].copy(),
            columns=columns_of_waits(values, share),
            account=account_of_waits(values["count"], counts, share),
            stacks=window.stacks,
            seconds=_with_stacks(keys["holder"].copy(), window.stacks),
            objects=objects,
            object_of_row=object_of_row,
            classes=holders,
            class_of_row=holder_of_row,
        )

    def _objects(self, keys: Rows, values: Rows, stacks: Stacks) -> tuple[list[bytes], npt.NDArray[np.int64]]:
        is_user = keys["type"] & LockType.USER != 0
        locks = most_waited(keys, values["ns"], MOST_USER_LOCKS)
        has_name = is_user | (keys["type"] >= LockType.MMAP)
        return named_objects(
            keys["type"],
            locks,
            self._names.symbols(np.where(is_user, 0, locks)),
            self._names.callers(np.where(has_name, 0, keys["own"]["kernel_stack"]), stacks),
        )


def columns_of_waits(values: Rows, share: Share) -> tuple[EventColumn, ...]:
    """Of LOCK_VALUE, scaled to the whole window."""
    return (
        EventColumn("count", "count", pb.MERGE_SUM, share.scaled(values["count"])),
        EventColumn("ns", "ns", pb.MERGE_SUM, share.scaled(values["ns"])),
        EventColumn("max_ns", "ns", pb.MERGE_MAX, values["max_ns"].copy()),
        EventColumn("observed", "count", pb.MERGE_SUM, values["count"].copy()),
        *histogram_columns(share.scaled(values["buckets"])),
    )


def account_of_waits(observed: U64, counts: Mapping[str, int], share: Share) -> EventAccount:
    """In waits, scaled like the rows, of which `observed` are the raw counts. Ends whose start was not seen are lost as what they are:
    waits of unknown length. So are rows that the programs owe and did not write: that is a fault of ours."""
    unexplained = max(0, counts["due"] - int(observed.sum()))
    if unexplained:
        log.error("rows of locks missing rows=%d", unexplained)
    raw = {
        LossReason.LOSS_REASON_MAP_FULL: counts["starts_full"] + counts["rows_full"],
        LossReason.LOSS_REASON_MAP_BUSY: counts["rows_busy"],
        LossReason.LOSS_REASON_UNPAIRED: counts["unpaired"],
        LossReason.LOSS_REASON_UNEXPLAINED: unexplained,
    }
    filtered, *lost = share.scaled(np.array([counts["filtered"], *raw.values()], np.uint64)).tolist()
    stored = int(share.scaled(observed).sum())
    return EventAccount(stored + filtered + sum(lost), filtered, {reason: value for reason, value in zip(raw, lost, strict=True) if value})


def _with_stacks(holders: Rows, stacks: Stacks) -> Rows:
    """A stack that another window holds is not to be had any more: the holder is known by name only."""
    for name in ("user_stack", "kernel_stack"):
        holders[name][~np.isin(holders[name], stacks.hashes)] = 0
    return holders


GROUP = Group((KIND,), lambda: SPEC, LockProfiler.start)

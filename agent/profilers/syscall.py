# SPDX-License-Identifier: Apache-2.0
"""System calls: counts, errors, latencies by process and call, and stacks of those that take the time (kinds syscall and syscall_stack)."""

import logging
import struct
from collections.abc import Mapping, Sequence
from contextlib import ExitStack

import numpy as np
import numpy.typing as npt

from agent.kernel import program as kernel
from agent.kernel.program import BufferedMap, MapShape, ProgramSpec, ProgramType
from agent.profilers.breaker import Breaker, Share
from agent.profilers.event_host import ClosedWindow, EventHost, Group, Scratch
from agent.profilers.syscall_names import waiting_calls
from agent.profilers.syscall_rows import CALL_CACHE, CALL_COUNTS, CALL_KEY, CALL_SUMS, rows_of_calls
from agent.profilers.syscall_stacks import CALL_STACK_KEY, CALL_STACK_SUMS, StackPace, rows_of_call_stacks, waiting_words
from agent.records.event_drain import EventAccount, EventDrain
from emberwatch.v1.marks_pb2 import LossReason

log = logging.getLogger(__name__)

CALLS_KIND = "syscall"
STACKS_KIND = "syscall_stack"
SPEC = ProgramSpec(
    source="syscall.bpf.c",
    functions=dict.fromkeys(("on_call", "on_return", "on_call_stack"), ProgramType.RAW_TRACEPOINT),
    maps=("call_settings", "caches", "call_counts", "spilled", "call_stacks", "waiting_calls", "starts", "crowded"),
)
START_ENTRIES = 65536
SPILLED_ENTRIES, MOST_SPILLED = 4096, 1 << 16
STACK_ENTRIES, MOST_STACK_ENTRIES = 2048, 1 << 15
CHUNK = 1024
_SETTINGS = struct.Struct("<QQII")
_KEY_ZERO = (0).to_bytes(4, "little")


class _Links:
    """Attaches both ends of a call: the start first, so that no return is seen whose start was not."""

    def __init__(self, host: EventHost) -> None:
        self._host = host
        self._attached: list[int] = []
        self._before = np.zeros(kernel.possible_cpu_count(), np.uint64)
        self.place_mask = START_ENTRIES - 1
        self.pace = StackPace(host.settings.window_s)

    def attach(self) -> None:
        self.write_settings(self._host.now_ns())
        self._attached.append(self._host.program.open_raw_tracepoint("sys_enter", "on_call"))
        self._attached.append(self._host.program.open_raw_tracepoint("sys_exit", "on_return"))

    def detach(self) -> None:
        while self._attached:
            kernel.close(self._attached.pop())

    def write_settings(self, since_ns: int | None = None) -> None:
        """Starts before `since_ns` are not believed from now on; None leaves that as it is."""
        if since_ns is not None:
            self._since_ns = since_ns
        value = _SETTINGS.pack(self._since_ns, self.pace.period_ns, self.place_mask, self.pace.most_stacks)
        kernel.update(self._host.program.map("call_settings"), _KEY_ZERO, value)

    def events_per_cpu(self) -> npt.NDArray[np.uint64]:
        seen = [self._per_cpu("call_counts", CALL_COUNTS, buffer)["seen"] for buffer in range(kernel.BUFFERS)]
        total: npt.NDArray[np.uint64] = self._before + seen[0] + seen[1]
        return total

    def take_counts(self, buffer: int) -> npt.NDArray[np.void]:
        """Counters of each CPU, of a buffer that nobody writes; they begin again from zero."""
        counts = self._taken("call_counts", CALL_COUNTS, buffer)
        self._before = self._before + counts["seen"]
        return counts

    def take_caches(self, buffer: int) -> npt.NDArray[np.void]:
        """The caches of all CPUs; they are empty again."""
        return self._taken("caches", CALL_CACHE, buffer)

    def _taken(self, name: str, dtype: np.dtype[np.void], buffer: int) -> npt.NDArray[np.void]:
        values = self._per_cpu(name, dtype, buffer)
        kernel.update(self._host.program.map(name), buffer.to_bytes(4, "little"), bytes(values.nbytes))
        return values

    def _per_cpu(self, name: str, dtype: np.dtype[np.void], buffer: int) -> npt.NDArray[np.void]:
        size = dtype.itemsize * kernel.possible_cpu_count()
        return np.frombuffer(kernel.lookup(self._host.program.map(name), buffer.to_bytes(4, "little"), size), dtype)


class SyscallProfiler:
    """Counts from start() to close()."""

    def __init__(self, host: EventHost, closing: ExitStack) -> None:
        program = host.program
        self._closing = closing
        spilled = MapShape("spilled", CALL_KEY, CALL_SUMS, MOST_SPILLED, CHUNK)
        self._spilled = BufferedMap(program.map("spilled"), spilled, SPILLED_ENTRIES)
        closing.callback(self._spilled.close)
        stacks = MapShape("call_stacks", CALL_STACK_KEY, CALL_STACK_SUMS, MOST_STACK_ENTRIES, CHUNK)
        self._stacks = BufferedMap(program.map("call_stacks"), stacks, STACK_ENTRIES)
        closing.callback(self._stacks.close)
        for word, bits in waiting_words(waiting_calls()).items():
            kernel.update(program.map("waiting_calls"), word.to_bytes(4, "little"), bits.to_bytes(8, "little"))
        host.install_finisher(Scratch.SYSCALL, "on_call_stack")
        self._links = _Links(host)
        self._breaker = Breaker(self._links, host.settings.most_per_s, host.settings.window_s, host.now_ns)
        closing.callback(self._breaker.close)

    @classmethod
    def start(cls, host: EventHost) -> "SyscallProfiler":
        """Attach. Raises KernelError when this kernel does not offer the tracepoints."""
        with ExitStack() as closing:
            profiler = cls(host, closing)
            profiler._closing = closing.pop_all()
        return profiler

    def before_drain(self) -> None:
        """Nothing is to be done."""

    def drain(self, window: ClosedWindow) -> Sequence[EventDrain]:
        """Both kinds."""
        share = self._breaker.close_window(window.end_ns)
        counts = self._links.take_counts(window.buffer)
        calls = self._drain_calls(window, counts, share)
        stacks = self._drain_stacks(window, counts, share)
        if unsignalled := int(counts["seen_full"].sum()):
            log.warning("processes out of sight unsignalled=%d", unsignalled)  # They are looked at now, if they still live.
        if self._links.pace.learn(int(counts["stacks_taken"].max(initial=0))):
            self._links.write_settings()
        return calls, stacks

    def tick(self) -> float | None:
        """Look at the rate."""
        return self._breaker.tick()

    def duty(self) -> float:
        """Share of the time at which calls are looked at."""
        return self._breaker.duty

    def map_bytes(self) -> int:
        """Kernel memory of what the CPUs could not keep, and of stacks by call."""
        return self._spilled.size_bytes() + self._stacks.size_bytes()

    def close(self) -> None:
        """Detach."""
        self._closing.close()

    def _drain_calls(self, window: ClosedWindow, counts: npt.NDArray[np.void], share: Share) -> EventDrain:
        spilled = list(self._spilled.drain(window.buffer))
        rows = rows_of_calls(self._links.take_caches(window.buffer), spilled, share.scaled)
        full, busy, filtered = (int(share.scaled(counts[name]).sum()) for name in ("map_full", "map_busy", "filtered"))
        self._spilled.settle(window.buffer, sum(len(keys) for keys, _ in spilled), full)
        lost = {LossReason.LOSS_REASON_MAP_FULL: full, LossReason.LOSS_REASON_MAP_BUSY: busy}
        return EventDrain(
            kind=CALLS_KIND,
            start_ns=window.start_ns,
            end_ns=window.end_ns,
            keys=rows.keys,
            columns=rows.columns,
            account=_account(rows.columns[0].values, filtered, lost, int(counts["seen"].sum()) if share.on_ns == share.window_ns else 0),
            objects=rows.objects,
            object_of_row=rows.object_of_row,
        )

    def _drain_stacks(self, window: ClosedWindow, counts: npt.NDArray[np.void], share: Share) -> EventDrain:
        pieces = list(self._stacks.drain(window.buffer))
        rows = rows_of_call_stacks(pieces, share.scaled)
        lost = int(share.scaled(counts["stacks_lost"]).sum())
        self._stacks.settle(window.buffer, len(rows.keys), 0)
        return EventDrain(
            kind=STACKS_KIND,
            start_ns=window.start_ns,
            end_ns=window.end_ns,
            keys=rows.keys,
            columns=rows.columns,
            account=_account(rows.columns[0].values, 0, {LossReason.LOSS_REASON_AGENT_OVERRUN: lost}),
            stacks=window.stacks,
            objects=rows.objects,
            object_of_row=rows.object_of_row,
        )


def _account(counts: npt.NDArray[np.uint64], filtered: int, lost: Mapping[LossReason, int], seen: int = 0) -> EventAccount:
    """What `seen`, counted by itself, has beyond the parts is unexplained; it is 0 when the parts are scaled, and thus rounded."""
    happened = {reason: count for reason, count in lost.items() if count}
    known = int(counts.sum()) + filtered + sum(happened.values())
    if seen > known:
        happened[LossReason.LOSS_REASON_UNEXPLAINED] = seen - known
    return EventAccount(max(seen, known), filtered, happened)


GROUP = Group((CALLS_KIND, STACKS_KIND), lambda: SPEC, SyscallProfiler.start)

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
from agent.profilers.breaker import Share
from agent.profilers.call_budget import CallBudget, CallCosts, CallShares, CostMeter, Step
from agent.profilers.event_host import ClosedWindow, EventHost, Group, Scratch, StackedProfiler
from agent.profilers.stale_starts import forget_before
from agent.profilers.syscall_names import waiting_calls
from agent.profilers.syscall_rows import CALL_CACHE, CALL_COUNTS, CALL_KEY, CALL_SUMS, rows_of_calls
from agent.profilers.syscall_stacks import CALL_STACK_KEY, CALL_STACK_SUMS, StackPace, rows_of_call_stacks, waiting_words
from agent.records.event_drain import EventAccount, EventDrain
from agent.records.limit import Limit
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
CROWDED_KEY_BYTES = 4
CALL_START = np.dtype([("start_ns", "<u8"), ("tid", "<u4"), ("call", "<u4")])
"""struct call_start in bpf/syscall.bpf.c."""
SPILLED_ENTRIES, MOST_SPILLED = 4096, 1 << 16
STACK_ENTRIES, MOST_STACK_ENTRIES = 2048, 1 << 15
CHUNK = 1024
_SETTINGS = struct.Struct("<QQIIII")
_KEY_ZERO = (0).to_bytes(4, "little")


class _Links:
    """Attaches both ends of a call: the start first, so that no return is seen whose start was not."""

    def __init__(self, host: EventHost) -> None:
        self._host = host
        self._return: int | None = None
        self._call: int | None = None
        self._before = np.zeros(kernel.possible_cpu_count(), np.uint64)
        self._costs = CostMeter(host.program.run_time_of)
        self._step = Step.TIMES
        self.place_mask = START_ENTRIES - 1
        self.pace = StackPace(host.settings.window_s)

    def follow(self, step: Step, is_counted: bool, is_timed: bool) -> None:
        self._costs.look(self._step)
        if self._return is None or (self._step is Step.COUNTS) != (step is Step.COUNTS):
            self._since_ns = self._host.now_ns()
        self._step = step
        self.write_settings()
        if is_timed and self._call is None:
            self._call = self._host.program.open_raw_tracepoint("sys_enter", "on_call")
        if is_counted and self._return is None:
            self._return = self._host.program.open_raw_tracepoint("sys_exit", "on_return")
        if not is_timed and self._call is not None:
            kernel.close(self._call)
            self._call = None
        if not is_counted and self._return is not None:
            kernel.close(self._return)
            self._return = None

    def detach(self) -> None:
        """Close what is attached."""
        kernel.close(*(link for link in (self._call, self._return) if link is not None))
        self._call = self._return = None

    def write_settings(self) -> None:
        """Starts before the ends of calls were attached, or while others were looked up, are not believed."""
        is_counting = int(self._step is Step.COUNTS)
        value = _SETTINGS.pack(self._since_ns, self.pace.period_ns, self.place_mask, self.pace.most_stacks, is_counting, 0)
        kernel.update(self._host.program.map("call_settings"), _KEY_ZERO, value)

    def forget_stale_starts(self) -> None:
        """Of calls whose end nobody saw, as it was not looked for."""
        forget_before(self._host.program.map("crowded"), CROWDED_KEY_BYTES, CALL_START, self._since_ns)

    def costs(self) -> CallCosts:
        return self._costs.look(self._step)

    def calls_per_cpu(self) -> npt.NDArray[np.uint64]:
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


class SyscallProfiler(StackedProfiler):
    """Counts from start() to close()."""

    def __init__(self, host: EventHost, closing: ExitStack) -> None:
        program = host.program
        super().__init__(host, closing)
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
        closing.callback(self._links.detach)  # Of whatever was attached when a later step fails.
        settings = host.settings
        budget = settings.calls_share if settings.most_per_s else 0.0
        self._budget = CallBudget(self._links, budget, settings.window_s, host.now_ns)
        closing.callback(self._budget.close)

    def drain(self, window: ClosedWindow) -> Sequence[EventDrain]:
        """Both kinds."""
        shares = self._budget.close_window(window.end_ns)
        counts = self._links.take_counts(window.buffer)
        calls = self._drain_calls(window, counts, shares)
        stacks = self._drain_stacks(window, counts, shares.timed)
        self._links.forget_stale_starts()
        if untimed := int(counts["starts_full"].sum()):
            log.warning("calls without their time no_room=%d", untimed)  # They are counted: `observed` is that much less.
        if unsignalled := int(counts["seen_full"].sum()):
            log.warning("processes out of sight unsignalled=%d", unsignalled)  # They are looked at now, if they still live.
        if self._links.pace.learn(int(counts["stacks_taken"].max(initial=0))):
            self._links.write_settings()
        return calls, stacks

    def tick(self) -> float | None:
        """Look at the cost."""
        return self._budget.tick()

    def limit(self) -> Limit:
        """How much of the time calls are counted, and timed."""
        return Limit(self._budget.last.counted.part, self._budget.last.timed.part)

    def map_bytes(self) -> int:
        """Kernel memory of what the CPUs could not keep, and of stacks by call."""
        return self._spilled.size_bytes() + self._stacks.size_bytes()

    def _drain_calls(self, window: ClosedWindow, counts: npt.NDArray[np.void], shares: CallShares) -> EventDrain:
        share = shares.counted
        spilled = list(self._spilled.drain(window.buffer))
        rows = rows_of_calls(self._links.take_caches(window.buffer), spilled, shares)
        full, busy, filtered = (int(share.scaled(counts[name]).sum()) for name in ("map_full", "map_busy", "filtered"))
        self._spilled.settle(window.buffer, sum(len(keys) for keys, _ in spilled), full)
        lost = {LossReason.LOSS_REASON_MAP_FULL: full, LossReason.LOSS_REASON_MAP_BUSY: busy}
        return EventDrain(
            kind=CALLS_KIND,
            start_ns=window.start_ns,
            end_ns=window.end_ns,
            keys=rows.keys,
            columns=rows.columns,
            account=_account(rows.columns[0].values, filtered, lost, int(counts["seen"].sum()) if share.is_whole else 0),
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

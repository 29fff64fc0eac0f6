# SPDX-License-Identifier: Apache-2.0
"""Kinds offcpu, runqueue and time: where the time of threads goes, from the switches and wakeups of the scheduler (bpf/waits.bpf.c)."""

import contextlib
import logging
import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from agent.errors import KernelError
from agent.kernel import program as kernel
from agent.kernel.program import BufferedMap, MapShape, ProgramSpec, ProgramType
from agent.profilers.breaker import Breaker
from agent.profilers.event_host import ClosedWindow, EventHost, Group, Scratch
from agent.profilers.gone_threads import GoneThreads
from agent.profilers.thread_rows import DEPARTED_KEY, THREAD, THREAD_SUMS, Moment, Rows, ThreadState
from agent.profilers.thread_times import ThreadTimes, ThreadWindow, departed_window, joined
from agent.profilers.wait_classes import call_classes
from agent.profilers.wait_drains import WaitLosses, WaitWindow, offcpu_drain, runqueue_drain, time_drain
from agent.profilers.wait_rows import WAIT_KEY, WAIT_VALUE, Reports, WaitRows, joined_rows, open_rows
from agent.records.drain import Stacks
from agent.records.event_drain import EventDrain
from agent.records.limit import Limit
from agent.records.stack_sets import joined_stacks, selected_stacks

log = logging.getLogger(__name__)

KINDS = ("offcpu", "runqueue", "time")
LEAST_THREADS, MOST_THREADS = 16384, 1 << 18
THREADS_ROOM = 4
"""Entries for each thread there is at the start."""
FIRST_WAITS, MOST_WAITS, WAITS_CHUNK = 4096, 1 << 17, 2048
FIRST_DEPARTED, MOST_DEPARTED, DEPARTED_CHUNK = 1024, 1 << 15, 1024
THREADS_CHUNK = 2048
MOST_OPEN_WALKS = 2000
"""Stacks of open waits that are taken at the end of a window; each is taken once, so the rest comes in the next."""
_LOST = ("threads_full", "departed_full", "offcpu_full", "offcpu_busy", "runqueue_full", "runqueue_busy", "unseen")
WAIT_COUNTS = np.dtype([(name, "<u8") for name in ("events", *_LOST)] + [("own", "<u8", 5)])
"""`own` is the kernel's."""
WAIT_SETTINGS = struct.Struct("<QQQQQQ")
FIRST_PID_NAMESPACE = 0xEFFF_FFFC
"""PROC_PID_INIT_INO, include/linux/proc_ns.h."""
WAIT_GATE = struct.Struct("<QQQ")
_HOOKS = (("sched_wakeup_new", "on_wakeup_new"), ("sched_waking", "on_waking"), ("sched_switch", "on_switch"))
_KEY_ZERO = (0).to_bytes(4, "little")
_ALL_THREADS = "bpf_iter__task"
_R = ProgramType.RAW_TRACEPOINT


def spec() -> ProgramSpec:
    """What is loaded on this host: the map of threads is as large as it has threads."""
    entries = min(max(THREADS_ROOM * thread_count(), LEAST_THREADS), MOST_THREADS)
    return ProgramSpec(
        source="waits.bpf.c",
        functions=dict.fromkeys(("on_switch", "on_back", "on_back_walked", "on_waking", "on_waker_walked", "on_wakeup_new"), _R),
        optional={_ALL_THREADS: ProgramType.ITERATOR},
        maps=("wait_settings", "wait_gate", "threads", "departed", "waits", "wait_counts", "call_classes"),
        defines={"THREAD_ENTRIES": 1 << (entries - 1).bit_length(), "PAGE_LEVELS": page_levels()},
    )


def page_levels(cpuinfo: Path = Path("/proc/cpuinfo")) -> int:
    """Levels of page tables; the kernel takes la57 off the flags when it does not use the fifth."""
    try:
        flags = next((line for line in cpuinfo.read_text().splitlines() if line.startswith("flags")), "")
    except OSError:
        return 4  # A wrong number leads nowhere (bpf/shared/resident.h).
    return 5 if "la57" in flags.split() else 4


def thread_count(loadavg: Path = Path("/proc/loadavg")) -> int:
    """Threads on this host; proc_loadavg(5), behind the slash of the fourth field."""
    try:
        return int(loadavg.read_text().split()[3].partition("/")[2])
    except (OSError, ValueError, IndexError):
        return LEAST_THREADS // THREADS_ROOM


def sees_all_threads(namespace: Path = Path("/proc/self/ns/pid")) -> bool:
    """Whether an iterator meets every thread of the host: those of our own namespace of processes, which must be the first one then."""
    try:
        return namespace.stat().st_ino == FIRST_PID_NAMESPACE
    except OSError:
        return False


class WaitLinks:
    """What attaches the programs, and what they have counted."""

    def __init__(self, host: EventHost) -> None:
        self._host = host
        self._links: list[int] = []

    def attach(self) -> None:
        program = self._host.program
        try:
            for tracepoint, function in _HOOKS:
                self._links.append(program.open_raw_tracepoint(tracepoint, function))
        except KernelError:
            self.detach()
            raise
        with contextlib.suppress(KernelError):  # Kernels before 6.15 have none; there the stack is taken as a thread leaves.
            self._links.append(program.open_raw_tracepoint("sched_exit_tp", "on_back"))

    def detach(self) -> None:
        kernel.close(*reversed(self._links))  # Who comes back is not told of any longer than who leaves.
        self._links.clear()

    def counts(self) -> npt.NDArray[np.void]:
        """WAIT_COUNTS of each possible CPU since the start."""
        size = WAIT_COUNTS.itemsize * kernel.possible_cpu_count()
        return np.frombuffer(kernel.lookup(self._host.program.map("wait_counts"), _KEY_ZERO, size), WAIT_COUNTS)

    def events_per_cpu(self) -> npt.NDArray[np.uint64]:
        return self.counts()["events"].copy()


class WaitsProfiler:
    """From start to close(). Not thread safe."""

    def __init__(self, host: EventHost) -> None:
        self._host = host
        self._window = 1
        self._on_since_ns = self._reported_ns = 0
        self._periods, self._is_anew = 0, True
        self._times = ThreadTimes()
        self._parts: list[ThreadWindow] = []
        self._open: list[WaitRows] = []
        self._kept: Stacks | None = None
        """Stacks of waits that go on, or whose thread has not run since."""
        self._wanted = np.zeros(0, np.uint64)
        for number, wait_class in enumerate(call_classes().tolist()):
            if wait_class:
                kernel.update(host.program.map("call_classes"), number.to_bytes(4, "little"), wait_class.to_bytes(4, "little"))
        waits = MapShape("waits", WAIT_KEY, WAIT_VALUE, MOST_WAITS, WAITS_CHUNK)
        self._waits = BufferedMap(host.program.map("waits"), waits, FIRST_WAITS)
        gone = MapShape("departed", DEPARTED_KEY, THREAD_SUMS, MOST_DEPARTED, DEPARTED_CHUNK)
        self._departed = BufferedMap(host.program.map("departed"), gone, FIRST_DEPARTED)
        host.install_finisher(Scratch.BACK, "on_back_walked")
        host.install_finisher(Scratch.WAKER, "on_waker_walked")
        is_there = _ALL_THREADS in host.program.functions()
        self._sees_all = sees_all_threads()
        self._all_threads = kernel.Iterator(host.program.function(_ALL_THREADS)) if is_there else None
        self._gone = GoneThreads(Path("/proc") if self._sees_all else None)
        self._was_detached = False
        self._met_all_ns = 0
        """When the last look at all threads began, 0 when not all were met."""
        self._links = WaitLinks(host)
        self._lost_before = self._links.counts()
        try:
            self._breaker = Breaker(self, host.settings.most_per_s, host.settings.window_s, host.now_ns, self)
        except (KernelError, OSError):
            self._links.detach()
            self._close_maps()
            raise

    def attach(self) -> None:
        """Called by the breaker, which opens the gate when everything is attached."""
        self._write_gate(0, shut_ns=1)
        self._links.attach()
        self._is_anew = True

    def open(self, most_events: int) -> None:
        is_anew, self._is_anew = self._is_anew, False
        if is_anew:
            self._on_since_ns = self._host.now_ns()
            self._times.begin_again()
            self._write_settings()
        self._write_gate(most_events)
        if is_anew:
            self._go_through_threads(is_beginning=True)
            self._write_settings()

    def shut_ns(self) -> int:
        _, _, shut_ns = WAIT_GATE.unpack(kernel.lookup(self._host.program.map("wait_gate"), _KEY_ZERO, WAIT_GATE.size))
        return int(shut_ns)

    def detach(self) -> None:
        """Called by the breaker: what is open is not seen on, so it counts up to here, or to when the programs have looked away."""
        self._go_through_threads()
        self._links.detach()
        self._was_detached = True
        self._look(self.shut_ns() or self._host.now_ns())

    def events_per_cpu(self) -> npt.NDArray[np.uint64]:
        return self._links.events_per_cpu()

    def tick(self) -> float | None:
        return self._breaker.tick()

    def limit(self) -> Limit:
        return Limit(self._breaker.duty, self._breaker.duty)

    def before_drain(self) -> None:
        if self._breaker.is_on:
            self._go_through_threads()

    def drain(self, window: ClosedWindow) -> Sequence[EventDrain]:
        """The three kinds of the window."""
        share = self._breaker.close_window(window.end_ns)
        if self._breaker.is_on:
            self._look(min(self.shut_ns() or window.end_ns, window.end_ns))
        rows = WaitRows(*self._waits.drain_all(window.buffer))
        gone_keys, gone_sums = self._departed.drain_all(window.buffer)
        losses = self._take_losses()
        self._waits.settle(window.buffer, len(rows.keys), losses.offcpu_full + losses.runqueue_full)
        self._departed.settle(window.buffer, len(gone_keys), losses.departed_full)
        everything = joined_rows([rows, *self._open])
        threads = joined([*self._parts, departed_window(gone_keys, gone_sums)])
        self._open.clear()
        self._parts.clear()
        whole = WaitWindow(window, share, everything, threads, self._stacks_for(everything, window.stacks), losses)
        return offcpu_drain(whole), runqueue_drain(whole), time_drain(whole)

    def map_bytes(self) -> int:
        return self._waits.size_bytes() + self._departed.size_bytes()

    def close(self) -> None:
        self._breaker.close()
        self._close_maps()

    def _go_through_threads(self, *, is_beginning: bool = False) -> None:
        """See what all threads do at the beginning; else take the stacks of waits whose thread does not come back in time."""
        self._met_all_ns = 0
        if self._all_threads is None:
            return
        self._write_settings(is_beginning=is_beginning)
        from_ns = self._host.now_ns()
        try:
            self._all_threads.run()
            self._met_all_ns = from_ns if self._sees_all else 0
        except KernelError as error:
            log.warning("threads not visited reason=%s", error)  # They are met at their next event, their open waits have no stacks.

    def _close_maps(self) -> None:
        if self._all_threads is not None:
            self._all_threads.close()
        self._waits.close()
        self._departed.close()

    def _look(self, now_ns: int) -> None:
        """Read what every thread did up to now, and what it waits for. A moment that was reached before has nothing new."""
        if now_ns <= max(self._reported_ns, self._on_since_ns):
            return
        reports = Reports(self._host.settings.threshold_ns, self._reported_ns)
        number = self._window
        # Before the read: a wait that ends in between is short of a moment, a thread that does keeps its entry; never counted twice.
        self._reported_ns, self._window = now_ns, number + 1
        self._write_settings()
        tids, threads = self._read_threads()
        threads["state"][self._ended_unseen(tids, threads, number)] = ThreadState.DEAD
        moment = Moment(now_ns, self._on_since_ns)
        self._parts.append(self._times.look(tids, threads, moment, number))
        self._open.append(open_rows(threads, moment, reports))
        for tid in tids[(threads["state"] == ThreadState.DEAD) & self._times.is_told(tids)].tolist():
            kernel.delete(self._host.program.map("threads"), tid.to_bytes(4, "little"))
        self._wanted = np.concatenate([threads[who][name] for who in ("own", "waker") for name in ("user_stack", "kernel_stack")])

    def _ended_unseen(self, tids: npt.NDArray[np.uint32], threads: Rows, number: int) -> npt.NDArray[np.intp]:
        """Rows of threads that ended while nobody looked."""
        is_unmet = threads["met_window"] < number
        if self._met_all_ns:
            return np.flatnonzero(is_unmet & (threads["since_ns"] < self._met_all_ns))
        if not self._was_detached:
            return np.zeros(0, np.intp)
        told_nothing = np.flatnonzero(is_unmet & (threads["since_ns"] < self._on_since_ns))
        return told_nothing[self._gone.among(tids[told_nothing])]

    def _read_threads(self) -> tuple[npt.NDArray[np.uint32], Rows]:
        pieces = list(kernel.read_all(self._host.program.map("threads"), np.dtype("<u4"), THREAD, THREADS_CHUNK))
        tids = np.concatenate([np.zeros(0, np.uint32), *(piece[0] for piece in pieces)])
        return tids, np.concatenate([np.zeros(0, THREAD), *(piece[1] for piece in pieces)])

    def _stacks_for(self, rows: WaitRows, stacks: Stacks) -> Stacks:
        """The stacks of the window with those of earlier ones that its waits began in; kept on for the next."""
        everything = stacks if self._kept is None else joined_stacks((stacks, self._kept))
        used = np.concatenate([rows.keys[who][name] for who in ("own", "waker") for name in ("user_stack", "kernel_stack")])
        is_missing = ~np.isin(used, stacks.hashes) & (used != 0)
        self._kept = selected_stacks(everything, self._wanted)
        return everything if is_missing.any() else stacks

    def _take_losses(self) -> WaitLosses:
        before, self._lost_before = self._lost_before, self._links.counts()
        return WaitLosses(*(int(self._lost_before[name].sum() - before[name].sum()) for name in _LOST))

    def _write_settings(self, *, is_beginning: bool = False) -> None:
        moments = (self._host.settings.threshold_ns, self._on_since_ns, self._reported_ns, self._window)
        values = WAIT_SETTINGS.pack(*moments, MOST_OPEN_WALKS, is_beginning)
        kernel.update(self._host.program.map("wait_settings"), _KEY_ZERO, values)

    def _write_gate(self, most_events: int, shut_ns: int = 0) -> None:
        self._periods += 1
        kernel.update(self._host.program.map("wait_gate"), _KEY_ZERO, WAIT_GATE.pack(self._periods, most_events, shut_ns))


GROUP = Group(KINDS, spec, WaitsProfiler)

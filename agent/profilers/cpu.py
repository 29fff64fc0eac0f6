# SPDX-License-Identifier: Apache-2.0
"""On-CPU profiles: a timer on every CPU, its ticks counted by process and stack in BPF maps, drained once per window."""

import contextlib
import logging
import os
import secrets
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

import numpy as np
import numpy.typing as npt

from agent.errors import KernelError
from agent.kernel import program as kernel
from agent.kernel.program import BufferedMap, MapShape, Program, ProgramSpec, ProgramType, UnwindMaps, Walker
from agent.profilers.idle_time import read_idle_ns
from agent.profilers.process_tree import ProcessTree
from agent.profilers.run_time import RunTimeMeter
from agent.profilers.stack_rows import STACK_FRAMES, STACK_VALUE, stacks_from_rows
from agent.profilers.tick_account import TickAccounts
from agent.profilers.ticks import TICK_COUNTS
from agent.records.drain import CPU_KEY, CpuDrain, Stacks
from agent.records.process import Origin, ProcessKey

log = logging.getLogger(__name__)

SPEC = ProgramSpec(
    source="cpu.bpf.c",
    functions={
        "on_tick": ProgramType.PERF_EVENT,
        "on_tick_unwind": ProgramType.PERF_EVENT,
        "on_exec": ProgramType.RAW_TRACEPOINT,
        "on_fork": ProgramType.RAW_TRACEPOINT,
    },
    optional={"on_tick_look": ProgramType.PERF_EVENT},
    maps=("active", "settings", "counts", "stacks", "ticks", "seen", "new_processes", "tree", "tree_lost", "cgroups", *kernel.UNWIND_MAPS),
)
RATES_HZ = (99, 49)
"""First class: primes to the clocks that programs work by."""
LOCK_STEP_RATES_HZ = (100, 250, 300, 1000)
RING_BYTES = 64 * os.sysconf("SC_PAGE_SIZE")
SEEN_ENTRIES = 16384
SIGHTING = struct.Struct("<QIIQIIQI4x64s")
"""struct sighting in bpf/shared/sight.h."""
NEW_PROCESSES_LIMIT = 4096
LEAST_ENTRIES, FIRST_ENTRIES = 2048, 16384
MOST_COUNTS, MOST_STACKS = 1 << 18, 1 << 16
COUNTS_CHUNK, STACKS_CHUNK = 4096, 512
LIMIT_TREE, LIMIT_CGROUP = 1, 2
_KEY_ZERO = (0).to_bytes(4, "little")


class Unwinding(IntEnum):
    """How user stacks are walked; UNWINDING_* in bpf/shared/limit.h."""

    OFF = 0
    """By frame pointers, by the kernel."""
    ON = 1
    LOOKS = 2
    """Also code that the kernel was not told of yet."""


@dataclass(frozen=True, slots=True)
class CpuSettings:
    """What to sample, and how."""

    rate_hz: int = 99
    limit_pids: frozenset[int] = frozenset()
    """Only these processes and what they fork; empty for all."""
    cgroup: Path | None = None
    """Only processes in this cgroup of the unified hierarchy, or below it; None for all."""
    window_s: float = 10.0
    """How long the maps must last."""
    header_directory: Path = Path("/var/cache/emberwatch")
    """Where the header tree is kept between starts."""
    counts_entries: int | None = None
    """None: by CPUs, rate and window."""
    stacks_entries: int | None = None
    """None: by CPUs, rate and window."""
    can_grow: bool | None = None
    """Whether maps that are too small are replaced by larger ones; None: when neither size is given."""
    max_frames: int = STACK_FRAMES
    """The kernel's own limit is obeyed when it is lower."""
    is_unwinding: bool = False
    """Walk user stacks by the tables that are put into `unwind_maps`; by frame pointers where the kernel is on the deny list."""


class Sight(IntEnum):
    """Why a process is told of; SIGHT_* in bpf/shared/sight.h."""

    SAMPLED = 0
    BEGUN = 1
    NAMED = 2


@dataclass(frozen=True, slots=True)
class Sightings:
    """Processes that were told of since they were asked for last."""

    sampled: list[ProcessKey]
    """Seen for the first time, or mapping code that unwinding does not know of."""
    begun: list[ProcessKey]
    """Became another program a moment ago. They have no samples yet and load their libraries still."""
    origins: list[Origin]
    """What all of these are called, and others that began: in the order in which they were told of."""


class CpuProfiler:
    """Samples from start() to close(). Not thread safe, but for `wake_fd`."""

    def __init__(self, settings: CpuSettings, program: Program, now_ns: Callable[[], int]) -> None:
        self._settings = settings
        self._program = program
        self._now_ns = now_ns
        self._closing = contextlib.ExitStack()
        self._closing.callback(program.close)
        self._start_ns = 0
        self._buffer = 0
        self._signalled = 0
        self._unfollowed = 0
        self._stacks_refused = 0
        has_sizes = settings.counts_entries is not None or settings.stacks_entries is not None
        self._can_grow = not has_sizes if settings.can_grow is None else settings.can_grow
        self._period_ns = 1_000_000_000 // settings.rate_hz
        self._unwinding_denial = kernel.unwinding_denial() if settings.is_unwinding else ""
        self._unwind_maps = _unwind_maps(program) if settings.is_unwinding and not self._unwinding_denial else None
        self._limit_frames = min(settings.max_frames, STACK_FRAMES, _kernel_stack_limit())

    @classmethod
    def start(cls, settings: CpuSettings, now_ns: Callable[[], int] = time.monotonic_ns) -> "CpuProfiler":
        """Compile, load and attach. Raises KernelError with what is missing and the remedy."""
        check_rate(settings.rate_hz)
        return cls.on(Program.load(SPEC, settings.header_directory), settings, now_ns)

    @classmethod
    def on(cls, program: Program, settings: CpuSettings, now_ns: Callable[[], int]) -> "CpuProfiler":
        """Attach what is loaded already; `program` is closed with the profiler, and when it cannot start."""
        profiler = cls(settings, program, now_ns)
        try:
            profiler._attach()
        except BaseException:
            profiler.close()
            raise
        return profiler

    @property
    def wake_fd(self) -> int:
        """Readable when new processes were seen."""
        return self._ring.descriptor

    @property
    def buffer(self) -> int:
        """Index of the maps that handlers write now."""
        return self._buffer

    @property
    def loader_peak_bytes(self) -> int:
        """Most memory the child that compiled ever held."""
        return self._program.loader_peak_bytes

    @property
    def unwind_maps(self) -> UnwindMaps | None:
        """Where unwind tables go; None when stacks are walked by frame pointers."""
        return self._unwind_maps

    @property
    def unwinding_denial(self) -> str:
        """Why this kernel must not unwind though it was asked to; empty when it does."""
        return self._unwinding_denial

    def new_processes(self) -> Sightings:
        """What was told since the last call, at most NEW_PROCESSES_LIMIT processes; the rest stays. Never waits.

        One may be told of again after many thousand others.
        """
        told = Sightings([], [], [])
        keys = {Sight.SAMPLED: told.sampled, Sight.BEGUN: told.begun}
        for start, pid, exec_id, of_start, of_pid, of_exec_id, cgroup_id, why, exe in map(
            SIGHTING.unpack, self._ring.read(NEW_PROCESSES_LIMIT)
        ):
            key = ProcessKey(pid, start, exec_id)
            if why in keys:
                keys[why].append(key)
            parent = ProcessKey(of_pid, of_start, of_exec_id) if of_pid else None
            told.origins.append(Origin(key, parent, cgroup_id, exe.partition(b"\0")[0]))
        self._signalled += len(told.sampled)
        if self._signalled > SEEN_ENTRIES * 3 // 4:
            self._empty_seen()
        return told

    def drain(self) -> CpuDrain:
        """End the window and take out what it holds."""
        idle = self._buffer
        self._buffer = 1 - idle
        end_ns = self._now_ns()
        kernel.flip(self._program.map("active"), self._buffer, self._counts)
        if self._unwind_maps is not None:
            self._unwind_maps.settle()
        start_ns, self._start_ns = self._start_ns, end_ns
        keys, counts = self._drain_counts(idle)
        stacks = self._drain_stacks(idle)
        per_cpu = self._take_ticks(idle)
        ticks = self._accounts.close_window(per_cpu, int(counts.sum()), end_ns)
        self._make_room(idle, len(keys), stacks, per_cpu)
        self._tell_of_the_unseen(per_cpu)
        if self._settings.limit_pids:
            self._tree.forget_dead()
        return CpuDrain(start_ns, end_ns, self._period_ns, keys, counts, stacks, ticks)

    def bpf_run_time_ns(self) -> int:
        """Time spent in the BPF programs since the start; 0 when the kernel does not measure it."""
        return self._run_time.total_ns()

    def tick(self) -> float | None:
        """Look whether run time is to be measured; as in EventProfiler."""
        return self._run_time.tick()

    @property
    def stacks_refused(self) -> int:
        """Stacks that found no room since the start; a sample may lose two, and is kept under a mark."""
        return self._stacks_refused

    def map_bytes(self) -> int:
        """Kernel memory of all maps."""
        return self._program.map_bytes() + self._counts.size_bytes() + self._stacks.size_bytes()

    def instructions(self) -> dict[str, int]:
        """Size of each program after the verifier, those of other kinds in the same text too."""
        return {name: self._program.instructions(name) for name in self._program.functions()}

    def close(self) -> None:
        """End sampling; the kernel frees programs and maps."""
        self._closing.close()

    def _attach(self) -> None:
        """From the maps inward to the timers, so that the first tick finds everything in place."""
        entries = _entries_needed(self._settings)
        counts_shape = MapShape("counts", CPU_KEY, np.dtype("<u8"), MOST_COUNTS, COUNTS_CHUNK)
        stacks_shape = MapShape("stacks", np.dtype("<u8"), STACK_VALUE, MOST_STACKS, STACKS_CHUNK)
        self._counts = BufferedMap(self._program.map("counts"), counts_shape, self._settings.counts_entries or entries)
        self._closing.callback(self._counts.close)
        self._stacks = BufferedMap(self._program.map("stacks"), stacks_shape, self._settings.stacks_entries or entries)
        self._closing.callback(self._stacks.close)
        self._ring = kernel.RingReader(self._program.map("new_processes"), RING_BYTES)
        self._closing.callback(self._ring.close)
        self._settle_limits()
        self._run_time = RunTimeMeter(self._program.measure_run_time, self._program.run_time_ns, self._now_ns)
        self._closing.callback(self._run_time.close)
        self._start_ns = self._now_ns()
        timers = kernel.CpuTimers(self._program.function("on_tick"), self._period_ns, self._now_ns)
        self._closing.callback(timers.close)
        self._accounts = TickAccounts(timers, self._period_ns, self._start_ns, read_idle_ns)

    def _settle_limits(self) -> None:
        """Fill the maps that limit the profile, then switch the limits on, and unwinding."""
        limits = 0
        self._tree = ProcessTree(self._program.map("tree"), Path("/proc"))
        self._program.attach_raw_tracepoint("sched_process_exec", "on_exec")
        self._program.attach_raw_tracepoint("sched_process_fork", "on_fork")  # Before the tree is read: no child is missed.
        if self._settings.limit_pids:
            limits |= LIMIT_TREE
            self._tree.follow(self._settings.limit_pids)
        if self._unwinding_denial:
            log.warning("unwinding is off: on this kernel it %s", self._unwinding_denial)
        if self._settings.cgroup is not None:
            limits |= LIMIT_CGROUP
            _put_cgroup(self._program.map("cgroups"), self._settings.cgroup)
        kernel.update(self._program.map("settings"), _KEY_ZERO, struct.pack("<QII", secrets.randbits(64), limits, self._unwinding()))

    def _unwinding(self) -> Unwinding:
        if self._unwind_maps is None:
            return Unwinding.OFF
        there = set(self._program.functions())
        lacking = {"on_tick_look", *(("on_event_look",) if "on_event_unwind" in there else ())} - there
        if lacking:
            log.warning("new programs are walked once they were met: this kernel does not take %s", ", ".join(sorted(lacking)))
            return Unwinding.ON
        return Unwinding.LOOKS

    def _drain_counts(self, buffer: int) -> tuple[npt.NDArray[np.void], npt.NDArray[np.uint64]]:
        return self._counts.drain_all(buffer)

    def _drain_stacks(self, buffer: int) -> Stacks:
        return stacks_from_rows(self._stacks.drain(buffer), self._limit_frames)

    def _take_ticks(self, buffer: int) -> npt.NDArray[np.void]:
        """Counters of each possible CPU; they start again from zero."""
        cpus = kernel.possible_cpu_count()
        key, size = buffer.to_bytes(4, "little"), TICK_COUNTS.itemsize * cpus
        counts = np.frombuffer(kernel.lookup(self._program.map("ticks"), key, size), TICK_COUNTS)
        kernel.update(self._program.map("ticks"), key, bytes(size))
        return counts

    def _tell_of_the_unseen(self, per_cpu: npt.NDArray[np.void]) -> None:
        """Losses that no sample shows: processes not signalled (found at the end of the window), children not followed."""
        unsignalled = int(per_cpu["seen_full"].sum())
        unfollowed = int.from_bytes(kernel.lookup(self._program.map("tree_lost"), _KEY_ZERO, 8), "little")
        if unsignalled:
            self._empty_seen()  # Signals that found the ring full were not counted: nothing would be told any more.
        if unsignalled or unfollowed != self._unfollowed:
            log.warning("processes out of sight unsignalled=%d unfollowed=%d", unsignalled, unfollowed - self._unfollowed)
        self._unfollowed = unfollowed

    def _empty_seen(self) -> None:
        """Have processes told of once more."""
        self._signalled = 0
        for _ in kernel.drain(self._program.map("seen"), np.dtype("V16"), np.dtype("<u8"), COUNTS_CHUNK):
            pass

    def _make_room(self, buffer: int, used_counts: int, stacks: Stacks, per_cpu: npt.NDArray[np.void]) -> None:
        refused_counts, refused_stacks = int(per_cpu["map_full"].sum()), int(per_cpu["stack_map_full"].sum())
        self._stacks_refused += refused_stacks
        if not self._can_grow:
            return
        for name, buffered, used, refused in (
            ("counts", self._counts, used_counts, refused_counts),
            ("stacks", self._stacks, len(stacks.hashes), refused_stacks),
        ):
            if buffered.settle(buffer, used, refused):
                log.info("map grown name=%s entries=%d used=%d refused=%d", name, buffered.entries(buffer), used, refused)


def _unwind_maps(program: Program) -> UnwindMaps:
    walkers = walkers_of(program, "on_tick_unwind", "on_tick_look")
    return UnwindMaps({name: program.map(name) for name in kernel.UNWIND_MAPS}, walkers)


def walkers_of(program: Program, unwind: str, look: str) -> dict[Walker, int]:
    """The programs that a walk goes on in; `look` is left out where the kernel does not take it."""
    names = {Walker.UNWIND: unwind, Walker.LOOK: look}
    there = program.functions()
    return {walker: program.function(name) for walker, name in names.items() if name in there}


def check_rate(rate_hz: int) -> None:
    """Raises KernelError for a rate that is not possible, and warns of one that is not wise."""
    if not 1 <= rate_hz <= 10_000:
        raise KernelError(f"a rate of {rate_hz} Hz is not possible: 1 to 10,000, best {RATES_HZ[0]} or {RATES_HZ[1]}")
    if any(clock_hz % rate_hz == 0 or rate_hz % clock_hz == 0 for clock_hz in LOCK_STEP_RATES_HZ):
        log.warning(
            "rate in lock step rate_hz=%d: work done by a timer of that rate is seen always or never; take %d", rate_hz, RATES_HZ[0]
        )


def _entries_needed(settings: CpuSettings) -> int:
    """As many as there are ticks in a window, within bounds: on most hosts every sample could be another stack."""
    ticks = int(kernel.possible_cpu_count() * settings.rate_hz * settings.window_s)
    return min(max(ticks, LEAST_ENTRIES), FIRST_ENTRIES)


def _put_cgroup(cgroups: int, path: Path) -> None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise KernelError(f"cannot open the cgroup {path}: {error.strerror}") from error
    try:
        kernel.update(cgroups, _KEY_ZERO, descriptor.to_bytes(4, "little"))
    except OSError as error:
        raise KernelError(f"{path} is no cgroup of the unified hierarchy (cgroup v2): {error.strerror}") from error
    finally:
        os.close(descriptor)


def _kernel_stack_limit(path: Path = Path("/proc/sys/kernel/perf_event_max_stack")) -> int:
    """Frames after which the kernel ends a walk."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return STACK_FRAMES

# SPDX-License-Identifier: Apache-2.0
"""The agent's main loop: sees new processes at once, and at the end of each slot turns a drain into a window on disk.

One thread samples and builds, one sends, one uploads; the spool lies between the first two. The host comes first: nothing here waits
for the server, and the last window is on disk before the agent ends.
"""

import logging
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from agent import health
from agent.clock import Clock, Moment, next_boundary_ns
from agent.collect.class_overrides import ClassOverrides
from agent.collect.encode import Numbering, parcels_from_batch
from agent.collect.window import WindowBuilder
from agent.config import Settings
from agent.health import KindFacts, Shortfalls
from agent.kernel.function_ranges import function_ranges
from agent.kernel.kallsyms_child import write_kallsyms
from agent.kernel.layout import LayoutKeeper
from agent.process.settings import process_count, settings_for
from agent.process.table import ProcessTable
from agent.process.throttling import Throttling
from agent.profilers.cpu import CpuSettings
from agent.profilers.event_host import EventSettings
from agent.profilers.suite import Suite
from agent.records.drain import Stacks
from agent.records.folded import Folded, Tables, message_from_folded
from agent.records.kernel_layout import KernelLayout
from agent.records.process import Process, ProcessKey
from agent.records.window import WindowFacts, WindowTime
from agent.runner.addresses import HostAddresses
from agent.runner.data_lock import DataLock
from agent.runner.identity import agent_id, read_machine_id
from agent.runner.lifeline import Lifeline
from agent.runner.own_cost import OwnCost, give_back_code, give_back_memory
from agent.runner.unwind_tables import TableCounts
from agent.runner.unwinder import Sources as UnwindSources
from agent.runner.unwinder import Unwinder, samples_by_process
from agent.runner.uploader import Sources, Uploader
from agent.runner.withheld_cpu import WithheldCpu
from agent.ship.client import Client
from agent.ship.fleet_tables import FleetTableClient
from agent.ship.sender import Sender
from agent.ship.spool import Spool, SpoolLimits
from agent.unwind.source import FleetTables, SourceSettings, TableSource
from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1 import collector_pb2

log = logging.getLogger(__name__)

_FLUSH_S = 5.0
_ASK_S, _ASK_PAUSE_S = 3.0, 0.3
"""At the end: how long the server is asked what it still wants of binaries that may be gone soon."""
_CODE_EVERY_WINDOWS = 6
_FIRST_NS = 3 * 10**9
_LATE_S = 0.001
"""A drain a moment after the boundary: a window must start inside its slot."""
_TABLES_S = 0.2
"""How often it is looked whether unwind tables have come."""
_HELD_TABLES_BYTES = 4 << 20
"""In our memory, beside those in the kernel's maps."""
_ENTRY_0 = np.zeros(1, np.int64)
_NO_TABLES = Tables([b""], [pb.Binary()], _ENTRY_0, _ENTRY_0, _ENTRY_0.astype(np.uint64), _ENTRY_0, _ENTRY_0, _ENTRY_0)
_KERNEL_HALF = np.uint64(1 << 63)


class Collector:
    """One run of the agent."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._epoch_unix_ns = clock.unix_ns()
        self._sequence = 1
        self._pending_names = 0
        self._addresses = HostAddresses()
        self._windows = 0
        self._put_off = 0

    def run(self, lifeline: Lifeline) -> None:
        """Sample until the lifeline is over. Raises AgentError when it cannot begin."""
        with ExitStack() as closing:
            self._start(closing)
            lifeline.watch(self._profiler.wake_fd)
            lifeline.say_ready(rate_hz=self._settings.rate_hz)
            peak_mib = self._profiler.loader_peak_bytes >> 20
            log.info("sampling rate_hz=%d kinds=%s loader_peak_mib=%d", self._settings.rate_hz, ",".join(self._suite.kinds), peak_mib)
            self._until(self._first_end_unix_ns(), lifeline)
            while not lifeline.is_over:
                self._window()
                self._until(next_boundary_ns(self._clock.unix_ns(), self._settings.window_s), lifeline)
            self._window()
            self._finish()

    def _start(self, closing: ExitStack) -> None:
        settings, data = self._settings, Path(self._settings.data_dir)
        cache = Path(settings.cache_dir) if settings.cache_dir else data
        closing.callback(DataLock(data).release)
        identity = agent_id(data, read_machine_id())
        client = Client(settings.server, insecure=settings.insecure)
        closing.callback(client.close)
        self._suite = Suite.start(
            CpuSettings(
                rate_hz=settings.rate_hz,
                limit_pids=settings.pids(),
                cgroup=Path(settings.cgroup) if settings.cgroup else None,
                window_s=settings.window_s,
                header_directory=cache / "headers",
                stacks_entries=settings.stacks_entries or None,
                is_unwinding=True,
            ),
            EventSettings(settings.window_s, settings.threshold_us * 1000, settings.events_per_s, settings.calls_cpu_percent / 100),
            settings.wants,
        )
        closing.callback(self._suite.close)
        self._profiler = self._suite.cpu
        self._processes = ProcessTable(settings_for(process_count()))
        closing.callback(self._processes.close)
        self._withheld = WithheldCpu(Throttling())
        self._unwinder = self._start_unwinder(closing, cache / "unwind", FleetTableClient(client))
        self._layouts = LayoutKeeper()
        self._layout = self._layouts.current()
        functions = function_ranges(settings.override_calls())
        if strange := sorted(name.decode() for name, places in functions.items() if not places):
            log.warning("no such system call or kernel function names=%s", ",".join(strange))  # Its waits keep their class.
        self._builder = WindowBuilder(ClassOverrides(settings.class_overrides(), functions))
        limits = SpoolLimits(disk_bytes=settings.spool_bytes, age_s=settings.spool_h * 3600)
        self._spool = Spool(data / "spool", lambda: self._clock.unix_ns() / 1e9, limits)
        self._uploader = Uploader(client.upload, Sources(self._processes, lambda: self._layout, write_kallsyms, data))
        self._sender = Sender(self._spool, client.push, identity, self._on_answer)
        self._sender_state = self._sender.state()
        self._own_cost = OwnCost(self._profiler.bpf_run_time_ns, self._suite.map_bytes)
        self._uploader.start()
        closing.callback(self._uploader.close, 1.0)
        self._sender.start()
        closing.callback(self._sender.close, 1.0)

    def _start_unwinder(self, closing: ExitStack, directory: Path, fleet: FleetTables) -> Unwinder | None:
        """None where user stacks are walked by frame pointers."""
        maps = self._profiler.unwind_maps
        if maps is None:
            return None
        tables = TableSource(SourceSettings(directory, self._settings.unwind_cache_bytes, _HELD_TABLES_BYTES), fleet)
        closing.callback(tables.close)
        processes = self._processes
        return Unwinder(maps, UnwindSources(processes.get, processes.watch(), processes.open_binary, processes.files_of, tables))

    def _first_end_unix_ns(self) -> int:
        """The first window is short, so that there is a picture soon; it ends with its slot at the latest."""
        now_ns = self._clock.unix_ns()
        return min(next_boundary_ns(now_ns, self._settings.window_s), now_ns + _FIRST_NS)

    def _until(self, end_unix_ns: int, lifeline: Lifeline) -> None:
        """Meet new processes until the window is over, or the run."""
        moment = Moment(self._clock, end_unix_ns)
        while not lifeline.is_over:
            left_s = moment.left_s()
            if left_s <= 0:
                return
            again_s, tick_s = self._again_s(), self._suite.tick()
            self._give_back_memory()
            is_told = lifeline.wait(min(wait_s for wait_s in (left_s + _LATE_S, again_s, tick_s) if wait_s is not None))
            if is_told or again_s is not None:
                self._meet()
                if self._unwinder is not None:
                    self._unwinder.catch_up()

    def _give_back_memory(self) -> None:
        """Once a window, when it was sent, or could not be: what was freed of its making is used again for that."""
        state = self._sender.state()
        if state != self._sender_state:
            self._sender_state = state
            give_back_memory()

    def _meet(self) -> None:
        """Take note of the processes that the kernel has told of."""
        told = self._profiler.new_processes()
        self._processes.note(told.origins)
        self._processes.expect(told.begun)
        self._processes.update(told.sampled)

    def _again_s(self) -> float | None:
        """When there is something to do though nothing happens; None when there is not."""
        young_s = self._processes.wait_s()
        if self._unwinder is None or not self._unwinder.is_waiting:
            return young_s
        return _TABLES_S if young_s is None else min(young_s, _TABLES_S)

    def _window(self) -> None:
        """From the maps of the kernel to a record in the spool."""
        drain = self._withheld.add(self._suite.drain())
        self._meet()
        offset = self._clock.offset()
        self._layout = layout = self._layouts.current()
        facts = WindowFacts(
            host=self._host_facts(layout, KindFacts(self._suite.refusals, self._suite.limited())),
            overhead=self._own_cost.since_last(),
            carried_losses=self._spool.take_losses(),
        )
        batch = self._builder.build(drain, self._find, layout, facts)
        lies = WindowTime(offset.unix_ns(drain.cpu.start_ns), offset.unix_ns(drain.cpu.end_ns))
        parcels = parcels_from_batch(batch, lies, Numbering(self._epoch_unix_ns, self._sequence))
        self._sequence += len(parcels)
        for parcel in parcels:
            self._spool.append(parcel)
        self._sender.wake()
        self._layouts.miss(_kernel_misses(drain.cpu.stacks, layout))
        self._processes.forget_dead()
        if self._unwinder is not None:
            self._unwinder.end_window(samples_by_process(drain))
        self._windows += 1
        if self._windows % _CODE_EVERY_WINDOWS == 1:
            give_back_code()
        ticks = drain.cpu.ticks
        log.info(
            "window kept samples=%d expected=%d lost=%d rows=%d event_rows=%d",
            drain.cpu.counts.sum(),
            ticks.expected,
            sum(ticks.lost.values()),
            len(drain.cpu.keys),
            sum(map(len, drain.events)),
        )

    def _host_facts(self, layout: KernelLayout, kinds: KindFacts) -> pb.HostFacts:
        counts = self._unwinder.counts() if self._unwinder is not None else TableCounts()
        put_off = self._processes.counts().rate_limited
        left_out = self._unwinder.left_out if self._unwinder is not None else 0
        lacking = Shortfalls(
            put_off=put_off - self._put_off,
            denial=self._profiler.unwinding_denial,
            evicted=counts.evicted,
            missing=counts.missing,
            waiting=counts.waiting,
            rules_refused=counts.rules_refused,
            left_out=left_out,
        )
        self._put_off = put_off
        facts = health.host_facts(self._settings, layout, self._spool.state(), kinds, lacking)
        facts.flags.extend(f"address:{address}" for address in self._addresses.at(self._clock.monotonic_ns()))
        return facts

    def _find(self, key: ProcessKey) -> Process:
        self._processes.update((key,))
        return self._processes.get(key)

    def _finish(self) -> None:
        """Give the server what it can take now; the rest waits in the spool for the next start."""
        if not self._sender.flush(_FLUSH_S):
            log.warning("server did not take the last windows waiting=%d", self._spool.state().records)
            return
        self._uploader.flush(_FLUSH_S)
        until_s = self._clock.monotonic_ns() / 1e9 + _ASK_S
        while self._pending_names and self._clock.monotonic_ns() / 1e9 < until_s:
            time.sleep(_ASK_PAUSE_S)
            if not self._ask_again():
                return
        self._uploader.flush(_FLUSH_S)

    def _ask_again(self) -> bool:
        """Ask what the server wants uploaded by now, by sending the number of the last window again; False when it cannot be asked."""
        now_ns = self._clock.unix_ns()
        batch = message_from_folded(Folded(self._host_facts(self._layout, KindFacts()), _NO_TABLES, (), []))
        numbering = Numbering(self._epoch_unix_ns, self._sequence - 1)
        self._spool.append(parcels_from_batch(batch, WindowTime(now_ns - 1, now_ns), numbering)[0])
        return self._sender.flush(_ASK_S)

    def _on_answer(self, answer: collector_pb2.PushResponse) -> None:
        """Called in the sender's thread."""
        self._pending_names = answer.pending_binaries
        self._uploader.want(answer.wanted)


def _kernel_misses(stacks: Stacks, layout: KernelLayout) -> list[int]:
    """Kernel addresses that lie in no range of the layout."""
    addresses = np.sort(stacks.addresses[stacks.addresses >= _KERNEL_HALF])
    if not addresses.size or layout.is_hidden or not layout.ranges:
        return []
    starts = np.array([found.start for found in layout.ranges], np.uint64)
    ends = np.array([found.end for found in layout.ranges], np.uint64)
    index = np.searchsorted(starts, addresses, side="right") - 1
    is_missed = (index < 0) | (addresses >= ends[np.maximum(index, 0)])
    missed: list[int] = addresses[is_missed].tolist()
    return missed

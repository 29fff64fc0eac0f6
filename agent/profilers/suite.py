# SPDX-License-Identifier: Apache-2.0
"""All profilers of a host: one text to compile, one set of shared maps, one end of the window for every kind.

Suite -> CpuProfiler (owns the flip of the buffers, and the stacks of all kinds)
      -> EventProfiler of each group in registry.py that this kernel offers
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TypeVar

from agent.errors import KernelError
from agent.kernel import program as kernel
from agent.kernel.program import Program
from agent.profilers.cpu import SPEC, CpuProfiler, CpuSettings, check_rate, walkers_of
from agent.profilers.event_host import EVENTS, ClosedWindow, EventHost, EventProfiler, EventSettings, Group
from agent.profilers.missed_runs import MissedRuns
from agent.profilers.registry import GROUPS
from agent.records.drain import CpuDrain
from agent.records.event_drain import EventDrain, WindowDrain
from agent.records.limit import Limit
from agent.records.stack_sets import without_innermost

log = logging.getLogger(__name__)

T = TypeVar("T")

CPU_KIND = "cpu"
EVENT_STACKS = 8192
"""Stacks that the maps hold at first when there are event kinds: samples alone need far fewer."""


class Suite:
    """Profiles from start() to close(). Not thread safe, but for `cpu.wake_fd`."""

    def __init__(self, cpu: CpuProfiler, closing: ExitStack) -> None:
        self.cpu = cpu
        self._closing = closing
        self._groups: list[tuple[Group, EventProfiler]] = []
        self._missed: dict[EventProfiler, MissedRuns] = {}
        self._refusals: dict[str, str] = {}
        self._symbols: kernel.KernelSymbols | None = None

    @classmethod
    def start(
        cls,
        cpu: CpuSettings,
        events: EventSettings,
        is_wanted: Callable[[str], bool] = lambda _: True,
        groups: Sequence[Group] = GROUPS,
        now_ns: Callable[[], int] = time.monotonic_ns,
    ) -> "Suite":
        """Compile, load and attach. A group runs when any of its kinds is wanted; what cannot run stands in `refusals`.

        Raises KernelError when not even on-CPU profiles can be had.
        """
        check_rate(cpu.rate_hz)
        wanted = [group for group in groups if any(map(is_wanted, group.kinds))]
        specs = [group.spec() for group in wanted]
        if specs and cpu.stacks_entries is None:
            cpu = replace(cpu, stacks_entries=EVENT_STACKS, can_grow=True)
        program = Program.load(SPEC, cpu.header_directory, [EVENTS, *specs] if specs else ())
        with ExitStack() as closing:
            profiler = CpuProfiler.on(program, cpu, now_ns)
            closing.callback(profiler.close)
            suite = cls(profiler, closing)
            if specs:
                suite._symbols = symbols = kernel.KernelSymbols(cpu.header_directory)
                closing.callback(symbols.close)
                symbols.start()
                suite._start_groups(EventHost(program, events, now_ns, symbols), list(zip(wanted, specs, strict=True)))
            suite._closing = closing.pop_all()
        return suite

    @property
    def refusals(self) -> Mapping[str, str]:
        """Kinds that were wanted and do not run, and why."""
        return self._refusals

    @property
    def kinds(self) -> tuple[str, ...]:
        """What runs."""
        return (CPU_KIND, *(kind for group, _ in self._groups for kind in group.kinds))

    def limited(self) -> Mapping[str, Limit]:
        """Kinds that do not see everything: how much they see."""
        limits = {kind: profiler.limit() for group, profiler in self._groups for kind in group.kinds}
        return {kind: limit for kind, limit in limits.items() if not limit.is_whole}

    def drain(self) -> WindowDrain:
        """End the window of all kinds and take out what it holds. A group that fails is off from then on."""
        self._of_each(lambda profiler: profiler.before_drain())
        if self._symbols is not None:
            self._symbols.refresh()
        buffer = self.cpu.buffer
        drain = self._without_tracing(self.cpu.drain())
        window = ClosedWindow(buffer, drain.start_ns, drain.end_ns, drain.stacks)
        return WindowDrain(drain, [kind for kinds in self._of_each(lambda profiler: self._drained(profiler, window)) for kind in kinds])

    def tick(self) -> float | None:
        """Let breakers look at their rates, and cost be measured. Seconds until the next call at the latest; None: no matter when."""
        asked = (self.cpu.tick(), *self._of_each(lambda profiler: profiler.tick()))
        waits_s = [wait_s for wait_s in asked if wait_s is not None]
        return min(waits_s, default=None)

    def map_bytes(self) -> int:
        """Kernel memory of all maps."""
        return self.cpu.map_bytes() + sum(profiler.map_bytes() for _, profiler in self._groups)

    def close(self) -> None:
        """End profiling; the kernel frees programs and maps."""
        self._closing.close()

    def _without_tracing(self, drain: CpuDrain) -> CpuDrain:
        """Where several programs share a tracepoint, their caller stands between them and the code that they are about."""
        if self._symbols is None:
            return drain
        tracing = self._symbols.tracing
        return replace(drain, stacks=without_innermost(drain.stacks, tracing[:, 0], tracing[:, 1]))

    def _start_groups(self, host: EventHost, groups: Sequence[tuple[Group, kernel.ProgramSpec]]) -> None:
        refusals = host.program.refusals
        if EVENTS.source not in refusals:
            for walker, function in walkers_of(host.program, "on_event_unwind", "on_event_look").items():
                kernel.update(host.program.map("event_unwinders"), walker.to_bytes(4, "little"), function.to_bytes(4, "little"))
        for group, spec in groups:
            reason = refusals.get(EVENTS.source) or refusals.get(spec.source)
            if reason is None:
                try:
                    profiler = group.start(host)
                except (KernelError, OSError) as error:  # Whatever one group lacks here, the others start.
                    reason = str(error)
                else:
                    self.add(group, profiler, MissedRuns(partial(host.program.missed_runs, tuple(spec.functions))))
                    continue
            self._refuse(group, reason)

    def add(self, group: Group, profiler: EventProfiler, missed: MissedRuns | None = None) -> None:
        """Have a group that runs be part of every window, until it fails or the suite is closed."""
        self._groups.append((group, profiler))
        self._missed[profiler] = missed or MissedRuns()
        self._closing.callback(self._close_group, profiler)

    def _drained(self, profiler: EventProfiler, window: ClosedWindow) -> Sequence[EventDrain]:
        return self._missed[profiler].added(profiler.drain(window))

    def _of_each(self, ask: Callable[[EventProfiler], T]) -> list[T]:
        """What each group answers. One that cannot go on is closed: its kinds are missing from now on, which `refusals` tells."""
        answers = []
        for group, profiler in list(self._groups):
            try:
                answers.append(ask(profiler))
            except (KernelError, OSError) as error:
                self._refuse(group, str(error))
                self._close_group(profiler)
        return answers

    def _close_group(self, closing: EventProfiler) -> None:
        """Once."""
        left = [(group, profiler) for group, profiler in self._groups if profiler is not closing]
        if len(left) == len(self._groups):
            return
        self._groups = left
        try:
            closing.close()
        except (KernelError, OSError) as error:
            log.warning("kinds not closed reason=%s", error)  # The kernel lets go of what is left when we end.

    def _refuse(self, group: Group, reason: str) -> None:
        log.warning("kinds off kinds=%s reason=%s", ",".join(group.kinds), reason)
        self._refusals.update(dict.fromkeys(group.kinds, reason))

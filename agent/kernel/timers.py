# SPDX-License-Identifier: Apache-2.0
"""The timers of all CPUs, kept going while CPUs leave and come back."""

from collections.abc import Callable

from agent.kernel import bpf
from agent.kernel.perf_event import online_cpus, open_cpu_clock


class CpuTimers:
    """One perf event per online CPU, all behind one program."""

    def __init__(self, program: int, period_ns: int, now_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self._program = program
        self._period_ns = period_ns
        self._descriptors: dict[int, int] = {}

    def open_missing(self) -> dict[int, int]:
        """Start a timer on each online CPU that has none; the CPUs it was started on, and when (ns)."""
        opened = {}
        for cpu in online_cpus() - self._descriptors.keys():
            descriptor = open_cpu_clock(cpu, self._period_ns, self._program)
            if descriptor is not None:  # None: it left since we looked.
                self._descriptors[cpu] = descriptor
                opened[cpu] = self._now_ns()
        return opened

    def forget(self, cpu: int) -> None:
        """Give up the timer of a CPU: the event of one that went offline never ticks again, even when the CPU is back."""
        descriptor = self._descriptors.pop(cpu, None)
        if descriptor is not None:
            bpf.close(descriptor)

    def online(self) -> frozenset[int]:
        return online_cpus()

    def close(self) -> None:
        bpf.close(*self._descriptors.values())
        self._descriptors.clear()

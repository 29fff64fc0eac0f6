# SPDX-License-Identifier: Apache-2.0
"""Kernels on which something a BPF program may do is known to hang the host: what, why, and where it is fixed.

An entry bars only programs that do that thing. The on-CPU program reads user memory only while unwinding is switched on, which a
barred kernel keeps off (program.unwinding_denial): then it walks stacks by bpf_get_stack, whose user reads take no lock. Its perf
events are never disabled from inside the timer.
"""

from dataclasses import dataclass

from agent.errors import KernelError
from agent.kernel.headers import KernelVersion, kernel_version
from agent.kernel.spec import Hazard, ProgramSpec


@dataclass(frozen=True, slots=True)
class DeniedKernel:
    """A range of releases: `first` is in it, `fixed_in` no more."""

    hazard: Hazard
    first: KernelVersion
    fixed_in: KernelVersion
    effect: str
    cause: str
    fix: str
    source: str


_NOFAULT_CAUSE = "bpf_probe_read_user in a timer interrupt takes vmap_area_lock through the hardened usercopy check"
DENIED_KERNELS = (
    DeniedKernel(
        Hazard.READ_USER_IN_INTERRUPT,
        KernelVersion(5, 19, 0),
        KernelVersion(6, 1, 36),
        "locks up every CPU",
        _NOFAULT_CAUSE,
        "copy_from_user_nofault() does without it (commit d319f344561d of Linux 6.4, in 6.1.36; 5.19 and 6.0 ended without it)",
        "parca-dev/parca-agent#1675 (seen on 6.1.25), bugs.debian.org/1033398",
    ),
    DeniedKernel(
        Hazard.READ_USER_IN_INTERRUPT,
        KernelVersion(6, 2, 0),
        KernelVersion(6, 3, 10),
        "locks up every CPU",
        _NOFAULT_CAUSE,
        "copy_from_user_nofault() does without it (commit d319f344561d of Linux 6.4, in 6.3.10; 6.2 ended without it)",
        "parca-dev/parca-agent#1675, #2070",
    ),
    DeniedKernel(
        Hazard.DISABLE_EVENT_IN_TIMER,
        KernelVersion(6, 16, 0),
        KernelVersion(6, 17, 8),
        "hangs the host",
        "a cpu-clock event that is disabled from its own timer (PERF_EVENT_IOC_REFRESH) waits for itself (since 18dbcbfabfff of 6.17,"
        " which releases of 6.16 took over)",
        "the timer is cancelled without waiting for its own handler (commit eb3182ef0405 of Linux 6.18, in 6.17.8; 6.16 ended before)",
        "async-profiler/async-profiler#1578, #1599",
    ),
)


def denials(hazards: frozenset[Hazard], release: str) -> tuple[DeniedKernel, ...]:
    """The entries that bar a program with these hazards from this kernel."""
    running = _ordered(kernel_version(release))
    return tuple(
        entry for entry in DENIED_KERNELS if entry.hazard in hazards and _ordered(entry.first) <= running < _ordered(entry.fixed_in)
    )


def refuse_denied(spec: ProgramSpec, release: str) -> None:
    """Raises KernelError when the program must not run on this kernel."""
    for entry in denials(spec.hazards, release):
        raise KernelError(f"{spec.source} {entry.effect} on Linux {release}: {entry.cause} ({entry.source}); {remedy(entry)}")


def remedy(entry: DeniedKernel) -> str:
    """What to do about it."""
    return f"use Linux {'.'.join(str(part) for part in _ordered(entry.fixed_in))} or later, where {entry.fix}"


def _ordered(version: KernelVersion) -> tuple[int, int, int]:
    return version.version, version.patch_level, version.sub_level

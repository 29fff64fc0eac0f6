# SPDX-License-Identifier: Apache-2.0
"""The timer of on-CPU profiles: one software cpu-clock perf event per CPU, with a BPF program behind it.

Layout: struct perf_event_attr in include/uapi/linux/perf_event.h. The period is given in ns, not as a frequency, so that no tick
depends on what the kernel makes of a frequency.
"""

import errno
import fcntl
import os
import struct
from functools import cache
from pathlib import Path

from agent.errors import KernelError
from agent.kernel.refusal import KernelRefusal
from agent.kernel.system import perf_event_open

TYPE_SOFTWARE = 1
CONFIG_CPU_CLOCK = 0
FLAG_CLOSE_ON_EXEC = 8
ATTRIBUTE_BYTES = 128
IS_DISABLED = 1
SET_BPF = 0x40042408
"""PERF_EVENT_IOC_SET_BPF: _IOW('$', 8, __u32)."""
ENABLE = 0x2400
"""PERF_EVENT_IOC_ENABLE: _IO('$', 0)."""


def open_cpu_clock(cpu: int, period_ns: int, program: int) -> int | None:
    """Start ticking on a CPU; its descriptor, or None when the CPU is not online. The ticks end when it is closed."""
    descriptor = _open(cpu, period_ns)
    if descriptor is None:
        return None
    try:
        fcntl.ioctl(descriptor, SET_BPF, program)
        fcntl.ioctl(descriptor, ENABLE, 0)
    except OSError as error:
        os.close(descriptor)
        raise KernelError(f"put the BPF program behind the timer of CPU {cpu}: {error.strerror}") from error
    return descriptor


def open_idle_event() -> int:
    """An event that never ticks, to learn whether events may be opened; its descriptor."""
    for cpu in sorted(online_cpus()):
        descriptor = _open(cpu, 1_000_000_000)
        if descriptor is not None:
            return descriptor
    raise KernelError("no CPU is online")


def _open(cpu: int, period_ns: int) -> int | None:
    # type, size, config, sample_period, sample_type, read_format, flags
    attributes = struct.pack("<IIQQQQQ", TYPE_SOFTWARE, ATTRIBUTE_BYTES, CONFIG_CPU_CLOCK, period_ns, 0, 0, IS_DISABLED)
    try:
        return perf_event_open(attributes.ljust(ATTRIBUTE_BYTES, b"\0"), cpu, FLAG_CLOSE_ON_EXEC)
    except OSError as error:
        if error.errno == errno.ENODEV:
            return None
        raise _refusal(cpu, error) from error


def online_cpus(path: Path = Path("/sys/devices/system/cpu/online")) -> frozenset[int]:
    """CPUs that are online now."""
    try:
        return parse_cpu_list(path.read_text())
    except OSError as error:
        raise KernelError(f"cannot read {path}: {error.strerror}") from error


@cache
def possible_cpu_count(path: Path = Path("/sys/devices/system/cpu/possible")) -> int:
    """How many values a per-CPU map holds; settled when the kernel boots, and asked for all the time."""
    try:
        return max(parse_cpu_list(path.read_text())) + 1
    except OSError as error:
        raise KernelError(f"cannot read {path}: {error.strerror}") from error


def parse_cpu_list(text: str) -> frozenset[int]:
    """Read a list such as 0-3,7; see Documentation/admin-guide/cputopology.rst."""
    cpus: set[int] = set()
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        try:
            cpus.update(range(int(first), int(last or first) + 1))
        except ValueError as error:
            raise KernelError(f"{text!r} is no list of CPUs") from error
    return frozenset(cpus)


def _refusal(cpu: int, error: OSError) -> KernelError:
    if error.errno in (errno.EACCES, errno.EPERM):
        remedy = "run as root or with CAP_PERFMON, and allow it in the container's seccomp profile"
        return KernelRefusal(f"perf_event_open for CPU {cpu} is not permitted", remedy)
    if error.errno == errno.ENOSYS:
        return KernelRefusal("this kernel has no perf events", "boot one built with CONFIG_PERF_EVENTS=y")
    return KernelError(f"perf_event_open for CPU {cpu}: {error.strerror}")

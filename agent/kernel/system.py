# SPDX-License-Identifier: Apache-2.0
"""The two system calls that have no place in Python's library: bpf(2) and perf_event_open(2)."""

import ctypes
import os
import platform
from functools import cache

from agent.errors import KernelError

# System call numbers of x86-64; arch/x86/entry/syscalls/syscall_64.tbl.
SYS_PERF_EVENT_OPEN = 298
SYS_BPF = 321
SUPPORTED_MACHINE = "x86_64"


def bpf(command: int, attributes: "ctypes.Array[ctypes.c_char]") -> int:
    """bpf(2). Raises OSError; the kernel may write its answer into `attributes`."""
    return _checked(_library().syscall(SYS_BPF, ctypes.c_long(command), attributes, ctypes.c_long(len(attributes))))


def perf_event_open(attributes: bytes, cpu: int, flags: int) -> int:
    """perf_event_open(2) for all processes on one CPU. Raises OSError."""
    every_process, no_group = ctypes.c_long(-1), ctypes.c_long(-1)
    buffer = ctypes.create_string_buffer(attributes, len(attributes))
    return _checked(_library().syscall(SYS_PERF_EVENT_OPEN, buffer, every_process, ctypes.c_long(cpu), no_group, ctypes.c_long(flags)))


def require_supported_machine() -> None:
    """Raises KernelError where the numbers above do not hold."""
    if platform.machine() != SUPPORTED_MACHINE:
        raise KernelError(f"this machine is {platform.machine()}; profiles are taken on {SUPPORTED_MACHINE} only")


@cache
def _library() -> ctypes.CDLL:
    """The C library; ctypes keeps errno per thread."""
    library = ctypes.CDLL(None, use_errno=True)
    library.syscall.restype = ctypes.c_long
    return library


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return int(result)

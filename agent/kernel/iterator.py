# SPDX-License-Identifier: Apache-2.0
"""BPF programs that the kernel runs for each of its things of one kind: the elements of a map, the open files of all tasks.

bpf_iter, since Linux 5.8: a link joins a program to what it goes through, and a descriptor made of it runs the program when it is read.
"""

import ctypes
import os
import struct

from agent.errors import KernelError
from agent.kernel import bpf

ATTACH_TRACE_ITER = 28
"""enum bpf_attach_type."""
_READ_BYTES = 4096


class Iterator:
    """One program and what it goes through."""

    def __init__(self, program: int, map_descriptor: int | None = None) -> None:
        """`map_descriptor` is of the map whose elements it goes through, None for what needs none. Raises KernelError."""
        where = ctypes.create_string_buffer(struct.pack("<I", map_descriptor or 0), 4)
        iterated = (0, 0) if map_descriptor is None else (ctypes.addressof(where), len(where))
        try:
            self._link = bpf.link_create(program, ATTACH_TRACE_ITER, iterated)
        except OSError as error:
            raise KernelError(f"this kernel makes no link of a BPF iterator: {error.strerror}") from error

    def run(self) -> None:
        """Have the kernel go through all of them. Raises KernelError."""
        try:
            descriptor = bpf.iter_create(self._link)
            try:
                while self._reads_on(descriptor):
                    pass
            finally:
                os.close(descriptor)
        except OSError as error:
            raise KernelError(f"run a BPF iterator: {error.strerror}") from error

    @staticmethod
    def _reads_on(descriptor: int) -> bool:
        try:
            return bool(os.read(descriptor, _READ_BYTES))
        except BlockingIOError:
            return True  # The program answered 1: it wants to be called for the same thing again.

    def close(self) -> None:
        """Let go of the link."""
        os.close(self._link)

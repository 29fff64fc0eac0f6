# SPDX-License-Identifier: Apache-2.0
"""Reads a BPF ring buffer through its own memory.

    page 0       consumer position, ours to write        (mapped read-write)
    page 1       producer position                       (mapped read-only, with the data)
    pages 2…     data, mapped twice in a row, so that a record never wraps

A record is a 4 byte length, with a busy and a discard bit on top, 4 bytes of the kernel's, and the data rounded up to 8 bytes.
Source: kernel/bpf/ringbuf.c. The descriptor of the map itself can be polled: it is readable when there is something to read.
"""

import mmap
import struct

from agent.errors import KernelError

BUSY_BIT = 1 << 31
DISCARD_BIT = 1 << 30
HEADER_BYTES = 8


class RingReader:
    """Takes records out of one ring buffer, in order."""

    def __init__(self, descriptor: int, size_bytes: int) -> None:
        self.descriptor = descriptor
        self._mask = size_bytes - 1
        try:
            self._consumer = mmap.mmap(descriptor, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
            self._producer = mmap.mmap(descriptor, mmap.PAGESIZE + 2 * size_bytes, prot=mmap.PROT_READ, offset=mmap.PAGESIZE)
        except OSError as error:
            raise KernelError(f"map the ring buffer: {error.strerror}") from error

    def read(self, limit: int) -> list[bytes]:
        """Up to `limit` records; never waits. A record still being written ends the read."""
        records: list[bytes] = []
        at = self._position(self._consumer)
        end = self._position(self._producer)
        while at < end and len(records) < limit:
            place = mmap.PAGESIZE + (at & self._mask)
            length = struct.unpack_from("<I", self._producer, place)[0]
            if length & BUSY_BIT:
                break
            size = length & ~DISCARD_BIT
            if not length & DISCARD_BIT:
                records.append(self._producer[place + HEADER_BYTES : place + HEADER_BYTES + size])
            at += (size + HEADER_BYTES + 7) // 8 * 8
        struct.pack_into("Q", self._consumer, 0, at)  # native: one store of 8 bytes
        return records

    def close(self) -> None:
        self._consumer.close()
        self._producer.close()

    @staticmethod
    def _position(page: mmap.mmap) -> int:
        return int(struct.unpack_from("Q", page, 0)[0])

# SPDX-License-Identifier: Apache-2.0
"""Records are read in order; busy ones end the read, discarded ones are passed over. The kernel's side is played by a file."""

import mmap
import os
import struct
from collections.abc import Iterator

import pytest

from agent.errors import KernelError
from agent.kernel.ring import BUSY_BIT, DISCARD_BIT, RingReader

SIZE_BYTES = 4096


class FakeRing:
    """Writes records as kernel/bpf/ringbuf.c does; the data pages are not mapped twice, so records must not wrap."""

    def __init__(self) -> None:
        self.descriptor = os.memfd_create("ring")
        os.truncate(self.descriptor, mmap.PAGESIZE * 2 + 2 * SIZE_BYTES)
        self._produced = 0

    def write(self, data: bytes, bits: int = 0) -> None:
        place = mmap.PAGESIZE * 2 + self._produced % SIZE_BYTES
        os.pwrite(self.descriptor, struct.pack("<II", len(data) | bits, 0) + data, place)
        self._produced += (len(data) + 8 + 7) // 8 * 8
        os.pwrite(self.descriptor, struct.pack("<Q", self._produced), mmap.PAGESIZE)

    def consumed(self) -> int:
        return int(struct.unpack("<Q", os.pread(self.descriptor, 8, 0))[0])


@pytest.fixture
def ring() -> Iterator[FakeRing]:
    fake = FakeRing()
    yield fake
    os.close(fake.descriptor)


def test_records_come_in_order_and_once(ring: FakeRing) -> None:
    reader = RingReader(ring.descriptor, SIZE_BYTES)
    ring.write(b"first record")
    ring.write(b"second")
    assert reader.read(10) == [b"first record", b"second"]
    assert reader.read(10) == []
    assert ring.consumed() == 24 + 16
    reader.close()


def test_read_ends_at_the_limit_and_goes_on_there(ring: FakeRing) -> None:
    reader = RingReader(ring.descriptor, SIZE_BYTES)
    for number in range(7):
        ring.write(bytes([number]))
    assert reader.read(3) == [b"\0", b"\1", b"\2"]
    assert len(reader.read(10)) == 4
    reader.close()


def test_busy_record_ends_the_read(ring: FakeRing) -> None:
    reader = RingReader(ring.descriptor, SIZE_BYTES)
    ring.write(b"done")
    ring.write(b"busy", BUSY_BIT)
    ring.write(b"later")
    assert reader.read(10) == [b"done"]
    reader.close()


def test_discarded_record_is_passed_over(ring: FakeRing) -> None:
    reader = RingReader(ring.descriptor, SIZE_BYTES)
    ring.write(b"gone", DISCARD_BIT)
    ring.write(b"kept")
    assert reader.read(10) == [b"kept"]
    reader.close()


def test_descriptor_that_cannot_be_mapped_is_an_error() -> None:
    read_end, write_end = os.pipe()
    with pytest.raises(KernelError, match="map the ring buffer"):
        RingReader(read_end, SIZE_BYTES)
    os.close(read_end)
    os.close(write_end)

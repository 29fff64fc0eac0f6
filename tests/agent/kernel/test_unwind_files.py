# SPDX-License-Identifier: Apache-2.0
"""What the kernel is told of files: the table of each, as long as it is there and no other binary looks like it."""

import errno
import os
import struct

import pytest

from agent.errors import KernelError
from agent.kernel import bpf
from agent.kernel.unwind_files import FileWalk, UnwindFiles
from agent.kernel.unwind_maps import WalkKind
from agent.records.binary import FileStamp, Segment
from tests.support.drains import elf

APP, OTHER = elf("app").id, elf("other").id
CODE = Segment(0x1234, 0x401234, 0x7000, 0x7000, 5)
DATA = Segment(0x9000, 0x409000, 0x100, 0x100, 6)
WALK = FileWalk(7, 0x1000, 23, WalkKind.TABLE)
FILE = FileStamp(4711, 50_000, 1_700_000_000_123_456_789)


class FakeMap:
    """A hash map with so much room."""

    def __init__(self, room: int = 100) -> None:
        self.entries: dict[bytes, bytes] = {}
        self.refusal = errno.E2BIG
        self._room = room

    def update(self, _descriptor: int, key: bytes, value: bytes) -> None:
        if key not in self.entries and len(self.entries) >= self._room:
            raise OSError(self.refusal, os.strerror(self.refusal))
        self.entries[key] = value

    def delete(self, _descriptor: int, key: bytes) -> None:
        self.entries.pop(key, None)


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> FakeMap:
    fake = FakeMap()
    monkeypatch.setattr(bpf, "update", fake.update)
    monkeypatch.setattr(bpf, "delete", fake.delete)
    return fake


def test_file_is_told_with_its_segments_of_code(kernel: FakeMap) -> None:
    UnwindFiles(3).set(APP, [FILE], [CODE, DATA], WALK)
    # inode, size, seconds and nanoseconds of its ctime, padding
    key = struct.pack("<QQQII", 4711, 50_000, 1_700_000_000, 123_456_789, 0)
    # first page, low page, pages, kind; first offset with code, bytes of it, offset - address; no second segment
    value = struct.pack("<IIII6Q", 7, 0x1000, 23, 1, 0x1000, 0x7234, (0x1234 - 0x401234) % (1 << 64), 0, 0, 0)
    assert kernel.entries == {key: value}


def test_what_is_said_anew_or_taken_back_leaves_nothing_behind(kernel: FakeMap) -> None:
    files = UnwindFiles(3)
    copy = FILE._replace(inode=23)
    files.set(APP, [FILE, copy], [CODE], WALK)
    assert len(kernel.entries) == 2
    files.set(APP, [copy], [CODE], FileWalk(0, 0, 0, WalkKind.FRAME_POINTERS))
    assert [value[:16] for value in kernel.entries.values()] == [struct.pack("<IIII", 0, 0, 0, 2)]
    files.remove(APP)
    files.remove(APP)
    assert kernel.entries == {}


def test_file_that_is_seen_on_several_devices_is_told_once(kernel: FakeMap) -> None:
    """As a layer that containers share: alike in all but the device, which is no part of a stamp."""
    files = UnwindFiles(3)
    files.set(APP, [FILE, FILE, FILE], [CODE], WALK)
    assert len(kernel.entries) == 1
    files.set(APP, [FILE, FILE, FILE, FILE], [CODE], WALK)
    files.remove(APP)
    assert kernel.entries == {}


def test_files_of_two_binaries_that_look_alike_are_not_told(kernel: FakeMap) -> None:
    files = UnwindFiles(3)
    files.set(APP, [FILE], [CODE], WALK)
    files.set(OTHER, [FILE], [CODE], WALK)
    assert kernel.entries == {}
    files.remove(OTHER)
    assert len(kernel.entries) == 1


@pytest.mark.parametrize("segments", [[DATA], [CODE, CODE, CODE], []])
def test_file_with_no_code_or_too_many_pieces_of_it_is_not_told(kernel: FakeMap, segments: list[Segment]) -> None:
    UnwindFiles(3).set(APP, [FILE], segments, WALK)
    assert kernel.entries == {}


def test_no_room_is_no_error_and_anything_else_is(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeMap(room=0)
    monkeypatch.setattr(bpf, "update", fake.update)
    monkeypatch.setattr(bpf, "delete", fake.delete)
    files = UnwindFiles(3)
    files.set(APP, [FILE], [CODE], WALK)
    fake.refusal = errno.EPERM
    with pytest.raises(KernelError):
        files.set(OTHER, [FILE._replace(inode=23)], [CODE], WALK)

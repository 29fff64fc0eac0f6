# SPDX-License-Identifier: Apache-2.0
"""Tests of finding .eh_frame in ELF files."""

import os
import struct
import sys
from pathlib import Path

import pytest

from agent.records.unwind import TableMiss
from agent.unwind.eh_frame import MAX_EH_FRAME_BYTES, DecodeRefused, EhFrame, find_eh_frame
from tests.support.eh_frames import FRAME_ADDRESS, TEXT_END, TEXT_START, program_file, section
from tests.support.elf_files import EXECUTE, PT_LOAD, READ, Part, elf

ENTRIES = section((0x1000, 64, b"\x41\x0e\x10"))
PROGRAM_3 = 64 + 2 * 56  # the third program header, PT_GNU_EH_FRAME


def find(raw: bytes) -> EhFrame:
    return find_eh_frame(lambda offset, size: raw[offset : offset + size])


def miss(raw: bytes) -> TableMiss:
    with pytest.raises(DecodeRefused) as refused:
        find(raw)
    return refused.value.miss


def patched(offset: int, layout: str, value: int) -> bytes:
    raw = bytearray(program_file(ENTRIES))
    struct.pack_into(layout, raw, offset, value)
    return bytes(raw)


def test_a_file_without_sections_is_found_by_its_program_header() -> None:
    found = find(program_file(ENTRIES))
    assert (found.address, found.is_exact, found.text) == (FRAME_ADDRESS, False, ((TEXT_START, TEXT_END),))
    assert found.data == ENTRIES


def test_section_and_program_header_of_this_interpreter_agree() -> None:
    raw = Path(os.path.realpath(sys.executable)).read_bytes()
    found = find(raw)
    assert found.is_exact
    stripped = bytearray(raw)
    struct.pack_into("<Q", stripped, 0x28, 0)  # e_shoff
    by_header = find(bytes(stripped))
    assert (by_header.address, by_header.is_exact) == (found.address, False)
    assert by_header.data.startswith(found.data)


def test_where_section_and_program_header_differ_the_one_that_is_loaded_holds() -> None:
    raw = bytearray(Path(os.path.realpath(sys.executable)).read_bytes())
    address = find(bytes(raw)).address
    sections_at = struct.unpack_from("<Q", raw, 0x28)[0]
    count = struct.unpack_from("<H", raw, 0x3C)[0]
    for at in range(sections_at, sections_at + 64 * count, 64):
        if struct.unpack_from("<Q", raw, at + 16)[0] == address:
            struct.pack_into("<Q", raw, at + 16, address + 64)  # sh_addr
    found = find(bytes(raw))
    assert (found.address, found.is_exact) == (address, False)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"", TableMiss.NOT_SUPPORTED),
        (b"#!/bin/sh\n" * 10, TableMiss.NOT_SUPPORTED),
        (patched(0x12, "<H", 183), TableMiss.NOT_SUPPORTED),  # e_machine: AArch64
        (patched(0x10, "<H", 1), TableMiss.NOT_SUPPORTED),  # e_type: an object file
        (patched(0x36, "<H", 57), TableMiss.MALFORMED),  # e_phentsize
        (patched(0x38, "<H", 5000), TableMiss.MALFORMED),  # e_phnum
        (patched(0x20, "<Q", 1 << 63), TableMiss.MALFORMED),  # e_phoff
        (patched(64 + 16, "<Q", 1 << 63), TableMiss.MALFORMED),  # p_vaddr
        (patched(64 + 32, "<Q", 1 << 62), TableMiss.MALFORMED),  # p_filesz
        (patched(PROGRAM_3 + 16, "<Q", 0x7000_0000), TableMiss.MALFORMED),  # points behind the segments
        (patched(PROGRAM_3 + 8, "<Q", 1 << 40), TableMiss.NO_RULES),  # its header lies outside the file
        (elf(Part(PT_LOAD, READ | EXECUTE, b"\xc3" * 64)), TableMiss.NO_RULES),
    ],
)
def test_a_file_without_usable_rules_says_why(raw: bytes, expected: TableMiss) -> None:
    assert miss(raw) == expected


def test_never_more_than_the_limit_is_read() -> None:
    asked = []

    def read(offset: int, size: int) -> bytes:
        asked.append(size)
        return raw[offset : offset + size]

    raw = patched(64 + 56 + 32, "<Q", 1 << 40)  # the segment with .eh_frame claims a terabyte
    assert find_eh_frame(read).data == ENTRIES
    assert max(asked) == MAX_EH_FRAME_BYTES


def test_a_header_of_another_version_points_nowhere() -> None:
    raw = program_file(ENTRIES)
    at = raw.index(b"\1\x1b\xff\xff")
    assert miss(raw[:at] + b"\2" + raw[at + 1 :]) == TableMiss.NO_RULES

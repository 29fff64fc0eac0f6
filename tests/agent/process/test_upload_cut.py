# SPDX-License-Identifier: Apache-2.0
"""Tests of the cutting itself, in this process; test_cutter.py tests the jail."""

import os
import random
import struct
from pathlib import Path

import pytest

from agent.process.upload_cut import CutExit, cut
from tests.support.elf_files import EXECUTE, PT_LOAD, READ, Part, elf, elf_with_sections

PROGBITS, SYMTAB, STRTAB, NOBITS = 1, 2, 3, 8
ALLOC, EXECUTABLE = 2, 4
SECTIONS = [
    (PROGBITS, ALLOC | EXECUTABLE, b"\xc3" * 4096),  # .text
    (PROGBITS, ALLOC, b"frames"),  # .eh_frame
    (SYMTAB, 0, b"symbols!"),
    (STRTAB, 0, b"\0names\0"),
    (PROGBITS, EXECUTABLE, b"not loaded"),
]


def cut_bytes(tmp_path: Path, raw: bytes) -> tuple[CutExit, bytes]:
    (tmp_path / "in").write_bytes(raw)
    source = os.open(tmp_path / "in", os.O_RDONLY)
    target = os.open(tmp_path / "out", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    try:
        return cut(source, target), (tmp_path / "out").read_bytes()
    finally:
        os.close(source)
        os.close(target)


def sections(raw: bytes) -> list[tuple[int, bytes]]:
    """Type and bytes of each section, read back by hand."""
    table_at, count = struct.unpack_from("<Q", raw, 0x28)[0], struct.unpack_from("<H", raw, 0x3C)[0]
    found = []
    for index in range(1, count):
        at = table_at + 64 * index
        kind, offset, size = struct.unpack_from("<I", raw, at + 4)[0], *struct.unpack_from("<QQ", raw, at + 0x18)
        found.append((kind, b"" if kind == NOBITS else raw[offset : offset + size]))
    return found


def test_loaded_code_leaves_and_all_else_stays(tmp_path: Path) -> None:
    status, raw = cut_bytes(tmp_path, elf_with_sections(SECTIONS))
    assert status is CutExit.DONE
    assert sections(raw) == [(NOBITS, b""), (PROGBITS, b"frames"), (SYMTAB, b"symbols!"), (STRTAB, b"\0names\0"), (PROGBITS, b"not loaded")]
    assert b"\xc3" * 8 not in raw
    assert len(raw) < 600


def test_program_headers_stay_as_they_were(tmp_path: Path) -> None:
    with_programs = elf(Part(PT_LOAD, READ | EXECUTE, b"\xc3" * 40, vaddr=0x1000))
    table_at = len(with_programs)
    raw = bytearray(with_programs + bytes(64))  # an empty section 0
    struct.pack_into("<Q", raw, 0x28, table_at)
    struct.pack_into("<H", raw, 0x3C, 1)
    status, cut_raw = cut_bytes(tmp_path, bytes(raw))
    assert status is CutExit.DONE
    assert cut_raw[64 : 64 + 56] == with_programs[64 : 64 + 56]


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"", CutExit.NO_ELF),
        (b"\x7fELF\x01" + bytes(100), CutExit.NO_ELF),  # 32 bit
        (elf(Part(PT_LOAD, READ, b"")), CutExit.NO_SECTIONS),
        (elf_with_sections(SECTIONS)[:-1], CutExit.MALFORMED),  # table cut
        (elf_with_sections(SECTIONS)[:70], CutExit.MALFORMED),
    ],
)
def test_other_files_are_refused(tmp_path: Path, raw: bytes, status: CutExit) -> None:
    assert cut_bytes(tmp_path, raw)[0] is status


def test_sections_that_share_their_bytes_do_not_multiply_them(tmp_path: Path) -> None:
    raw = bytearray(elf_with_sections([(STRTAB, 0, b"x" * 4096)] * 7))
    table_at = struct.unpack_from("<Q", raw, 0x28)[0]
    for index in range(1, 8):
        struct.pack_into("<QQ", raw, table_at + 64 * index + 0x18, 0, len(raw))  # each claims the whole file
    assert cut_bytes(tmp_path, bytes(raw))[0] is CutExit.MALFORMED


def test_a_giant_section_number_is_refused(tmp_path: Path) -> None:
    raw = bytearray(elf_with_sections(SECTIONS))
    struct.pack_into("<H", raw, 0x3C, 0)  # the number stands in section 0
    struct.pack_into("<Q", raw, struct.unpack_from("<Q", raw, 0x28)[0] + 0x20, 1 << 62)
    assert cut_bytes(tmp_path, bytes(raw))[0] is CutExit.MALFORMED


def test_mutated_files_end_with_a_status(tmp_path: Path) -> None:
    source = random.Random(23)
    whole = elf_with_sections([(kind, flags, data[:100]) for kind, flags, data in SECTIONS])
    for _ in range(1000):
        raw = bytearray(whole)
        for _ in range(source.randrange(1, 5)):
            at = source.choice((source.randrange(64), source.randrange(len(raw))))
            raw[at : at + 4] = source.choice((b"\xff\xff\xff\xff", b"\0\0\0\0", source.randbytes(4)))
        status, cut_raw = cut_bytes(tmp_path, bytes(raw))
        assert status in CutExit
        assert len(cut_raw) < 1 << 20

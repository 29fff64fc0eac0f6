# SPDX-License-Identifier: Apache-2.0
"""Tests of the reader of ELF identities; the hostile files are most of them."""

import hashlib
import random
import struct

import pytest

from agent.process.elf_header import MAX_READ_BYTES, ElfIdentity, Read, read_identity
from agent.records.binary import Segment
from emberwatch.v1 import batch_pb2 as pb
from tests.support.elf_files import EXECUTE, PT_LOAD, PT_NOTE, READ, Part, elf, gnu_build_id, note

BUILD_ID = bytes(range(1, 21))


def identify(raw: bytes, size_bytes: int | None = None) -> ElfIdentity:
    return read_identity(_reader(raw), len(raw) if size_bytes is None else size_bytes)


def _reader(raw: bytes) -> Read:
    def read(offset: int, size: int) -> bytes:
        assert 0 <= size <= MAX_READ_BYTES
        assert 0 <= offset < 1 << 63
        return raw[offset : offset + size]

    return read


def build_id(raw: bytes) -> tuple[pb.BuildIdKind, bytes]:
    found = identify(raw).id
    return found.build_id_kind, found.build_id


def test_identity_of_a_small_file() -> None:
    code = b"\xc3" * 40
    raw = elf(
        Part(PT_NOTE, READ, gnu_build_id(BUILD_ID), alignment=4),
        Part(PT_LOAD, READ | EXECUTE, code, vaddr=0x401000),
    )
    found = identify(raw)
    assert found.id.build_id_kind == pb.BUILD_ID_KIND_GNU
    assert found.id.build_id == BUILD_ID
    # header 64, two program headers of 56, the note 36 bytes and 4 of padding: code is at 216
    assert found.segments == (Segment(216, 0x401000, 40, 40, READ | EXECUTE),)
    table = raw[64 : 64 + 2 * 56]
    assert found.id.content_hash == hashlib.blake2b(table + struct.pack("<Q", len(raw)) + code, digest_size=16).digest()


def test_a_note_is_judged_by_owner_and_type() -> None:
    stray = note(b"CORE\0", 3, b"\xaa" * 20) + note(b"FDO\0", 3, b"\xbb" * 20) + note(b"GNU\0", 1, b"\xcc" * 16)
    assert build_id(elf(Part(PT_NOTE, READ, stray + gnu_build_id(BUILD_ID)))) == (pb.BUILD_ID_KIND_GNU, BUILD_ID)
    assert build_id(elf(Part(PT_NOTE, READ, stray))) == (pb.BUILD_ID_KIND_NONE, b"")


def test_go_has_its_own_note_and_gnu_comes_first() -> None:
    go = note(b"Go\0\0", 4, b"abc/def/ghi")
    assert build_id(elf(Part(PT_NOTE, READ, go))) == (pb.BUILD_ID_KIND_GO, b"abc/def/ghi")
    assert build_id(elf(Part(PT_NOTE, READ, go), Part(PT_NOTE, READ, gnu_build_id(BUILD_ID)))) == (pb.BUILD_ID_KIND_GNU, BUILD_ID)


def test_a_long_go_id_is_known_by_its_content() -> None:
    parts = [bytes([letter]) * 20 for letter in b"abcd"]
    assert build_id(elf(Part(PT_NOTE, READ, note(b"Go\0\0", 4, b"/".join(parts))))) == (pb.BUILD_ID_KIND_GO, b"d" * 20)


@pytest.mark.parametrize(("size", "is_taken"), [(3, False), (4, True), (64, True), (65, False)])
def test_a_build_id_has_4_to_64_bytes(size: int, is_taken: bool) -> None:
    assert build_id(elf(Part(PT_NOTE, READ, gnu_build_id(b"\x07" * size))))[0] == (
        pb.BUILD_ID_KIND_GNU if is_taken else pb.BUILD_ID_KIND_NONE
    )


def test_a_zero_build_id_is_none() -> None:
    assert build_id(elf(Part(PT_NOTE, READ, gnu_build_id(bytes(20))))) == (pb.BUILD_ID_KIND_NONE, b"")


@pytest.mark.parametrize("alignment", [4, 8])
@pytest.mark.parametrize("padding", [4, 8])
def test_build_id_behind_a_property_note_is_found_however_it_is_padded(alignment: int, padding: int) -> None:
    first = note(b"GNU\0", 5, b"\x01" * 20, padding)
    raw = elf(Part(PT_NOTE, READ, first + gnu_build_id(BUILD_ID), alignment=alignment))
    assert build_id(raw) == (pb.BUILD_ID_KIND_GNU, BUILD_ID)


def test_two_programs_with_one_build_id_are_told_apart() -> None:
    same = Part(PT_NOTE, READ, gnu_build_id(bytes.fromhex("1234567890abcdef")))
    first, second = (identify(elf(same, Part(PT_LOAD, EXECUTE, code))).id for code in (b"\x90\xc3", b"\x91\xc3"))
    assert first.build_id == second.build_id
    assert first.content_hash != second.content_hash


def test_a_file_that_is_no_elf_file_has_a_content_hash_only() -> None:
    found = identify(b"#!/bin/sh\n")
    assert found.segments == ()
    assert found.id.build_id_kind == pb.BUILD_ID_KIND_NONE
    assert found.id != identify(b"#!/bin/ls\n").id


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\x7fELF",
        elf(Part(PT_NOTE, READ, struct.pack("<III", 0xFFFFFFF0, 20, 3) + b"GNU\0" + BUILD_ID)),  # namesz beyond the file
        elf(Part(PT_NOTE, READ, struct.pack("<III", 4, 0xFFFFFFFF, 3) + b"GNU\0" + BUILD_ID)),  # descsz beyond the file
        elf(Part(PT_NOTE, READ, gnu_build_id(BUILD_ID), claimed_offset=1 << 40)),  # notes behind the end
        elf(Part(PT_NOTE, READ, gnu_build_id(BUILD_ID), claimed_offset=(1 << 64) - 1)),
        elf(Part(PT_NOTE, READ, gnu_build_id(BUILD_ID)), count=0xFFFF),
        elf(Part(PT_NOTE, READ, b"")),
    ],
)
def test_odd_files_have_no_build_id(raw: bytes) -> None:
    assert build_id(raw) == (pb.BUILD_ID_KIND_NONE, b"")


def test_a_sparse_giant_costs_one_mebibyte() -> None:
    read_bytes = 0

    def read(offset: int, size: int) -> bytes:
        nonlocal read_bytes
        read_bytes += size
        return (header[offset:] + bytes(size))[:size] if offset < len(header) else bytes(size)

    giant = 10 << 40
    header = elf(Part(PT_LOAD, EXECUTE, b"", claimed_bytes=giant))
    read_identity(read, giant)
    assert read_bytes <= (1 << 20) + 2 * MAX_READ_BYTES


def test_ten_thousand_mutated_headers_raise_nothing() -> None:
    source = random.Random(7)
    whole = elf(
        Part(PT_NOTE, READ, note(b"GNU\0", 5, b"\x01" * 16, 8) + gnu_build_id(BUILD_ID), alignment=8),
        Part(PT_LOAD, READ | EXECUTE, b"\xc3" * 64, vaddr=0x1000),
    )
    interesting = (b"\xff\xff\xff\xff", b"\0\0\0\0", b"\xf0\xff\xff\xff", b"\x80", b"\xff\xff\xff\xff\xff\xff\xff\x7f")
    for _ in range(10_000):
        mutated = bytearray(whole[: source.choice((len(whole), source.randrange(len(whole))))])
        for _ in range(source.randrange(1, 5)):
            at = source.randrange(max(len(mutated), 1))
            mutated[at : at + 8] = source.choice((*interesting, source.randbytes(source.randrange(1, 8))))
        found = identify(bytes(mutated)).id
        assert len(found.build_id) <= 64
        assert len(found.content_hash) == 16

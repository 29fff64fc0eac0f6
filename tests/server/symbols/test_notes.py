# SPDX-License-Identifier: Apache-2.0
"""Build ids out of notes, whole and broken."""

import struct

from server.symbols.notes import BuildIds, parse_build_ids
from tests.server.symbols.programs import note

ID = bytes(range(1, 21))


def test_build_id_after_a_property_note_padded_to_eight() -> None:
    data = note(b"GNU\0", 5, b"\2\0\0\xc0" + bytes(12), padding=8) + note(b"GNU\0", 3, ID, padding=8)
    assert parse_build_ids(data, 8, "<") == BuildIds(gnu=ID)


def test_note_counts_by_owner_and_type() -> None:
    core = note(b"CORE", 3, ID)  # NT_PRPSINFO
    fdo = note(b"FDO\0", 3, ID)
    long_owner = note(b"GNU\0GNU\0GNU\0GNU\0", 3, ID)
    assert parse_build_ids(core + fdo + long_owner, 4, "<") == BuildIds()
    assert parse_build_ids(core + note(b"GNU\0", 3, ID), 4, "<") == BuildIds(gnu=ID)


def test_go_keeps_the_content_part_of_a_long_id() -> None:
    long_id = b"a" * 20 + b"/" + b"b" * 20 + b"/" + b"c" * 20 + b"/" + b"content-part-of-20-x"
    assert parse_build_ids(note(b"Go\0\0", 4, long_id), 4, "<").go == b"content-part-of-20-x"
    assert parse_build_ids(note(b"Go\0\0", 4, b"short/id"), 4, "<").go == b"short/id"


def test_ids_of_zeros_and_of_odd_lengths_are_none() -> None:
    for build_id in (bytes(20), b"", b"abc", b"x" * 65):
        assert parse_build_ids(note(b"GNU\0", 3, build_id), 4, "<") == BuildIds(), len(build_id)
    for build_id in (b"abcd", b"x" * 64):
        assert parse_build_ids(note(b"GNU\0", 3, build_id), 4, "<").gnu == build_id


def test_size_of_four_gigabytes_ends_the_list() -> None:
    hostile = struct.pack("<III", 4, 0xFFFF_FFFF, 3) + b"GNU\0" + ID  # n_descsz = 0xffffffff
    assert parse_build_ids(hostile, 4, "<") == BuildIds()
    assert parse_build_ids(struct.pack("<III", 0xFFFF_FFFF, 20, 3) + b"GNU\0" + ID, 4, "<") == BuildIds()


def test_cut_notes_never_raise() -> None:
    whole = note(b"GNU\0", 3, ID)
    for length in range(len(whole)):
        assert parse_build_ids(whole[:length], 4, "<") == BuildIds()


def test_big_endian() -> None:
    data = struct.pack(">III", 4, 20, 3) + b"GNU\0" + ID
    assert parse_build_ids(data, 4, ">").gnu == ID

# SPDX-License-Identifier: Apache-2.0
"""The table file: found again as written, refused when damaged anywhere."""

import hashlib
import os
import struct

import numpy as np
import pytest

from emberwatch.v1 import batch_pb2 as pb
from server.symbols.build_result import Quality
from server.symbols.identity import BinaryKey
from server.symbols.inlines import Inlines
from server.symbols.symtab import Ranges, choose
from server.symbols.table import HEADER_BYTES, Table, TableError, TableFacts, Traits, open_table, table_bytes
from tests.server.symbols.test_symtab import raw

KEY = BinaryKey(pb.BINARY_KIND_ELF, pb.BUILD_ID_KIND_GNU, bytes(range(1, 21)), b"\x07" * 16)
FACTS = TableFacts(KEY, Quality.FULL, Traits.GO)


def file_of(facts: TableFacts = FACTS, inlines: Inlines | None = None) -> bytes:
    rows = [(0x1000, 7, 0, "f"), (0x1010, 0, 2, "label"), (0x1100, 23, 0, "größe")]
    return table_bytes(facts, choose(raw(*rows), Ranges(np.array([0x1000], np.uint64), np.array([0x2000], np.uint64))), inlines)


def opened(data: bytes, key: BinaryKey = KEY) -> Table:
    descriptor = os.memfd_create("table")
    try:
        os.write(descriptor, data)
        return open_table(descriptor, key)
    finally:
        os.close(descriptor)


def with_checksum(data: bytes) -> bytes:
    """A damaged file whose checksum is right: what a child that was taken over could write."""
    checksum = hashlib.blake2b(data[HEADER_BYTES:], digest_size=16).digest()
    place = data.index(hashlib.blake2b(file_of()[HEADER_BYTES:], digest_size=16).digest())
    return data[:place] + checksum + data[place + 16 :]


def test_a_table_is_read_as_it_was_written() -> None:
    table = opened(file_of())
    assert table.facts == FACTS and len(table) == 3
    addresses = np.array([0xFFF, 0x1000, 0x1006, 0x1007, 0x1010, 0x10FF, 0x1100, 0x1116, 0x1117, 2**64 - 1], np.uint64)
    found = table.find(addresses)
    assert found.tolist() == [-1, 0, 0, -1, 1, 1, 2, 2, -1, -1]
    assert [name.decode() for name in table.raw_names(np.array([0, 1, 2]))] == ["f", "label", "größe"]
    assert table.is_inexact(np.arange(3)).tolist() == [False, True, False]


def test_an_empty_table_finds_nothing() -> None:
    none = np.zeros(0, np.uint64)
    table = opened(table_bytes(FACTS, choose(raw(), Ranges(none, none))))
    assert table.find(np.array([0, 7], np.uint64)).tolist() == [-1, -1]


def test_a_cut_table_is_refused_at_every_length() -> None:
    data = file_of()
    for length in range(len(data)):
        with pytest.raises(TableError):
            opened(data[:length])


def test_a_flipped_bit_is_found_in_every_byte_that_counts() -> None:
    data = bytearray(file_of())
    for place in range(len(data)):
        data[place] ^= 0x10
        try:
            table = opened(bytes(data))
        except TableError:
            pass
        else:
            assert place < HEADER_BYTES, f"byte {place} of the body"
            assert table.facts != FACTS or not any(file_of()[place : place + 1]), f"byte {place} of the header"
        data[place] ^= 0x10


def test_a_table_of_another_binary_is_refused() -> None:
    other = BinaryKey(KEY.kind, KEY.build_id_kind, KEY.build_id, b"\x08" * 16)
    with pytest.raises(TableError, match="another binary"):
        opened(file_of(), other)


@pytest.mark.parametrize(("section", "field"), [(s, f) for s in range(5) for f in (8, 16)])
@pytest.mark.parametrize("value", [2**63, 2**64 - 8, 8, 1, 0])
def test_sections_that_lie_are_refused_even_with_a_right_checksum(section: int, field: int, value: int) -> None:
    """`field` 8 is the offset, 16 the size of an entry. Whatever is accepted can be searched without harm."""
    data = bytearray(file_of())
    struct.pack_into("<Q", data, HEADER_BYTES + section * 24 + field, value)
    try:
        table = opened(with_checksum(bytes(data)))
    except TableError:
        return
    found = table.find(np.array([0x1000, 0x1100], np.uint64))
    table.raw_names(found[found >= 0])


def test_numbers_of_names_that_lie_are_refused() -> None:
    data = file_of()
    _, _, offset, size = struct.unpack_from("<IIQQ", data, HEADER_BYTES + 3 * 24)  # NAME_BOUNDS
    for index in range(size // 8):
        hostile = bytearray(data)
        struct.pack_into("<Q", hostile, offset + index * 8, 2**40)
        with pytest.raises(TableError):
            opened(with_checksum(bytes(hostile)))

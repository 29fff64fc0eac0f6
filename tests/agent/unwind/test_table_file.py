# SPDX-License-Identifier: Apache-2.0
"""Tests of packed tables."""

import struct

import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from agent.records.binary import BinaryId
from agent.records.unwind import RuleKind, TableMiss, UnwindTable, rule
from agent.unwind import table_file
from agent.unwind.table_file import TableError, identity_digest, pack_miss, pack_table, unpack_table
from emberwatch.v1 import batch_pb2 as pb

DIGEST = bytes(range(16))
SP_8, SP_16 = rule(RuleKind.SP, 1), rule(RuleKind.SP, 2, 2)
TABLE = UnwindTable(np.array([0x1000, 0x1001, 0x1040], np.uint64), np.array([SP_8, SP_16, 0], np.uint32))


def packed(first: int, rules: list[int], distances: list[int], index: list[int]) -> bytes:
    """A table with a right checksum, whatever it says."""
    raw = struct.pack("<Q", first) + np.array(rules, "<u4").tobytes()
    raw += (
        np.array(distances, "<u4").view(np.uint8).reshape(-1, 4).T.tobytes()
        + np.array(index, "<u2").view(np.uint8).reshape(-1, 2).T.tobytes()
    )
    return table_file._seal(0, len(index), len(rules), zstandard.ZstdCompressor().compress(raw), DIGEST)


def assert_is_table(data: bytes, table: UnwindTable) -> None:
    found = unpack_table(data, DIGEST)
    assert isinstance(found, UnwindTable)
    assert found.addresses.tolist() == table.addresses.tolist()
    assert found.rules.tolist() == table.rules.tolist()
    assert (found.addresses.dtype, found.rules.dtype) == (np.uint64, np.uint32)


def test_a_table_comes_back() -> None:
    assert_is_table(pack_table(TABLE, DIGEST), TABLE)
    assert_is_table(packed(0x1000, [0, SP_8, SP_16], [1, 0x3F], [1, 2, 0]), TABLE)


@pytest.mark.parametrize("miss", list(TableMiss))
def test_a_reason_comes_back(miss: TableMiss) -> None:
    assert unpack_table(pack_miss(miss, DIGEST), DIGEST) is miss


def test_the_table_of_another_binary_is_refused() -> None:
    with pytest.raises(TableError, match="another binary"):
        unpack_table(pack_table(TABLE, DIGEST), bytes(16))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "0 bytes"),
        (packed(0x1000, [0, SP_8], [1, 0], [1, 1, 0]), "do not ascend"),
        (packed(0x1000, [0, SP_8], [1, 1], [1, 2, 0]), "a rule is missing"),
        (packed(1 << 47, [0, SP_8], [1], [1, 0]), "do not ascend"),
        (packed((1 << 47) - 1, [0, SP_8], [1], [1, 0]), "the last row"),
        (packed(0x1000, [0, SP_8], [1], [1, 1]), "the last row"),
        (table_file._seal(99, 0, 0, b"", DIGEST), "unknown reason"),
        (table_file._seal(0, 0, 1, b"", DIGEST), "0 rows"),
        (table_file._seal(0, 1 << 23, 1, b"", DIGEST), "8388608 rows"),
        (table_file._seal(0, 3, 2, b"no zstd", DIGEST), "cannot be inflated"),
        (table_file._seal(0, 3, 2, zstandard.ZstdCompressor().compress(bytes(1 << 20)), DIGEST), "the size inside"),
        (table_file._seal(0, 3, 2, zstandard.ZstdCompressor(write_content_size=False).compress(bytes(30)), DIGEST), "the size inside"),
        (pack_table(TABLE, DIGEST).replace(b"EWUT\1", b"EWUT\2"), "version 2"),
    ],
)
def test_nonsense_under_a_right_checksum_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(TableError, match=reason):
        unpack_table(data, DIGEST)


@given(st.integers(0, len(pack_table(TABLE, DIGEST)) - 1), st.integers(1, 255))
def test_each_changed_byte_is_noticed(at: int, change: int) -> None:
    data = bytearray(pack_table(TABLE, DIGEST))
    data[at] ^= change
    with pytest.raises(TableError):
        unpack_table(bytes(data), DIGEST)


@given(st.integers(0, len(pack_table(TABLE, DIGEST)) - 1))
def test_each_cut_is_noticed(size: int) -> None:
    with pytest.raises(TableError):
        unpack_table(pack_table(TABLE, DIGEST)[:size], DIGEST)


def test_a_table_that_nobody_would_take_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    far = UnwindTable(np.array([0, 1 << 32], np.uint64), np.array([SP_8, 0], np.uint32))
    with pytest.raises(TableError):
        pack_table(far, DIGEST)
    monkeypatch.setattr(table_file, "MAX_ROWS", 2)
    with pytest.raises(TableError):
        pack_table(TABLE, DIGEST)


def test_each_part_of_the_identity_counts() -> None:
    gnu, none = pb.BUILD_ID_KIND_GNU, pb.BUILD_ID_KIND_NONE
    same = [
        BinaryId(gnu, b"ab", b"c" * 16),
        BinaryId(none, b"ab", b"c" * 16),
        BinaryId(gnu, b"a", b"b" + b"c" * 16),
        BinaryId(gnu, b"ab", b"d" * 16),
    ]
    assert len({identity_digest(binary_id) for binary_id in same}) == 4

# SPDX-License-Identifier: Apache-2.0
"""Tests of packed tables."""

import struct

import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1 import unwind_table
from emberwatch.v1.unwind_table import UnwindTableError, identity_digest, pack_reason, pack_rows, unpack

DIGEST = bytes(range(16))
SP_8, SP_16 = 0x9, 0x200011
ADDRESSES, RULES = np.array([0x1000, 0x1001, 0x1040], np.uint64), np.array([SP_8, SP_16, 0], np.uint32)
PACKED = pack_rows(ADDRESSES, RULES, DIGEST)


def packed(first: int, rules: list[int], distances: list[int], index: list[int]) -> bytes:
    """A table with a right checksum, whatever it says."""
    raw = struct.pack("<Q", first) + np.array(rules, "<u4").tobytes()
    raw += (
        np.array(distances, "<u4").view(np.uint8).reshape(-1, 4).T.tobytes()
        + np.array(index, "<u2").view(np.uint8).reshape(-1, 2).T.tobytes()
    )
    return unwind_table._seal(0, len(index), len(rules), zstandard.ZstdCompressor().compress(raw), DIGEST)


def assert_comes_back(data: bytes) -> None:
    found = unpack(data, DIGEST)
    assert isinstance(found, tuple)
    addresses, rules = found
    assert (addresses.tolist(), rules.tolist()) == ([0x1000, 0x1001, 0x1040], [SP_8, SP_16, 0])
    assert (addresses.dtype, rules.dtype) == (np.uint64, np.uint32)


def test_a_table_comes_back() -> None:
    assert_comes_back(PACKED)
    assert_comes_back(packed(0x1000, [0, SP_8, SP_16], [1, 0x3F], [1, 2, 0]))


def test_a_reason_comes_back() -> None:
    assert unpack(pack_reason(7, DIGEST), DIGEST) == 7


def test_the_table_of_another_binary_is_refused() -> None:
    with pytest.raises(UnwindTableError, match="another binary"):
        unpack(PACKED, bytes(16))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "0 bytes"),
        (packed(0x1000, [0, SP_8], [1, 0], [1, 1, 0]), "do not ascend"),
        (packed(0x1000, [0, SP_8], [1, 1], [1, 2, 0]), "a rule is missing"),
        (packed(1 << 47, [0, SP_8], [1], [1, 0]), "do not ascend"),
        (packed((1 << 47) - 1, [0, SP_8], [1], [1, 0]), "the last row"),
        (packed(0x1000, [0, SP_8], [1], [1, 1]), "the last row"),
        (unwind_table._seal(0, 0, 1, b"", DIGEST), "0 rows"),
        (unwind_table._seal(0, 1 << 23, 1, b"", DIGEST), "8388608 rows"),
        (unwind_table._seal(0, 3, 2, b"no zstd", DIGEST), "cannot be inflated"),
        (unwind_table._seal(0, 3, 2, zstandard.ZstdCompressor().compress(bytes(1 << 20)), DIGEST), "the size inside"),
        (unwind_table._seal(0, 3, 2, zstandard.ZstdCompressor(write_content_size=False).compress(bytes(30)), DIGEST), "the size inside"),
        (b"EWUT\1" + PACKED[5:], "version 1"),
    ],
)
def test_nonsense_under_a_right_checksum_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(UnwindTableError, match=reason):
        unpack(data, DIGEST)


@given(st.integers(0, len(PACKED) - 1), st.integers(1, 255))
def test_each_changed_byte_is_noticed(at: int, change: int) -> None:
    data = bytearray(PACKED)
    data[at] ^= change
    with pytest.raises(UnwindTableError):
        unpack(bytes(data), DIGEST)


@given(st.integers(0, len(PACKED) - 1))
def test_each_cut_is_noticed(size: int) -> None:
    with pytest.raises(UnwindTableError):
        unpack(PACKED[:size], DIGEST)


def test_a_table_that_nobody_would_take_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnwindTableError):
        pack_rows(np.array([0, 1 << 32], np.uint64), np.array([SP_8, 0], np.uint32), DIGEST)
    monkeypatch.setattr(unwind_table, "MAX_ROWS", 2)
    with pytest.raises(UnwindTableError):
        pack_rows(ADDRESSES, RULES, DIGEST)


def test_each_part_of_the_identity_counts() -> None:
    gnu, none = pb.BUILD_ID_KIND_GNU, pb.BUILD_ID_KIND_NONE
    same = [(gnu, b"ab", b"c" * 16), (none, b"ab", b"c" * 16), (gnu, b"a", b"b" + b"c" * 16), (gnu, b"ab", b"d" * 16)]
    assert len({identity_digest(*parts) for parts in same}) == 4

# SPDX-License-Identifier: Apache-2.0
"""Numbers of variable length (DWARF 5, 7.6), of five bytes at most: no compiler writes longer ones into unwind rules."""

MAX_BYTES = 5


class LebError(Exception):
    """The number is longer than five bytes or cut off."""


def unsigned_leb(data: bytes, at: int) -> tuple[int, int]:
    """The number at `at` and the place behind it."""
    value = 0
    for index in range(MAX_BYTES):
        if at + index >= len(data):
            raise LebError("number is cut off")
        byte = data[at + index]
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return value, at + index + 1
    raise LebError("number of more than five bytes")


def signed_leb(data: bytes, at: int) -> tuple[int, int]:
    """As unsigned_leb, for a signed number."""
    value, after = unsigned_leb(data, at)
    bits = 7 * (after - at)
    return (value - (1 << bits) if data[after - 1] & 0x40 else value), after

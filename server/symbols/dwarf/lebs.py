# SPDX-License-Identifier: Apache-2.0
"""Numbers at many places at once: LEB128 and those of fixed width. What has no end in 10 bytes or in the data is cut there."""

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]
U8 = npt.NDArray[np.uint8]

MAX_LEB_BYTES = 10


def ulebs(data: U8, places: I64) -> tuple[U64, I64]:
    """The unsigned number at each place, modulo 2**64, and the place behind it."""
    values, behind = np.zeros(places.size, np.uint64), places.copy()
    going = np.flatnonzero(places < data.size)
    for byte in range(MAX_LEB_BYTES):
        bits = data[behind[going]]
        behind[going] += 1
        values[going] |= (bits & np.uint8(0x7F)).astype(np.uint64) << np.uint64(7 * byte)
        going = going[(bits > 0x7F) & (behind[going] < data.size)]
        if not going.size:
            break
    return values, behind


def slebs(data: U8, places: I64) -> tuple[I64, I64]:
    """The same with a sign."""
    values, behind = ulebs(data, places)
    signed, bits = values.view(np.int64), np.minimum(7 * (behind - places), 63)
    is_negative = (behind > places) & (data[np.maximum(behind - 1, 0)] & 0x40 > 0)
    return np.where(is_negative, signed | np.left_shift(np.int64(-1), bits), signed), behind


def numbers(data: U8, places: I64, width: int, byte_order: str) -> U64:
    """The numbers of so many bytes (8 at most) at places that all lie in the data as a whole."""
    raw = np.zeros((places.size, 8), np.uint8)
    is_little = byte_order == "little"
    raw[:, slice(0, width) if is_little else slice(8 - width, 8)] = data[places[:, None] + np.arange(width)]
    return raw.view("<u8" if is_little else ">u8").ravel().astype(np.uint64)

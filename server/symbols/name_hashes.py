# SPDX-License-Identifier: Apache-2.0
"""Hashes of all names of a string table at once, so that equal names are found without making a string of each.

A polynomial over the bytes, modulo 2^64: with sums of byte * r^place before every byte, the hash of a name is the difference of
two sums, divided by r^start. r is odd and so has an inverse. Names that differ may have one hash only by chance (2^-64 or so) or
by intent; then a binary loses one alias of its own.
"""

import numpy as np
import numpy.typing as npt

_FACTOR = 0x9E37_79B9_7F4A_7C15
_INVERSE = pow(_FACTOR, -1, 1 << 64)


def name_hashes(strings: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """The hash of strings[start:start + length] for each pair; names must lie inside."""
    sums = np.zeros(strings.size + 1, np.uint64)
    np.cumsum((strings.astype(np.uint64) + np.uint64(1)) * _powers(_FACTOR, strings.size), out=sums[1:])
    hashes: npt.NDArray[np.uint64] = (sums[starts + lengths] - sums[starts]) * _powers(_INVERSE, strings.size + 1)[starts]
    return hashes


def _powers(factor: int, count: int) -> npt.NDArray[np.uint64]:
    factors = np.full(max(count, 1), factor, np.uint64)
    factors[0] = 1
    return np.cumprod(factors)[:count]

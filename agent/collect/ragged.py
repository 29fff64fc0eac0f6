# SPDX-License-Identifier: Apache-2.0
"""Index arithmetic for lists of different lengths that lie in one flat array."""

import numpy as np
import numpy.typing as npt

Index = npt.NDArray[np.int64]


def bounds_from_lengths(lengths: Index) -> Index:
    """Answer where each list starts when they are laid one after another, and where the last ends."""
    bounds = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=bounds[1:])
    return bounds


def flat_index(starts: Index, lengths: Index, bounds: Index) -> Index:
    """Answer, element by element, where the lists that start at `starts` lie; `bounds` are those of the result."""
    return np.arange(bounds[-1]) + np.repeat(starts - bounds[:-1], lengths)

# SPDX-License-Identifier: Apache-2.0
"""Which marks stand on the paths of a service's nodes: what a stack lacks is told by its marks, so it is known by service and by row."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from emberwatch.v1 import batch_pb2 as pb
from server.store.protocol import ServiceDictionary

Bits = npt.NDArray[np.unsignedinteger]


def bits_of_paths(dictionary: ServiceDictionary, bits_of_marks: Callable[[npt.NDArray[np.uint64]], Bits]) -> Bits:
    """For each node, the bits of all marks from it up to the root. Paths are followed in doubling steps: 8 for 255 frames."""
    is_mark = dictionary.frame_kinds == pb.PLACE_KIND_MARK
    of_frame = bits_of_marks(dictionary.frame_offsets)
    bits: Bits = np.where(is_mark, of_frame, of_frame.dtype.type(0))[dictionary.node_frames]
    above = dictionary.node_parents.astype(np.intp)
    while above.any():
        bits = bits | bits[above]
        above = above[above]
    return bits

# SPDX-License-Identifier: Apache-2.0
"""As much of a store as a merge asks for, with its rows in memory: what is timed is the merge and nothing else."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from server.store.protocol import ColumnInfo, KindInfo, Piece, Selection, ServiceDictionary
from server.store.push import ValueMerge

SERVICE = "service"


class OneServiceStore:
    """One service, one column "samples" of kind "cpu", handed out in pieces."""

    def __init__(self, keys: npt.NDArray[np.int64], samples: npt.NDArray[np.uint16], key_count: int, piece_rows: int) -> None:
        starts = range(0, keys.size, piece_rows)
        self._pieces = [
            Piece(SERVICE, keys[at : at + piece_rows], 1, {"samples": samples[at : at + piece_rows]}, 0, 10 * 10**9) for at in starts
        ]
        none, no_flags, offsets = np.zeros(1, np.uint32), np.zeros(1, np.uint8), np.zeros(1, np.uint64)
        by_key = np.zeros(key_count, np.uint32)
        self._dictionary = ServiceDictionary(
            SERVICE, no_flags, none, offsets, no_flags, none, none, by_key, by_key, by_key, by_key, by_key, [b""]
        )

    def select(self, _: Selection) -> Iterator[Piece]:
        """All rows."""
        return iter(self._pieces)

    def kinds(self) -> list[KindInfo]:
        """The one kind."""
        return [KindInfo("cpu", (ColumnInfo("samples", "count", ValueMerge.SUM),))]

    def dictionary(self, _: str) -> ServiceDictionary:
        """Keys without stacks."""
        return self._dictionary

# SPDX-License-Identifier: Apache-2.0
"""Row keys that the server has numbered: canonical hash of a key -> its number. Bounded; private to this agent.

Hashes are 128 bit, kept as two columns; the first is sorted and searched, the second must agree.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

U64 = npt.NDArray[np.uint64]
Index = npt.NDArray[np.int64]

MOST_KEYS = 1 << 18
"""24 bytes each, when there are so many: 6 MiB. A usual host has some thousands."""
UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class KeyHashes:
    """Hashes of keys: lanes[0] and lanes[1] are the two halves."""

    lanes: npt.NDArray[np.uint64]

    def __len__(self) -> int:
        return int(self.lanes.shape[1])

    def take(self, rows: Index | slice) -> "KeyHashes":
        """Keep `rows`, in their order."""
        return KeyHashes(self.lanes[:, rows])


class KnownKeys:
    """Numbers by hash. When full, the keys that were used least lately are forgotten."""

    def __init__(self, most_keys: int = MOST_KEYS) -> None:
        self._most_keys = most_keys
        self._round = 0
        self._dictionary_id = b""
        self._lanes = np.zeros((2, 0), np.uint64)
        self._numbers = np.zeros(0, np.uint32)
        self._last_used = np.zeros(0, np.uint32)

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def dictionary_id(self) -> bytes:
        """The numbering that the numbers belong to; empty before the first answer."""
        return self._dictionary_id

    def numbers(self, hashes: KeyHashes) -> Index:
        """Answer the number of each key, UNKNOWN where there is none."""
        self._round += 1
        at, is_hit = self._find(hashes)
        self._last_used[at[is_hit]] = self._round
        numbers = np.full(len(hashes), UNKNOWN, np.int64)
        numbers[is_hit] = self._numbers[at[is_hit]]
        return numbers

    def learn(self, dictionary_id: bytes, hashes: KeyHashes, numbers: U64) -> None:
        """Remember what the server answered. Another `dictionary_id` than before voids all that was known."""
        if dictionary_id != self._dictionary_id:
            self.forget_all()
            self._dictionary_id = dictionary_id
        _, first = np.unique(hashes.lanes[0], return_index=True)
        fresh, values = hashes.take(first), numbers[first]
        at, is_hit = self._find(fresh)
        self._numbers[at[is_hit]] = values[is_hit]
        fresh, values = fresh.take(np.flatnonzero(~is_hit)), values[~is_hit]
        where = np.searchsorted(self._lanes[0], fresh.lanes[0])
        self._lanes = np.insert(self._lanes, where, fresh.lanes, axis=1)
        self._numbers = np.insert(self._numbers, where, values.astype(np.uint32))
        self._last_used = np.insert(self._last_used, where, self._round)
        if len(self) > self._most_keys:
            self._keep(np.sort(np.argsort(self._last_used, kind="stable")[-(self._most_keys * 3 // 4) :]))

    def forget(self, hashes: KeyHashes) -> None:
        """Forget keys that the server does not know any more."""
        at, is_hit = self._find(hashes)
        keep = np.ones(len(self), np.bool_)
        keep[at[is_hit]] = False
        self._keep(np.flatnonzero(keep))

    def forget_all(self) -> None:
        """Begin anew."""
        self._keep(np.zeros(0, np.int64))
        self._dictionary_id = b""

    def _find(self, hashes: KeyHashes) -> tuple[Index, npt.NDArray[np.bool_]]:
        """Answer a place for each hash, and whether the hash is there."""
        if not len(self):
            return np.zeros(len(hashes), np.int64), np.zeros(len(hashes), np.bool_)
        at = np.minimum(np.searchsorted(self._lanes[0], hashes.lanes[0]), len(self) - 1)
        return at, (self._lanes[0][at] == hashes.lanes[0]) & (self._lanes[1][at] == hashes.lanes[1])

    def _keep(self, rows: Index) -> None:
        self._lanes = np.ascontiguousarray(self._lanes[:, rows])
        self._numbers = self._numbers[rows]
        self._last_used = self._last_used[rows]

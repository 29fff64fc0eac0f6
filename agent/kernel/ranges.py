# SPDX-License-Identifier: Apache-2.0
"""Hands out ranges of a fixed array, lowest first, and joins what comes back."""

from bisect import bisect_left, insort


class Ranges:
    """Free ranges of an array of `size` elements: sorted, not touching each other."""

    def __init__(self, size: int, reserved: int = 0) -> None:
        """The first `reserved` elements are never handed out."""
        self._free: list[tuple[int, int]] = [(reserved, size - reserved)] if size > reserved else []
        self._free_elements = max(0, size - reserved)

    @property
    def free_elements(self) -> int:
        """How many are free, in one piece or not."""
        return self._free_elements

    def has_room(self, count: int) -> bool:
        """Whether take() would find a range of `count` elements."""
        return count == 0 or any(length >= count for _, length in self._free)

    def take(self, count: int) -> int | None:
        """Start of a range of `count` elements, None when no free one is as long."""
        if count == 0:
            return 0
        for index, (start, length) in enumerate(self._free):
            if length >= count:
                self._free[index : index + 1] = [(start + count, length - count)] if length > count else []
                self._free_elements -= count
                return start
        return None

    def give_back(self, start: int, count: int) -> None:
        """Return a range that was taken."""
        if count == 0:
            return
        self._free_elements += count
        at = bisect_left(self._free, (start, 0))
        if at < len(self._free) and start + count == self._free[at][0]:
            count += self._free.pop(at)[1]
        if at and sum(self._free[at - 1]) == start:
            before_start, before_count = self._free.pop(at - 1)
            start, count = before_start, before_count + count
        insort(self._free, (start, count))

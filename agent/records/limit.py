# SPDX-License-Identifier: Apache-2.0
"""How much of what happens a kind sees, when it must spare the host."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limit:
    """Shares of all events of a window: 1 for all."""

    seen: float = 1.0
    """Seen; they stand for the rest."""
    timed: float = 1.0
    """Seen with their duration: less than `seen` where a kind can count without it."""

    @property
    def is_whole(self) -> bool:
        """Nothing was left out."""
        return self.seen >= 1 and self.timed >= 1

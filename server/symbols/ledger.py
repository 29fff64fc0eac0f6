# SPDX-License-Identifier: Apache-2.0
"""What can be said of each binary's names right now, in memory: the states, and whose turn it is to be asked of agents."""

import itertools
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from server.store.protocol import BinaryInfo
from server.symbols.build_result import Quality
from server.symbols.identity import BinaryKey

MAX_BINARIES = 100_000


class NameState(StrEnum):
    """What can be said of a binary's names; the words are part of the API."""

    NAMED = "named"
    WANTED = "wanted"
    PENDING = "pending"
    NONE = "none"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class SymbolState:
    """State of one binary, and why in words when it has no names."""

    state: NameState
    reason: str = ""
    quality: Quality = Quality.EMPTY
    """Of its table."""


@dataclass(frozen=True, slots=True)
class Known:
    """A binary that was met. Times by the ledger's clock."""

    state: SymbolState
    since_s: float
    met_s: float
    binary: BinaryInfo | None = None
    """None until somebody has run it."""
    looked_s: float = 0.0
    """When it was last seen whether files have come for it."""


class Ledger:
    """States by identity; the binary that was met longest ago leaves first. Safe for several threads."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._known: OrderedDict[BinaryKey, Known] = OrderedDict()
        self._wanted: OrderedDict[BinaryKey, None] = OrderedDict()
        """Keys in state WANTED, the one that was asked for longest ago first."""

    def get(self, key: BinaryKey) -> Known | None:
        """What is known; asking counts as meeting it."""
        with self._lock:
            known = self._known.get(key)
            if known is not None:
                self._known.move_to_end(key)
            return known

    def begin(self, key: BinaryKey, binary: BinaryInfo | None, state: SymbolState) -> tuple[Known, bool]:
        """Note a binary that is met for the first time; False when another thread was faster, whose note then stands."""
        with self._lock:
            known = self._known.get(key)
            if known is not None:
                return known, False
            now = self._clock()
            return self._keep(key, Known(state, now, now, binary, now)), True

    def set(self, key: BinaryKey, state: SymbolState) -> SymbolState:
        """Note a state, of a binary that may not have been met yet."""
        with self._lock:
            now = self._clock()
            known = self._known.get(key)
            if known is None:
                self._keep(key, Known(state, now, now))
            else:
                self._keep(key, replace(known, state=state, since_s=now if state != known.state else known.since_s))
        return state

    def learn(self, key: BinaryKey, binary: BinaryInfo) -> None:
        """Somebody runs a binary that was known by an upload only."""
        with self._lock:
            known = self._known.get(key)
            if known is not None and known.binary is None:
                self._keep(key, replace(known, binary=binary))

    def is_due(self, key: BinaryKey, pause_s: float) -> bool:
        """True once in `pause_s`: files may have come for this binary."""
        with self._lock:
            known, now = self._known.get(key), self._clock()
            if known is None or now - known.looked_s < pause_s:
                return False
            self._known[key] = replace(known, looked_s=now)
            return True

    def forget(self, key: BinaryKey) -> None:
        """As if it had never been met."""
        with self._lock:
            self._known.pop(key, None)
            self._wanted.pop(key, None)

    def poor(self, best: Quality) -> list[tuple[BinaryKey, Known]]:
        """Those that run and whose table could be better."""
        with self._lock:
            return [(key, known) for key, known in self._known.items() if known.binary is not None and known.state.quality != best]

    def find(self, is_sought: Callable[[BinaryKey], bool]) -> list[BinaryKey]:
        """The binaries that have been met and are sought."""
        with self._lock:
            return [key for key in self._known if is_sought(key)]

    def wanted_some(self, most: int) -> list[BinaryKey]:
        """At most so many of the binaries that agents should be asked for, others at each call until all had their turn."""
        with self._lock:
            keys = list(itertools.islice(self._wanted, most))
            for key in keys:
                self._wanted.move_to_end(key)
        return keys

    def _keep(self, key: BinaryKey, known: Known) -> Known:
        self._known[key] = known
        self._known.move_to_end(key)
        if known.state.state == NameState.WANTED:
            self._wanted.setdefault(key)
        else:
            self._wanted.pop(key, None)
        while len(self._known) > MAX_BINARIES:
            eldest = self._known.popitem(last=False)[0]
            self._wanted.pop(eldest, None)
        return known

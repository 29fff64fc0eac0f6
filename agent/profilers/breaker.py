# SPDX-License-Identifier: Apache-2.0
"""Keeps event programs from hurting the host: over a rate they are attached for a part of the time only, in duty cycles.

A program that looks away still pays for being called (0.22 us), so it is detached. What was seen is scaled by time at the drain: a
window in which the programs ran for a fifth of the time counts five times.

    rate > limit:   on ##______________##______________##____   on : cycle = limit : rate
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

LOOK_S = 0.25
"""How often the rate is looked at while the programs run all the time."""
ON_S = 0.05
"""How long they run at a time in duty cycles."""
LONGEST_CYCLE_S = 2.0
CYCLES_A_WINDOW = 5
"""At least: a window in which nothing was looked at could not be scaled."""
_CALM = 0.9
"""Share of the limit below which they run all the time again."""


class Links(Protocol):
    """What attaches a group of programs."""

    def attach(self) -> None: ...
    def detach(self) -> None: ...
    def events_per_cpu(self) -> npt.NDArray[np.uint64]:
        """Events seen by each CPU since the start."""
        ...


@dataclass(frozen=True, slots=True)
class Share:
    """How much of a window the programs ran."""

    on_ns: int
    window_ns: int

    @property
    def is_whole(self) -> bool:
        """They ran all the time."""
        return self.on_ns == self.window_ns

    @property
    def part(self) -> float:
        """Share of the window; 1 of an empty one."""
        return self.on_ns / self.window_ns if self.window_ns else 1.0

    @property
    def weight(self) -> float:
        """What one event stands for; 0 when the programs never ran."""
        return self.window_ns / self.on_ns if self.on_ns else 0.0

    def scaled(self, values: npt.NDArray[np.unsignedinteger]) -> npt.NDArray[np.uint64]:
        """Sums over the window, estimated from those over the time on; exact when nothing was limited."""
        if self.is_whole:
            return values.astype(np.uint64)
        return np.rint(values.astype(np.float64) * self.weight).astype(np.uint64)


class Breaker:
    """Attaches at once. Call tick() as often as it asks for."""

    def __init__(self, links: Links, most_per_s: int, window_s: float, now_ns: Callable[[], int]) -> None:
        """`most_per_s` is of the busiest CPU; 0 for no limit."""
        self._links = links
        self._most_per_s = most_per_s
        self._longest_ns = int(min(LONGEST_CYCLE_S, window_s / CYCLES_A_WINDOW) * 1e9)
        self._now_ns = now_ns
        self._is_cycling = False
        self._off_until_ns = 0
        self._on_before_ns = 0
        self._duty = 1.0
        links.attach()
        self._is_on = True
        self._window_start_ns = self._on_since_ns = self._looked_ns = now_ns()
        self._seen = links.events_per_cpu()

    @property
    def is_on(self) -> bool:
        """Whether the programs run now."""
        return self._is_on

    @property
    def is_cycling(self) -> bool:
        """Whether they run for a part of the time only."""
        return self._is_cycling

    @property
    def duty(self) -> float:
        """Share of the last whole window for which the programs ran; 1 before there was one."""
        return self._duty

    def tick(self) -> float | None:
        """Look at the rate, attach or detach. Seconds until it must be called again."""
        if not self._most_per_s:
            return None
        now_ns = self._now_ns()
        if not self._is_on:
            if now_ns < self._off_until_ns:
                return (self._off_until_ns - now_ns) / 1e9
            self._switch_on()
            return ON_S
        due_ns = int((ON_S if self._is_cycling else LOOK_S) * 1e9)
        past_ns = now_ns - self._looked_ns
        if past_ns < due_ns:
            return (due_ns - past_ns) / 1e9
        rate = self._rate(past_ns)
        self._looked_ns = now_ns
        if rate <= self._most_per_s * (_CALM if self._is_cycling else 1):
            self._is_cycling = False
            return LOOK_S
        self._is_cycling = True
        on_ns = min(now_ns - self._on_since_ns, past_ns)
        off_ns = min(int(on_ns * (rate / self._most_per_s - 1)), self._longest_ns - on_ns)
        if off_ns <= 0:
            return ON_S  # between calm and the limit, or on for too long already: no moment to look away
        self._switch_off(now_ns)
        self._off_until_ns = now_ns + off_ns
        return off_ns / 1e9

    def close_window(self, end_ns: int) -> Share:
        """How much of the window that ends now the programs ran."""
        start_ns, self._window_start_ns = self._window_start_ns, end_ns
        on_ns, self._on_before_ns = self._on_before_ns, 0
        if self._is_on:
            on_ns += max(0, end_ns - max(start_ns, self._on_since_ns))
        share = Share(min(on_ns, end_ns - start_ns), end_ns - start_ns)
        self._duty = share.part
        return share

    def close(self) -> None:
        """Detach for good."""
        if self._is_on:
            self._links.detach()
            self._is_on = False

    def _rate(self, past_ns: int) -> float:
        """Events a second of the busiest CPU since the last look."""
        before, self._seen = self._seen, self._links.events_per_cpu()
        return float((self._seen - before).max(initial=0)) * 1e9 / past_ns

    def _switch_on(self) -> None:
        self._links.attach()
        self._is_on = True
        self._on_since_ns = self._looked_ns = self._now_ns()
        self._seen = self._links.events_per_cpu()

    def _switch_off(self, now_ns: int) -> None:
        self._links.detach()
        self._is_on = False
        self._on_before_ns += max(0, now_ns - max(self._window_start_ns, self._on_since_ns))

# SPDX-License-Identifier: Apache-2.0
"""Steps of a time axis: how many slots a range is cut into, and where they start."""

from collections.abc import Iterator
from dataclasses import dataclass

from server.query.complaint import QueryError
from server.query.timerange import SECOND_NS, TimeRange
from server.store.cover import LENGTHS_S

SHORTEST_STEP_S = 1
MOST_SLOTS = 2000
_STEPS_S = (10, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 21_600, 43_200, 86_400)
_UNIT_NS = LENGTHS_S[-1] * SECOND_NS
_LONGEST_FINE_NS = 12 * 3600 * SECOND_NS
"""A longer range is cut at whole ten minutes, whatever step is asked for."""


@dataclass(frozen=True, slots=True)
class Slots:
    """Slot i is [from + i * step, + step), the last one cut at the end of the range."""

    range: TimeRange
    step_ns: int

    @property
    def count(self) -> int:
        """Number of slots."""
        return -(-self.range.length_ns // self.step_ns)

    def starts_s(self) -> list[float]:
        """Start of each, unix seconds."""
        return [(self.range.from_unix_ns + i * self.step_ns) / SECOND_NS for i in range(self.count)]

    def lengths_ns(self) -> list[int]:
        """Length of each."""
        rest = self.range.length_ns - (self.count - 1) * self.step_ns
        return [self.step_ns] * (self.count - 1) + [rest]


def choose_slots(span: TimeRange, step_ns: int | None, most: int = 240) -> Slots:
    """Cut a range by the step asked for, or by the shortest round one that makes at most `most` slots.

    Without a step, slots of ten minutes and more start at whole ten minutes, the first before the range: sums are kept of these, and
    slots that cut them would be added up window by window. For that reason a step over more than twelve hours is the next number of
    whole ten minutes. Answers say which step and which start they have.
    """
    if step_ns is None:
        return next(slots for slots in _round_slots(span, most) if slots.count <= most)
    if step_ns < SHORTEST_STEP_S * SECOND_NS:
        raise QueryError(f"the step is shorter than {SHORTEST_STEP_S} s", hint="leave step out, or write 10s")
    if -(-span.length_ns // step_ns) > MOST_SLOTS:
        raise QueryError(f"the range makes more than {MOST_SLOTS} steps", hint="take a longer step or a shorter range")
    return Slots(span, step_ns) if span.length_ns <= _LONGEST_FINE_NS else _at_units(span, -(-step_ns // _UNIT_NS) * _UNIT_NS)


def _round_slots(span: TimeRange, most: int) -> Iterator[Slots]:
    """By ever longer steps; by the last there are few enough."""
    whole_days = (1 + span.length_ns // (most * _STEPS_S[-1] * SECOND_NS)) * _STEPS_S[-1]
    for step_s in (*_STEPS_S, whole_days, whole_days + _STEPS_S[-1]):
        step_ns = step_s * SECOND_NS
        yield Slots(span, step_ns) if step_ns < _UNIT_NS else _at_units(span, step_ns)


def _at_units(span: TimeRange, step_ns: int) -> Slots:
    return Slots(TimeRange(span.from_unix_ns // _UNIT_NS * _UNIT_NS, span.until_unix_ns), step_ns)

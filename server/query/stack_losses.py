# SPDX-License-Identifier: Apache-2.0
"""How much of an answer was stored without its whole stack, by reason: of its rows and no others, since each of them bears its mark.

The agent's account says the same of a whole host; what was not stored at all is known only there.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from emberwatch.v1 import marks_pb2 as marks
from server.query.path_marks import Bits, bits_of_paths
from server.query.quality import StackLosses, reason_name, share
from server.store.protocol import ServiceDictionary

_REASONS: dict[int, int] = {
    marks.MARK_TRUNCATED: marks.LOSS_REASON_TRUNCATED,
    marks.MARK_EXITED: marks.LOSS_REASON_EXITED,
    marks.MARK_EXEC_RACE: marks.LOSS_REASON_EXEC_RACE,
    marks.MARK_STACK_LOST_ENOMEM: marks.LOSS_REASON_STACK_ENOMEM,
    marks.MARK_STACK_LOST_EEXIST: marks.LOSS_REASON_STACK_EEXIST,
    marks.MARK_STACK_LOST_EFAULT: marks.LOSS_REASON_STACK_EFAULT_USER,
    marks.MARK_STACK_LOST_MAP_FULL: marks.LOSS_REASON_STACK_MAP_FULL,
    marks.MARK_STACK_LOST_OTHER: marks.LOSS_REASON_STACK_OTHER,
    **dict.fromkeys(range(marks.MARK_UNWIND_STOPPED_NO_MAPPING, marks.MARK_UNWIND_STOPPED_NO_TABLE + 1), marks.LOSS_REASON_UNWIND_STOPPED),
}
"""By the mark that stands in the stack. Marks of single frames (no mapping, anonymous) are no loss of a stack."""
_BITS = {reason: 1 << bit for bit, reason in enumerate(sorted(set(_REASONS.values())))}
_BIT_OF_MARK = np.zeros(max(_REASONS) + 2, np.uint16)
_BIT_OF_MARK[list(_REASONS)] = [_BITS[reason] for reason in _REASONS.values()]
_SHORTENED = _BITS[marks.LOSS_REASON_TRUNCATED] | _BITS[marks.LOSS_REASON_UNWIND_STOPPED]
"""Reasons whose stacks are there but for their outermost frames."""


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """What some rows of one service have, by key."""

    dictionary: ServiceDictionary
    keys: npt.NDArray[np.intp]
    values: npt.NDArray[np.float64]
    """Beside `keys`; none is 0."""


def counts_of(dictionary: ServiceDictionary, values: npt.NDArray[np.float64]) -> Counts:
    """Keep what is not 0; `values` has an element for each key of the dictionary."""
    keys = np.flatnonzero(values)
    return Counts(dictionary, keys, values[keys])


def stack_losses(parts: Iterable[Counts], known: dict[int, Bits] | None = None) -> StackLosses:
    """Add up what lacks a part of its stack. `known` keeps what is found of a dictionary, by its id, for other parts of one question."""
    known = {} if known is None else known
    total = lost = 0.0
    by = dict.fromkeys(_BITS, 0.0)
    for part in parts:
        total += float(part.values.sum())
        if id(part.dictionary) not in known:
            known[id(part.dictionary)] = bits_of_paths(part.dictionary, _bits_of_marks)
        bits = known[id(part.dictionary)][part.dictionary.key_stacks[part.keys]]
        some = np.flatnonzero(bits)
        bits, values = bits[some], part.values[some]
        lost += float(values[bits & ~np.uint16(_SHORTENED) != 0].sum())
        for reason in _BITS:
            by[reason] += float(values[bits & np.uint16(_BITS[reason]) != 0].sum())
    return StackLosses({reason_name(reason): round(value) for reason, value in by.items() if value}, share(lost, total))


def _bits_of_marks(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint16]:
    found: npt.NDArray[np.uint16] = _BIT_OF_MARK[np.minimum(numbers, np.uint64(_BIT_OF_MARK.size - 1)).astype(np.intp)]
    return found

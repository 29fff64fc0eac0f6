# SPDX-License-Identifier: Apache-2.0
"""Puts the stack of every row together: kernel part, then user part, marks where something is missing.

The kernel part is there only when the sample was taken in kernel mode. A part is empty, one mark, or frames (which end in
[truncated] when the walk hit its limit, in [unwind stopped: ...] when it found no way on). Distinct parts are located once,
distinct pairs of parts are laid out once.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from agent.collect.locate import Locator
from agent.collect.places import BINARY_SHIFT, NUMBER_SHIFT
from agent.collect.ragged import Index, bounds_from_lengths, flat_index
from agent.records.drain import STACK_MAP_FULL, Stacks, StackStop
from agent.records.kernel_layout import KernelLayout
from agent.records.process import Fate, Process
from emberwatch.v1 import marks_pb2 as marks
from emberwatch.v1.marks_pb2 import LossReason, Mark

U64 = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.bool_]

_ENOMEM, _EFAULT, _EEXIST = -12, -14, -17
_LOST: dict[int, tuple[Mark, LossReason]] = {
    _ENOMEM: (marks.MARK_STACK_LOST_ENOMEM, marks.LOSS_REASON_STACK_ENOMEM),
    _EEXIST: (marks.MARK_STACK_LOST_EEXIST, marks.LOSS_REASON_STACK_EEXIST),
    _EFAULT: (marks.MARK_STACK_LOST_EFAULT, marks.LOSS_REASON_STACK_EFAULT_USER),
    STACK_MAP_FULL: (marks.MARK_STACK_LOST_MAP_FULL, marks.LOSS_REASON_STACK_MAP_FULL),
}
_LOST_OTHER = (marks.MARK_STACK_LOST_OTHER, marks.LOSS_REASON_STACK_OTHER)
_LOST_FATE: dict[Fate, tuple[Mark, LossReason]] = {
    Fate.EXITED: (marks.MARK_EXITED, marks.LOSS_REASON_EXITED),
    Fate.EXEC_RACE: (marks.MARK_EXEC_RACE, marks.LOSS_REASON_EXEC_RACE),
}
_STOPPED: dict[StackStop, Mark] = {
    StackStop.NO_MAPPING: marks.MARK_UNWIND_STOPPED_NO_MAPPING,
    StackStop.NO_ROW: marks.MARK_UNWIND_STOPPED_NO_ROW,
    StackStop.UNSUPPORTED: marks.MARK_UNWIND_STOPPED_UNSUPPORTED,
    StackStop.UNREADABLE: marks.MARK_UNWIND_STOPPED_UNREADABLE,
    StackStop.ZERO_RETURN: marks.MARK_UNWIND_STOPPED_ZERO_RETURN_ADDRESS,
    StackStop.NOT_GROWING: marks.MARK_UNWIND_STOPPED_STACK_NOT_GROWING,
    StackStop.NO_TABLE: marks.MARK_UNWIND_STOPPED_NO_TABLE,
}
_MARK_OF_STOP = np.zeros(1 << 8, np.int64)
_MARK_OF_STOP[list(_STOPPED)] = list(_STOPPED.values())
_FIRST_STACK = 64
"""Number of a part: 0 empty, below this a mark, from this on a stack (user: process * number of stacks + stack)."""
_NOT_FOUND = -1


@dataclass(frozen=True, slots=True)
class RowStacks:
    """Distinct stacks as frame codes (see places.py), leaf first, and which one each row has."""

    codes: U64
    bounds: Index
    stack_of_row: Index


@dataclass(frozen=True, slots=True)
class StackedRows:
    """Rows that have stacks, of all kinds of a window together."""

    keys: npt.NDArray[np.void]
    """dtype CPU_KEY."""
    stacks: Stacks
    counts: U64
    """Events of each row."""
    kind_of_row: Index


class StackLosses:
    """Events that were stored without their whole stack, by kind and reason (100 and up)."""

    def __init__(self, rows: StackedRows) -> None:
        self._rows = rows
        self._lost: dict[int, dict[LossReason, int]] = {}

    def add(self, reason: LossReason, rows: Flags) -> None:
        """Count these rows."""
        if not rows.any():
            return
        kinds, counts = self._rows.kind_of_row[rows], self._rows.counts[rows]
        for kind in np.unique(kinds).tolist():
            value = int(counts[kinds == kind].sum())
            if value:
                of_kind = self._lost.setdefault(kind, {})
                of_kind[reason] = of_kind.get(reason, 0) + value

    def of_kind(self, kind: int) -> dict[LossReason, int]:
        """By reason."""
        return self._lost.get(kind, {})


@dataclass(frozen=True, slots=True)
class _Parts:
    """Distinct parts, flat."""

    codes: U64
    bounds: Index
    of_row: Index


@dataclass(frozen=True, slots=True)
class Sources:
    """What places are found with."""

    locator: Locator
    processes: Sequence[Process]
    process_of_row: Index
    layout: KernelLayout


def stacks_of_rows(rows: StackedRows, sources: Sources, losses: StackLosses) -> RowStacks:
    """Lay out the stack of every row; each has at least one frame."""
    keys, stacks = rows.keys, rows.stacks
    kernel = _wanted_stack(keys["kernel_stack"], stacks)
    user = _wanted_stack(keys["user_stack"], stacks)
    kernel_part = _part_numbers(kernel, keys["kernel_error"])
    user_part = _part_numbers(user, keys["user_error"])
    _mark_errors(kernel_part, user_part, keys, losses)
    _mark_fates(user_part, sources, losses)
    _count_incomplete(kernel_part, user_part, (kernel, user), stacks, losses)
    is_user_stack = user_part >= _FIRST_STACK
    user_part[is_user_stack] += sources.process_of_row[is_user_stack] * len(stacks.hashes)
    user_part[(user_part == 0) & (kernel_part == 0)] = marks.MARK_NO_STACK
    return _paired(_parts(kernel_part, stacks, sources, is_user=False), _parts(user_part, stacks, sources, is_user=True))


def _wanted_stack(hashes: U64, stacks: Stacks) -> Index:
    """Find each hash: its stack, or _NOT_FOUND."""
    if not stacks.hashes.size:
        return np.full(len(hashes), _NOT_FOUND, np.int64)
    at = np.minimum(np.searchsorted(stacks.hashes, hashes), len(stacks.hashes) - 1)
    return np.where(stacks.hashes[at] == hashes, at, _NOT_FOUND)


def _part_numbers(stack: Index, errors: npt.NDArray[np.int16]) -> Index:
    return np.where((errors == 0) & (stack != _NOT_FOUND), stack + _FIRST_STACK, 0)


def _mark_errors(kernel_part: Index, user_part: Index, keys: npt.NDArray[np.void], losses: StackLosses) -> None:
    """Put marks where a stack was lost. A hash without its stack counts as lost for another cause."""
    kernel_error = np.where((keys["kernel_stack"] != 0) & (kernel_part == 0) & (keys["kernel_error"] == 0), 1, keys["kernel_error"])
    user_error = np.where((keys["user_stack"] != 0) & (user_part == 0) & (keys["user_error"] == 0), 1, keys["user_error"])
    user_error[keys["is_kernel_thread"] != 0] = 0  # it has no user stack to lose
    kernel_error[(kernel_error != 0) & (kernel_error == user_error)] = 0  # one mark stands for both
    if not (kernel_error.any() or user_error.any()):
        return
    for error in np.unique(user_error[user_error != 0]).tolist():
        mark, reason = _LOST.get(error, _LOST_OTHER)
        _mark(user_part, user_error == error, mark)
        losses.add(reason, user_error == error)
    for error in np.unique(kernel_error[kernel_error != 0]).tolist():
        mark, reason = _LOST_OTHER if error == _EFAULT else _LOST.get(error, _LOST_OTHER)
        _mark(kernel_part, kernel_error == error, mark)
        losses.add(reason, kernel_error == error)


def _mark_fates(user_part: Index, sources: Sources, losses: StackLosses) -> None:
    """Put one mark for the user part of a process whose mappings could not be had."""
    for fate, (mark, reason) in _LOST_FATE.items():
        gone = [index for index, process in enumerate(sources.processes) if process.fate is fate]
        if gone:
            rows = (user_part >= _FIRST_STACK) & np.isin(sources.process_of_row, gone)
            _mark(user_part, rows, mark)
            losses.add(reason, rows)


def _count_incomplete(kernel_part: Index, user_part: Index, found: tuple[Index, Index], stacks: Stacks, losses: StackLosses) -> None:
    is_truncated = stacks.is_truncated
    kernel, user = found
    if is_truncated.any():
        rows = (kernel_part >= _FIRST_STACK) & is_truncated[kernel] | (user_part >= _FIRST_STACK) & is_truncated[user]
        losses.add(marks.LOSS_REASON_TRUNCATED, rows)
    is_stopped = (_MARK_OF_STOP[stacks.stops] != 0) & ~is_truncated
    if is_stopped.any():
        losses.add(marks.LOSS_REASON_UNWIND_STOPPED, (user_part >= _FIRST_STACK) & is_stopped[user])


def _mark(part: Index, rows: Flags, mark: Mark) -> None:
    part[rows] = int(mark)


def _parts(part_numbers: Index, stacks: Stacks, sources: Sources, *, is_user: bool) -> _Parts:
    """Locate the distinct parts. A mark, or what a walk ended with, takes the last place of its part."""
    distinct, of_row = np.unique(part_numbers, return_inverse=True)
    is_stack = distinct >= _FIRST_STACK
    process, stack = np.divmod(np.where(is_stack, distinct - _FIRST_STACK, 0), max(1, len(stacks.hashes)))
    marks_at_end = np.where(is_stack, 0, distinct)
    if len(stacks.hashes):
        ends = np.where(stacks.is_truncated, marks.MARK_TRUNCATED, _MARK_OF_STOP[stacks.stops])
        marks_at_end[is_stack] = ends[stack[is_stack]]
    address_counts = np.where(is_stack, np.diff(stacks.bounds)[stack] if len(stacks.hashes) else 0, 0)
    lengths = address_counts + (marks_at_end != 0)
    bounds = bounds_from_lengths(lengths)
    address_bounds = bounds_from_lengths(address_counts)
    starts = stacks.bounds[stack]
    addresses = stacks.addresses[flat_index(starts, address_counts, address_bounds)]
    if is_user:
        found = sources.locator.user_codes(addresses, np.repeat(process, address_counts), sources.processes)
    else:
        found = sources.locator.kernel_codes(addresses, sources.layout)
    codes = np.empty(bounds[-1], np.uint64)
    codes[flat_index(bounds[:-1], address_counts, address_bounds)] = found
    has_mark = marks_at_end != 0
    codes[bounds[1:][has_mark] - 1] = marks_at_end[has_mark].astype(np.uint64) << NUMBER_SHIFT
    return _Parts(codes, bounds, of_row)


def _paired(kernel: _Parts, user: _Parts) -> RowStacks:
    """Lay out the distinct pairs (kernel part, user part), and say which frames are return addresses.

    Only the first frame of a stack is where the CPU was; places that are no addresses (marks, names) are the same everywhere.
    """
    user_count = len(user.bounds) - 1
    pairs, stack_of_row = np.unique(kernel.of_row * user_count + user.of_row, return_inverse=True)
    of_kernel, of_user = np.divmod(pairs, max(1, user_count))
    pool = np.concatenate((kernel.codes, user.codes))
    starts = np.column_stack((kernel.bounds[:-1][of_kernel], user.bounds[:-1][of_user] + len(kernel.codes))).ravel()
    lengths = np.column_stack((np.diff(kernel.bounds)[of_kernel], np.diff(user.bounds)[of_user])).ravel()
    piece_bounds = bounds_from_lengths(lengths)
    codes = pool[flat_index(starts, lengths, piece_bounds)]
    bounds = piece_bounds[::2]
    is_return = codes >> BINARY_SHIFT
    is_return[bounds[:-1]] = 0
    return RowStacks(codes | is_return, bounds, stack_of_row)

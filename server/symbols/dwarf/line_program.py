# SPDX-License-Identifier: Apache-2.0
"""Runs line programs on whole arrays (DWARF 5, 6.2.5): first where their operations begin, then all of them at once.

Where an operation ends follows from its own bytes alone, so it is worked out for every byte of the program where the next one
would begin if one began here; the true ones are those that are met from the first byte on. They are followed sixteen at a time, and
those between are filled in. What operations do to address, line and file is then sums that start anew where an operation sets them.
Programs with the same table of operations are run one behind another, since most are too short for arrays of their own.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from server.symbols.dwarf.lebs import MAX_LEB_BYTES, numbers, slebs, ulebs
from server.symbols.dwarf.line_header import LineHeader

I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]
U8 = npt.NDArray[np.uint8]

END = (1 << 64) - 1
"""A row that ends a sequence."""
WINDOW_BYTES = 1 << 18
"""What is worked out for each byte of it stays in the processor's cache."""
LONGEST_BYTES = 1 << 14
"""An operation with more ends the program."""
LEAPS = 4
"""Operations are followed 2**LEAPS at a time."""

_COPY, _ADVANCE_PC, _ADVANCE_LINE, _SET_FILE, _SET_COLUMN, _NEGATE, _BLOCK, _CONST_PC, _FIXED_PC = range(1, 10)
_EXTENDED_END, _EXTENDED_ADDRESS = 1, 2
_NOTHING, _ROW, _FAR, _LINE, _FILE, _EXTENDED, _FIXED = range(7)
_STANDARD = {
    0: (_EXTENDED, 0),
    _COPY: (_ROW, 0),
    _ADVANCE_PC: (_FAR, 1),
    _ADVANCE_LINE: (_LINE, 1),
    _SET_FILE: (_FILE, 1),
    _SET_COLUMN: (_NOTHING, 1),
    _CONST_PC: (_NOTHING, 0),
    _FIXED_PC: (_FIXED, 0),
}
"""What it means, and its LEB128 operands."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """What came of a window: rows that change something, a place being file << 32 | line, or END."""

    addresses: U64
    places: U64
    begins: I64
    """Rows that are the first of a program (or would be)."""


@dataclass(frozen=True, slots=True)
class _State:
    """The registers between two windows; arrays of one number, which do not overflow."""

    address: U64
    line: U64
    file: U64
    last: U64
    """The row before."""


@dataclass(frozen=True, slots=True)
class _Window:
    """Operations of a window."""

    data: U8
    starts: I64
    """Where they begin."""
    meanings: U8
    programs: I64
    """Which program each belongs to."""
    begins: I64
    """Operations that are the first of a program (or would be)."""
    begun: I64
    """The programs that begin there."""


class LinePrograms:
    """Programs with one table of operations."""

    def __init__(self, header: LineHeader, byte_order: str) -> None:
        self._byte_order = byte_order
        self._step = np.uint64(header.instruction_bytes)
        base = header.opcode_base
        special = np.arange(256 - base)
        self._advance, self._increase = np.zeros(256, np.uint64), np.zeros(256, np.int64)
        self._advance[base:] = special // header.line_range * header.instruction_bytes
        self._increase[base:] = header.line_base + special % header.line_range
        known = [_STANDARD.get(operation) or (_NOTHING, header.lengths[operation - 1]) for operation in range(base)]
        self._meanings = bytes(meaning for meaning, _ in known).ljust(256, bytes([_ROW]))
        """What each operation means."""
        self._operands = bytes(operands for _, operands in known).ljust(256, b"\0")
        if base > _CONST_PC:
            self._advance[_CONST_PC] = self._advance[255]
        self._texts: list[bytes] = []
        self._files: list[list[int]] = []

    def add(self, program: bytes, files: list[int]) -> None:
        """One more program; `files` are numbers in the whole debug data by number in this program."""
        self._texts.append(program)
        self._files.append(files)

    def run(self) -> Iterator[Pieces]:
        """All rows of all programs, in their order. A program that breaks gives what is before."""
        files = _Files(self._files)
        bounds = np.cumsum([0, *[len(text) for text in self._texts]])
        data = np.frombuffer(b"".join(self._texts), np.uint8)
        none = np.zeros(1, np.uint64)
        state, place = _State(none, none, none, none), 0
        while place < data.size:
            window, behind = self._window(data[place : place + WINDOW_BYTES + LONGEST_BYTES], bounds - place)
            if window.starts.size or window.begins.size:
                pieces, state = self._rows(window, files, state)
                yield pieces
            place += behind

    def _window(self, data: U8, bounds: I64) -> tuple[_Window, int]:
        """The operations of a window, and where the next window begins. `bounds` are those of the programs."""
        size = data.size
        following, is_cut, meanings = self._following(data, bounds)
        leaps = [np.minimum(following, size)]
        for _ in range(LEAPS):
            leaps.append(leaps[-1][leaps[-1]])
        most = min(size, WINDOW_BYTES)
        far, place, met = leaps.pop().data, 0, []
        while place < most:
            met.append(place)
            place = far[place]
        starts = np.array(met, np.int64)
        for leap in reversed(leaps):
            between = np.empty((starts.size, 2), np.int64)
            between[:, 0], between[:, 1] = starts, leap[starts]
            starts = between.ravel()
        starts = starts[: int(np.searchsorted(starts, most))]
        behind = int(following[starts[-1]])
        starts = starts[~is_cut[starts]]
        low, high = np.searchsorted(bounds[:-1], [0, behind])
        begins = np.searchsorted(starts, bounds[low:high])
        programs = np.searchsorted(bounds, starts, "right") - 1
        return _Window(data, starts, meanings[starts], programs, begins, np.arange(low, high)), behind

    def _following(self, data: U8, bounds: I64) -> tuple[I64, npt.NDArray[np.bool_], U8]:
        """For each byte where the next operation begins if one begins here, whether this one is cut (its program ends
        then), and what it means.

        The end of the data leads to itself.
        """
        size = data.size
        following = np.arange(1, size + 2)
        following[size] = size
        is_last = data < 0x80
        ends, before = np.flatnonzero(is_last), np.cumsum(is_last)
        text = data.tobytes()
        operands = np.frombuffer(text.translate(self._operands), np.uint8)
        some = np.flatnonzero(operands)
        wanted = operands[some].astype(np.int64)
        last = before[some] + wanted - 1
        reach = ends[np.minimum(last, ends.size - 1)] + 1 if ends.size else some
        far = int(bounds[-1]) + 1
        is_long = (last >= ends.size) | (reach - some > MAX_LEB_BYTES * wanted + 1)
        following[some] = np.where(is_long, far, reach)
        meanings = np.frombuffer(text.translate(self._meanings), np.uint8)
        some = np.flatnonzero(meanings == _FIXED)
        following[some] = some + 3
        some = np.flatnonzero(meanings == _EXTENDED)
        length, behind = ulebs(data, some + 1)
        following[some] = np.where(behind > some + 1, behind + np.minimum(length, np.uint64(LONGEST_BYTES)).astype(np.int64), far)
        inside = np.clip(bounds, 0, size)
        limits = np.repeat(bounds[1:], np.diff(inside))
        is_cut = (following[:size] > limits) | (following[:size] > size)
        following[:size][is_cut] = limits[is_cut]
        return following, is_cut, meanings

    def _rows(self, window: _Window, files: "_Files", state: _State) -> tuple[Pieces, _State]:
        data, starts = window.data, window.starts
        operations = data[starts].astype(np.int64)
        meanings = window.meanings
        advance, increase = self._advance[operations], self._increase[operations]
        some = np.flatnonzero(meanings == _FAR)
        advance[some] = ulebs(data, starts[some] + 1)[0] * self._step
        some = np.flatnonzero(meanings == _FIXED)
        advance[some] = numbers(data, starts[some] + 1, 2, self._byte_order)
        some = np.flatnonzero(meanings == _LINE)
        increase[some] = slebs(data, starts[some] + 1)[0]
        ends, placed, addresses = self._extended(data, starts, np.flatnonzero(meanings == _EXTENDED))
        meanings[ends] = _ROW
        rows, named = np.flatnonzero(meanings == _ROW), np.flatnonzero(meanings == _FILE)
        anew, programs = np.concatenate([ends + 1, window.begins]), np.concatenate([window.programs[ends], window.begun])
        none = np.zeros(anew.size, np.uint64)
        address, last_address = _sums(advance, rows, ((placed + 1, addresses), (anew, none)), state.address)
        line, last_line = _sums(increase.view(np.uint64), rows, ((anew, none + np.uint64(1)),), state.line)
        chosen = files.places(window.programs[named], ulebs(data, starts[named] + 1)[0])
        file, last_file = _sums(None, rows, ((named + 1, chosen), (anew, files.places(programs, none + np.uint64(1)))), state.file)
        places = file | line & np.uint64(0xFFFF_FFFF)
        is_end = np.zeros(starts.size, np.bool_)
        is_end[ends] = True
        places[is_end[rows]] = END
        keep = np.diff(places, prepend=state.last) != 0
        keep |= is_end[rows]
        begins = np.searchsorted(rows, window.begins)
        keep[begins[begins < rows.size]] = True
        kept = np.concatenate([[0], np.cumsum(keep)])
        last = np.full(1, END, np.uint64) if (begins == rows.size).any() else np.concatenate([state.last, places])[-1:]
        return Pieces(address[keep], places[keep], kept[begins]), _State(last_address, last_line, last_file, last)

    def _extended(self, data: U8, starts: I64, some: I64) -> tuple[I64, I64, U64]:
        """Of extended operations: those that end a sequence, those that set the address, and to what."""
        lengths, behind = ulebs(data, starts[some] + 1)
        kinds = np.where(lengths > 0, data[np.minimum(behind, data.size - 1)], 0)
        setting = np.flatnonzero(kinds == _EXTENDED_ADDRESS)
        widths = np.minimum(lengths[setting] - np.uint64(1), np.uint64(8)).astype(np.int64)
        addresses = np.zeros(setting.size, np.uint64)
        for width in np.unique(widths).tolist():
            those = np.flatnonzero(widths == width)
            addresses[those] = numbers(data, behind[setting[those]] + 1, width, self._byte_order)
        return some[kinds == _EXTENDED_END], some[setting], addresses


class _Files:
    """Files of all programs, as they stand in a place."""

    def __init__(self, files: list[list[int]]) -> None:
        self._sizes = np.array([len(some) for some in files], np.int64)
        self._bounds = np.cumsum(self._sizes) - self._sizes
        self._known = np.array([number for some in files for number in some] + [0], np.uint64) << np.uint64(32)

    def places(self, programs: I64, numbers: U64) -> U64:
        """The file with each number in a program; 0 for numbers that it does not have."""
        is_known = numbers < self._sizes[programs].astype(np.uint64)
        return self._known[np.where(is_known, self._bounds[programs] + numbers.astype(np.int64), self._known.size - 1)]


def _sums(steps: U64 | None, rows: I64, changes: tuple[tuple[I64, U64], ...], first: U64) -> tuple[U64, U64]:
    """A register at each row, and behind all operations: it grows by `steps` (None: not at all), and from operation i on counts
    from what `changes` sets it to there; of several changes at one operation the last counts.
    """
    at, to = np.concatenate([at for at, _ in changes]), np.concatenate([to for _, to in changes])
    order = np.argsort(at, kind="stable")
    at, to = at[order], to[order]
    counts = np.diff(np.searchsorted(rows, at), prepend=0, append=rows.size)
    if steps is None:
        bases = np.concatenate([first, to])
        return np.repeat(bases, counts), bases[-1:]
    total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(steps)])
    bases = np.concatenate([first, to - total[at]])
    return np.repeat(bases, counts) + total[rows + 1], bases[-1:] + total[-1:]

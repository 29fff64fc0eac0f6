# SPDX-License-Identifier: Apache-2.0
"""Decodes all FDEs of a file at once: each step runs the next instruction of every FDE, as columns in numpy.

FDEs are short and alike, so a file of 100,000 takes some hundred steps instead of a million turns of a Python loop. Rare instructions, all
that is odd, and the last few long FDEs are handed over, as they stand, to scalar.py, which gives every instruction its meaning.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from agent.records.unwind import BP_SHIFT, MAX_BP_WORDS, OFFSET_MASK, OFFSET_SHIFT, RuleKind, TableMiss, UnwindTable
from agent.unwind.cfi import (
    BP_UNKNOWN,
    CFA_KINDS,
    RA_BELOW_CFA,
    RA_ELSEWHERE,
    RA_NONE,
    RBP,
    RIP,
    Cfa,
    State,
    rule_of,
)
from agent.unwind.eh_frame import DecodeRefused, EhFrame
from agent.unwind.entries import Entries, Ints, read_entries, unsigned_lebs
from agent.unwind.rows import RawRows, table_from_rows
from agent.unwind.scalar import Run, initial_state

MAX_RAW_ROWS = 1 << 23
"""Ten times what the largest libraries have."""
FEWEST_LANES = 48
"""With fewer FDEs under way a step in numpy is dearer than scalar.py."""
_KEPT = 4
"""States that DW_CFA_remember_state keeps here; deeper ones are handed over."""
_OPCODES = np.arange(256)
_RARE = 255

Lanes = npt.NDArray[np.intp]
Bytes = npt.NDArray[np.uint8]


def decode(frame: EhFrame, fewest_lanes: int = FEWEST_LANES) -> UnwindTable:
    """The table. Raises DecodeRefused."""
    entries = read_entries(frame)
    if not len(entries.start):
        raise DecodeRefused(TableMiss.NO_RULES, "no FDE covers text")
    return _Machine(frame, entries).run(fewest_lanes)


class _Columns:
    """State of many FDEs: cfi.State as columns."""

    __slots__ = ("bp", "kind", "offset", "ra")

    def __init__(self, states: list[State]) -> None:
        self.kind = np.array([state.kind for state in states], np.int8)
        self.offset = np.array([state.offset for state in states], np.int64)
        self.bp = np.array([state.bp for state in states], np.int32)
        self.ra = np.array([state.ra for state in states], np.int8)

    def take(self, rows: Ints | Lanes) -> "_Columns":
        taken = _Columns([])
        for name in self.__slots__:
            setattr(taken, name, getattr(self, name)[rows])
        return taken

    def put(self, rows: Lanes, values: "_Columns") -> None:
        for name in self.__slots__:
            getattr(self, name)[rows] = getattr(values, name)

    def state(self, row: int) -> State:
        return State(*(int(getattr(self, name)[row]) for name in ("kind", "offset", "bp", "ra")))

    def rules(self) -> npt.NDArray[np.uint32]:
        """rule_of for each row."""
        is_plain = (self.kind == RuleKind.SP) | (self.kind == RuleKind.BP)
        words = self.offset >> 3
        fits = (self.ra == RA_BELOW_CFA) & (self.offset & 7 == 0) & (words >= 0) & (words <= OFFSET_MASK)
        fits &= is_plain & (self.bp >= 0) & (self.bp <= MAX_BP_WORDS)
        found = (self.kind.astype(np.int64) | words << OFFSET_SHIFT | self.bp.astype(np.int64) << BP_SHIFT).astype(np.uint32)
        found[~fits] = RuleKind.UNSUPPORTED
        found[self.ra == RA_NONE] = RuleKind.END
        # All others are few: expressions, and what is not supported.
        for row in np.flatnonzero(~fits & (self.ra != RA_NONE)).tolist():
            found[row] = rule_of(self.state(row))
        return found


class _Machine:
    """One run over all FDEs; a lane is the index of an FDE."""

    def __init__(self, frame: EhFrame, entries: Entries) -> None:
        self._frame = frame
        self._entries = entries
        self._bytes = np.frombuffer(frame.data + bytes(16), np.uint8)
        factors = np.array([(cie.code_factor, cie.data_factor) for cie in entries.cies], np.int64)
        self._code_factor, self._data_factor = factors[entries.cie].T.copy()
        self._initial_states = [initial_state(frame, cie) for cie in entries.cies]
        self._initial = _Columns(self._initial_states).take(entries.cie)
        count = len(entries.start)
        self._now = self._initial.take(np.arange(count))
        self._kept = [self._initial.take(np.arange(count)) for _ in range(_KEPT)]
        self._depth = np.zeros(count, np.int8)
        self._at = entries.program_start.copy()
        self._address = entries.start.copy()
        self._is_handed = np.zeros(count, bool)
        self._rows: list[tuple[Ints, npt.NDArray[np.uint32], Ints]] = []
        self._row_count = 0

    def run(self, fewest_lanes: int) -> UnwindTable:
        ends = self._entries.program_end
        active = np.flatnonzero(self._at < ends)
        while len(active) >= fewest_lanes:
            self._step(active)
            active = active[(self._at[active] < ends[active]) & ~self._is_handed[active]]
        self._is_handed[active] = True
        self._emit(np.flatnonzero(~self._is_handed))
        self._finish_handed()
        columns = (np.concatenate(column) for column in zip(*self._rows, strict=True))
        return table_from_rows(RawRows(*columns), self._entries.start, self._entries.end)

    def _step(self, active: Lanes) -> None:
        """Run one instruction in each lane of `active`."""
        opcode = self._bytes[self._at[active]]
        group = _GROUP_OF[opcode]
        for number in np.flatnonzero(np.bincount(group, minlength=256)).tolist():
            chosen = np.flatnonzero(group == number)
            lanes = active[chosen]
            if number == _RARE:
                self._is_handed[lanes] = True
            else:
                _GROUPS[number][1](self, lanes, opcode[chosen])

    def _settle(self, lanes: Lanes, after: Ints) -> npt.NDArray[np.bool_]:
        """Go on behind the instruction; lanes where it reaches out of the FDE are handed over in front of it. True: went on."""
        is_fine = after <= self._entries.program_end[lanes]
        self._at[lanes[is_fine]] = after[is_fine]
        self._is_handed[lanes[~is_fine]] = True
        return is_fine

    def _emit(self, lanes: Lanes) -> None:
        self._row_count += len(lanes)
        if self._row_count > MAX_RAW_ROWS:
            raise DecodeRefused(TableMiss.TOO_LARGE, f"over {MAX_RAW_ROWS} rows")
        self._rows.append((self._address[lanes], self._now.take(lanes).rules(), lanes.astype(np.int64)))

    def _finish_handed(self) -> None:
        for lane in np.flatnonzero(self._is_handed).tolist():
            cie = int(self._entries.cie[lane])
            run = Run(
                self._frame.data[int(self._at[lane]) : int(self._entries.program_end[lane])],
                self._entries.cies[cie],
                self._initial_states[cie],
                int(self._address[lane]),
                self._now.state(lane),
                [self._kept[depth].state(lane) for depth in range(int(self._depth[lane]))],
            )
            run.finish()
            self._row_count += len(run.rows)
            if self._row_count > MAX_RAW_ROWS:
                raise DecodeRefused(TableMiss.TOO_LARGE, f"over {MAX_RAW_ROWS} rows")
            addresses, rules = zip(*run.rows, strict=True)
            self._rows.append((np.array(addresses, np.int64), np.array(rules, np.uint32), np.full(len(addresses), lane, np.int64)))

    def _nop(self, lanes: Lanes, _: Bytes) -> None:
        self._at[lanes] += 1

    def _advance(self, lanes: Lanes, opcode: Bytes) -> None:
        self._emit(lanes)
        self._address[lanes] += (opcode & 0x3F) * self._code_factor[lanes]
        self._at[lanes] += 1

    def _advance_far(self, lanes: Lanes, width: int) -> None:
        at = self._at[lanes] + 1
        is_fine = self._settle(lanes, at + width)
        lanes, at = lanes[is_fine], at[is_fine]
        self._emit(lanes)
        steps = sum(self._bytes[at + index].astype(np.int64) << 8 * index for index in range(width))
        self._address[lanes] += steps * self._code_factor[lanes]

    def _offset(self, lanes: Lanes, opcode: Bytes) -> None:
        value, after = unsigned_lebs(self._bytes, self._at[lanes] + 1)
        is_fine = self._settle(lanes, after)
        register, offset = opcode & 0x3F, value * self._data_factor[lanes]
        is_bp, is_ip = is_fine & (register == RBP), is_fine & (register == RIP)
        is_word = (offset < 0) & (offset & 7 == 0)
        self._now.bp[lanes[is_bp]] = np.where(is_word, -offset >> 3, BP_UNKNOWN)[is_bp]
        self._now.ra[lanes[is_ip]] = np.where(offset == -8, RA_BELOW_CFA, RA_ELSEWHERE)[is_ip]

    def _restore(self, lanes: Lanes, opcode: Bytes) -> None:
        register = opcode & 0x3F
        for number, now, initial in ((RBP, self._now.bp, self._initial.bp), (RIP, self._now.ra, self._initial.ra)):
            chosen = lanes[register == number]
            now[chosen] = initial[chosen]
        self._at[lanes] += 1

    def _define(self, lanes: Lanes, _: Bytes) -> None:
        register, after = unsigned_lebs(self._bytes, self._at[lanes] + 1)
        offset, after = unsigned_lebs(self._bytes, np.minimum(after, len(self._bytes) - 8))
        is_fine = self._settle(lanes, after)
        self._now.kind[lanes[is_fine]] = _KIND_OF[np.minimum(register, 255)][is_fine]
        self._now.offset[lanes[is_fine]] = offset[is_fine]

    def _define_register(self, lanes: Lanes, _: Bytes) -> None:
        register, after = unsigned_lebs(self._bytes, self._at[lanes] + 1)
        is_fine = self._settle(lanes, after)
        self._now.kind[lanes[is_fine]] = _KIND_OF[np.minimum(register, 255)][is_fine]

    def _define_offset(self, lanes: Lanes, _: Bytes) -> None:
        offset, after = unsigned_lebs(self._bytes, self._at[lanes] + 1)
        is_fine = self._settle(lanes, after)
        self._now.offset[lanes[is_fine]] = offset[is_fine]

    def _skip_number(self, lanes: Lanes, _: Bytes) -> None:
        self._settle(lanes, unsigned_lebs(self._bytes, self._at[lanes] + 1)[1])

    def _remember(self, lanes: Lanes, _: Bytes) -> None:
        for depth in range(_KEPT):
            chosen = lanes[self._depth[lanes] == depth]
            self._kept[depth].put(chosen, self._now.take(chosen))
        is_deep = self._depth[lanes] >= _KEPT
        self._is_handed[lanes[is_deep]] = True
        lanes = lanes[~is_deep]
        self._depth[lanes] += 1
        self._at[lanes] += 1

    def _restore_state(self, lanes: Lanes, _: Bytes) -> None:
        is_empty = self._depth[lanes] == 0
        self._is_handed[lanes[is_empty]] = True
        lanes = lanes[~is_empty]
        self._depth[lanes] -= 1
        for depth in range(_KEPT):
            chosen = lanes[self._depth[lanes] == depth]
            self._now.put(chosen, self._kept[depth].take(chosen))
        self._at[lanes] += 1


_KIND_OF = np.full(256, RuleKind.UNSUPPORTED, np.int8)
_KIND_OF[list(CFA_KINDS)] = list(CFA_KINDS.values())
_GROUPS: tuple[tuple[npt.NDArray[np.bool_], Callable[[_Machine, Lanes, Bytes], None]], ...] = (
    (_OPCODES & 0xC0 == Cfa.ADVANCE, _Machine._advance),
    (_OPCODES & 0xC0 == Cfa.OFFSET, _Machine._offset),
    (_OPCODES & 0xC0 == Cfa.RESTORE, _Machine._restore),
    (_OPCODES == Cfa.NOP, _Machine._nop),
    (_OPCODES == Cfa.ADVANCE_1, lambda machine, lanes, _: machine._advance_far(lanes, 1)),
    (_OPCODES == Cfa.ADVANCE_2, lambda machine, lanes, _: machine._advance_far(lanes, 2)),
    (_OPCODES == Cfa.ADVANCE_4, lambda machine, lanes, _: machine._advance_far(lanes, 4)),
    (_OPCODES == Cfa.DEFINE, _Machine._define),
    (_OPCODES == Cfa.DEFINE_REGISTER, _Machine._define_register),
    (_OPCODES == Cfa.DEFINE_OFFSET, _Machine._define_offset),
    (_OPCODES == Cfa.ARGUMENTS_SIZE, _Machine._skip_number),
    (_OPCODES == Cfa.REMEMBER, _Machine._remember),
    (_OPCODES == Cfa.RESTORE_STATE, _Machine._restore_state),
)
"""Which opcodes a step takes together, and what runs them; all others are rare."""
_GROUP_OF = np.full(256, _RARE, np.uint8)
for _number, (_members, _) in enumerate(_GROUPS):
    _GROUP_OF[_members] = _number

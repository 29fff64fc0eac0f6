# SPDX-License-Identifier: Apache-2.0
"""Runs call frame instructions one at a time: the meaning of every instruction, and the reference that lockstep.py is held to.

What makes no sense (an unknown instruction, an operand that reaches out of the entry, a state restored that was never kept) makes the
rest of its FDE UNSUPPORTED and touches nothing else.
"""

import struct
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from operator import itemgetter

import numpy as np

from agent.records.unwind import RuleKind, UnwindTable
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
    bp_from_expression,
    bp_from_offset,
    cfa_from_expression,
    read_block,
    rule_of,
)
from agent.unwind.eh_frame import EhFrame
from agent.unwind.entries import Cie, read_entries
from agent.unwind.leb import LebError, signed_leb, unsigned_leb
from agent.unwind.rows import LEAST_HOLE_BYTES

MAX_KEPT_STATES = 64


class _NonsenseError(Exception):
    """The instruction makes no sense."""


@dataclass(slots=True)
class Run:
    """A program under way."""

    data: bytes
    """The instructions, and nothing else."""
    cie: Cie
    initial: State
    """What DW_CFA_restore goes back to."""
    address: int
    state: State
    kept: list[State] = field(default_factory=list)
    at: int = 0
    rows: list[tuple[int, int]] = field(default_factory=list)
    """(address, rule), ascending; of two at one address the later holds."""

    def finish(self) -> None:
        """Run to the end; the last row is the state that holds up to the end of the FDE."""
        while self.at < len(self.data):
            begin = copy(self.state)
            try:
                self._step()
            except (_NonsenseError, LebError, IndexError, struct.error):
                self.state = begin
                self.state.kind, self.state.ra = RuleKind.UNSUPPORTED, RA_ELSEWHERE
                break
        self._emit()

    def _emit(self) -> None:
        self.rows.append((self.address, rule_of(self.state)))

    def _step(self) -> None:
        opcode = self.data[self.at]
        self.at += 1
        high, low = opcode & 0xC0, opcode & 0x3F
        if high == Cfa.ADVANCE:
            self._advance(low)
        elif high == Cfa.OFFSET:
            self._save_at(low, self._unsigned() * self.cie.data_factor)
        elif high == Cfa.RESTORE:
            self._restore(low)
        elif opcode in _STEPS:
            _STEPS[opcode](self)
        elif opcode != Cfa.NOP:
            raise _NonsenseError

    def _advance(self, steps: int) -> None:
        self._emit()
        self.address += steps * self.cie.code_factor

    def _fixed(self, layout: str) -> int:
        value: int = struct.unpack_from(layout, self.data, self.at)[0]
        self.at += struct.calcsize(layout)
        return value

    def _unsigned(self) -> int:
        value, self.at = unsigned_leb(self.data, self.at)
        return value

    def _signed(self) -> int:
        value, self.at = signed_leb(self.data, self.at)
        return value

    def _block(self) -> bytes:
        block, self.at = read_block(self.data, self.at)
        return block

    def _save_at(self, register: int, offset_bytes: int) -> None:
        if register == RBP:
            self.state.bp = bp_from_offset(offset_bytes)
        elif register == RIP:
            self.state.ra = RA_BELOW_CFA if offset_bytes == -8 else RA_ELSEWHERE

    def _lose(self, register: int) -> None:
        """The register lies somewhere that rules cannot say."""
        if register == RBP:
            self.state.bp = BP_UNKNOWN
        elif register == RIP:
            self.state.ra = RA_ELSEWHERE

    def _restore(self, register: int) -> None:
        if register == RBP:
            self.state.bp = self.initial.bp
        elif register == RIP:
            self.state.ra = self.initial.ra

    def _undefine(self, register: int) -> None:
        # rbp is undefined only where there is no caller that could want it.
        if register == RBP:
            self.state.bp = 0
        elif register == RIP:
            self.state.ra = RA_NONE

    def _same(self, register: int) -> None:
        if register == RBP:
            self.state.bp = 0
        elif register == RIP:
            self.state.ra = RA_ELSEWHERE

    def _define(self, register: int, offset_bytes: int) -> None:
        self.state.kind = CFA_KINDS.get(register, RuleKind.UNSUPPORTED)
        self.state.offset = offset_bytes

    def _define_register(self) -> None:
        self.state.kind = CFA_KINDS.get(self._unsigned(), RuleKind.UNSUPPORTED)

    def _define_offset(self, offset_bytes: int) -> None:
        self.state.offset = offset_bytes

    def _define_expression(self) -> None:
        self.state.kind, self.state.offset = cfa_from_expression(self._block())

    def _expression(self) -> None:
        register, block = self._unsigned(), self._block()
        self._lose(register)
        if register == RBP:
            self.state.bp = bp_from_expression(block)

    def _value_expression(self) -> None:
        register, _ = self._unsigned(), self._block()
        self._lose(register)

    def _value_offset(self, number: Callable[["Run"], int]) -> None:
        register, _ = self._unsigned(), number(self)
        self._lose(register)

    def _skip(self) -> None:
        self._unsigned()

    def _register(self) -> None:
        register, _ = self._unsigned(), self._unsigned()
        self._lose(register)

    def _remember(self) -> None:
        if len(self.kept) >= MAX_KEPT_STATES:
            raise _NonsenseError
        self.kept.append(copy(self.state))

    def _restore_state(self) -> None:
        if not self.kept:
            raise _NonsenseError
        self.state = self.kept.pop()


_STEPS: dict[int, Callable[[Run], None]] = {
    Cfa.ADVANCE_1: lambda run: run._advance(run._fixed("<B")),
    Cfa.ADVANCE_2: lambda run: run._advance(run._fixed("<H")),
    Cfa.ADVANCE_4: lambda run: run._advance(run._fixed("<I")),
    Cfa.OFFSET_EXTENDED: lambda run: run._save_at(run._unsigned(), run._unsigned() * run.cie.data_factor),
    Cfa.OFFSET_EXTENDED_SIGNED: lambda run: run._save_at(run._unsigned(), run._signed() * run.cie.data_factor),
    Cfa.NEGATIVE_OFFSET_EXTENDED: lambda run: run._save_at(run._unsigned(), -run._unsigned() * run.cie.data_factor),
    Cfa.RESTORE_EXTENDED: lambda run: run._restore(run._unsigned()),
    Cfa.UNDEFINED: lambda run: run._undefine(run._unsigned()),
    Cfa.SAME_VALUE: lambda run: run._same(run._unsigned()),
    Cfa.REGISTER: Run._register,
    Cfa.REMEMBER: Run._remember,
    Cfa.RESTORE_STATE: Run._restore_state,
    Cfa.DEFINE: lambda run: run._define(run._unsigned(), run._unsigned()),
    Cfa.DEFINE_SIGNED: lambda run: run._define(run._unsigned(), run._signed() * run.cie.data_factor),
    Cfa.DEFINE_REGISTER: Run._define_register,
    Cfa.DEFINE_OFFSET: lambda run: run._define_offset(run._unsigned()),
    Cfa.DEFINE_OFFSET_SIGNED: lambda run: run._define_offset(run._signed() * run.cie.data_factor),
    Cfa.DEFINE_EXPRESSION: Run._define_expression,
    Cfa.EXPRESSION: Run._expression,
    Cfa.VALUE_EXPRESSION: Run._value_expression,
    Cfa.VALUE_OFFSET: lambda run: run._value_offset(Run._unsigned),
    Cfa.VALUE_OFFSET_SIGNED: lambda run: run._value_offset(Run._signed),
    Cfa.ARGUMENTS_SIZE: lambda run: run._skip(),
}


def initial_state(frame: EhFrame, cie: Cie) -> State:
    """The state after the instructions of the CIE."""
    start, end = cie.program
    run = Run(frame.data[start:end], cie, State(), 0, State())
    run.finish()
    return run.state


def decode_scalar(frame: EhFrame) -> UnwindTable:
    """The table, slowly. Raises DecodeRefused."""
    entries = read_entries(frame)
    initial = [initial_state(frame, cie) for cie in entries.cies]
    columns = (entries.start, entries.end, entries.program_start, entries.program_end, entries.cie)
    fdes = sorted(zip(*(column.tolist() for column in columns), strict=True), key=itemgetter(0))
    rule_at: dict[int, int] = {}
    for index, (start, end, program_start, program_end, cie) in enumerate(fdes):
        following = fdes[index + 1][0] if index + 1 < len(fdes) else None
        stop = end if following is None else min(end, following)
        run = Run(frame.data[program_start:program_end], entries.cies[cie], initial[cie], start, copy(initial[cie]))
        run.finish()
        rule_at |= {address: found for address, found in run.rows if address < stop}
        if following is None or stop + LEAST_HOLE_BYTES <= following:
            rule_at[stop] = RuleKind.NONE
    rows = sorted(rule_at.items())
    rows = [row for index, row in enumerate(rows) if index == 0 or row[1] != rows[index - 1][1]]
    return UnwindTable(np.array([row[0] for row in rows], np.uint64), np.array([row[1] for row in rows], np.uint32))

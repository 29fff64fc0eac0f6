# SPDX-License-Identifier: Apache-2.0
"""Unwind tables: what holds at each address of a binary, small enough for the kernel.

A rule is one u32 and says how to get from a frame to its caller (x86-64; the return address always lies in the word below the CFA):

    bits  0-2   RuleKind
    bits  3-18  offset in words of 8 bytes: unsigned for SP, BP; signed for DEREF; a count of bytes for PLT; else 0
    bit   19    DEREF only: based on rsp instead of rbp
    bits 20-31  where the caller's rbp lies, in words below the CFA; 0 = rbp is unchanged

    SP          CFA = rsp + 8 * offset
    BP          CFA = rbp + 8 * offset
    PLT         CFA = rsp + 8 + (8 if (rip & 15) >= offset else 0); rbp is unchanged
    SIGNAL      rsp points at a struct rt_sigframe's ucontext: rip = [rsp + 168], rsp = [rsp + 160], rbp = [rsp + 120]
    DEREF       CFA = [rbp + 8 * offset], the caller's rbp is [rbp]     (a stack realigned by gcc)
    DEREF + 19  CFA = [rsp + 8 * offset] + 8, rbp by bits 20-31         (OpenSSL's assembly)
    END         the outermost frame: there is no caller
    UNSUPPORTED there is a rule, and it is none of these; bits 3-31 are 0, or it holds only where the CPU itself was, whose registers
                are all known: CFA = register + 8 * offset, offset in bits 3-14, DWARF number of the register in bits 15-18
    NONE        no rule: a hole between functions that have some
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

OFFSET_SHIFT = 3
OFFSET_MASK = 0xFFFF
SP_BASE_BIT = 1 << 19
BP_SHIFT = 20
REGISTER_SHIFT = 12
"""Within the offset of UNSUPPORTED."""
MAX_REGISTER_WORDS = 0xFFF
MAX_BP_WORDS = 0xFFF


class RuleKind(IntEnum):
    """The lowest three bits of a rule."""

    NONE = 0
    SP = 1
    BP = 2
    PLT = 3
    SIGNAL = 4
    DEREF = 5
    END = 6
    UNSUPPORTED = 7


class TableMiss(IntEnum):
    """Why there is no table."""

    PENDING = 1
    """It is being made: ask again."""
    NO_RULES = 2
    """The file has no .eh_frame, or an empty one."""
    NOT_SUPPORTED = 3
    """Not an ELF64 file for x86-64, or its .eh_frame is written in a way no compiler for it does."""
    MALFORMED = 4
    TOO_LARGE = 5
    """It met a limit in bytes, rows or seconds."""
    UNREADABLE = 6
    """The file could not be opened or read."""
    FAILED = 7
    """The decoding process could not be started, could not give up its rights, or was ended from outside."""


@dataclass(frozen=True, slots=True)
class UnwindTable:
    """Rules of a binary. Row i holds from addresses[i] up to addresses[i + 1]; the last row is NONE, and so is each row over a hole."""

    addresses: npt.NDArray[np.uint64]
    """Ascending and distinct, in the address space of the program headers."""
    rules: npt.NDArray[np.uint32]
    """One for each address; neighbours differ."""


def rule(kind: RuleKind, offset_words: int = 0, bp_words: int = 0, *, sp_base: bool = False) -> int:
    """Pack one rule; the parts must fit (`DEREF` takes negative offsets)."""
    assert -0x8000 <= offset_words <= OFFSET_MASK and 0 <= bp_words <= MAX_BP_WORDS
    return kind | (offset_words & OFFSET_MASK) << OFFSET_SHIFT | (SP_BASE_BIT if sp_base else 0) | bp_words << BP_SHIFT

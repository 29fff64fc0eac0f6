# SPDX-License-Identifier: Apache-2.0
"""Call frame instructions (DWARF 5, 6.4.2 and 7.24), the state they change, and the rule that a state amounts to.

Of all registers only rsp, rbp and the return address matter; what the kernel cannot follow becomes UNSUPPORTED, never a guess.
"""

from dataclasses import dataclass
from enum import IntEnum

from agent.records.unwind import MAX_BP_WORDS, MAX_REGISTER_WORDS, OFFSET_MASK, REGISTER_SHIFT, RuleKind, rule
from agent.unwind.leb import LebError, signed_leb, unsigned_leb

RBP, RSP, RIP = 6, 7, 16
DEREF_SP = 8
"""A CFA kept behind a word on the stack: RuleKind.DEREF with bit 19."""
IN_REGISTER = 16
"""Added to the number of a register that the CFA is counted from, other than rsp and rbp."""
CFA_KINDS: dict[int, int] = {number: IN_REGISTER + number for number in range(RIP)} | {RSP: RuleKind.SP, RBP: RuleKind.BP}
BP_UNKNOWN, BP_AT_RBP = -1, -2
"""Values of State.bp beside the number of words below the CFA (0: unchanged): rbp lies elsewhere; it lies at [rbp]."""
RA_BELOW_CFA, RA_NONE, RA_ELSEWHERE = 0, 1, 2
"""Values of State.ra: the word below the CFA; undefined, so this is the outermost frame; anything else."""


class Cfa(IntEnum):
    """DW_CFA_*. The first three hold a number in their lower six bits."""

    ADVANCE = 0x40
    OFFSET = 0x80
    RESTORE = 0xC0
    NOP = 0x00
    SET_LOCATION = 0x01
    ADVANCE_1 = 0x02
    ADVANCE_2 = 0x03
    ADVANCE_4 = 0x04
    OFFSET_EXTENDED = 0x05
    RESTORE_EXTENDED = 0x06
    UNDEFINED = 0x07
    SAME_VALUE = 0x08
    REGISTER = 0x09
    REMEMBER = 0x0A
    RESTORE_STATE = 0x0B
    DEFINE = 0x0C
    DEFINE_REGISTER = 0x0D
    DEFINE_OFFSET = 0x0E
    DEFINE_EXPRESSION = 0x0F
    EXPRESSION = 0x10
    OFFSET_EXTENDED_SIGNED = 0x11
    DEFINE_SIGNED = 0x12
    DEFINE_OFFSET_SIGNED = 0x13
    VALUE_OFFSET = 0x14
    VALUE_OFFSET_SIGNED = 0x15
    VALUE_EXPRESSION = 0x16
    ARGUMENTS_SIZE = 0x2E
    NEGATIVE_OFFSET_EXTENDED = 0x2F


@dataclass(slots=True)
class State:
    """What holds at one address."""

    kind: int = RuleKind.UNSUPPORTED
    """RuleKind of the CFA, DEREF_SP, or IN_REGISTER and more."""
    offset: int = 0
    """Of the CFA, bytes."""
    bp: int = 0
    ra: int = RA_BELOW_CFA


def bp_from_offset(offset_bytes: int) -> int:
    """State.bp for a register saved at CFA + offset_bytes."""
    is_word = offset_bytes < 0 and offset_bytes % 8 == 0
    return -offset_bytes // 8 if is_word else BP_UNKNOWN


def rule_of(state: State) -> int:
    """The rule for the kernel."""
    if state.ra == RA_NONE:
        return RuleKind.END
    if state.kind == RuleKind.SIGNAL:
        return RuleKind.SIGNAL
    if state.ra != RA_BELOW_CFA or state.offset % 8:
        return RuleKind.UNSUPPORTED
    words, bp = state.offset // 8, state.bp
    if state.kind == RuleKind.DEREF:
        fits = bp == BP_AT_RBP and -0x8000 <= words < 0x8000
        return rule(RuleKind.DEREF, words) if fits else RuleKind.UNSUPPORTED
    if bp == BP_AT_RBP:
        # With CFA = rbp + n that is CFA - n. Elsewhere gcc says so from "leave" to "ret" of a function that realigned its stack,
        # where rbp is the caller's again.
        bp = words if state.kind == RuleKind.BP else 0
    if not 0 <= bp <= MAX_BP_WORDS:
        return RuleKind.UNSUPPORTED
    if state.kind == DEREF_SP:
        return rule(RuleKind.DEREF, words, bp, sp_base=True) if -0x8000 <= words < 0x8000 else RuleKind.UNSUPPORTED
    if state.kind in (RuleKind.SP, RuleKind.BP):
        return rule(RuleKind(state.kind), words, bp) if 0 <= words <= OFFSET_MASK else RuleKind.UNSUPPORTED
    if state.kind >= IN_REGISTER:
        place = state.kind - IN_REGISTER << REGISTER_SHIFT | words
        return rule(RuleKind.UNSUPPORTED, place, bp) if 0 <= words <= MAX_REGISTER_WORDS else RuleKind.UNSUPPORTED
    return rule(RuleKind.PLT, words) if state.kind == RuleKind.PLT else RuleKind.UNSUPPORTED


def cfa_from_expression(block: bytes) -> tuple[int, int]:
    """Kind and offset of the CFA for the few expressions that compilers, linkers and OpenSSL write; else UNSUPPORTED.

    DW_OP_breg6 = 0x76 (rbp), breg7 = 0x77 (rsp), deref = 0x06, plus_uconst = 0x23.
    """
    # A PLT entry (binutils, elfxx-x86.c): rsp + 8 + ((rip & 15) >= N) << 3
    if len(block) == 11 and block[:6] == b"\x77\x08\x80\x00\x3f\x1a" and block[7:] == b"\x2a\x33\x24\x22" and 0x30 <= block[6] < 0x40:
        return RuleKind.PLT, (block[6] - 0x30) * 8
    if block[:1] not in (b"\x76", b"\x77"):
        return RuleKind.UNSUPPORTED, 0
    try:
        offset, after = signed_leb(block, 1)
    except LebError:
        return RuleKind.UNSUPPORTED, 0
    rest = block[after:]
    if block[0] == 0x76 and rest == b"\x06":
        return RuleKind.DEREF, offset
    if block[0] == 0x77 and rest == b"\x06" and offset == 160:
        return RuleKind.SIGNAL, 0
    if block[0] == 0x77 and rest == b"\x06\x23\x08":
        return DEREF_SP, offset
    return RuleKind.UNSUPPORTED, 0


def bp_from_expression(block: bytes) -> int:
    """State.bp for a saved register whose place is an expression."""
    return BP_AT_RBP if block == b"\x76\x00" else BP_UNKNOWN


def read_block(data: bytes, at: int) -> tuple[bytes, int]:
    """An expression with its length before it, and the place behind it. Raises LebError when it is cut off."""
    size, at = unsigned_leb(data, at)
    if at + size > len(data):
        raise LebError("expression is cut off")
    return data[at : at + size], at + size

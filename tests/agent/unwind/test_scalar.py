# SPDX-License-Identifier: Apache-2.0
"""Tests of the meaning of call frame instructions, by the reference decoder."""

import pytest

from agent.records.unwind import RuleKind, rule
from agent.unwind.scalar import decode_scalar
from tests.support.eh_frames import cie, frame, section

SP_8 = rule(RuleKind.SP, 1)
UNSUPPORTED, NONE = int(RuleKind.UNSUPPORTED), int(RuleKind.NONE)
ADVANCE_1 = bytes((0x41,))
SAVE_BP_16 = bytes((0x86, 2))  # DW_CFA_offset rbp, 2 * -8


def rows(*functions: tuple[int, int, bytes], head: bytes | None = None) -> list[tuple[int, int]]:
    table = decode_scalar(frame(section(*functions, head=head)))
    return list(zip(table.addresses.tolist(), table.rules.tolist(), strict=True))


def one(program: bytes) -> int:
    """The rule behind the first byte of a function whose program is a step of one byte and `program`."""
    found = rows((0x1000, 64, ADVANCE_1 + program))
    return dict(found).get(0x1001, found[0][1])


def test_a_function_with_a_frame_pointer() -> None:
    # push rbp: CFA rsp + 16, rbp at CFA - 16; mov rsp, rbp: CFA rbp + 16; at the end leave: CFA rsp + 8, rbp is the caller's
    program = b"\x41\x0e\x10" + SAVE_BP_16 + b"\x43\x0d\x06" + b"\x60\x0c\x07\x08\xc6"
    assert rows((0x1000, 64, program)) == [
        (0x1000, SP_8),
        (0x1001, rule(RuleKind.SP, 2, 2)),
        (0x1004, rule(RuleKind.BP, 2, 2)),
        (0x1024, SP_8),
        (0x1040, NONE),
    ]


def test_steps_of_all_widths_and_the_code_factor() -> None:
    program = b"\x02\x02\x0e\x10" + b"\x03\x00\x01\x0e\x18" + b"\x04\x00\x02\x00\x00\x0e\x20"
    head = cie(code_factor=2)
    assert rows((0x1000, 0x2000, program), head=head) == [
        (0x1000, SP_8),
        (0x1004, rule(RuleKind.SP, 2)),
        (0x1204, rule(RuleKind.SP, 3)),
        (0x1604, rule(RuleKind.SP, 4)),
        (0x3000, NONE),
    ]


def test_a_remembered_state_comes_back_whole() -> None:
    program = b"\x41\x0e\x10" + SAVE_BP_16 + b"\x0a\x41\x0c\x07\x08\xc6\x41\x0b"
    assert rows((0x1000, 64, program)) == [
        (0x1000, SP_8),
        (0x1001, rule(RuleKind.SP, 2, 2)),
        (0x1002, SP_8),
        (0x1003, rule(RuleKind.SP, 2, 2)),
        (0x1040, NONE),
    ]


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (b"\x07\x10", RuleKind.END),  # rip is undefined
        (b"\x0f\x0b\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22", rule(RuleKind.PLT, 11)),
        (b"\x0f\x04\x77\xa0\x01\x06", RuleKind.SIGNAL),  # CFA = [rsp + 160]
        (b"\x10\x06\x02\x76\x00\x0f\x03\x76\x78\x06", rule(RuleKind.DEREF, -1)),  # rbp at [rbp], CFA = [rbp - 8]
        (b"\x0f\x03\x76\x78\x06", UNSUPPORTED),  # the same, but nobody says where rbp lies
        (b"\x86\x03\x0f\x05\x77\x28\x06\x23\x08", rule(RuleKind.DEREF, 5, 3, sp_base=True)),  # CFA = [rsp + 40] + 8
        (b"\x0f\x02\x77\x08", UNSUPPORTED),  # CFA = rsp + 8 as an expression
        (b"\x0f\x00", UNSUPPORTED),
        (b"\x0c\x0a\x00", rule(RuleKind.UNSUPPORTED, 10 << 12)),  # CFA = r10
        (b"\x86\x03\x0c\x0b\x08", rule(RuleKind.UNSUPPORTED, 11 << 12 | 1, 3)),  # CFA = r11 + 8, rbp three words below
        (b"\x0c\x0b\x80\x80\x02", UNSUPPORTED),  # 32 KiB from r11: one word more than 12 bits can say
        (b"\x0e\x0c", UNSUPPORTED),  # no multiple of 8
        (b"\x0e\x80\x80\x20", UNSUPPORTED),  # 512 KiB, one word more than 16 bits can say
        (b"\x0e\xf8\xff\x1f", rule(RuleKind.SP, 0xFFFF)),
        (b"\x86\x80\x20", UNSUPPORTED),  # rbp 4,096 words below the CFA
        (b"\x86\xff\x1f", rule(RuleKind.SP, 1, 0xFFF)),
        (b"\x09\x06\x03", UNSUPPORTED),  # rbp in rbx
        (b"\x05\x06\x02", rule(RuleKind.SP, 1, 2)),
        (b"\x11\x06\x02", rule(RuleKind.SP, 1, 2)),
        (b"\x11\x06\x7e", UNSUPPORTED),  # rbp above the CFA
        (b"\x2f\x06\x7f", UNSUPPORTED),
        (b"\x90\x02", UNSUPPORTED),  # the return address two words below the CFA
        (b"\x09\x10\x02", UNSUPPORTED),  # the return address in rcx
        (b"\x90\x02\xd0", SP_8),  # and back where the CIE has it
        (b"\x12\x07\x7e", rule(RuleKind.SP, 2)),  # CFA = rsp + -2 * -8
        (b"\x13\x7d", rule(RuleKind.SP, 3)),
        (b"\x08\x06\x2e\x10\x86\x02\x07\x06", SP_8),
        (b"\x83\x03\x8c\x04", SP_8),  # rbx and r12 do not matter
        (b"\x14\x06\x01", UNSUPPORTED),
        (b"\x16\x06\x01\x30", UNSUPPORTED),
    ],
)
def test_each_instruction(program: bytes, expected: int) -> None:
    assert one(program) == expected


@pytest.mark.parametrize(
    "program",
    [
        b"\x1d",  # no such instruction
        b"\x0b",  # nothing was remembered
        b"\x0e\x80\x80\x80\x80\x80\x80\x01",  # a number of seven bytes
        b"\x0f\x7f\x77\x08",  # an expression that reaches out of the entry
        b"\x0a" * 65,
    ],
)
def test_nonsense_costs_the_rest_of_its_function_only(program: bytes) -> None:
    assert rows((0x1000, 64, ADVANCE_1 + program), (0x1040, 64, b"")) == [
        (0x1000, SP_8),
        (0x1001, UNSUPPORTED),
        (0x1040, SP_8),
        (0x1080, NONE),
    ]


def test_rows_never_reach_into_the_next_function() -> None:
    program = b"\x41\x0e\x10" + b"\x7f\x0e\x18"  # the second step goes 63 bytes on, behind the end
    assert rows((0x1000, 32, program), (0x1020, 32, b"")) == [
        (0x1000, SP_8),
        (0x1001, rule(RuleKind.SP, 2)),
        (0x1020, SP_8),
        (0x1040, NONE),
    ]


def test_holes_of_sixteen_bytes_are_closed_and_padding_is_not() -> None:
    wide = b"\x41\x0e\x10"
    assert rows((0x1000, 0x11, wide), (0x1020, 0x10, wide), (0x1040, 16, wide)) == [
        (0x1000, SP_8),
        (0x1001, rule(RuleKind.SP, 2)),
        (0x1020, SP_8),
        (0x1021, rule(RuleKind.SP, 2)),
        (0x1030, NONE),
        (0x1040, SP_8),
        (0x1041, rule(RuleKind.SP, 2)),
        (0x1050, NONE),
    ]


def test_of_functions_that_overlap_the_later_start_holds() -> None:
    assert rows((0x1000, 0x100, b"\x0e\x10"), (0x1040, 0x20, b"\x0e\x18")) == [
        (0x1000, rule(RuleKind.SP, 2)),
        (0x1040, rule(RuleKind.SP, 3)),
        (0x1060, NONE),
    ]

# SPDX-License-Identifier: Apache-2.0
"""Builds .eh_frame sections entry by entry, and ELF files around them."""

import struct

from agent.unwind.eh_frame import EhFrame
from tests.support.elf_files import EXECUTE, PT_LOAD, READ, Part, elf

TEXT_START, TEXT_END, FRAME_ADDRESS = 0x1000, 0x9000, 0x10000
PT_GNU_EH_FRAME = 0x6474E550
DEFINE_SP_8 = bytes((0x0C, 7, 8))  # DW_CFA_def_cfa rsp, 8
RETURN_AT_CFA_8 = bytes((0x80 | 16, 1))  # DW_CFA_offset rip, 1 * data factor
PLAIN = DEFINE_SP_8 + RETURN_AT_CFA_8
END = bytes(4)


def entry(body: bytes) -> bytes:
    """Length, body, padded with DW_CFA_nop to a multiple of 4."""
    body += bytes(-len(body) % 4)
    return struct.pack("<I", len(body)) + body


def cie(program: bytes = PLAIN, augmentation: bytes = b"zR", code_factor: int = 1, data_factor: int = 0x78) -> bytes:
    """A CIE as gcc writes it: data factor -8 (0x78 as SLEB), return address in register 16, addresses pc-relative in 4 bytes (0x1b)."""
    # zero id, version, augmentation, factors, return register, size of the augmentation data, encoding
    head = struct.pack("<I", 0) + b"\1" + augmentation + b"\0" + bytes((code_factor, data_factor, 16))
    return entry(head + (b"\1\x1b" if augmentation == b"zR" else b"") + program)


def fde(at: int, start: int, size: int, program: bytes, cie_at: int = 0) -> bytes:
    """The FDE at offset `at` of the section for code at address `start`."""
    # distance back to the CIE, start relative to this field, size, no augmentation data
    return entry(struct.pack("<IiI", at + 4 - cie_at, start - (FRAME_ADDRESS + at + 8), size) + b"\0" + program)


def section(*functions: tuple[int, int, bytes], head: bytes | None = None) -> bytes:
    """One CIE, an FDE for each (start, size, program), and the end mark."""
    data = cie() if head is None else head
    for start, size, program in functions:
        data += fde(len(data), start, size, program)
    return data + END


def frame(data: bytes, *, is_exact: bool = True) -> EhFrame:
    """The section as found in a file with one text segment."""
    return EhFrame(FRAME_ADDRESS, data, is_exact, ((TEXT_START, TEXT_END),))


def program_file(data: bytes) -> bytes:
    """An ELF file without sections: 32 KiB of text, and .eh_frame found by its program header."""
    # version 1, eh_frame_ptr pc-relative in 4 bytes, count and table left out; the header lies 16 bytes in front of .eh_frame
    header = b"\1\x1b\xff\xff" + struct.pack("<i", 12) + bytes(8)
    text = Part(PT_LOAD, READ | EXECUTE, b"\xc3" * (TEXT_END - TEXT_START), vaddr=TEXT_START)
    load = Part(PT_LOAD, READ, header + data, vaddr=FRAME_ADDRESS - 16)
    # Behind the ELF header, three program headers and the text.
    index = Part(PT_GNU_EH_FRAME, READ, b"", vaddr=FRAME_ADDRESS - 16, claimed_bytes=16, claimed_offset=64 + 3 * 56 + len(text.data))
    return elf(text, load, index)

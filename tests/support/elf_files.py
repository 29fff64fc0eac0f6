# SPDX-License-Identifier: Apache-2.0
"""Builds small ELF64 files byte by byte, so that tests say exactly what lies in them."""

import struct
from dataclasses import dataclass

HEADER_BYTES, PROGRAM_BYTES, SECTION_BYTES = 64, 56, 64
PT_LOAD, PT_NOTE = 1, 4
READ, EXECUTE = 4, 1


@dataclass(frozen=True, slots=True)
class Part:
    """A program header and the bytes it covers; `claimed_bytes` and `claimed_offset` lie about them."""

    kind: int
    flags: int
    data: bytes
    alignment: int = 4096
    vaddr: int = 0
    claimed_bytes: int | None = None
    claimed_offset: int | None = None


def note(owner: bytes, kind: int, description: bytes, padding: int = 4) -> bytes:
    """One note: three words, then name and description, each padded."""
    raw = struct.pack("<III", len(owner), len(description), kind)
    for piece in (owner, description):
        raw += piece
        raw += bytes(-len(raw) % padding)
    return raw


def gnu_build_id(build_id: bytes) -> bytes:
    """The note a linker writes."""
    return note(b"GNU\0", 3, build_id)


def elf(*parts: Part, count: int | None = None) -> bytes:
    """An ELF64 little-endian file: header, program headers, then the parts, each at the next multiple of 8. `count` lies about e_phnum."""
    at = HEADER_BYTES + PROGRAM_BYTES * len(parts)
    table = body = b""
    for part in parts:
        body += bytes(-(at + len(body)) % 8)
        offset = at + len(body) if part.claimed_offset is None else part.claimed_offset
        size = len(part.data) if part.claimed_bytes is None else part.claimed_bytes
        # p_type, p_flags, p_offset, p_vaddr, p_paddr, p_filesz, p_memsz, p_align
        table += struct.pack("<IIQQQQQQ", part.kind, part.flags, offset, part.vaddr, 0, size, size, part.alignment)
        body += part.data
    return _header(program_count=len(parts) if count is None else count) + table + body


def elf_with_sections(sections: list[tuple[int, int, bytes]]) -> bytes:
    """An ELF64 file without program headers and with these sections (type, flags, data) behind an empty one; names are left out."""
    at = HEADER_BYTES
    table = bytes(SECTION_BYTES)
    body = b""
    for kind, flags, data in sections:
        # sh_name, sh_type, sh_flags, sh_addr, sh_offset, sh_size, sh_link, sh_info, sh_addralign, sh_entsize
        table += struct.pack("<IIQQQQIIQQ", 0, kind, flags, 0, at + len(body), len(data), 0, 0, 1, 0)
        body += data
    return _header(sections_at=at + len(body), section_count=len(sections) + 1) + body + table


def _header(program_count: int = 0, sections_at: int = 0, section_count: int = 0) -> bytes:
    ident = b"\x7fELF" + bytes((2, 1, 1)) + bytes(9)  # 64 bit, little endian, version 1
    # e_type, e_machine, e_version, e_entry, e_phoff, e_shoff, e_flags, e_ehsize, e_phentsize, e_phnum, e_shentsize, e_shnum, e_shstrndx
    sizes = (HEADER_BYTES, PROGRAM_BYTES, program_count, SECTION_BYTES, section_count, 0)
    return ident + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, HEADER_BYTES, sections_at, 0, *sizes)

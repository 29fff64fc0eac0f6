# SPDX-License-Identifier: Apache-2.0
"""Looks at an ELF file without reading its tables: whose it is, what it could tell, which other files it points to.

Runs in the server itself, so it reads only headers, names of sections, notes and links, by pread and with a bound on each, and takes
apart nothing else; tables and DWARF are for the jailed child (server/symbols/build_child.py). Layouts are those of elf(5);
.gnu_debuglink and .gnu_debugaltlink as "Separate Debug Files" of the GDB manual and dwz(1) have them.
"""

import io
import os
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import zstandard

from server.symbols.build_result import BuildStatus, Refused
from server.symbols.identity import MAX_BUILD_ID_BYTES, MIN_BUILD_ID_BYTES
from server.symbols.notes import BuildIds, parse_build_ids

MAX_SECTIONS = 65_536
MAX_SEGMENTS = 1024
MAX_NAMES_BYTES = 1 << 20
MAX_NOTES_BYTES = 64 << 10
MAX_NOTES = 32
MAX_LINK_BYTES = 4096
ET_REL, ET_EXEC, ET_DYN = 1, 2, 3
"""dwz makes its common files relocatable."""
PT_LOAD, PT_NOTE = 1, 4
PF_X = 1
SHT_SYMTAB, SHT_NOTE, SHT_NOBITS, SHT_DYNSYM = 2, 7, 8, 11
SHF_ALLOC, SHF_EXECINSTR, SHF_COMPRESSED = 2, 4, 0x800
_DEBUG_INFO = (b".debug_info", b".zdebug_info")


@dataclass(frozen=True, slots=True)
class DebugLink:
    """Base name of the debug file and CRC-32 of its bytes."""

    name: bytes
    crc: int


@dataclass(frozen=True, slots=True)
class AltLink:
    """Path, as it was when dwz wrote it, and build id of the file that holds what several debug files share."""

    path: bytes
    build_id: bytes


@dataclass(frozen=True, slots=True)
class Probe:
    """What an ELF file says of itself. Nothing of it is believed before a build has checked it again."""

    build_ids: BuildIds
    has_code: bool
    """The bytes of the program are there: it is no debug file, and no text was cut."""
    has_dwarf: bool
    has_symtab: bool
    has_dynamic_symbols: bool
    debug_link: DebugLink | None
    alt_link: AltLink | None
    code_sizes: tuple[int, ...]
    """Of the executable segments in memory, bytes: a debug file has those of its binary, whatever became of offsets and file sizes."""


@dataclass(frozen=True, slots=True)
class _Section:
    name: bytes
    kind: int
    flags: int
    offset: int
    size: int
    alignment: int

    @property
    def is_code(self) -> bool:
        return self.flags & (SHF_ALLOC | SHF_EXECINSTR) == SHF_ALLOC | SHF_EXECINSTR


@dataclass(frozen=True, slots=True)
class _Segment:
    kind: int
    flags: int
    offset: int
    file_size: int
    memory_size: int
    alignment: int


def probe(descriptor: int) -> Probe:
    """Look at a file. Raises Refused when it is no ELF program, shared object or debug file; OSError when it cannot be read."""
    start = os.pread(descriptor, 64, 0)
    if start[:4] != b"\x7fELF":
        raise Refused(BuildStatus.MALFORMED, f"starts with {start[:8].hex(' ') or 'nothing'}: not an ELF file")
    if len(start) < 64 or start[4] not in (1, 2) or start[5] not in (1, 2):
        raise Refused(BuildStatus.MALFORMED, "the ELF header is cut or of an unknown class")
    is_64, order = start[4] == 2, "<" if start[5] == 1 else ">"
    (kind,) = struct.unpack_from(order + "H", start, 16)
    if kind not in (ET_REL, ET_EXEC, ET_DYN):
        raise Refused(BuildStatus.UNSUPPORTED, f"ELF type {kind}: no program, shared object or debug file")
    sections = _sections(descriptor, start, is_64, order)
    segments = _segments(descriptor, start, is_64, order)
    ids = BuildIds()
    notes = [(s.offset, s.size, s.alignment) for s in sections if s.kind == SHT_NOTE]
    notes += [(s.offset, s.file_size, s.alignment) for s in segments if s.kind == PT_NOTE]
    for offset, size, alignment in notes[:MAX_NOTES]:
        data = _read(descriptor, offset, min(size, MAX_NOTES_BYTES))
        for padding in (alignment, 4 if alignment == 8 else 8):
            ids = ids.filled_from(parse_build_ids(data, padding, order))
    present = [s for s in sections if s.kind != SHT_NOBITS]
    return Probe(
        build_ids=ids,
        has_code=any(s.is_code for s in present) or not sections,
        has_dwarf=any(s.name in _DEBUG_INFO and s.size for s in present),
        has_symtab=any(s.kind == SHT_SYMTAB and s.size for s in sections),
        has_dynamic_symbols=any(s.kind == SHT_DYNSYM and s.size for s in sections),
        debug_link=_debug_link(_content(descriptor, present, b".gnu_debuglink"), order),
        alt_link=_alt_link(_content(descriptor, present, b".gnu_debugaltlink")),
        code_sizes=tuple(s.memory_size for s in segments if s.kind == PT_LOAD and s.flags & PF_X),
    )


def first_bytes(descriptor: int, most: Mapping[bytes, int]) -> tuple[str, dict[bytes, bytes]]:
    """Byte order, "<" or ">", and what some sections begin with, inflated; those that are not there are left out.

    Raises Refused like probe().
    """
    probe(descriptor)
    start = os.pread(descriptor, 64, 0)
    is_64, order = start[4] == 2, "<" if start[5] == 1 else ">"
    found: dict[bytes, bytes] = {}
    for section in _sections(descriptor, start, is_64, order):
        if section.name not in most or section.kind == SHT_NOBITS or not section.size:
            continue
        size = most[section.name]
        raw = _read(descriptor, section.offset, min(section.size, size))
        if section.flags & SHF_COMPRESSED:
            (kind,), raw = struct.unpack_from(order + "I", raw.ljust(4, b"\0")), raw[24 if is_64 else 12 :]
            raw = _inflated_start(raw, size, is_zstd=kind == 2)
        found.setdefault(section.name, raw)
    return order, found


def _inflated_start(raw: bytes, size: int, *, is_zstd: bool) -> bytes:
    try:
        if is_zstd:
            return zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(io.BytesIO(raw)).read(size)
        return zlib.decompressobj().decompress(raw, size)
    except (zlib.error, zstandard.ZstdError):
        return b""


def _read(descriptor: int, offset: int, size: int) -> bytes:
    return os.pread(descriptor, size, offset) if 0 <= offset < 1 << 62 and size > 0 else b""


def _sections(descriptor: int, start: bytes, is_64: bool, order: str) -> list[_Section]:
    """All sections; none at all when the headers make no sense."""
    layout = struct.Struct(order + ("IIQQQQIIQQ" if is_64 else "IIIIIIIIII"))
    (offset,) = struct.unpack_from(order + ("Q" if is_64 else "I"), start, 40 if is_64 else 32)
    entry_bytes, count, names_at = struct.unpack_from(order + "HHH", start, 58 if is_64 else 46)
    first = _read(descriptor, offset, layout.size) if offset and entry_bytes == layout.size else b""
    if len(first) < layout.size:
        return []
    head = layout.unpack(first)
    count = count or min(head[5], MAX_SECTIONS)  # More than fit 16 bits: number and place of names stand in the first header.
    names_at = head[6] if names_at == 0xFFFF else names_at
    raw = _read(descriptor, offset, count * layout.size)
    headers = list(layout.iter_unpack(raw[: len(raw) // layout.size * layout.size]))
    names = _read(descriptor, headers[names_at][4], min(headers[names_at][5], MAX_NAMES_BYTES)) if names_at < len(headers) else b""
    return [_Section(names[h[0] : h[0] + 64].partition(b"\0")[0], h[1], h[2], h[4], h[5], h[8]) for h in headers]


def _segments(descriptor: int, start: bytes, is_64: bool, order: str) -> list[_Segment]:
    layout = struct.Struct(order + ("IIQQQQQQ" if is_64 else "IIIIIIII"))
    (offset,) = struct.unpack_from(order + ("Q" if is_64 else "I"), start, 32 if is_64 else 28)
    entry_bytes, count = struct.unpack_from(order + "HH", start, 54 if is_64 else 42)
    raw = _read(descriptor, offset, min(count, MAX_SEGMENTS) * layout.size) if entry_bytes == layout.size else b""
    headers = layout.iter_unpack(raw[: len(raw) // layout.size * layout.size])
    if is_64:  # type, flags, offset, vaddr, paddr, filesz, memsz, align
        return [_Segment(h[0], h[1], h[2], h[5], h[6], h[7]) for h in headers]
    return [_Segment(h[0], h[6], h[1], h[4], h[5], h[7]) for h in headers]  # type, offset, vaddr, paddr, filesz, memsz, flags, align


def _content(descriptor: int, sections: list[_Section], name: bytes) -> bytes:
    found: Iterator[_Section] = (s for s in sections if s.name == name and not s.flags & SHF_COMPRESSED)
    section = next(found, None)
    return b"" if section is None else _read(descriptor, section.offset, min(section.size, MAX_LINK_BYTES))


def _debug_link(content: bytes, order: str) -> DebugLink | None:
    """Name, NUL, zeros up to a multiple of 4, CRC. A name that is more than a base name is no link (E3)."""
    name, _, _ = content.partition(b"\0")
    place = (len(name) + 4) // 4 * 4
    if not name or name in (b".", b"..") or b"/" in name or len(name) > 255 or place + 4 > len(content):
        return None
    return DebugLink(name, int(struct.unpack_from(order + "I", content, place)[0]))


def _alt_link(content: bytes) -> AltLink | None:
    """Path, NUL, then the build id to the end of the section."""
    path, _, build_id = content.partition(b"\0")
    if not path or not MIN_BUILD_ID_BYTES <= len(build_id) <= MAX_BUILD_ID_BYTES or not any(build_id):
        return None
    return AltLink(path, build_id)

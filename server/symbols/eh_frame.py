# SPDX-License-Identifier: Apache-2.0
"""Where functions start and end, by the unwind tables: in almost every binary, stripped or not.

.eh_frame_hdr is a sorted table of (start, place of the entry), and the entry (FDE) has the length. Only the encoding that
compilers write is read: offsets of 4 bytes in the header, start and length of 4 bytes in an entry, the start relative to its own
place (DWARF 5, 6.4; Linux Standard Base, "Exception Frames"). An entry counts when the start in it is the one that the header
gives, so that other encodings fall out by themselves. Static programs have no header: there entries are walked, and count when
their CIE says that starts are written so.

    .eh_frame_hdr  version 1 | encodings of the pointer, the count, the table | pointer | count | (start, place) ...
    FDE            length u32 | distance to its CIE u32 | start s32 | length u32 | ...
"""

import struct

import numpy as np
import numpy.typing as npt

from server.symbols.elf import PT_LOAD, SHT_NOBITS, ElfFile
from server.symbols.symtab import MAX_SYMBOLS, Ranges

PT_GNU_EH_FRAME = 0x6474_E550
_HEAD_BYTES = 12
_PCREL_S4, _UDATA4, _DATAREL_S4 = 0x1B, 0x03, 0x3B
I64 = npt.NDArray[np.int64]


def function_bounds(elf: ElfFile) -> Ranges | None:
    """Functions sorted by start, not overlapping; None when this file does not tell (a debug file has no unwind tables)."""
    place = _header(elf)
    if place is None:
        return _walked(elf)
    address, offset, size = place
    head = elf.read(offset, _HEAD_BYTES)
    if len(head) < _HEAD_BYTES or head[0] != 1 or head[2] != _UDATA4 or head[3] != _DATAREL_S4:
        return None
    count = min(int.from_bytes(head[8:12], "little"), (size - _HEAD_BYTES) // 8, MAX_SYMBOLS)
    order = elf.layout.byte_order
    table = elf.records(offset + _HEAD_BYTES, count, np.dtype([("start", order + "i4"), ("entry", order + "i4")]))
    if not table.size or order != "<":
        return None
    starts, entries = table["start"].astype(np.int64) + address, table["entry"].astype(np.int64) + address
    return _bounds(elf, starts, entries)


def _header(elf: ElfFile) -> tuple[int, int, int] | None:
    """Address, file offset and size of .eh_frame_hdr: by its section, for the segments of a cut file point elsewhere."""
    if ".eh_frame_hdr" in elf.section_names:
        section = elf.sections[elf.section_names.index(".eh_frame_hdr")]
        return None if int(section["type"]) == SHT_NOBITS else (_signed(section["addr"]), int(section["offset"]), int(section["size"]))
    segments = elf.segments[elf.segments["type"] == PT_GNU_EH_FRAME]
    if not segments.size:
        return None
    return _signed(segments["vaddr"][0]), int(segments["offset"][0]), int(segments["filesz"][0])


def _signed(address: np.unsignedinteger) -> int:
    """An address as a 64-bit number with a sign: kernels lie in the upper half, and differences are the same."""
    return int(np.uint64(address).astype(np.int64))


def _walked(elf: ElfFile) -> Ranges | None:
    """Functions by the entries of .eh_frame one after another."""
    address, data = _frames(elf)
    if not data.size or elf.layout.byte_order != "<":
        return None
    raw = data.tobytes()
    places: list[int] = []
    is_usual: dict[int, bool] = {}
    place = 0
    while place + 8 <= len(raw) and len(places) < MAX_SYMBOLS:
        length, cie = struct.unpack_from("<II", raw, place)
        if not length or length >= 0xFFFF_FFF0:
            break
        head = place + 4 - cie
        if cie and is_usual.setdefault(head, _is_usual(raw, head)):
            places.append(place)
        place += 4 + length
    entries = np.array(places, np.int64)
    entries = entries[entries + 16 <= data.size]
    if not entries.size:
        return None
    firsts = data[entries[:, None] + np.arange(8, 12)].copy().view("<i4").ravel().astype(np.int64)
    return _bounds(elf, firsts + entries + 8 + address, entries + address)


def _is_usual(raw: bytes, place: int) -> bool:
    """Whether the CIE at `place` says that starts are 4 bytes, relative to their place."""
    if not 0 <= place < len(raw) - 12 or raw[place + 4 : place + 8] != b"\0\0\0\0":
        return False
    letters, _, rest = raw[place + 9 : place + 80].partition(b"\0")
    rest = rest[3:]  # Code and data alignment and the return register, a byte each in what compilers write.
    if not letters.startswith(b"z") or not rest:
        return False
    at = 1
    for letter in letters[1:].decode("latin-1"):
        if letter == "R":
            return rest[at : at + 1] == bytes([_PCREL_S4])
        at += {"L": 1, "P": 5}.get(letter, 0)
    return False


def _frames(elf: ElfFile) -> tuple[int, npt.NDArray[np.uint8]]:
    """Address and bytes of .eh_frame."""
    if ".eh_frame" in elf.section_names:
        section = elf.sections[elf.section_names.index(".eh_frame")]
        if int(section["type"]) != SHT_NOBITS:
            return _signed(section["addr"]), np.frombuffer(elf.read(int(section["offset"]), int(section["size"])), np.uint8)
    return 0, np.zeros(0, np.uint8)


def _bounds(elf: ElfFile, starts: I64, entries: I64) -> Ranges | None:
    address, data = _frames(elf)
    if not data.size:
        address, data = _segment_at(elf, int(entries.min()))
    places = entries - address
    inside = (places >= 0) & (places + 16 <= data.size)
    starts, places = starts[inside], places[inside]
    words = data[places[:, None] + np.arange(16)].copy().view("<u4").reshape(-1, 4)
    first = words[:, 2].astype(np.int64)
    first = np.where(first >= 1 << 31, first - (1 << 32), first) + places + 8 + address
    lengths = words[:, 3].astype(np.int64)
    is_true = (first == starts) & (lengths > 0) & (words[:, 1] != 0)
    starts, ends = starts[is_true], starts[is_true] + lengths[is_true]
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], ends[order]
    if not starts.size:
        return None
    apart = np.ones(starts.size, np.bool_)
    apart[1:] = starts[1:] >= np.maximum.accumulate(ends)[:-1]
    return Ranges(starts[apart].astype(np.uint64), ends[apart].astype(np.uint64))


def _segment_at(elf: ElfFile, address: int) -> tuple[int, npt.NDArray[np.uint8]]:
    """The loaded segment that holds an address, for files without section headers."""
    for segment in elf.segments[elf.segments["type"] == PT_LOAD]:
        start, size = _signed(segment["vaddr"]), int(segment["filesz"])
        if start <= address < start + size:
            return start, np.frombuffer(elf.read(int(segment["offset"]), size), np.uint8)
    return 0, np.zeros(0, np.uint8)

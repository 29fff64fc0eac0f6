# SPDX-License-Identifier: Apache-2.0
"""Reads the entries of .eh_frame: CIEs one by one (a file has few), FDEs as columns (LSB, "Exception Frames"; DWARF 5, 6.4.1).

Entries are walked from the first to the last, not by the index in .eh_frame_hdr: so each byte belongs to one entry at most, and the work
is bounded by the size of the section whatever the index says.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from agent.records.unwind import TableMiss
from agent.unwind.eh_frame import DecodeRefused, EhFrame
from agent.unwind.leb import LebError, signed_leb, unsigned_leb

MAX_FDES = 1 << 21
MAX_CIES = 1 << 16
MAX_FACTOR = 128
_RIP = 16
_EXTENDED = 0xFFFFFFFF
_POINTER_BYTES = {0x0: 8, 0x2: 2, 0x3: 4, 0x4: 8, 0xA: 2, 0xB: 4, 0xC: 8}
_SIGNED = (0xA, 0xB, 0xC)
_OMITTED, _PC_RELATIVE = 0xFF, 0x10
_TOO_LONG = 1 << 40

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Cie:
    """What FDEs have in common."""

    code_factor: int
    data_factor: int
    pointer_encoding: int
    """DW_EH_PE_* of the addresses in its FDEs."""
    has_augmentation: bool
    """FDEs have augmentation data with a length before it."""
    program: tuple[int, int]
    """Offsets [start, end) of the initial instructions."""


@dataclass(frozen=True, slots=True)
class Entries:
    """FDEs that cover text, as columns of one length; offsets are places in EhFrame.data."""

    cies: Sequence[Cie]
    cie: Ints
    """Index into `cies`."""
    start: Ints
    """First virtual address."""
    end: Ints
    """Behind the last address."""
    program_start: Ints
    program_end: Ints


def read_entries(frame: EhFrame) -> Entries:
    """All FDEs in the order of the section. Raises DecodeRefused when an entry reaches outside the section or makes no sense."""
    offsets, pointers = _walk(frame)
    if not len(offsets):
        raise DecodeRefused(TableMiss.NO_RULES, "no FDE")
    data = np.frombuffer(frame.data + bytes(16), np.uint8)
    places, which = np.unique(pointers, return_inverse=True)
    if len(places) > MAX_CIES:
        raise DecodeRefused(TableMiss.TOO_LARGE, f"{len(places)} CIEs")
    cies = [_parse_cie(frame.data, int(place)) for place in places]
    program_end = offsets + 4 + _number(data, offsets, 4)
    start, size, after = _addresses(frame, data, cies, which, offsets)
    skipped, augmented = unsigned_lebs(data, after)
    has_augmentation = np.array([cie.has_augmentation for cie in cies])[which]
    program_start = np.where(has_augmentation, augmented + skipped, after)
    if np.any(program_start > program_end):
        raise DecodeRefused(TableMiss.MALFORMED, "an FDE is shorter than its head")
    is_text = _lies_in(frame.text, start, start + size)
    columns = (which.astype(np.int64), start, start + size, program_start, program_end)
    return Entries(cies, *(column[is_text] for column in columns))


def unsigned_lebs(data: npt.NDArray[np.uint8], at: Ints) -> tuple[Ints, Ints]:
    """Numbers and the places behind them, as unsigned_leb; the place behind one that is too long is far outside.

    Five bytes must lie behind each place.
    """
    first = data[at]
    value = (first & 0x7F).astype(np.int64)
    after = at + 1
    more = np.flatnonzero(first & 0x80)
    for shift in (7, 14, 21, 28):
        if not len(more):
            break
        byte = data[after[more]]
        value[more] |= (byte & 0x7F).astype(np.int64) << shift
        after[more] += 1
        more = more[(byte & 0x80) != 0]
    after[more] = _TOO_LONG
    return value, after


def _walk(frame: EhFrame) -> tuple[Ints, Ints]:
    """Offsets of all FDEs and of their CIEs."""
    head, end = struct.Struct("<II").unpack_from, len(frame.data)
    at, cies, fdes, pointers = 0, set(), [], []
    while at + 4 <= end:
        length, pointer = head(frame.data, at) if at + 8 <= end else (struct.unpack_from("<I", frame.data, at)[0], 0)
        if length == 0:
            if not frame.is_exact:
                break
            at += 4
            continue
        if length < 4 or length == _EXTENDED or at + 4 + length > end:
            raise DecodeRefused(TableMiss.MALFORMED, f"entry of {length} bytes at {at} of {end}")
        if pointer == 0:
            cies.add(at)
        else:
            fdes.append(at)
            pointers.append(at + 4 - pointer)
        at += 4 + length
    if len(fdes) > MAX_FDES:
        raise DecodeRefused(TableMiss.TOO_LARGE, f"{len(fdes)} FDEs")
    if not cies.issuperset(pointers):
        raise DecodeRefused(TableMiss.MALFORMED, "an FDE without its CIE")
    return np.array(fdes, np.int64), np.array(pointers, np.int64)


def _parse_cie(data: bytes, at: int) -> Cie:
    """Parse the CIE at `at`, whose length was checked."""
    end = at + 4 + struct.unpack_from("<I", data, at)[0]
    try:
        return _parse_cie_body(data[:end], at + 8, end)
    except (IndexError, LebError, KeyError, ValueError) as error:
        raise DecodeRefused(TableMiss.MALFORMED, f"CIE at {at}: {error}") from error


def _parse_cie_body(data: bytes, at: int, end: int) -> Cie:
    version = data[at]
    text_end = data.index(0, at + 1)
    augmentation = data[at + 1 : text_end]
    at = text_end + 1
    if version not in (1, 3, 4) or augmentation.startswith(b"eh"):
        raise DecodeRefused(TableMiss.NOT_SUPPORTED, f"CIE version {version}, augmentation {augmentation!r}")
    at += 2 if version == 4 else 0
    code_factor, at = unsigned_leb(data, at)
    data_factor, at = signed_leb(data, at)
    register, at = (data[at], at + 1) if version == 1 else unsigned_leb(data, at)
    if register != _RIP or not 1 <= code_factor <= MAX_FACTOR or not 1 <= abs(data_factor) <= MAX_FACTOR:
        raise DecodeRefused(TableMiss.NOT_SUPPORTED, f"CIE of factors {code_factor}, {data_factor}, return register {register}")
    encoding, has_augmentation = 0, augmentation.startswith(b"z")
    if has_augmentation:
        size, at = unsigned_leb(data, at)
        encoding = _fde_encoding(data, augmentation, at)
        at += size
    elif augmentation:
        raise DecodeRefused(TableMiss.NOT_SUPPORTED, f"augmentation {augmentation!r}")
    if at > end:
        raise ValueError("augmentation reaches out of it")
    return Cie(code_factor, data_factor, encoding, has_augmentation, (at, end))


def _fde_encoding(data: bytes, augmentation: bytes, at: int) -> int:
    encoding = 0
    for letter in augmentation[1:]:
        if letter == ord("R"):
            encoding = data[at]
            at += 1
        elif letter == ord("L"):
            at += 1
        elif letter == ord("P"):
            at += 1 + (0 if data[at] == _OMITTED else _POINTER_BYTES[data[at] & 0xF])
        elif letter not in b"SB":
            raise DecodeRefused(TableMiss.NOT_SUPPORTED, f"augmentation {augmentation!r}")
    return encoding


def _addresses(
    frame: EhFrame, data: npt.NDArray[np.uint8], cies: Sequence[Cie], which: npt.NDArray[np.intp], offsets: Ints
) -> tuple[Ints, Ints, Ints]:
    """Start and size of each FDE's range, and the offset behind them."""
    start, size, after = (np.zeros(len(offsets), np.int64) for _ in range(3))
    encodings = np.array([cie.pointer_encoding for cie in cies])[which]
    for encoding in np.unique(encodings).tolist():
        shape = encoding & 0xF
        if encoding & 0xF0 not in (0, _PC_RELATIVE) or shape not in (0x0, 0x3, 0x4, 0xB, 0xC):
            raise DecodeRefused(TableMiss.NOT_SUPPORTED, f"addresses written as {encoding:#x}")
        rows = np.flatnonzero(encodings == encoding)
        width = _POINTER_BYTES[shape]
        at = offsets[rows] + 8
        if np.any(at + 2 * width > len(frame.data)):
            raise DecodeRefused(TableMiss.MALFORMED, "an FDE reaches out of the section")
        first = _number(data, at, width, is_signed=shape in _SIGNED)
        start[rows] = first + (frame.address + at if encoding & _PC_RELATIVE else 0)
        size[rows] = _number(data, at + width, width)
        after[rows] = at + 2 * width
    return start, size, after


def _number(data: npt.NDArray[np.uint8], at: Ints, width: int, *, is_signed: bool = False) -> Ints:
    """Little-endian numbers of 4 or 8 bytes at any place."""
    raw = np.ascontiguousarray(data[at[:, None] + np.arange(width)])
    kind = ("<i" if is_signed or width == 8 else "<u") + str(width)
    return raw.view(kind).reshape(-1).astype(np.int64)


def _lies_in(text: Sequence[tuple[int, int]], start: Ints, end: Ints) -> npt.NDArray[np.bool_]:
    """Which ranges are not empty and lie inside one range of `text`. Numbers that ran over are negative and lie in none."""
    inside = np.zeros(len(start), bool)
    for low, high in text[:64]:
        inside |= (start >= low) & (end <= high) & (start < end)
    return inside

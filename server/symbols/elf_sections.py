# SPDX-License-Identifier: Apache-2.0
"""Whole sections by name, inflated where they are compressed (zlib, zstd, GNU's older .zdebug_*), never beyond a bound.

The size that a section claims is checked before anything is inflated, and what comes out is counted: a bomb of 600 MiB in 600 KiB
costs nothing. Runs in the jailed child only.
"""

import io
import lzma
import zlib

import numpy as np
import zstandard

from server.symbols.build_result import BuildStatus, Refused
from server.symbols.elf import SHF_COMPRESSED, SHT_NOBITS, ElfFile
from server.symbols.relocations import relocated

MAX_INFLATED_BYTES = 640 << 20
"""All sections of one build together."""
MAX_MINI_BYTES = 64 << 20
"""A symbol table out of .gnu_debugdata."""
LZMA_MEMORY_BYTES = 128 << 20
_ZLIB, _ZSTD = 1, 2
_GNU_MAGIC = b"ZLIB"


class SectionReader:
    """Reads sections of one file; `budget` is shared by all files of a build."""

    def __init__(self, elf: ElfFile, budget: list[int]) -> None:
        """`budget` holds one number: the bytes that may still be read."""
        self._elf = elf
        self._budget = budget
        self._places = {name: number for number, name in reversed(list(enumerate(elf.section_names)))}

    def has(self, name: str) -> bool:
        """Is there such a section with bytes in the file?"""
        return self._find(name) is not None

    def read(self, name: str) -> bytes:
        """The section as it was before compression; b"" when there is none. Raises Refused."""
        found = self._find(name)
        if found is None:
            return b""
        return (
            relocated(self._elf, self._places.get(name), self._inflated(name, *found))
            if self._elf.is_relocatable
            else self._inflated(name, *found)
        )

    def _inflated(self, name: str, section: "np.void", is_gnu: bool) -> bytes:
        offset, size = int(section["offset"]), int(section["size"])
        raw = self._elf.read(offset, min(size, self._elf.size))
        if int(section["flags"]) & SHF_COMPRESSED:
            head = 24 if self._elf.layout.word.itemsize == 8 else 12
            order = "little" if self._elf.layout.byte_order == "<" else "big"
            if len(raw) < head:
                raise Refused(BuildStatus.MALFORMED, f"section {name} is cut")
            kind = int.from_bytes(raw[:4], "little" if order == "little" else "big")
            claimed = int.from_bytes(raw[head // 3 : head // 3 * 2], "little" if order == "little" else "big")
            self._spend(name, claimed)
            return _inflate(name, raw[head:], claimed, is_zstd=kind == _ZSTD) if kind in (_ZLIB, _ZSTD) else _unknown(name, kind)
        if is_gnu:
            if raw[:4] != _GNU_MAGIC:
                raise Refused(BuildStatus.MALFORMED, f"section {name} is not compressed as its name says")
            claimed = int.from_bytes(raw[4:12], "big")
            self._spend(name, claimed)
            return _inflate(name, raw[12:], claimed, is_zstd=False)
        self._spend(name, len(raw))
        return raw

    def mini_debug_info(self) -> bytes:
        """The ELF file that .gnu_debugdata holds, inflated; b"" when there is none or it is broken."""
        found = self._find(".gnu_debugdata")
        if found is None:
            return b""
        section, _ = found
        raw = self._elf.read(int(section["offset"]), min(int(section["size"]), MAX_MINI_BYTES))
        try:
            inflater = lzma.LZMADecompressor(memlimit=LZMA_MEMORY_BYTES)
            data = inflater.decompress(raw, MAX_MINI_BYTES)
        except (lzma.LZMAError, EOFError):
            return b""
        return data if inflater.eof else b""

    def _find(self, name: str) -> tuple["np.void", bool] | None:
        for place, is_gnu in ((self._places.get(name), False), (self._places.get(f".z{name[1:]}"), True)):
            if place is not None and int(self._elf.sections["type"][place]) != SHT_NOBITS:
                return self._elf.sections[place], is_gnu
        return None

    def _spend(self, name: str, size: int) -> None:
        if size > self._budget[0]:
            raise Refused(BuildStatus.LIMIT, f"section {name} would take {size} bytes, {self._budget[0]} are left of {MAX_INFLATED_BYTES}")
        self._budget[0] -= size


def _unknown(name: str, kind: int) -> bytes:
    raise Refused(BuildStatus.UNSUPPORTED, f"section {name} is compressed in an unknown way ({kind})")


def _inflate(name: str, raw: bytes, claimed: int, *, is_zstd: bool) -> bytes:
    try:
        if is_zstd:
            # The size in the frame is the packer's word; reading stops at the section's own.
            data = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(io.BytesIO(raw)).read(claimed + 1)
        else:
            data = zlib.decompressobj().decompress(raw, claimed + 1)
    except (zlib.error, zstandard.ZstdError) as error:
        raise Refused(BuildStatus.MALFORMED, f"section {name} cannot be inflated: {error}") from error
    if len(data) != claimed:
        raise Refused(BuildStatus.MALFORMED, f"section {name} inflates to other than the {claimed} bytes it claims")
    return data

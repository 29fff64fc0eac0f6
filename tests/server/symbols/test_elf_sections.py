# SPDX-License-Identifier: Apache-2.0
"""Compressed sections: what they hold, and bombs that are refused before anything is inflated."""

import lzma
import os
import resource
import struct
import zlib
from pathlib import Path

import pytest
import zstandard

from server.symbols.build_result import BuildStatus, Quality, Refused
from server.symbols.elf import SHF_COMPRESSED, ElfFile
from server.symbols.elf_sections import MAX_INFLATED_BYTES, SectionReader
from server.symbols.identity import key_of
from tests.server.symbols import golden
from tests.server.symbols.programs import addresses_by_nm, build_here, compile_program, describe, name_at, run_tool

SHT_PROGBITS, SHT_STRTAB = 1, 3


def reader(data: bytes, name: str = ".debug_info", flags: int = 0, budget: int = MAX_INFLATED_BYTES) -> SectionReader:
    """A file of one section and its names."""
    names = b"\0" + name.encode() + b"\0.shstrtab\0"
    table_at = 64 + len(data) + len(names)
    head = b"\x7fELF" + bytes((2, 1, 1)) + bytes(9)
    # e_type, e_machine, e_version, e_entry, e_phoff, e_shoff, e_flags, e_ehsize, e_phentsize, e_phnum, e_shentsize, e_shnum, e_shstrndx
    head += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 0, table_at, 0, 64, 56, 0, 64, 3, 2)
    sections = bytes(64)
    # sh_name, sh_type, sh_flags, sh_addr, sh_offset, sh_size, sh_link, sh_info, sh_addralign, sh_entsize
    sections += struct.pack("<IIQQQQIIQQ", 1, SHT_PROGBITS, flags, 0, 64, len(data), 0, 0, 1, 0)
    sections += struct.pack("<IIQQQQIIQQ", 2 + len(name), SHT_STRTAB, 0, 0, 64 + len(data), len(names), 0, 0, 1, 0)
    descriptor = os.memfd_create("elf")
    os.write(descriptor, head + data + names + sections)
    return SectionReader(ElfFile(descriptor), [budget])


def chdr(kind: int, size: int, data: bytes) -> bytes:
    """ch_type, ch_reserved, ch_size, ch_addralign, then the compressed bytes."""
    return struct.pack("<IIQQ", kind, 0, size, 1) + data


PLAIN = b"seven and twenty-three " * 100


def test_every_packing_gives_the_same_bytes() -> None:
    assert reader(PLAIN).read(".debug_info") == PLAIN
    assert reader(chdr(1, len(PLAIN), zlib.compress(PLAIN)), flags=SHF_COMPRESSED).read(".debug_info") == PLAIN
    assert reader(chdr(2, len(PLAIN), zstandard.compress(PLAIN)), flags=SHF_COMPRESSED).read(".debug_info") == PLAIN
    gnu = b"ZLIB" + struct.pack(">Q", len(PLAIN)) + zlib.compress(PLAIN)
    assert reader(gnu, name=".zdebug_info").read(".debug_info") == PLAIN
    assert reader(PLAIN).read(".debug_line") == b"" and not reader(PLAIN).has(".debug_line")


@pytest.mark.parametrize("kind", [1, 2])
def test_a_bomb_is_refused_before_it_is_inflated(kind: int) -> None:
    """C26: 600 MiB of zeros by their claim; and a claim that is smaller than what comes out."""
    size = 700 << 20
    packer = zlib.compressobj(1) if kind == 1 else zstandard.ZstdCompressor().compressobj(size=size)
    packed = b"".join([*(packer.compress(bytes(1 << 20)) for _ in range(size >> 20)), packer.flush()])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(Refused) as honest:
        reader(chdr(kind, size, packed), flags=SHF_COMPRESSED).read(".debug_info")
    with pytest.raises(Refused) as lying:
        reader(chdr(kind, 4096, packed), flags=SHF_COMPRESSED).read(".debug_info")
    assert (honest.value.status, lying.value.status) == (BuildStatus.LIMIT, BuildStatus.MALFORMED)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10


def test_all_sections_share_one_budget() -> None:
    some = reader(PLAIN, budget=len(PLAIN) + 7)
    assert some.read(".debug_info") == PLAIN
    with pytest.raises(Refused, match="7 are left"):
        some.read(".debug_info")


@pytest.mark.parametrize("data", [b"", b"\1", chdr(9, 7, b"x"), chdr(1, 7, b"x"), chdr(2, 7, b"x"), chdr(1, 7, zlib.compress(b"short"))])
def test_broken_packing_is_refused(data: bytes) -> None:
    with pytest.raises(Refused):
        reader(data, flags=SHF_COMPRESSED).read(".debug_info")


def test_names_out_of_gnu_debugdata(tmp_path: Path) -> None:
    """MiniDebugInfo as Fedora makes it: a stripped copy with .symtab, packed by xz into a section of the stripped program."""
    program = compile_program(golden.C_SOURCE, tmp_path / "p", "-O1")
    places, key = addresses_by_nm(program), key_of(describe(program))
    mini, stripped, packed = tmp_path / "mini", tmp_path / "stripped", tmp_path / "mini.xz"
    run_tool("objcopy", "-S", "--keep-symbol=twice", "--keep-symbol=once", program, mini)
    packed.write_bytes(lzma.compress(mini.read_bytes()))
    run_tool("strip", "-o", stripped, program)
    run_tool("objcopy", f"--add-section=.gnu_debugdata={packed}", stripped)
    result, table = build_here(key, stripped)
    assert table is not None and result.quality == Quality.MINI
    assert [name_at(table, places[name] + 1) for name in ("twice", "once")] == ["twice", "once"]


def test_a_broken_gnu_debugdata_costs_nothing_but_itself(tmp_path: Path) -> None:
    program = compile_program(golden.C_SOURCE, tmp_path / "p", "-O1", "-rdynamic")
    places, key = addresses_by_nm(program), key_of(describe(program))
    for number, data in enumerate([b"", b"not xz", lzma.compress(b"no elf"), lzma.compress(bytes(80 << 20))[:-9]]):
        packed, stripped = tmp_path / f"{number}.xz", tmp_path / f"{number}.stripped"
        packed.write_bytes(data)
        run_tool("strip", "-o", stripped, program)
        run_tool("objcopy", f"--add-section=.gnu_debugdata={packed}", stripped)
        result, table = build_here(key, stripped)
        assert table is not None and result.quality == Quality.DYNAMIC
        assert name_at(table, places["twice"]) == "twice"

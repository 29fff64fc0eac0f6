# SPDX-License-Identifier: Apache-2.0
"""Debug sections of relocatable files say what they say once the file is linked."""

import os
import struct
from pathlib import Path

import pytest

from server.symbols.build_result import Refused
from server.symbols.elf import ET_REL, ElfFile
from server.symbols.elf_sections import SectionReader
from tests.server.symbols.programs import compile_program, run_tool

SOURCE = "int __attribute__((noinline)) half(int x) { return x / 7; } int twice(int x) { return half(x) * 2; }"


def section(path: Path, name: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return SectionReader(ElfFile(descriptor, (ET_REL, 2, 3)), [1 << 28]).read(name)
    finally:
        os.close(descriptor)


WHOLE, WITHOUT_TEXTS = (".debug_info", ".debug_line", ".debug_aranges"), (".debug_aranges",)
"""A linker merges equal texts, so that those who refer to several are other than before."""


@pytest.mark.parametrize(("options", "names"), [(("-gdwarf-4",), WHOLE), (("-gdwarf-4", "-gz"), WHOLE), (("-gdwarf-5",), WITHOUT_TEXTS)])
def test_sections_are_those_that_the_linker_makes(tmp_path: Path, options: tuple[str, ...], names: tuple[str, ...]) -> None:
    made = compile_program(SOURCE, tmp_path / "code.o", "-c", "-O1", *options)
    linked = tmp_path / "linked"
    run_tool("ld", "-Ttext=0", "-e", "twice", "--compress-debug-sections=none", "-o", linked, made)
    for name in names:
        assert section(made, name) == section(linked, name), name


def test_unknown_kinds_and_places_outside_are_refused(tmp_path: Path) -> None:
    made = compile_program(SOURCE, tmp_path / "code.o", "-c", "-O1", "-g")
    whole = made.read_bytes()
    offset = int(run_tool("readelf", "-SW", made).split(".rela.debug_info")[1].split()[2], 16)
    for place, number, words in ((offset + 8, 99, "type 99"), (offset, 1 << 62, "behind the end")):
        damaged = bytearray(whole)
        # Elf64_Rela: r_offset u64, r_info u64 (type in the lower half), r_addend i64.
        struct.pack_into("<I" if number == 99 else "<Q", damaged, place, number)
        made.write_bytes(damaged)
        with pytest.raises(Refused, match=words):
            section(made, ".debug_info")


def test_an_absolute_symbol_lies_in_no_section(tmp_path: Path) -> None:
    for name, words in (
        ("use", '__asm__(".text\\n.skip 16\\n.section .debug_other\\n.quad place + 7");'),
        ("place", '__asm__(".globl place\\nplace = 0x2300");'),
    ):
        compile_program(words, tmp_path / f"{name}.o", "-c")
    made = tmp_path / "both.o"
    run_tool("ld", "-r", "-o", made, tmp_path / "use.o", tmp_path / "place.o")
    assert " ABS place" in run_tool("readelf", "-sW", made)
    damaged = bytearray(made.read_bytes())
    # Elf64_Ehdr: e_shoff u64 at 40, e_shentsize, e_shnum u16 at 58; Elf64_Shdr: sh_flags u64 at 8 (2: ALLOC, 4: EXECINSTR).
    (table,), (width, count) = struct.unpack_from("<Q", damaged, 40), struct.unpack_from("<HH", damaged, 58)
    struct.pack_into("<Q", damaged, table + (count - 1) * width + 8, 6)  # The last one is placed like code, behind 16 bytes of it.
    made.write_bytes(damaged)
    assert section(made, ".debug_other") == struct.pack("<Q", 0x2307)

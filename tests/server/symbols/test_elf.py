# SPDX-License-Identifier: Apache-2.0
"""Symbols and identities of real programs, read by us and by binutils."""

import os
import struct
from pathlib import Path

import pytest

from emberwatch.v1 import batch_pb2 as pb
from server.symbols.build_result import BuildStatus, Quality, Refused
from server.symbols.elf import ElfFile
from server.symbols.identity import BinaryKey, key_of
from tests.server.symbols.programs import addresses_by_nm, build_here, compile_program, describe, name_at, run_tool

TWO_FUNCTIONS = """
__attribute__((noinline)) int work(int x) { return x * 7; }
static __attribute__((noinline)) int hidden(int x) { return work(x) + 23; }
int main(int argc, char **argv) { (void)argv; return hidden(argc); }
"""
ASSEMBLY = """
__asm__(".text\\n.globl asmfn\\nasmfn: nop\\nnop\\nnop\\nasmfn2: nop\\nnop\\nret\\n.Llocal: nop\\nret\\n"
        ".type typed,@function\\ntyped: ret\\nnop\\n");
int main(void) { return 0; }
"""
# st_shndx etc. are at fixed places of the ELF64 header: see elf(5).
E_SHOFF, E_SHENTSIZE, E_SHNUM, E_SHSTRNDX = 0x28, 0x3A, 0x3C, 0x3E


def patched(path: Path, *changes: tuple[int, bytes]) -> Path:
    data = bytearray(path.read_bytes())
    for offset, value in changes:
        data[offset : offset + len(value)] = value
    out = path.with_name(path.name + ".patched")
    out.write_bytes(data)
    return out


def key_without_id(path: Path) -> BinaryKey:
    return BinaryKey(pb.BINARY_KIND_ELF, pb.BUILD_ID_KIND_NONE, b"", describe(path).content_hash)


@pytest.mark.parametrize("options", [("-O2",), ("-O2", "-no-pie"), ("-O2", "-static"), ("-O2", "-Wl,-z,noseparate-code"), ("-O0", "-g")])
def test_functions_are_where_nm_says(tmp_path: Path, options: tuple[str, ...]) -> None:
    program = compile_program(TWO_FUNCTIONS, tmp_path / "p", *options)
    places = addresses_by_nm(program)
    result, table = build_here(key_of(describe(program)), program)
    assert (result.status, result.reason) == (BuildStatus.OK, "")
    assert table is not None and table.facts.quality == (Quality.DWARF if "-g" in options else Quality.FULL)
    for name in ("work", "main"):
        assert name_at(table, places[name]) == name
        assert name_at(table, places[name] + 1) == name


def test_labels_of_assembly_are_named_and_inexact(tmp_path: Path) -> None:
    program = compile_program(ASSEMBLY, tmp_path / "p", "-O2")
    places = addresses_by_nm(program)
    _, table = build_here(key_of(describe(program)), program)
    assert table is not None
    assert [name_at(table, places["asmfn"] + i) for i in (0, 2, 3, 5, 6, 8)] == ["asmfn", "asmfn", "asmfn2", "asmfn2", "asmfn2", "typed"]
    import numpy as np

    found = table.find(np.array([places["asmfn"], places["main"]], np.uint64)).tolist()
    assert table.is_inexact(found).tolist() == [True, False]


def test_cold_part_of_a_function_has_its_own_range(tmp_path: Path) -> None:
    """C7: it lies before the function; its name is raw here, and cut for display in demangle.py."""
    source = """
    #include <stdexcept>
    __attribute__((noinline)) int parse(const char *s) { if (!s) throw std::runtime_error("x"); return s[0] * 7; }
    int main(int c, char **v) { return parse(v[c - 1]); }
    """
    program = compile_program(source, tmp_path / "thr", "-O2", compiler="g++", suffix=".cc")
    places = addresses_by_nm(program)
    if "_Z5parsePKc.cold" not in places:
        pytest.skip("this compiler splits no cold part off")
    _, table = build_here(key_of(describe(program)), program)
    assert table is not None
    assert name_at(table, places["_Z5parsePKc.cold"]) == "_Z5parsePKc.cold"
    assert name_at(table, places["_Z5parsePKc"]) == "_Z5parsePKc"


def test_folded_functions_have_one_name_by_a_fixed_rule(tmp_path: Path) -> None:
    """C9: gold folds dup1 and dup2."""
    source = """
    __attribute__((noinline)) int dup2(int x) { return x * 23 + 7; }
    __attribute__((noinline)) int dup1(int x) { return x * 23 + 7; }
    int main(int c, char **v) { (void)v; return dup1(c) - dup2(c + 1); }
    """
    options = ("-O1", "-fuse-ld=gold", "-ffunction-sections", "-Wl,--icf=all", "-fno-ipa-icf")
    program = compile_program(source, tmp_path / "icf", *options)
    places = addresses_by_nm(program)
    assert places["dup1"] == places["dup2"]
    _, table = build_here(key_of(describe(program)), program)
    assert table is not None and name_at(table, places["dup1"]) == "dup1"


def test_build_id_of_a_program_with_a_property_note(tmp_path: Path) -> None:
    """C32"""
    program = compile_program(TWO_FUNCTIONS, tmp_path / "p", "-fcf-protection", "-Wl,--build-id=0x2e2e2f2e2e2f657463")
    assert describe(program).build_id == b"../../etc"
    descriptor = os.open(program, os.O_RDONLY)
    try:
        assert ElfFile(descriptor).section_build_ids().gnu == b"../../etc"
    finally:
        os.close(descriptor)


def test_stripped_program_and_debug_file_give_the_union(tmp_path: Path) -> None:
    """B5, C24: the debug file alone has no loadable bytes, the stripped one only its dynamic symbols."""
    program = compile_program(TWO_FUNCTIONS, tmp_path / "p", "-O2", "-rdynamic", "-g")
    places = addresses_by_nm(program)
    debug, stripped = tmp_path / "p.debug", tmp_path / "p.stripped"
    run_tool("objcopy", "--only-keep-debug", program, debug)
    run_tool("strip", "-o", stripped, program)
    key = key_of(describe(program))
    _, poor = build_here(key, stripped)
    assert poor is not None and poor.facts.quality == Quality.DYNAMIC
    assert name_at(poor, places["main"]) == "main"
    _, both = build_here(key, stripped, debug)
    assert both is not None and both.facts.quality == Quality.DWARF
    assert name_at(both, places["_start"]) == "_start"
    _, alone = build_here(key, debug)
    assert alone is not None and name_at(alone, places["work"]) == "work"


def test_file_with_another_build_id_is_refused(tmp_path: Path) -> None:
    one = compile_program(TWO_FUNCTIONS, tmp_path / "one", "-Wl,--build-id=0x1234567890abcdef")
    two = compile_program(TWO_FUNCTIONS, tmp_path / "two", "-Wl,--build-id=0xfedcba0987654321")
    result, _ = build_here(key_of(describe(one)), two)
    assert result.status == BuildStatus.MALFORMED
    assert result.reason == "the file has build id fedcba0987654321, not 1234567890abcdef"


def test_file_filed_under_no_id_must_have_none(tmp_path: Path) -> None:
    program = compile_program(TWO_FUNCTIONS, tmp_path / "none", "-Wl,--build-id=none")
    assert build_here(key_without_id(program), program)[0].status == BuildStatus.OK
    with_id = compile_program(TWO_FUNCTIONS, tmp_path / "some", "-Wl,--build-id=0x1234567890abcdef")
    assert build_here(key_without_id(with_id), with_id)[0].status == BuildStatus.MALFORMED


@pytest.mark.parametrize(
    "changes",
    [
        [(E_SHENTSIZE, struct.pack("<H", 0))],
        [(E_SHOFF, b"\xff" * 8), (E_SHNUM, b"\xff\xff"), (E_SHSTRNDX, b"\xff\xff")],
        [(E_SHOFF, struct.pack("<Q", 2**63))],
    ],
    ids=["e_shentsize 0", "fields of ff", "e_shoff 2^63"],
)
def test_broken_section_headers_leave_the_dynamic_symbols(tmp_path: Path, changes: list[tuple[int, bytes]]) -> None:
    """C27, C29"""
    program = compile_program(TWO_FUNCTIONS, tmp_path / "p", "-O2", "-rdynamic")
    places = addresses_by_nm(program)
    result, table = build_here(key_of(describe(program)), patched(program, *changes))
    assert result.status == BuildStatus.OK
    assert table is not None and table.facts.quality == Quality.DYNAMIC
    assert name_at(table, places["main"]) == "main"
    assert name_at(table, places["work"]) == "work"


def test_sections_without_entry_sizes_are_read_as_always(tmp_path: Path) -> None:
    """A27: sh_entsize 0 divides nothing and loops nowhere."""
    program = compile_program(TWO_FUNCTIONS, tmp_path / "p", "-O2")
    (section_headers,) = struct.unpack_from("<Q", program.read_bytes(), E_SHOFF)
    (count,) = struct.unpack_from("<H", program.read_bytes(), E_SHNUM)
    hostile = patched(program, *((section_headers + 64 * index + 0x38, bytes(8)) for index in range(count)))
    result, table = build_here(key_of(describe(program)), hostile)
    assert result.status == BuildStatus.OK
    assert table is not None and name_at(table, addresses_by_nm(program)["work"]) == "work"


def test_two_to_the_62_sections_are_none(tmp_path: Path) -> None:
    """C27: e_shnum 0 says that the number stands in sh_size of the first header."""
    program = compile_program(TWO_FUNCTIONS, tmp_path / "p", "-O2", "-static")
    (section_headers,) = struct.unpack_from("<Q", program.read_bytes(), E_SHOFF)
    hostile = patched(program, (E_SHNUM, b"\0\0"), (section_headers + 0x20, struct.pack("<Q", 2**62)))
    result, table = build_here(key_of(describe(program)), hostile)
    assert (result.status, table) == (BuildStatus.MALFORMED, None)
    assert result.reason == "section headers cannot be read, and there are no dynamic symbols"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "starts with nothing: not an ELF file"),
        (bytes(4), "starts with 00 00 00 00: not an ELF file"),
        (b"webapp/index", "starts with 77 65 62 61 70 70 2f 69: not an ELF file"),
        (b"<!DOCTYPE html><html>404</html>", "starts with 3c 21 44 4f 43 54 59 50: not an ELF file"),
        (b"\x7fELF\2\1\1", "header cut at 7 bytes"),
        (b"\x7fELF\3\1\1" + bytes(60), "unknown class or byte order 03 01"),
        (b"\x7fELF\2\1\1".ljust(16, b"\0") + struct.pack("<H", 3) + bytes(60), "neither section nor program headers can be read"),
    ],
)
def test_what_is_no_elf_file_is_malformed(tmp_path: Path, data: bytes, reason: str) -> None:
    path = tmp_path / "body"
    path.write_bytes(data)
    key = BinaryKey(pb.BINARY_KIND_ELF, pb.BUILD_ID_KIND_GNU, b"\1" * 20, b"\2" * 16)
    result, table = build_here(key, path)
    assert (result.status, result.reason, table) == (BuildStatus.MALFORMED, reason, None)


@pytest.mark.parametrize("kind", [1, 4])
def test_object_files_and_cores_are_unsupported(tmp_path: Path, kind: int) -> None:
    path = tmp_path / "core"
    path.write_bytes(b"\x7fELF\2\1\1".ljust(16, b"\0") + struct.pack("<H", kind) + bytes(60))
    with path.open("rb") as file, pytest.raises(Refused) as caught:
        ElfFile(file.fileno())
    assert caught.value.status == BuildStatus.UNSUPPORTED


def test_32_bit_big_endian_symbols(tmp_path: Path) -> None:
    """A file written by hand: one executable section, one symbol `f` at 0x1000 of 7 bytes."""
    strings = b"\0f\0"
    symbols = bytes(16) + struct.pack(">IIIBBH", 1, 0x1000, 7, (1 << 4) | 2, 0, 1)  # name, value, size, GLOBAL FUNC, other, shndx
    header_bytes, at = 52, 52 + len(strings) + 1
    section_at = at + len(symbols)
    sections = bytes(40)
    sections += struct.pack(">10I", 0, 1, 6, 0x1000, 0, 0x100, 0, 0, 16, 0)  # PROGBITS, ALLOC|EXECINSTR at 0x1000
    sections += struct.pack(">10I", 0, 2, 0, 0, at, len(symbols), 3, 1, 4, 16)  # SYMTAB, strings in section 3
    sections += struct.pack(">10I", 0, 3, 0, 0, header_bytes, len(strings), 0, 0, 1, 0)  # STRTAB
    header = b"\x7fELF\1\2\1".ljust(16, b"\0")
    header += struct.pack(">HHIIIIIHHHHHH", 2, 20, 1, 0x1000, 0, section_at, 0, 52, 32, 0, 40, 4, 0)
    path = tmp_path / "ppc"
    path.write_bytes(header + strings + b"\0" + symbols + sections)
    key = BinaryKey(pb.BINARY_KIND_ELF, pb.BUILD_ID_KIND_NONE, b"", b"\1" * 16)
    result, table = build_here(key, path)
    assert (result.status, result.reason) == (BuildStatus.OK, "")
    assert table is not None
    assert [name_at(table, a) for a in (0xFFF, 0x1000, 0x1006, 0x1007)] == [None, "f", "f", None]

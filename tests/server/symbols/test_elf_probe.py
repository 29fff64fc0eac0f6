# SPDX-License-Identifier: Apache-2.0
"""What a look at a file says of it, beside what binutils say; and that no bytes whatever make it raise anything else or read much."""

import os
import random
from pathlib import Path

import pytest

from server.symbols.build_result import Refused
from server.symbols.elf_probe import AltLink, DebugLink, Probe, probe
from tests.server.symbols.programs import compile_program, run_tool

SOURCE = "int main(void) { return 7; }"


def look(path: Path) -> Probe:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return probe(descriptor)
    finally:
        os.close(descriptor)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return compile_program(SOURCE, tmp_path / "p", "-g", "-Wl,--build-id=0x1234567890abcdef")


def test_whole_program(program: Path) -> None:
    found = look(program)
    assert found.build_ids.gnu.hex() == "1234567890abcdef"
    assert (found.has_code, found.has_dwarf, found.has_symtab, found.has_dynamic_symbols) == (True, True, True, True)
    assert (found.debug_link, found.alt_link) == (None, None)


def test_debug_file_has_no_code(program: Path, tmp_path: Path) -> None:
    debug = tmp_path / "p.debug"
    run_tool("objcopy", "--only-keep-debug", program, debug)
    found = look(debug)
    assert found.build_ids.gnu.hex() == "1234567890abcdef"
    assert (found.has_code, found.has_dwarf, found.has_symtab) == (False, True, True)


def test_stripped_program_with_its_links(program: Path, tmp_path: Path) -> None:
    debug, alt = tmp_path / "p.debug", tmp_path / "alt"
    run_tool("objcopy", "--only-keep-debug", program, debug)
    alt.write_bytes(b"/usr/lib/debug/.dwz/x.debug\0" + b"\7" * 20)
    run_tool("objcopy", "--strip-all", f"--add-gnu-debuglink={debug}", f"--add-section=.gnu_debugaltlink={alt}", program)
    found = look(program)
    assert (found.has_code, found.has_dwarf, found.has_symtab, found.has_dynamic_symbols) == (True, False, False, True)
    assert found.debug_link is not None and found.debug_link == DebugLink(b"p.debug", found.debug_link.crc)
    assert found.alt_link == AltLink(b"/usr/lib/debug/.dwz/x.debug", b"\7" * 20)


def test_32_bits_and_no_build_id(tmp_path: Path) -> None:
    found = look(compile_program(SOURCE, tmp_path / "p", "-m32", "-nostdlib", "-static", "-Wl,-e,main", "-Wl,--build-id=none"))
    assert (found.build_ids.gnu, found.has_code, found.has_symtab) == (b"", True, True)


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"weba", bytes(64), b"<html>" * 20, b"\x7fELF\7\1\1".ljust(64, b"\0")])
def test_what_is_no_program_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(Refused):
        look(tmp_path / "x")


def test_hostile_bytes_are_refused_or_read_with_bounds(program: Path, tmp_path: Path) -> None:
    chosen, whole, path = random.Random(7), program.read_bytes(), tmp_path / "x"
    table = int.from_bytes(whole[40:48], "little")
    for _ in range(2000):
        data = bytearray(whole)
        for _ in range(chosen.randint(1, 6)):
            place = chosen.choice((chosen.randrange(64), table + chosen.randrange(64 * 30), chosen.randrange(len(data)))) % len(data)
            data[place] = chosen.choice((0, 1, 0x7F, 0x80, 0xFF, chosen.randrange(256)))
        path.write_bytes(data[: chosen.choice((len(data), chosen.randrange(len(data))))])
        try:
            look(path)
        except Refused:
            continue

# SPDX-License-Identifier: Apache-2.0
"""The units of .dwo and .dwp files are known by what other tools print of them."""

import os
import re
import struct
import tracemalloc
from pathlib import Path

import pytest

from server.symbols.dwarf.abbrev import find_abbreviation
from server.symbols.dwarf.shape import DwarfError, Shape
from server.symbols.split_ids import split_ids
from tests.server.symbols.programs import compile_program, run_tool

SOURCE = "static inline int half(int x) { return x / 7; } int main(int c, char **v) { (void)v; return half(c); }"


def ids_of(path: Path) -> frozenset[int]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return frozenset(split_ids(descriptor).tolist())
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("options", [("-gdwarf-4",), ("-gdwarf-5",), ("-gdwarf-5", "-gz"), ("-gdwarf-4", "-gz")])
def test_the_unit_of_a_file(tmp_path: Path, options: tuple[str, ...]) -> None:
    made = compile_program(SOURCE, tmp_path / "app.o", "-c", "-O1", "-gsplit-dwarf", *options)
    printed = run_tool("readelf", "-wN", "--debug-dump=info", made)
    (dwo_id,) = {int(found, 16) for found in re.findall(r"(?:DWO ID|dwo_id)\s*:\s*0x([0-9a-f]+)", printed)}
    assert ids_of(tmp_path / "app.dwo") == {dwo_id}


def test_the_units_of_a_packed_file(tmp_path: Path) -> None:
    objects: list[str | Path] = []
    for name in ("main", "other"):
        text = SOURCE if name == "main" else "int other(int x) { return x * 23; }"
        objects.append(compile_program(text, tmp_path / f"{name}.o", "-c", "-O1", "-gdwarf-4", "-gsplit-dwarf"))
    run_tool("gcc", "-o", tmp_path / "app", *objects)
    run_tool("dwp", "-e", tmp_path / "app", "-o", tmp_path / "app.dwp")
    units = ids_of(tmp_path / "main.dwo") | ids_of(tmp_path / "other.dwo")
    assert len(units) == 2
    assert ids_of(tmp_path / "app.dwp") == units


def test_what_is_no_such_file_has_none(tmp_path: Path) -> None:
    program = compile_program(SOURCE, tmp_path / "app", "-O1", "-g")
    (tmp_path / "text").write_text("no ELF file")
    assert ids_of(program) == ids_of(tmp_path / "text") == frozenset()


def test_a_unit_is_found_behind_very_many_abbreviations() -> None:
    """The others are passed over: as objects they would take hundreds of megabytes."""
    shape = Shape("little", 4, 4, 8)
    # Code, tag DW_TAG_variable, no children, DW_AT_name as DW_FORM_string, end of the attributes.
    others = b"".join(bytes((0x80 | code & 0x7F, 0x80 | code >> 7 & 0x7F, code >> 14, 0x34, 0, 3, 8, 0, 0)) for code in range(2, 23_000))
    wanted = b"\x01\x11\x00\xb1\x42\x07\x00\x00"  # Code 1, DW_TAG_compile_unit, DW_AT_GNU_dwo_id as DW_FORM_data8.
    tracemalloc.start()
    found = find_abbreviation(others + wanted + b"\0", 0, shape, 1)
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.attributes == ((0x2131, 7, 0),)
    assert most_bytes < 1 << 20
    with pytest.raises(DwarfError, match="unknown abbreviation 7000000"):
        find_abbreviation(others + wanted + b"\0", 0, shape, 7_000_000)
    endless = b"\x01\x11\x00" + b"\x03\x08" * 100_000 + b"\0\0\0"
    with pytest.raises(DwarfError, match="without end"):
        find_abbreviation(endless, 0, shape, 1)


def test_damaged_files_have_one_or_none(tmp_path: Path) -> None:
    compile_program(SOURCE, tmp_path / "app.o", "-c", "-O1", "-gdwarf-4", "-gsplit-dwarf")
    whole = (tmp_path / "app.dwo").read_bytes()
    for cut in range(0, len(whole), 23):
        (tmp_path / "cut").write_bytes(whole[:cut])
        assert len(ids_of(tmp_path / "cut")) <= 1
    for place in range(64, len(whole) - 4, 97):
        damaged = bytearray(whole)
        struct.pack_into("<I", damaged, place, 0xFFFF_FFFF)
        (tmp_path / "damaged").write_bytes(damaged)
        assert len(ids_of(tmp_path / "damaged")) <= 1

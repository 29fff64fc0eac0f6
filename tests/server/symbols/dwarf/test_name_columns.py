# SPDX-License-Identifier: Apache-2.0
"""Names that are followed all at once are those that each entry leads to by itself."""

import os
from pathlib import Path

import pytest

from server.symbols.dwarf.abbrev import Abbreviations
from server.symbols.dwarf.calls import settle
from server.symbols.dwarf.load import load_debug_data
from server.symbols.dwarf.name_columns import names_of
from server.symbols.dwarf.naming import Names
from server.symbols.dwarf.unit import Unit, open_unit, unit_headers
from server.symbols.dwarf.walk import Found, walk
from server.symbols.elf import ElfFile
from tests.fuzz.targets import PROGRAM
from tests.server.symbols.programs import compile_program


def read(path: Path) -> tuple[list[Unit], list[int]]:
    """The units of a program, and the entries that its functions and calls are named by."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        elf = ElfFile(descriptor)
        data, code, tables = load_debug_data(elf, [1 << 28]), elf.code(), Abbreviations()
    finally:
        os.close(descriptor)
    found = Found(code.starts.tolist(), code.ends.tolist())
    units = [open_unit(data, header, tables) for header in unit_headers(data)]
    for unit in units:
        walk(unit, found)
    return units, settle(found, lambda: None).names.tolist()


@pytest.mark.parametrize("version", ["-gdwarf-5", "-gdwarf-3"])
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_all_at_once_is_one_by_one(tmp_path: Path, compiler: str, version: str) -> None:
    units, places = read(compile_program(PROGRAM, tmp_path / "p", "-O2", version, compiler=compiler, suffix=".cc"))
    names = Names(units)
    nowhere = [units[0].header.start, 1 << 40, (1 << 62) + 7]
    found = names_of(units, (), [*places, *nowhere])
    assert found == {place: names.name(place) for place in [*places, *nowhere]}
    assert any(b"half" in name for name in found.values())
    assert [found[place] for place in nowhere] == [b""] * 3

# SPDX-License-Identifier: Apache-2.0
"""Broken and dead parts of debug data cost themselves, and time is bounded."""

import os
import re
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

from server.symbols.build_result import BuildResult
from server.symbols.dwarf import read
from server.symbols.dwarf.load import load_debug_data
from server.symbols.dwarf.read import Known, OutOfTime, ReadDebug, read_debug
from server.symbols.dwarf.unit import unit_headers
from server.symbols.elf import ElfFile
from server.symbols.identity import key_of
from server.symbols.inlines import Inlines
from server.symbols.symtab import Ranges
from server.symbols.table import Table
from tests.server.symbols import golden
from tests.server.symbols.programs import addresses_by_nm, build_here, compile_program, describe, name_at, run_tool

INLINED = (
    "static inline __attribute__((always_inline)) int in_{0}(int x) {{ return x * 7 + {1}; }}\nint {0}(int x) {{ return in_{0}(x); }}\n"
)


def several_units(tmp_path: Path) -> Path:
    """three functions in units of their own, each with a call inlined."""
    sources = []
    for number, name in enumerate(("one", "two", "three")):
        source = tmp_path / f"{name}.c"
        source.write_text(INLINED.format(name, number))
        sources.append(source)
    main = tmp_path / "main.c"
    main.write_text("int one(int), two(int), three(int); int main(int c, char **v) { (void)v; return one(c) + two(c) + three(c); }")
    program = tmp_path / "p"
    subprocess.run(["gcc", "-O1", "-gdwarf-4", "-o", program, *sources, main], check=True)
    return program


def section_of(path: Path, name: str) -> tuple[int, int]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        elf = ElfFile(descriptor)
        section = elf.sections[elf.section_names.index(name)]
        return int(section["offset"]), int(section["size"])
    finally:
        os.close(descriptor)


def build(program: Path, data: bytes | None = None) -> tuple[BuildResult, Table]:
    source = program
    if data is not None:
        source = program.with_suffix(".damaged")
        source.write_bytes(data)
    result, table = build_here(key_of(describe(program)), source)
    assert table is not None
    return result, table


def chains(table: Table, *addresses: int) -> list[list[str]]:
    return [[name for name, *_ in chain] for chain in golden.by_table(table, addresses)]


def test_one_broken_unit_costs_its_own_calls_only(tmp_path: Path) -> None:
    """C36: the second of the units has an entry of a kind that nobody defined."""
    program = several_units(tmp_path)
    places = addresses_by_nm(program)
    offset, size = section_of(program, ".debug_info")
    data = bytearray(program.read_bytes())
    starts = [header.root for header in unit_headers(load_of(program))]
    data[offset + starts[1]] = 0x7E
    result, table = build(program, bytes(data))
    assert result.debug_reason == "malformed: 1 units are broken"
    assert chains(table, places["one"], places["two"], places["three"]) == [["in_one", "one"], ["two"], ["in_three", "three"]]
    assert size


def load_of(program: Path):  # type: ignore[no-untyped-def]
    descriptor = os.open(program, os.O_RDONLY)
    try:
        return load_debug_data(ElfFile(descriptor), [1 << 28])
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("tombstone", [0, 1, (1 << 64) - 1, (1 << 64) - 2])
def test_functions_that_the_linker_threw_away_name_nothing(tmp_path: Path, tombstone: int) -> None:
    """C19: an entry from a tombstone on, 0x4000 bytes long, over everything that is alive."""
    program = several_units(tmp_path)
    places = addresses_by_nm(program)
    offset, size = section_of(program, ".debug_info")
    data = bytearray(program.read_bytes())
    at = data.index(struct.pack("<Q", places["two"]), offset, offset + size)
    at = data.index(struct.pack("<Q", places["two"]), at + 1, offset + size)  # The first one is the unit's own.
    data[at : at + 16] = struct.pack("<QQ", tombstone, 0x4000)
    _, table = build(program, bytes(data))
    assert chains(table, places["one"], places["two"], places["three"]) == [["in_one", "one"], ["two"], ["in_three", "three"]]


def test_lines_of_dead_code_alone_are_no_lines(tmp_path: Path) -> None:
    """Found by fuzzing: every sequence of lines is one that the linker threw away, and the functions are alive."""
    program = several_units(tmp_path)
    places = addresses_by_nm(program)
    offset, size = section_of(program, ".debug_line")
    data = bytearray(program.read_bytes())
    lines, dead = re.subn(rb"(?s)\x00\x09\x02.{8}", lambda _: b"\x00\x09\x02" + bytes(8), bytes(data[offset : offset + size]))
    assert dead >= 4
    data[offset : offset + size] = lines
    result, table = build(program, bytes(data))
    assert not result.debug_reason
    assert chains(table, places["one"], places["two"]) == [["in_one", "one"], ["in_two", "two"]]


def test_code_at_address_0_is_code(tmp_path: Path) -> None:
    """C20"""
    source = "static inline __attribute__((always_inline)) int in(int x) { return x * 7; }\nint first(int x) { return in(x); }"
    options = ("-O1", "-g", "-nostdlib", "-static", "-no-pie", "-Wl,-Ttext=0,-e,first,--build-id=none", "-fcf-protection=none")
    program = compile_program(source, tmp_path / "p", *options)
    assert addresses_by_nm(program)["first"] == 0
    _, table = build(program)
    assert name_at(table, 0) == "first"
    assert chains(table, 0) == [["in", "first"]]


def test_an_inlined_call_at_the_very_start_is_seen(tmp_path: Path) -> None:
    """C13"""
    program = several_units(tmp_path)
    _, table = build(program)
    assert chains(table, addresses_by_nm(program)["one"]) == [["in_one", "one"]]


def test_debug_data_that_takes_too_long_gives_names_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """C35"""
    program = several_units(tmp_path)
    monkeypatch.setattr(read, "CPU_S", -1.0)
    result, table = build(program)
    assert result.debug_reason.startswith("limit: debug data takes more than")
    assert chains(table, addresses_by_nm(program)["one"]) == [["one"]]


def test_time_is_asked_for_at_every_unit(tmp_path: Path) -> None:
    data = load_of(several_units(tmp_path))
    code = Ranges(np.zeros(1, np.uint64), np.full(1, 1 << 40, np.uint64))
    nothing = Known(np.zeros(0, np.uint64), {})
    ticks = iter(range(100))
    whole = read_debug(data, code, nothing, clock_s=lambda: next(ticks) * 1.0)
    assert isinstance(whole, ReadDebug) and isinstance(whole.inlines, Inlines) and (whole.units, whole.broken_units) == (4, 0)
    with pytest.raises(OutOfTime):
        read_debug(data, code, nothing, clock_s=lambda: next(ticks) * 30.0)


def test_a_debug_file_beside_a_stripped_program(tmp_path: Path) -> None:
    """C21, C24: the debug file has what the stripped one lacks."""
    program = several_units(tmp_path)
    places, key = addresses_by_nm(program), key_of(describe(program))
    debug, stripped = tmp_path / "p.debug", tmp_path / "p.stripped"
    run_tool("objcopy", "--only-keep-debug", program, debug)
    run_tool("strip", "-o", stripped, program)
    for sources in ((stripped, debug), (debug,), (debug, stripped)):
        _, table = build_here(key, *sources)
        assert table is not None
        assert chains(table, places["one"], places["main"]) == [["in_one", "one"], ["main"]]

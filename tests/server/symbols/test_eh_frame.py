# SPDX-License-Identifier: Apache-2.0
"""Functions of stripped programs: their bounds as binutils reads them, and one name for each."""

import os
import re
from pathlib import Path

import numpy as np
import pytest

from agent.process.upload_cut import CutExit, cut
from server.symbols.build_result import BuildStatus
from server.symbols.eh_frame import function_bounds
from server.symbols.elf import ElfFile
from server.symbols.identity import key_of
from server.symbols.resolve import resolve
from server.symbols.symtab import Ranges
from tests.server.symbols import golden
from tests.server.symbols.programs import addresses_by_nm, build_here, compile_program, describe, run_tool


def bounds_of(path: Path) -> Ranges | None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return function_bounds(ElfFile(descriptor))
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("options", [("-O2",), ("-O2", "-static"), ("-O2", "-no-pie"), ("-O2", "-s")])
def test_functions_start_where_readelf_says(tmp_path: Path, options: tuple[str, ...]) -> None:
    program = compile_program(golden.CPP_SOURCE, tmp_path / "p", *options, compiler="g++", suffix=".cc")
    bounds = bounds_of(program)
    assert bounds is not None and np.all(bounds.starts[1:] >= bounds.ends[:-1])
    dump = run_tool("readelf", "--debug-dump=frames", program)
    told = {(int(low, 16), int(high, 16)) for low, high in re.findall(r"FDE cie=\S+ pc=([0-9a-f]+)\.\.([0-9a-f]+)", dump)}
    found = set(zip(bounds.starts.tolist(), bounds.ends.tolist(), strict=True))
    assert found <= told and len(found) >= len(told) * 0.99 > 10


def test_a_stripped_function_is_one_name_at_all_its_addresses(tmp_path: Path) -> None:
    program = compile_program(golden.C_SOURCE, tmp_path / "p", "-O1")
    places, key = addresses_by_nm(program), key_of(describe(program))
    stripped, uploaded = tmp_path / "stripped", tmp_path / "cut"
    run_tool("strip", "-o", stripped, program)
    with stripped.open("rb") as whole, uploaded.open("wb") as target:
        assert cut(whole.fileno(), target.fileno()) == CutExit.DONE
    result, table = build_here(key, uploaded)
    assert result.status == BuildStatus.OK and table is not None
    binary = describe(stripped)
    (offset, vaddr), *_ = [(segment[0], segment[1]) for segment in binary.segments if segment[4] & 1]
    inside = np.array([places["twice"] + step - vaddr + offset for step in (0, 1, 5, 11)], np.uint64)
    placed = resolve(binary, table, inside, np.zeros(4, np.uint8))
    assert placed.symbols.tolist() == [-1] * 4
    assert placed.addresses.tolist() == [places["twice"]] * 4


def test_no_table_no_bounds(tmp_path: Path) -> None:
    options = ("-O1", "-fno-asynchronous-unwind-tables", "-nostdlib", "-static", "-Wl,-e,main,--unresolved-symbols=ignore-all")
    assert bounds_of(compile_program(golden.C_SOURCE, tmp_path / "p", *options)) is None


def test_damaged_tables_give_fewer_functions_never_wrong_ones(tmp_path: Path) -> None:
    """A start counts only when header and entry agree on it."""
    program = compile_program(golden.C_SOURCE, tmp_path / "p", "-O1")
    true = bounds_of(program)
    assert true is not None
    known = set(zip(true.starts.tolist(), true.ends.tolist(), strict=True))
    data = bytearray(program.read_bytes())
    descriptor = os.open(program, os.O_RDONLY)
    elf = ElfFile(descriptor)
    section = elf.sections[elf.section_names.index(".eh_frame_hdr")]
    os.close(descriptor)
    first, size = int(section["offset"]), int(section["size"])
    path = tmp_path / "damaged"
    for place in range(first + 4, first + size):
        damaged = bytearray(data)
        damaged[place] ^= 0xFF
        path.write_bytes(damaged)
        found = bounds_of(path)
        if found is not None:
            assert set(zip(found.starts.tolist(), found.ends.tolist(), strict=True)) <= known

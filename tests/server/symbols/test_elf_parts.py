# SPDX-License-Identifier: Apache-2.0
"""The golden corpus: programs built in many ways, every function of them sampled, each address as another tool names it."""

import shutil
from pathlib import Path

import pytest

from server.symbols.build_result import BuildStatus, Quality
from server.symbols.identity import key_of
from server.symbols.table import Table
from tests.server.symbols import golden
from tests.server.symbols.programs import build_here, compile_program, describe, run_tool

VARIANTS = {
    "O0": ("-O0", "-g"),
    "O1": ("-O1", "-g"),
    "O2-dwarf4": ("-O2", "-gdwarf-4"),
    "O2-dwarf5": ("-O2", "-gdwarf-5"),
    "O3-dwarf2": ("-O3", "-gdwarf-2"),
    "O3-dwarf3": ("-O3", "-gdwarf-3"),
    "O2-no-pie": ("-O2", "-g", "-no-pie"),
    "O2-static": ("-O2", "-g", "-static"),
    "O2-lto": ("-O2", "-g", "-flto"),
    "O2-gold": ("-O2", "-g", "-fuse-ld=gold", "-ffunction-sections", "-Wl,--icf=all"),
    "O2-one-segment": ("-O2", "-g", "-Wl,-z,noseparate-code"),
    "O2-no-id": ("-O2", "-g", "-Wl,--build-id=none"),
    "O2-sections": ("-O2", "-g", "-ffunction-sections", "-Wl,--gc-sections"),
    "O2-types": ("-O2", "-g", "-fdebug-types-section"),
    "O2-dwarf64": ("-O2", "-g", "-gdwarf64"),
}


def table_of(program: Path, *sources: Path) -> Table:
    result, table = build_here(key_of(describe(program)), *(sources or (program,)))
    assert (result.status, result.reason, result.debug_reason) == (BuildStatus.OK, "", "")
    assert table is not None and table.facts.quality == Quality.DWARF == result.quality
    return table


def assert_golden(program: Path, table: Table, most: int = 1500) -> None:
    """At most one address in a thousand differs; a wrong name would be one that no symbol there has."""
    known = golden.functions(program)
    addresses = golden.sampled(known, most)
    ours = golden.by_table(table, addresses)
    tools = [*([golden.by_llvm] if shutil.which("llvm-symbolizer") else [golden.by_addr2line])]
    for tool in tools:
        found = golden.differences(known, addresses, ours, tool(program, addresses))
        assert len(found) <= len(addresses) // 1000, f"{tool.__name__}: {len(found)} of {len(addresses)}\n" + "\n".join(found[:7])


@pytest.mark.parametrize("options", VARIANTS.values(), ids=VARIANTS)
@pytest.mark.parametrize("language", ["c", "c++"])
def test_every_function_as_other_tools_name_it(tmp_path: Path, options: tuple[str, ...], language: str) -> None:
    compiler, suffix, source = ("gcc", ".c", golden.C_SOURCE) if language == "c" else ("g++", ".cc", golden.CPP_SOURCE)
    program = compile_program(source, tmp_path / "p", *options, compiler=compiler, suffix=suffix)
    assert_golden(program, table_of(program))


@pytest.mark.parametrize("way", ["zlib", "zlib-gnu", "zstd"])
def test_compressed_sections(tmp_path: Path, way: str) -> None:
    program = compile_program(golden.C_SOURCE, tmp_path / "p", "-O2", "-g")
    packed = tmp_path / "packed"
    run_tool("objcopy", f"--compress-debug-sections={way}", program, packed)
    assert_golden(program, table_of(program, packed))

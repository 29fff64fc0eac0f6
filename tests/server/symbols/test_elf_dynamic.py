# SPDX-License-Identifier: Apache-2.0
"""Dynamic symbols without section headers, by both kinds of hash table."""

from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from server.symbols.elf import ElfFile
from server.symbols.elf_dynamic import dynamic_symbols
from tests.server.symbols.programs import compile_program

SOURCE = "\n".join(f"int exported{i}(int x) {{ return x + {i}; }}" for i in range(23)) + "\nint main(void) { return exported7(1); }"


@pytest.mark.parametrize("style", ["gnu", "sysv", "both"])
def test_all_dynamic_symbols_are_found(tmp_path: Path, style: str) -> None:
    program = compile_program(SOURCE, tmp_path / style, "-O1", "-shared", "-fPIC", f"-Wl,--hash-style={style}")
    with program.open("rb") as file:
        found = dynamic_symbols(ElfFile(file.fileno()))
        table = ELFFile(file).get_section_by_name(".dynsym")
        assert isinstance(table, SymbolTableSection)
        wanted = {
            symbol["st_value"]
            for symbol in table.iter_symbols()
            if symbol["st_shndx"] != "SHN_UNDEF" and symbol["st_info"]["type"] == "STT_FUNC"
        }
    assert found is not None and len(wanted) >= 24
    assert set(found.starts.tolist()) == wanted


def test_static_program_has_none(tmp_path: Path) -> None:
    program = compile_program("int main(void) { return 0; }", tmp_path / "p", "-static")
    with program.open("rb") as file:
        assert dynamic_symbols(ElfFile(file.fileno())) is None

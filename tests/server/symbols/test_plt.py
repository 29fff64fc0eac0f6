# SPDX-License-Identifier: Apache-2.0
"""Stubs of the procedure linkage table, checked against objdump."""

import re
from pathlib import Path

import pytest

from server.symbols.identity import key_of
from tests.server.symbols.programs import build_here, compile_program, describe, name_at, run_tool

SOURCE = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int c, char **v) { puts(v[0]); printf("%d %zu", rand(), strlen(v[c - 1])); return abs(atoi(v[0])); }
"""


@pytest.mark.parametrize("protection", ["none", "full"])
def test_stubs_bear_the_name_of_what_they_call(tmp_path: Path, protection: str) -> None:
    options = ("-O0", "-fno-builtin", "-Wl,-z,lazy", f"-fcf-protection={protection}")
    program = compile_program(SOURCE, tmp_path / "p", *options)
    stubs = re.findall(r"^([0-9a-f]{16}) <(\w+@plt)>:$", run_tool("objdump", "-d", program), re.MULTILINE)
    expected = {name: int(address, 16) for address, name in stubs if name in {"puts@plt", "rand@plt", "strlen@plt"}}
    if len(expected) != 3:
        pytest.skip("objdump names no stubs here")
    _, table = build_here(key_of(describe(program)), program)
    assert table is not None
    assert {name: name_at(table, address + 7) for name, address in expected.items()} == {name: name for name in expected}


def test_program_without_lazy_stubs_has_none(tmp_path: Path) -> None:
    program = compile_program("int main(void) { return 0; }", tmp_path / "p", "-static")
    _, table = build_here(key_of(describe(program)), program)
    assert table is not None

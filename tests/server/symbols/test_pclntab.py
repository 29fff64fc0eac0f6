# SPDX-License-Identifier: Apache-2.0
"""Go's own table of functions, written down byte by byte for each version."""

import os
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from server.symbols import pclntab
from server.symbols.elf import ElfFile
from server.symbols.symtab import RawSymbols
from tests.server.symbols.programs import addresses_by_nm

NAMES = ["main.main", "net/http.(*conn).serve", "example.com/pkg.(*Cache[go.shape.string]).Get"]
STARTS = [0x0, 0x40, 0x80, 0xC0]
TEXT = 0x401000


def table(magic: int, text: int = TEXT) -> bytes:
    """Head, names, then the table of functions with its records behind it."""
    is_old = magic == pclntab.GO_1_16
    names, places = b"", []
    for name in NAMES:
        places.append(len(names))
        names += name.encode() + b"\0"
    words = 8 if is_old else 9
    names_at = 8 + 8 * (words - 1)
    functions_at = names_at + len(names)
    functions_at += -functions_at % 8
    width, code = (8, "Q") if is_old else (4, "I")
    table_bytes = width * (2 * len(NAMES) + 1)
    rows = b"".join(
        struct.pack(f"<{code}{code}", (TEXT if is_old else 0) + start, table_bytes + i * (width + 4)) for i, start in enumerate(STARTS[:-1])
    ) + struct.pack(f"<{code}", (TEXT if is_old else 0) + STARTS[-1])
    records = b"".join(struct.pack(f"<{code}i", 0, place) for place in places)
    counts = (len(NAMES), 0) if is_old else (len(NAMES), 0, text)
    # magic, zero, quantum 1, pointers of 8; counts; names, units, files, line data, functions
    head = struct.pack("<IHBB", magic, 0, 1, 8) + struct.pack(f"<{len(counts)}Q", *counts)
    head += struct.pack("<5Q", names_at, 0, 0, 0, functions_at)
    return (head + names).ljust(functions_at, b"\0") + rows + records


def names_of(raw: RawSymbols | None) -> list[tuple[int, int, str]]:
    assert raw is not None
    blob = raw.strings.tobytes()
    return [
        (start, size, blob[name : blob.index(b"\0", name)].decode())
        for start, size, name in zip(raw.starts.tolist(), raw.sizes.tolist(), raw.name_starts.tolist(), strict=True)
    ]


@pytest.mark.parametrize("magic", [pclntab.GO_1_16, pclntab.GO_1_18, pclntab.GO_1_20])
def test_functions_of_each_version(magic: int) -> None:
    expected = [(TEXT + start, 0x40, name) for start, name in zip(STARTS, NAMES, strict=False)]
    assert names_of(pclntab._symbols(table(magic), None)) == expected


def test_a_start_of_text_that_the_loader_fills_in_is_that_of_the_section() -> None:
    assert names_of(pclntab._symbols(table(pclntab.GO_1_20, text=0), 0x7000))[0] == (0x7000, 0x40, "main.main")
    assert pclntab._symbols(table(pclntab.GO_1_20, text=0), None) is None


def test_a_cut_or_strange_table_is_none_or_less() -> None:
    whole = table(pclntab.GO_1_20)
    for length in range(len(whole)):
        found = pclntab._symbols(whole[:length], TEXT)
        assert found is None or len(found.starts) <= len(NAMES)
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 0xFF
        pclntab._symbols(bytes(damaged), TEXT)


def test_a_stripped_go_program_is_named(tmp_path: Path) -> None:
    go = shutil.which("go")
    if go is None:
        pytest.skip("go is not installed")
    source = tmp_path / "main.go"
    source.write_text('package main\n\nimport "fmt"\n\nfunc main() { fmt.Println(7) }\n')
    environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "GOCACHE": str(tmp_path / "cache"), "CGO_ENABLED": "0"}
    for name, flags in (("full", ""), ("stripped", "-s -w")):
        subprocess.run([go, "build", "-ldflags", flags, "-o", tmp_path / name, source], check=True, env=environment, cwd=tmp_path)
    descriptor = os.open(tmp_path / "stripped", os.O_RDONLY)
    try:
        found = {name: start for start, _, name in names_of(pclntab.go_symbols(ElfFile(descriptor)))}
    finally:
        os.close(descriptor)
    known = addresses_by_nm(tmp_path / "full")
    shared = [name for name in found if name in known]
    assert len(shared) > 1000 and all(found[name] == known[name] for name in shared)

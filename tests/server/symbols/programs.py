# SPDX-License-Identifier: Apache-2.0
"""Builds small programs with the compilers of this machine, and describes files as an agent would."""

import os
import shutil
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1 import symbols_pb2
from server.store.protocol import BinaryInfo
from server.symbols.build_child import build
from server.symbols.build_job import Job
from server.symbols.build_result import BuildResult
from server.symbols.elf import PT_LOAD, ElfFile
from server.symbols.identity import BinaryKey
from server.symbols.local import content_hash
from server.symbols.table import Table, open_table


def compile_program(source: str, output: Path, *options: str, compiler: str = "gcc", suffix: str = ".c") -> Path:
    """Compile `source` to `output`; skips the test, saying so, where the compiler is missing or cannot do it."""
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    source_path = output.with_suffix(suffix)
    source_path.write_text(source)
    done = subprocess.run([compiler, *options, "-o", output, source_path], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"{compiler} cannot build this: {done.stderr[-300:]}")
    return output


def run_tool(*command: str | Path) -> str:
    """Output of a binutils tool; skips the test where it is missing."""
    if shutil.which(str(command[0])) is None:
        pytest.skip(f"{command[0]} is not installed")
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def addresses_by_nm(path: Path, *options: str) -> dict[str, int]:
    """Symbol to address as nm prints them: an independent reading of the same table."""
    rows = [line.split() for line in run_tool("nm", *options, path).splitlines()]
    return {row[2]: int(row[0], 16) for row in rows if len(row) == 3}


def describe(path: Path, row_id: int = 1) -> BinaryInfo:
    """The file as an agent reports it."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        elf = ElfFile(descriptor)
        loads = elf.segments[elf.segments["type"] == PT_LOAD]
        columns = zip(*(loads[name].tolist() for name in ("offset", "vaddr", "filesz", "memsz", "flags")), strict=True)
        gnu = elf.build_ids().gnu
        kind = pb.BUILD_ID_KIND_GNU if gnu else pb.BUILD_ID_KIND_NONE
        content = content_hash(descriptor)
    finally:
        os.close(descriptor)
    return BinaryInfo(row_id, pb.BINARY_KIND_ELF, kind, gnu, content, os.fsencode(path), tuple(columns), path.stat().st_size)


def build_here(
    key: BinaryKey, *sources: Path, form: int = symbols_pb2.UPLOAD_FORMAT_ELF, splits: Sequence[Path] = (), kallsyms: bytes = b""
) -> tuple[BuildResult, Table | None]:
    """Build a table in this process, without the jail; `splits` are .dwo and .dwp files, `kallsyms` a list."""
    descriptors = [os.open(path, os.O_RDONLY) for path in sources]
    output, bundle, listed = (os.memfd_create(name) for name in ("table", "splits", "kallsyms"))
    os.write(listed, kallsyms)
    sizes = tuple(os.write(bundle, path.read_bytes()) for path in splits)
    try:
        result = build(Job(key, form, tuple(descriptors), output, splits=bundle, split_sizes=sizes, kallsyms=listed if kallsyms else None))
        return result, open_table(output, key) if result.status == "ok" else None
    finally:
        for descriptor in (*descriptors, output, bundle, listed):
            os.close(descriptor)


def name_at(table: Table, address: int) -> str | None:
    """Raw name of what holds an address; None where nothing does."""
    symbol = table.find(np.array([address], np.uint64))
    return table.raw_names(symbol)[0].decode() if symbol[0] >= 0 else None


def note(owner: bytes, kind: int, descriptor: bytes, padding: int = 4) -> bytes:
    """One ELF note, little endian."""
    head = struct.pack("<III", len(owner), len(descriptor), kind) + owner  # n_namesz, n_descsz, n_type, name
    head += bytes(-len(head) % padding)
    return head + descriptor + bytes(-len(descriptor) % padding)


def proto_id(key: BinaryKey) -> pb.BinaryId:
    """The identity as a message holds it."""
    kind = pb.BuildIdKind.Name(pb.BuildIdKind.ValueType(key.build_id_kind))
    return pb.BinaryId(build_id_kind=kind, build_id=key.build_id, content_hash=key.content_hash)

# SPDX-License-Identifier: Apache-2.0
"""Code of kernel modules on the real kernel: whose it is by the agent, what it is called by the server from the list and from the file."""

import os
import subprocess
import sys
import time
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from agent.kernel.layout import kallsyms_upload, read_layout
from agent.records.kernel_layout import KernelRange
from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1 import symbols_pb2
from server.symbols.identity import BinaryKey
from server.symbols.table import Table
from tests.bpf.test_cpu import profiling
from tests.server.symbols.programs import build_here, run_tool

FILES = Path("/run/modules")
"""Where a guest of the kernel matrix keeps the modules it has loaded (tests/kernels/init.sh)."""
DEADLINE_S = 120
WANTED = 23
WORK = """
import os
while True:
    for entry in os.scandir("/usr/bin"):
        if entry.is_file():
            with open(entry.path, "rb") as file:
                file.read(7)
"""


@contextmanager
def opening_files() -> Iterator[int]:
    """Opens the files of the root, which a guest has behind modules."""
    with subprocess.Popen([sys.executable, "-c", WORK]) as process:
        try:
            yield process.pid
        finally:
            process.kill()


def modules() -> dict[str, KernelRange]:
    """Modules by name."""
    return {
        os.fsdecode(found.name): found for found in read_layout(None).ranges if found.binary and found.binary.kind == pb.BINARY_KIND_MODULE
    }


def code_met(header_directory: Path, ranges: dict[str, KernelRange]) -> dict[str, set[int]]:
    """Addresses in modules on the stacks of a process that opens files; those of calls point into the call."""
    met: dict[str, set[int]] = {}
    until = time.monotonic() + DEADLINE_S
    with opening_files() as pid, profiling(header_directory, limit_pids=frozenset({pid})) as profiler:
        while sum(map(len, met.values())) < WANTED and time.monotonic() < until:
            time.sleep(0.5)
            stacks = profiler.drain().stacks
            is_leaf = np.zeros(stacks.addresses.size, np.bool_)
            is_leaf[stacks.bounds[:-1][np.diff(stacks.bounds) > 0]] = True
            for address in (stacks.addresses - ~is_leaf).tolist():
                for name, found in ranges.items():
                    if found.start <= address < found.end:
                        met.setdefault(name, set()).add(address)
    return met


def names_by_the_kernel(module: str) -> tuple[list[int], dict[int, set[str]]]:
    """Addresses of a module's code, ascending, and the names at each, by /proc/kallsyms."""
    names: dict[int, set[str]] = {}
    for line in Path("/proc/kallsyms").read_text().splitlines():
        address, kind, name, *owner = line.split()
        if owner == [f"[{module}]"] and kind in "tTwW":
            names.setdefault(int(address, 16), set()).add(name)
    return sorted(names), names


def names_at(table: Table, offsets: list[int]) -> list[str]:
    """Names at offsets, "" where there is none."""
    symbols = table.find(np.array(offsets, np.uint64))
    return [table.raw_names(np.array([symbol]))[0].decode() if symbol >= 0 else "" for symbol in symbols.tolist()]


def test_code_of_modules_is_theirs_and_has_their_names(header_directory: Path, tmp_path: Path) -> None:
    ranges = modules()
    if not ranges or not FILES.exists():
        pytest.skip("needs a kernel with modules, and their files as a guest of the kernel matrix has them")
    met = code_met(header_directory, ranges)
    assert sum(map(len, met.values())) >= WANTED
    for name, addresses in met.items():
        found, offsets = ranges[name], [address - ranges[name].start for address in sorted(addresses)]
        assert found.binary is not None
        (file,) = FILES.glob(f"*-{name}.ko")
        build_id = Path(f"/sys/module/{name}/notes/.note.gnu.build-id").read_bytes()[16:]
        assert (found.binary.id.build_id_kind, found.binary.id.build_id) == (pb.BUILD_ID_KIND_GNU, build_id)
        assert f"Build ID: {build_id.hex()}" in run_tool("readelf", "-n", file)
        places, by_kernel = names_by_the_kernel(name)
        wanted = [by_kernel[places[bisect_right(places, address) - 1]] for address in sorted(addresses)]
        key = BinaryKey(pb.BINARY_KIND_MODULE, *found.binary.id)
        listed = tmp_path / name
        listed.write_bytes(kallsyms_upload(found.binary) or b"")
        for source, form in ((listed, symbols_pb2.UPLOAD_FORMAT_KALLSYMS), (file, symbols_pb2.UPLOAD_FORMAT_ELF)):
            result, table = build_here(key, source, form=form)
            assert table is not None, result
            named = list(zip(offsets, names_at(table, offsets), wanted, strict=True))
            assert not [(source.name, hex(offset), mine, names) for offset, mine, names in named if mine and mine not in names]
            # A function interrupted at its first instruction: the byte before it is padding, which the file's symbols leave out.
            nameless = sum(not mine for _, mine, _ in named)
            assert nameless <= (len(named) // 7 + 1 if source == file else 0)

# SPDX-License-Identifier: Apache-2.0
"""Kernels and modules with their debug files: what is where, as the running kernel lays it out."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from emberwatch.v1 import batch_pb2 as pb
from server.symbols.build_result import BuildStatus, Quality
from server.symbols.identity import BinaryKey
from server.symbols.table import Table
from tests.server.symbols import golden
from tests.server.symbols.programs import build_here, compile_program, name_at, run_tool

MODULE = """
__asm__(".section .data..other,\\"aw\\"\\nsomething: .quad 7, 7, 7, 7\\n.text");
#define SECTION(name) __attribute__((noinline, section(name)))
static inline __attribute__((always_inline)) int mix(int x) { return x % 7 == 3 ? x * 23 : x ^ 11; }
SECTION(".init.text") int start(int x) { return mix(x) + 1; }
int __attribute__((noinline)) receive(int x) { return mix(x) + mix(x + 2); }
SECTION(".text.unlikely") int complain(int x) { return mix(x) * 2; }
int send(int x) { return x > 7 ? complain(x) : receive(x * 3); }
SECTION(".exit.text") int stop(int x) { return mix(x) - send(x); }
"""
KERNEL = """
__asm__(".text\\n.globl _text\\n_text: nop\\nentry_point: nop\\nnop\\n.size entry_point, 0");
static inline __attribute__((always_inline)) int update(int x) { return x * 7; }
int __attribute__((noinline)) schedule(int x) { return update(x) + 1; }
int __attribute__((noinline)) boot_text(int x) { return x + 23; }
int _start(int x) { return schedule(x) + boot_text(x); }
"""
"""`_text` is the end of `boot_text` too, and a linker keeps the two names as one text."""
KERNEL_OPTIONS = (
    "-O1", "-g", "-nostdlib", "-static", "-no-pie", "-fno-pie", "-fno-toplevel-reorder", "-mcmodel=kernel", "-Wl,-Ttext=0xffffffff81000000",
)  # fmt: skip


def built(path: Path, kind: pb.BinaryKind, listed: bytes = b"") -> Table:
    build_id = bytes.fromhex(re.findall(r"Build ID: ([0-9a-f]+)", run_tool("readelf", "-n", path))[0])
    key = BinaryKey(int(kind), pb.BUILD_ID_KIND_GNU, build_id, b"")
    result, table = build_here(key, path, kallsyms=listed)
    assert (result.status, result.reason, result.debug_reason, result.quality) == (BuildStatus.OK, "", "", Quality.DWARF)
    assert table is not None
    return table


@pytest.fixture
def module(tmp_path: Path) -> Path:
    """A file like NAME.ko: relocatable, with a build id."""
    made = compile_program(MODULE, tmp_path / "module.o", "-c", "-O2", "-g", "-ffreestanding", "-fno-pic", "-mcmodel=kernel")
    run_tool("ld", "-r", "--build-id=sha1", "-o", tmp_path / "module.ko", made)
    return tmp_path / "module.ko"


def sections(path: Path) -> dict[str, tuple[int, int]]:
    """Size and alignment by name."""
    rows = re.findall(
        r"\] (\S+) +PROGBITS +[0-9a-f]+ [0-9a-f]+ ([0-9a-f]+) [0-9a-f]+ +AX\w* +\d+ +\d+ +(\d+)", run_tool("readelf", "-SW", path)
    )
    return {name: (int(size, 16), int(align)) for name, size, align in rows}


def test_a_module_has_names_calls_and_lines_of_every_section_that_stays(module: Path) -> None:
    place, table, asked = 0, built(module, pb.BINARY_KIND_MODULE), 0
    assert name_at(table, 0) != "something"
    for name, (size, align) in sections(module).items():
        if name.startswith(".init") or not size:
            continue
        place = (place + align - 1) // align * align
        offsets = range(size)
        command = ("addr2line", "-a", "-i", "-f", "-j", name, "-e", module)
        theirs = golden.chains_of(run_tool(*command, *(hex(offset) for offset in offsets)))
        ours = golden.by_table(table, [place + offset for offset in offsets])
        for offset, mine, other in zip(offsets, ours, theirs, strict=True):
            if not mine or not mine[0][0]:  # Padding between functions, which addr2line gives to the one before.
                continue
            assert mine == other, f"{name}+{offset:#x}"
            asked += 1
        place += size
    assert asked > 100


def test_a_module_counts_from_its_first_symbol(tmp_path: Path) -> None:
    """As the agent does, which sees it through kallsyms alone."""
    source = '__asm__(".text\\n.skip 16");\n' + MODULE
    made = compile_program(source, tmp_path / "module.o", "-c", "-O2", "-g", "-ffreestanding", "-fno-toplevel-reorder")
    run_tool("ld", "-r", "--build-id=sha1", "-o", tmp_path / "module.ko", made)
    rows = [line.split() for line in run_tool("nm", tmp_path / "module.ko").splitlines()]
    places = {row[2]: int(row[0], 16) for row in rows if len(row) == 3}
    table = built(tmp_path / "module.ko", pb.BINARY_KIND_MODULE)
    first = min(places["receive"], places["send"])
    assert first >= 16
    assert name_at(table, places["receive"] - first) == "receive"
    assert name_at(table, places["send"] - first) == "send"


def test_a_module_that_is_stripped_and_its_debug_file(module: Path, tmp_path: Path) -> None:
    run_tool("objcopy", "--only-keep-debug", module, tmp_path / "module.debug")
    whole, alone = built(module, pb.BINARY_KIND_MODULE), built(tmp_path / "module.debug", pb.BINARY_KIND_MODULE)
    offsets = list(range(100))
    assert golden.by_table(alone, offsets) == golden.by_table(whole, offsets)


def test_the_list_of_the_kernel_wins_over_symbols_without_size(tmp_path: Path) -> None:
    """C4: entry_point has no size in vmlinux, and the running kernel calls it by another name."""
    vmlinux = compile_program(KERNEL, tmp_path / "vmlinux", *KERNEL_OPTIONS)
    rows = [line.split() for line in run_tool("nm", vmlinux).splitlines()]
    places = {row[2]: int(row[0], 16) - 0xFFFFFFFF81000000 for row in rows if len(row) == 3}
    end = max(places.values()) + 64
    rows_listed = [
        (0, "T _text"),
        (places["entry_point"], "T asm_entry"),
        (places["schedule"], "t other_name"),
        (places["_start"], "T _start"),
    ]
    listed = "".join(f"{place:x} {words}\n" for place, words in (*rows_listed, (end, "! ")))
    assert name_at(built(vmlinux, pb.BINARY_KIND_KERNEL), places["entry_point"]) == "entry_point"
    both = built(vmlinux, pb.BINARY_KIND_KERNEL, listed.encode())
    assert name_at(both, places["entry_point"]) == "asm_entry"
    assert [name for name, *_ in golden.by_table(both, [places["schedule"]])[0]] == ["update", "schedule"]


def test_a_file_of_the_other_kind_is_refused(module: Path, tmp_path: Path) -> None:
    build_id = bytes.fromhex(re.findall(r"Build ID: ([0-9a-f]+)", run_tool("readelf", "-n", module))[0])
    key = BinaryKey(pb.BINARY_KIND_ELF, pb.BUILD_ID_KIND_GNU, build_id, b"")
    assert build_here(key, module)[0].status == BuildStatus.UNSUPPORTED
    program = compile_program("int main(void) { return 7; }", tmp_path / "p", "-Wl,--build-id=0x0102030405060708")
    key = replace(key, kind=pb.BINARY_KIND_MODULE, build_id=bytes(range(1, 9)))
    assert build_here(key, program)[0].status == BuildStatus.UNSUPPORTED

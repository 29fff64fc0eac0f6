# SPDX-License-Identifier: Apache-2.0
"""The golden corpus: programs built in many ways, every function of them sampled, each address as another tool names it."""

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from emberwatch.v1 import batch_pb2 as pb
from server.symbols.build_result import BuildStatus, Quality
from server.symbols.identity import key_of
from server.symbols.table import Table, Traits
from tests.server.symbols import golden
from tests.server.symbols.programs import addresses_by_nm, build_here, compile_program, describe, name_at, run_tool

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
    "O2-lld": ("-O2", "-g", "-fuse-ld=lld"),
    "O2-one-segment": ("-O2", "-g", "-Wl,-z,noseparate-code"),
    "O2-no-id": ("-O2", "-g", "-Wl,--build-id=none"),
    "O2-sections": ("-O2", "-g", "-ffunction-sections", "-Wl,--gc-sections"),
    "O2-types": ("-O2", "-g", "-fdebug-types-section"),
    "O2-dwarf64": ("-O2", "-g", "-gdwarf64"),
}


MISREAD = {
    "c": ("O2-lto", "O2-dwarf64"),
    "c++": ("O0", "O1", "O2-lto", "O2-gold", "O2-types", "O2-dwarf64"),
}
"""What addr2line of binutils 2.40 gets wrong at more than one address in a thousand (files of other units, "<artificial>", one of several
folded functions, no 64-bit DWARF): only llvm-symbolizer can judge these."""


def needs_llvm() -> None:
    """Skips where the only other opinion would be a wrong one."""
    if shutil.which("llvm-symbolizer") is None:
        pytest.skip("llvm-symbolizer is not installed, and addr2line misreads this")


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


@pytest.mark.parametrize("way", VARIANTS)
@pytest.mark.parametrize("language", ["c", "c++"])
def test_every_function_as_other_tools_name_it(tmp_path: Path, way: str, language: str) -> None:
    if way in MISREAD[language]:
        needs_llvm()
    compiler, suffix, source = ("gcc", ".c", golden.C_SOURCE) if language == "c" else ("g++", ".cc", golden.CPP_SOURCE)
    program = compile_program(source, tmp_path / "p", *VARIANTS[way], compiler=compiler, suffix=suffix)
    assert_golden(program, table_of(program))


@pytest.mark.parametrize("way", ["zlib", "zlib-gnu", "zstd"])
def test_compressed_sections(tmp_path: Path, way: str) -> None:
    program = compile_program(golden.C_SOURCE, tmp_path / "p", "-O2", "-g")
    packed = tmp_path / "packed"
    run_tool("objcopy", f"--compress-debug-sections={way}", program, packed)
    assert_golden(program, table_of(program, packed))


SPLIT = {
    "gcc-dwarf4": ("g++", "-O2", "-gdwarf-4"),
    "gcc-dwarf5": ("g++", "-O2", "-gdwarf-5"),
    "gcc-compressed": ("g++", "-O1", "-g", "-gz"),
    "clang-dwarf4": ("clang++", "-O2", "-gdwarf-4"),
    "clang-dwarf5": ("clang++", "-O2", "-gdwarf-5"),
}
PACKED = (("gcc-dwarf4", "dwp"), ("gcc-dwarf5", "llvm-dwp"), ("clang-dwarf4", "llvm-dwp"), ("clang-dwarf5", "llvm-dwp"))
"""dwp of binutils 2.40 dies of DWARF 5 and of clang's files."""


@dataclass(frozen=True, slots=True)
class Split:
    """A program of two units, each with a .dwo file; `whole` is the same code with all debug data in it.

    That one is what other tools are asked of, for llvm-symbolizer 14 misreads the ranges of DWARF 4 in all .dwo files but the first.
    """

    program: Path
    whole: Path
    files: tuple[Path, ...]

    def assert_golden(self, files: Sequence[Path]) -> None:
        """With these .dwo or .dwp files it has the names of the whole one."""
        result, table = build_here(key_of(describe(self.program)), self.program, splits=files)
        assert (result.status, result.debug_reason, result.quality) == (BuildStatus.OK, "", Quality.DWARF)
        assert table is not None
        assert_golden(self.whole, table)


@pytest.fixture(scope="module")
def split_program(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Split]:
    """Each way is built once."""

    @cache
    def build(way: str) -> Split:
        folder = tmp_path_factory.mktemp(way)
        compiler, *options = SPLIT[way]
        other = "namespace shop { int parse(const char *); } static inline int half(int x) { return x / 7; }"
        other += " int reach(const char *s) { return half(shop::parse(s)) + half(s[1]); }"
        for side, more in (("split", ("-gsplit-dwarf",)), ("whole", ())):
            (folder / side).mkdir()
            objects: list[str | Path] = []
            for name, source in (("main", golden.CPP_SOURCE), ("reach", other)):
                made = folder / side / f"{name}.o"
                objects.append(compile_program(source, made, *options, *more, "-c", compiler=compiler, suffix=".cc"))
            run_tool(compiler, *options, "-o", folder / side / "p", *objects)
        code = [run_tool("objdump", "-d", "-j.text", folder / side / "p").partition("section")[2] for side in ("split", "whole")]
        assert code[0] == code[1]
        return Split(folder / "split" / "p", folder / "whole" / "p", tuple((folder / "split").glob("*.dwo")))

    return build


@pytest.mark.parametrize("way", SPLIT)
def test_split_debug_data(split_program: Callable[[str], Split], way: str) -> None:
    split = split_program(way)
    assert len(split.files) == 2
    split.assert_golden(split.files)


@pytest.mark.parametrize(("way", "packer"), PACKED)
def test_split_debug_data_that_was_packed(tmp_path: Path, split_program: Callable[[str], Split], way: str, packer: str) -> None:
    split = split_program(way)
    run_tool(packer, "-e", split.program, "-o", tmp_path / "p.dwp")
    split.assert_golden([tmp_path / "p.dwp"])


def test_split_debug_data_gives_names_and_lines_and_says_what_is_missing(tmp_path: Path) -> None:
    program = compile_program(golden.C_SOURCE, tmp_path / "p", "-O1", "-g", "-gsplit-dwarf")
    result, table = build_here(key_of(describe(program)), program)
    assert table is not None
    assert (result.status, result.debug_reason) == (BuildStatus.OK, "unsupported: 1 units keep their calls in .dwo files that are not here")
    assert result.quality == Quality.FULL and table.facts.traits & Traits.SPLIT
    assert [(one.name, one.directory) for one in result.missing] == [(os.fsencode(tmp_path / "p.dwo"), os.fsencode(Path.cwd()))]
    addresses = golden.sampled(golden.functions(program))
    for chain, other in zip(golden.by_table(table, addresses), golden.by_addr2line(program, addresses), strict=True):
        ((name, _, line),) = chain
        assert golden.base_name(name) == golden.base_name(other[-1][0])
        assert line in (0, other[0][2])


def test_a_kernel_with_debug_data_is_named_by_offset_from_its_text(tmp_path: Path) -> None:
    """vmlinux as a distribution's debug package has it, in small."""
    source = """
    __asm__(".text\\n.globl _text\\n_text:");
    static inline __attribute__((always_inline)) int update(int x) { return x * 7; }
    int __attribute__((noinline)) schedule(int x) { return update(x) + 1; }
    int _start(int x) { return schedule(x); }
    """
    linked = "-Wl,-Ttext=0xffffffff81000000"
    program = compile_program(
        source,
        tmp_path / "vmlinux",
        "-O1",
        "-g",
        "-nostdlib",
        "-static",
        "-no-pie",
        "-fno-pie",
        "-fno-toplevel-reorder",
        "-mcmodel=kernel",
        linked,
    )
    places = addresses_by_nm(program)
    key = replace(key_of(describe(program)), kind=pb.BINARY_KIND_KERNEL)
    result, table = build_here(key, program)
    assert table is not None, result
    assert result.quality == Quality.DWARF
    offset = places["schedule"] - 0xFFFFFFFF81000000
    assert [name for name, *_ in golden.by_table(table, [offset])[0]] == ["update", "schedule"]
    assert name_at(table, places["_start"] - 0xFFFFFFFF81000000) == "_start"


def test_an_elf_file_without_text_start_is_no_kernel(tmp_path: Path) -> None:
    program = compile_program(golden.C_SOURCE, tmp_path / "p", "-O1", "-g", "-Wl,--build-id=sha1")
    key = replace(key_of(describe(program)), kind=pb.BINARY_KIND_KERNEL)
    result, _ = build_here(key, program)
    assert (result.status, result.reason) == (BuildStatus.UNSUPPORTED, "a kernel without the symbol _text")


def test_aliases_of_folded_functions_are_kept(tmp_path: Path) -> None:
    """C9: one name by a fixed rule, and all others beside it."""
    source = """
    __attribute__((noinline)) int dup2(int x) { return x * 23 + 7; }
    __attribute__((noinline)) int dup1(int x) { return x * 23 + 7; }
    int main(int c, char **v) { (void)v; return dup1(c) - dup2(c + 1); }
    """
    options = ("-O1", "-fuse-ld=gold", "-ffunction-sections", "-Wl,--icf=all", "-fno-ipa-icf")
    program = compile_program(source, tmp_path / "icf", *options)
    _, table = build_here(key_of(describe(program)), program)
    assert table is not None
    (symbol,) = table.find(np.array([addresses_by_nm(program)["dup1"]], np.uint64)).tolist()
    assert (table.raw_names(np.array([symbol])), table.aliases(symbol)) == ([b"dup1"], [b"dup2"])


RUST_SOURCE = """
#[inline(always)]
fn half(x: u64) -> u64 { if x % 7 == 3 { println!("{}", x); } x / 2 }
trait Price { fn total(&self, n: u64) -> u64; }
struct Item(u64);
impl Price for Item { #[inline(never)] fn total(&self, n: u64) -> u64 { half(self.0 * n) + half(n) } }
#[inline(never)]
fn sum(values: &[u64]) -> u64 { values.iter().map(|x| half(*x)).sum() }
fn main() { let n = std::env::args().count() as u64; std::process::exit((Item(n).total(n) + sum(&[n, n * 3])) as i32); }
"""


@pytest.mark.parametrize("options", [("-O2", "-gdwarf-5"), ("-O2", "-gdwarf-4"), ("-O0", "-g")])
@pytest.mark.parametrize("language", ["c", "c++"])
def test_programs_of_clang(tmp_path: Path, options: tuple[str, ...], language: str) -> None:
    """C17: addresses, ranges and texts by index."""
    needs_llvm()
    compiler = next((name for name in ("clang", "clang-19", "clang-14") if shutil.which(name)), "clang")
    suffix, source = (".c", golden.C_SOURCE) if language == "c" else (".cc", golden.CPP_SOURCE)
    more = ("-lstdc++",) if language == "c++" else ()
    program = compile_program(source, tmp_path / "p", *options, *more, compiler=compiler, suffix=suffix)
    assert_golden(program, table_of(program))


@pytest.mark.parametrize("mangling", ["legacy", "v0"])
def test_programs_of_rustc(tmp_path: Path, mangling: str) -> None:
    options = ("-O", "-g", "-Zunstable-options", f"-Csymbol-mangling-version={mangling}", "-Clink-arg=-Wl,--build-id=sha1")
    os.environ["RUSTC_BOOTSTRAP"] = "1"
    try:
        program = compile_program(RUST_SOURCE, tmp_path / "p", *options, compiler="rustc", suffix=".rs")
    finally:
        del os.environ["RUSTC_BOOTSTRAP"]
    assert_golden(program, table_of(program))

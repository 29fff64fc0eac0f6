# SPDX-License-Identifier: Apache-2.0
"""What is fuzzed: each target takes bytes, and may only end in the ways it promises. Anything else is a finding."""

import hashlib
import os
import random
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from agent.process.perf_map import parse_perf_map
from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1 import symbols_pb2
from server.symbols.build_child import build
from server.symbols.build_job import Job
from server.symbols.build_result import BuildStatus
from server.symbols.demangle import shown_names
from server.symbols.identity import BinaryKey
from server.symbols.jit import jit_code, shown_jit_name
from server.symbols.notes import parse_build_ids
from server.symbols.resolve import Placed
from server.symbols.split_ids import split_ids
from server.symbols.table import CHECKSUM_AT, HEADER_BYTES, Table, TableError, open_table
from server.symbols.unfold import unfold
from tests.fuzz.mutations import mutated

PROGRAM = """
#include <cstdio>
#include <vector>
namespace shop {
struct Item { int price; virtual int total(int n) const { return price * n; } virtual ~Item() {} };
static inline __attribute__((always_inline)) int half(int x) { if (x % 7 == 3) std::puts("x"); return x / 2; }
template <typename T> T sum(const std::vector<T> &v) { T all{}; for (auto &x : v) all += x; return all; }
}
int work(int x) { return shop::half(x) + shop::half(x * 3); }
int main(int c, char **) { std::vector<int> v(c, work(c)); shop::Item i; i.price = c; return shop::sum(v) + i.total(c); }
"""
NO_ID = BinaryKey(pb.BINARY_KIND_ELF, pb.BUILD_ID_KIND_NONE, b"", b"\7" * 16)
KERNEL = BinaryKey(pb.BINARY_KIND_KERNEL, pb.BUILD_ID_KIND_GNU, b"\1" * 20, b"")
MODULE = BinaryKey(pb.BINARY_KIND_MODULE, pb.BUILD_ID_KIND_NONE, b"", b"\7" * 16)
WRONG_ERRORS = ("IndexError", "KeyError", "AttributeError", "AssertionError", "TypeError", "RecursionError", "SystemError")
"""Ends that mean that the code did not see the damage, whatever the jail makes of it."""


class Finding(Exception):
    """A target did what it may not."""


@dataclass(frozen=True, slots=True)
class Target:
    """One thing to fuzz."""

    name: str
    seeds: tuple[bytes, ...]
    run: Callable[[bytes], str]
    """Raises for what may not be; gives how it ended."""
    hot: Callable[[bytes], list[int]] | None = None


def elf_seeds() -> tuple[bytes, ...]:
    """Small programs with debug data of several kinds, made here; none where there is no compiler."""
    ways = (("-gdwarf-5",), ("-gdwarf-4", "-ffunction-sections"), ("-gdwarf-2",), ("-g", "-s"), ("-gdwarf-5", "-gz=zlib", "-no-pie"))
    found = []
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory) / "seed.cc"
        source.write_text(PROGRAM)
        for number, way in enumerate(ways):
            output = Path(directory) / f"seed{number}"
            command = ["g++", "-O2", "-Wl,--build-id=none", *way, "-o", str(output), str(source)]
            if subprocess.run(command, capture_output=True, check=False).returncode == 0:
                found.append(output.read_bytes())
    return tuple(found)


def module_seeds() -> tuple[bytes, ...]:
    """A relocatable file with debug data, as kernel modules are."""
    return _built(
        ("gcc", "-xc", "-c", "-O2", "-g", "-ffreestanding"),
        "int half(int x) { return x / 7; } int twice(int x) { return half(x) * 2; }",
        "o",
    )


def split_seeds() -> tuple[bytes, tuple[bytes, ...]]:
    """A program whose debug data was split off, and the files that have it; none where there is no compiler."""
    source = "static inline int half(int x) { return x / 7; } int main(int c, char **v) { (void)v; return half(c); }"
    found = []
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        (folder / "seed.c").write_text(source)
        for version in ("-gdwarf-4", "-gdwarf-5"):
            command = ["gcc", "-c", "-O1", version, "-gsplit-dwarf", "-o", str(folder / "seed.o"), str(folder / "seed.c")]
            link = ["gcc", "-Wl,--build-id=none", "-o", str(folder / f"seed{version}"), str(folder / "seed.o")]
            if any(subprocess.run(step, capture_output=True, check=False).returncode for step in (command, link)):
                return b"", ()
            found.append((folder / "seed.dwo").read_bytes())
            if version == "-gdwarf-4":
                subprocess.run(["dwp", str(folder / "seed.dwo"), "-o", str(folder / "seed.dwp")], capture_output=True, check=False)
                found += [path.read_bytes() for path in folder.glob("*.dwp")]
        return (folder / "seed-gdwarf-4").read_bytes(), tuple(found)


def _built(command: tuple[str, ...], source: str, suffix: str) -> tuple[bytes, ...]:
    with tempfile.TemporaryDirectory() as directory:
        output = Path(directory) / f"seed.{suffix}"
        done = subprocess.run([*command, "-o", str(output), "-"], input=source.encode(), capture_output=True, check=False)
        return (output.read_bytes(),) if done.returncode == 0 else ()


def run_elf(data: bytes) -> str:
    """Build a table in this process and search it."""
    return _build(NO_ID, symbols_pb2.UPLOAD_FORMAT_ELF, data)


def run_module(data: bytes) -> str:
    """The same of a kernel module."""
    return _build(MODULE, symbols_pb2.UPLOAD_FORMAT_ELF, data)


def run_split(program: bytes, data: bytes) -> str:
    """A program with a .dwo or .dwp file that is damaged."""
    split = os.memfd_create("split")
    try:
        os.write(split, data)
        split_ids(split)
        return _build(NO_ID, symbols_pb2.UPLOAD_FORMAT_ELF, program, (split, len(data)))
    finally:
        os.close(split)


def run_kallsyms(data: bytes) -> str:
    """The same of a kernel's list."""
    return _build(KERNEL, symbols_pb2.UPLOAD_FORMAT_KALLSYMS, data)


def _build(key: BinaryKey, form: int, data: bytes, split: tuple[int, int] | None = None) -> str:
    source, output = os.memfd_create("source"), os.memfd_create("table")
    try:
        os.write(source, data)
        splits, sizes = (None, ()) if split is None else (split[0], (split[1],))
        result = build(Job(key, form, (source,), output, splits=splits, split_sizes=sizes))
        for reason in (result.reason, result.debug_reason):
            if any(f"{error}:" in reason for error in WRONG_ERRORS):
                raise Finding(reason)
        if result.status == BuildStatus.OK:
            _search(open_table(output, key))
        return result.status
    except TableError as error:
        raise Finding(f"a table that was just made is refused: {error}") from error
    finally:
        os.close(source)
        os.close(output)


def _search(table: Table) -> None:
    where = np.append(np.arange(0, 1 << 16, 37, dtype=np.uint64), [np.uint64(1 << 63), np.uint64((1 << 64) - 1)])
    symbols = table.find(where)
    places = np.full(where.size, -1) if table.inlines is None else table.inlines.find(where)
    parts = unfold(Placed(where, symbols, places), table)
    found = np.unique(symbols[symbols >= 0])
    table.raw_names(found)
    for symbol in found[:7].tolist():
        table.aliases(symbol)
    if table.inlines is not None:
        for text in np.unique(np.concatenate([parts.names, parts.files])).tolist():
            table.inlines.text(text)


def run_table(data: bytes) -> str:
    """Open a table file that somebody else has written, with a checksum that is right."""
    checksum = hashlib.blake2b(data[HEADER_BYTES:], digest_size=16).digest()
    data = data[:CHECKSUM_AT] + checksum + data[CHECKSUM_AT + 16 :]
    descriptor = os.memfd_create("table")
    try:
        os.write(descriptor, data)
        _search(open_table(descriptor, NO_ID))
        return "opened"
    except TableError:
        return "refused"
    finally:
        os.close(descriptor)


def table_seed(program: bytes) -> bytes:
    """A table of a program."""
    source, output = os.memfd_create("source"), os.memfd_create("table")
    try:
        os.write(source, program)
        build(Job(NO_ID, symbols_pb2.UPLOAD_FORMAT_ELF, (source,), output))
        return os.pread(output, 1 << 30, 0)
    finally:
        os.close(source)
        os.close(output)


def run_notes(data: bytes) -> str:
    """Both paddings and both byte orders."""
    for padding in (4, 8):
        for order in ("<", ">"):
            found = parse_build_ids(data, padding, order)
            if len(found.gnu) > 64 or len(found.go) > 64:
                raise Finding("a build id of more than 64 bytes")
    return "parsed"


def run_perf_map(data: bytes) -> str:
    """A perf map, and its names as they are shown."""
    parse_perf_map(data, 1000)
    for line in data.decode("utf-8", "backslashreplace").splitlines():
        name = line.partition(" ")[2].partition(" ")[2][:4096]
        jit_code(name)
        shown_jit_name(name)
    return "parsed"


def run_names(data: bytes) -> str:
    """Names of symbols as they are shown."""
    names = [part.decode("utf-8", "backslashreplace") for part in data.split(b"\0")]
    if len(shown_names(names)) != len(names):
        raise Finding("names were lost")
    return "shown"


NOTES = (
    b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0" + bytes(range(20)),
    b"\x04\0\0\0\x10\0\0\0\x05\0\0\0GNU\0" + bytes(16) + b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0" + bytes(range(1, 21)),
    b"\x04\0\0\0\x53\0\0\0\x04\0\0\0Go\0\0" + b"a" * 83 + b"\0",
)
PERF_MAPS = (
    b"2ac80e83c246 60 LazyCompile:~value node:internal/console/constructor:314\n7f0000000000 7 Lsun/net/Sel$3;::run\n",
    b"7f00 23 py::fib:/srv/app.py\n7f80 40 java.util.HashMap.get(Ljava/lang/Object;)Ljava/lang/Object;\nhalf a li",
)
KALLSYMS = (b"0 T _text\n40 t schedule\n80 W weak\n80 t finish_task_switch.isra.0\nc0 D data\n100 ! ", b"0 T f\n7 ! ")
NAMES = (
    b"_Z4execIPFvvEEvT_\0_ZZ3lamvENKUliE_clEi\0_ZN12_GLOBAL__N_113single_threadE\0_ZN3std2io5error5Error3new17hbb46546882ad6265E",
    b"_RNvXCsgDUSTfVqwcj_3arrAyj3_NtB2_1T2go\0_RNvCs1_1ru7n_nga1b\0foo.constprop.0.isra.0\0memcpy@@GLIBC_2.14\0net/http.(*T).Read",
    b"_Z6taggedIXtl12fixed_stringILm6EEtlA6_cLc97ELc59ELc98ELc32ELc99EEEEEii\0$s4main3fooyyF\0_D3std5stdio7writelnFZv",
)


def _headers(data: bytes) -> list[int]:
    """Headers at both ends of a file."""
    return [*range(min(len(data), 64 + 56 * 13)), *range(max(0, len(data) - 64 * 40), len(data))]


def targets() -> Iterator[Target]:
    """All of them."""
    programs = elf_seeds()
    if programs:
        yield Target("elf", programs, run_elf, _headers)
        yield Target("dwarf", programs, run_elf)
        yield Target("table", (table_seed(programs[0]),), run_table)
    if module := module_seeds():
        yield Target("module", module, run_module)
    program, splits = split_seeds()
    if splits:
        yield Target("split", splits, partial(run_split, program))
    yield Target("kallsyms", KALLSYMS, run_kallsyms)
    yield Target("notes", NOTES, run_notes)
    yield Target("perf map", PERF_MAPS, run_perf_map)
    yield Target("names", NAMES, run_names)


def mutations(target: Target, count: int, seed: int) -> Iterator[bytes]:
    """Damaged seeds of a target, always the same ones for a seed."""
    dice = random.Random(f"{target.name} {seed}")
    hot = [target.hot(data) if target.hot else None for data in target.seeds]
    for _ in range(count):
        at = dice.randrange(len(target.seeds))
        yield mutated(target.seeds[at], dice, hot[at])

# SPDX-License-Identifier: Apache-2.0
"""Names: how long a table of a big debug file takes to make, how big it is, and how many addresses a second it names.

The input is Debian's debug file of librados (154 MB of .debug_info), unpacked by `make bench` and not installed. Peers are the tools
that people use: addr2line, llvm-symbolizer, llvm-gsymutil, and symbolic, the library that Sentry names with.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
from elftools.elf.elffile import ELFFile

from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1 import symbols_pb2
from server.store.protocol import BinaryInfo
from server.symbols.binary_names import BinaryNames, Book
from server.symbols.build_child import build
from server.symbols.build_job import Job
from server.symbols.build_result import BuildStatus
from server.symbols.builder import BuildOrder, build_table
from server.symbols.elf import ElfFile
from server.symbols.identity import BinaryKey
from server.symbols.resolve import PF_X, resolve
from server.symbols.table import Table, open_table
from server.symbols.unfold import unfold
from tests.bench.report import MIB, SECONDS, Line, Unit, against, bounded, reached, told
from tests.bench.timing import BenchError, Effort

FOLDER = Path(sys.prefix) / "bench-names"
LLVM = ("llvm-gsymutil-19", "llvm-symbolizer-19")
RATE = Unit("M/s", 1e6, 2)
ADDRESSES = 1_000_000
MOST_OF_SYMBOLIC = 1.2
"""Symbolic is Rust, and leaves inlined calls out that begin or end inside a row of lines (server/symbols/dwarf/read.py)."""
MOST_OF_PYELFTOOLS = 0.01
"""Which reading alone reaches; choosing between aliases, checking and writing cost the rest."""
LONGEST_S = 120.0
"""A tool that takes longer is stopped, and that is the result."""
_SYMBOLIC = """
import resource, sys
from symbolic import Archive
(found,) = Archive.open(sys.argv[1]).iter_objects()
cache = found.make_symcache()
with open(sys.argv[2], "wb") as file:
    cache.dump_into(file)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10)
"""
_SYMBOLIC_LOOKUPS = """
import sys, time
from symbolic import SymCache
cache = SymCache.open(sys.argv[1])
addresses = [int(line) for line in open(sys.argv[2])]
began = time.process_time()
for address in addresses:
    cache.lookup(address)
print(len(addresses) / (time.process_time() - began))
"""


def run(effort: Effort) -> Iterator[Line]:
    """All lines of the bench."""
    debug = max(FOLDER.rglob("*.debug"), key=lambda path: path.stat().st_size, default=None)
    if debug is None:
        raise BenchError(f"no debug file in {FOLDER}: make bench unpacks one")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table, cost_s, peak = _built(debug, folder)
        addresses = _addresses(table, effort.rows(ADDRESSES))
        some = folder / "addresses"
        some.write_text("\n".join(str(n) for n in addresses[:: max(1, addresses.size // effort.rows(100_000))].tolist()))
        symbolic_s, symbolic_peak, symbolic_rate = _symbolic(debug, folder, some)
        yield against(
            "table with inlined calls and lines, 154 MB of DWARF: CPU from the start of a process to a file",
            cost_s,
            ("symbolic", symbolic_s),
            SECONDS,
            MOST_OF_SYMBOLIC,
        )
        yield bounded("memory of the child that makes it", float(peak), MIB, 1 << 30)
        yield told("memory of symbolic for the same", symbolic_peak, MIB)
        yield against("size of the table", float(table.size_bytes), ("llvm-gsymutil", float(_gsym(debug, folder))), MIB, 1.2)
        yield from _without_debug_data(debug, effort)
        yield from _rates(table, addresses, symbolic_rate)
        for tool, command in (("addr2line", ("addr2line", "-a", "-i", "-f", "-e")), ("llvm-symbolizer", (LLVM[1], "--inlines", "--obj"))):
            yield told(f"{tool}: CPU for 2,000 of these addresses with inlined calls", _asked_s(command, debug, addresses), SECONDS)


def _key(path: Path) -> BinaryKey:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return BinaryKey(pb.BINARY_KIND_ELF, pb.BUILD_ID_KIND_GNU, ElfFile(descriptor).section_build_ids().gnu, b"\7" * 16)
    finally:
        os.close(descriptor)


def _built(debug: Path, folder: Path) -> tuple[Table, float, int]:
    """A table by the jailed child, its CPU seconds, and the most memory a child has had."""
    key, descriptor = _key(debug), os.open(debug, os.O_RDONLY)
    before = _children_s()
    result, path = build_table(BuildOrder(key, symbols_pb2.UPLOAD_FORMAT_ELF, (descriptor,)), folder)
    cost_s = _children_s() - before
    os.close(descriptor)
    if path is None or result.debug_reason:
        raise BenchError(f"no table: {result}")
    opened = os.open(path, os.O_RDONLY)
    try:
        return open_table(opened, key), cost_s, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10
    finally:
        os.close(opened)


def _children_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _symbolic(debug: Path, folder: Path, addresses: Path) -> tuple[float, float, float]:
    """CPU seconds from the start of a process to a file, as of ours; bytes of memory; addresses a second."""
    cache, before = folder / "symcache", _children_s()
    peak = float(_python(_SYMBOLIC, debug, cache))
    built = _children_s() - before
    return built, peak, float(_python(_SYMBOLIC_LOOKUPS, cache, addresses))


def _python(program: str, *arguments: Path) -> str:
    done = subprocess.run([sys.executable, "-c", program, *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchError(f"symbolic: {done.stderr[-200:]}")
    return done.stdout


def _gsym(debug: Path, folder: Path) -> int:
    output = folder / "out.gsym"
    try:
        subprocess.run([LLVM[0], "--convert", debug, "--out-file", output, "--num-threads=1"], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise BenchError(f"{LLVM[0]}: {error}") from error
    return output.stat().st_size


def _addresses(table: Table, count: int) -> npt.NDArray[np.uint64]:
    """So many addresses of code that the table knows, in no order."""
    dice = np.random.default_rng(7)
    symbols = dice.integers(0, len(table), 2 * count)
    starts = table.starts(symbols) + dice.integers(0, 64, symbols.size).astype(np.uint64)
    inside = starts[table.find(starts) >= 0]
    return inside[:count]


def _without_debug_data(debug: Path, effort: Effort) -> Iterator[Line]:
    key, descriptor, output = _key(debug), os.open(debug, os.O_RDONLY), os.memfd_create("table")

    def ours() -> None:
        os.ftruncate(output, 0)
        os.lseek(output, 0, os.SEEK_SET)
        result = build(Job(key, symbols_pb2.UPLOAD_FORMAT_ELF, (descriptor,), output, with_debug_data=False))
        if result.status != BuildStatus.OK:
            raise BenchError(f"no table: {result}")

    def read() -> None:
        ElfFile(descriptor).symbol_tables()

    def theirs() -> None:
        with debug.open("rb") as file:
            section = ELFFile(file).get_section_by_name(".symtab")
            sorted((symbol["st_value"], symbol["st_size"], symbol.name) for symbol in section.iter_symbols())

    try:
        peer, own = min(_cpu_s(theirs) for _ in range(2)), min(_cpu_s(ours) for _ in range(effort.rounds))
        alone = min(_cpu_s(read) for _ in range(effort.rounds))
        yield against("symbols read, loop against loop", alone, ("pyelftools' loop", peer), SECONDS, 0.01)
        yield against("table of symbols alone, from file to file", own, ("pyelftools' loop", peer), SECONDS, MOST_OF_PYELFTOOLS)
    finally:
        os.close(descriptor)
        os.close(output)


def _rates(table: Table, addresses: npt.NDArray[np.uint64], symbolic_rate: float) -> Iterator[Line]:
    key, everything = table.facts.key, ((0, 0, 1 << 40, 1 << 40, PF_X),)
    binary = BinaryInfo(1, key.kind, key.build_id_kind, key.build_id, b"", b"/lib/librados.so", everything, 0)
    is_return = np.zeros(addresses.size, np.uint8)
    names = BinaryNames(Book(), binary, table)

    def by_symbol() -> None:
        table.find(addresses)

    def with_calls() -> None:
        parts = unfold(resolve(binary, table, addresses, is_return), table)
        names.functions(parts, addresses)
        names.files(parts.files)

    first = addresses.size / _cpu_s(with_calls)
    seen = addresses.size / min(_cpu_s(with_calls) for _ in range(3))
    symbols = addresses.size / min(_cpu_s(by_symbol) for _ in range(3))
    yield reached("addresses named by their symbol", symbols, RATE, 5e6)
    yield reached("addresses with inlined calls and lines, seen before", seen, RATE, 2e6)
    yield reached("addresses with inlined calls and lines, first sight", first, RATE, symbolic_rate)
    yield told("symbolic: the same, one by one", symbolic_rate, RATE)


def _cpu_s(work: Callable[[], None]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def _asked_s(command: tuple[str, ...], debug: Path, addresses: npt.NDArray[np.uint64]) -> float:
    """CPU seconds of a tool that is given 2,000 addresses at once."""
    text = "\n".join(hex(address) for address in addresses[:2000].tolist()) + "\n"
    arguments = [*command[:-1], f"--obj={debug}"] if command[-1] == "--obj" else [*command, str(debug)]
    before = _children_s()
    try:
        subprocess.run(arguments, input=text, capture_output=True, text=True, check=True, timeout=LONGEST_S)
    except (OSError, subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        raise BenchError(f"{command[0]}: {error}") from error
    return _children_s() - before

# SPDX-License-Identifier: Apache-2.0
"""Makes unwind tables of every ELF file of this machine: files, rows, seconds, what is not supported, failures; both decoders agree.

Files that are alike (hard links, copies with one identity) count once. The reference decoder is slow: small files are checked as they
come, larger ones afterwards, from the smallest on, as long as the time for it lasts; how many rows that were is told.
"""

import os
import stat
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from agent.kernel.unwind_rows import RuleNumbers, pack_table
from agent.process.elf_header import read_identity
from agent.records.unwind import RuleKind, TableMiss, UnwindTable
from agent.unwind import table_file
from agent.unwind.eh_frame import DecodeRefused, EhFrame, find_eh_frame
from agent.unwind.lockstep import decode
from agent.unwind.scalar import decode_scalar
from tests.bench.report import BYTES_PER_ROW, PER_CENT, SECONDS, Line, Unit, bounded, told
from tests.bench.timing import BenchError, Effort

ROOT = Path("/")
_NOT_ON_DISK = ("proc", "sys", "dev", "run")
_CHECKED_BYTES = 64 << 10
"""Of .eh_frame: nine files of ten are no larger."""
_LARGE_FILES_S = 300.0
"""For checking the others, at full effort."""
_LARGE_ROWS = 818_000
"""The size that the target of one second is said for: LLVM's library."""
_COUNT = Unit("", 1, 0)
_MILLION_ROWS = Unit("M rows", 1e6, 2)
_US_PER_ROW = Unit("us/row", 1e-6, 2)


@dataclass(slots=True)
class _Survey:
    misses: Counter[TableMiss] = field(default_factory=Counter)
    kinds: Counter[RuleKind] = field(default_factory=Counter)
    rows: int = 0
    seconds: float = 0.0
    packed_bytes: int = 0
    kernel_bytes: int = 0
    checked: int = 0
    checked_rows: int = 0
    unchecked: list[tuple[int, Path]] = field(default_factory=list)
    """Size of .eh_frame, file."""
    differing: list[str] = field(default_factory=list)
    raised: list[str] = field(default_factory=list)
    largest: tuple[int, float, str] = (0, 0.0, "")
    numbers: RuleNumbers = field(default_factory=RuleNumbers)


def run(effort: Effort) -> Iterator[Line]:
    """All files under the root; a part of them with less effort."""
    began_s = time.monotonic()
    files = list(_distinct(_elf_files(ROOT)))
    if not files:
        raise BenchError("no ELF file on this machine")
    stride = max(1, round(1 / effort.size))
    survey = _Survey()
    for path in files[::stride]:
        _take(survey, path, _CHECKED_BYTES)
    yield told(f"survey: distinct ELF files, found in {time.monotonic() - began_s - survey.seconds:.0f} s", len(files[::stride]), _COUNT)
    _check_large(survey, time.monotonic() + _LARGE_FILES_S * effort.size)
    yield from _lines(survey)


def _lines(survey: _Survey) -> Iterator[Line]:
    if not survey.rows:
        raise BenchError("no file with unwind rules")
    for miss, count in sorted(survey.misses.items()):
        yield told(f"survey: files without a table, {miss.name.lower().replace('_', ' ')}", count, _COUNT)
    yield told("survey: rows", survey.rows, _MILLION_ROWS)
    yield told("survey: decoded in", survey.seconds, SECONDS)
    yield told("survey: time a row", survey.seconds / survey.rows, _US_PER_ROW)
    rows, seconds, name = survey.largest
    yield bounded(f"survey: largest, {name}, {rows:,} rows", seconds * min(1.0, _LARGE_ROWS / rows), SECONDS, 1.0)
    yield bounded("survey: rows of unsupported rules", survey.kinds[RuleKind.UNSUPPORTED] / survey.rows, PER_CENT, 0.001)
    yield told("survey: distinct rules", len(survey.numbers.rules), _COUNT)
    yield bounded("survey: bytes a row in kernel maps", survey.kernel_bytes / survey.rows, BYTES_PER_ROW, 5.0)
    yield told("survey: bytes a row on disk and wire", survey.packed_bytes / survey.rows, BYTES_PER_ROW)
    yield bounded(
        f"survey: files where the decoders differ, of {survey.checked} checked {survey.differing[:3]}", len(survey.differing), _COUNT, 0
    )
    yield told("survey: of all rows, those checked by the other decoder", survey.checked_rows / survey.rows, PER_CENT)
    yield bounded(f"survey: files that raised {survey.raised[:3]}", len(survey.raised), _COUNT, 0)


def _take(survey: _Survey, path: Path, checked_bytes: int) -> None:
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        survey.misses[TableMiss.UNREADABLE] += 1
        return
    try:
        began_s = time.perf_counter()
        frame = find_eh_frame(lambda offset, size: os.pread(descriptor, size, offset))
        table = decode(frame)
        seconds = time.perf_counter() - began_s
    except DecodeRefused as refused:
        survey.misses[refused.miss] += 1
        return
    except Exception as error:  # noqa: BLE001 (what must not happen is what is looked for)
        survey.raised.append(f"{path}: {error!r}")
        return
    finally:
        os.close(descriptor)
    _count(survey, path, table, seconds)
    if len(frame.data) <= checked_bytes:
        _check(survey, path, frame, table)
    else:
        survey.unchecked.append((len(frame.data), path))


def _check_large(survey: _Survey, until_s: float) -> None:
    for _, path in sorted(survey.unchecked):
        if time.monotonic() > until_s:
            return
        with path.open("rb", buffering=0) as file:
            descriptor = file.fileno()
            frame = find_eh_frame(lambda offset, size: os.pread(descriptor, size, offset))  # noqa: B023
        _check(survey, path, frame, decode(frame))


def _count(survey: _Survey, path: Path, table: UnwindTable, seconds: float) -> None:
    rows = len(table.rules)
    survey.rows += rows
    survey.seconds += seconds
    kinds, counts = np.unique(table.rules & 7, return_counts=True)
    survey.kinds.update({RuleKind(kind): count for kind, count in zip(kinds.tolist(), counts.tolist(), strict=True)})
    survey.packed_bytes += len(table_file.pack_table(table, bytes(16)))
    packed = pack_table(table, survey.numbers)
    if packed is None:
        survey.misses[TableMiss.TOO_LARGE] += 1
    else:
        survey.kernel_bytes += packed.rows.nbytes + 8 * len(packed.page_starts)
    survey.largest = max(survey.largest, (rows, seconds, path.name))


def _check(survey: _Survey, path: Path, frame: EhFrame, table: UnwindTable) -> None:
    expected = decode_scalar(frame)
    survey.checked += 1
    survey.checked_rows += len(expected.rules)
    if not (np.array_equal(table.addresses, expected.addresses) and np.array_equal(table.rules, expected.rules)):
        survey.differing.append(str(path))


def _elf_files(root: Path) -> Iterator[Path]:
    """Programs and libraries for x86-64, each inode once."""
    seen: set[tuple[int, int]] = set()
    for directory, folders, names in os.walk(root):
        if Path(directory) == root:
            folders[:] = [name for name in folders if name not in _NOT_ON_DISK]
        for name in names:
            path = Path(directory, name)
            try:
                status = path.lstat()
                key = (status.st_dev, status.st_ino)
                if not stat.S_ISREG(status.st_mode) or status.st_size < 64 or key in seen:
                    continue
                seen.add(key)
                with path.open("rb") as file:
                    head = file.read(20)
            except OSError:
                continue
            # ELF64, little endian; a program or a library; x86-64
            if head[:6] == b"\x7fELF\x02\x01" and head[16:20] in (b"\2\0\x3e\0", b"\3\0\x3e\0"):
                yield path


def _distinct(paths: Iterator[Path]) -> Iterator[Path]:
    """One path of each identity."""
    known = set()
    for path in paths:
        try:
            with path.open("rb", buffering=0) as file:
                descriptor = file.fileno()
                found = read_identity(lambda offset, size: os.pread(descriptor, size, offset), os.fstat(descriptor).st_size)  # noqa: B023
        except OSError:
            continue
        if found.id not in known:
            known.add(found.id)
            yield path

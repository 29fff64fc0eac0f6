# SPDX-License-Identifier: Apache-2.0
"""Makes unwind tables of every ELF file of this machine: files, rows, seconds, what is not supported, failures; both decoders agree.

Files that are alike (hard links, copies) count once. The reference decoder is slow, so that of files with more than
CHECKED_FDES functions it decodes as many, in runs spread evenly over the file, chosen by a fixed seed; how many rows that are is told.
"""

import os
import stat
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import repeat
from pathlib import Path

import numpy as np
import numpy.typing as npt

from agent.kernel.unwind_rows import RuleNumbers, pack_table
from agent.records.unwind import RuleKind, TableMiss, UnwindTable
from agent.unwind import table_file
from agent.unwind.eh_frame import DecodeRefused, EhFrame, find_eh_frame
from agent.unwind.entries import read_entries
from agent.unwind.lockstep import decode
from agent.unwind.scalar import decode_scalar
from tests.bench.report import BYTES_PER_ROW, PER_CENT, SECONDS, Line, Unit, bounded, told
from tests.bench.timing import BenchError, Effort

U64 = npt.NDArray[np.uint64]
ROOT = Path("/")
_LEFT_OUT = ("proc", "sys", "dev", "run", "tmp")
"""No files on a disk, and files that come and go."""
CHECKED_FDES, _RUNS = 200, 40
_PARTS = 64
_HEAD_BYTES = 4096
_SEED = 23
_MOST_S = 200.0
"""For decoding by both: what is not done by then is told."""
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
    in_part: int = 0
    """Files of which a part was checked."""
    undone: int = 0
    """Files for which there was no time."""
    differing: list[str] = field(default_factory=list)
    raised: list[str] = field(default_factory=list)
    largest: tuple[int, float, str] = (0, 0.0, "")
    numbers: RuleNumbers = field(default_factory=RuleNumbers)

    def add(self, part: "_Survey") -> None:
        """Take in what another process found."""
        self.misses += part.misses
        self.kinds += part.kinds
        for name in ("rows", "seconds", "packed_bytes", "kernel_bytes", "checked", "checked_rows", "in_part", "undone"):
            setattr(self, name, getattr(self, name) + getattr(part, name))
        self.differing += part.differing
        self.raised += part.raised
        self.largest = max(self.largest, part.largest)
        self.numbers.numbers(part.numbers.rules)


def run(effort: Effort) -> Iterator[Line]:
    """All files under the root; a part of them with less effort."""
    began_s = time.monotonic()
    files = list(_distinct(_elf_files(ROOT)))
    if not files:
        raise BenchError("no ELF file on this machine")
    stride = max(1, round(1 / effort.size))
    chosen, found_s = files[::stride], time.monotonic() - began_s
    survey, until_s = _Survey(), time.monotonic() + _MOST_S
    with ProcessPoolExecutor() as pool:
        parts = min(_PARTS, len(chosen))
        for part in pool.map(_survey_of, (chosen[at::parts] for at in range(parts)), repeat(until_s)):
            survey.add(part)
    yield told(
        f"survey: distinct ELF files, found in {found_s:.0f} s, all done in {time.monotonic() - began_s:.0f} s",
        len(chosen),
        _COUNT,
    )
    yield bounded("survey: files for which there was no time", survey.undone, _COUNT, 0)
    yield from _lines(survey)


def _survey_of(files: list[Path], until_s: float) -> _Survey:
    """In a process of the pool. `until_s` is of the monotonic clock, which all processes share."""
    survey = _Survey()
    for path in files:
        if time.monotonic() < until_s:
            _take(survey, path)
        else:
            survey.undone += 1
    return survey


def _lines(survey: _Survey) -> Iterator[Line]:
    if not survey.rows:
        raise BenchError("no file with unwind rules")
    for miss, count in sorted(survey.misses.items()):
        yield told(f"survey: files without a table, {miss.name.lower().replace('_', ' ')}", count, _COUNT)
    yield told("survey: rows", survey.rows, _MILLION_ROWS)
    yield told("survey: decoded in, CPU", survey.seconds, SECONDS)
    yield told("survey: time a row", survey.seconds / survey.rows, _US_PER_ROW)
    rows, seconds, name = survey.largest
    yield bounded(f"survey: largest, {name}, {rows:,} rows", seconds * min(1.0, _LARGE_ROWS / rows), SECONDS, 1.0)
    yield bounded("survey: rows of unsupported rules", survey.kinds[RuleKind.UNSUPPORTED] / survey.rows, PER_CENT, 0.001)
    yield told("survey: distinct rules", len(survey.numbers.rules), _COUNT)
    yield bounded("survey: bytes a row in kernel maps", survey.kernel_bytes / survey.rows, BYTES_PER_ROW, 5.0)
    yield told("survey: bytes a row on disk and wire", survey.packed_bytes / survey.rows, BYTES_PER_ROW)
    yield bounded(
        f"survey: files where the decoders differ, of {survey.checked} checked, {survey.in_part} in part {survey.differing[:3]}",
        len(survey.differing),
        _COUNT,
        0,
    )
    yield told("survey: of all rows, those checked by the other decoder", survey.checked_rows / survey.rows, PER_CENT)
    yield bounded(f"survey: files that raised {survey.raised[:3]}", len(survey.raised), _COUNT, 0)


def _take(survey: _Survey, path: Path) -> None:
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        survey.misses[TableMiss.UNREADABLE] += 1
        return
    try:
        began_s = time.process_time()
        frame = find_eh_frame(lambda offset, size: os.pread(descriptor, size, offset))
        table = decode(frame)
        seconds = time.process_time() - began_s
    except DecodeRefused as refused:
        survey.misses[refused.miss] += 1
        return
    except Exception as error:  # noqa: BLE001 (what must not happen is what is looked for)
        survey.raised.append(f"{path}: {error!r}")
        return
    finally:
        os.close(descriptor)
    _count(survey, path, table, seconds)
    _check(survey, path, frame, table)


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
    runs = runs_of(frame)
    expected = decode_scalar(frame if runs is None else replace(frame, text=runs))
    survey.checked += 1
    if runs is None:
        survey.checked_rows += len(expected.rules)
        is_same = np.array_equal(table.addresses, expected.addresses) and np.array_equal(table.rules, expected.rules)
    else:
        survey.in_part += 1
        survey.checked_rows += sum(len(_starts(expected, *run)) for run in runs)
        is_same = all(is_same_within(table, expected, *run) for run in runs)
    if not is_same:
        survey.differing.append(str(path))


def runs_of(frame: EhFrame) -> tuple[tuple[int, int], ...] | None:
    """Addresses [start, end) of runs of functions that lie beside each other; None when the file has too few to choose from."""
    entries = read_entries(frame)
    order = np.argsort(entries.start, kind="stable")
    start, end = entries.start[order], entries.end[order]
    if len(start) <= CHECKED_FDES:
        return None
    length, stride = CHECKED_FDES // _RUNS, len(start) // _RUNS
    first = np.arange(_RUNS) * stride + np.random.default_rng(_SEED).integers(0, stride - length + 1, _RUNS)
    return tuple((int(start[at]), int(end[at : at + length].max())) for at in first)


def is_same_within(one: UnwindTable, other: UnwindTable, start: int, end: int) -> bool:
    """Whether two tables give the same rule for every address of a range."""
    points = np.concatenate((np.array([start], np.uint64), _starts(one, start, end), _starts(other, start, end)))
    return bool(np.array_equal(_rules_at(one, points), _rules_at(other, points)))


def _starts(table: UnwindTable, start: int, end: int) -> U64:
    """Addresses in a range where another rule begins."""
    low, high = np.searchsorted(table.addresses, np.array([start, end], np.uint64))
    return table.addresses[low:high]


def _rules_at(table: UnwindTable, points: U64) -> npt.NDArray[np.uint32]:
    """What stands before the first row is in no function."""
    at = np.searchsorted(table.addresses, points, side="right") - 1
    return np.where(at >= 0, table.rules[np.maximum(at, 0)], np.uint32(RuleKind.NONE))


def _elf_files(root: Path) -> Iterator[Path]:
    """Programs and libraries for x86-64, each inode once."""
    seen: set[tuple[int, int]] = set()
    for directory, folders, names in os.walk(root):
        if Path(directory) == root:
            folders[:] = [name for name in folders if name not in _LEFT_OUT]
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
    """One path of each content, as far as size and head tell: the head holds the build id."""
    known = set()
    for path in paths:
        try:
            with path.open("rb", buffering=0) as file:
                key = (os.fstat(file.fileno()).st_size, file.read(_HEAD_BYTES))
        except OSError:
            continue
        if key not in known:
            known.add(key)
            yield path

# SPDX-License-Identifier: Apache-2.0
"""From debug sections to inline chains and lines: all units, then all names, then one pass over whole arrays.

Why not a library: `symbolic`, the obvious one, gives a line row to the innermost call at the row's start and forgets calls that begin
or end inside a row. Against llvm-symbolizer 19 on librados (15 MB of debug file) it had another chain at one address in six; this
reader has the same one at all of 4,000. What it costs beside symbolic is a line of `make bench`.

A unit that is broken costs itself only. When time runs out, what was read so far is not used: a table with half of its inlined
calls would be wrong, one with names alone is not.
"""

import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from server.symbols.build_result import BuildStatus, Refused, SplitName
from server.symbols.dwarf.abbrev import Abbreviations
from server.symbols.dwarf.calls import Calls, settle
from server.symbols.dwarf.flatten import flatten
from server.symbols.dwarf.lines import Rows, note_lines, run_lines
from server.symbols.dwarf.name_columns import names_of
from server.symbols.dwarf.naming import BROKEN
from server.symbols.dwarf.source import DebugData
from server.symbols.dwarf.split import SplitUnits, is_skeleton
from server.symbols.dwarf.unit import UT_SPLIT_TYPE, UT_TYPE, Unit, UnitHeader, open_unit, unit_headers
from server.symbols.dwarf.walk import Found, walk
from server.symbols.inlines import Inlines
from server.symbols.symtab import Ranges

CPU_S = 45.0
"""What reading may take of the child's CPU time."""
_BROKEN = (*BROKEN, struct.error)


class OutOfTime(Exception):
    """The debug data is too big for the time there is."""


@dataclass(frozen=True, slots=True)
class Known:
    """What the symbols say already."""

    named: npt.NDArray[np.uint64]
    """Starts of symbols that have a name and a size."""
    folded: dict[int, bytes]
    """Names of symbols by start where several functions share their code."""


@dataclass(frozen=True, slots=True)
class ReadDebug:
    """What came of it."""

    inlines: Inlines | None
    units: int
    broken_units: int
    missing: tuple[SplitName, ...] = ()
    """Units whose code is described in .dwo files that are not here: they give lines, and no inlined calls."""


def read_debug(
    data: DebugData, code: Ranges, known: Known, splits: Sequence[DebugData] = (), clock_s: Callable[[], float] = time.process_time
) -> ReadDebug:
    """Read everything; `splits` are the .dwo and .dwp files that are here. Raises OutOfTime, Refused."""
    until_s = clock_s() + CPU_S

    def check() -> None:
        if clock_s() > until_s:
            raise OutOfTime(f"debug data takes more than {CPU_S:.0f} s of CPU time to read")

    tables = Abbreviations()
    found, rows = Found(code.starts.tolist(), code.ends.tolist(), folded=known.folded), Rows()
    split_units = SplitUnits(data, splits)
    units: list[Unit] = []
    missing: list[SplitName] = []
    broken = 0
    for header in unit_headers(data):
        check()
        unit = _open(data, header, tables)
        if unit is None:
            broken += 1
            continue
        units.append(unit)
        split = split_units.unit(unit) if is_skeleton(unit) else None
        if split is not None:
            units.append(split)
        elif is_skeleton(unit):
            missing.append(SplitName(unit.dwo_id, unit.dwo_name, unit.comp_dir))
        broken += _read_unit(unit, rows, found, split)
    try:
        run_lines(rows, found)
        calls = settle(found, check)
        supplement = [] if data.supplement is None else _open_all(data.supplement)
        texts = names_of(units, supplement, _needed(calls, known))
        inlines = flatten(calls, rows, texts, known.folded)
    except _BROKEN as error:  # Nothing of it is certain then; the names of the symbols stay.
        raise Refused(BuildStatus.MALFORMED, f"debug data: {type(error).__name__}: {error}") from error
    return ReadDebug(inlines, len(units), broken + calls.broken_units, tuple(missing))


def _needed(calls: Calls, known: Known) -> list[int]:
    """Entries whose names are asked for: not those of functions that a symbol names wherever they lie."""
    is_needed = calls.depths > 0
    is_needed[calls.ranges.entries[~np.isin(calls.ranges.starts, known.named)]] = True
    for _, node, first in calls.twins:
        is_needed[[node, first]] = True
    needed: list[int] = np.unique(calls.names[is_needed]).tolist()
    return needed


def _open(data: DebugData, header: UnitHeader, tables: Abbreviations) -> Unit | None:
    try:
        return open_unit(data, header, tables)
    except _BROKEN:
        return None


def _open_all(data: DebugData) -> Sequence[Unit]:
    tables = Abbreviations()
    units = [_open(data, header, tables) for header in unit_headers(data)]
    return [unit for unit in units if unit is not None]


def _read_unit(unit: Unit, rows: Rows, found: Found, split: Unit | None) -> int:
    """Take lines and code of a unit; 1 when it is broken: it gives no calls then, and its lines stay."""
    if unit.header.kind in (UT_TYPE, UT_SPLIT_TYPE):
        return 0
    nodes, ranges = len(found.owners), len(found.nodes)
    try:
        note_lines(unit, rows)
        if split is not None:
            split.files = unit.files
        walk(split or unit, found)
    except _BROKEN:
        found.forget_from(nodes, ranges)
        return 1
    return 0

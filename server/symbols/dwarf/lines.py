# SPDX-License-Identifier: Apache-2.0
"""Runs line programs: which file and line stands behind each address (DWARF 5, 6.2).

A row reaches to the next one. Only rows that change something are kept; of several at one address the last counts, as in other
tools. Line 0 means that no line is known. A sequence that starts outside of executable code was thrown away by the linker.
"""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from server.symbols.dwarf.line_header import parse_line_header
from server.symbols.dwarf.line_program import END, LinePrograms, Pieces
from server.symbols.dwarf.unit import Unit
from server.symbols.dwarf.walk import Found

U64 = npt.NDArray[np.uint64]


@dataclass(slots=True)
class Rows:
    """Rows of all line programs, in pieces. Row i says file << 32 | line, or END."""

    addresses: list[U64] = field(default_factory=list)
    places: list[U64] = field(default_factory=list)
    paths: dict[bytes, int] = field(default_factory=lambda: {b"": 0})
    """Number of each file in the whole program; 0 is the unknown one."""
    programs: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    """Files by number, of programs that were met; units may share one."""
    waiting: dict[tuple[object, ...], LinePrograms] = field(default_factory=dict)
    """Programs that were met and not run yet, by the table of their operations."""

    def numbers(self, paths: list[bytes]) -> list[int]:
        """Numbers of files, new ones where they were not met before."""
        return [self.paths.setdefault(path, len(self.paths)) for path in paths]


def note_lines(unit: Unit, rows: Rows) -> None:
    """Tell a unit its files, and note its line program for run_lines(). Raises DwarfError."""
    if unit.stmt_list is None:
        return
    key = (id(unit.data), unit.stmt_list)
    known = rows.programs.get(key)
    if known is not None:
        unit.files = known
        return
    header = parse_line_header(unit, unit.stmt_list)
    unit.files = rows.programs[key] = rows.numbers(header.files)
    byte_order = unit.data.byte_order
    table = (byte_order, header.instruction_bytes, header.line_base, header.line_range, header.opcode_base, header.lengths)
    programs = rows.waiting.get(table)
    if programs is None:
        programs = rows.waiting[table] = LinePrograms(header, byte_order)
    programs.add(unit.data.lines[header.start : header.end], unit.files)


def run_lines(rows: Rows, code: Found) -> None:
    """Run all programs that wait. A broken one ends where it breaks."""
    for programs in rows.waiting.values():
        pieces = list(programs.run())
        if not pieces:
            continue
        shifts = np.cumsum([0, *[piece.places.size for piece in pieces[:-1]]])
        addresses, places = np.concatenate([piece.addresses for piece in pieces]), np.concatenate([piece.places for piece in pieces])
        begins = np.concatenate([piece.begins + shift for piece, shift in zip(pieces, shifts, strict=True)])
        _keep(rows, Pieces(addresses, places, begins), code)
    rows.waiting.clear()


def _keep(rows: Rows, run: Pieces, code: Found) -> None:
    """Take the sequences that lie in code; rows that no end of the same program follows belong to none."""
    addresses, places, begins = run.addresses, run.places, run.begins
    ends = np.flatnonzero(places == END)
    if not ends.size:
        return
    firsts = np.maximum(np.concatenate([[0], ends[:-1] + 1]), begins[np.searchsorted(begins, ends, "right") - 1])
    is_alive = (ends > firsts) & code.are_code(addresses[firsts], addresses[ends])
    marks = np.zeros(places.size + 1, np.int8)
    marks[firsts[is_alive]] += 1
    marks[ends[is_alive] + 1] -= 1
    wanted = np.cumsum(marks[:-1], dtype=np.int8).view(np.bool_)
    rows.addresses.append(addresses[wanted])
    rows.places.append(places[wanted])

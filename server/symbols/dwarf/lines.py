# SPDX-License-Identifier: Apache-2.0
"""Runs line programs: which file and line stands behind each address (DWARF 5, 6.2).

A row reaches to the next one. Only rows that change something are kept; of several at one address the last counts, as in other
tools. Line 0 means that no line is known. A sequence that starts outside of executable code was thrown away by the linker.
"""

from array import array
from dataclasses import dataclass, field

from server.symbols.dwarf.line_header import LineHeader, parse_line_header
from server.symbols.dwarf.shape import DwarfError, sleb, uleb
from server.symbols.dwarf.unit import Unit
from server.symbols.dwarf.walk import Found

END = (1 << 64) - 1
"""A row that ends a sequence."""
MAX_ROWS = 64_000_000
_COPY, _ADVANCE_PC, _ADVANCE_LINE, _SET_FILE, _SET_COLUMN, _NEGATE, _BLOCK, _CONST_PC, _FIXED_PC = range(1, 10)
_EXTENDED_END, _EXTENDED_ADDRESS = 1, 2


@dataclass(slots=True)
class Rows:
    """Rows of all line programs. Row i says file << 32 | line, or END."""

    addresses: "array[int]" = field(default_factory=lambda: array("Q"))
    places: "array[int]" = field(default_factory=lambda: array("Q"))
    sequences: list[tuple[int, int, int]] = field(default_factory=list)
    """(first address, first row, row behind the last) each."""
    paths: dict[bytes, int] = field(default_factory=lambda: {b"": 0})
    """Number of each file in the whole program; 0 is the unknown one."""
    programs: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    """Files by number, of programs that were run; units may share one."""

    def numbers(self, paths: list[bytes]) -> list[int]:
        """Numbers of files, new ones where they were not met before."""
        return [self.paths.setdefault(path, len(self.paths)) for path in paths]


def run_lines(unit: Unit, rows: Rows, code: Found) -> None:
    """Run the line program of a unit, and tell the unit its files. A broken program ends where it breaks."""
    if unit.stmt_list is None:
        return
    key = (id(unit.data), unit.stmt_list)
    known = rows.programs.get(key)
    if known is not None:
        unit.files = known
        return
    header = parse_line_header(unit, unit.stmt_list)
    unit.files = rows.programs[key] = rows.numbers(header.files)
    try:
        _run(unit, header, rows, code)
    except (IndexError, DwarfError, OverflowError):
        _drop(rows, rows.sequences[-1][2] if rows.sequences else 0)


def _drop(rows: Rows, first: int) -> None:
    del rows.addresses[first:], rows.places[first:]


def _run(unit: Unit, header: LineHeader, rows: Rows, code: Found) -> None:  # noqa: PLR0912, PLR0915 -- a call per operation would double the time
    data, place, end, files = unit.data.lines, header.start, header.end, unit.files
    base, step = header.opcode_base, header.instruction_bytes
    advance = [0] * base + [(op - base) // header.line_range * step for op in range(base, 256)]
    increase = [0] * base + [header.line_base + (op - base) % header.line_range for op in range(base, 256)]
    const_pc = advance[255]
    is_plain = [(op in (_NEGATE, _BLOCK) or op > _FIXED_PC) and not header.lengths[op - 1] for op in range(base)]
    put_address, put_place = rows.addresses.append, rows.places.append
    address, line, last = 0, 1, END
    file = first_file = (files[1] if len(files) > 1 else 0) << 32
    sequence = len(rows.addresses)
    while place < end:
        op = data[place]
        place += 1
        if op >= base:
            address += advance[op]
            line += increase[op]
        elif op == _COPY:
            pass
        elif is_plain[op]:
            continue
        elif op == _ADVANCE_LINE:
            delta = data[place]
            if delta < 0x80:
                place += 1
                line += delta if delta < 0x40 else delta - 0x80
            else:
                delta, place = sleb(data, place)
                line += delta
            continue
        elif op == _SET_COLUMN:
            while data[place] > 0x7F:
                place += 1
            place += 1
            continue
        elif op == _ADVANCE_PC:
            delta, place = uleb(data, place)
            address += delta * step
            continue
        elif op == _SET_FILE:
            number, place = uleb(data, place)
            file = (files[number] if number < len(files) else 0) << 32
            continue
        elif op == _CONST_PC:
            address += const_pc
            continue
        elif op == 0:
            length, place = uleb(data, place)
            kind = data[place] if length else 0
            if kind == _EXTENDED_ADDRESS:
                address = unit.header.shape.number(data, place + 1, min(length - 1, 8))
            elif kind == _EXTENDED_END:
                put_address(address)
                put_place(END)
                _end_sequence(rows, sequence, code)
                sequence = len(rows.addresses)
                address, line, last, file = 0, 1, END, first_file
                if sequence > MAX_ROWS:
                    raise DwarfError(f"more than {MAX_ROWS} rows of lines")
            place += length
            continue
        elif op == _FIXED_PC:
            address += unit.header.shape.number(data, place, 2)
            place += 2
            continue
        else:
            for _ in range(header.lengths[op - 1]):
                _, place = uleb(data, place)
            continue
        here = file | (line & 0xFFFF_FFFF)
        if here != last:
            put_address(address)
            put_place(here)
            last = here
    _drop(rows, sequence)


def _end_sequence(rows: Rows, first: int, code: Found) -> None:
    start, end = rows.addresses[first], rows.addresses[-1]
    if len(rows.addresses) - first < 2 or end <= start or not code.is_code(start, end):
        _drop(rows, first)
        return
    rows.sequences.append((start, first, len(rows.addresses)))

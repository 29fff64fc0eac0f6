# SPDX-License-Identifier: Apache-2.0
"""Headers of line programs: file names and the numbers that the program is read with (DWARF 5, 6.2.4)."""

from dataclasses import dataclass, field

from server.symbols.dwarf.constants import Form
from server.symbols.dwarf.shape import DwarfError, Shape, uleb
from server.symbols.dwarf.unit import Unit

LNCT_PATH, LNCT_DIRECTORY = 1, 2
MAX_FILES = 1 << 20


@dataclass(slots=True)
class LineHeader:
    """What a line program is read with. `files` are paths by number; number 0 means something from DWARF 5 on."""

    start: int
    end: int
    instruction_bytes: int
    line_base: int
    line_range: int
    opcode_base: int
    lengths: bytes
    """Number of LEB128 operands by standard opcode, from 1."""
    address_bytes: int
    files: list[bytes] = field(default_factory=list)


def parse_line_header(unit: Unit, offset: int) -> LineHeader:
    """The header at `offset` of .debug_line. Raises DwarfError."""
    data, byte_order = unit.data.lines, unit.data.byte_order
    wide = Shape(byte_order, 5, 4, 8)
    length, place, offset_bytes = wide.number(data, offset, 4), offset + 4, 4
    if length == 0xFFFF_FFFF:
        length, place, offset_bytes = wide.number(data, place, 8), place + 8, 8
    end = min(place + length, len(data))
    version, place = wide.number(data, place, 2), place + 2
    if not 2 <= version <= 5:
        raise DwarfError(f"line program of version {version}")
    address_bytes = unit.header.shape.address_bytes
    if version >= 5:
        address_bytes, place = data[place], place + 2
    header_length, place = wide.number(data, place, offset_bytes), place + offset_bytes
    program = place + header_length
    instruction_bytes = data[place]
    place += 2 if version >= 4 else 1
    line_base = int.from_bytes(data[place + 1 : place + 2], "little", signed=True)
    line_range, opcode_base = data[place + 2], data[place + 3]
    place += 4
    if not line_range or not opcode_base or program > end:
        raise DwarfError(f"line program at {offset} makes no sense")
    lengths = data[place : place + opcode_base - 1]
    place += opcode_base - 1
    header = LineHeader(program, end, instruction_bytes, line_base, line_range, opcode_base, lengths, address_bytes)
    shape = Shape(byte_order, version, offset_bytes, address_bytes)
    header.files = _files(unit, shape, place) if version >= 5 else _old_files(unit, data, place)
    return header


def joined(*parts: bytes) -> bytes:
    """A path out of directories, the outermost first: an absolute part replaces what is before it."""
    path = b""
    for part in parts:
        path = part if part.startswith(b"/") or not path else path.rstrip(b"/") + b"/" + part
    return path


def _old_files(unit: Unit, data: bytes, place: int) -> list[bytes]:
    directories = [unit.comp_dir]
    while data[place]:
        end = data.index(b"\0", place)
        directories.append(joined(unit.comp_dir, data[place:end]))
        place = end + 1
    place += 1
    files = [joined(unit.comp_dir, unit.name)]
    while data[place] and len(files) < MAX_FILES:
        end = data.index(b"\0", place)
        name = data[place:end]
        directory, place = uleb(data, end + 1)
        _, place = uleb(data, place)
        _, place = uleb(data, place)
        files.append(joined(directories[directory], name) if directory < len(directories) else name)
    return files


def _files(unit: Unit, shape: Shape, place: int) -> list[bytes]:
    directories, place = _entries(unit, shape, place)
    paths = [joined(unit.comp_dir, path) for path, _ in directories]
    files, _ = _entries(unit, shape, place)
    return [joined(paths[directory], name) if directory < len(paths) else name for name, directory in files]


def _entries(unit: Unit, shape: Shape, place: int) -> tuple[list[tuple[bytes, int]], int]:
    data = unit.data.lines
    formats = []
    count, place = data[place], place + 1
    for _ in range(count):
        content, place = uleb(data, place)
        form, place = uleb(data, place)
        formats.append((content, form))
    total, place = uleb(data, place)
    if total > MAX_FILES or (total and not formats):
        raise DwarfError(f"{total} file names")
    found = []
    for _ in range(total):
        name, directory = b"", 0
        for content, form in formats:
            value, place = shape.value(data, place, form)
            if content == LNCT_PATH:
                name = unit.text(form, value)
            elif content == LNCT_DIRECTORY and isinstance(value, int) and form != Form.STRING:
                directory = value
        found.append((name, directory))
    return found, place

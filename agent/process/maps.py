# SPDX-License-Identifier: Apache-2.0
"""Parses /proc/PID/maps (proc_pid_maps(5)) into the executable mappings of a process.

Paths are bytes; the kernel writes a newline in a path as \\012 and leaves spaces alone. Whether a file is deleted is not told by the
suffix " (deleted)", which a live file may carry in its name: that is decided in open_file.py.
"""

import re
from dataclasses import dataclass
from itertools import product

from agent.records.process import Mapping

MAX_LINE_BYTES = 4096 + 256
"""PATH_MAX and the numbers before it; a longer line is none of the kernel's."""
MAX_MAPPINGS = 16_384
"""Executable mappings kept of one process; the rest is counted as malformed."""
_MAX_RANGE_BYTES = 34
_NOT_EXECUTABLE = frozenset(bytes(letters) for letters in product(b"r-", b"w-", b"-", b"sp"))
_HEX = rb"([0-9a-f]{1,16})"
_FIELDS = re.compile(_HEX + rb"-" + _HEX + rb" \S+ " + _HEX + rb" " + _HEX + rb":" + _HEX + rb" ([0-9]{1,20})(?: +(.*))?", re.DOTALL)
"""Blanks before the path are padding; those at its end stay, as they may be part of the name."""
_OCTAL = re.compile(rb"\\([0-7]{3})")
_ADDRESS_END = 1 << 64


@dataclass(frozen=True, slots=True)
class MapsParse:
    """What was found in one maps file."""

    mappings: tuple[Mapping, ...]
    """Executable ones, sorted by start, not overlapping."""
    malformed: int
    """Lines that could not be used."""


def parse_maps(raw: bytes) -> MapsParse:
    """Parse a whole maps file; a last line without its newline is cut off and counted as malformed."""
    mappings: list[Mapping] = []
    malformed = 0
    end_of_last = 0
    *lines, rest = raw.split(b"\n")
    for line in lines:
        blank = line.find(b" ", 0, _MAX_RANGE_BYTES)
        if line[blank + 1 : blank + 5] in _NOT_EXECUTABLE:
            continue
        mapping = _mapping(line)
        if mapping is None or mapping.start < end_of_last or len(mappings) >= MAX_MAPPINGS:
            malformed += 1
            continue
        mappings.append(mapping)
        end_of_last = mapping.end
    return MapsParse(tuple(mappings), malformed + bool(rest))


def _mapping(line: bytes) -> Mapping | None:
    found = _FIELDS.fullmatch(line) if len(line) <= MAX_LINE_BYTES else None
    if found is None:
        return None
    start_hex, end_hex, offset_hex, major_hex, minor_hex, inode_text, path = found.groups()
    start, end, offset, inode = int(start_hex, 16), int(end_hex, 16), int(offset_hex, 16), int(inode_text)
    major, minor = int(major_hex, 16), int(minor_hex, 16)
    if not 0 <= start < end <= _ADDRESS_END:
        return None
    return Mapping(start, end, offset, (major, minor), inode, _unescaped(path or b""))


def _unescaped(path: bytes) -> bytes:
    if b"\\" not in path:
        return path
    return _OCTAL.sub(lambda match: bytes([int(match[1], 8) & 0xFF]), path)

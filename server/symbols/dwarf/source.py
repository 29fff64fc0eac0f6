# SPDX-License-Identifier: Apache-2.0
"""The sections that DWARF is read from, whole and inflated, as one value."""

from dataclasses import dataclass

from server.symbols.dwarf.shape import Shape


@dataclass(slots=True)
class DebugData:
    """Sections of one file; b"" where it has none."""

    byte_order: str
    info: bytes = b""
    abbreviations: bytes = b""
    strings: bytes = b""
    line_strings: bytes = b""
    string_offsets: bytes = b""
    lines: bytes = b""
    addresses: bytes = b""
    ranges: bytes = b""
    """.debug_ranges, of DWARF 2 to 4."""
    range_lists: bytes = b""
    """.debug_rnglists, of DWARF 5."""
    is_split: bool = False
    """The sections are those of a .dwo or .dwp file."""
    unit_index: bytes = b""
    """.debug_cu_index of a .dwp file: where the parts of each unit lie."""
    place: int = 0
    """Added to offsets of entries, so that those of several files are apart."""
    supplement: "DebugData | None" = None
    """What dwz moved to a common file (altlink)."""

    def default_bases(self, shape: Shape) -> tuple[int, int, int]:
        """Where a unit's string offsets, addresses and range lists start when it does not say so: behind the first header."""
        if shape.version < 5:
            return 0, 0, 0
        head = 8 if shape.offset_bytes == 4 else 16
        return head, head, head + 4

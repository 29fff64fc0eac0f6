# SPDX-License-Identifier: Apache-2.0
"""Debug data written down byte by byte: one unit of DWARF 4, little endian, 8-byte addresses."""

import struct

from server.symbols.dwarf.abbrev import Abbreviations
from server.symbols.dwarf.constants import Attribute, Form, Tag
from server.symbols.dwarf.source import DebugData
from server.symbols.dwarf.unit import Unit, open_unit, unit_headers

Abbreviation = tuple[Tag, bool, tuple[tuple[Attribute, Form], ...]]
HEADER_BYTES = 11


def abbreviations(*rows: Abbreviation) -> bytes:
    """A table; codes count from 1. All numbers are below 128, so that they are one byte of LEB128."""
    table = b""
    for code, (tag, has_children, attributes) in enumerate(rows, 1):
        table += bytes([code, tag, has_children])
        table += b"".join(bytes([attribute, form]) for attribute, form in attributes) + b"\0\0"
    return table + b"\0"


def unit(entries: bytes, table: bytes, **sections: bytes) -> Unit:
    """A unit of these entries."""
    body = struct.pack("<HIB", 4, 0, 8) + entries  # version, abbreviations at, bytes of an address
    data = DebugData("little", info=struct.pack("<I", len(body)) + body, abbreviations=table, **sections)
    (header,) = unit_headers(data)
    return open_unit(data, header, Abbreviations())

# SPDX-License-Identifier: Apache-2.0
"""Which units a .dwo or .dwp file holds: their ids, which the skeletons in the program name.

Runs in the server itself: it reads the index of a .dwp file, and of a .dwo file the header of its first unit and, for DWARF 4, that
unit's root entry, all with bounds.
"""

import struct

from server.symbols.build_result import Refused
from server.symbols.dwarf.abbrev import Abbreviations
from server.symbols.dwarf.constants import Attribute
from server.symbols.dwarf.naming import BROKEN
from server.symbols.dwarf.shape import Shape
from server.symbols.dwarf.source import DebugData
from server.symbols.dwarf.split import index_rows
from server.symbols.dwarf.unit import UT_SPLIT_COMPILE, Unit, UnitHeader, root_values
from server.symbols.elf_probe import first_bytes

_MOST = {b".debug_cu_index": 64 << 20, b".debug_info.dwo": 64 << 10, b".debug_abbrev.dwo": 1 << 20}


def split_ids(descriptor: int) -> frozenset[int]:
    """Ids of the units; none for a file that is something else, or broken. Of a .dwo file with several units only the first's."""
    try:
        order, found = first_bytes(descriptor, _MOST)
        byte_order = "little" if order == "<" else "big"
        if b".debug_cu_index" in found:
            return frozenset(index_rows(found[b".debug_cu_index"], byte_order))
        return frozenset({_first_id(found.get(b".debug_info.dwo", b""), found.get(b".debug_abbrev.dwo", b""), byte_order)} - {0})
    except (Refused, OSError, struct.error, *BROKEN):
        return frozenset()


def _first_id(info: bytes, abbreviations: bytes, byte_order: str) -> int:
    """Of the first unit; 0 when it has none."""
    shape = Shape(byte_order, 4, 4, 8)
    is_wide = info[:4] == b"\xff" * 4
    place, offset_bytes = (12, 8) if is_wide else (4, 4)
    version = shape.number(info, place, 2)
    if version >= 5:
        return shape.number(info, place + 4 + offset_bytes, 8) if info[place + 2] == UT_SPLIT_COMPILE else 0
    shape = Shape(byte_order, version, offset_bytes, info[place + 2 + offset_bytes])
    at = shape.number(info, place + 2, offset_bytes)
    header = UnitHeader(0, place + 3 + offset_bytes, len(info), shape, at, 0, 0)
    unit = Unit(header, DebugData(byte_order, info=info), Abbreviations().table(abbreviations, at, shape))
    return int(root_values(unit).get(Attribute.GNU_DWO_ID, (0, 0))[1])

# SPDX-License-Identifier: Apache-2.0
"""Which units a .dwo or .dwp file holds: their ids, which the skeletons in the program name.

Runs in the server itself: it reads the index of a .dwp file, and of a .dwo file the header of its first unit and, for DWARF 4, that
unit's root entry, all with bounds. Ids stay columns: a file of some megabytes may hold a million.
"""

import struct
from collections.abc import Collection

import numpy as np
import numpy.typing as npt

from server.symbols.build_result import Refused
from server.symbols.dwarf.abbrev import AbbreviationTable, find_abbreviation
from server.symbols.dwarf.constants import Attribute
from server.symbols.dwarf.naming import BROKEN
from server.symbols.dwarf.shape import Shape, uleb
from server.symbols.dwarf.source import DebugData
from server.symbols.dwarf.split import index_ids
from server.symbols.dwarf.unit import UT_SPLIT_COMPILE, Unit, UnitHeader, root_values
from server.symbols.elf_probe import first_bytes

_MOST = {b".debug_cu_index": 64 << 20, b".debug_info.dwo": 64 << 10, b".debug_abbrev.dwo": 1 << 20}

U64 = npt.NDArray[np.uint64]


def split_ids(descriptor: int) -> U64:
    """Ids of the units, ascending; none for a file that is something else, or broken. Of several units in a .dwo file only the first's."""
    try:
        order, found = first_bytes(descriptor, _MOST)
        byte_order = "little" if order == "<" else "big"
        if b".debug_cu_index" in found:
            return np.unique(index_ids(found[b".debug_cu_index"], byte_order))
        first = _first_id(found.get(b".debug_info.dwo", b""), found.get(b".debug_abbrev.dwo", b""), byte_order)
        return np.array([first] if first else [], np.uint64)
    except (Refused, OSError, struct.error, *BROKEN):
        return np.zeros(0, np.uint64)


def common_ids(wanted: Collection[int], ids: U64) -> set[int]:
    """Those of the wanted ids that a file has."""
    some = np.fromiter(wanted, np.uint64, len(wanted))
    return set(some[np.isin(some, ids)].tolist())


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
    code, _ = uleb(info, header.root)
    table = AbbreviationTable([], {code: find_abbreviation(abbreviations, at, shape, code)})
    unit = Unit(header, DebugData(byte_order, info=info), table)
    return int(root_values(unit).get(Attribute.GNU_DWO_ID, (0, 0))[1])

# SPDX-License-Identifier: Apache-2.0
"""Names of what functions belong to: their binary, or their package as the page colours it."""

import re
from enum import StrEnum

import numpy as np

from server.profile.names import CodeKind, FunctionTable
from server.profile.nametable import NameSort, NameTable
from server.profile.reshape import DROPPED, Renaming

KERNEL = "kernel"
_OPENING = re.compile("^<+")
_DOTTED = re.compile(r"([\w./-]*/)?([\w-]+)\.", re.ASCII)


class Unit(StrEnum):
    """What a frame of the graph stands for."""

    FUNCTION = "function"
    LINE = "line"
    """A function at one line of it."""
    PACKAGE = "package"
    """`json` of json::parse, `net/http` of net/http.(*conn).serve, the binary of a bare name."""
    BINARY = "binary"


SMALL = (Unit.FUNCTION, Unit.LINE)
"""Units that trees come in; the others are made of functions."""


def package_of(name: str, binary: str) -> str:
    """Give what stands before the first separator of a name; its binary when there is none. As web/core/colour.js has it."""
    bare = _OPENING.sub("", name)
    if "::" in bare:
        return bare[: bare.index("::")]
    found = _DOTTED.match(bare)
    return (found.group(1) or "") + found.group(2) if found else binary


def by_unit(table: NameTable, unit: Unit, *, with_kernel: bool = True, is_collapsed: bool = False) -> Renaming:
    """Name all frames of a table by their unit. Larger units swallow the frames of the same one that follow."""
    is_kernel = np.array(table.codes) == CodeKind.KERNEL
    if unit in SMALL:
        return Renaming(table, np.where(is_kernel & (not with_kernel), DROPPED, np.arange(len(table))), is_collapsed)
    made = NameTable()
    names = np.zeros(len(table), np.intp)
    for number in range(1, len(table)):
        names[number] = DROPPED if is_kernel[number] and not with_kernel else _unit_number(made, table, number, unit)
    return Renaming(made, names, is_collapsed=True)


def _unit_number(made: NameTable, table: NameTable, number: int, unit: Unit) -> int:
    code, name = table.codes[number], table.names[number]
    binary = table.binaries[number].partition(" (build ")[0]  # of frames without a name it says the build too
    if table.sorts[number] is not NameSort.FUNCTION:
        (taken,) = made.adopt(table, [number])
        return taken
    owner = package_of(name, binary) if unit is Unit.PACKAGE else binary
    text = KERNEL if code == CodeKind.KERNEL else owner or "[no binary]"
    function = FunctionTable([text], [text], [""], np.array([code], np.uint8), np.ones(1, np.bool_), [""], np.zeros(1, np.int32))
    return int(made.intern(function)[0])

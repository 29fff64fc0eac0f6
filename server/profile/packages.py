# SPDX-License-Identifier: Apache-2.0
"""Names of what functions belong to: all instances of a generic one, their package as the page colours it, or their binary."""

import re
from enum import StrEnum

import numpy as np

from server.profile.names import CodeKind, FunctionTable
from server.profile.nametable import NameSort, NameTable
from server.profile.reshape import DROPPED, Renaming

KERNEL = "kernel"
_OPENING = re.compile("^<+")
_BRACKET = re.compile(r"[\[\]]")
_DOTTED = re.compile(r"([\w./-]*/)?([\w-]+)\.", re.ASCII)


class Unit(StrEnum):
    """What a frame of the graph stands for."""

    FUNCTION = "function"
    LINE = "line"
    """A function at one line of it."""
    GENERICS = "generics"
    """`Get[...]` of Get[go.shape.int64] and Get[go.shape.string]: Go's functions without their type arguments, all others as they are."""
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


def without_type_arguments(name: str) -> str:
    """Give a name of Go with every outermost group of brackets emptied; one that was cut inside of one stays as it is."""
    parts, depth, start = [], 0, 0
    for found in _BRACKET.finditer(name):
        opens = found.group() == "["
        if opens and depth == 0:
            parts.append(name[start : found.start()])
        depth += 1 if opens else -1
        if depth < 0:
            return name
        if depth == 0:
            start = found.end()
    return name if depth or not parts else "[...]".join([*parts, name[start:]])


def by_unit(table: NameTable, unit: Unit, *, with_kernel: bool = True, is_collapsed: bool = False) -> Renaming:
    """Name all frames of a table by their unit. Packages and binaries swallow the frames of the same one that follow."""
    is_kernel = np.array(table.codes) == CodeKind.KERNEL
    if unit in SMALL:
        return Renaming(table, np.where(is_kernel & (not with_kernel), DROPPED, np.arange(len(table))), is_collapsed)
    made = NameTable()
    names = np.zeros(len(table), np.intp)
    for number in range(1, len(table)):
        names[number] = DROPPED if is_kernel[number] and not with_kernel else _unit_number(made, table, number, unit)
    return Renaming(made, names, is_collapsed or unit is not Unit.GENERICS)


def _unit_number(made: NameTable, table: NameTable, number: int, unit: Unit) -> int:
    code, name = table.codes[number], table.names[number]
    binary = table.binaries[number].partition(" (build ")[0]  # of frames without a name it says the build too
    if unit is Unit.GENERICS and code == CodeKind.GO and table.sorts[number] is NameSort.FUNCTION:
        return made.adopt_as(table, number, without_type_arguments(name))
    if unit is Unit.GENERICS or table.sorts[number] is not NameSort.FUNCTION:
        (taken,) = made.adopt(table, [number])
        return taken
    owner = package_of(name, binary) if unit is Unit.PACKAGE else binary
    text = KERNEL if code == CodeKind.KERNEL else owner or "[no binary]"
    function = FunctionTable([text], [text], [""], np.array([code], np.uint8), np.ones(1, np.bool_), [""], np.zeros(1, np.int32))
    return int(made.intern(function)[0])

# SPDX-License-Identifier: Apache-2.0
"""The distinct names among parts of frames: by function, or by function and line, "json::parse parse.cc:214"."""

from pathlib import PurePosixPath

import numpy as np

from server.profile.calltree import Indices
from server.profile.names import FrameParts, FunctionTable


def distinct_names(functions: FunctionTable, parts: FrameParts, first: int, *, is_by_line: bool) -> tuple[FunctionTable, Indices]:
    """Rows for the names of the parts from `first` on, and the row of each.

    By function, a row has the first file with a line that was seen of it.
    """
    function, file, line = parts.function[first:], parts.file[first:], parts.line[first:]
    keys = (line, file, function) if is_by_line else (line == 0, function)
    order = np.lexsort(keys)
    is_new = np.ones(order.size, np.bool_)
    is_new[1:] = function[order[1:]] != function[order[:-1]]
    if is_by_line:
        is_new[1:] |= (file[order[1:]] != file[order[:-1]]) | (line[order[1:]] != line[order[:-1]])
    place = np.empty(order.size, np.intp)
    place[order] = np.cumsum(is_new) - 1
    heads = order[is_new]
    rows = function[heads].tolist()
    files = [parts.files[n] for n in file[heads].tolist()]
    lines = line[heads]
    names = [functions.names[row] for row in rows]
    if is_by_line:
        names = [_at_line(name, path, at) for name, path, at in zip(names, files, lines.tolist(), strict=True)]
    table = FunctionTable(
        names=names,
        raw_names=[functions.raw_names[row] for row in rows],
        binaries=[functions.binaries[row] for row in rows],
        codes=functions.codes[rows],
        is_named=functions.is_named[rows],
        files=[path or functions.files[row] for path, row in zip(files, rows, strict=True)],
        lines=np.where(lines > 0, lines, functions.lines[rows]).astype(np.int32),
        aliases=[functions.aliases[row] if row < len(functions.aliases) else () for row in rows],
        builds=[functions.builds[row] if row < len(functions.builds) else () for row in rows],
    )
    return table, place


def _at_line(name: str, path: str, line: int) -> str:
    return f"{name} {PurePosixPath(path).name}:{line}" if line and path else name

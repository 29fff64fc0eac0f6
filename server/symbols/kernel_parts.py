# SPDX-License-Identifier: Apache-2.0
"""What is particular to tables of the kernel and its modules: places count from the start of their text, and the kernel has a list.

The list (kallsyms) has every symbol of the running kernel, its own labels of assembly too, and no sizes; debug files have sizes, lines
and inlined calls. Where both have a symbol with a size the file's counts, elsewhere the list's (C4).
"""

import os
import re

import numpy as np

from emberwatch.v1 import batch_pb2 as pb
from server.symbols.build_result import BuildStatus, Refused
from server.symbols.elf import INIT_PLACE
from server.symbols.kallsyms import MAX_BYTES, parse_kallsyms
from server.symbols.symtab import RANK_LOCAL, Ranges, RawSymbols, Symbols, join

TEXT_START = b"_text"
"""Where offsets in the kernel count from."""


def kallsyms_of(descriptor: int) -> Symbols:
    """The list as an agent sent it. Raises Refused."""
    size = os.fstat(descriptor).st_size
    if size > MAX_BYTES:
        raise Refused(BuildStatus.LIMIT, f"kallsyms of {size} bytes, at most {MAX_BYTES} are read")
    return parse_kallsyms(os.pread(descriptor, size, 0))


def text_start(kind: int, raw: RawSymbols, code: Ranges) -> int:
    """Address in the file that offsets count from: _text of the kernel; of a module its first symbol of code that stays in memory.

    The agent sees a module through kallsyms alone, and the first symbol is where that begins. Raises Refused.
    """
    if kind == pb.BINARY_KIND_KERNEL:
        # It may be the end of another text: linkers let names share their tails.
        places = [found.start() for found in re.finditer(re.escape(TEXT_START + b"\0"), raw.strings.tobytes())]
        rows = np.flatnonzero(np.isin(raw.name_starts, places))
        if not rows.size:
            raise Refused(BuildStatus.UNSUPPORTED, "a kernel without the symbol _text")
        start = int(raw.starts[rows[0]])
        if code.starts.size and int(code.starts[0]) < start:
            raise Refused(BuildStatus.UNSUPPORTED, "a kernel with code before _text")
        return start
    named = raw.strings[np.clip(raw.name_starts, 0, raw.strings.size - 1)] != 0
    inside = raw.starts[named & (raw.starts < INIT_PLACE)]
    if not inside.size:
        raise Refused(BuildStatus.UNSUPPORTED, "a module without a symbol of code")
    return int(inside.min())


def with_listed(raw: RawSymbols, listed: Symbols, base: int) -> RawSymbols:
    """The symbols of the files and, where they have none with a size, those of the list."""
    starts = listed.starts + np.uint64(base)
    rows = np.flatnonzero(~np.isin(starts, raw.starts[raw.sizes > 0]))
    names = [listed.name(row) + b"\0" for row in rows.tolist()]
    name_starts = np.cumsum([0, *[len(name) for name in names]])[:-1]
    sizes = (listed.ends - listed.starts)[rows]
    strings = np.frombuffer(b"".join(names) or b"\0", np.uint8)
    return join([raw, RawSymbols(starts[rows], sizes, np.full(rows.size, RANK_LOCAL, np.uint8), name_starts, strings)])


def from_text(symbols: Symbols, base: int) -> Symbols:
    """The same, counted from the start of text. Raises Refused when there is code before it."""
    keep = symbols.starts >= np.uint64(base)
    if not keep.all():
        raise Refused(BuildStatus.UNSUPPORTED, "code before the start of text")
    return Symbols(
        symbols.starts - np.uint64(base),
        symbols.ends - np.uint64(base),
        symbols.flags,
        symbols.name_bounds,
        symbols.blob,
        symbols.alias_symbols,
        symbols.alias_bounds,
        symbols.alias_blob,
    )

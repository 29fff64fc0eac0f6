# SPDX-License-Identifier: Apache-2.0
"""Reads the names of a kernel or module as the agent sends them: UPLOAD_FORMAT_KALLSYMS of symbols.proto.

Lines "OFFSET TYPE NAME", offset in hex from _text or from the start of the module's text; the last line "END ! " gives the end.
A symbol reaches to the next one at a higher offset, as the kernel itself reads the list; data symbols only end what is before them.
"""

import numpy as np

from server.symbols.build_result import BuildStatus, Refused
from server.symbols.symtab import MAX_SYMBOLS, RANK_GLOBAL, RANK_LOCAL, RANK_WEAK, Ranges, RawSymbols, Symbols, choose

MAX_BYTES = 128 << 20
_RANKS = {b"T": RANK_GLOBAL, b"W": RANK_WEAK, b"w": RANK_WEAK, b"t": RANK_LOCAL}
_END = b"!"


def parse_kallsyms(data: bytes) -> Symbols:
    """The ranges of code that `data` names. Raises Refused."""
    if len(data) > MAX_BYTES:
        raise Refused(BuildStatus.LIMIT, f"kallsyms of {len(data)} bytes, at most {MAX_BYTES} are read")
    lines = [line.split(b" ", 2) for line in data.split(b"\n") if line]
    if len(lines) > MAX_SYMBOLS:
        raise Refused(BuildStatus.LIMIT, f"{len(lines)} kernel symbols, at most {MAX_SYMBOLS} are read")
    if not lines or len(lines[-1]) < 2 or lines[-1][1] != _END:
        raise Refused(BuildStatus.MALFORMED, "kallsyms without its last line: cut")
    try:
        offsets = np.array([int(line[0], 16) for line in lines], np.uint64)
        ranks = np.array([_RANKS.get(line[1], -1) for line in lines], np.int8)
        names = [line[2] + b"\0" for line in lines[:-1]]
    except (ValueError, OverflowError, IndexError) as error:
        raise Refused(BuildStatus.MALFORMED, "kallsyms line that is not OFFSET TYPE NAME") from error
    return _symbols(offsets, ranks, names)


def _symbols(
    offsets: np.ndarray[tuple[int], np.dtype[np.uint64]], ranks: np.ndarray[tuple[int], np.dtype[np.int8]], names: list[bytes]
) -> Symbols:
    end = offsets[-1]
    stops = np.unique(offsets)
    inside = np.flatnonzero((ranks[:-1] >= 0) & (offsets[:-1] < end))
    starts = offsets[inside]
    ends = np.minimum(stops[np.searchsorted(stops, starts, "right")], end) if inside.size else starts
    name_starts = np.cumsum([0, *[len(name) for name in names]])[inside]
    strings = np.frombuffer(b"".join(names) or b"\0", np.uint8)
    raw = RawSymbols(starts, ends - starts, ranks[inside].astype(np.uint8), name_starts, strings)
    return choose(raw, Ranges(np.zeros(1, np.uint64), np.array([end], np.uint64)))

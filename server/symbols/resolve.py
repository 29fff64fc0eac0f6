# SPDX-License-Identifier: Apache-2.0
"""From places to addresses: the arithmetic between a frame and the table that names it, on whole arrays.

Two things happen here and nowhere else: a file offset becomes an address by the program headers of the binary that was running
(a debug file's own may be empty), and a return address goes back by one, into the call.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from server.store.protocol import BinaryInfo
from server.symbols.identity import key_of
from server.symbols.symtab import I64, U8, U64
from server.symbols.table import Table

PF_X = 1
MANY = 100_000
SegmentRow = tuple[int, int, int, int, int]
"""(offset, vaddr, file size, memory size, flags)."""


@dataclass(frozen=True, slots=True)
class Placed:
    """Frames of one binary with their addresses in it, as addr2line takes them."""

    addresses: U64
    """The file offset itself where no segment holds it; the start of the function where its bounds are all that is known."""
    symbols: I64
    """Row in the table, -1 where there is no name."""
    places: I64
    """Place among the table's inline chains, -1 where there is none."""


def resolve(binary: BinaryInfo, table: Table | None, offsets: U64, is_return: U8) -> Placed:
    """Find what each frame of `binary` lies in. Addresses are those of the frames themselves, whatever was looked up.

    A return address is where the call comes back to; when the call was the last instruction of a function that never returns, that is
    the next function (or past the end of the segment). One byte before lies inside the call.
    """
    back = ((is_return != 0) & (offsets > 0)).astype(np.uint64)
    if key_of(binary).counts_from_text:
        addresses, is_held = offsets - back, np.ones(offsets.size, np.bool_)
    else:
        addresses, is_held = addresses_from_offsets(binary.segments, offsets - back)
    symbols, places = (np.where(is_held, found, -1) for found in _found(table, addresses))
    addresses += back
    if table is not None and symbols.size:
        rows = np.flatnonzero(symbols >= 0)
        rows = rows[table.is_unnamed(symbols[rows])]
        addresses[rows] = table.starts(symbols[rows])
        symbols[rows] = -1
    return Placed(addresses, symbols, places)


def _found(table: Table | None, addresses: U64) -> tuple[I64, I64]:
    """The symbol and the place of each address."""
    nowhere = np.full(addresses.size, -1, np.int64)
    if table is None:
        return nowhere, nowhere
    if addresses.size > MANY:  # In order they are found where the processor's cache has just been.
        order = np.argsort(addresses)
        found = _found_in_any_order(table, addresses[order])
        symbols, places = np.empty_like(nowhere), np.empty_like(nowhere)
        symbols[order], places[order] = found
        return symbols, places
    return _found_in_any_order(table, addresses)


def _found_in_any_order(table: Table, addresses: U64) -> tuple[I64, I64]:
    nowhere = np.full(addresses.size, -1, np.int64)
    return table.find(addresses), nowhere if table.inlines is None else table.inlines.find(addresses)


def addresses_from_offsets(segments: Sequence[SegmentRow], offsets: U64) -> tuple[U64, npt.NDArray[np.bool_]]:
    """Turn file offsets into addresses by the segment that holds each; executable ones are asked first.

    address = offset - segment offset + segment vaddr. Segments may differ in vaddr - offset (BOLT, lld, --section-start): the
    first one's difference is wrong for the others. The second result is False, and the offset unchanged, where no segment holds it.
    """
    addresses, is_held = offsets.copy(), np.zeros(offsets.size, np.bool_)
    for offset, vaddr, file_bytes, _, _ in sorted(segments, key=lambda s: not s[4] & PF_X):
        start, shift = np.uint64(offset), np.uint64((vaddr - offset) % (1 << 64))
        holds = ~is_held & (offsets >= start) & (offsets - start < np.uint64(file_bytes))
        addresses[holds] = offsets[holds] + shift
        is_held |= holds
    return addresses, is_held

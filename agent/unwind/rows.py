# SPDX-License-Identifier: Apache-2.0
"""Puts the rows of all FDEs in the order of their addresses, closes the holes between them and drops rows that change nothing."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from agent.records.unwind import RuleKind, UnwindTable
from agent.unwind.entries import Ints

LEAST_HOLE_BYTES = 16
"""Compilers align functions to 16 bytes: what is shorter is padding, which never runs, and closing it would cost a row a function."""


@dataclass(frozen=True, slots=True)
class RawRows:
    """Rows as they were found; those of one FDE lie in the order they hold in."""

    addresses: Ints
    rules: npt.NDArray[np.uint32]
    fdes: Ints


def table_from_rows(rows: RawRows, start: Ints, end: Ints) -> UnwindTable:
    """The table of FDEs with the ranges [start, end). Where ranges overlap, the one that starts later holds from its start on."""
    order = np.argsort(start, kind="stable")
    first, stop = start[order], end[order]
    stop[:-1] = np.minimum(stop[:-1], first[1:])
    stop_of = np.empty_like(end)
    stop_of[order] = stop
    is_hole = np.ones(len(stop), bool)
    is_hole[:-1] = stop[:-1] + LEAST_HOLE_BYTES <= first[1:]
    holes = stop[is_hole]
    kept = rows.addresses < stop_of[rows.fdes]
    addresses = np.concatenate((rows.addresses[kept], holes))
    rules = np.concatenate((rows.rules[kept], np.full(len(holes), RuleKind.NONE, np.uint32)))
    order = np.argsort(addresses, kind="stable")
    addresses, rules = addresses[order], rules[order]
    is_last = np.ones(len(addresses), bool)
    is_last[:-1] = addresses[1:] != addresses[:-1]
    addresses, rules = addresses[is_last], rules[is_last]
    is_change = np.ones(len(rules), bool)
    is_change[1:] = rules[1:] != rules[:-1]
    return UnwindTable(addresses[is_change].astype(np.uint64), rules[is_change])

# SPDX-License-Identifier: Apache-2.0
"""Sets of stacks: joined, and parts of them."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from agent.records.drain import Stacks

Hashes = npt.NDArray[np.uint64]
Addresses = npt.NDArray[np.uint64]


def joined_stacks(parts: Sequence[Stacks]) -> Stacks:
    """Stacks of all parts, each hash once. Parts that are one and the same object, as those of one suite are, cost nothing."""
    distinct = list({id(part): part for part in parts}.values())
    if len(distinct) == 1:
        return distinct[0]
    hashes = np.concatenate([part.hashes for part in distinct])
    _, firsts = np.unique(hashes, return_index=True)
    lengths = np.concatenate([np.diff(part.bounds) for part in distinct])
    everything = Stacks(
        hashes,
        _bounds(lengths),
        np.concatenate([part.addresses for part in distinct]),
        np.concatenate([part.is_truncated for part in distinct]),
        np.concatenate([part.stops for part in distinct]),
    )
    return _taken(everything, firsts)


def selected_stacks(stacks: Stacks, hashes: Hashes) -> Stacks:
    """Those of `stacks` that are among `hashes`."""
    return _taken(stacks, np.flatnonzero(np.isin(stacks.hashes, hashes)))


def without_innermost(stacks: Stacks, starts: Addresses, ends: Addresses) -> Stacks:
    """Stacks without their innermost frame, where it lies in one of the ranges (ascending, apart); their hashes stay as they are."""
    if not len(starts) or not len(stacks.hashes):
        return stacks
    firsts, lengths = stacks.bounds[:-1], np.diff(stacks.bounds)
    leaves = np.where(lengths > 0, stacks.addresses[np.minimum(firsts, len(stacks.addresses) - 1)], 0)
    at = np.searchsorted(starts, leaves, side="right") - 1
    is_inside = (at >= 0) & (leaves < ends[np.maximum(at, 0)])
    is_kept = np.ones(len(stacks.addresses), np.bool_)
    is_kept[firsts[is_inside]] = False
    return replace(stacks, bounds=_bounds(lengths - is_inside), addresses=stacks.addresses[is_kept])


def _taken(stacks: Stacks, rows: npt.NDArray[np.int64]) -> Stacks:
    lengths = np.diff(stacks.bounds)[rows]
    bounds = _bounds(lengths)
    places = np.arange(bounds[-1]) + np.repeat(stacks.bounds[:-1][rows] - bounds[:-1], lengths)
    return Stacks(stacks.hashes[rows], bounds, stacks.addresses[places], stacks.is_truncated[rows], stacks.stops[rows])


def _bounds(lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    bounds = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=bounds[1:])
    return bounds

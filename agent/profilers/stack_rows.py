# SPDX-License-Identifier: Apache-2.0
"""Turns the rows of the BPF map of stacks into columns: 1 KiB each on the way in, as long as the stack is on the way out."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from agent.records.drain import Stacks, StackStop

STACK_FRAMES = 127
STACK_VALUE = np.dtype([("length", "<u4"), ("stop", "<u4"), ("addresses", "<u8", (STACK_FRAMES,))])
"""struct stack in bpf/shared/stack.h."""


def stacks_from_rows(pieces: Iterable[tuple[npt.NDArray[Any], npt.NDArray[Any]]], limit_frames: int) -> Stacks:
    """`pieces` are (hashes, values of STACK_VALUE). A stack is cut when its walk says so, or when it has `limit_frames` and does not."""
    hashes, lengths, addresses = [np.empty(0, np.uint64)], [np.empty(0, np.int64)], [np.empty(0, np.uint64)]
    stops = [np.empty(0, np.uint8)]
    places = np.arange(STACK_FRAMES)
    for keys, values in pieces:
        length = np.minimum(values["length"], STACK_FRAMES).astype(np.int64)
        hashes.append(keys.astype(np.uint64))
        lengths.append(length)
        stops.append(values["stop"].astype(np.uint8))
        addresses.append(values["addresses"][places < length[:, None]])
    return _sorted_by_hash(
        np.concatenate(hashes), (np.concatenate(lengths), np.concatenate(stops)), np.concatenate(addresses), limit_frames
    )


def _sorted_by_hash(
    hashes: npt.NDArray[np.uint64],
    of_stack: tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]],
    addresses: npt.NDArray[np.uint64],
    limit_frames: int,
) -> Stacks:
    lengths, stops = of_stack
    order = np.argsort(hashes)
    starts = np.cumsum(lengths) - lengths
    sorted_lengths, sorted_stops = lengths[order], stops[order]
    bounds = np.concatenate(([0], np.cumsum(sorted_lengths)))
    shift = np.repeat(starts[order] - bounds[:-1], sorted_lengths)
    does_not_say = (sorted_stops == StackStop.NONE) | (sorted_stops == StackStop.NO_TABLE)
    return Stacks(
        hashes=hashes[order],
        bounds=bounds,
        addresses=addresses[shift + np.arange(len(addresses))],
        is_truncated=(sorted_stops == StackStop.CAP) | does_not_say & (sorted_lengths >= limit_frames),
        stops=sorted_stops,
    )

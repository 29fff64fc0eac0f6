# SPDX-License-Identifier: Apache-2.0
"""Which binaries the time was spent in, and whether they have names."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from emberwatch.v1 import batch_pb2 as pb
from server.query.kinds import width_column
from server.query.merge import key_weights
from server.query.profile_query import ProfileQuery
from server.query.selector import Selector
from server.query.timerange import TimeRange
from server.store.protocol import BinaryInfo, ServiceDictionary

_IN_BINARIES = (pb.PLACE_KIND_FILE, pb.PLACE_KIND_KERNEL, pb.PLACE_KIND_MODULE)


@dataclass(frozen=True, slots=True)
class NameState:
    """What can be said of a binary's names: named, wanted, none or failed, and why."""

    state: str
    reason: str


@dataclass(frozen=True, slots=True)
class BinaryRow:
    """One binary."""

    info: BinaryInfo
    state: NameState
    value: int
    """Of the stacks whose innermost frame is in it, in the kind's width column."""


def binaries(query: ProfileQuery, selector: Selector, span: TimeRange, state: Callable[[BinaryInfo], NameState]) -> list[BinaryRow]:
    """Answer which binaries a selector's innermost frames are in, the largest first."""
    chosen = query.choose(selector, span)
    column = width_column(chosen.kind)
    weights = key_weights(query.store, chosen.selection(span, (column.name,)), (column.name,))
    sums: dict[int, int] = {}
    for service in weights.services.values():
        for row_id, value in _by_binary(service.dictionary, service.columns[column.name]):
            sums[row_id] = sums.get(row_id, 0) + value
    infos = query.store.binaries(sorted(sums)) if sums else []
    rows = [BinaryRow(info, state(info), sums[info.row_id]) for info in infos]
    return sorted(rows, key=lambda row: (-row.value, row.info.path))


def _by_binary(dictionary: ServiceDictionary, values: np.typing.NDArray[np.float64]) -> list[tuple[int, int]]:
    leaves = dictionary.node_frames[dictionary.key_stacks]
    is_in_binary = np.isin(dictionary.frame_kinds[leaves], _IN_BINARIES) & (values > 0)
    refs, place = np.unique(dictionary.frame_refs[leaves[is_in_binary]], return_inverse=True)
    sums = np.bincount(place, values[is_in_binary], refs.size)
    return [(row_id, int(value)) for row_id, value in zip(refs.tolist(), sums.tolist(), strict=True)]

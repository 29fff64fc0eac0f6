# SPDX-License-Identifier: Apache-2.0
"""Which binaries the time was spent in, how much of it has no name, and what run without a binary has none."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1 import marks_pb2
from server.profile.nametable import PathFlag
from server.query.kinds import width_column
from server.query.looked_at import IN_BINARIES
from server.query.merge import ServiceWeights, key_weights
from server.query.profile_query import ProfileQuery
from server.query.selector import Selector
from server.query.timerange import TimeRange
from server.query.trees import ServiceTree
from server.store.protocol import BinaryInfo

_WITHOUT_BINARY = (marks_pb2.MARK_JIT, marks_pb2.MARK_ANONYMOUS, marks_pb2.MARK_KERNEL_HIDDEN)
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class BinaryRow:
    """One binary. Values are of the stacks whose innermost frame is in it, in the kind's width column."""

    info: BinaryInfo
    value: int
    unnamed: int
    """Of those whose innermost frame has no name."""


@dataclass(frozen=True, slots=True)
class MarkRow:
    """Code of one service that belongs to no file and that nobody could name."""

    service: str
    mark: int
    value: int


@dataclass(frozen=True, slots=True)
class NameCosts:
    """What a selector's time was spent in; of both the ones with most unnamed time first."""

    binaries: tuple[BinaryRow, ...]
    marks: tuple[MarkRow, ...]


def name_costs(query: ProfileQuery, selector: Selector, span: TimeRange) -> NameCosts:
    """Add up by the innermost frame. Raises QueryError, LimitExceeded or Overloaded."""
    with query.place():
        chosen = query.choose(selector, span)
        column = width_column(chosen.kind)
        weights = key_weights(query.store, chosen.selection(span, (column.name,)), (column.name,))
        sums: dict[int, tuple[int, int]] = {}
        marks: list[MarkRow] = []
        for name, service in weights.services.items():
            values = service.columns[column.name]
            is_unnamed = _unnamed_keys(query.trees.tree(service.dictionary), service)
            for row_id, value, unnamed in _by_binary(service, values, is_unnamed):
                known = sums.get(row_id, (0, 0))
                sums[row_id] = (known[0] + value, known[1] + unnamed)
            marks += [MarkRow(name, mark, value) for mark, value in _by_mark(service, values)]
        infos = query.store.binaries(sorted(sums)) if sums else []
    rows = [BinaryRow(info, *sums[info.row_id]) for info in infos]
    return NameCosts(
        tuple(sorted(rows, key=lambda row: (-row.unnamed, -row.value, row.info.path))),
        tuple(sorted(marks, key=lambda row: (-row.value, row.service, row.mark))),
    )


def _unnamed_keys(tree: ServiceTree, service: ServiceWeights) -> Mask:
    """Keys whose innermost frame is shown without a name."""
    is_unnamed_name = (np.array(tree.tree.table.flags) & PathFlag.UNNAMED) != 0
    unnamed: Mask = is_unnamed_name[tree.tree.name[tree.nodes[service.dictionary.key_stacks]]]
    return unnamed


def _by_binary(service: ServiceWeights, values: npt.NDArray[np.float64], is_unnamed: Mask) -> Iterator[tuple[int, int, int]]:
    dictionary = service.dictionary
    leaves = dictionary.node_frames[dictionary.key_stacks]
    inside = np.flatnonzero(np.isin(dictionary.frame_kinds[leaves], IN_BINARIES) & (values > 0))
    refs, place = np.unique(dictionary.frame_refs[leaves[inside]], return_inverse=True)
    sums = np.bincount(place, values[inside], refs.size)
    unnamed = np.bincount(place, np.where(is_unnamed[inside], values[inside], 0.0), refs.size)
    yield from ((row_id, int(value), int(part)) for row_id, value, part in zip(refs.tolist(), sums.tolist(), unnamed.tolist(), strict=True))


def _by_mark(service: ServiceWeights, values: npt.NDArray[np.float64]) -> Iterator[tuple[int, int]]:
    dictionary = service.dictionary
    leaves = dictionary.node_frames[dictionary.key_stacks]
    is_mark = dictionary.frame_kinds[leaves] == pb.PLACE_KIND_MARK
    for mark in _WITHOUT_BINARY:
        value = int(values[is_mark & (dictionary.frame_offsets[leaves] == mark)].sum())
        if value:
            yield mark, value
